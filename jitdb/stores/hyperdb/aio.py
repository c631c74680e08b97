"""HyperDB for programs that await: the same calls, each in a thread.

async with AsyncHyperDB("notes", create=True) as db:
    await db.put("life/cat", b"meow")
    async for nodes in db.iterator("life"): ...
"""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Any, Self

from jitdb.common.asyncio_bridge import in_thread
from jitdb.stores.awaiting import AsyncStore, awaited
from jitdb.stores.hyperdb.database import HyperDB
from jitdb.stores.hyperdb.errors import HyperdbError
from jitdb.stores.hyperdb.reading import Changes, Groups, Nodes, Reading
from jitdb.stores.hyperdb.replication import stream
from jitdb.stores.hyperdb.tries.node import Node
from jitdb.stores.hyperdb.watch import Watcher


class AsyncReading(AsyncStore):
    """What can be asked of a database as it is, and of an earlier state of it; see Reading."""

    def __init__(self, state: Reading) -> None:
        self._state: Reading | None = state

    def _opened(self) -> Reading:
        if self._state is None:
            raise HyperdbError("the database was not opened", remedy="use `async with`, or await open() first")
        return self._state

    get = awaited(Reading.get)
    heads = awaited(Reading.heads)
    key_history = awaited(Reading.key_history)

    async def list(self, prefix: str = "", **options: Any) -> Groups:
        return await self._call(Reading.list, prefix, **options)

    async def iterator(self, prefix: str = "", **options: Any) -> AsyncIterator[Nodes]:
        for nodes in await self.list(prefix, **options):
            yield nodes

    async def version(self) -> bytes:
        return await self._call(lambda state: state.version)

    async def history(self, *, reverse: bool = False) -> AsyncIterator[Node]:
        for node in await self._call(Reading.history, reverse=reverse):
            yield node

    async def diff(self, other: AsyncReading | None = None, prefix: str = "") -> Changes:
        return await self._call(Reading.diff, None if other is None else other._opened(), prefix)


class AsyncHyperDB(AsyncReading):
    """A HyperDB, which it takes the arguments of. It is opened by `async with`, or `await open()`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._make = partial(HyperDB, *arguments, **options)
        self._state = None

    async def open(self) -> Self:
        """Open it. Raises as HyperDB() does."""
        self._state = await in_thread(self._make)
        return self

    @property
    def db(self) -> HyperDB:
        """The same database for threads. Raises HyperdbError where it was not opened yet."""
        opened = self._opened()
        assert isinstance(opened, HyperDB)
        return opened

    put = awaited(HyperDB.put)
    delete = awaited(HyperDB.delete)
    batch = awaited(HyperDB.batch)
    authorize = awaited(HyperDB.authorize)
    flush = awaited(HyperDB.flush)
    refresh = awaited(HyperDB.refresh)

    async def checkout(self, version: bytes | str | int | Iterable[Node]) -> AsyncReading:
        return AsyncReading(await self._call(HyperDB.checkout, version))

    def watch(self, prefix: str = "") -> Watcher:
        """The nodes written at or below a prefix from now on: an `async for` over it waits for more, until close()."""
        return self.db.watch(prefix)

    async def replicate(self, other: AsyncHyperDB) -> None:
        await self._call(HyperDB.replicate, other.db)

    async def replicate_stream(self, reader: StreamReader, writer: StreamWriter, **options: Any) -> None:
        await stream.replicate_stream(self.db, reader, writer, **options)

    async def serve(self, host: str = "127.0.0.1", port: int = 0, **options: Any) -> asyncio.Server:
        return await stream.serve(self.db, host, port, **options)

    async def connect(self, host: str, port: int, **options: Any) -> None:
        await stream.connect(self.db, host, port, **options)

    async def close(self) -> None:
        """Flush and close; loops over what is watched end. Safe to call twice."""
        if self._state is not None:
            await self._call(HyperDB.close)

    async def __aenter__(self) -> Self:
        return await self.open()
