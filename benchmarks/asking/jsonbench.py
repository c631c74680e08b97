"""The five questions of ClickHouse's JSONBench, over a million events as Bluesky's stream has them (made up: likes,
posts, reposts and follows of users of whom few do much), asked again in a process whose indexes are there. Beside it
DuckDB is asked its own table, whose columns are the fields.

The third question of JSONBench asks for the hour of the day; these events are of one day, so its steps are hours.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import jitdb
from jitdb.operators import Query

from ..data import FOLDER
from ..measure import Figure, median_ms
from ..peers import duck

EVENTS: Final = 1000 * int(os.environ.get("JITDB_BENCH_EVENTS", "1000"))
_BEGIN: Final = int(datetime(2024, 11, 21, 16, 9, tzinfo=UTC).timestamp()) * 10**6
_APART: Final = 21_000  # microseconds between two events, about: a million are of six hours
_COLLECTIONS: Final = {
    "app.bsky.feed.like": 46, "app.bsky.graph.follow": 26, "app.bsky.feed.post": 10, "app.bsky.feed.repost": 9,
    "app.bsky.graph.block": 3, "app.bsky.actor.profile": 3, "app.bsky.graph.listitem": 1, "app.bsky.feed.threadgate": 1,
}  # fmt: skip
_OPERATIONS: Final = {"create": 92, "delete": 6, "update": 2}
_KINDS: Final = {"commit": 990, "identity": 6, "account": 4}
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
_ASKED: Final = ("app.bsky.feed.post", "app.bsky.feed.repost", "app.bsky.feed.like")
_RUNS: Final = 9
_CREATED: Final = "kind = 'commit' and \"commit\".operation = 'create'"
_POSTED: Final = f"{_CREATED} and \"commit\".collection = 'app.bsky.feed.post'"


@cache
def events() -> Path:
    """The file of the events, which is made if it is not there."""
    path = FOLDER / f"bluesky-{EVENTS}.ndjson"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        draw = random.Random(7)
        with open(temporary, "w") as file:
            time = _BEGIN
            for _ in range(EVENTS):
                time += draw.randrange(2 * _APART)
                file.write(json.dumps(_event(draw, time), separators=(",", ":")) + "\n")
        os.replace(temporary, path)
    return path


def _event(draw: random.Random, time: int) -> dict[str, Any]:
    kind = _one(draw, _KINDS)
    user = int(400_000 * draw.random() ** 2.5)
    event: dict[str, Any] = {"did": f"did:plc:{_letters(random.Random(user), 24)}", "time_us": time, "kind": kind}
    if kind != "commit":
        return event | {kind: {"did": event["did"], "seq": time, "time": _clock(time)}}
    operation, collection = _one(draw, _OPERATIONS), _one(draw, _COLLECTIONS)
    commit = {"rev": _letters(draw, 13), "operation": operation, "collection": collection, "rkey": _letters(draw, 13)}
    if operation != "delete":
        about = {"cid": f"bafyrei{_letters(draw, 52)}", "uri": f"at://did:plc:{_letters(draw, 24)}/{collection}"}
        post = {"langs": ["en"], "text": "word " * draw.randrange(40)}
        said = post if collection == _ASKED[0] else {"subject": about}
        commit |= {"record": {"$type": collection, "createdAt": _clock(time), **said}, "cid": about["cid"]}
    return event | {"commit": commit}


def _one(draw: random.Random, shares: dict[str, int]) -> str:
    return draw.choices(list(shares), list(shares.values()))[0]


def _letters(draw: random.Random, count: int) -> str:
    return "".join(draw.choices(_ALPHABET, k=count))


def _clock(time: int) -> str:
    return datetime.fromtimestamp(time // 10**6, UTC).isoformat().replace("+00:00", "Z")


def _table() -> str:
    """DuckDB's table of the fields that are asked for."""
    columns = (
        "did: 'varchar', time_us: 'bigint', kind: 'varchar', 'commit': 'struct(operation varchar, collection varchar)'"
    )
    source = f"read_json('{events()}', format = 'newline_delimited', columns = {{{columns}}})"
    duck().execute(f"create or replace table bluesky as select * from {source}")
    return "bluesky"


def _questions(db: jitdb.JITDB) -> dict[str, tuple[Callable[[], list[tuple[Any, ...]]], str]]:
    """Of each what asks it here, and DuckDB's SQL: rows that are the same in the same order, but for ties."""

    def created(*more: str) -> Query:
        return db.query("kind == 'commit' and commit.operation == 'create'", *more)

    posted = created("commit.collection == 'app.bsky.feed.post'")
    some = created(f"commit.collection in {list(_ASKED)}")

    def by_hour() -> list[tuple[Any, ...]]:
        line = some.timeline(every="1h", by="commit.collection")
        rows = ((row.start.hour, *each) for row in line for each in zip(line.values, row.counts, strict=True))
        return sorted(row for row in rows if row[2])

    return {
        "Q1: events of each collection": (
            lambda: [tuple(row) for row in db.value_counts("commit.collection")],
            "select \"commit\".collection as event, count(*) from bluesky where event is not null group by event "
            "order by count(*) desc, event",
        ),
        "Q2: and how many users": (
            lambda: [
                (row.value, row.count, row.distinct) for row in created().count_distinct("did", "commit.collection")
            ],
            'select "commit".collection as event, count(*), count(distinct did) as users from bluesky '
            f"where {_CREATED} group by event order by users desc, event",
        ),
        "Q3: three of them by the hour": (
            by_hour,
            "select hour(make_timestamp(time_us)) as hour, \"commit\".collection as event, count(*) from bluesky "
            f"where {_CREATED} and event in {_ASKED} group by hour, event order by hour, event",
        ),
        "Q4: the users who posted first": (
            lambda: [
                (row.value, row.stats.min)
                for row in posted.stats_by("time_us", "did", order="min asc", limit=3, quantiles=[])
            ],
            f"select did, min(time_us) as first from bluesky where {_POSTED} group by did order by first limit 3",
        ),
        "Q5: the users who posted longest": (
            lambda: [
                (row.value, row.stats.span)
                for row in posted.stats_by("time_us", "did", order="span", limit=3, quantiles=[])
            ],
            f"select did, max(time_us) - min(time_us) as span from bluesky where {_POSTED} group by did "
            "order by span desc limit 3",
        ),
    }  # fmt: skip


def run() -> list[Figure]:
    _table()
    figures = []
    with jitdb.open(events(), "memory", timestamp="time_us") as db:
        for name, (ask, sql) in _questions(db).items():
            assert sorted(ask()) == sorted(duck().execute(sql).fetchall()), name
            theirs = median_ms(lambda sql=sql: duck().execute(sql).fetchall(), _RUNS)
            figures.append(Figure(name, median_ms(ask, _RUNS), "ms", "DuckDB, its own table", theirs, "5 times", ""))
    return figures
