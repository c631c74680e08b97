"""Replication over a stream of bytes: the messages of a session (session.py), each in a frame.

    frame   u32 size, big-endian ‖ the message, in msgpack; one of no bytes says that its sender is still there

No frame is larger than FRAME_MOST, and one chunk at a time is made and sent, when the other side has taken the one
before. A side that says nothing for `timeout` seconds, takes nothing, or goes on talking without getting nearer to the
end, is given up.
"""

from __future__ import annotations

import asyncio
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

import msgpack

from jitdb.common.asyncio_bridge import LoopEvent, hear_stop_button, in_thread
from jitdb.errors import JitdbError
from jitdb.stores.hyperdb.errors import ReplicationFailed
from jitdb.stores.hyperdb.replication.session import Message, Replicated, Session

T = TypeVar("T")

FRAME_MOST: Final = 1 << 24
TIMEOUT: Final = 30.0  # seconds

_SIZE: Final = struct.Struct(">I")
_STILL_HERE: Final = _SIZE.pack(0)


def framed(message: Message) -> bytes:
    """A message as it is sent. Raises ReplicationFailed for one that is too large."""
    packed: bytes = msgpack.packb(message)
    if len(packed) > FRAME_MOST:
        raise ReplicationFailed(f"a message of {len(packed):,} bytes is larger than a frame may be, {FRAME_MOST:,}")
    return _SIZE.pack(len(packed)) + packed


async def replicate_stream(
    db: Replicated, reader: StreamReader, writer: StreamWriter, *, live: bool = False, timeout: float = TIMEOUT
) -> None:
    """Give each other what the other lacks, until neither lacks any, or for as long as both stay; the stream is closed.

    Raises ReplicationFailed where the other side breaks the protocol, goes away or is silent. What was received by then
    stays, and is not sent again the next time. What is wrong with one feed is raised in the end, as HyperDB.receive()
    does, and others are given and taken before.
    """
    side = _Side(db, reader, writer, live, timeout)
    end: ReplicationFailed | None = None
    try:
        await side.run()
        await _in_time(_closed(writer), timeout)
    except ReplicationFailed as error:
        end = error
    finally:
        writer.transport.abort()
    side.session.check(end)


async def serve(
    db: Replicated,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    live: bool = True,
    timeout: float = TIMEOUT,
    failed: Callable[[JitdbError], object] | None = None,
) -> asyncio.Server:
    """Replicate with all who connect; the server, which listens already.

    failed: is called with the error where a replication failed
    """

    async def talk(reader: StreamReader, writer: StreamWriter) -> None:
        try:
            await replicate_stream(db, reader, writer, live=live, timeout=timeout)
        except JitdbError as error:
            if failed is not None:
                failed(error)
        except asyncio.CancelledError:
            return  # the loop ends; asyncio would print that a task of its own was cancelled, as an error

    hear_stop_button(asyncio.get_running_loop())
    return await asyncio.start_server(talk, host, port)


async def connect(db: Replicated, host: str, port: int, *, live: bool = False, timeout: float = TIMEOUT) -> None:
    """Replicate with one who serves. Raises as replicate_stream does."""
    hear_stop_button(asyncio.get_running_loop())
    reader, writer = await _in_time(asyncio.open_connection(host, port), timeout)
    await replicate_stream(db, reader, writer, live=live, timeout=timeout)


class _Side:
    """One side of a stream: a task that sends, one that receives, and one that sees that there is progress."""

    def __init__(self, db: Replicated, reader: StreamReader, writer: StreamWriter, live: bool, timeout: float) -> None:
        self._db, self._reader, self._writer = db, reader, writer
        self._live, self._timeout = live, timeout
        self.session = Session(db)
        self._changed = LoopEvent()

    async def run(self) -> None:
        end = self._db.on_change(self._changed.set)
        try:
            await _first(self._send(), self._receive(), self._watch())
        finally:
            end()

    async def _send(self) -> None:
        while True:
            self._changed.clear()
            message = await in_thread(self.session.next_message)
            if message is not None:
                await self._write(framed(message))
            elif self.session.is_done and not self._live:
                return
            else:
                try:
                    async with asyncio.timeout(self._timeout / 3):
                        await self._changed.wait()
                except TimeoutError:
                    await self._write(_STILL_HERE)

    async def _write(self, frame: bytes) -> None:
        self._writer.write(frame)
        await _in_time(self._writer.drain(), self._timeout)

    async def _receive(self) -> None:
        while (frame := await _in_time(self._frame(), self._timeout)) is not None:
            if frame:
                await in_thread(partial(self.session.receive, _message(frame)))
                self._changed.set()
        if not self.session.is_over:
            raise ReplicationFailed("the other side went away before the end")

    async def _frame(self) -> bytes | None:
        """The next frame; None at the end of the stream."""
        try:
            head = await self._reader.readexactly(_SIZE.size)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise
            return None
        (size,) = _SIZE.unpack(head)
        if size > FRAME_MOST:
            raise ReplicationFailed(f"a frame has {size:,} bytes, and may have {FRAME_MOST:,}")
        return await self._reader.readexactly(size)

    async def _watch(self) -> None:
        """Raises ReplicationFailed where nothing was done for a while, though something is to be."""
        steps = -1
        while True:
            is_waiting = not self.session.is_over if self._live else not self.session.is_done
            if is_waiting and steps == self.session.steps:
                raise ReplicationFailed(f"the other side did nothing for {self._timeout:g} seconds")
            steps = self.session.steps
            await asyncio.sleep(self._timeout)


def _message(frame: bytes) -> Any:
    try:
        return msgpack.unpackb(frame)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise ReplicationFailed(f"a frame holds no msgpack: {error}") from error


async def _in_time(work: Awaitable[T], timeout: float) -> T:
    """What it gives. Raises ReplicationFailed where the stream is broken, or that takes longer."""
    try:
        async with asyncio.timeout(timeout):  # wait_for() can lose a cancellation
            return await work
    except TimeoutError:
        raise ReplicationFailed(f"the other side did not answer for {timeout:g} seconds") from None
    except asyncio.IncompleteReadError as error:
        raise ReplicationFailed("the other side went away in the middle of a message") from error
    except OSError as error:
        raise ReplicationFailed(f"the stream broke: {error}") from error


async def _first(*work: Coroutine[Any, Any, None]) -> None:
    """Return, or raise, as the first one that ends does; the others are cancelled."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _closed(writer: StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()
