"""Live delivery, and questions beside a writer who is busy."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jitdb
from jitdb import Log
from jitdb.operators import as_offsets, from_db, live, query, to_iter, where

from ..data import FOLDER, big_log
from ..measure import Figure, per_second
from ..questions import POST
from .writing import remove

_LOG = FOLDER / "living.bipf"
_DELIVERIES = 200
_RATE = 100_000  # records a second that the busy writer appends

_WRITER = """
import sys, time
from jitdb import Log
path, rate = sys.argv[1], int(sys.argv[2])
with Log(path, flush_interval=3600) as log:
    record = next(log.stream(raw=True)).value
    print("ready", flush=True)
    for line in sys.stdin:
        log.append(log.codec.decode(record))
        log.flush()
        print(time.time(), flush=True)
"""

_BUSY = """
import sys, time
from jitdb import Log
path, rate = sys.argv[1], int(sys.argv[2])
with Log(path) as log:
    fresh = [record.value for record in log.stream(limit=rate // 50)]
    print("ready", flush=True)
    begin, written = time.monotonic(), 0
    while True:
        log.append_many(fresh)
        written += len(fresh)
        ahead = written / rate - (time.monotonic() - begin)
        if ahead > 0:
            time.sleep(ahead)
        if written % (rate // 5) == 0:
            print(written, flush=True)
"""


def run() -> list[Figure]:
    remove(_LOG)
    shutil.copyfile(big_log(), _LOG)
    try:
        return [same_process(), other_process(), throughput(), *beside_a_writer()]
    finally:
        remove(_LOG)


def same_process() -> Figure:
    """From the end of flush to the record in the hand of the loop that waits for it."""
    with jitdb.open(_LOG) as db:
        log = db.log
        assert isinstance(log, Log)
        record = next(log.stream(raw=True))
        value = log.codec.decode(record.value)
        stream = query(from_db(db), where(), as_offsets(), live(), to_iter())
        arrived: list[float] = []
        thread = threading.Thread(target=lambda: arrived.extend(time.perf_counter() for _ in stream))
        thread.start()
        delays = []
        for number in range(_DELIVERIES):
            log.append(value)
            log.flush()
            durable = time.perf_counter()
            while len(arrived) <= number:
                time.sleep(0.0001)
            delays.append(arrived[-1] - durable)
        stream.close()
        thread.join()
    return Figure("from flush to live delivery, same process", 1e3 * statistics.median(delays), "ms")


def other_process() -> Figure:
    """The same, to a reader in another process; a record every 50 ms."""
    with jitdb.open(_LOG, read_only=True) as db, _started(_WRITER) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        stream = query(from_db(db), where(), as_offsets(), live(), to_iter())
        arrived: list[float] = []
        thread = threading.Thread(target=lambda: arrived.extend(time.time() for _ in stream))
        thread.start()
        delays = []
        for number in range(_DELIVERIES // 4):
            writer.stdin.write("\n")
            writer.stdin.flush()
            durable = float(writer.stdout.readline())
            while len(arrived) <= number:
                time.sleep(0.0001)
            delays.append(arrived[-1] - durable)
            time.sleep(0.05)
        stream.close()
        thread.join()
    figure = 1e3 * statistics.median(delays)
    return Figure("from flush to live delivery, another process", figure, "ms", "", None, "under 500 ms")


def throughput() -> Figure:
    """Matching records, decoded, that a stream which is behind delivers."""
    with jitdb.open(_LOG, read_only=True) as db:
        total = db.count(POST)

        def catch_up() -> None:
            feed = db.feed(POST, limit=1000, old=True)
            found = 0
            while (portion := feed.read()) is not None:
                found += len(portion.data)
            assert found == total

        rate = per_second(catch_up, total, runs=3)

        def all_at_once() -> None:
            assert len(db.all(POST, sort_by="arrival")) == total

        peer = per_second(all_at_once, total, runs=3)
    return Figure("live, catching up: records a second, decoded", rate, "/s", "all() at once", peer, better="more")


def beside_a_writer() -> list[Figure]:
    """Questions in a reader's process while another one appends; each sees the newest durable records."""
    with jitdb.open(_LOG, read_only=True) as db:
        db.count(POST)
        alone = _latencies(lambda: _ask(db), 2.0)
        with _started(_BUSY) as writer:
            before, begin = db.count(), time.perf_counter()
            busy = _latencies(lambda: _ask(db), 6.0)
            rate = (db.count() - before) / (time.perf_counter() - begin)
            writer.kill()
    asked = f"count beside a writer of {rate:,.0f} records/s, refreshed each time"
    return [
        Figure(f"{asked}: median", 1e3 * statistics.median(busy), "ms", "no writer", 1e3 * statistics.median(alone)),
        Figure(f"{asked}: 99 of 100 under", 1e3 * sorted(busy)[int(0.99 * len(busy))], "ms"),
    ]


def _ask(db: jitdb.JITDB) -> None:
    db.refresh()
    db.count(POST)


def _latencies(ask: object, seconds: float) -> list[float]:
    assert callable(ask)
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        ask()
        times.append(time.perf_counter() - begin)
        time.sleep(0.005)
    return times


@contextmanager
def _started(program: str, path: Path = _LOG) -> Iterator[subprocess.Popen[str]]:
    writer = subprocess.Popen(
        [sys.executable, "-c", program, str(path), str(_RATE)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    try:
        yield writer
    finally:
        if writer.stdin is not None:
            writer.stdin.close()
        writer.wait()
        if writer.stdout is not None:
            writer.stdout.close()
