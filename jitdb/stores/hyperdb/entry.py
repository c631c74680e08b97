"""Entries as a feed holds them: protobuf messages, byte for byte.

    message Header { required string protocol = 1; }          the first record of a feed: "hyperdb"

    message Entry {                                             all others
      required string key = 1;        without the slash in front
      optional bytes value = 2;
      optional bool deleted = 3;
      required bytes trie = 4;        trie.py
      repeated uint64 clock = 5;      of each feed that the writer knew: how many records of it, this one included
      optional uint64 inflate = 6;    the newest entry of this feed that has `feeds`, by its seq; itself, if it has
      repeated Feed feeds = 7;        { required bytes key = 1; } the feeds that the writer knew, in the clock's order
      optional bytes contentFeed = 8; the key of a feed beside this one, for what is too large for a value
    }

Only an entry has a trie, so what has none is a header. Fields are written in the order of their numbers.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from jitdb.errors import DecodeError

PROTOCOL: Final = "hyperdb"
HEADER: Final = b"\x0a\x07hyperdb"

_MOST: Final = 2**64 - 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_KEY, _VALUE, _DELETED, _TRIE, _CLOCK, _INFLATE, _FEEDS, _CONTENT = range(1, 9)
_WIRE_TYPES: Final = {_KEY: _BYTES, _VALUE: _BYTES, _DELETED: _VARINT, _TRIE: _BYTES, _CLOCK: _VARINT,
                      _INFLATE: _VARINT, _FEEDS: _BYTES, _CONTENT: _BYTES}  # fmt: skip


class Entry(NamedTuple):
    """What an entry says. `inflate` is -1 where it is left out, `feeds` None."""

    key: str
    value: bytes | None
    deleted: bool
    trie: bytes
    clock: tuple[int, ...]
    inflate: int
    feeds: tuple[bytes, ...] | None = None
    content_feed: bytes | None = None


def varint(number: int) -> bytes:
    """A number from 0 to 2**64 - 1 in base 128, the lowest seven bits first.

    >>> varint(300).hex()
    'ac02'
    """
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at a position, and where it ends. Raises DecodeError for one cut short, or of more than 64 bits."""
    number = shift = 0
    begin = position
    for byte in data[position : position + 10]:
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            if number > _MOST:
                break
            return number, position
        shift += 7
    if position == len(data) and position - begin < 10:
        raise DecodeError(f"the number at byte {begin} is cut short", position=begin)
    raise DecodeError(f"the number at byte {begin} has more than 64 bits", position=begin)


def encode_entry(entry: Entry) -> bytes:
    """The bytes of an entry.

    >>> encode_entry(Entry("a", b"1", False, b"", (2,), 1)).hex()
    '0a0161120131220028023001'
    """
    key = entry.key.encode()
    parts = [b"\x0a", varint(len(key)), key]
    if entry.value is not None:
        parts += b"\x12", varint(len(entry.value)), entry.value
    if entry.deleted:
        parts.append(b"\x18\x01")
    parts += b"\x22", varint(len(entry.trie)), entry.trie
    for length in entry.clock:
        parts += b"\x28", varint(length)
    if entry.inflate >= 0:
        parts += b"\x30", varint(entry.inflate)
    for feed in entry.feeds or ():
        message = b"\x0a" + varint(len(feed)) + feed
        parts += b"\x3a", varint(len(message)), message
    if entry.content_feed is not None:
        parts += b"\x42", varint(len(entry.content_feed)), entry.content_feed
    return b"".join(parts)


def decode_entry(record: bytes) -> Entry:
    """What these bytes say. Raises DecodeError, with the position, unless they are an entry, whole.

    As protobuf has it, unknown fields are passed over, and of a field that is there twice the last one counts.
    """
    key: bytes | None = None
    value: bytes | None = None
    trie: bytes | None = None
    content: bytes | None = None
    deleted, inflate = False, -1
    clock: list[int] = []
    feeds: list[bytes] = []
    position, end = 0, len(record)
    while position < end:
        begin = position
        tag, position = read_varint(record, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            found, position = read_varint(record, position)
            if number == _CLOCK:
                clock.append(found)
            elif number == _INFLATE:
                inflate = found
            elif number == _DELETED:
                deleted = found != 0
        else:
            payload, position = _payload(record, wire_type, position)
            if number == _KEY:
                key = payload
            elif number == _VALUE:
                value = payload
            elif number == _TRIE:
                trie = payload
            elif number == _CLOCK:
                clock += _packed(payload)
            elif number == _FEEDS:
                feeds.append(_feed_key(payload))
            elif number == _CONTENT:
                content = payload
        if number in _WIRE_TYPES and wire_type != _WIRE_TYPES[number] and (number, wire_type) != (_CLOCK, _BYTES):
            raise DecodeError(f"the field {number} at byte {begin} has the wire type {wire_type}", position=begin)
    if key is None or trie is None:
        raise DecodeError(f"an entry has a {'trie' if key is not None else 'key'}, and this has none", position=end)
    return Entry(_text(key), value, deleted, trie, tuple(clock), inflate, tuple(feeds) or None, content)


def decode_header(record: bytes) -> str:
    """The protocol that the first record of a feed names. Raises DecodeError."""
    protocol: bytes | None = None
    position = 0
    while position < len(record):
        begin = position
        tag, position = read_varint(record, position)
        if tag & 7 == _VARINT:
            _, position = read_varint(record, position)
            continue
        payload, position = _payload(record, tag & 7, position)
        if tag >> 3 == 1:
            if tag & 7 != _BYTES:
                raise DecodeError(f"the field 1 at byte {begin} has the wire type {tag & 7}", position=begin)
            protocol = payload
    if protocol is None:
        raise DecodeError("a header has a protocol, and this has none", position=len(record))
    return _text(protocol)


def _payload(record: bytes, wire_type: int, position: int) -> tuple[bytes, int]:
    """The bytes of a field that is no varint, and where they end."""
    begin = position
    if wire_type == _BYTES:
        size, position = read_varint(record, position)
    elif wire_type == _FIXED64 or wire_type == _FIXED32:
        size = 8 if wire_type == _FIXED64 else 4
    else:
        raise DecodeError(f"the wire type {wire_type} before byte {begin} is none", position=begin)
    if size > len(record) - position:
        reason = f"{size:,} bytes at byte {begin} do not fit into the {len(record) - position:,} that are left"
        raise DecodeError(reason, position=begin)
    return record[position : position + size], position + size


def _packed(payload: bytes) -> list[int]:
    """Varints one behind the other."""
    found, position = [], 0
    while position < len(payload):
        number, position = read_varint(payload, position)
        found.append(number)
    return found


def _feed_key(payload: bytes) -> bytes:
    """The key in a message Feed."""
    key: bytes | None = None
    position = 0
    while position < len(payload):
        tag, position = read_varint(payload, position)
        if tag & 7 == _VARINT:
            _, position = read_varint(payload, position)
            continue
        found, position = _payload(payload, tag & 7, position)
        if tag == 1 << 3 | _BYTES:
            key = found
    if key is None:
        raise DecodeError("a feed has a key, and this has none", position=len(payload))
    return key


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(
            f"the key is no UTF-8: {error.reason} at its byte {error.start}", position=error.start
        ) from None
