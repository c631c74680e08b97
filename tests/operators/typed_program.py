"""A program as users write it, for mypy --strict (`dev.py check`): each result is of the type that is asserted."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from typing import Any, assert_type

import jitdb
from jitdb.operators import (
    Operation,
    Query,
    count,
    declared_time,
    deferred,
    descending,
    equal,
    field,
    from_db,
    gt,
    live,
    paginate,
    query,
    sort_by,
    to_async_iter,
    to_awaitable,
    to_callback,
    to_iter,
    to_result,
    where,
)
from jitdb.operators.passages import Passages
from jitdb.operators.question import Page
from jitdb.operators.running.iterate import AsyncResults, Results
from jitdb.operators.summaries.value_counts import ValueCounts


def asks(db: jitdb.JITDB) -> None:
    posts = (field("type") == "post") & (declared_time > 5) & ~gt(5, declared_time)
    assert_type(posts, Operation)
    asked = db.query(posts).descending().start_from(1)
    assert_type(asked, Query)
    assert_type(asked.sort_by("size", -field("user.name")), Query)
    assert_type(query(from_db(db), sort_by("-size"), to_iter()), Results)
    assert_type(db.all(sort_by="size"), list[Any])
    assert_type(asked.select("size", field("user.name")), Query)
    assert_type(db.all(select=["size"]), list[Any])
    assert_type(db.pages(limit=3, sort_by=["-size", field("name")]).read(), jitdb.Page | None)
    assert_type(asked.count(), int)
    assert_type(asked.all(), list[Any])
    assert_type(asked.offsets(), list[int])
    assert_type(asked.page(10), Page)
    assert_type(asked.page(10).total, int)
    assert_type(asked.pages(10), Iterator[Page])
    assert_type(asked.context(1, 2, same="host"), Passages)
    assert_type(iter(asked.live()), Results)
    assert_type(asked.value_counts("type", limit=3), ValueCounts)
    assert_type([count + 1 for _, count in db.value_counts("type", posts)], list[int])
    assert_type(db.timeline(posts, every="1h", by="host")[0].start, datetime)
    assert_type(asked.patterns(limit=3)[0].pattern, str)
    assert_type(db.stats("size").mean, float | None)
    assert_type(asked.to_numpy("size", seqs=True)["size"].shape, tuple[Any, ...])
    for record in asked:
        print(record["type"])

    assert_type(query(from_db(db), where(posts), descending()), Query)
    assert_type(query(asked, deferred(lambda meta: equal("a", meta.limit)), to_iter()), Results)
    assert_type(query(from_db(db), live(), to_async_iter()), AsyncResults)
    assert_type(query(asked, count(), to_result()), Any)
    assert_type(asyncio.run(query(asked, paginate(2), to_awaitable())), Any)
    query(asked, to_callback(lambda error, result: None))

    assert_type(db.count(posts, start_from=3), int)
    assert_type(db.count("type == 'post'"), int)
    assert_type(db.query("type == 'post'", posts, None).where("size > 1").stats("size", "a == 1").count, int)
    assert_type(db.all(posts, descending=True, as_of=10), list[Any])
    assert_type(db.paginate(posts, limit=3, sort_by="arrival").data, list[Any])
    assert_type([page.next_seq for page in db.pages(posts, limit=3)], list[int])
    assert_type(db.live(posts).cursor, str)
    with jitdb.open("a.log", "memory") as other:
        report: jitdb.Report = other.verify()
        status: jitdb.Status = other.status
        print(report, status)


async def asks_beside(db: jitdb.JITDB) -> None:
    asked = db.query(equal("type", "post"))
    async for record in asked.live(after="a cursor"):
        print(record)
    print(await asked)


def mistakes(db: jitdb.JITDB) -> None:
    db.query(5)  # type: ignore[arg-type]
    db.all(sort_by=5)  # type: ignore[arg-type]
    db.query().sort_by(("a", "b"))  # type: ignore[arg-type]
    db.count(descend=True)  # type: ignore[call-arg]
    query(to_iter(), equal("type", "post"))  # type: ignore[call-overload]
    db.query().page("ten")  # type: ignore[arg-type]
