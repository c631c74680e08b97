"""Which field an operator looks at: a path, or a function that finds the position in the record's bytes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

from jitdb.common.arguments import function
from jitdb.common.paths import Path, parse_path
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.operations import Seek, function_name
from jitdb.operators.nodes.options import FieldOptions, make_options

PathLike: TypeAlias = str | tuple[str, ...] | list[str]
FieldLike: TypeAlias = PathLike | Seek

# Programs ask about few fields, many times. The bound keeps one that makes paths up from growing forever.
_parse = lru_cache(maxsize=4096)(parse_path)


def as_path(caller: str, path: PathLike | object) -> Path:
    """The keys of a path.

    >>> as_path("gt", "value.sequence")
    ('value', 'sequence')
    """
    if isinstance(path, str):
        return _parse(path)
    if isinstance(path, (tuple, list)):
        return parse_path(path)
    if callable(path):
        raise QueryError(
            f"{caller}() takes a path such as 'value.content.type', not the function {function_name(path)}"
        )
    raise QueryError(f"{caller}() takes a path such as 'value.content.type', not {shown(path)}")


def as_target(caller: str, field: FieldLike, options: Any) -> tuple[Path | None, Seek | None, FieldOptions]:
    """The path or the function, and the checked options."""
    checked = make_options(caller, options)
    if isinstance(field, str):
        return _parse(field), None, checked
    if not callable(field):
        return as_path(caller, field), None, checked
    if checked.index_type is None:
        raise QueryError(
            f"{caller}() looks where the function {function_name(field)} points, and an index needs a name",
            remedy="give index_type='...' (a path such as 'value.content.type' needs none, and is faster)",
        )
    function(f"{caller}() takes a path, or a function (record, start) that finds a field", field, 2)
    return None, field, checked
