"""Patterns of messages against a program that decodes all records and masks them by regular expressions."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mask_oracle import fits, mask, patterns_of
from thoroughness import tries

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import MalformedWarning, QueryError, QuestionWarning
from jitdb.operators import field, from_db, patterns, query, to_result
from jitdb.operators import fits as fits_operation
from jitdb.operators.summaries.exploring.patterns import Patterns
from jitdb.operators.summaries.exploring.similar import MOST

BEGIN = datetime(2026, 11, 20, tzinfo=UTC)
WORDS = [
    "user",
    "ada",
    "bob",
    "eve",
    "lee",
    "kim",
    "logged",
    "in",
    "out",
    "took",
    "5ms",
    "7",
    "a1b2",
    "<num>",
    "<*>",
    "x",
]
messages = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
records = st.lists(
    st.fixed_dictionaries(
        {"n": st.integers(0, 2)},
        optional={
            "message": messages | st.sampled_from([None, 5, ["a"], "", " "]),
            "time": st.integers(0, 300).map(lambda n: (BEGIN + timedelta(minutes=n)).isoformat()),
        },
    ),
    max_size=60,
)


def counted(found: list[Any], condition: Any = None, key: str = "message") -> tuple[dict[str, int], int, int]:
    """How many of these records have which pattern, how many there are, and how many have no text."""
    texts = [record.get(key) for record in found]
    to = patterns_of({mask(text) for text in texts if isinstance(text, str)})
    asked = [record for record in found if condition is None or condition(record)]
    own = [mask(record[key]) for record in asked if isinstance(record.get(key), str)]
    return dict(Counter(to[each] for each in own)), len(asked), len(asked) - len(own)


def check(db: Any, found: list[Any], where: Any = None, condition: Any = None) -> Patterns:
    """All that is said of patterns is what the records say."""
    shown = db.patterns(where, field="message")
    counts, total, missing = counted(found, condition)
    assert [(row.pattern, row.count) for row in shown] == sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    assert (shown.total, shown.missing, shown.distinct, shown.others) == (total, missing, len(counts), 0)
    times: dict[str, Counter[datetime]] = defaultdict(Counter)
    to = patterns_of({mask(record["message"]) for record in found if isinstance(record.get("message"), str)})
    for record in found:
        if isinstance(record.get("message"), str) and "time" in record and (condition is None or condition(record)):
            times[to[mask(record["message"])]][datetime.fromisoformat(record["time"])] += 1
    for row in shown:
        assert db.query(where).where(fits_operation("message", row.pattern)).count() == row.count
        assert len(row.counts) == len(shown.starts)
        ends = [*shown.starts[1:], datetime.max.replace(tzinfo=UTC)]
        for start, end, count in zip(shown.starts, ends, row.counts, strict=False):
            assert count == sum(times[row.pattern][time] for time in times[row.pattern] if start <= time < end)
        assert sum(row.counts) == sum(times[row.pattern].values())
    assert db.query(where).patterns(field="message", limit=2).rows == shown.rows[:2]
    assert db.patterns(where, field="message", every=None).counts == shown.counts
    return shown


@settings(max_examples=tries(40, 1500), deadline=None)
@given(st.sampled_from(["json", "msgpack", "bipf"]), records, st.integers(0, 60), st.integers(0, 300))
def test_patterns_are_those_of_the_records(
    tmp_path_factory: pytest.TempPathFactory, codec: str, found: list[Any], first: int, minute: int
) -> None:
    first = min(first, len(found))
    log = Log(tmp_path_factory.mktemp("patterns") / "log", codec=codec)
    offsets = log.append_many(found[:first])
    log.flush()
    with JITDB(log, "memory", progress=False, timestamp="time") as db:
        check(db, found[:first])
        offsets += log.append_many(found[first:])
        log.flush()
        check(db, found)
        check(db, found, "n == 1", lambda record: record["n"] == 1)
        since = BEGIN + timedelta(minutes=minute)
        with catch_warnings():
            simplefilter("ignore", QuestionWarning)  # where no record is earlier
            shown = db.patterns(field("n") > 0, field="message", new_since=since)
        earlier = {mask(record["message"]) for record in found if _before(record, since) and _has_text(record)}
        new = [not any(fits(row.pattern, own) for own in earlier) for row in shown]
        assert [row.is_new for row in shown] == new == sorted(new, reverse=True)
        assert shown.new == sum(new)
        with catch_warnings():
            simplefilter("ignore", QuestionWarning)
            some = db.patterns(field("n") > 0, field="message", new_since=since, limit=1)
        assert (some.rows, some.new) == (shown.rows[:1], shown.new)
        for number in range(0, len(offsets), 3):
            log.delete(offsets[number])
        log.flush()
        left = [record for number, record in enumerate(found) if number % 3]
        everything = patterns_of({mask(record["message"]) for record in found if _has_text(record)})
        kept = Counter(everything[mask(record["message"])] for record in left if _has_text(record))
        assert {row.pattern: row.count for row in db.patterns(field="message")} == kept
        if first:
            shown = db.query().as_of(offsets[first - 1]).patterns(field="message")
            before = [record for number, record in enumerate(found[:first]) if number % 3]
            kept = Counter(everything[mask(record["message"])] for record in before if _has_text(record))
            assert {row.pattern: row.count for row in shown} == kept


def _has_text(record: Any) -> bool:
    return isinstance(record.get("message"), str)


def _before(record: Any, time: datetime) -> bool:
    return "time" in record and datetime.fromisoformat(record["time"]) < time


def service(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Records of a service, with something that begins in the middle."""
    rng, found = random.Random(seed), []
    names = ["ada", "bob", "eve", "lee", "kim", "sam"]
    for number in range(count):
        text = rng.choice([
            f"user {rng.choice(names)} logged in from 10.0.0.{rng.randrange(256)}",
            f"cache {rng.choice(['hit', 'miss'])} for item:{rng.randrange(999)} after {rng.random():.2f}ms",
            f"worker-{rng.randrange(9)} picked job {rng.getrandbits(64):016x}",
        ])  # fmt: skip
        if number > count // 2 and number % 7 == 0:
            text = f"pool timeout after {rng.randrange(9999)}ms waiting for connection {rng.randrange(9)}/9"
        time = BEGIN + timedelta(seconds=number)
        found.append({"time": time.isoformat(), "level": rng.choice(["info", "error"]), "msg": text})
    return found


