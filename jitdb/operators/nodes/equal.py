"""`equal`, `includes` and `absent`: which value a field holds; IsIn: whether that is one of many. FieldOperation is the
base of operators that look at one field, and whose index may be chosen by options.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Never, Unpack

from jitdb.common.paths import ANY, Path, format_path
from jitdb.common.values import ABSENT, UNDEFINED, value_key, values_at
from jitdb.indexes.spec import IndexSpec, Requirement, values_spec
from jitdb.operators.nodes.field_ref import (
    FieldKeywords,
    FieldLike,
    FieldRef,
    PathLike,
    as_field,
    as_path,
    refuse_more,
    spec_of,
)
from jitdb.operators.nodes.instants import day_of
from jitdb.operators.nodes.levels import same_levels
from jitdb.operators.nodes.literals import plain_value
from jitdb.operators.nodes.operation import Answering, Core, Identity, Operation

if TYPE_CHECKING:
    from pyroaring import BitMap


def equal(field: FieldLike, value: Any, *more: Never, **options: Unpack[FieldKeywords]) -> Operation:
    """The records whose field holds `value`. Numbers are equal when numerically equal; true is not 1.

    `field` is a path, or a function `(record, start) -> position` together with `index_type=`.
    Options: prefix, prefix_offset, use_map, index_all, index_type, version (see jitdb.operators.nodes.field_ref).

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
    return Includes(ref, plain_value(value), None if pluck is None else as_path("pluck of includes", pluck))


def absent(field: FieldLike, *more: Never, **options: Unpack[FieldKeywords]) -> Operation:
    """The records without this field. A field that holds null is there: `equal(path, None)` finds it.

    >>> absent("value.content.root")
    absent('value.content.root')
    """
    refuse_more("absent", more)
    return Absent(as_field("absent", field, options))


class FieldOperation(Operation):
    """A leaf that looks at one field."""

    __slots__ = ()

    field: FieldRef

    @property
    def path(self) -> Path:
        """Of one that is found by a path."""
        assert self.field.path is not None
        return self.field.path

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.field.paths

    @property
    def seek(self) -> Callable[[bytes, int], int | None] | None:
        return self.field.seek

    @property
    def function(self) -> tuple[str, str] | None:
        return None if self.field.seek is None else ("a seek function", "use a path")

    @property
    def spec(self) -> IndexSpec:
        """The index that it is answered from."""
        return self.field.spec

    def need(self, core: Core) -> Requirement | None:
        return Requirement(self.spec, self.field.seek)

    def of_field(self, path: Path) -> Operation:
        return self.changed(field=self.field.changed(path=path))

    def keywords(self) -> dict[str, Any]:
        return self.field.options.given()

    @property
    def _has_sign(self) -> bool:
        return bool(self.signs[0]) and self.field.path is not None and not self.field.options.given()


class _ValueOperation(FieldOperation):
    """A leaf that compares the field with a value."""

    __slots__ = ()

    value: Any

    @property
    def key(self) -> bytes:
        """The canonical bytes of the value (`value_key`), made once: it may be an array of a million numbers."""
        key: bytes = self.identity[2]
        return key

    def _is_equal(self, value: Any) -> bool:
        """Arrays or maps of different lengths differ: no key is made of large ones."""
        both = (list, tuple, dict)
        if isinstance(value, both) and isinstance(self.value, both) and len(value) != len(self.value):
            return False
        return value_key(value) == self.key

    def answer(self, asked: Answering) -> BitMap:
        return asked.with_value(self.key)

    def prefixes(self, offset: int) -> tuple[int, int]:
        from jitdb.indexes.kinds.prefixes import key_prefix

        prefix = key_prefix(self.key, offset)
        return prefix, prefix


class Equal(_ValueOperation):
    """The field holds this value."""

    __slots__ = __match_args__ = ("field", "value")
    op = "equal"
    arguments = ("path", "value")
    signs = ("{} == {}", "{} != {}")
    names_value = True

    @property
    def _has_sign(self) -> bool:  # == with a date alone asks for the day
        return super()._has_sign and (ANY in self.path or day_of(self.value) is None)

    def _identify(self) -> Identity:  # as all do, in half of the time
        return ("equal", self.field.identity, value_key(self.value))

    def holds(self, value: Any) -> bool:
        return self._is_equal(value)

    @property
    def bitmap(self) -> tuple[IndexSpec, bytes]:
        return self.spec, self.key

    @property
    def payload(self) -> tuple[bytes, bool]:
        return self.key, True

    def others(self) -> Iterator[Operation]:
        levels = same_levels(self.value, self.path) if isinstance(self.value, str) and self.seek is None else ()
        return (self.changed(value=value) for value in chain(other_values(self.value), levels))

    def of_elements(self) -> Operation:
        return Includes(self.field, self.value, None)


