"""Field paths: `"value.content.type"`, or a tuple of keys where a key itself holds a dot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from jitdb.common.words import shown
from jitdb.errors import QueryError

Path: TypeAlias = tuple[str, ...]

TIMESTAMPS: Final = ("timestamp", "value.timestamp")  # fields that say when a record was made, unless others are named
SEQUENCE: Final = "value.sequence"  # the field behind gt(…, "sequence"), likewise
MAX_DEPTH = 64  # keys in one path; kernels keep their stacks this deep


def parse_path(path: str | Sequence[str]) -> Path:
    """The keys of a path. Empty keys are allowed; an empty path is not.

    >>> parse_path("value.content.type")
    ('value', 'content', 'type')
    >>> parse_path(("a.b", "c"))
    ('a.b', 'c')
    """
    if not isinstance(path, (str, list, tuple)):
        raise QueryError(f"a field path is a string or a tuple of strings, not {shown(path)}")
    keys = tuple(path.split(".")) if isinstance(path, str) else tuple(path)
    if not keys or path == "":
        raise QueryError("a field path needs at least one key, such as 'value.content.type'")
    for key in keys:
        if not isinstance(key, str):
            raise QueryError(f"a field path is a string or a tuple of strings, not {shown(path)}")
        if any(0xD800 <= ord(char) <= 0xDFFF for char in key):
            raise QueryError(f"the key {shown(key)} of a field path is not valid Unicode text")
    if len(keys) > MAX_DEPTH:
        raise QueryError(f"a field path has at most {MAX_DEPTH} keys, this one {len(keys)}")
    return keys


def format_path(keys: Path) -> str:
    """How a path is shown: dotted, or as a tuple when a key holds a dot or is empty.

    >>> format_path(("a", "b")), format_path(("a.b", "c"))
    ('a.b', "('a.b', 'c')")
    """
    dotted = ".".join(keys)
    return dotted if tuple(dotted.split(".")) == keys and dotted else repr(keys)
