"""By which fields answers are sorted: `sort_by("carrier", "-dep_delay")`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from jitdb.common.paths import Path, format_path, parse_path, single
from jitdb.common.words import shown
from jitdb.errors import QueryError

FALLING: Final = "-"  # in front of a path


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


class _OfPath(Protocol):
    """A field (nodes/field.py)."""

    path: Path


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
    if isinstance(path := getattr(field, "path", None), tuple):
        return SortKey(path)
    if isinstance(field, str):
        falls = field.startswith(FALLING)
        return SortKey(parse_path(field.removeprefix(FALLING) if falls else field), falls)
    raise QueryError(f"{caller} takes paths such as 'user.name' or '-size', or field(...), not {shown(field)}")
