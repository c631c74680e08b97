"""The message store: storing, backfill and deletion, beside the full scan that its document settles for.

python -m benchmarks spool; JITDB_BENCH_MESSAGES=100000,1000000 says how many messages there are, JITDB_BENCH_SENDERS
of how many senders. The peer reads every value of the same log, one after the other, as the document has it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from jitdb import Log
from jitdb.operators import and_, field, lt, lte, or_
from jitdb.stores.spool import Spool

from ..data import FOLDER
from ..measure import Figure, median_ms, seconds

SIZES: Final = tuple(int(size) for size in os.environ.get("JITDB_BENCH_MESSAGES", "100000").split(","))
SENDERS: Final = int(os.environ.get("JITDB_BENCH_SENDERS", "10000"))
GROUP: Final = b"group"
MESSAGE: Final = b"\x5a" * 200  # bytes
SCAN: Final = "full scan"

Vector = dict[bytes, int]


def sender(number: int) -> bytes:
    return number.to_bytes(8, "big")


def run() -> Iterator[Figure]:
    for size in SIZES:
        base = Path(FOLDER) / f"spool-{size}"
        shutil.rmtree(base, ignore_errors=True)
        rate = size / seconds(fill, base, size)
        where, count = f"{size:,} messages", size // SENDERS
        yield Figure(f"spool store, {where}", 1e6 / rate, "µs")
        yield Figure(f"spool open, indexes built, {where}", 1e3 * opened_in(base, again=True), "ms")
        yield Figure(f"spool open, {where}", 1e3 * opened_in(base), "ms")
        yield from backfills(base, size, where)
        most = max(1, count // 100)
        oldest = {sender(number): most - 1 for number in range(size // 100 // most)}
        yield from deletions(base, size, f"the oldest of {len(oldest):,} senders, {where}", oldest)
        some = {sender(number * 100): count for number in range(SENDERS // 100)}
        yield from deletions(base, size, f"all of {len(some):,} senders, {where}", some)
        yield from by_operators(base, {each: count // 2 + number % 40 for number, each in enumerate(some)}, where)


def fill(base: Path, size: int) -> None:
    with Spool(base, create=True) as spool:
        for number in range(size):
            spool.store(GROUP, sender(number % SENDERS), number // SENDERS, int(number % 1000 == 999), MESSAGE)


def opened_in(base: Path, *, again: bool = False) -> float:
    """Seconds to the first answer."""
    if again:
        shutil.rmtree(next(base.glob("*.log.jitdb")) / "indexes", ignore_errors=True)
    spools: list[Spool] = []
    taken = seconds(lambda: (spools.append(Spool(base)), spools[0].state_vector(GROUP)))
    spools[0].close()
    return taken


def backfills(base: Path, size: int, where: str) -> Iterator[Figure]:
    """Of as many messages, the newest of some senders."""
    count = size // SENDERS
    with Spool(base) as spool:
        log = spool.group(GROUP).log
        for wanted in (10, 100, 1000, 10_000):
            if wanted <= SENDERS:
                vector = {sender(number): count - 1 - (number < wanted) for number in range(SENDERS)}
                assert len(spool.messages_after(GROUP, vector).messages) == wanted
                ours = median_ms(lambda vector=vector: spool.messages_after(GROUP, vector), 5)
                theirs = 1e3 * seconds(lambda vector=vector: scanned_after(log, vector)) if wanted == 100 else None
                yield Figure(f"spool backfill of {wanted:,}, {where}", ours, "ms", SCAN if theirs else "", theirs)
        everything = 1e3 * seconds(spool.messages_after, GROUP, {})
        yield Figure(f"spool backfill of all, {where}", everything, "ms", SCAN, 1e3 * seconds(scanned_after, log, {}))


def scanned_after(log: Log, vector: Vector) -> list[tuple[bytes, int, bytes]]:
    """The document's get_messages_after: every value is read."""
    found = []
    for _, _, value in log.stream():
        reached = vector.get(value["sender"])
        if reached is not None and value["seq"] <= reached:
            continue
        found.append((value["sender"], value["seq"], value["message"]))
    return sorted(found)


def scanned_delete(log: Log, watermark: Vector, level: int) -> int:
    """The document's delete_before_watermark."""
    deleted = 0
    for offset, _, value in log.stream():
        reached = watermark.get(value["sender"])
        if reached is None or value["seq"] > reached or value["level"] >= level:
            continue
        log.delete(offset)
        deleted += 1
    return deleted


def deletions(base: Path, size: int, where: str, watermark: Vector) -> Iterator[Figure]:
    """1 % of all, until they are gone from the disk."""
    counts: list[int] = []

    def ours(spool: Spool) -> Any:
        spool.state_vector(GROUP)
        return lambda: (counts.append(spool.delete_before(GROUP, watermark, 1)), spool.flush())

    def theirs(spool: Spool) -> Any:
        log = spool.group(GROUP).log
        return lambda: (counts.append(scanned_delete(log, watermark, 1)), log.flush())

    def hidden(spool: Spool) -> Any:
        spool.state_vector(GROUP)
        return lambda: spool.delete_before(GROUP, watermark, 1)

    times = [on_copy(base, work) for work in (ours, theirs, hidden)]
    assert counts[0] == counts[1] > size // 120
    yield Figure(f"spool delete {counts[0]:,}, {where}", 1e3 * times[0], "ms", SCAN, 1e3 * times[1], "", "20 x")
    yield Figure(f"the same until they are in no answer, {where}", 1e3 * times[2], "ms")


def on_copy(base: Path, work: Callable[[Spool], Callable[[], Any]]) -> float:
    """The median seconds of some runs, each on a copy of its own."""
    times = []
    for _ in range(3):
        copy = base.with_name("spool-copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(base, copy)
        os.sync()  # else whoever syncs first waits for all of it
        with Spool(copy) as spool:
            times.append(seconds(work(spool)))
    return sorted(times)[1]


def by_operators(base: Path, watermark: Vector, where: str) -> Iterator[Figure]:
    """Offsets by the operators of the engine: what a spool's own order of the keys saves. Some of the seqs differ."""
    reached = or_(*(and_(field("sender") == each, lte(seq, "seq")) for each, seq in watermark.items()))
    with Spool(base) as spool:
        index = spool.group(GROUP).index
        index.prepare(and_(reached, lt(1, "level")))
        taken = 1e3 * seconds(lambda: index.all(and_(reached, lt(1, "level")), sort_by="arrival", as_offsets=True))
    yield Figure(f"spool offsets of {len(watermark)} senders by operators, {where}", taken, "ms")
