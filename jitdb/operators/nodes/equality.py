"""What a field holds: equal, includes, absent, starts_with."""

from __future__ import annotations

from typing import Any, Never, Unpack

from jitdb.common.values import UNDEFINED
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.field_ref import FieldLike, PathLike, as_field, as_path
from jitdb.operators.nodes.literals import plain_value
from jitdb.operators.nodes.operations import Absent, Equal, Includes, Operation, StartsWith
from jitdb.operators.nodes.options import FieldKeywords, refuse_more


def equal(field: FieldLike, value: Any, *more: Never, **options: Unpack[FieldKeywords]) -> Operation:
    """The records whose field holds `value`. Numbers are equal when numerically equal; true is not 1.

    `field` is a path, or a function `(record, start) -> position` together with `index_type=`.
    Options: prefix, prefix_offset, use_map, index_all, index_type, version (see jitdb.operators.nodes.options).

    >>> equal("value.content.type", "post")
    equal('value.content.type', 'post')
    >>> equal("value.content.root", "%abc", prefix=32, prefix_offset=1)
    equal('value.content.root', '%abc', prefix=32, prefix_offset=1)
    >>> equal("value.content.type", None) == absent("value.content.type")  # null is there
    False
    """
    refuse_more("equal", more)
    ref = as_field("equal", field, options)
    return Absent(ref) if value is UNDEFINED else Equal(ref, plain_value(value))


def includes(
    field: FieldLike, value: Any, pluck: PathLike | None = None, **options: Unpack[FieldKeywords]
) -> Operation:
    """The records whose field is an array with `value` in it, or is `value` itself.

    With `pluck`, a path inside each element: the array has an element whose field there holds `value`.

    >>> includes("value.content.recps", "@bob")
    includes('value.content.recps', '@bob')
    >>> includes("value.content.mentions", "%abc", pluck="link")
    includes('value.content.mentions', '%abc', pluck='link')
    """
    ref = as_field("includes", field, options)
    keys = None if pluck is None else as_path("pluck of includes", pluck)
    return Includes(ref, plain_value(value), keys)


def absent(field: FieldLike, *more: Never, **options: Unpack[FieldKeywords]) -> Operation:
    """The records without this field. A field that holds null is there: `equal(path, None)` finds it.

    >>> absent("value.content.root")
    absent('value.content.root')
    """
    refuse_more("absent", more)
    return Absent(as_field("absent", field, options))


def starts_with(path: PathLike, prefix: str | bytes) -> Operation:
    """The records whose field is text (or, for a prefix of bytes, bytes) that begins with `prefix`.

    >>> starts_with("value.author", "@6CAx")
    starts_with('value.author', '@6CAx')
    """
    keys = as_path("starts_with", path)
    plain = plain_value(prefix)
    if not isinstance(plain, (str, bytes)):
        raise QueryError(f"starts_with() takes text or bytes to begin with, not {shown(prefix)}")
    return StartsWith(keys, plain)
