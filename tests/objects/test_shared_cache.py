"""Processes that share one cache: each gets right answers, while others build, wait, evict or die."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from thoroughness import tries
from waiting import until

import jitdb
from tests.objects.stores import asked_at, moto

pytest.importorskip("moto.server")
pytest.importorskip("boto3")
pytestmark = pytest.mark.slow

LEVELS = ("info", "warn", "error")
WHERE = "s3://logs/day/**"


class Store:
    """moto's server with gzipped objects, and what is in them."""

    def __init__(self, client: Any, cache: Path) -> None:
        self.client, self.cache = client, cache
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._random = random.Random(3)
        client.create_bucket(Bucket="logs")
        for number in range(24):
            self.put(f"day/{number:03d}.ndjson.gz")
        self.put("one.ndjson", 2000)

    def put(self, key: str, most: int = 80) -> None:
        rows = [
            {"n": number, "level": self._random.choice(LEVELS), "pad": "x" * 300}
            for number in range(self._random.randrange(most // 2, most))
        ]
        data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        self.client.put_object(Bucket="logs", Key=key, Body=gzip.compress(data) if key.endswith(".gz") else data)
        self.rows[key] = rows

    def count(self, question: str, place: str = WHERE) -> int:
        """How many records a loop finds."""
        field, _, value = question.partition(" == ")
        begin = place.removeprefix("s3://logs/").removesuffix("**")
        wanted = json.loads(value)
        return sum(row[field] == wanted for key, rows in self.rows.items() if key.startswith(begin) for row in rows)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with moto() as (url, client):
        urlopen(f"{url}/moto-api/reset", b"").close()  # it remembers what an earlier one held
        asked_at(url, monkeypatch, tmp_path / "cache")
        yield Store(client, tmp_path / "cache")


def ask(place: str, question: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "jitdb", "count", place, question]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answers(asked: list[subprocess.Popen[str]]) -> list[int]:
    """Of each process, which ends well and has nothing to warn of."""
    found = []
    for process in asked:
        said, complaint = process.communicate(timeout=120)
        assert process.returncode in (0, 1), complaint
        assert "arning" not in complaint, complaint
        found.append(int(said))
    return found


QUESTIONS = [f'level == "{level}"' for level in LEVELS] + ["n == 7"]


def all_right(store: Store, questions: list[str], place: str = WHERE) -> None:
    found = answers([ask(place, question) for question in questions])
    assert found == [store.count(question, place) for question in questions]


@pytest.mark.parametrize("place", [WHERE, "s3://logs/one.ndjson"])
def test_a_cold_cache_and_a_warm_one(store: Store, place: str) -> None:
    all_right(store, [QUESTIONS[0], QUESTIONS[0], QUESTIONS[3]], place)
    all_right(store, [QUESTIONS[1], QUESTIONS[2], QUESTIONS[3]], place)


def test_objects_come_go_and_are_replaced_between(store: Store) -> None:
    all_right(store, QUESTIONS[:2])
    for turn in range(tries(2, 20)):
        store.put(f"day/{turn:03d}.ndjson.gz")
        store.put(f"day/new-{turn}.ndjson.gz")
        gone = sorted(store.rows)[5 + turn]
        store.client.delete_object(Bucket="logs", Key=gone)
        del store.rows[gone]
        all_right(store, [QUESTIONS[0], QUESTIONS[3]])


@contextmanager
def aging(cache: Path) -> Iterator[None]:
    """As if all that is kept had been used long ago, though it is used now."""
    ended = threading.Event()

    def age() -> None:
        while not ended.wait(0.005):
            for folder, _, _ in os.walk(cache):
                with suppress(FileNotFoundError):
                    os.utime(folder, (1e9, 1e9))

    thread = threading.Thread(target=age)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_bound_that_lets_nothing_stay(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process evicts what the others use."""
    monkeypatch.setenv("JITDB_CACHE_BYTES", "4k")
    with aging(store.cache):
        for _ in range(tries(3, 30)):
            all_right(store, [QUESTIONS[0], QUESTIONS[1], QUESTIONS[3]])
            all_right(store, [QUESTIONS[0], QUESTIONS[3]], "s3://logs/one.ndjson")
            assert len(jitdb.kept("s3://")) < 3


def test_one_is_killed_at_any_moment(store: Store) -> None:
    chance = random.Random(5)
    for _ in range(tries(4, 60)):
        killed, other = ask(WHERE, QUESTIONS[0]), ask(WHERE, QUESTIONS[3])
        with suppress(AssertionError):
            until(lambda: any(store.cache.rglob("*.index*")), seconds=2)
        time.sleep(chance.random() * 0.3)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        assert answers([other]) == [store.count(QUESTIONS[3])]
        all_right(store, QUESTIONS[:2])
        for path in store.cache.rglob("*"):  # begin with nothing again, or with a part of it
            if path.is_file() and chance.random() < 0.5:
                path.unlink()
