"""A cable store for async programs: every call in a thread of its own, one after the other.

async with AsyncCable("chat", create=True) as chat:
    await chat.do(Cable.ingest, post)
    async for response in chat.answers(request):
        ...
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from jitdb.stores.cable.database import Cable
from jitdb.stores.cable.errors import CableError
from jitdb.stores.cable.message import ChannelListResponse, HashResponse, Message, PostResponse
from jitdb.stores.cable.requests import Peer

_Said = ParamSpec("_Said")
_Given = TypeVar("_Given")


class AsyncCable:
    """The posts of a folder, for any number of tasks; takes what Cable takes. Opened by `async with`."""

    def __init__(self, path: str | Path, **options: Any) -> None:
        self._open = partial(Cable, path, **options)
        self._thread = ThreadPoolExecutor(1, "cable")
        self._cable: Cable | None = None

    async def do(
        self, method: Callable[Concatenate[Cable, _Said], _Given], *said: _Said.args, **named: _Said.kwargs
    ) -> _Given:
        """Call a method of Cable; gives what it gives, raises what it raises."""
        return await self._run(partial(method, self._opened(), *said, **named))

    async def answers(self, request: Message) -> AsyncIterator[Message]:
        """The responses to a peer's request, until the last one; of one that stays alive, as they come."""
        loop, responses = asyncio.get_running_loop(), asyncio.Queue[Message]()

        def send(response: Message) -> None:
            loop.call_soon_threadsafe(responses.put_nowait, response)

        peer = await self._run(partial(Peer, self._opened(), send))
        try:
            await self._run(partial(peer.receive, request))
            while True:
                response = await responses.get()
                yield response
                if is_last(response):
                    return
        finally:
            await self._run(peer.close)

    async def __aenter__(self) -> Self:
        self._cable = await self._run(self._open)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.do(Cable.close)
        self._thread.shutdown(wait=False)

    async def _run(self, call: Callable[[], _Given]) -> _Given:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def _opened(self) -> Cable:
        if self._cable is None:
            raise CableError("the store is not open", remedy="use it in an `async with`")
        return self._cable


def is_last(response: Message) -> bool:
    """Whether no response follows this one."""
    if isinstance(response, HashResponse):
        return not response.hashes
    return isinstance(response, ChannelListResponse) or (isinstance(response, PostResponse) and not response.posts)
