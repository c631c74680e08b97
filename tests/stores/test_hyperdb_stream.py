"""Replication over streams: whole, live, cut anywhere, and with others that do not keep to the protocol."""

from __future__ import annotations

import asyncio
import os
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgpack
import pytest
from waiting import until_async

from jitdb.errors import JitdbError
from jitdb.stores.hyperdb import HyperDB
from jitdb.stores.hyperdb.errors import NotAuthentic, ReplicationFailed
from jitdb.stores.hyperdb.format.entry import HEADER
from jitdb.stores.hyperdb.replication.session import CHUNK as CHUNK_MESSAGE
from jitdb.stores.hyperdb.replication.session import END, FINISHED, HELLO, PROTOCOL, VERSION, WANT
from jitdb.stores.hyperdb.replication.stream import FRAME_MOST, connect, framed, replicate_stream, serve
from jitdb.stores.hyperdb.signing.heads import CHUNK

SOON = 20  # seconds, in which a test must end


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, SOON))


@pytest.fixture
def source(tmp_path: Path) -> Iterator[HyperDB]:
    with HyperDB(tmp_path / "source", create=True) as db:
        db.put("a", b"1")
        yield db


@pytest.fixture
def copy(tmp_path: Path, source: HyperDB) -> Iterator[HyperDB]:
    with HyperDB(tmp_path / "copy", source.key) as db:
        yield db


