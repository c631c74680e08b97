"""Many objects are asked as one log: in few requests, and as they are now."""

from __future__ import annotations

import gzip
import json
import random
from typing import Any, Final

import pytest

import jitdb
from jitdb.errors import QueryError, ScanTooLarge
from jitdb.operators import field
from tests.objects.bucket import Asked, Bucket, Fault
from tests.objects.stores import forget_looks

PAD: Final = "x" * 400
LEVELS: Final = ("info", "warn", "error")


class Objects:
    """The objects that there are, and the records that they hold."""

    def __init__(self, bucket: Bucket, random: random.Random) -> None:
        self._root, self._random = bucket.root / "logs", random
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._next = 0

    def put(self, key: str) -> None:
        rows = [
            {
                "n": self._next + number,
                "level": self._random.choice(["info", "warn", "error"]),
                "timestamp": 10**12 + number,
                "pad": PAD,
            }
            for number in range(self._random.randrange(1, 60))
        ]
        self._next += len(rows)
        data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        path = self._root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data) if key.endswith(".gz") else data)
        self.rows[key] = rows

    def remove(self, key: str) -> None:
        (self._root / key).unlink()
        del self.rows[key]

    def numbers(self, level: str, begin: str = "") -> list[int]:
        return sorted(
            row["n"]
            for key, rows in self.rows.items()
            if key.startswith(begin)
            for row in rows
            if row["level"] == level
        )


def key_of(number: int, ending: str) -> str:
    return f"dt=2026-11-{1 + number % 5:02d}/{number:04d}.json{ending}"


