"""Mistakes of everyday Python are answered with the right way."""

import asyncio

import pytest
from toy_database import small_database

from jitdb.errors import QueryError
from jitdb.operators import from_db, query, to_async_iter, to_iter

# A query without a consumer


async def awaited(thing):
    return await thing


async def looped(thing):
    return [item async for item in thing]


@pytest.fixture
def asked():
    return query(from_db(small_database()))


@pytest.mark.parametrize("use", [list, len, int, float, lambda made: made[0], lambda made: 1 in made, sorted])
def test_a_query_without_consumer_says_so(asked, use):
    with pytest.raises(QueryError, match=r"no consumer yet: add to_result\(\), or to_iter\(\)"):
        use(asked)


@pytest.mark.parametrize("use", [awaited, looped])
def test_a_query_without_consumer_says_so_to_async_programs(asked, use):
    with pytest.raises(QueryError, match=r"no consumer yet: add to_awaitable\(\)"):
        asyncio.run(use(asked))


def test_a_query_is_true(asked):
    assert asked


def test_each_iterator_knows_its_loop(asked):
    with pytest.raises(QueryError, match=r"end the query with to_iter\(\)"):
        list(query(asked, to_async_iter()))
    with pytest.raises(QueryError, match=r"end the query with to_awaitable\(\)"):
        asyncio.run(awaited(query(asked, to_async_iter())))
    with pytest.raises(QueryError, match=r"end the query with to_async_iter\(\)"):
        asyncio.run(looped(query(asked, to_iter())))
