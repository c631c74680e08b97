"""What a page that explores a log asks, of a million records of 40 fields in which an incident is planted, from indexes
that are there, beside DuckDB's own table: counts, the newest page, timelines, facets of all fields, a difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import jitdb
from jitdb import JITDB

from ..data import FOLDER
from ..measure import Figure, median_ms
from ..peers import duck

RECORDS = 1_000_000
RUNS = 9
BEGIN = datetime(2026, 11, 20, tzinfo=UTC)
SELECTIONS = {"2 %": 'level == "error"', "25 %": 'region == "eu-west"', "72 %": 'level == "info"', "all": None}
INCIDENT = 'level == "error" and time >= "2026-11-20T14:00:00Z" and time < "2026-11-20T15:20:00Z"'
FEW = 40  # values of each of the fields that have nothing to do with the incident


@cache
def service() -> Path:
    """The log: a day of a service; from 14:00 to 15:20 version 2.1 fails in eu-west."""
    path = FOLDER / f"service-{RECORDS}.ndjson"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        with open(temporary, "w") as file:
            file.writelines(json.dumps(record) + "\n" for record in records())
        temporary.rename(path)
    return path


def records() -> Iterator[dict[str, Any]]:
    """In portions, whose random numbers are drawn at once."""
    import numpy as np

    chance = np.random.default_rng(3)
    portion = 50_000
    for begin in range(0, RECORDS, portion):
        levels = chance.choice(["info", "debug", "warn", "error"], portion, p=[0.72, 0.18, 0.08, 0.02]).tolist()
        regions = chance.choice(["us-east", "eu-west", "us-west", "ap"], portion, p=[0.45, 0.25, 0.2, 0.1]).tolist()
        versions = chance.choice(["2.0", "2.1", "1.9", "1.8"], portion, p=[0.6, 0.2, 0.15, 0.05]).tolist()
        times = chance.lognormal(3, 1, portion).round(2).tolist()
        sizes = chance.lognormal(7, 1.5, portion).astype(int).tolist()
        users = np.minimum(chance.zipf(1.3, portion), 50_000).tolist()
        ids = chance.integers(0, 2**63, portion).tolist()
        others = chance.integers(0, FEW, (portion, 28)).tolist()
        fails = (chance.random(portion) < 0.3).tolist()
        for number in range(portion):
            second = 86_400 * (begin + number) / RECORDS
            bad = 50_400 <= second < 55_200 and versions[number] == "2.1" and regions[number] == "eu-west"
            bad = bad and fails[number]
            level = "error" if bad else levels[number]
            made = {
                "time": (BEGIN + timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "level": level, "region": regions[number], "version": versions[number], "env": "prod",
                "trace": f"{ids[number]:016x}", "user": {"id": users[number]},
                "message": f"request {number} took {times[number]} ms",
                "request": {
                    "ms": 5000 + times[number] if bad else times[number], "bytes": sizes[number],
                    "status": 504 if bad else 500 if level == "error" else 200,
                },
            }  # fmt: skip
            made["more"] = {f"f{at:02}": f"v{value}" for at, value in enumerate(others[number])}
            yield made


def facets(db: JITDB) -> Iterator[Figure]:
    """Of all fields; DuckDB counts the values of each as often as we do."""
    fields = [row.path for row in db.facets() if row.distinct is not None]
    for share, where in SELECTIONS.items():
        sql = "" if where is None else f"where {where.replace('==', '=').replace(chr(34), chr(39))}"
        mine = median_ms(partial(db.facets, where), RUNS)

        def theirs(sql: str = sql) -> None:
            for path in fields:
                duck().execute(
                    f"select {'.'.join(map(str, path))}, count(*) from service {sql} group by 1 order by 2 desc limit 5"
                ).fetchall()

        question = f"facets of {len(db.facets(where))} fields, {share} of the records"
        yield Figure(question, mine, "ms", "DuckDB's table", median_ms(theirs, 3), "", "30 ms")


def questions(db: JITDB) -> Iterator[Figure]:
    errors = 'level == "error"'
    steps = "select time_bucket(interval '15 minutes', time) as step, level, count(*) from service group by all"
    newest = "select * from service where level = 'error' order by time desc limit 50"
    yield Figure(
        "count and the newest page of 50", median_ms(lambda: _count_and_page(db, errors), RUNS), "ms",
        "DuckDB's table", median_ms(lambda: duck().execute(newest).fetchall(), 3), "", "10 ms",
    )  # fmt: skip
    for name, where in SELECTIONS.items():
        mine = median_ms(partial(db.timeline, where, every="15m", by="level"), RUNS)
        beside = ("DuckDB's table", median_ms(lambda: duck().execute(steps).fetchall(), 3)) if where is None else ()
        yield Figure(f"timeline by level, {name}", mine, "ms", *beside, aim="5 ms")
    for name, where, against in (("of the errors from the rest", errors, None), ("of an incident", INCIDENT, errors)):
        mine = median_ms(partial(db.difference, where, against=against), RUNS)
        yield Figure(f"the difference {name}", mine, "ms", aim="20 ms")


def _count_and_page(db: JITDB, where: str) -> None:
    db.count(where)
    db.query(where).descending().page(50)


def run() -> list[Figure]:
    path = service()
    duck().execute(f"create table service as select * from read_json('{path}')")
    with jitdb.open(path, read_only=True) as db:
        found = db.difference(INCIDENT, against='level == "error"')
        assert {'version = "2.1"', "region = eu-west"} <= {str(each) for each in found.together[0].findings}
        return [*questions(db), *facets(db)]