def port_of(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


def test_both_get_what_they_lack(tmp_path: Path, source: HyperDB, copy: HyperDB) -> None:
    source.batch((f"n/{number}", bytes(100)) for number in range(2 * CHUNK))
    source.authorize(copy.local.key)
    copy.put("b", b"2")

    async def main() -> None:
        async with await serve(source, live=False) as server:
            await connect(copy, "127.0.0.1", port_of(server))
            assert copy.version == source.version
            assert source["b"] == b"2"
            with HyperDB(tmp_path / "third", source.key) as third:
                await connect(third, "127.0.0.1", port_of(server))
                assert third.version == source.version
                await connect(third, "127.0.0.1", port_of(server))  # nothing to do

    run(main())


def test_live_pushes_what_is_written_later_both_ways(source: HyperDB, copy: HyperDB) -> None:
    async def main() -> None:
        async with await serve(source, timeout=2) as server:
            task = asyncio.create_task(connect(copy, "127.0.0.1", port_of(server), live=True, timeout=2))
            await until_async(lambda: "a" in copy)
            source.authorize(copy.local.key)
            await until_async(lambda: copy.authorized(copy.local.key))
            copy.put("b", b"2")
            await until_async(lambda: "b" in source)
            await asyncio.sleep(3)  # silence, longer than the timeout
            source.put("c", b"3")
            await until_async(lambda: "c" in copy)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    run(main())


def test_closing_a_database_ends_its_replications(source: HyperDB, copy: HyperDB) -> None:
    async def main() -> None:
        failures: list[JitdbError] = []
        async with await serve(source, failed=failures.append) as server:
            task = asyncio.create_task(connect(copy, "127.0.0.1", port_of(server), live=True))
            await until_async(lambda: "a" in copy)
            copy.close()
            with pytest.raises(JitdbError, match="closed"):
                await task
        assert failures == []

    run(main())


def test_reader_serves(tmp_path: Path, source: HyperDB, copy: HyperDB) -> None:
    source.flush()

    async def main() -> None:
        with HyperDB(tmp_path / "source", read_only=True) as reader:
            async with await serve(reader) as server:
                await connect(copy, "127.0.0.1", port_of(server))

    run(main())
    assert copy.version == source.version


def test_another_database_is_refused_on_both_sides(tmp_path: Path, source: HyperDB) -> None:
    failures: list[JitdbError] = []

    async def main() -> None:
        with HyperDB(tmp_path / "other", create=True) as other:
            async with await serve(source, failed=failures.append) as server:
                with pytest.raises(ReplicationFailed, match="database is"):
                    await connect(other, "127.0.0.1", port_of(server))
                await until_async(lambda: bool(failures))

    run(main())
    assert isinstance(failures[0], ReplicationFailed)
    assert "database is" in failures[0].reason


def test_nobody_there_is_refused(copy: HyperDB) -> None:
    async def main() -> None:
        async with await serve(copy) as server:
            port = port_of(server)
        with pytest.raises(ReplicationFailed):
            await connect(copy, "127.0.0.1", port)

    run(main())


# --- cut connections -------------------------------------------------------------------------------------------------


def test_cut_anywhere_it_goes_on(tmp_path: Path, source: HyperDB) -> None:
    for number in range(40):  # of which four are a chunk
        source.put(f"k{number}", os.urandom(300_000))
    chance = Random(5)

    async def main() -> None:
        async def through(reader: StreamReader, writer: StreamWriter) -> None:
            """Between the two: lets so many bytes through, then none."""
            theirs, to_source = await asyncio.open_connection("127.0.0.1", port_of(server))
            stack.extend((to_source, writer))

            async def pump(left: StreamReader, right: StreamWriter, most: int) -> None:
                while most and (data := await left.read(min(most, 1 << 16))):
                    right.write(data)
                    most -= len(data)
                writer.close()
                to_source.close()

            with suppress(ConnectionError):
                await asyncio.gather(pump(reader, to_source, 1 << 30), pump(theirs, writer, cut))

        stack: list[StreamWriter] = []
        cuts = cut = 0
        lengths = [0]
        async with await serve(source) as server, await asyncio.start_server(through, "127.0.0.1", 0) as between:
            with HyperDB(tmp_path / "copy", source.key) as copy:
                for most in [3, 60, 90, *(chance.randrange(100, 2_500_000) for _ in range(12))]:
                    cut = most
                    try:
                        await connect(copy, "127.0.0.1", port_of(between))
                    except ReplicationFailed:
                        cuts += 1
                    lengths.append(copy.lengths()[source.key])
                assert cuts > 5
                assert lengths == sorted(lengths)
                assert len(set(lengths)) > 3
                cut = 1 << 30
                await connect(copy, "127.0.0.1", port_of(between))
                assert copy.version == source.version
            for writer in stack:
                writer.close()

    run(main())


def test_server_whose_loop_ends_is_quiet(source: HyperDB, copy: HyperDB) -> None:
    """As in the example of the page: it may still be at work for who went."""
    told: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
        async with await serve(source) as server:
            await connect(copy, "127.0.0.1", port_of(server))

    for _ in range(3):
        run(main())
    assert told == []
    assert "a" in copy


# --- hostile ---------------------------------------------------------------------------------------------------------

Peer = Callable[[HyperDB, StreamReader, StreamWriter], Awaitable[None]]


async def greeted(db: HyperDB, writer: StreamWriter) -> None:
    writer.write(framed([HELLO, PROTOCOL, VERSION, db.key]))


async def garbage(db: HyperDB, reader: StreamReader, writer: StreamWriter) -> None:
    writer.write(Random(1).randbytes(10_000))
    await reader.read()


async def no_msgpack(db: HyperDB, reader: StreamReader, writer: StreamWriter) -> None:
    writer.write((3).to_bytes(4, "big") + b"\xc1\xc1\xc1")
    await reader.read()


async def nested(db: HyperDB, reader: StreamReader, writer: StreamWriter) -> None:
    writer.write((10_000).to_bytes(4, "big") + b"\x91" * 10_000)
    await reader.read()


async def oversize(db: HyperDB, reader: StreamReader, writer: StreamWriter) -> None:
    writer.write((FRAME_MOST + 1).to_bytes(4, "big"))
    await reader.read()


async def silent(db: HyperDB, reader: StreamReader, writer: StreamWriter) -> None:
    await reader.read()


async def silent_later(db: HyperDB, reader: StreamReader, writer: StreamWriter) -> None:
    await greeted(db, writer)
    await reader.read()


async def slow(db: HyperDB, reader: StreamReader, writer: StreamWriter) -> None:
    writer.write((1000).to_bytes(4, "big"))
    for _ in range(100):
        writer.write(b"x")
        await asyncio.sleep(0.1)


async def only_still_here(db: HyperDB, reader: StreamReader, writer: StreamWriter) -> None:
    await greeted(db, writer)
    while True:
        writer.write(bytes(4))
        await asyncio.sleep(0.01)


async def finished_forever(db: HyperDB, reader: StreamReader, writer: StreamWriter) -> None:
    await greeted(db, writer)
    while True:
        writer.write(framed([FINISHED, 0]))
        await writer.drain()
        await asyncio.sleep(0)


async def unwanted(db: HyperDB, reader: StreamReader, writer: StreamWriter) -> None:
    await greeted(db, writer)
    writer.write(framed([CHUNK_MESSAGE, b"x" * 32, 0, [HEADER], 1, bytes(64)]))
    await reader.read()


async def forged(db: HyperDB, reader: StreamReader, writer: StreamWriter) -> None:
    await greeted(db, writer)
    writer.write(framed([CHUNK_MESSAGE, db.key, 0, [HEADER], 1, bytes(64)]))
    await reader.read()


async def takes_nothing(db: HyperDB, reader: StreamReader, writer: StreamWriter) -> None:
    await greeted(db, writer)
    writer.write(framed([WANT, db.key, 0]))
    while True:
        writer.write(bytes(4))
        await asyncio.sleep(0.05)


async def gone_in_between(db: HyperDB, reader: StreamReader, writer: StreamWriter) -> None:
    await greeted(db, writer)
    writer.write(framed([END, db.key])[:7])
    writer.close()


async def wants_many(db: HyperDB, reader: StreamReader, writer: StreamWriter) -> None:
    await greeted(db, writer)
    for _ in range(2):
        writer.write(framed([WANT, b"y" * 32, 0]))
    await reader.read()


HOSTILE: list[Peer] = [
    garbage, no_msgpack, nested, oversize, silent, silent_later, slow, only_still_here, finished_forever, unwanted,
    forged, gone_in_between, wants_many,
]  # fmt: skip


async def met(db: HyperDB, peer: Peer, **options: Any) -> None:
    """Replicate with such a peer."""

    async def talk(reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(ConnectionError):
            await peer(db, reader, writer)
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        await connect(db, "127.0.0.1", port_of(server), timeout=0.4, **options)


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("peer", HOSTILE)
def test_hostile_peers_are_given_up(peer: Peer, live: bool, copy: HyperDB) -> None:
    with pytest.raises(ReplicationFailed if peer is not forged else NotAuthentic):
        run(met(copy, peer, live=live))
    assert copy.lengths()[copy.key] == 0


def test_peer_that_takes_nothing_is_given_up(source: HyperDB) -> None:
    source.batch((f"n/{number}", os.urandom(1 << 18)) for number in range(60))
    with pytest.raises(ReplicationFailed):
        run(met(source, takes_nothing))


def test_message_that_is_too_large_is_not_sent() -> None:
    assert msgpack.unpackb(framed([END, bytes(32)])[4:]) == [END, bytes(32)]
    with pytest.raises(ReplicationFailed, match="larger"):
        framed([END, bytes(FRAME_MOST)])


def test_method_of_a_database(source: HyperDB, copy: HyperDB) -> None:
    async def main() -> None:
        async def talk(reader: StreamReader, writer: StreamWriter) -> None:
            await source.replicate_stream(reader, writer)

        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            await replicate_stream(copy, *await asyncio.open_connection("127.0.0.1", port_of(server)))
        assert copy.version == source.version

    run(main())