def numbers_of(place: str, level: str) -> list[int]:
    with jitdb.open_many(place) as logs:
        found = sorted(record["n"] for record in logs.query(field("level") == level))
        assert logs.count(field("level") == level) == len(found)
        return found


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_what_came_went_or_was_replaced_shows(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    source = random.Random(7)
    objects = Objects(bucket, source)
    for number in range(40):
        objects.put(key_of(number, ending))
    for step in range(8):
        assert numbers_of("s3://logs/", "error") == objects.numbers("error"), step
        assert numbers_of("s3://logs/dt=2026-11-02/*", "warn") == objects.numbers("warn", "dt=2026-11-02/")
        keys = sorted(objects.rows)
        for key in source.sample(keys, 2):
            objects.remove(key)
        objects.put(source.choice(sorted(objects.rows)))
        for _ in range(source.randrange(12)):
            objects.put(key_of(1000 + source.randrange(1000), ending))
        forget_looks(monkeypatch)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_few_requests_tell_that_all_is_known(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    objects = Objects(bucket, random.Random(1))
    for number in range(120):
        objects.put(key_of(number, ending))
    bucket.page = 50
    assert numbers_of("s3://logs/", "error") == objects.numbers("error")
    assert len(bucket.asked) < 120 * 1.2 + 10  # each object is read once, and a few are looked at before

    def again(place: str) -> int:
        forget_looks(monkeypatch)
        bucket.asked.clear()
        with jitdb.open_many(place) as logs:
            return logs.count(field("level") == "error")

    assert again("s3://logs/") == len(objects.numbers("error"))
    assert {asked.method for asked in bucket.asked} == {"LIST"}
    assert len(bucket.asked) == 3
    assert again("s3://logs/dt=2026-11-03/**") == len(objects.numbers("error", "dt=2026-11-03/"))
    assert len(bucket.asked) == 1
    for number in range(200, 210):
        objects.put(key_of(number, ending))
    assert again("s3://logs/") == len(objects.numbers("error"))
    read = sum(asked.method != "LIST" for asked in bucket.asked)
    assert read <= 10 + 40  # the new ones, and those in the 256 KiB before them


def test_an_object_that_is_replaced_while_many_are_read_is_never_mixed(bucket: Bucket) -> None:
    objects = Objects(bucket, random.Random(3))
    for number in range(30):
        objects.put(key_of(number, ".gz"))
    before = objects.numbers("error")

    def replace(number: int, asked: Asked) -> Fault | None:
        return Fault(before=lambda: objects.put(key_of(20, ".gz"))) if number == 12 else None

    bucket.fault = replace
    with jitdb.open_many("s3://logs/") as logs:
        found = sorted(record["n"] for record in logs.query(field("level") == "error"))
        assert found in (before, objects.numbers("error"))
        logs.refresh()
        assert sorted(record["n"] for record in logs.query(field("level") == "error")) == objects.numbers("error")


def test_the_cache_has_them_together(bucket: Bucket) -> None:
    objects = Objects(bucket, random.Random(5))
    for number in range(30):
        objects.put(f"app/{number:03d}.json.gz")
    with jitdb.open_many("s3://logs/app/*.gz") as logs:
        assert logs.count(field("level") == "error") == len(objects.numbers("error"))
    kept = {each.path for each in jitdb.kept("s3://logs/app")}
    assert "s3://logs/app/" in kept
    assert jitdb.forget("s3://")
    assert jitdb.kept("s3://") == []


def test_a_new_field_is_asked_of_what_is_left(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = Objects(bucket, random.Random(13))
    for number in range(30):
        objects.put(key_of(number, ".gz"))
    with jitdb.open_many("s3://logs/") as logs:
        assert logs.count(field("level") == "error") == len(objects.numbers("error"))
    objects.remove(key_of(7, ".gz"))
    objects.put(key_of(9, ".gz"))
    forget_looks(monkeypatch)
    with jitdb.open_many("s3://logs/") as logs:
        assert logs.count(field("n") >= 0) == sum(map(len, objects.rows.values()))


def test_an_explanation_reads_no_object(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = Objects(bucket, random.Random(9))
    for number in range(40):
        objects.put(key_of(number, ".gz"))
    stored = sum(path.stat().st_size for path in bucket.root.rglob("*.gz"))
    with jitdb.open_many("s3://logs/") as logs:
        told = logs.explain(field("level") == "error")
    assert (told.requests, told.request_bytes) == (40, stored)
    assert {asked.method for asked in bucket.asked} == {"LIST"}
    with jitdb.open_many("s3://logs/") as logs:
        assert logs.count(field("level") == "error") == len(objects.numbers("error"))
        assert logs.explain(field("level") == "error").is_ready
        other = logs.explain(field("n") == 1)
        assert (other.requests, other.request_bytes) == (40, stored)
    objects.put(key_of(300, ".gz"))
    forget_looks(monkeypatch)
    with jitdb.open_many("s3://logs/") as logs:
        told = logs.explain(field("level") == "error")
    assert told.requests == 1


def test_too_much_is_refused_before_an_object_is_read(bucket: Bucket) -> None:
    objects = Objects(bucket, random.Random(9))
    for number in range(40):
        objects.put(key_of(number, ".gz"))
    stored = sum(path.stat().st_size for path in bucket.root.rglob("*.gz"))
    with jitdb.open_many("s3://logs/", max_bytes=stored - 1) as logs, pytest.raises(ScanTooLarge):
        logs.count(field("level") == "error")
    assert {asked.method for asked in bucket.asked} == {"LIST"}
    with jitdb.open_many("s3://logs/", max_bytes=stored) as logs:
        assert logs.count(field("level") == "error") == len(objects.numbers("error"))
        with pytest.raises(ScanTooLarge):
            logs.count(field("n") == 1)


def test_a_set_that_is_opened_to_follow_sees_what_came(bucket: Bucket) -> None:
    objects = Objects(bucket, random.Random(11))
    for number in range(12):
        objects.put(key_of(number, ".gz"))
    with jitdb.open_many("s3://logs/", follow=True) as logs:
        assert logs.count(field("level") == "error") == len(objects.numbers("error"))
        objects.put(key_of(70, ".gz"))
        objects.remove(key_of(3, ".gz"))
        assert logs.count(field("level") == "error") == len(objects.numbers("error"))
        with pytest.raises(QueryError, match="does not grow"):
            next(iter(logs.live()))
    with jitdb.open(f"s3://logs/{key_of(1, '.gz')}") as db, pytest.raises(QueryError, match="does not grow"):
        next(iter(db.live()))
