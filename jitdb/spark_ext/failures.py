"""Errors of workers, told as errors of jitdb: Spark hands over their text, wrapped in that of two languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any, Final

from jitdb import errors
from jitdb.errors import JitdbError
from jitdb.spark_ext import errors as spark_errors

_BEHIND: Final = (  # what begins a line that is no part of a message any more: Java's words, Spark's and Python's
    r"[ \t]*$|\tat |\t?\.\.\. \d| ?SQLSTATE: |Caused by: |Driver stacktrace:|JVM stacktrace:|=== |Traceback |"
    r"During handling of |The above exception |(?:\w+: )*jitdb\.(?:\w+\.)?errors\.\w+: "
)
_ERROR: Final = re.compile(
    rf"^(?:\w+: )*jitdb\.(?:spark_ext\.)?errors\.(\w+): (.+(?:\n(?!{_BEHIND}).+)*)", re.MULTILINE
)

#: Attributes of errors, where their messages say them.
_SAID: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "path": (r"^(/.*?): ", str),
    "offset": (r"\boffset (\d[\d,]*)", lambda text: int(text.replace(",", ""))),
    "block": (r"\bblock (\d[\d,]*)", lambda text: int(text.replace(",", ""))),
    "column": (r"\bcolumn '([^']*)'", str),
}

_JAVA_SAYS: Final = re.compile(r"^: (?:[\w.$]+: )*(.+)$", re.MULTILINE)  # behind "An error occurred while calling …"


@contextmanager
def told() -> Iterator[None]:
    """Raise what a worker raised, if it was an error of jitdb, from the error that Spark makes of it.

    with told():
        read_log(spark, "ssb.log", {"n": ("value.author", "int")}).show()  # RecordMismatch: ssb.log: the record at …
    """
    try:
        yield
    except JitdbError:
        raise
    except Exception as error:
        found = worker_error(str(error))
        if found is None:
            raise
        raise found from error


def sparks_words(error: Exception) -> str | None:
    """What an error of Spark says, in one line without traces; None for an error that is not Spark's.

    >>> sparks_words(ValueError("no"))
    """
    if not any(base.__module__.partition(".")[0] in ("pyspark", "py4j") for base in type(error).__mro__):
        return None
    text = str(error)
    lines = [found[1] for found in _JAVA_SAYS.finditer(text)] or text.strip().splitlines() or [type(error).__name__]
    return lines[0]


def worker_error(text: str) -> JitdbError | None:
    """The error of jitdb that the text of an error of Spark tells of, with the attributes that its message says.

    >>> worker_error("Py4JJavaError: …\\njitdb.spark_ext.errors.CopyDiffers: a.log: another file\\n\\tat java…")
    CopyDiffers('a.log: another file')
    >>> worker_error("ZeroDivisionError: division by zero")
    """
    for name, message in reversed(_ERROR.findall(text)):
        kind = getattr(spark_errors, name, None) or getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, JitdbError):
            return _made(kind, message)
    return None


def _made(kind: type[JitdbError], message: str) -> JitdbError:
    """An error with a message that is made already, which its __init__ would make again."""
    made = kind.__new__(kind)
    made.args = (message,)
    for base in kind.__mro__:
        if issubclass(base, JitdbError) and "__init__" in vars(base):
            for name, each in signature(base.__init__).parameters.items():
                if each.kind is each.KEYWORD_ONLY:  # these become attributes
                    setattr(made, name, _said(name, message, None if each.default is each.empty else each.default))
    return made


def _said(name: str, message: str, default: Any) -> Any:
    pattern, read = _SAID.get(name, ("(?!)", str))
    found = re.search(pattern, message)
    return read(found[1]) if found else default
