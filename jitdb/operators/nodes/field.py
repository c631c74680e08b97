"""Questions as one would say them: `field("value.content.type") == "post"`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import Any, ClassVar, Concatenate, Final, NoReturn, ParamSpec, overload

from jitdb.common.arguments import is_list
from jitdb.common.paths import ANY, CASTS, Path, Step
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes import compare, equal, fits, text_match
from jitdb.operators.nodes.compare import Bound
from jitdb.operators.nodes.field_ref import PathLike, as_path
from jitdb.operators.nodes.literals import describe_path
from jitdb.operators.nodes.operation import Operation, not_
from jitdb.operators.nodes.predicate import predicate
from jitdb.operators.nodes.selection import SortKey

P = ParamSpec("P")


def field(path: PathLike, *steps: Step) -> Field:
    """A field, to be compared. One string is a path as text; several are keys as they stand, and positions.

    >>> field("value.content.type") == "post"
    equal('value.content.type', 'post')
    >>> (field("value.sequence") > 10) & ~field("value.content.root").absent()
    and_(gt(10, 'value.sequence'), not_(absent('value.content.root')))
    >>> field("meta", "example.org")
    field('meta["example.org"]')
    >>> field("items[].sku") == "x1"  # any element of an array
    equal('items[].sku', 'x1')
    """
    if not steps:
        return Field(as_path("field", path))
    return Field(as_path("field", (path, *steps) if isinstance(path, str) else (*path, *steps)))


def _method(make: Callable[Concatenate[Any, P], Operation]) -> Callable[Concatenate[Field, P], Operation]:
    """The operator as a method, of the field in the place of its path."""

    def method(self: Field, /, *arguments: P.args, **keywords: P.kwargs) -> Operation:
        return make(self.path, *map(_value, arguments), **keywords)

    update_wrapper(method, make)
    return method


class Field:
    """One field of the records. Comparing it makes an operation.

    `field("timestamp")` is the field of that name; what the database takes for a record's time is `declared_time`.
    """

    __slots__ = ("path",)
    __hash__: ClassVar[None]  # type: ignore[assignment]
    __iter__: ClassVar[None] = None  # [] would otherwise make it look like an endless sequence
    path: Path

    def __init__(self, path: Path) -> None:
        self.path = path

    def __getitem__(self, step: str | int | slice) -> Field:
        """The field with this key inside this one; a dot in the key is part of it. Or one element of an array, by its
        position, or `[:]`, any element.

        >>> field("items")[0]["sku"], field("items")[:]["sku"]
        (field('items[0].sku'), field('items[].sku'))
        """
        if isinstance(step, slice) and step == slice(None):
            return Field(as_path("field", (*self.path, ANY)))
        if not isinstance(step, (str, int)):
            raise QueryError(f"in the brackets of a field stands a key, a position or `:`, not {shown(step)}")
        return Field(as_path("field", (*self.path, step)))

    def __eq__(self, value: object) -> Operation:  # type: ignore[override]
        """The records where it holds `value`; where that is a date alone, a time of that day in UTC."""
        return compare.equal_or_within(self.path, _value(value))

    def __ne__(self, value: object) -> Operation:  # type: ignore[override]
        """The records where it does not hold `value`, those without the field among them; of any element of an
        array: where none holds it.
        """
        return not_(compare.equal_or_within(self.path, _value(value)))

    def __lt__(self, value: Bound) -> Operation:
        return compare.lt(_value(value), self.path)

    def __le__(self, value: Bound) -> Operation:
        return compare.lte(_value(value), self.path)

    def __gt__(self, value: Bound) -> Operation:
        return compare.gt(_value(value), self.path)

    def __ge__(self, value: Bound) -> Operation:
        return compare.gte(_value(value), self.path)

    def isin(self, values: Iterable[Any]) -> Operation:
        """The records where it holds one of `values`; of none, no records.

        >>> field("value.content.type").isin(["post", "about"])
        or_(equal('value.content.type', 'post'), equal('value.content.type', 'about'))
        """
        return compare.isin(self.path, [_value(value) for value in values] if is_list(values) else values)

    def as_number(self) -> Field:
        """The field, where it is a number or text that spells one, as that number.

        >>> field("status").as_number() == 502
        equal('number(status)', 502)
        """
        return Field((*self.path, CASTS["number"]))

    def as_time(self) -> Field:
        """The field, where it is a time, as text of RFC 3339 in UTC."""
        return Field((*self.path, CASTS["time"]))

    def as_duration(self) -> Field:
        """The seconds of the length of time that its text says, with its units.

        >>> field("took").as_duration() > 0.1  # 76.5ms, 1m2s
        gt(0.1, 'duration(took)')
        """
        return Field((*self.path, CASTS["duration"]))

    def as_text(self) -> Field:
        """The field as text, where it is text, a number, true or false."""
        return Field((*self.path, CASTS["text"]))

    def as_json(self) -> Field:
        """What the JSON in the field's text says.

        >>> field("log").as_json()["level"] == "error"
        equal('json(log).level', 'error')
        """
        return Field((*self.path, CASTS["json"]))

    def as_pattern(self) -> Field:
        """The pattern of the field's text: placeholders stand for what varies from one text to the next.

        >>> field("message").as_pattern() == "took <num>ms"
        equal('pattern(message)', 'took <num>ms')
        """
        return Field((*self.path, CASTS["pattern"]))

    def present(self) -> Operation:
        """The records that have it, be it null.

        >>> field("value.content.root").present()
        not_(absent('value.content.root'))
        """
        return not_(equal.absent(self.path))

    between = _method(compare.between)
    includes = _method(equal.includes)
    absent = _method(equal.absent)
    starts_with = _method(text_match.starts_with)
    ends_with = _method(text_match.ends_with)
    contains = _method(text_match.contains)
    like = _method(text_match.like)
    fits = _method(fits.fits)

    @overload
    def matches(self, test: str, *, ignore_case: bool = False) -> Operation: ...
    @overload
    def matches(self, test: Callable[[Any], object], name: str | None = None, *, version: int = 0) -> Operation: ...
    def matches(self, test: Any, name: str | None = None, *, version: int = 0, ignore_case: bool = False) -> Operation:
        """The records where it is text in which a regular expression is found, or where `test(value)` is true: see
        `matches` and `predicate`.

        >>> field("value.content.text").matches("[0-9]+ ms$")
        matches('value.content.text', '[0-9]+ ms$')
        >>> field("value.content.text").matches(str.isupper)
        predicate('value.content.text', isupper)
        """
        if not isinstance(test, str):
            return predicate(self.path, test, name, version=version)
        if name is not None or version:
            raise QueryError("a regular expression has neither a name nor a version: functions have")
        return text_match.matches(self.path, test, ignore_case=ignore_case)

    def __neg__(self) -> SortKey:
        """Descending, where answers are sorted.

        >>> -field("user.name")
        '-user.name'
        """
        return SortKey(self.path, True)

    def __contains__(self, value: object) -> NoReturn:
        raise QueryError(
            f"that an array has an element is written {self!r}.includes({shown(value)}); that text has a part, "
            f"{self!r}.contains({shown(value)})"
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or name == "path":  # Python, a notebook or copy() asks
            raise AttributeError(f"a Field has no attribute {name!r}", name=name, obj=self)
        inside = f"the field {name!r} inside this one is {self!r}[{name!r}]"
        raise AttributeError(f"{self!r} has no method {name!r}, but {', '.join(_METHODS)}; {inside}", name=name)

    def __repr__(self) -> str:
        return f"field({describe_path(self.path)})"

    def _not_yet(self, *_: object) -> NoReturn:
        raise QueryError(
            f"{self!r} alone is neither true nor false",
            remedy="compare it, and put parentheses around each comparison, as in (field('a') == 1) & "
            "(field('b') == 2)",
        )

    __and__ = __rand__ = __or__ = __ror__ = __invert__ = __bool__ = _not_yet


_METHODS: Final = (
    "isin", "between", "includes", "absent", "present", "contains", "starts_with", "ends_with", "like", "matches",
    "fits", "as_number", "as_time", "as_duration", "as_text", "as_json", "as_pattern",
)  # fmt: skip


def _value(value: Any) -> Any:
    if isinstance(value, Field):
        raise QueryError(f"a field is compared with a value, not with another field ({shown(value)})")
    return value
