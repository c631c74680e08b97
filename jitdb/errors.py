"""Everything that jitdb raises or warns of, in one small tree under JitdbError.

Each error has a `reason`, which says what was expected and found, mostly a `path`, and often a `remedy`: what to do
about it, in the words of a program and in those of a shell. Those that speak of bytes on disk have the offset too. Its
text is `path: reason; remedy`, which no program needs to read: `to_json` has all of it as plain values, of which
`from_json` makes the error again, in another process.

    JitdbError
      LogError: NotALog, LogLocked, LogClosed, LogReadOnly, LogCorrupt, CompactionUnfinished, LogSuperseded,
        LogWriteFailed, InvalidArgument, InvalidOffset, RecordDeleted, InvalidRecord (RecordTooLarge)
      CodecError: EncodeError, DecodeError
      QueryError: TooManyIndexes
      QueryCancelled
      IndexDamaged: IndexForeign, IndexBehind (inside the engine only)
    JitdbWarning
      QuestionWarning, IndexWarning, LogWarning (DamageWarning, MalformedWarning)
"""

from __future__ import annotations

import os
from collections import namedtuple

TYPE_CHECKING = False  # as in typing, which is large
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_Path = str | os.PathLike[str] | None


class Remedy(namedtuple("Remedy", ("python", "shell"))):
    """What to do about an error, in Python and in a shell; empty if nothing can be done.

    >>> Remedy.option("block_size", 4096)
    Remedy(python='pass block_size=4096', shell='pass --block-size 4096')
    """

    __slots__ = ()
    python: str
    shell: str

    @classmethod
    def option(cls, name: str, value: object, more: str = "") -> Remedy:
        """Pass an argument, or its option on the command line; `more` is added to both."""
        return cls(f"pass {name}={value!r}{more}", f"pass --{name.replace('_', '-')} {value}{more}")

    @classmethod
    def without(cls, name: str) -> Remedy:
        """Leave an argument out, or its option."""
        return cls(f"leave {name} out", f"leave --{name.replace('_', '-')} out")

    @classmethod
    def repair(cls, log: str | os.PathLike[str]) -> Remedy:
        """Repair the log first."""
        import shlex

        command = f"jitdb repair {shlex.quote(os.fspath(log))}"
        return cls("repair the log first (jitdb repair, or Log.repair())", f"repair it first: {command}")

    @classmethod
    def importing(cls, source: str | os.PathLike[str]) -> Remedy:
        """Import a file that is no log."""
        command = f"make a log of it: {import_command(os.fspath(source))}"
        return cls(command, command)

    @classmethod
    def read_only(cls) -> Remedy:
        """Open the log read-only, as commands do if they can."""
        return cls("open it with read_only=True", "")

    @classmethod
    def refresh(cls) -> Remedy:
        """Look at the log again, as the next command does."""
        return cls("call refresh() to see it as it is", "ask again")


def import_command(source: str) -> str:
    """The command that imports a file into a log with an unused name, quoted for a shell."""
    import shlex

    from jitdb.common.formats import without_ending

    near = min(source, os.path.relpath(source), key=len)
    stem = os.path.splitext(without_ending(near))[0]
    return f"jitdb import {shlex.quote(near)} {shlex.quote(free_name(stem, '.log'))}"


def free_name(stem: str, ending: str) -> str:
    """An unused file name: both together, or with a number between them."""
    name, number = stem + ending, 2
    while os.path.lexists(name):
        name, number = f"{stem}-{number}{ending}", number + 1
    return name


class _Described(Exception):
    """What errors and warnings have in common. `_parts` are the attributes of a kind besides these, None by default."""

    reason: str
    remedy: Remedy | None
    path: str | None
    _parts: tuple[str, ...] = ()

    def __init__(self, reason: str, *, path: _Path = None, remedy: Remedy | str | None = None, **parts: Any) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = Remedy(remedy, remedy) if isinstance(remedy, str) else remedy
        self.path = None if path is None else os.fspath(path)
        unknown = parts.keys() - set(self._parts)
        if unknown:
            raise TypeError(f"{type(self).__name__} has no {', '.join(unknown)}")
        vars(self).update(dict.fromkeys(self._parts), **parts)

    def __str__(self) -> str:
        where = "" if self.path is None else f"{self.path}: "
        advice = "" if self.remedy is None or not self.remedy.python else f"; {self.remedy.python}"
        return where + self.reason + advice

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:  # __init__ of some takes more than the reason
        return _made, (type(self), self.reason), vars(self)

    def to_json(self) -> dict[str, Any]:
        """Its kind and all its attributes, as plain values.

        >>> NotALog("there is no such file", path="a.log").to_json()["kind"]
        'NotALog'
        """
        said = {name: _plain(value) for name, value in vars(self).items() if not name.startswith("_")}
        return {"kind": type(self).__name__, **said}