def written(path: Path, found: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in found))
    return path


def test_the_message_is_found_by_its_usual_name(tmp_path: Path) -> None:
    found = service(3000)
    with jitdb.open(written(tmp_path / "a.ndjson", found), progress=False) as db:
        shown = db.patterns(new_since=BEGIN + timedelta(seconds=1500))
        assert shown.path == ("msg",)
        assert {row.pattern: row.count for row in shown} == counted(found, key="msg")[0]
        assert [row.pattern for row in shown if row.is_new] == [
            "pool timeout after <num>ms waiting for connection <num>/<num>"
        ]
        assert {row.pattern for row in shown if "cache" in row.pattern} == {
            "cache hit for item:<num> after <num>ms",
            "cache miss for item:<num> after <num>ms",
        }  # which are two, not <*>
        assert "user <*> logged in from <ip>" in {row.pattern for row in shown}
        assert query(from_db(db), patterns(limit=3), to_result()).rows == db.patterns(limit=3).rows
        errors = db.patterns("level == 'error'")
        assert {row.pattern for row in errors} == {row.pattern for row in shown}  # as of all records
        assert sum(errors.counts) == db.count("level == 'error'")
    with jitdb.open(tmp_path / "a.ndjson", progress=False) as again:  # the index is there
        assert again.explain(fits_operation("msg", "x")).log_bytes >= 0
        assert again.patterns(new_since=BEGIN + timedelta(seconds=1500)) == shown


def test_many_logs_are_as_one(tmp_path: Path) -> None:
    found = service(2000)
    parts = [found[begin::5] for begin in range(5)]
    for number, part in enumerate(parts):
        written(tmp_path / "many" / f"{number}.ndjson", part)
    with (
        jitdb.open(written(tmp_path / "one.ndjson", found), progress=False) as one,
        jitdb.open_many(tmp_path / "many", progress=False) as many,
    ):
        for where in (None, "level == 'error'"):
            since = BEGIN + timedelta(seconds=1200)
            assert many.patterns(where, new_since=since) == one.patterns(where, new_since=since)
            assert many.patterns(where, limit=2) == one.patterns(where, limit=2)
        assert many.count('msg fits "user <*> logged in from <ip>"') == sum("user" in r["msg"] for r in found)


def test_of_many_logs_the_field_is_that_of_most(tmp_path: Path) -> None:
    for number, name in enumerate(["msg", "text", "msg"]):
        written(tmp_path / f"{number}.ndjson", [{name: f"took {n}ms"} for n in range(3)])
    with jitdb.open_many(tmp_path, progress=False) as logs:
        shown = logs.patterns()
        assert (shown.path, shown.total, shown.missing) == (("msg",), 9, 3)
        assert logs.messages == [("msg",), ("text",)]


