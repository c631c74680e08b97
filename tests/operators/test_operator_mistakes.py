"""Mistakes of everyday Python are answered with the right way."""

import asyncio
import copy
import datetime
import warnings
from contextlib import suppress

import numpy as np
import pytest
from toy_database import small_database

import jitdb
from jitdb.errors import QueryError
from jitdb.operators import equal, field, from_db, gt, query, to_async_iter, to_iter, where
from jitdb.operators.text.expression import parse_expression

# A query that is not asked


async def awaited(thing):
    return await thing


async def looped(thing):
    return [item async for item in thing]


@pytest.fixture
def asked():
    return query(from_db(small_database()))


@pytest.mark.parametrize("use", [int, float, lambda made: made[0]])
def test_a_query_is_not_its_answer(asked, use):
    with pytest.raises(QueryError, match=r"ask it with .count\(\), .page\(n\), .all\(\) or in a loop"):
        use(asked)


def test_a_query_is_true(asked):
    assert asked


def test_each_iterator_knows_its_loop(asked):
    with pytest.raises(QueryError, match=r"end the query with to_iter\(\)"):
        list(query(asked, to_async_iter()))
    with pytest.raises(QueryError, match=r"end the query with to_awaitable\(\)"):
        asyncio.run(awaited(query(asked, to_async_iter())))
    with pytest.raises(QueryError, match=r"end the query with to_async_iter\(\)"):
        asyncio.run(looped(query(asked, to_iter())))


# Fields


def test_members_of_arrays_and_lists():
    with pytest.raises(QueryError, match=r"field\('tags'\).includes\('a'\); .* field\('tags'\).contains\('a'\)"):
        assert "a" in field("tags")
    with pytest.raises(QueryError, match=r"field.isin\(\[a, b\]\)"):
        where(field("type") in ["post", "vote"])


@pytest.mark.parametrize("name", ["exists", "startswith"])
def test_a_method_that_a_field_has_not(name):
    with pytest.raises(
        AttributeError, match=rf"isin, between, includes, .*starts_with.*inside this one is field\('a'\)\['{name}'\]"
    ):
        getattr(field("a"), name)


def test_fields_can_be_copied_and_looked_at():
    assert copy.deepcopy(field("a.b")).path == copy.copy(field("a.b")).path == ("a", "b")
    assert not hasattr(field("a"), "_repr_html_")


# Text and times where operations and numbers are meant


def test_text_is_no_part_and_no_half_of_an_operation():
    with pytest.raises(QueryError, match=r"an expression stands in where\('type == 1'\)"):
        query("type == 1")
    with pytest.raises(QueryError, match=r"parse_expression\('type == 1'\)"):
        equal("type", 1) & "type == 1"


DAY = datetime.datetime(2023, 11, 14)


@pytest.mark.parametrize("when", [DAY, DAY.date(), np.datetime64("2023-11-14", "ns"), datetime.timedelta(1)])
def test_a_time_is_no_value(when):
    with pytest.raises(QueryError, match="records hold no times as such: compare one by <, <=, > and >="):
        equal("t", when)


@pytest.mark.parametrize("ask", [lambda when: gt(when, "t"), lambda when: field("t") < when])
def test_a_length_of_time_is_no_time(ask):
    with pytest.raises(QueryError, match=r"only numbers and times are above or below others, and .* is a timedelta"):
        ask(datetime.timedelta(1))


@pytest.mark.parametrize(
    "text", ["a == 1or b == 2", "a == 0x1for b", "a == 1.and b == 2", r'a == "\d"', r'not a == "\ "']
)
def test_what_python_warns_of_is_not_said(text):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with suppress(QueryError):
            parse_expression(text)
    assert not said


@pytest.mark.parametrize("call", [jitdb.open, jitdb.Log])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("blockSize", r"has no 'blockSize'; here it is block_size \(docs/from-javascript.md\)"),
        ("readonly", "has no 'readonly'; did you mean read_only"),
        ("readOnly", "has no 'readOnly'; did you mean read_only"),
        ("x", "has no 'x'$"),
    ],
)
def test_a_keyword_of_javascript(tmp_path, call, name, said):
    with pytest.raises(TypeError, match=said):
        call(tmp_path / "log", **{name: 4096})
    assert not any(tmp_path.iterdir())
