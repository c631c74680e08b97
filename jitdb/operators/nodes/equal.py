"""`equal`: the field holds this value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Never, Unpack

from jitdb.common.paths import format_path
from jitdb.common.values import UNDEFINED, value_key
from jitdb.operators.nodes.absent import Absent
from jitdb.operators.nodes.describe import describe_value, written_value
from jitdb.operators.nodes.field_operation import ValueOperation
from jitdb.operators.nodes.field_ref import FieldKeywords, FieldLike, as_field, refuse_more
from jitdb.operators.nodes.includes import Includes
from jitdb.operators.nodes.literals import plain_value
from jitdb.operators.nodes.operation import Identity, Operation

if TYPE_CHECKING:
    from jitdb.indexes.spec import IndexSpec


def equal(field: FieldLike, value: Any, *more: Never, **options: Unpack[FieldKeywords]) -> Operation:
    """The records whose field holds `value`. Numbers are equal when numerically equal; true is not 1.

    `field` is a path, or a function `(record, start) -> position` together with `index_type=`.
    Options: prefix, prefix_offset, use_map, index_all, index_type, version (see jitdb.operators.nodes.field_ref).

    >>> equal("value.content.type", "post")
    equal('value.content.type', 'post')
    >>> equal("value.content.root", "%abc", prefix=32, prefix_offset=1)
    equal('value.content.root', '%abc', prefix=32, prefix_offset=1)
    >>> from jitdb.operators import absent
    >>> equal("value.content.type", None) == absent("value.content.type")  # null is there
    False
    """
    refuse_more("equal", more)
    ref = as_field("equal", field, options)
    return Absent(ref) if value is UNDEFINED else Equal(ref, plain_value(value))


class Equal(ValueOperation):
    """The field holds this value."""

    __slots__ = __match_args__ = ("field", "value")
    op = "equal"
    names_value = True

    def _identify(self) -> Identity:
        return ("equal", self.field.identity, value_key(self.value), self.field.options.identity)

    def __repr__(self) -> str:
        return self._described(describe_value(self.value))

    def written(self) -> str:
        arguments = [format_path(self.path), written_value(self.value)]
        return " == ".join(arguments) if self._is_plain else self._call(*arguments)

    def denied(self) -> str:
        return f"{format_path(self.path)} != {written_value(self.value)}" if self._is_plain else super().denied()

    def holds(self, value: Any) -> bool:
        return self._is_equal(value)

    @property
    def bitmap(self) -> tuple[IndexSpec, bytes]:
        return self.spec, self.key

    @property
    def payload(self) -> tuple[bytes, bool]:
        return self.key, True

    def others(self) -> Iterator[Operation]:
        return (self.changed(value=value) for value in other_values(self.value))

    def of_elements(self) -> Operation:
        return Includes(self.field, self.value, None)


_WORDS: Final = {"true": True, "false": False, "null": None, "none": None}


def other_values(value: Any) -> Iterator[Any]:
    """What else a person may have meant, the likeliest first: the number for its text, the text in another case.

    >>> list(other_values("180")), list(other_values(180)), list(other_values("True"))
    ([180], ['180'], [True, 'true', 'TRUE'])
    >>> list(other_values("eu west"))
    ['EU WEST', 'Eu west', 'Eu West']
    """
    if value is None or isinstance(value, bool):
        yield from (str(value).lower(), str(value), *(["null", ""] if value is None else []))
    elif isinstance(value, (int, float)):
        with suppress(ValueError):  # of thousands of digits Python makes no text
            yield str(value)
    elif isinstance(value, str):
        if value.lower() in _WORDS:
            yield _WORDS[value.lower()]
        number = _number(value)
        if number is not None:
            yield number
        spellings = (value.lower(), value.upper(), value.capitalize(), value.title(), value.strip())
        yield from (other for other in dict.fromkeys(spellings) if other != value)


def _number(text: str) -> int | float | None:
    for read in (int, float):
        try:
            number = read(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else None
    return None
