"""Sets of records of one log, as values and kept under names.

A set has the seqs of its records as of one generation of the log; a compaction renumbers them. Under a name it is a
file in the folder `sets` of the log's sidecar (docs/sets.md has the bytes). Unlike an index it cannot be made again: it
is durable once it was put in, and a damaged one is an error that names it. compact() writes all of them anew, since the
log remembers only of its last 64 compactions what they removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, unquote

import numpy as np
from pyroaring import BitMap

from jitdb.common.words import shown
from jitdb.errors import LogCorrupt, LogError, QueryError, SetNotFound
from jitdb.indexes.kinds.roaring import bitmap_of, dump, members_of
from jitdb.log.io import osfile
from jitdb.log.io.filenames import INDEXES, SETS
from jitdb.log.sidecar import sets
from jitdb.operators.nodes.operation import EVERYTHING
from jitdb.operators.sets import Members, NamedSets, RecordSet, Sizes

if TYPE_CHECKING:
    import threading

    from jitdb.engine.manager import IndexManager
    from jitdb.operators.question import Question

T = TypeVar("T")

_LONGEST: Final = 240  # bytes of a file's name, without the suffix
_COMBINED: Final[dict[str, Callable[[BitMap, BitMap], BitMap]]] = {
    "&": lambda one, other: one & other,
    "|": lambda one, other: one | other,
    "-": lambda one, other: one - other,
    "^": lambda one, other: one ^ other,
}


class LogRecordSet(RecordSet, Members):
    """Records of a log, whose indexes are asked about them."""

    __slots__ = ("manager",)

    manager: IndexManager

    def __init__(self, manager: IndexManager, log: bytes, generation: int, packed: bytes) -> None:
        self._keep(log, generation, packed)
        object.__setattr__(self, "manager", manager)

    def __len__(self) -> int:
        return self._ask(lambda manager, end: manager.evaluator.count(self, end))

    def __iter__(self) -> Iterator[int]:
        """The offsets of the records, in the order of the log."""
        return iter(self.offsets.tolist())

    def __contains__(self, place: object) -> bool:
        """Whether the record at this offset is one of them."""
        if not isinstance(place, int | np.integer) or isinstance(place, bool) or not 0 <= place < 1 << 63:
            return False
        offset = np.array([place], np.int64)
        return self._ask(
            lambda manager, end: bool(manager.records.seqs_at(offset) & manager.evaluator.matches(self, end))
        )

    @property
    def offsets(self) -> Any:
        """int64, where they begin in the log, ascending."""
        return self._ask(
            lambda manager, end: manager.records.offsets_of(members_of(manager.evaluator.matches(self, end)))
        )

    def _combined(self, other: LogRecordSet, how: str) -> LogRecordSet:
        def combine(manager: IndexManager, end: int) -> BitMap:
            return _COMBINED[how](manager.evaluator.matches(self, end), manager.evaluator.matches(other, end))

        return self._made(self._ask(lambda manager, end: _packed(manager, combine(manager, end))))

    def _sizes(self, other: LogRecordSet) -> Sizes:
        def count(manager: IndexManager, end: int) -> Sizes:
            one, two = manager.evaluator.matches(self, end), manager.evaluator.matches(other, end)
            return Sizes(len(one), len(two), int(one.intersection_cardinality(two)))

        return self._ask(count)

    def renewed(self) -> LogRecordSet:
        """The same, as of now: without deleted ones, of the present generation."""
        return self._made(self._ask(lambda manager, end: _packed(manager, manager.evaluator.matches(self, end))))

    def _made(self, parts: tuple[bytes, int, bytes]) -> LogRecordSet:
        return LogRecordSet(self.manager, *parts)

    def _ask(self, work: Callable[[IndexManager, int], T]) -> T:
        return self.manager.ask(EVERYTHING, False, None, lambda end: work(self.manager, end))

    def __reduce__(self) -> tuple[Any, ...]:
        return Members, (self.log, self.generation, self.packed)


def _packed(manager: IndexManager, seqs: BitMap) -> tuple[bytes, int, bytes]:
    log = manager.records.log
    return log.identity, log.generation, dump(BitMap(seqs))


def set_of(manager: IndexManager, question: Question, cancel: threading.Event | None) -> LogRecordSet:
    """The records that the question gives: all that match, or where it says so those of one page."""
    start, limit = question.start_from, question.limit
    is_part = bool(start) or limit is not None
    order = question.order if is_part else False

    def look(end: int) -> tuple[bytes, int, bytes]:
        end = manager.records.horizon(question.as_of, end)
        if not is_part:
            return _packed(manager, manager.evaluator.matches(question.operation, end))
        answer = manager.answer(question.operation, end, order)
        return _packed(manager, bitmap_of(np.sort(answer.page(start, limit, question.descending))))

    return LogRecordSet(manager, *manager.ask(question.operation, order, cancel, look))


# --- under names -----------------------------------------------------------------------------------------------------


class SavedSets(NamedSets[LogRecordSet]):
    """The sets of one log; in memory, where its indexes are."""

    def __init__(self, manager: IndexManager) -> None:
        self._manager, self._log = manager, manager.log
        self._held: dict[str, LogRecordSet] = {}

    @property
    def _folder(self) -> Path | None:
        folder, sidecar = self._manager.folder, self._log.sidecar
        if folder is None:
            return None
        return sidecar / SETS if folder == sidecar / INDEXES else folder / SETS

    def __getitem__(self, name: str) -> LogRecordSet:
        """Raises SetNotFound, LogCorrupt for a damaged file."""
        if self._folder is None:
            found = self._held.get(name)
        else:
            path = self._path(name)
            data = osfile.fs.read_if_there(path)
            found = None if data is None else self._set_of(sets.decode(data, path))
        if found is None:
            raise self._missing(name)
        return found

    def __setitem__(self, name: str, value: LogRecordSet) -> None:
        """It is durable then. Raises QueryError for a set of another log, LogError where it cannot be written."""
        if not isinstance(value, LogRecordSet):
            raise QueryError(f"what is kept by a name is a set of records of this log, not {shown(value)}")
        renewed = LogRecordSet(self._manager, value.log, value.generation, value.packed).renewed()
        if self._folder is None:
            self._held[name] = renewed
            return
        path = self._path(name)
        if not self._log.identity_is_stored:
            raise LogError(
                "its identity cannot be kept, so nothing that belongs to it would be found", path=self._log.path
            )
        try:
            osfile.fs.make_folders(path.parent)
            data = sets.encode(sets.NamedRecords(renewed.generation, renewed.log, renewed.packed))
            osfile.fs.replace_file(path, data)
            osfile.fs.sync_folder(path.parent)
        except OSError as error:
            raise LogError(f"the set {name!r} cannot be kept: {osfile.reason(error)}", path=path) from error

    def __delitem__(self, name: str) -> None:
        """Raises SetNotFound, LogError where it cannot be removed."""
        if self._folder is None:
            if self._held.pop(name, None) is None:
                raise self._missing(name)
            return
        try:
            osfile.fs.unlink(self._path(name))
        except (FileNotFoundError, NotADirectoryError):
            raise self._missing(name) from None
        except OSError as error:
            raise LogError(f"the set {name!r} cannot be removed: {osfile.reason(error)}", path=self._folder) from error

    def __contains__(self, name: object) -> bool:
        return name in list(iter(self))

    def __iter__(self) -> Iterator[str]:
        """The names, in their order."""
        folder = self._folder
        if folder is None:
            return iter(sorted(self._held))
        names: list[str] = []
        with suppress(FileNotFoundError, NotADirectoryError):
            names = osfile.fs.listdir(folder)
        return iter(sorted(unquote(name.removesuffix(sets.SUFFIX)) for name in names if name.endswith(sets.SUFFIX)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def carry(self) -> None:
        """Write those anew that are of an earlier generation of the log: what compactions removed is soon forgotten."""
        for name in self:
            with suppress(LogCorrupt, QueryError, SetNotFound):  # raised again to who asks for it
                found = self[name]
                if found.generation != self._log.generation:
                    self[name] = found

    def _path(self, name: object) -> Path:
        folder = self._folder
        assert folder is not None
        if not isinstance(name, str) or not name:
            raise QueryError(f"the name of a set is text, not {shown(name)}")
        file = quote(name, safe="", errors="surrogateescape").replace(".", "%2E")
        if len(file) > _LONGEST:
            raise QueryError(f"the name of a set is too long: {shown(name)}", remedy="240 letters and digits fit")
        return folder / f"{file}{sets.SUFFIX}"

    def _set_of(self, found: sets.NamedRecords) -> LogRecordSet:
        return LogRecordSet(self._manager, found.identity, found.generation, found.seqs)

    def _missing(self, name: object) -> SetNotFound:
        names = list(iter(self))
        others = f"there are {', '.join(map(repr, names[:10]))}" if names else "there is none yet"
        return SetNotFound(f"no set is kept as {shown(name)}", path=self._log.path, remedy=others)
