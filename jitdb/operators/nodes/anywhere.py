"""`anywhere`: any value of the record holds a text. An expression writes it `* contains "text"`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jitdb.common.anywhere import holds_anywhere
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.indexes.spec import IndexSpec, Requirement
from jitdb.operators.nodes.operation import Answering, Core, Operation

if TYPE_CHECKING:
    from pyroaring import BitMap


def anywhere(text: str, *, ignore_case: bool = False) -> Operation:
    """The records that hold `text` in any value, however deep: in a text, or in a number, true, false or null as it is
    written. Keys do not count.

    `ignore_case`: texts are compared as `str.casefold` has them.

    >>> anywhere("9f3a77")
    anywhere('9f3a77')
    """
    if not isinstance(text, str) or not text:
        raise QueryError(f"anywhere() takes text that is not empty, not {shown(text)}")
    if not isinstance(ignore_case, bool):
        raise QueryError(f"ignore_case is True or False, not {shown(ignore_case)}")
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise QueryError(f"anywhere() takes text that UTF-8 can hold, not {shown(text)}") from None
    return Anywhere(text, ignore_case)


class Anywhere(Operation):
    """A value of the record holds the text."""

    __slots__ = __match_args__ = ("value", "ignore_case")
    op = "anywhere"
    arguments = ("value",)

    value: str
    ignore_case: bool

    @property
    def signs(self) -> tuple[str, str]:  # type: ignore[override]
        word = "icontains" if self.ignore_case else "contains"
        return f"* {word} {{}}", f"* not {word} {{}}"

    def keywords(self) -> dict[str, Any]:
        return {"ignore_case": True} if self.ignore_case else {}

    def holds(self, value: Any) -> bool:
        return holds_anywhere(value, self.value, self.ignore_case)

    @property
    def spec(self) -> IndexSpec:
        name = f"{'icontains' if self.ignore_case else 'contains'} {json.dumps(self.value)}"
        return IndexSpec("text", (), name=name)

    def need(self, core: Core) -> Requirement:
        return Requirement(self.spec)

    def answer(self, asked: Answering) -> BitMap:
        return asked.marked()


def anywhere_of(spec: IndexSpec) -> Anywhere:
    """What an index of such records is of: its name says it. Raises QueryError where that is nothing."""
    word, _, written = spec.name.partition(" ")
    try:
        text = json.loads(written)
    except (ValueError, RecursionError):
        text = None
    if word not in ("contains", "icontains") or spec.paths or not isinstance(text, str) or not text:
        raise QueryError(f"no question about a whole record is written {spec.name!r}")
    return Anywhere(text, word == "icontains")
