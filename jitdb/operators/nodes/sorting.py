"""By which fields answers are sorted: `sort_by("carrier", "-dep_delay")`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from jitdb.common.paths import format_path, parse_path, single
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.sort_key import FALLING, SortKey, SortKeys

if TYPE_CHECKING:
    from jitdb.operators.nodes.field import Field

#: A path, with a `-` in front for descending; field(path), or -field(path).
SortField: TypeAlias = "str | Field | SortKey"


def sort_keys(caller: str, fields: Sequence[SortField]) -> SortKeys:
    """What these fields mean. Raises QueryError for none, for what is no field, and for one that is there twice.

    >>> sort_keys("sort_by()", ["carrier", "-delay.minutes"])
    ('carrier', '-delay.minutes')
    """
    if not fields:
        raise QueryError(f"{caller} takes the fields to sort by: none was given")
    keys = tuple(_sort_key(caller, each) for each in fields)
    for number, key in enumerate(keys):
        single(key.path, "what is sorted by")
        if key.path in {other.path for other in keys[:number]}:
            raise QueryError(f"{caller} names the field {format_path(key.path)!r} twice")
        single(key.path, f"a field of {caller}")
    return keys


def _sort_key(caller: str, field: Any) -> SortKey:
    from jitdb.operators.nodes.field import Field

    if isinstance(field, SortKey):
        return field
    if isinstance(field, Field):
        return SortKey(field.path)
    if isinstance(field, str):
        falls = field.startswith(FALLING)
        return SortKey(parse_path(field.removeprefix(FALLING) if falls else field), falls)
    raise QueryError(f"{caller} takes paths such as 'user.name' or '-size', or field(...), not {shown(field)}")
