"""Which fields of its records an answer has, and by which it is sorted: `select("user.name", "size")`,
`sort_by("carrier", "-dep_delay")`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from jitdb.common.paths import Path, format_path, parse_path, plain_path, single
from jitdb.common.values import UNDEFINED, value_at
from jitdb.common.words import shown
from jitdb.errors import QueryError

FALLING: Final = "-"  # in front of a path


class _OfPath(Protocol):
    """A field (nodes/field.py)."""

    path: Path


#: A path, or field(path).
SelectField: TypeAlias = str | _OfPath

#: The names under which fields are given, in order, and their paths.
Selection: TypeAlias = tuple[tuple[str, Path], ...]


def selection(caller: str, fields: Sequence[SelectField]) -> Selection:
    """What these fields mean, and under which names they are given (named). Raises QueryError.

    >>> selection("select()", ["user.name", '["log.level"]'])
    (('user.name', ('user', 'name')), ('log.level', ('log.level',)))
    """
    if not fields:
        raise QueryError(f"{caller} takes the fields that are wanted: none was given")
    return named(_path_of(caller, each) for each in fields)


def named(paths: Iterable[Path]) -> Selection:
    """These fields, and a name for each: its keys with dots between them, as they are; where two would have the same
    name, or it is no text, the spelling that questions have, which is one field's only.

    >>> named([("created at",), ("a.b",), ("c", "d")])
    (('created at', ('created at',)), ('a.b', ('a.b',)), ('c.d', ('c', 'd')))
    >>> named([("a.b",), ("a", "b")])
    (('["a.b"]', ('a.b',)), ('a.b', ('a', 'b')))
    """
    names = {path: _plain_name(path) for path in paths}
    while len(set(names.values())) < len(names):
        counts = Counter(names.values())
        names = {path: format_path(path) if counts[name] > 1 else name for path, name in names.items()}
    return tuple((name, path) for path, name in names.items())


def _plain_name(path: Path) -> str:
    name = plain_path(path)
    try:
        name.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return format_path(path)
    return name or format_path(path)


def selected(record: Any, fields: Selection) -> dict[str, Any]:
    """What a decoded record has of these fields, by name.

    >>> selected({"a": {"b": 1}}, selection("select()", ["a.b", "c"]))
    {'a.b': 1}
    """
    held = ((name, value_at(record, path)) for name, path in fields)
    return {name: value for name, value in held if value is not UNDEFINED}


def _path_of(caller: str, field: Any, such: str = "'user.name'") -> Path:
    if isinstance(field, str):
        return parse_path(field)
    if isinstance(path := getattr(field, "path", None), tuple) and not isinstance(field, SortKey):
        return path
    raise QueryError(f"{caller} takes paths such as {such}, or field(...), not {shown(field)}")


class SortKey(NamedTuple):
    """A field, from its least value to its greatest, or the other way round."""

    path: Path
    descending: bool = False

    def __neg__(self) -> SortKey:
        """The other way round."""
        return self._replace(descending=not self.descending)

    def __repr__(self) -> str:
        return repr(FALLING * self.descending + format_path(self.path))


SortKeys: TypeAlias = tuple[SortKey, ...]

#: A path, with a `-` in front for descending; field(path), or -field(path).
SortField: TypeAlias = str | _OfPath | SortKey


def sort_keys(caller: str, fields: Sequence[SortField]) -> SortKeys:
    """What these fields mean. Raises QueryError for none, for what is no field, and for one that is there twice.

    >>> sort_keys("sort_by()", ["carrier", "-delay.minutes"])
    ('carrier', '-delay.minutes')
    """
    if not fields:
        raise QueryError(f"{caller} takes the fields to sort by: none was given")
    keys = tuple(_sort_key(caller, each) for each in fields)
    for number, key in enumerate(keys):
        if key.path in {other.path for other in keys[:number]}:
            raise QueryError(f"{caller} names the field {format_path(key.path)!r} twice")
        single(key.path, f"a field of {caller}")
    return keys


def _sort_key(caller: str, field: Any) -> SortKey:
    if isinstance(field, SortKey):
        return field
    falls = isinstance(field, str) and field.startswith(FALLING)
    return SortKey(_path_of(caller, field[falls:] if falls else field, "'user.name' or '-size'"), falls)
