"""`includes`: the field is an array with this value in it, or is the value itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from jitdb.common.paths import Path, format_path
from jitdb.common.values import value_key, values_at
from jitdb.operators.nodes.describe import describe_path, describe_value, written_value
from jitdb.operators.nodes.field_operation import ValueOperation
from jitdb.operators.nodes.field_ref import FieldKeywords, FieldLike, PathLike, as_field, as_path
from jitdb.operators.nodes.literals import plain_value
from jitdb.operators.nodes.operation import Identity, Operation

if TYPE_CHECKING:
    from jitdb.indexes.spec import IndexSpec


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


class Includes(ValueOperation):
    """The field is an array with this value in it (under `pluck` in its elements), or is the value itself."""

    __slots__ = __match_args__ = ("field", "value", "pluck")
    op = "includes"

    pluck: Path | None

    def _identify(self) -> Identity:
        return ("includes", self.field.identity, value_key(self.value), self.pluck, self.field.options.identity)

    def __repr__(self) -> str:
        return self._described(describe_value(self.value), *self._plucked())

    def written(self) -> str:
        if self._is_plain:
            return f"{written_value(self.value)} in {format_path(self.path)}"
        return self._call(format_path(self.path), written_value(self.value), *self._plucked())

    def denied(self) -> str:
        return f"{written_value(self.value)} not in {format_path(self.path)}" if self._is_plain else super().denied()

    def _plucked(self) -> list[str]:
        return [] if self.pluck is None else [f"pluck={describe_path(self.pluck)}"]

    @property
    def _is_plain(self) -> bool:
        # Of `["x"] in ["y"]` the first is the field.
        is_doubtful = isinstance(self.value, list) and format_path(self.path).startswith("[")
        return super()._is_plain and self.pluck is None and not is_doubtful

    def holds(self, value: Any) -> bool:
        if not isinstance(value, (list, tuple)) or hasattr(value, "code"):
            return self._is_equal(value)
        return any(value_key(item) == self.key for element in value for item in values_at(element, self.pluck or ()))

    @property
    def spec(self) -> IndexSpec:
        return self._spec(elements=True, pluck=self.pluck or ())
