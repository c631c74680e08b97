"""A question with a value more, or less: it means what it is to mean, and what else was written stays as it was."""

from __future__ import annotations

import random
import shlex
from typing import Any

import pytest

from jitdb.common.paths import parse_path
from jitdb.errors import QueryError
from jitdb.explorer.refining import HOWS, conditions, of_others, quoted, refined, together, value_of
from jitdb.operators import and_, equal, not_, or_, parse_expression

OTHERS = [
    "",
    "a > 1",
    'x == "and"',
    "(a == 1 or b == 2)",
    "not (a == 1)",
    "b in [1, 2]",
    "1 < a <= 5",
    "and == 1",
    "a.and > 2",
]
VALUES: list[Any] = ["web", 'a"b', "it's", "a\\b", "2026-11-20", "\x1b[2J", "😀", 5, -1.5, 2**60, True, None, ""]


def meaning(where: str) -> Any:
    return parse_expression(where) if where else and_()


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_each_step_means_what_it_says(other: str, value: Any) -> None:
    path = ("s", "t")
    base = [meaning(other)] if other else []
    only = refined(other, path, value, "only")
    assert parse_expression(only) == and_(*base, equal(path, value))
    both = refined(only, path, "more", "also")
    assert parse_expression(both) == and_(*base, or_(equal(path, value), equal(path, "more")))
    assert parse_expression(refined(both, path, value, "drop")) == and_(*base, equal(path, "more"))
    without = refined(other, path, value, "not")
    assert parse_expression(without) == and_(*base, not_(equal(path, value)))
    assert refined(without, path, value, "drop") == refined(only, path, value, "drop") == other
    assert parse_expression(refined(without, path, value, "only")) == and_(*base, equal(path, value))
    assert of_others(conditions(only), path) == other


def test_what_was_written_stays() -> None:
    draw = random.Random(3)
    for _ in range(300):
        parts = draw.sample([other for other in OTHERS if other], draw.randint(0, 4))
        where = " and ".join(parts)
        found = refined(where, ("z",), "v", draw.choice(["only", "not"]))
        assert found.startswith(where)
        assert [each.text for each in conditions(where)] == parts


@pytest.mark.parametrize("where", ["a == 1 or b == 2", "not a == 1 or b == 2", 'a == 1 or b == 2 and c == "x"'])
def test_an_or_is_put_in_brackets(where: str) -> None:
    found = refined(where, ("c",), 3, "only")
    assert parse_expression(found) == and_(parse_expression(where), equal("c", 3))
    assert parse_expression(together(where, where)) == and_(parse_expression(where), parse_expression(where))


def test_comments_and_lines_do_not_swallow_what_is_added() -> None:
    where = 'a == 1 # the first\nand b == 2  # the "second"'
    found = refined(where, ("c",), 3, "only")
    assert parse_expression(found) == and_(equal("a", 1), equal("b", 2), equal("c", 3))


@pytest.mark.parametrize("field", ['["log.level"]', '["a b"].c', "items[].sku", '["]"]', '["\\""]'])
def test_fields_of_any_name(field: str) -> None:
    path = parse_path(field)
    found = refined("x > 1", path, "v", "only")
    assert parse_expression(found) == and_(parse_expression("x > 1"), equal(path, "v"))
    assert refined(found, path, "v", "drop") == "x > 1"


def test_literals() -> None:
    for value in VALUES:
        assert equal("x", value_of(quoted(value))) == equal("x", value)
    for literal in ("1) or absent(b", "b", "", "1, 2", "f(1)", "everything()"):
        with pytest.raises(QueryError):
            value_of(literal)
    assert set(HOWS) == {"only", "also", "not", "drop", "clear"}


def test_the_command_reads_back_as_it_was_asked() -> None:
    from jitdb.explorer.opening import opening_of

    nasty = """it's "a" $HOME `ls` \\ ! * ; & | > < \n é"""
    opening = opening_of([f"./{nasty}", "-x"], {"indexes": "memory", "timestamp": ["a b", "c"], "each": ""}, True)
    words = shlex.split(opening.command(f"a == {quoted(nasty)}", "2026-11-01T00:00:00Z", None))
    assert words == [
        "jitdb", "query", "--indexes", "none", "--timestamp", "a b", "--timestamp", "c", f"./{nasty}", "./-x",
        f"a == {quoted(nasty)}", "--since", "2026-11-01T00:00:00Z", "--descending",
    ]  # fmt: skip
    assert "indexes='memory', timestamp=['a b', 'c']" in opening.python("", None, None)
