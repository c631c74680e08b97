"""Who waits for what comes into a group."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from jitdb.stores.spool import AsyncSpool, Spool

G = b"group"
ADA, BOB, EVE = b"ada-----", b"bob-----", b"eve-----"


@pytest.fixture
def spool(tmp_path: Path):
    with Spool(tmp_path, create=True) as found:
        yield found


def texts(spool: Spool, vector: dict[bytes, int] | None = None) -> list[bytes | None]:
    return [each.message for each in spool.messages_after(G, vector or {}).messages]


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
    got: Queue[dict[bytes, int]] = Queue()
    waiting = spool.subscribe(G)
    thread = threading.Thread(target=lambda: [got.put(vector) for vector in waiting])
    thread.start()
    for seq in range(5):
        spool.store(G, ADA, seq, 0, b"x")
        assert got.get(timeout=10) == {ADA: seq}
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
            got: asyncio.Queue[Any] = asyncio.Queue()
            waiting = await spool.subscribe(G)

            async def wait() -> None:
                async for vector in waiting:
                    await got.put(vector)

            task = asyncio.create_task(wait())
            for seq in range(3):
                await spool.store(G, ADA, seq, 0, b"x")
            await spool.store_shard(G, BOB, 1, 1, 0, 1, 1, b"x")
            while await asyncio.wait_for(got.get(), 10) != {ADA: 2, BOB: 1}:
                pass  # one of the first
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
