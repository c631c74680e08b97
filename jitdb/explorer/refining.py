"""A question with one condition more, or less, as the + and - of a value ask for it.

The text that a person wrote stays as it is. It is taken apart at the `and` between its conditions; those that name
values of the one field (`==`, `!=`, `in`, `not in`) are written anew, and the others are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple

from jitdb.common.paths import Path, format_path
from jitdb.errors import QueryError
from jitdb.operators.completing import quoted
from jitdb.operators.nodes.equal import Equal, equal
from jitdb.operators.nodes.operation import Not, Operation, Or, and_
from jitdb.operators.text.expression import parse_expression
from jitdb.operators.text.expression_tokens import Tokens

#: What to do with a value: only it, it too, not it, or to say nothing of it any more; of a field, nothing at all.
How = Literal["only", "also", "not", "drop", "clear"]
HOWS: Final = ("only", "also", "not", "drop", "clear")
_OPEN, _CLOSE = "([{", ")]}"


class Condition(NamedTuple):
    """One of the conditions that a question joins by `and`: as it is written, and what it means."""

    text: str
    means: Operation


class Chosen(NamedTuple):
    """The values of a field that a question names: those that it takes, if any, and those that it leaves out."""

    on: tuple[Any, ...] = ()
    off: tuple[Any, ...] = ()


def conditions(where: str) -> list[Condition]:
    """The conditions of a question, in its order. Raises QueryError.

    >>> [each.text for each in conditions('level == "error" and (a == 1 or b == 2) and not c in [3]')]
    ['level == "error"', '(a == 1 or b == 2)', 'not c in [3]']
    """
    whole = parse_expression(where) if where.strip() else None
    if whole is None:
        return []
    found = [] if "#" in where else list(_apart(where))
    if found and and_(*(each.means for each in found)) == whole:
        return found
    return [Condition(whole.written() if "#" in where else where.strip(), whole)]  # an `or` holds it together


def _apart(where: str) -> Iterator[Condition]:
    """What stands between the words `and` outside of brackets, where that is a condition; `and` may be a field, too."""
    start = 0
    for end, behind in _ands(where):
        with suppress(QueryError):
            yield Condition(where[start:end].strip(), parse_expression(where[start:end]))
            start = behind


def _ands(where: str) -> Iterator[tuple[int, int]]:
    """Where the words `and` begin and end that stand in no brackets; at last the end of the text."""
    depth = 0
    for kind, word, begin, end in _Tokens(where):
        depth += (word in _OPEN) - (word in _CLOSE) if kind == "sign" else 0
        if kind == "word" and word == "and" and not depth:
            yield begin, end
    yield len(where), len(where)


class _Tokens(Tokens):
    def __iter__(self) -> Iterator[tuple[str, str, int, int]]:
        while self._kind != "end":
            yield self._kind, self._word, self._start, self._end
            self._next()


def joined(found: Sequence[Condition]) -> str:
    """The text of all of them together."""
    return " and ".join(
        f"({each.text})" if isinstance(each.means, Or) and len(found) > 1 and not _is_list(each) else each.text
        for each in found
    )


def _is_list(condition: Condition) -> bool:
    """Whether it is an `or` that is written as a list, or in brackets already."""
    try:
        return and_(parse_expression(f"{condition.text} and x == 1")) == and_(condition.means, equal("x", 1))
    except QueryError:
        return False


def values_named(found: Sequence[Condition], path: Path) -> Chosen:
    """The values of a field that these conditions name."""
    parts = [chosen for each in found if (chosen := _named_by(each.means, path)) is not None]
    return Chosen(*(tuple({repr(value): value for part in parts for value in part[at]}.values()) for at in (0, 1)))


def _named_by(means: Operation, path: Path) -> Chosen | None:
    """The values that a condition takes or leaves out of this field; None where it says something else."""
    is_not = isinstance(means, Not)
    inside = means.children()[0] if is_not else means
    leaves = inside.children() if isinstance(inside, Or) else (inside,)
    if not all(isinstance(leaf, Equal) and leaf.paths == (path,) and leaf.seek is None for leaf in leaves):
        return None
    values = tuple(leaf.value for leaf in leaves)  # type: ignore[attr-defined]
    return Chosen((), values) if is_not else Chosen(values, ())


def of_others(found: Sequence[Condition], path: Path) -> str:
    """The question without what it says of this field alone: what the field's other values are counted by."""
    return joined([each for each in found if set(each.means.all_paths()) != {path}])


def refined(where: str, path: Path, value: Any, how: How) -> str:
    """The question with this value of the field taken, left out, or no longer named. Raises QueryError.

    >>> refined('level == "error"', ("service",), "web", "only")
    'level == "error" and service == "web"'
    >>> refined('service == "web" and a > 1', ("service",), "api", "also")
    'a > 1 and service in ["web", "api"]'
    >>> refined("a > 1", ("status",), 200, "not")
    'a > 1 and status != 200'
    """
    found = conditions(where)
    on, off = values_named(found, path)
    rest = [each for each in found if _named_by(each.means, path) is None]
    if how == "clear":
        return joined([each for each in found if set(each.means.all_paths()) != {path}])
    without = [[each for each in values if not _same(each, value)] for values in (on, off)]
    on, off = map(tuple, without)
    if how in ("only", "also"):
        on = (*(on if how == "also" else ()), value)
    elif how == "not":
        off = (*off, value)
    said = [_said(path, values, is_not) for values, is_not in ((on, False), (off, True)) if values]
    return joined([*rest, *(Condition(text, parse_expression(text)) for text in said)])


def _same(one: Any, other: Any) -> bool:
    return equal("x", one) == equal("x", other)


def _said(path: Path, values: Sequence[Any], is_not: bool) -> str:
    field = format_path(path)
    plain = [f"{field} == {quoted(value)}" for value in values]
    if any(parse_expression(text) != equal(path, value) for text, value in zip(plain, values, strict=True)):
        # `==` with a day alone asks for all times of the day, and text as such is asked for by equal().
        calls = " or ".join(f"equal({field}, {quoted(value)})" for value in values)
        return f"not ({calls})" if is_not else calls if len(values) == 1 else f"({calls})"
    if len(values) == 1:
        return f"{field} {'!=' if is_not else '=='} {quoted(values[0])}"
    return f"{field} {'not in' if is_not else 'in'} [{', '.join(map(quoted, values))}]"


def condition_text(operation: Operation) -> str:
    """The text of a condition, with texts in double quotes where it is about one value.

    >>> from jitdb.operators import gt, lt
    >>> condition_text(equal("a", "x")), condition_text(and_(gt(1, "a"), lt(2, "a")))
    ('a == "x"', 'a > 1 and a < 2')
    """
    if isinstance(operation, Equal) and operation.seek is None:
        text = _said(operation.paths[0], (operation.value,), False)
        return text if parse_expression(text) == operation else operation.written()
    return operation.written()


def value_of(literal: str) -> Any:
    """The value that a literal stands for. Raises QueryError."""
    found = parse_expression(f"equal(x, {literal})")
    if not isinstance(found, Equal) or found.paths != (("x",),):
        raise QueryError("this is no value")
    return found.value


def together(where: str, more: str) -> str:
    """The question with another condition. Raises QueryError.

    >>> together("a == 1 or b == 2", "c > 3")
    '(a == 1 or b == 2) and c > 3'
    """
    return joined([*conditions(where), *conditions(more)])
