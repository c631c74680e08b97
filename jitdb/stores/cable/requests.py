"""Answers to a peer's requests: what is known, and of requests that stay alive what comes.

    peer = Peer(cable, send)        send: called with each response
    peer.receive(request)

A request ends with its last response, by a cancel, or with close(). What answers it is said in views.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from jitdb.common.words import shown
from jitdb.stores.cable.database import Cable, Outcome
from jitdb.stores.cable.errors import CableError
from jitdb.stores.cable.message import (
    KINDS,
    CancelRequest,
    ChannelListRequest,
    ChannelListResponse,
    HashResponse,
    Message,
    PostRequest,
    PostResponse,
    StateRequest,
    TimeRangeRequest,
)
from jitdb.stores.cable.order import Known
from jitdb.stores.cable.post import DELETE, INFO, TEXT, TOPIC
from jitdb.stores.cable.views import Parts

HASHES_AT_ONCE: Final = 4096  # in one response
MOST_ALIVE: Final = 1024  # requests of a peer; what more they ask for ends with what is known
BYTES_AT_ONCE: Final = 1 << 20  # of posts in one response, or one post


class Live(Protocol):
    """A request that stays alive."""

    def news(self, known: Known, outcome: Outcome) -> list[bytes]:
        """The hashes to send because this post came."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether nothing more is wanted."""
        ...


class Peer:
    """The requests of one peer. For the thread of the store.

    send:   called with each response, in order; what it raises comes out of receive(), or of the store's ingest()
    closed: called when the store closes, after which nothing is sent any more
    """

    def __init__(
        self, cable: Cable, send: Callable[[Message], object], closed: Callable[[], object] = lambda: None
    ) -> None:
        self._cable = cable
        self._send = send
        self._live: dict[bytes, Live] = {}
        self._end = cable.listen(self._came, closed)

    def receive(self, request: Message) -> None:
        """Answer a request. One with the id of another that is alive is not looked at, nor is a response."""
        if not isinstance(request, KINDS):
            raise CableError(f"a request is one of {', '.join(each.__name__ for each in KINDS)}, not {shown(request)}")
        if isinstance(request, CancelRequest):
            self._live.pop(request.cancel_id, None)
        elif request.req_id in self._live:
            return
        elif isinstance(request, PostRequest):
            for posts in self._posts(request):
                self._send(PostResponse(request.req_id, posts))
        elif isinstance(request, ChannelListRequest):
            names = self._cable.channels()[request.offset :]
            self._send(ChannelListResponse(request.req_id, tuple(names[: request.limit] if request.limit else names)))
        elif isinstance(request, TimeRangeRequest):
            self._answer_range(request)
        elif isinstance(request, StateRequest):
            self._answer_state(request)

    @property
    def alive(self) -> list[bytes]:
        """The ids of the requests that are alive, the oldest first."""
        return list(self._live)

    def close(self) -> None:
        """Forget all requests: the peer is gone."""
        self._live.clear()
        self._end()

    def _posts(self, request: PostRequest) -> Iterator[tuple[bytes, ...]]:
        """The posts that are here, some at a time; then none."""
        part: list[bytes] = []
        size = 0
        for post in filter(None, map(self._cable.get, request.hashes)):
            if part and size + len(post) > BYTES_AT_ONCE:
                yield tuple(part)
                part, size = [], 0
            part.append(post)
            size += len(post)
        if part:
            yield tuple(part)
        yield ()

    def _answer_range(self, request: TimeRangeRequest) -> None:
        found = self._cable.messages(request.channel, request.time_start, request.time_end, request.limit)
        is_over = request.time_end or (request.limit and len(found) >= request.limit)
        self._begin(request.req_id, found, None if is_over else LiveRange(self._cable, request, len(found)))

    def _answer_state(self, request: StateRequest) -> None:
        live = LiveState(self._cable, request)
        self._begin(request.req_id, live.parts.values(), live if request.future else None)

    def _begin(self, req_id: bytes, hashes: Iterable[bytes], live: Live | None) -> None:
        """Send what is there, and the end, unless the request stays alive."""
        self._say(req_id, hashes)
        if live is None or len(self._live) >= MOST_ALIVE:
            self._send(HashResponse(req_id, ()))
        else:
            self._live[req_id] = live

    def _say(self, req_id: bytes, found: Iterable[bytes]) -> None:
        hashes = list(dict.fromkeys(found))  # a post may be two parts of a state
        for begin in range(0, len(hashes), HASHES_AT_ONCE):
            self._send(HashResponse(req_id, tuple(hashes[begin : begin + HASHES_AT_ONCE])))

    def _came(self, known: Known, outcome: Outcome) -> None:
        for req_id, live in list(self._live.items()):
            self._say(req_id, live.news(known, outcome))
            if live.is_over:
                del self._live[req_id]
                self._send(HashResponse(req_id, ()))


class LiveRange:
    """Texts and deletes of a channel, as they come."""

    def __init__(self, cable: Cable, request: TimeRangeRequest, sent: int) -> None:
        self._cable = cable
        self._request = request
        self._left = request.limit - sent  # of a limit
        self._authors = set(cable.authors(request.channel))

    @property
    def is_over(self) -> bool:
        return self._request.limit > 0 and self._left <= 0

    def news(self, known: Known, outcome: Outcome) -> list[bytes]:
        found = self._wanted(known, outcome)
        found = found[: self._left] if self._request.limit else found
        self._left -= len(found)
        return found

    def _wanted(self, known: Known, outcome: Outcome) -> list[bytes]:
        cable, channel, start, post = self._cable, self._request.channel, self._request.time_start, known.post
        if outcome == "deleted":  # the deletes that waited for it concern its channel from now on, if not already
            deletes = cable.deletes_of(known.hash, start)
            return [each for each in deletes if channel in cable.newly_concerns(each, known.hash)]
        if post.post_type == DELETE:
            self._authors.intersection_update(cable.authors(channel))
            return [known.hash] if post.timestamp >= start and channel in cable.concerns(known.hash) else []
        if post.channel != channel:
            return []
        found = [known.hash] if post.post_type == TEXT and post.timestamp >= start else []
        if post.public_key not in self._authors:  # whose deleted information belongs to the channel from now on
            self._authors.add(post.public_key)
            found += cable.deletes_of_infos(post.public_key, start)
        return found


class LiveState:
    """What a channel is, and becomes: of each part its latest post, the one before where that was deleted.

    parts: what the channel is, by part
    _sent: what was sent last of each part, also of those that the channel has no more
    """

    is_over = False

    def __init__(self, cable: Cable, request: StateRequest) -> None:
        self._cable = cable
        self._channel = request.channel
        self.parts = cable.parts(self._channel)
        self._sent = dict(self.parts)

    def news(self, known: Known, outcome: Outcome) -> list[bytes]:
        if outcome != "stored":
            return []
        self.parts = self._after(known)
        new = {part: post for part, post in self.parts.items() if self._sent.get(part) != post}
        self._sent |= new
        return list(new.values())

    def _after(self, known: Known) -> Parts:
        """All parts, those found anew that this post may have changed."""
        post, cable, channel = known.post, self._cable, self._channel
        author = post.public_key
        if post.post_type == DELETE or cable.links_decide(post.timestamp):
            return cable.parts(channel)
        if post.post_type != INFO and post.channel != channel:
            return self.parts
        if post.post_type == TEXT and ("info", author) in self.parts:
            return self.parts  # a member already
        topic = cable.topic_part(channel) if post.post_type == TOPIC else {}
        others = {part: sent for part, sent in self.parts.items() if part[1] != author}
        return others | topic | cable.parts_of(author, channel)