class IsIn(Operation):
    """The field holds one of many values. The index of all values of the field answers it, which looks each up once.

    keys: the canonical bytes of the values (`value_key`)
    """

    __slots__ = ("keys", "path", "value")
    __match_args__ = arguments = ("path", "value")
    op = "isin"
    signs = ("{} in {}", "{} not in {}")
    names_value = True

    path: Path
    value: list[Any]
    keys: frozenset[bytes]

    def __init__(self, path: Path, value: list[Any]) -> None:
        self._keep(path, value)
        object.__setattr__(self, "keys", frozenset(map(value_key, value)))

    def _identify(self) -> Identity:
        return (self.op, self.path, self.keys)

    @property
    def longest(self) -> int:  # type: ignore[override]
        return max(map(len, self.keys))

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)

    def holds(self, value: Any) -> bool:
        return value_key(value) in self.keys

    def need(self, core: Core) -> Requirement:
        return Requirement(values_spec(self.path))

    def answer(self, asked: Answering) -> BitMap:
        return asked.with_text(self)

    def others(self) -> Iterator[Operation]:
        """Text in place of numbers, or numbers in place of text, if all values can be written so."""
        others = [
            next((other for other in other_values(value) if _is_text(other) != _is_text(value)), None)
            for value in self.value
        ]
        if None not in others:
            yield self.changed(value=others)

    def of_elements(self) -> Operation:
        return self.changed(path=(*self.path, ANY))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


class Includes(_ValueOperation):
    """The field is an array with this value in it (under `pluck` in its elements), or is the value itself."""

    __slots__ = __match_args__ = ("field", "value", "pluck")
    op = "includes"
    arguments = ("path", "value", "pluck")
    signs = ("{1} in {0}", "{1} not in {0}")

    pluck: Path | None

    @property
    def _has_sign(self) -> bool:
        if not super()._has_sign or self.pluck is not None or isinstance(self.value, (str, bytes)):
            return False  # `"x" in field` asks `contains`, too
        # Of `["x"] in ["y"]` the first is the field.
        return not (isinstance(self.value, list) and format_path(self.path).startswith("["))

    def holds(self, value: Any) -> bool:
        if not isinstance(value, (list, tuple)) or hasattr(value, "code"):
            return self._is_equal(value)
        return any(value_key(item) == self.key for element in value for item in values_at(element, self.pluck or ()))

    @property
    def spec(self) -> IndexSpec:
        return spec_of(self.field.path, self.field.options, elements=True, pluck=self.pluck or ())


class Absent(FieldOperation):
    """The record has no such field (one that holds null is present)."""

    __slots__ = __match_args__ = ("field",)
    op = "absent"
    arguments = ("path",)

    def holds(self, value: Any) -> bool:
        return False

    def of_value(self, value: Any) -> bool:
        return value is UNDEFINED

    @property
    def bitmap(self) -> tuple[IndexSpec, bytes]:
        return self.spec, bytes([ABSENT])

    def answer(self, asked: Answering) -> BitMap:
        return asked.without_value()


_DIGITS: Final = 13  # of a text with zeros before its number, such as 00003
_WORDS: Final = {"true": True, "false": False, "null": None, "none": None}


def other_values(value: Any) -> Iterator[Any]:
    """What else a person may have meant, the likeliest first: the number for its text, the text in another case.

    >>> list(other_values("180")), list(other_values(180))[:2], list(other_values("True"))
    ([180], ['180', '0180'], [True, 'true', 'TRUE'])
    >>> list(other_values("eu west"))
    ['EU WEST', 'Eu west', 'Eu West']
    """
    if value is None:
        yield from ("none", "None", "null", "")
    elif isinstance(value, bool):
        texts = ("true", "yes", "y", "on", "t") if value else ("false", "no", "n", "off", "f")
        yield from (each for text in texts for each in (text, text.capitalize(), text.upper()))
        yield from (int(value), str(int(value)))
    elif isinstance(value, (int, float)):
        with suppress(ValueError):  # of thousands of digits Python makes no text
            yield from dict.fromkeys((str(value), *(str(value).zfill(digits) for digits in range(2, _DIGITS))))
    elif isinstance(value, str):
        if value.lower() in _WORDS:
            yield _WORDS[value.lower()]
        number = _number(value)
        if number is not None:
            yield number
        spellings = (value.lower(), value.upper(), value.capitalize(), value.title(), value.strip())
        yield from (other for other in dict.fromkeys(spellings) if other != value)


def _number(text: str) -> int | float | None:
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        number = float(text)
        return number if math.isfinite(number) else None
    return None