def from_json(form: dict[str, Any]) -> JitdbError:
    """The error of which `to_json` made this; a JitdbError with its attributes where its kind is not known here.

    >>> from_json(NotALog("there is no such file", path="a.log").to_json())
    NotALog('a.log: there is no such file')
    """
    said = dict(form)
    kind: type[JitdbError] = _kinds(JitdbError).get(said.pop("kind"), JitdbError)
    if said["remedy"] is not None:
        said["remedy"] = Remedy(**said["remedy"])
    error: JitdbError = _made(kind, said["reason"])
    vars(error).update(said)
    return error


def _made(kind: type[Any], reason: str) -> Any:
    return kind.__new__(kind, reason)


def _kinds(kind: type[JitdbError]) -> dict[str, type[JitdbError]]:
    """This kind of error and those below it, by name."""
    found = {kind.__name__: kind}
    for below in kind.__subclasses__():
        found |= _kinds(below)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Remedy):
        return value._asdict()
    if isinstance(value, _Described):
        return value.to_json()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return int(value) if hasattr(value, "__index__") else str(value)


class JitdbError(_Described):
    """The root of all errors that jitdb raises on purpose.

    reason: what is wrong; remedy: what to do about it, or None; path: the file that it is about, or None
    """


class LogError(JitdbError):
    """Something is wrong with a log. `path` is its file, `offset` the byte position (or None)."""

    _parts: tuple[str, ...] = ("offset",)
    offset: int | None


class InvalidArgument(LogError, ValueError):
    """An argument that no log can take: a path that is none, a limit below 0, text instead of a function."""


class NotALog(LogError):
    """The file is not a block-aligned log, or not with the block size or codec it was opened with."""


class LogLocked(LogError):
    """Another process (`pid`, when known) has the log open for writing."""

    _parts = ("offset", "pid")
    pid: int | None


class LogClosed(LogError):
    """The log was closed."""


class LogReadOnly(LogError):
    """The log was opened read-only."""


class LogCorrupt(LogError):
    """Bytes on disk are not those that were written. `block` is the number of the damaged block."""

    _parts = ("offset", "block", "expected", "got")
    block: int | None
    expected: object
    got: object


class LogSuperseded(LogError):
    """A reader does not know yet that the log was compacted or replaced. After refresh() it does, and knows the records
    deleted since. Questions do so by themselves.
    """


class CompactionUnfinished(LogError):
    """async-append-only-log began to compact the log and has not finished, so records stand in it twice.

    Opening the log in JavaScript finishes it. Until then it can be neither read nor written here.
    """


class LogWriteFailed(LogError):
    """A write or fsync failed. What was not acknowledged may be lost; open the log again to go on."""


class InvalidOffset(LogError, ValueError):
    """No record begins at this offset: negative, not an integer, past the end, or inside a record."""


class RecordDeleted(LogError, LookupError):
    """The record at this offset was deleted."""


class InvalidRecord(LogError, ValueError):
    """This cannot be stored as a record."""


class RecordTooLarge(InvalidRecord):
    """The record (`size` bytes) is larger than one block can hold (`limit` bytes)."""

    def __init__(self, *, path: _Path, size: int, limit: int) -> None:
        larger = "a log made with a larger {} (up to 16 MiB) holds larger records"
        super().__init__(
            f"a record of {size:,} bytes does not fit a block: at most {limit:,} bytes",
            path=path,
            remedy=Remedy(larger.format("block_size"), larger.format("--block-size")),
        )
        self.size = size
        self.limit = limit


class CodecError(JitdbError):
    """One record's bytes, or one value, do not suit the codec."""


class EncodeError(CodecError, ValueError):
    """The value has no encoding in this codec."""


