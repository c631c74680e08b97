"""Which field an operator looks at: a path, or a function that finds the position in the record's bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from jitdb.common.arguments import function
from jitdb.common.immutable import Immutable
from jitdb.common.paths import Path, parse_path
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.describe import describe_path, function_name
from jitdb.operators.nodes.options import DEFAULT_OPTIONS, FieldOptions, make_options

PathLike: TypeAlias = str | tuple[str, ...] | list[str]

#: A function `(record, start) -> position` of a field's value in the record's bytes; None or -1 when absent.
Seek: TypeAlias = Callable[[bytes, int], int | None]

FieldLike: TypeAlias = PathLike | Seek


class FieldRef(Immutable):
    """A field, at a `path` or where the function `seek` points, and how its index shall be kept."""

    __slots__ = __match_args__ = ("path", "options", "seek")

    path: Path | None
    options: FieldOptions
    seek: Seek | None

    def __init__(self, path: Path | None, options: FieldOptions = DEFAULT_OPTIONS, seek: Seek | None = None) -> None:
        self._keep(path, options, seek)

    @property
    def identity(self) -> tuple[str, Any]:
        """Which field: the keys of the path, or the `index_type` that stands for the function."""
        return ("path", self.path) if self.path is not None else ("seek", self.options.index_type)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The path, if it is not found by a function."""
        return () if self.path is None else (self.path,)

    def describe(self) -> str:
        """The field as Python text."""
        return function_name(self.seek) if self.path is None else describe_path(self.path)


# Programs ask about few fields, many times. The bound keeps one that makes paths up from growing forever.
_parse = lru_cache(maxsize=4096)(parse_path)


@lru_cache(maxsize=4096)
def _plain_field(path: str) -> FieldRef:
    return FieldRef(_parse(path))


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


def as_field(caller: str, field: FieldLike, options: Any) -> FieldRef:
    """The path or the function, with the options, checked."""
    if not options and type(field) is str:
        return _plain_field(field)
    checked = make_options(caller, options)
    if isinstance(field, str) or not callable(field):
        return FieldRef(as_path(caller, field), checked)
    if checked.index_type is None:
        raise QueryError(
            f"{caller}() looks where the function {function_name(field)} points, and an index needs a name",
            remedy="give index_type='...' (a path such as 'value.content.type' needs none, and is faster)",
        )
    function(f"{caller}() takes a path, or a function (record, start) that finds a field", field, 2)
    return FieldRef(None, checked, field)
