"""Errors of workers, raised in the driver as what they were.

Spark hands over nothing but their text, wrapped in that of two languages. So an error leaves a worker with its
serialized form (jitdb.errors) in a note, which Python's traceback shows below the message: base64 between brackets,
which nothing on the way changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FunctionType
from typing import Any, Final, TypeVar

from jitdb.errors import JitdbError, from_json

T = TypeVar("T", bound=Callable[..., Any])

_NOTE: Final = "[jitdb error {}]"
_SENT: Final = re.compile(r"\[jitdb error ([\w+/]+=*)\]")
_JAVA_SAYS: Final = re.compile(r"^: (?:[\w.$]+: )*(.+)$", re.MULTILINE)  # behind "An error occurred while calling …"


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
    import json
    from base64 import b64encode

    return _NOTE.format(b64encode(json.dumps(error.to_json()).encode()).decode())


def worker_error(text: str) -> JitdbError | None:
    """The error of jitdb that the text of an error of Spark carries, the last one if there are several.

    >>> worker_error(f"Py4JJavaError: …\\n{sent(JitdbError('another file', path='a.log'))}\\n\\tat java…")
    JitdbError('a.log: another file')
    >>> worker_error("ZeroDivisionError: division by zero")
    """
    import json
    from base64 import b64decode

    import jitdb.spark_ext.errors  # noqa: F401  (kinds that it may be of)

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
