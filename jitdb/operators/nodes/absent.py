"""`absent`: the record has no such field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Never, Unpack

from jitdb.common.values import ABSENT, UNDEFINED
from jitdb.operators.nodes.field_operation import FieldOperation
from jitdb.operators.nodes.field_ref import FieldKeywords, FieldLike, as_field, refuse_more
from jitdb.operators.nodes.operation import Identity, Operation

if TYPE_CHECKING:
    from pyroaring import BitMap

    from jitdb.indexes.spec import IndexSpec
    from jitdb.operators.nodes.answering import Answering

_KEY: Final = bytes([ABSENT])


def absent(field: FieldLike, *more: Never, **options: Unpack[FieldKeywords]) -> Operation:
    """The records without this field. A field that holds null is there: `equal(path, None)` finds it.

    >>> absent("value.content.root")
    absent('value.content.root')
    """
    refuse_more("absent", more)
    return Absent(as_field("absent", field, options))


class Absent(FieldOperation):
    """The record has no such field (one that holds null is present)."""

    __slots__ = __match_args__ = ("field",)
    op = "absent"

    def _identify(self) -> Identity:
        return ("absent", self.field.identity, self.field.options.identity)

    def __repr__(self) -> str:
        return self._described()

    def holds(self, value: Any) -> bool:
        return False

    def of_value(self, value: Any) -> bool:
        return value is UNDEFINED

    @property
    def bitmap(self) -> tuple[IndexSpec, bytes]:
        return self.spec, _KEY

    def answer(self, asked: Answering) -> BitMap:
        return asked.without_value()
