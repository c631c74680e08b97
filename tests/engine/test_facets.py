"""What is in records (facets), against loops over decoded records."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import fields as values_at
from oracle import number_in

import jitdb
from jitdb import JITDB
from jitdb.common.paths import CASTS, parse_path
from jitdb.common.values import hashable, value_key
from jitdb.errors import QueryError, QuestionWarning
from jitdb.operators import field
from jitdb.operators.summaries.arithmetic.cells import Cells, added, cells_of, shift_for
from jitdb.operators.summaries.arithmetic.numbers import Numbers
from jitdb.operators.summaries.exploring.facet_fields import facet_fields
from jitdb.operators.summaries.exploring.facets import Facet, Facets

VALUES = ("level", "user.plan", "tags[]", "mixed")
NUMBERS = ("ms", "big")
FIELDS = (*VALUES, *NUMBERS, "env")
MIXED = [None, True, False, 0, 1, 1.5, "", "1", "ä", [1], {"x": 1}]


def record(random: random.Random, number: int) -> dict[str, Any]:
    """One with values of all kinds; some lack some."""
    made: dict[str, Any] = {"env": "prod", "n": number}
    choices = {
        "level": random.choice(["info", "info", "error", "warn"]),
        "user": {"plan": random.choice(["free", "pro"]), "id": f"u{number:06}"},
        "tags": random.sample(["a", "b", "c"], random.randrange(4)),
        "mixed": random.choice(MIXED),
        "ms": random.choice([0, -0.0, round(random.lognormvariate(3, 2), 3), random.randrange(-50, 50), "12.5"]),
        "big": 2**60 + random.randrange(1000),
    }
    return made | {name: value for name, value in choices.items() if random.random() < 0.9}


def write(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


def counted(records: list[Any], name: str) -> tuple[Counter[bytes], int]:
    """How many records have each value of the field, by its key, and how many have any."""
    counts: Counter[bytes] = Counter()
    have = 0
    for each in records:
        found = {value_key(value) for value in values_at(each, parse_path(name))}
        counts.update(found)
        have += bool(found)
    return counts, have


def quantile(numbers: list[Any], share: float) -> Any:
    """The number of a record: the first that at least this share of all are not above."""
    ordered = sorted(numbers)
    return ordered[max(0, math.ceil(Fraction(str(share)) * len(ordered)) - 1)]


def check(found: Facets, records: list[Any], limit: int = 5) -> None:
    assert found.total == len(records)
    same = {path: value_key(value) for path, value in found.same.items()}
    rows = {row.path: row for row in found}
    assert not rows.keys() & same.keys()
    for name in FIELDS:
        path = parse_path(name)
        if path in rows and rows[path].spread is not None:
            check_spread(rows[path], numbers_in(records, name))
            continue
        counts, have = counted(records, name)
        if len(counts) == 1 and next(iter(counts.values())) == len(records):
            assert same[path] == next(iter(counts))
            continue
        assert path not in same
        if not counts:
            assert path not in rows
            continue
        row = rows[path]
        assert (row.count, row.distinct) == (have, len(counts))
        assert len(row.values) == min(limit, len(counts))
        assert [counts[value_key(value)] for value, _ in row.values] == [count for _, count in row.values]
        assert [count for _, count in row.values] == sorted(counts.values(), reverse=True)[:limit]


def numbers_in(records: list[Any], name: str) -> list[Any]:
    return [number for each in records if (number := number_in(each.get(name))) is not None]


def check_spread(row: Facet, numbers: list[Any]) -> None:
    assert row.count == len(numbers)
    assert row.spread is not None
    assert (row.spread.low, row.spread.high) == (min(numbers), max(numbers))
    quantiles = (row.spread.median, row.spread.p95, row.spread.p99)
    assert quantiles == tuple(quantile(numbers, share) for share in (0.5, 0.95, 0.99))
    assert sum(row.spread.bars) == len(numbers)


@pytest.mark.parametrize("count", [0, 1, 40, 3000])
@pytest.mark.parametrize("question", [None, 'level == "error"', 'level != "info"', "n < 7", 'level == "none"'])
def test_random_records(tmp_path: Path, count: int, question: str | None) -> None:
    chance = random.Random(count)
    records = [record(chance, number) for number in range(count)]
    with jitdb.open(write(tmp_path / "some.ndjson", records)) as db:
        db.warns_of_questions = False
        matching = [each for each in records if question is None or matches(question, each)]
        check(db.facets(question), matching)
        check(db.facets(question, fields=FIELDS, limit=2), matching, 2)


def matches(question: str, each: Any) -> bool:
    level = each.get("level")
    return {
        'level == "error"': level == "error",
        'level != "info"': level != "info",
        "n < 7": each["n"] < 7,
        'level == "none"': False,
    }[question]


def test_many_logs_are_as_one(tmp_path: Path) -> None:
    chance = random.Random(5)
    records = [record(chance, number) for number in range(4000)]
    (tmp_path / "some").mkdir()
    for number in range(4):
        write(tmp_path / f"some/{number}.ndjson", records[1000 * number : 1000 * number + 1000])
    write(tmp_path / "one.ndjson", records)
    with jitdb.open_many(tmp_path / "some") as many, jitdb.open(tmp_path / "one.ndjson") as one:
        check(many.facets(fields=FIELDS), records)
        for question in (None, 'level == "error"', "n < 1500"):
            assert many.facets(question, fields=FIELDS) == one.facets(question, fields=FIELDS)


def test_deleted_records_are_not_counted(tmp_path: Path) -> None:
    chance = random.Random(6)
    records = [record(chance, number) for number in range(500)]
    with jitdb.open(tmp_path / "own.log", codec="msgpack", create=True) as db:
        db.log.append_many(records)
        db.log.flush()
        check(db.facets(), records)
        gone = db.all(field("level") == "warn", as_offsets=True)
        for offset in gone:
            db.log.delete(offset)
        check(db.facets(), [each for each in records if each.get("level") != "warn"])


def test_as_of_an_earlier_state(tmp_path: Path) -> None:
    chance = random.Random(7)
    records = [record(chance, number) for number in range(300)]
    with jitdb.open(write(tmp_path / "some.ndjson", records)) as db:
        offset = db.paginate(limit=1, start_from=99, sort_by="arrival", as_offsets=True).data[0]
        check(db.query().as_of(offset).facets(), records[:100])


def test_which_fields_are_worth_it(tmp_path: Path) -> None:
    chance = random.Random(8)
    records = [
        {
            "time": f"2026-11-20T14:{n // 60 % 60:02}:{n % 60:02}Z", "id": f"{chance.getrandbits(64):x}",
            "service": chance.choice("abc"), "ms": chance.random(), "port": chance.randrange(60000),
            "status": chance.choice([200, 500]), "message": f"took {chance.random()} of {chance.choice('ab')}",
            "user": {"id": chance.randrange(300), "name": "x"}, "items": [{"sku": chance.choice("xy")}],
        }
        for n in range(2000)
    ]  # fmt: skip
    with jitdb.open(write(tmp_path / "some.ndjson", records)) as db:
        found = db.facets()
    assert [row.path for row in found] == [
        ("service",), ("ms",), ("port",), ("status",), ("message", CASTS["pattern"]), ("user", "id"),
        ("items", None, "sku"),
    ]  # fmt: skip
    assert {value for value, _ in found["pattern(message)"].values} == {"took <num> of a", "took <num> of b"}
    assert found.same == {("user", "name"): "x"}
    assert found.unique == (("id",),)
    assert [row.distinct for row in found][1] is None


def test_a_field_that_no_record_has(tmp_path: Path) -> None:
    with jitdb.open(write(tmp_path / "some.ndjson", [{"a": 1}])) as db:
        with pytest.warns(QuestionWarning, match="nope"):
            assert list(db.facets(fields=["nope"])) == []
        with pytest.raises(QueryError, match="limit"):
            db.facets(limit=0)


DOUBLES = st.floats(allow_nan=False) | st.integers(-100, 100).map(float)


@settings(deadline=None)
@given(st.lists(DOUBLES, min_size=1), st.integers(1, 5))
@example([0.0, -0.0, 5e-324, -5e-324], 2)
def test_cells_of_parts_add_up(numbers: list[float], parts: int) -> None:
    import numpy as np

    def cells(some: list[float]) -> Cells:
        shift = shift_for(min(some), max(some))
        there = Cells(shift, np.empty(0, np.int64), np.empty(0, np.int64))
        own = cells_of(Numbers(np.array(some), None), there)
        return Cells(shift, *np.unique(own, return_counts=True))

    split = [some for number in range(parts) if (some := numbers[number::parts])]
    together = added(map(cells, split))
    whole = cells(numbers).coarser(together.shift) if together.shift >= shift_for(min(numbers), max(numbers)) else None
    assert together.total == len(numbers)
    lows, highs = together.bounds()
    for low, high, count in zip(lows, highs, together.counts, strict=True):
        assert count == sum(low <= number < high or (number == high == math.inf) for number in numbers)
    if whole is not None:
        assert [*whole.places] == [*together.places]
        assert [*whole.counts] == [*together.counts]


def test_facets_show_themselves(tmp_path: Path) -> None:
    records = [{"level": "info" if n % 4 else "error", "ms": n, "env": "prod", "id": f"{n:09}"} for n in range(100)]
    with jitdb.open(write(tmp_path / "some.ndjson", records)) as db:
        found = db.facets()
    for name, why in (("env", "the same in all"), ("nope", "names fields")):
        with pytest.raises(QueryError, match=why):
            found[name]
    lines = str(found).splitlines()
    assert lines[0].split() == ["field", "share", "holds", "most", "frequent"]
    assert lines[1].split()[:4] == ["level", "100.0", "%", "2"]
    assert "info 75.0 % · error 25.0 %" in lines[1]
    assert "0 █▇▇▇" in lines[2]
    assert "99 median 49, p95 94" in lines[2]
    assert lines[3:] == ["100 records", "the same in all: env = prod", "nearly unique, not counted: id"]
    assert [hashable(value) for value, _ in found["level"].values] == ["info", "error"]
    assert "<table" in found._repr_html_()
    assert found.plain_sheet().about == {"total": 100, "same": {"env": "prod"}, "unique": ["id"]}


def test_the_sample_says_which(tmp_path: Path) -> None:
    assert facet_fields([]) == facet_fields([{"a": {}}, {"a": []}])
    database = jitdb.open(write(tmp_path / "some.ndjson", [{"a": 1}]))
    assert isinstance(database, JITDB)
    with database as db:
        assert db.facet_fields().values == (("a",),)
