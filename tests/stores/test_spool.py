"""A spool: old records and strange ones, threads, a reader beside the writer, who waits, and wrong arguments."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jitdb import Log
from jitdb.errors import InvalidArgument, LogClosed, LogLocked, LogReadOnly, RecordDeleted, RecordTooLarge
from jitdb.operators import and_, everything, field, gt, lte, or_
from jitdb.stores import spool as names
from jitdb.stores.spool import (
    AsyncSpool,
    InvalidMessage,
    Message,
    MessageDamaged,
    MessageId,
    NoSuchGroup,
    Shard,
    Spool,
    SpoolError,
)

G = b"group"
ADA, BOB, EVE = b"ada-----", b"bob-----", b"eve-----"


@pytest.fixture
def spool(tmp_path: Path):
    with Spool(tmp_path, create=True) as found:
        yield found


def texts(spool: Spool, vector: dict[bytes, int] | None = None) -> list[bytes | None]:
    return [each.message for each in spool.messages_after(G, vector or {}).messages]


# What is in the log


def test_records_of_the_old_format_are_of_level_0(tmp_path: Path) -> None:
    with Log(tmp_path / f"{G.hex()}.log", codec="msgpack") as log:  # by whoever wrote them
        log.append_many({"sender": ADA, "seq": seq, "message": b"%d" % seq} for seq in range(5))
    with Spool(tmp_path) as spool:
        spool.store(G, ADA, 5, None, b"5")
        spool.store(G, ADA, 2, 1, b"new")
        assert [(each.level, each.message) for each in spool.messages_after(G, {ADA: 0}).messages] == [
            (0, b"1"), (1, b"new"), (0, b"3"), (0, b"4"), (0, b"5")
        ]  # fmt: skip
        assert spool.delete_before(G, {ADA: 9}, 0) == 0
        assert spool.delete_before(G, {ADA: 4}, 1) == 4
        assert texts(spool) == [b"new", b"5"]
        spool.flush()
        assert spool.group(G).index.count(field("level").absent()) == 1


def test_records_that_are_no_messages_are_passed_over(tmp_path: Path) -> None:
    strange: list[dict[str, Any]] = [
        {"note": "mine"},
        {"sender": b"short", "seq": 1, "level": 0, "message": b"x"},
        {"sender": "ada-----", "seq": 1, "level": 0, "message": b"x"},
        {"sender": ADA, "seq": -1, "level": 0, "message": b"x"},
        {"sender": ADA, "seq": 1.5, "level": 0, "message": b"x"},
        {"sender": ADA, "seq": "1", "level": 0, "message": b"x"},
        {"sender": ADA, "seq": 1, "level": 256, "message": b"x"},
        {"sender": ADA, "seq": 1, "level": None, "message": b"x"},
        {"sender": ADA, "seq": 1, "level": True, "message": b"x"},
        {"sender": ADA, "seq": 1, "level": 0, "shard_index": 2, "data_shards": 1, "total_shards": 2, "data": b"x"},
        {"sender": ADA, "seq": 1, "level": 0, "shard_index": 0, "data_shards": 3, "total_shards": 2, "data": b"x"},
        {"sender": ADA, "seq": 1, "level": 0, "shard_index": 0, "data": b"x"},
    ]
    with Log(tmp_path / f"{G.hex()}.log", codec="msgpack") as log:
        log.append_many(strange)
    (tmp_path / "notes.log").write_bytes(b"somebody's")
    (tmp_path / "friends.txt").write_bytes(b"x")
    with Spool(tmp_path) as spool:
        assert spool.groups() == [G]
        assert spool.messages_after(G, {}) == ([], [], None)
        assert spool.delete_before(G, {ADA: 2**64 - 1, b"ada\0\0\0\0\0": 1}, 255) == 0
        spool.store(G, ADA, 1, 0, b"hello")
        spool.compact()
        assert texts(spool) == [b"hello"]
        assert len(list(spool.group(G).log.stream())) == len(strange) + 1


def test_a_record_that_only_looks_like_a_message(tmp_path: Path) -> None:
    for wrong in ({"message": "text"}, {}, {"message": None}):
        path = tmp_path / f"{G.hex()}.log"
        with Log(path, codec="msgpack") as log:
            log.append({"sender": ADA, "seq": 1, "level": 0, **wrong})
        with Spool(tmp_path) as spool:
            with pytest.raises(MessageDamaged, match="message 1 of 6164612d"):
                spool.messages_after(G, {})
            spool.store(G, ADA, 1, 0, b"again")
            assert texts(spool) == [b"again"]


def test_all_of_a_seq_is_exact(spool: Spool) -> None:
    ends = [0, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]
    for sender in (b"\0" * 8, b"\xff" * 8):
        for seq in ends:
            spool.store(G, sender, seq, 0, b"%d" % seq)
    for again in range(2):
        for seq in ends:
            vector = {b"\0" * 8: seq, b"\xff" * 8: 2**64 - 1}
            assert texts(spool, vector) == [b"%d" % other for other in ends if other > seq]
            spool.flush()
            index = spool.group(G).index
            asked = and_(field("sender") == b"\0" * 8, gt(seq, "seq"))
            assert index.count(asked) == len([other for other in ends if other > seq])
        if not again:
            spool.compact(G)  # nothing to do, and it is read again
    assert spool.delete_before(G, {b"\xff" * 8: 2**53}, 1) == 3
    assert spool.state_vector(G) == {b"\0" * 8: 2**64 - 1, b"\xff" * 8: 2**64 - 1}


def test_the_engine_says_the_same(spool: Spool) -> None:
    for number in range(3000):
        spool.store(G, bytes([number % 7]) * 8, number // 7, number % 4, b"%d" % number)
    watermark = {bytes([sender]) * 8: 50 * sender for sender in (1, 3, 5, 9)}
    spool.flush()
    index = spool.group(G).index
    reached = or_(*(and_(field("sender") == sender, lte(seq, "seq")) for sender, seq in watermark.items()))
    expected = index.count(and_(reached, field("level") < 2))
    assert spool.delete_before(G, watermark, 2) == expected > 0
    assert index.count(and_(reached, field("level") < 2)) == 0
    assert len(texts(spool)) == index.count(everything()) == 3000 - expected


def test_shards_give_way_to_messages_and_messages_to_shards(spool: Spool) -> None:
    def shard(index: int, level: int = 1, needed: int = 2, total: int = 3) -> None:
        spool.store_shard(G, ADA, 7, level, index, needed, total, bytes([index, level, needed, total]))

    def held() -> list[Message]:
        return spool.messages_after(G, {}).messages

    shard(0)
    shard(0)  # the same one again is still one
    assert spool.messages_after(G, {}).incomplete == [MessageId(ADA, 7)]
    shard(2)
    assert held() == [Message(ADA, 7, 1, None, (Shard(0, 2, 3, b"\0\1\2\3"), Shard(2, 2, 3, b"\2\1\2\3")))]
    spool.store(G, ADA, 7, 1, b"whole")
    assert held() == [Message(ADA, 7, 1, b"whole")]
    for other in ({"level": 2}, {"needed": 3}, {"total": 4}):
        shard(0)
        shard(1, **other)  # of another code: it begins anew
        assert (held(), spool.messages_after(G, {}).incomplete) == ([], [MessageId(ADA, 7)])
    spool.flush()
    assert len(list(spool.group(G).log.stream())) == 1
    shard(0, needed=1)
    assert [len(each.shards) for each in held()] == [1]


def test_what_rebuild_raises_comes_through(spool: Spool) -> None:
    spool.store_shard(G, ADA, 1, 1, 0, 1, 2, b"x")
    with pytest.raises(ZeroDivisionError):
        spool.messages_after(G, {}, rebuild=lambda shards: 1 // 0)  # type: ignore[arg-type, return-value]
    with pytest.raises(InvalidMessage):
        spool.messages_after(G, {}, rebuild=lambda shards: "text")  # type: ignore[arg-type, return-value]
    assert spool.messages_after(G, {}, rebuild=lambda shards: shards[0].data).messages[0].message == b"x"


def test_deleting_takes_what_was_overwritten_before(tmp_path: Path) -> None:
    """What a deleted message had taken the place of never comes back, whatever is durable by then."""
    with Spool(tmp_path, create=True) as spool:
        for value in (b"1", b"2", b"3"):
            spool.store(G, ADA, 1, 0, value)
        assert spool.delete_before(G, {ADA: 1}, 1) == 1
        spool.flush()
        assert list(spool.group(G).log.stream()) == []
        spool.store(G, ADA, 1, 0, b"4")
        assert spool.compact(G) > 0
        assert texts(spool) == [b"4"]
    with Spool(tmp_path) as spool:
        assert texts(spool) == [b"4"]


def test_what_is_overwritten_stays_until_its_heir_is_durable(spool: Spool) -> None:
    """Else a crash between the two could leave none."""
    spool.store(G, ADA, 1, 0, b"old")
    spool.flush()
    log = spool.group(G).log
    old = log.since
    spool.store(G, ADA, 1, 0, b"new")
    assert log.deleting() == []
    assert log.get(old)["message"] == b"old"
    assert texts(spool) == [b"new"]
    spool.flush()
    with pytest.raises(RecordDeleted):
        log.get(old)


def test_groups_are_apart(spool: Spool, tmp_path: Path) -> None:
    for group in (b"\0", b"a", b"a/../b", b"x" * 100):
        spool.store(group, ADA, 1, 0, group)
    assert spool.groups() == [b"\0", b"a", b"a/../b", b"x" * 100]
    assert [each.message for each in spool.messages_after(b"a/../b", {}).messages] == [b"a/../b"]
    assert sorted(path.name for path in tmp_path.glob("*.log")) == sorted(f"{g.hex()}.log" for g in spool.groups())
    assert spool.messages_after(b"nobody's", {}) == ([], [], None)
    assert spool.delete_before(b"nobody's", {ADA: 1}, 1) == spool.compact(b"nobody's") == 0
    assert spool.state_vector(b"nobody's") == {}
    assert b"nobody's" not in spool.groups()


# Several at once


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


# Waiting


def test_who_waits_gets_the_newest(spool: Spool) -> None:
    with spool.subscribe(G) as slow:
        assert slow.take(0) is None
        for seq in range(100):
            spool.store(G, ADA, seq, 0, b"x")
        assert slow.take(0) == {ADA: 99}
        assert slow.take(0.01) is None
        spool.store(G, ADA, 50, 0, b"late")  # no vector moves
        spool.store(G, ADA, 99, 0, b"again")
        assert slow.take(0) is None
        spool.store_shard(G, BOB, 0, 1, 0, 2, 2, b"x")
        assert slow.take(0) == {ADA: 99, BOB: 0}
        spool.delete_before(G, {ADA: 99}, 1)
        assert (slow.take(0), spool.state_vector(G)) == (None, {ADA: 99, BOB: 0})
        spool.store(G, EVE, 5, 0, b"x")
    assert [vector[EVE] for vector in slow] == [5]  # what came before the end is there
    spool.store(G, EVE, 6, 0, b"x")
    assert slow.take() is None


def test_a_loop_wakes_and_ends(spool: Spool) -> None:
    got: list[dict[bytes, int]] = []
    waiting = spool.subscribe(G)
    thread = threading.Thread(target=lambda: got.extend(waiting))
    thread.start()
    for seq in range(5):
        spool.store(G, ADA, seq, 0, b"x")
        deadline = time.monotonic() + 10
        while (not got or got[-1] != {ADA: seq}) and time.monotonic() < deadline:
            time.sleep(0.001)
        assert got[-1] == {ADA: seq}
    waiting.close()
    thread.join(10)
    assert not thread.is_alive()
    begin = time.monotonic()
    assert list(spool.subscribe(G, timeout=0.05)) == []
    assert 0.04 < time.monotonic() - begin < 5


def test_a_callback_is_called_with_each(spool: Spool) -> None:
    got: list[int] = []
    with spool.subscribe(G, lambda vector: got.append(vector[ADA])):
        for seq in (1, 2, 2, 1, 5):
            spool.store(G, ADA, seq, 0, b"x")
    spool.store(G, ADA, 6, 0, b"x")
    assert got == [1, 2, 5]


def test_a_reader_waits_for_what_the_writer_does(spool: Spool, tmp_path: Path) -> None:
    spool.store(G, ADA, 1, 0, b"x")
    spool.flush()
    with Spool(tmp_path, read_only=True) as reader, reader.subscribe(G) as waiting:
        spool.store(G, ADA, 2, 0, b"y")
        spool.flush()
        assert waiting.take(20) == {ADA: 2}
        assert texts(reader) == [b"x", b"y"]


def test_async(tmp_path: Path) -> None:
    async def program() -> list[Any]:
        async with AsyncSpool(tmp_path, create=True) as spool:
            got: list[Any] = []
            waiting = await spool.subscribe(G)

            async def wait() -> None:
                async for vector in waiting:
                    got.append(vector)  # noqa: PERF401  (it is looked at meanwhile)

            task = asyncio.create_task(wait())
            for seq in range(3):
                await spool.store(G, ADA, seq, 0, b"x")
            await spool.store_shard(G, BOB, 1, 1, 0, 1, 1, b"x")
            while not got or got[-1] != {ADA: 2, BOB: 1}:
                await asyncio.sleep(0.001)
            waiting.close()
            await asyncio.wait_for(task, 10)
            found = await spool.messages_after(G, {ADA: 0}, 2, rebuild=lambda shards: shards[0].data)
            rest = await spool.messages_after(G, {ADA: 0}, 2, after=found.next)
            assert [each[1] for each in (*found.messages, *rest.messages)] == [1, 2, 1]
            assert await spool.delete_before(G, {ADA: 1}, 1) == 2
            await spool.flush()
            await spool.refresh()
            assert await spool.compact() > 0
            assert await spool.groups() == [G]
            ended = [vector async for vector in await spool.subscribe(G, timeout=0.01)]
            return [await spool.state_vector(G), ended]

    assert asyncio.run(program()) == [{ADA: 2, BOB: 1}, []]


# Wrong arguments


def test_what_is_refused_changes_nothing(spool: Spool) -> None:
    spool.store(G, ADA, 1, 0, b"x")
    for wrong in (b"", b"x" * 101, "group", None, 5):
        with pytest.raises(InvalidMessage):
            spool.store(wrong, ADA, 1, 0, b"new")  # type: ignore[arg-type]
        with pytest.raises(InvalidMessage):
            spool.messages_after(wrong, {})  # type: ignore[arg-type]
    for sender in (b"", b"seven--", b"nine-----", "eight---", None, 8):
        with pytest.raises(InvalidMessage):
            spool.store(G, sender, 1, 0, b"new")  # type: ignore[arg-type]
        for ask in (spool.messages_after, lambda group, vector: spool.delete_before(group, vector, 1)):
            with pytest.raises(InvalidMessage):
                ask(G, {ADA: 1, sender: 1})
    for seq in (-1, 2**64, 1.0, True, "1", None):
        with pytest.raises(InvalidMessage):
            spool.store(G, ADA, seq, 0, b"new")  # type: ignore[arg-type]
        with pytest.raises(InvalidMessage):
            spool.messages_after(G, {ADA: seq})  # type: ignore[dict-item]
    for level in (-1, 256, 0.0, False, "0"):
        with pytest.raises(InvalidMessage):
            spool.store(G, ADA, 1, level, b"new")  # type: ignore[arg-type]
        with pytest.raises(InvalidMessage):
            spool.delete_before(G, {ADA: 1}, level)  # type: ignore[arg-type]
    for shard in ((0, 0, 1), (1, 1, 1), (0, 3, 2), (0, 1, 256), (-1, 1, 1), (0.0, 1, 1), (0, True, 1)):
        with pytest.raises(InvalidMessage):
            spool.store_shard(G, ADA, 1, 0, *shard, b"new")  # type: ignore[arg-type]
    for message in ("text", None, 5, [b"x"]):
        with pytest.raises(InvalidMessage):
            spool.store(G, ADA, 1, 0, message)  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage, match="level"):
        spool.store_shard(G, ADA, 1, None, 0, 1, 1, b"new")  # type: ignore[arg-type]
    for vector in (None, [], b"", 5, [(ADA, 1)]):
        with pytest.raises(InvalidMessage):
            spool.messages_after(G, vector)  # type: ignore[arg-type]
    limits = [{"limit": 0}, {"limit": True}, {"limit": 1.0}]
    for options in (*limits, {"after": b"x"}, {"after": "x" * 16}, {"rebuild": 5}):
        with pytest.raises(InvalidMessage):
            spool.messages_after(G, {}, **options)  # type: ignore[arg-type]
    for timeout in (-1, "1", float("nan")):
        with pytest.raises(InvalidMessage):
            spool.subscribe(G, timeout=timeout)  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage):
        spool.subscribe(G, 5)  # type: ignore[arg-type]
    assert spool.messages_after(G, {}) == ([Message(ADA, 1, 0, b"x")], [], None)


def test_any_bytes_will_do(spool: Spool) -> None:
    spool.store(bytearray(G), memoryview(ADA), 1, 0, bytearray(b"x"))  # type: ignore[arg-type]
    spool.store(G, ADA, 2, 0, b"")
    assert texts(spool, {memoryview(bytearray(ADA)).tobytes(): 0}) == [b"x", b""]


def test_a_message_that_is_too_large(tmp_path: Path) -> None:
    with Spool(tmp_path, create=True, block_size=4096) as spool:
        spool.store(G, ADA, 1, 0, b"x" * 4000)
        with pytest.raises(RecordTooLarge):
            spool.store(G, ADA, 1, 0, b"x" * 4096)
        assert texts(spool) == [b"x" * 4000]
        assert spool.state_vector(G) == {ADA: 1}


def test_opening_and_closing(tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="create=True"):
        Spool(tmp_path / "none")
    with pytest.raises(SpoolError):
        Spool(tmp_path / "none", create=True, read_only=True)
    with pytest.raises((InvalidArgument, InvalidMessage)):
        Spool(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage):
        Spool(tmp_path, create="no")  # type: ignore[arg-type]
    spool = Spool(tmp_path / "one" / "two", create=True)
    waiting = spool.subscribe(G)
    spool.store(G, ADA, 1, 0, b"x")
    spool.close()
    spool.close()
    assert list(waiting) == [{ADA: 1}]  # and no more: its group is closed
    for ask in (lambda: spool.store(G, ADA, 1, 0, b"x"), lambda: spool.messages_after(G, {}), lambda: spool.group(G)):
        with pytest.raises(LogClosed):
            ask()
    assert repr(spool) == f"<Spool {str(tmp_path / 'one' / 'two')!r}>"


def test_names() -> None:
    assert all(getattr(names, name) for name in names.__all__)
    with pytest.raises(AttributeError):
        names.nothing  # type: ignore[attr-defined]  # noqa: B018


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
