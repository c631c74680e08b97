"""A cable store for async programs: every call in a thread of its own, one after the other.

async with AsyncCable("chat", create=True) as chat:
    await chat.do(Cable.ingest, post)
    async for response in chat.answers(request):
        ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, Self

from jitdb.common.asyncio_bridge import in_thread
from jitdb.stores.awaiting import AsyncStore, Given, Said
from jitdb.stores.cable.database import Cable
from jitdb.stores.cable.errors import CableError
from jitdb.stores.cable.message import ChannelListResponse, HashResponse, Message, PostResponse
from jitdb.stores.cable.requests import Peer
from jitdb.stores.following import Following


class AsyncCable(AsyncStore):
    """The posts of a folder, for any number of tasks; takes what Cable takes. Opened by `async with`."""

    def __init__(self, path: str | Path, **options: Any) -> None:
        self._open = partial(Cable, path, **options)
        self._threads: Executor = ThreadPoolExecutor(1, "cable")
        self._cable: Cable | None = None

    async def do(
        self, method: Callable[Concatenate[Cable, Said], Given], *said: Said.args, **named: Said.kwargs
    ) -> Given:
        """Call a method of Cable; gives what it gives, raises what it raises."""
        return await self._call(method, *said, **named)

    async def answers(self, request: Message) -> AsyncIterator[Message]:
        """The responses to a peer's request, until the last one or the store is closed; of one that stays alive, as
        they come. Raises CableError where the store is not open.
        """
        responses = Following[Message]()
        peer = Peer(self._opened(), lambda response: responses.tell(lambda: response), responses.close)
        try:
            await self.do(lambda _: peer.receive(request))
            async for response in responses:
                yield response
                if is_last(response):
                    return
        finally:
            if self._cable is None:  # nor are there threads any more, in which something else could be done meanwhile
                peer.close()
            else:
                await in_thread(peer.close, self._threads)

    async def close(self) -> None:
        """Flush and close; what is awaited later is refused. Safe to call twice."""
        if self._cable is not None:
            await self.do(Cable.close)
            self._cable = None
            self._threads.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        self._cable = await in_thread(self._open, self._threads)
        return self

    def _opened(self) -> Cable:
        if self._cable is None:
            raise CableError("the store is not open", remedy="use it in an `async with`")
        return self._cable


def is_last(response: Message) -> bool:
    """Whether no response follows this one."""
    if isinstance(response, HashResponse):
        return not response.hashes
    return isinstance(response, ChannelListResponse) or (isinstance(response, PostResponse) and not response.posts)
