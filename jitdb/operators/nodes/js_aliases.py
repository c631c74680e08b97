"""The names that the JavaScript module has for paths. Paths are compiled here: they are no longer slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never, Unpack

from jitdb.operators.nodes.equality import absent, equal, includes
from jitdb.operators.nodes.field_ref import PathLike, as_path
from jitdb.operators.nodes.operations import Operation
from jitdb.operators.nodes.options import Options
from jitdb.operators.nodes.predicates import predicate


def slow_equal(path: PathLike, value: Any, *more: Never, **options: Unpack[Options]) -> Operation:
    """The same as `equal` with a path.

    >>> slow_equal("value.content.type", "post")
    equal('value.content.type', 'post')
    """
    return equal(as_path("slow_equal", path), value, *more, **options)


def slow_includes(path: PathLike, value: Any, pluck: PathLike | None = None, **options: Unpack[Options]) -> Operation:
    """The same as `includes` with a path.

    >>> slow_includes("value.content.recps", "@bob")
    includes('value.content.recps', '@bob')
    """
    return includes(as_path("slow_includes", path), value, pluck, **options)


def slow_predicate(
    path: PathLike,
    fn: Callable[[Any], object],
    name: str | None = None,
    *,
    version: int = 0,
    **options: Unpack[Options],
) -> Operation:
    """The same as `predicate` with a path.

    >>> slow_predicate("value.content.text", str.isupper)
    predicate('value.content.text', isupper)
    """
    return predicate(as_path("slow_predicate", path), fn, name, version=version, **options)


def slow_absent(path: PathLike, *more: Never, **options: Unpack[Options]) -> Operation:
    """The same as `absent` with a path.

    >>> slow_absent("value.content.root")
    absent('value.content.root')
    """
    return absent(as_path("slow_absent", path), *more, **options)
