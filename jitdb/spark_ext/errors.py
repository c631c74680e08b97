"""What can go wrong with Spark that cannot go wrong without it; and errors of workers, raised in the driver again.

JitdbError
  SparkError         the machinery: packages, Java, the cluster
    JavaMissing        there is no Java that Spark can run on
    CopyDiffers        a worker sees another file at the log's path than the driver does
    LogChanged         the log was compacted, truncated or replaced while the job ran
    VersionDiffers     a Python process of Spark has another version of jitdb than the driver, or none
    RecordMismatch     a record does not fit the table's schema
  PushDownWarning    a query read far more of a log than it used

Spark hands over nothing but their text, wrapped in that of two languages. So an error leaves a worker with its
serialized form (jitdb.errors) in a note, which Python's traceback shows below the message: base64 between brackets,
which nothing on the way changes.
"""

from __future__ import annotations

import json
import os
import pickle
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FunctionType
from typing import Any, Final, TypeVar

from jitdb.errors import CodecError, DecodeError, EncodeError, JitdbError, JitdbWarning, Remedy, from_json
from jitdb.log.columnar.table_file import PARQUET, kind_at

T = TypeVar("T", bound=Callable[..., Any])

NOTE: Final = "[jitdb error {}]"
_SENT: Final = re.compile(r"\[jitdb error ([\w+/]+=*)\]")
_JAVA_SAYS: Final = re.compile(r"^: (?:[\w.$]+: )*(.+)$", re.MULTILINE)  # behind "An error occurred while calling …"


class SparkError(JitdbError):
    """Something is wrong with Spark, or with the machines it runs on."""


class JavaMissing(SparkError):
    """There is no Java that Spark can run on."""


class CopyDiffers(SparkError):
    """A worker sees no file, or another one, where the driver sees the log: the path is not shared by all machines."""


class LogChanged(SparkError):
    """The log was compacted, truncated or replaced while the job ran; nothing was written."""


class VersionDiffers(SparkError):
    """A Python process of Spark has another version of jitdb than the driver, or none (versions.py)."""


class RecordMismatch(SparkError):
    """A record holds something that its column cannot. `offset` is where it lies in the log."""

    def __init__(
        self,
        reason: str,
        *,
        path: str | os.PathLike[str] | None = None,
        column: str = "",
        offset: int | None = None,
        remedy: Remedy | str | None = None,
    ) -> None:
        super().__init__(reason, path=path, remedy=remedy)
        self.column = column
        self.offset = offset


class PushDownWarning(JitdbWarning):
    """A query of Spark's read far more of a log than it used: all columns for few, or all records for a filter.

    Told once for each table. `warnings.simplefilter("ignore", PushDownWarning)` tells none.
    """


def without_identity(path: str | os.PathLike[str], so: str) -> SparkError:
    """The error for a log whose identity is kept nowhere. `so`: what cannot be done then."""
    return SparkError(
        f"it has no identity that is kept, so {so}: its sidecar cannot be written, or it is empty and another program "
        f"made it",
        path=path,
        remedy="open it once with Log(path), where its folder can be written",
    )


def refuse_table(path: str | os.PathLike[str]) -> None:
    """Raises SparkError for a Parquet or Arrow file, whose rows the driver alone would have."""
    kind = kind_at(path)
    if kind is not None:
        remedy = "spark.read.parquet() reads it" if kind is PARQUET else Remedy.importing(path)
        raise SparkError(f"it is {kind.title}, which Spark does not ask by jitdb", path=path, remedy=remedy)


@contextmanager
def finding_codec(path: str | os.PathLike[str]) -> Iterator[None]:
    """Tell of a codec that a Python process of Spark does not find what to do. Raises CodecError."""
    try:
        yield
    except (CodecError, ImportError, AttributeError, pickle.UnpicklingError) as error:
        if isinstance(error, (DecodeError, EncodeError)):
            raise
        reason = error.reason if isinstance(error, CodecError) else f"no codec can be made of what was sent: {error}"
        raise CodecError(
            f"{os.uname().nodename}, in a Python process of Spark: {reason}",
            path=path,
            remedy="install the package that has the codec, which names it in its entry points (jitdb.codecs), for the "
            "driver's Python and for the workers': what a program registers is known to its own process alone",
        ) from error


def missing_packages(error: ImportError) -> SparkError:
    """The error for an `import pyspark` that failed."""
    return SparkError(str(error), remedy="Spark is an extra of jitdb: pip install 'jitdb[spark]'")


# --- from workers to the driver -----------------------------------------------------------------------------------


@contextmanager
def jitdb_errors() -> Iterator[None]:
    """Raise what a worker raised, if it was an error of jitdb, from the error that Spark makes of it.

    with jitdb_errors():
        read_log(spark, "ssb.log", {"n": ("value.author", "int")}).show()  # RecordMismatch: ssb.log: the record at …
    """
    try:
        yield
    except JitdbError as error:  # of what workers do, done here
        notes = getattr(error, "__notes__", [])
        notes[:] = [note for note in notes if not _SENT.fullmatch(note)]
        raise
    except Exception as error:
        found = worker_error(str(error))
        if found is None:
            raise
        raise found from error


def sends_errors(called: T) -> T:
    """What workers run, a function or the public methods of a class: errors of jitdb leave it serialized."""
    if isinstance(called, type):
        for name, method in list(vars(called).items()):
            if isinstance(method, FunctionType) and not name.startswith("_"):
                setattr(called, name, sends_errors(method))
        return called

    @wraps(called)
    def call(*arguments: Any, **named: Any) -> Any:
        with _noted():
            found = called(*arguments, **named)
        return _each(found) if isinstance(found, Iterator) else found

    return call  # type: ignore[return-value]


def _each(items: Iterator[Any]) -> Iterator[Any]:
    with _noted():
        yield from items


@contextmanager
def _noted() -> Iterator[None]:
    try:
        yield
    except JitdbError as error:
        note = sent(error)
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise


def sent(error: JitdbError) -> str:
    """The note by which it is known again."""
    return NOTE.format(b64encode(json.dumps(error.to_json()).encode()).decode())


def worker_error(text: str) -> JitdbError | None:
    """The error of jitdb that the text of an error of Spark carries, the last one if there are several.

    >>> worker_error(f"Py4JJavaError: …\\n{sent(JitdbError('another file', path='a.log'))}\\n\\tat java…")
    JitdbError('a.log: another file')
    >>> worker_error("ZeroDivisionError: division by zero")
    """
    found = _SENT.findall(text)
    return from_json(json.loads(b64decode(found[-1]))) if found else None


def sparks_words(error: Exception) -> str | None:
    """What an error of Spark says, in one line without traces; None for an error that is not Spark's.

    >>> sparks_words(ValueError("no"))
    """
    if not any(base.__module__.partition(".")[0] in ("pyspark", "py4j") for base in type(error).__mro__):
        return None
    text = str(error)
    lines = [found[1] for found in _JAVA_SAYS.finditer(text)] or text.strip().splitlines() or [type(error).__name__]
    return lines[0]
