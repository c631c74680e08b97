"""Messages between peers: requests and responses, bytes to values and back, as the draft 8 of the protocol has them.

message = msg_len:varint msg_type:varint req_id:u8[8] body        msg_len counts what follows it
body    = hash response(0):       hashes
        | post response(1):       (post:sized)* 00                no post: nothing more will come
        | post request(2):        hashes
        | cancel(3):              cancel_id:u8[8]                  the req_id of what is given up
        | time range request(4):  channel:sized time_start:varint time_end:varint limit:varint
        | state request(5):       channel:sized future:varint      0 or 1
        | channel list request(6): offset:varint limit:varint
        | channel list response(7): (channel:sized)* 00
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, get_args

from jitdb.common.words import shown, type_and_size
from jitdb.stores.cable import wire
from jitdb.stores.cable.errors import InvalidMessage, NotEncodable
from jitdb.stores.cable.wire import HASHES, NUMBER, Part, Reader, text_part

REQUEST_BYTES: Final = 8  # of a req_id


class HashResponse(NamedTuple):
    """Hashes of posts; without any, the end."""

    req_id: bytes
    hashes: tuple[bytes, ...]


class PostResponse(NamedTuple):
    """Posts, each as its bytes; without any, the end."""

    req_id: bytes
    posts: tuple[bytes, ...]


class PostRequest(NamedTuple):
    """Asks for the posts with these hashes."""

    req_id: bytes
    hashes: tuple[bytes, ...]


class CancelRequest(NamedTuple):
    """Gives up another request."""

    req_id: bytes
    cancel_id: bytes


class TimeRangeRequest(NamedTuple):
    """Asks for the hashes of a channel's texts and deletions, times in milliseconds.

    time_end: the first moment that is too late; 0: those that come, too
    limit:    the most hashes; 0: all
    """

    req_id: bytes
    channel: str
    time_start: int
    time_end: int
    limit: int


class StateRequest(NamedTuple):
    """Asks for the hashes of what a channel is; `future` 1: of what it becomes, too."""

    req_id: bytes
    channel: str
    future: int


class ChannelListRequest(NamedTuple):
    """Asks for the names of channels, without the first `offset`; `limit` 0: all."""

    req_id: bytes
    offset: int
    limit: int


class ChannelListResponse(NamedTuple):
    """Names of channels."""

    req_id: bytes
    channels: tuple[str, ...]


Message = (
    HashResponse | PostResponse | PostRequest | CancelRequest | TimeRangeRequest | StateRequest | ChannelListRequest
    | ChannelListResponse
)  # fmt: skip

KINDS: Final[tuple[type[Any], ...]] = get_args(Message)  # by their msg_type


def decode_message(data: bytes) -> Message:
    """The message that all these bytes are. Raises InvalidMessage, with the position.

    >>> decode_message(encode_message(ChannelListRequest(bytes(8), 0, 20))).limit
    20
    """
    message, end = read_message(data)
    if end < len(data):
        raise InvalidMessage(f"{len(data) - end:,} bytes follow the end at byte {end}", position=end)
    return message


def read_message(data: bytes, position: int = 0) -> tuple[Message, int]:
    """The message at a position, and where it ends. Raises InvalidMessage."""
    outer = Reader(data, InvalidMessage, position)
    size = outer.number()
    begin = outer.position
    outer.take(size, "the message")
    reader = Reader(data[: outer.position], InvalidMessage, begin)
    kind = reader.number()
    if kind >= len(KINDS):
        raise InvalidMessage(f"the type at byte {begin} is {kind}: known are 0 to {len(KINDS) - 1}", position=begin)
    fields = [_PARTS[name].read(reader) for name in KINDS[kind]._fields]
    reader.end()
    message: Message = KINDS[kind](*fields)
    return message, outer.position


def encode_message(message: Message) -> bytes:
    """The bytes of a message. Raises NotEncodable, which names the field."""
    if type(message) not in KINDS:
        raise NotEncodable(f"a message is one of {', '.join(each.__name__ for each in KINDS)}, not {shown(message)}")
    fields = zip(message._fields, message, strict=True)
    body = b"".join(_PARTS[name].write(name, value) for name, value in fields)
    kind = bytes([KINDS.index(type(message))])
    return wire.number("msg_len", len(kind) + len(body)) + kind + body


def _read_until_empty(reader: Reader, what: str) -> list[tuple[int, bytes]]:
    """What stands before one that is empty, each with where it begins."""
    found: list[tuple[int, bytes]] = []
    while True:
        begin = reader.position
        raw = reader.sized(what)
        if not raw:
            return found
        found.append((begin, raw))


def _read_posts(reader: Reader) -> tuple[bytes, ...]:
    return tuple(raw for _, raw in _read_until_empty(reader, "the post"))


def _read_channels(reader: Reader) -> tuple[str, ...]:
    return tuple(reader.as_text("channel", raw, begin) for begin, raw in _read_until_empty(reader, "the channel"))


def _read_future(reader: Reader) -> int:
    begin = reader.position
    found = reader.number()
    if found > 1:
        raise InvalidMessage(f"the field `future` at byte {begin} is {found}: it is 0 or 1", position=begin)
    return found


def _write_posts(what: str, given: Any) -> bytes:
    parts = []
    for post in _list(what, given):
        if not isinstance(post, bytes) or not post:
            raise NotEncodable(f"{what}: the bytes of a post, not {type_and_size(post)}")
        parts.append(wire.number(what, len(post)) + post)
    return b"".join(parts) + b"\0"


def _write_channels(what: str, given: Any) -> bytes:
    return b"".join(wire.text("channel", channel) for channel in _list(what, given)) + b"\0"


def _write_future(what: str, given: Any) -> bytes:
    if given not in (0, 1):
        raise NotEncodable(f"{what}: 0 or 1, not {shown(given)}")
    return bytes([given])


def _list(what: str, given: Any) -> Sequence[Any]:
    if isinstance(given, (list, tuple)):
        return given
    raise NotEncodable(f"{what}: a list, not {shown(given)}")


_ID: Final = Part(
    lambda reader: reader.take(REQUEST_BYTES, "the id"), lambda what, given: wire.fixed(what, given, REQUEST_BYTES)
)
_PARTS: Final = {
    "req_id": _ID, "cancel_id": _ID, "hashes": HASHES, "posts": Part(_read_posts, _write_posts),
    "channels": Part(_read_channels, _write_channels), "channel": text_part("channel"), "time_start": NUMBER,
    "time_end": NUMBER, "limit": NUMBER, "offset": NUMBER, "future": Part(_read_future, _write_future),
}  # fmt: skip
