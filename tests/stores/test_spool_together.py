"""A spool that several use at once: threads, a reader beside the writer, a compaction meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jitdb.errors import LogLocked, LogReadOnly
from jitdb.stores.spool import (
    NoSuchGroup,
    Spool,
)

G = b"group"
ADA, BOB, EVE = b"ada-----", b"bob-----", b"eve-----"


@pytest.fixture
def spool(tmp_path: Path):
    with Spool(tmp_path, create=True) as found:
        yield found


def texts(spool: Spool, vector: dict[bytes, int] | None = None) -> list[bytes | None]:
    return [each.message for each in spool.messages_after(G, vector or {}).messages]


def test_threads_that_read_while_one_writes(spool: Spool) -> None:
    """Each reader sees all messages of the beginning, none twice, and in order; what was overwritten has one value."""
    for number in range(2000):
        spool.store(G, bytes([number % 5]) * 8, number // 5, 0, b"old")
    done = threading.Event()
    failures: list[BaseException] = []
    rounds = [0, 0, 0]

    def read(number: int) -> None:
        try:
            while not done.is_set():
                token, found = None, []
                while True:
                    part = spool.messages_after(G, {}, None if number == 0 else 300, after=token)
                    found += part.messages
                    token = part.next
                    if token is None:
                        break
                keys = [each[:2] for each in found]
                assert all(before < after for before, after in pairwise(keys))
                assert {(bytes([old % 5]) * 8, old // 5) for old in range(2000)} <= set(keys)
                assert {each.message for each in found if each.seq < 400} <= {b"old", b"new"}
                rounds[number] += 1
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read, args=(number,)) for number in range(3)]
    for reader in readers:
        reader.start()
    deadline = time.monotonic() + 60
    number = 0
    while (number < 1000 or min(rounds) < 1) and not failures and time.monotonic() < deadline:
        spool.store(G, bytes([number % 5]) * 8, number % 400, 0, b"new")
        spool.store(G, bytes([9]) * 8, number + 1000, 0, b"newer")
        if number % 400 == 399:
            spool.delete_before(G, {bytes([9]) * 8: number + 900}, 1)
            spool.flush()
        if number % 700 == 699:
            spool.compact(G)
        number += 1
    done.set()
    for reader in readers:
        reader.join()
    assert not failures
    assert min(rounds) >= 1


READER = """
import sys
from jitdb.stores.spool import Spool
with Spool(sys.argv[1], read_only=True) as spool:
    for line in sys.stdin:
        spool.refresh()
        found = spool.messages_after(b"group", {b"ada-----": 1})
        print([(each.seq, each.level, each.message) for each in found.messages], flush=True)
"""


def test_a_process_that_reads_beside_the_writer(spool: Spool, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None

        def read() -> str:
            spool.flush()
            print(file=reader.stdin, flush=True)
            return reader.stdout.readline().strip() if reader.stdout is not None else ""

        assert read() == "[]"  # there is no such group yet
        for seq in range(4):
            spool.store(G, ADA, seq, 0, b"%d" % seq)
        assert read() == "[(2, 0, b'2'), (3, 0, b'3')]"
        spool.store(G, ADA, 4, 1, b"4")
        assert read() == "[(2, 0, b'2'), (3, 0, b'3'), (4, 1, b'4')]"
        spool.store(G, ADA, 3, 0, b"new")
        spool.delete_before(G, {ADA: 2}, 1)
        assert read() == "[(3, 0, b'new'), (4, 1, b'4')]"
        spool.compact(G)
        spool.store(G, ADA, 9, 0, b"9")
        assert read() == "[(3, 0, b'new'), (4, 1, b'4'), (9, 0, b'9')]"
        reader.stdin.close()


def test_a_reader_that_does_not_refresh_reads_on(spool: Spool, tmp_path: Path) -> None:
    """What it knew of may be overwritten, deleted and compacted: it sees the one or the other, whole."""
    for seq in range(50):
        spool.store(G, ADA, seq, 0, b"old")
    spool.flush()
    with Spool(tmp_path, read_only=True) as reader:
        assert texts(reader) == [b"old"] * 50
        spool.store(G, ADA, 7, 0, b"new")
        spool.flush()
        assert texts(reader)[7] == b"new"  # the old one is gone, so it looked again
        spool.delete_before(G, {ADA: 20}, 1)
        spool.compact()
        assert len(texts(reader)) in (29, 50)
        reader.refresh()
        assert len(texts(reader)) == 29
        for write in (
            lambda: reader.store(G, ADA, 1, 0, b"x"),
            lambda: reader.store_shard(G, ADA, 1, 0, 0, 1, 1, b"x"),
            lambda: reader.delete_before(G, {}, 1),
            lambda: reader.compact(),
        ):
            with pytest.raises(LogReadOnly):
                write()
        with pytest.raises(NoSuchGroup):
            reader.subscribe(b"other")


def test_one_process_writes_to_a_group(spool: Spool, tmp_path: Path) -> None:
    spool.store(G, ADA, 1, 0, b"x")
    with Spool(tmp_path) as other:
        with pytest.raises(LogLocked):
            other.store(G, ADA, 2, 0, b"x")
        other.store(b"another", ADA, 1, 0, b"x")


def test_storing_and_reading_go_on_while_it_is_compacted(spool: Spool) -> None:
    """A compaction copies the log: others do not wait for that, and what they do meanwhile is there afterwards."""
    for number in range(3000):
        spool.store(G, bytes([number % 5]) * 8, number // 5, 0, b"old" * 100)
    spool.delete_before(G, {bytes([0]) * 8: 599}, 1)
    spool.flush()
    log = spool.group(G).log
    copying, go_on = threading.Event(), threading.Event()
    compact = log.compact

    def slowly(progress: Any = None) -> Any:
        copying.set()
        assert go_on.wait(60)
        return compact(progress)

    log.compact = slowly  # type: ignore[method-assign]
    compaction = threading.Thread(target=spool.compact, args=(G,))
    compaction.start()
    assert copying.wait(60)
    spool.store(G, ADA, 1, 0, b"meanwhile")
    spool.store(G, bytes([1]) * 8, 7, 2, b"in its place")
    spool.store_shard(G, ADA, 2, 1, 0, 1, 2, b"part")
    spool.flush()
    assert len(spool.messages_after(G, {}).messages) == 2402
    deletion = threading.Thread(target=spool.delete_before, args=(G, {bytes([2]) * 8: 599}, 1))
    deletion.start()
    deletion.join(0.05)
    assert deletion.is_alive()  # it waits: offsets will be others
    go_on.set()
    compaction.join(60)
    deletion.join(60)
    assert not compaction.is_alive()
    assert not deletion.is_alive()
    found = {each[:2]: (each.level, each.message) for each in spool.messages_after(G, {}).messages}
    assert len(found) == 1802
    assert found[ADA, 1] == (0, b"meanwhile")
    assert found[bytes([1]) * 8, 7] == (2, b"in its place")
    assert len(list(log.stream())) == 1802
