"""Errors of workers, told as errors of jitdb: Spark hands over their text, wrapped in that of two languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from jitdb import errors
from jitdb.errors import JitdbError
from jitdb.spark_ext import errors as spark_errors

_LAST_LINE: Final = re.compile(r"^(?:\w+: )*jitdb\.(?:spark_ext\.)?errors\.(\w+): (.+)$", re.MULTILINE)

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
    """The error of jitdb that the text of an error of Spark tells of.

    >>> worker_error("Py4JJavaError: …\\njitdb.spark_ext.errors.CopyDiffers: a.log: another file\\n\\tat java…")
    CopyDiffers('a.log: another file')
    >>> worker_error("ZeroDivisionError: division by zero")
    """
    for name, message in reversed(_LAST_LINE.findall(text)):
        kind = getattr(spark_errors, name, None) or getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, JitdbError):
            made = kind.__new__(kind)  # whatever else its __init__ wants: the message has it all
            made.args = (message,)
            return made
    return None
