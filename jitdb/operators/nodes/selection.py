"""Which fields of its records an answer has: `select("user.name", "size")`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from jitdb.common.paths import Path, format_path, parse_path
from jitdb.common.values import UNDEFINED, value_at
from jitdb.common.words import shown
from jitdb.errors import QueryError

if TYPE_CHECKING:
    from jitdb.operators.nodes.field import Field

#: A path, or field(path).
SelectField: TypeAlias = "str | Field"

#: The names under which fields are given, in order, and their paths.
Selection: TypeAlias = tuple[tuple[str, Path], ...]


def selection(caller: str, fields: Sequence[SelectField]) -> Selection:
    """What these fields mean: each is given under the name by which it was asked for. Raises QueryError.

    >>> selection("select()", ["user.name", "size"])
    (('user.name', ('user', 'name')), ('size', ('size',)))
    """
    if not fields:
        raise QueryError(f"{caller} takes the fields that are wanted: none was given")
    return tuple(dict(_named(caller, each) for each in fields).items())


def selected(record: Any, fields: Selection) -> dict[str, Any]:
    """What a decoded record has of these fields, by name.

    >>> selected({"a": {"b": 1}}, selection("select()", ["a.b", "c"]))
    {'a.b': 1}
    """
    held = ((name, value_at(record, path)) for name, path in fields)
    return {name: value for name, value in held if value is not UNDEFINED}


def _named(caller: str, field: Any) -> tuple[str, Path]:
    from jitdb.operators.nodes.field import Field

    if isinstance(field, str):
        return field, parse_path(field)
    if isinstance(field, Field):
        return format_path(field.path), field.path
    raise QueryError(f"{caller} takes paths such as 'user.name', or field(...), not {shown(field)}")
