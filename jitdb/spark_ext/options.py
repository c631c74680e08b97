"""Options as Spark hands them over: text, by names in lower case."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from jitdb.errors import QueryError

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|file:/")
_OF_THIS_MACHINE: Final = re.compile(r"^file:(//)?(?=/[^/])")  # a URI without a host
_SIZE: Final = re.compile(r"(\d+)([kmgtp]?)b?")  # as Spark writes sizes
_NO_TABLES: Final = (
    "Spark tells no source in Python the options of a table in its catalog: CREATE TEMPORARY VIEW … USING jitdb "
    "OPTIONS (path …) in the place of CREATE TABLE, or .load(path)"
)


def is_uri(path: str | os.PathLike[str]) -> bool:
    """Whether a path is Hadoop's to read.

    >>> [is_uri(path) for path in ("hdfs://host/x.log", "file:///x.log", "file:/x.log", "/x.log", "file:x.log")]
    [True, True, True, False, False]
    """
    return _URI.match(os.fspath(path)) is not None


def checked(given: Mapping[str, str], known: set[str]) -> dict[str, str]:
    """The options by their names in lower case. Raises QueryError for one that there is not."""
    options = {name.lower(): value for name, value in given.items()}
    if "location" in options:  # which only CREATE TABLE gives, when it makes the table
        raise QueryError(_NO_TABLES)
    unknown = sorted(set(options) - known)
    if unknown:
        raise QueryError(f"there is no option {unknown[0]!r}; there are {', '.join(sorted(known))}")
    return options


def path_in(options: Mapping[str, str]) -> str:
    """Where the log is. Raises QueryError."""
    if not options.get("path"):
        raise QueryError("the path of the log is missing", remedy=f'.load("my.log"), or the option path. {_NO_TABLES}')
    path = _OF_THIS_MACHINE.sub("", options["path"])  # Spark makes such a URI of a path
    if is_uri(path):
        raise QueryError("a log is read and written at a path that all machines share, not at a URI", path=path)
    return os.path.abspath(path)


def one_of(option: str, value: str, allowed: tuple[str, ...]) -> str:
    """One of a few words, in lower case. Raises QueryError."""
    if value.lower() not in allowed:
        raise QueryError(f"the option {option} is one of {', '.join(allowed)}, not {value!r}")
    return value.lower()


def number(options: Mapping[str, str], name: str, least: int) -> int | None:
    """An integer, if the option is given. Raises QueryError."""
    text = options.get(name)
    if text is None:
        return None
    try:
        value = int(text.replace("_", ""))
    except ValueError:
        value = least - 1
    if value < least:
        raise QueryError(f"the option {name} is an integer, {least} or more, not {text!r}")
    return value


def size(options: Mapping[str, str], name: str) -> int | None:
    """Bytes, if the option is given. Raises QueryError."""
    text = options.get(name)
    return None if text is None else bytes_of(text, f"the option {name}")


def bytes_of(given: int | str, what: str) -> int:
    """A size as Spark's own settings take it: bytes, or with a unit of 1,024 of the one before. Raises QueryError.

    >>> bytes_of(64, "x"), bytes_of("64k", "x"), bytes_of("64 MB", "x") >> 20, bytes_of("1_000", "x")
    (64, 65536, 64, 1000)
    """
    found = _SIZE.fullmatch(str(given).lower().replace("_", "").replace(" ", ""))
    if found is None or not int(found[1]):
        raise QueryError(f"{what} is a size, 1 byte or more: 65536, 64k, 64m, 64MB, 1g …, not {given!r}")
    return int(found[1]) << 10 * " kmgtp".index(found[2] or " ")