class DecodeError(CodecError, ValueError):
    """The bytes are no value of this codec. `position` is the byte in the record, `offset` the record's."""

    _parts = ("position", "offset")
    position: int | None
    offset: int | None


class QueryError(JitdbError, ValueError):
    """The question cannot be asked: an unknown operator or option, a wrong type, a bad expression.

    Also where a function of the user raised StopIteration or StopAsyncIteration, which would end the answer.
    """


class MissingLibrary(QueryError):
    """What is asked for is made by a library (`library`) that is not installed."""

    _parts = ("library",)
    library: str


class SetNotFound(QueryError, KeyError):
    """No set of records is kept under this name."""


class QuestionsDamaged(QueryError):
    """The file of saved questions cannot be understood: `line`, from 1 on, has `got` where `expected` should be."""

    _parts = ("offset", "line", "expected", "got")
    offset: int
    line: int
    expected: str
    got: str


class TooManyIndexes(QueryError):
    """The question needs an index that is not there, and no more of them may be built for questions."""


class ScanTooLarge(QueryError):
    """The question needs a scan of more bytes than may be read."""


class QueryCancelled(JitdbError):
    """The asker went away (a cancelled task, a closed iterator) before the answer was there."""


class IndexDamaged(JitdbError):
    """An index file is not what was written. Inside the engine only: the file is rebuilt, with a warning."""

    _parts: tuple[str, ...] = ("offset",)
    path: str
    offset: int | None


class IndexForeign(IndexDamaged):
    """An index file belongs to another log, to this one before it was replaced, or to a copy. Inside the engine only.

    `generation` is that of the log that the file belongs to, where it is the same log, or was; else None.
    """

    _parts = ("offset", "generation")
    generation: int | None


class IndexBehind(IndexDamaged):
    """An index does not reach as far as it did; nothing is wrong with it. Inside the engine only."""


class JitdbWarning(_Described, UserWarning):
    """The root of all warnings."""


class QuestionWarning(JitdbWarning):
    """A question asks for a field that no record has, leaves out values that are no numbers or no UTF-8, or orders
    records without a time (warned once); or an empty answer asks for a value that the log spells otherwise (once for
    each question). `warnings.simplefilter("ignore", QuestionWarning)` tells none.
    """


class IndexWarning(JitdbWarning):
    """An index was damaged, stale or foreign and is rebuilt, or cannot be written and is kept in memory."""


class LogWarning(JitdbWarning):
    """The log was repaired when it was opened, or was changed by another program."""


class DamageWarning(LogWarning):
    """Records were left out, because their blocks are not what was written. `faults` has each such place.

    Who must have all records or none makes it an error: `warnings.simplefilter("error", DamageWarning)`.
    """

    def __init__(
        self,
        reason: str,
        faults: Sequence[LogCorrupt] = (),
        *,
        path: _Path = None,
        remedy: Remedy | str | None = None,
    ) -> None:
        super().__init__(reason, path=path, remedy=remedy)
        self.faults = tuple(faults)


class MalformedWarning(LogWarning):
    """Lines of a file that somebody else writes were left out, because they are no records.

    numbers: of the first thousand of them, from 1 on; count: how many there are
    """

    def __init__(
        self,
        reason: str,
        numbers: Sequence[int] = (),
        count: int = 0,
        *,
        path: _Path = None,
        remedy: Remedy | str | None = None,
    ) -> None:
        super().__init__(reason, path=path, remedy=remedy)
        self.numbers = tuple(numbers)
        self.count = count


_EXTRAS = {
    "pyarrow": "'jitdb[arrow]'",
    "matplotlib": "'jitdb[plot]'",
    "mcp": "'jitdb[mcp]'",
    "polars": "'jitdb[polars]'",
    "obstore": "'jitdb[objects]'",
    "obstore.store": "'jitdb[objects]'",
}  # what pip installs for a library


def library(name: str) -> Any:
    """An optional library, imported on demand. Raises MissingLibrary."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        if getattr(error, "name", None) not in (None, name):
            raise
        raise MissingLibrary(
            f"this takes {name}, which is not installed",
            library=name,
            remedy=f"pip install {_EXTRAS.get(name, name)}",
        ) from None


def outside() -> int:
    """The `stacklevel` at which warnings.warn of the caller shows the first line that is not jitdb's own."""
    import sys

    package = __name__.partition(".")[0]
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    return level
