"""HyperDB for programs that await: the same calls, each in a thread.

    async with AsyncHyperDB("notes", create=True) as db:
        await db.put("life/cat", b"meow")
        async for nodes in db.iterator("life"): ...

A call that is cancelled may still do what it was to do; the database is whole either way.
"""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Self

from jitdb.stores.hyperdb.database import HyperDB, Operation
from jitdb.stores.hyperdb.errors import HyperdbError
from jitdb.stores.hyperdb.reading import Changes, Checkout, Groups, Nodes, Reading
from jitdb.stores.hyperdb.replication import stream
from jitdb.stores.hyperdb.tries.node import Node


class AsyncReading:
    """What can be asked of a database as it is, and of an earlier state of it; see Reading."""

    def __init__(self, state: Reading) -> None:
        self._state = state

    async def get(self, key: str, **options: Any) -> Nodes:
        return await asyncio.to_thread(self._state.get, key, **options)

    async def list(self, prefix: str = "", **options: Any) -> Groups:
        return await asyncio.to_thread(self._state.list, prefix, **options)

    async def iterator(self, prefix: str = "", **options: Any) -> AsyncIterator[Nodes]:
        for nodes in await self.list(prefix, **options):
            yield nodes

    async def heads(self) -> Nodes:
        return await asyncio.to_thread(self._state.heads)

    async def version(self) -> bytes:
        return await asyncio.to_thread(lambda: self._state.version)

    async def history(self, *, reverse: bool = False) -> AsyncIterator[Node]:
        for node in await asyncio.to_thread(self._state.history, reverse=reverse):
            yield node

    async def key_history(self, key: str) -> Groups:
        return await asyncio.to_thread(self._state.key_history, key)

    async def diff(self, other: AsyncReading | None = None, prefix: str = "") -> Changes:
        return await asyncio.to_thread(self._state.diff, None if other is None else other._state, prefix)


class AsyncHyperDB(AsyncReading):
    """A HyperDB, which it takes the arguments of. It is opened by `async with`, or `await open()`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._make = partial(HyperDB, *arguments, **options)
        self._watches: set[AsyncWatch] = set()

    async def open(self) -> Self:
        """Open it. Raises as HyperDB() does."""
        super().__init__(await asyncio.to_thread(self._make))
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "_state":
            raise HyperdbError("the database was not opened", remedy="use `async with`, or await open() first")
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    @property
    def db(self) -> HyperDB:
        """The same database for threads. Raises HyperdbError where it was not opened yet."""
        assert isinstance(self._state, HyperDB)
        return self._state

    async def put(self, key: str, value: bytes | None = None, *, if_not_exists: bool = False) -> Node:
        return await asyncio.to_thread(self.db.put, key, value, if_not_exists=if_not_exists)

    async def delete(self, key: str, value: bytes | None = None) -> Node:
        return await asyncio.to_thread(self.db.delete, key, value)

    async def batch(self, operations: Iterable[Operation | tuple[Any, ...]]) -> Nodes:
        return await asyncio.to_thread(self.db.batch, operations)

    async def authorize(self, key: bytes | str) -> Node:
        return await asyncio.to_thread(self.db.authorize, key)

    async def checkout(self, version: bytes | str | int | Iterable[Node]) -> AsyncReading:
        past: Checkout = await asyncio.to_thread(self.db.checkout, version)
        return AsyncReading(past)

    def watch(self, prefix: str = "") -> AsyncWatch:
        """The nodes written at or below a prefix from now on: an `async for` over it waits for more, until close()."""
        return AsyncWatch(self.db, prefix, self._watches)

    async def replicate(self, other: AsyncHyperDB) -> None:
        await asyncio.to_thread(self.db.replicate, other.db)

    async def replicate_stream(self, reader: StreamReader, writer: StreamWriter, **options: Any) -> None:
        await stream.replicate_stream(self.db, reader, writer, **options)

    async def serve(self, host: str = "127.0.0.1", port: int = 0, **options: Any) -> asyncio.Server:
        return await stream.serve(self.db, host, port, **options)

    async def connect(self, host: str, port: int, **options: Any) -> None:
        await stream.connect(self.db, host, port, **options)

    async def flush(self) -> None:
        await asyncio.to_thread(self.db.flush)

    async def refresh(self) -> bool:
        return await asyncio.to_thread(self.db.refresh)

    async def close(self) -> None:
        """Flush and close; loops over what is watched end. Safe to call twice."""
        for watch in list(self._watches):
            watch.close()
        if "_state" in vars(self):
            await asyncio.to_thread(self.db.close)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class AsyncWatch:
    """Nodes as they are written, for one event loop."""

    def __init__(self, db: HyperDB, prefix: str, all_watches: set[AsyncWatch]) -> None:
        self._loop = asyncio.get_running_loop()
        self._nodes: asyncio.Queue[Node | None] = asyncio.Queue()
        self._all = all_watches
        self._watcher = db.watch(prefix, self._note)
        all_watches.add(self)

    def _note(self, node: Node | None) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._nodes.put_nowait, node)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Node:
        node = await self._nodes.get()
        if node is None:
            self._nodes.put_nowait(None)  # for those who ask again
            raise StopAsyncIteration
        return node

    def close(self) -> None:
        """End it, after what came before. Safe to call twice."""
        self._all.discard(self)
        self._watcher.close()
        self._note(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()
