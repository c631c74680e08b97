"""Which fields of its records an answer has: `select("user.name", "size")`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from jitdb.common.paths import Path, format_path, parse_path, plain_path
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


def _path_of(caller: str, field: Any) -> Path:
    from jitdb.operators.nodes.field import Field

    if isinstance(field, str):
        return parse_path(field)
    if isinstance(field, Field):
        return field.path
    raise QueryError(f"{caller} takes paths such as 'user.name', or field(...), not {shown(field)}")