def test_where_nothing_is_earlier_all_are_new(tmp_path: Path) -> None:
    with jitdb.open(written(tmp_path / "a.ndjson", service(100)), progress=False) as db:
        shown = db.patterns(new_since="2026-11-19")
        assert all(row.is_new for row in shown)
        assert f"; {len(shown)} new: no record of the log is earlier; " in str(shown)
        assert db.patterns(new_since="2027-01-01").matching == 100
        assert all(row.is_new is None for row in db.patterns())
        with pytest.raises(QueryError):
            db.patterns(new_since="soon")
        with pytest.raises(QueryError):
            db.patterns(field="a[]")
        with pytest.raises(QueryError):
            db.patterns(limit=0)


def test_without_times_there_are_counts_alone(tmp_path: Path) -> None:
    found = [{"message": f"took {number}ms"} for number in range(9)] + [{"n": 1}]
    with jitdb.open(written(tmp_path / "a.ndjson", found), progress=False) as db:
        shown = db.patterns()
        assert [(row.pattern, row.count, sum(row.counts)) for row in shown] == [("took <num>ms", 9, 0)]
        assert "1 without text in `message`" in str(shown)
    with jitdb.open(written(tmp_path / "empty.ndjson", []), progress=False) as db:
        assert db.patterns().rows == ()


def test_a_text_that_is_written_like_a_placeholder_is_none(tmp_path: Path) -> None:
    found = [{"message": text} for text in ("took <num>ms", "took 5ms", "took 6ms", "took <*>ms", "<...>")]
    with jitdb.open(written(tmp_path / "a.ndjson", found), progress=False) as db:
        assert {row.pattern: row.count for row in db.patterns()} == {"took <num>ms": 2, "took <id>ms": 2, "<id>": 1}
        assert db.count('message fits "took <num>ms"') == 2


HOSTILE = [
    "x" * 1_000_000, "1," * 500_000, "word " * 200_000, "\x00\x1b[31mred\x1b[0m 5", "\u202e 5 \u2066",
    "<script>5</script>", "\udcff\udcfe 5", "a\r\nb\r\n5", "%s %d {}", "=1+1", "\u2028 5",
]  # fmt: skip


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_hostile_texts(tmp_path: Path, codec: str) -> None:
    texts = HOSTILE if codec == "msgpack" else [text for text in HOSTILE if "\udcff" not in text]
    log = Log(tmp_path / "log", codec=codec, block_size=16 << 20)
    log.append_many([{"message": text} for text in texts for _ in range(2)])
    log.flush()
    with JITDB(log, "memory", progress=False) as db:
        shown = db.patterns()
        assert {row.pattern: row.count for row in shown} == Counter(mask(text) for text in texts for _ in range(2))
        for row in shown:
            assert db.count(fits_operation("message", row.pattern)) == row.count
        assert "\x1b" not in str(shown)
        assert "<script>" not in shown._repr_html_()
        assert max(len(row.pattern.encode("utf-8", "surrogateescape")) for row in shown) < 1200


def test_broken_text_in_a_file_of_lines(tmp_path: Path) -> None:
    lines = [b'{"message": "bad \xff\xfe 5"}', b'{"message": "bad \\ud800 5"}', b'{"message": "good 5"}']
    (tmp_path / "a.ndjson").write_bytes(b"\n".join(lines) + b"\n")
    with jitdb.open(tmp_path / "a.ndjson", progress=False) as db:
        with pytest.warns(MalformedWarning):
            texts = [record["message"] for record in db.query().all()]
        assert {row.pattern: row.count for row in db.patterns()} == Counter(map(mask, texts))


def test_too_many_to_be_compared(tmp_path: Path) -> None:
    a, count = "abcdefghijklmnopqrstuvwxyz", MOST + 1000
    held = [f"x{a[n % 26]}{a[n // 26 % 26]}{a[n // 676 % 26]}{a[n // 17576]}" for n in range(count)]
    found = [{"time": BEGIN.isoformat(), "message": text} for text in [*held, "often", "often"]]
    with jitdb.open(written(tmp_path / "a.ndjson", found), progress=False) as db:
        shown = db.patterns(limit=3, new_since="2030-01-01")
        assert [(row.pattern, row.count) for row in shown] == [("often", 2), ("xaaaa", 1), ("xaaab", 1)]
        assert (shown.distinct, shown.others, shown.alike) == (count + 1, count - 2, False)
        assert all(row.is_new is None for row in shown)
        assert "too many" in str(shown)
