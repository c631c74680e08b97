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

from typing import Any, Final, NamedTuple

from jitdb.errors import DecodeError
from jitdb.stores.varint import read_varint, varint

PROTOCOL: Final = "hyperdb"
HEADER: Final = b"\x0a\x07hyperdb"

_NUMBERS: Final = 2**29  # a field's is below
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
    return _plain(record) or _any_entry(record)


def _plain(record: bytes) -> Entry | None:
    """The entry, if its fields are there once each, in order, without `feeds`: as encode_entry writes nearly all.

    Anything else is None: what it is, the other way finds out.
    """
    try:
        if record[0] != 0x0A or record[1] > 127:
            return None
        at = 2 + record[1]
        key = record[2:at].decode()
        value, deleted, clock = None, False, []
        if record[at] == 0x12:
            size, start = (record[at + 1], at + 2) if record[at + 1] < 128 else read_varint(record, at + 1)
            at = start + size
            value = record[start:at]
        if record[at] == 0x18:
            deleted, at = record[at + 1] == 1, at + 2
            if not deleted:
                return None
        if record[at] != 0x22:
            return None
        size, start = (record[at + 1], at + 2) if record[at + 1] < 128 else read_varint(record, at + 1)
        at = start + size
        trie = record[start:at]
        while record[at] == 0x28:
            length, at = read_varint(record, at + 1)
            clock.append(length)
        if record[at] != 0x30:
            return None
        inflate, at = (record[at + 1], at + 2) if record[at + 1] < 128 else read_varint(record, at + 1)
        return Entry(key, value, deleted, trie, tuple(clock), inflate) if at == len(record) else None
    except (IndexError, UnicodeDecodeError, DecodeError):
        return None


def _any_entry(record: bytes) -> Entry:
    """The same for any bytes. Raises DecodeError."""
    last: dict[int, Any] = {}  # what each field said
    clock: list[int] = []
    feeds: list[bytes] = []
    key_at = 0
    for number, wire_type, value, start, stop in fields_of(record, 0, len(record)):
        if number not in _WIRE_TYPES:
            continue
        if wire_type == _WIRE_TYPES[number]:
            if number == _CLOCK:
                clock.append(value)
            elif number == _FEEDS:
                feeds.append(_feed_key(record, start, stop))
            elif wire_type == _VARINT:
                last[number] = value
            else:
                last[number] = record[start:stop]
                key_at = start if number == _KEY else key_at
        elif number == _CLOCK and wire_type == _BYTES:
            clock += _packed(record, start, stop)
        else:
            raise _mistyped(number, wire_type, start)
    if _KEY not in last or _TRIE not in last:
        raise DecodeError(
            f"an entry has a {'trie' if _KEY in last else 'key'}, and this has none", position=len(record)
        )
    return Entry(
        _text(last[_KEY], key_at), last.get(_VALUE), last.get(_DELETED, 0) != 0, last[_TRIE], tuple(clock),
        last.get(_INFLATE, -1), tuple(feeds) or None, last.get(_CONTENT),
    )  # fmt: skip


def decode_header(record: bytes) -> str:
    """The protocol that the first record of a feed names. Raises DecodeError, also for an entry."""
    protocol, begin = None, 0
    for number, wire_type, _, start, stop in fields_of(record, 0, len(record)):
        if number == _TRIE or (number == _KEY and wire_type != _BYTES):
            raise _mistyped(number, wire_type, start)
        if number == _KEY:
            protocol, begin = record[start:stop], start
    if protocol is None:
        raise DecodeError("a header has a protocol, and this has none", position=len(record))
    return _text(protocol, begin)


def fields_of(data: bytes, position: int, end: int) -> list[tuple[int, int, int, int, int]]:
    """The fields of a message: number, wire type, what a varint says, where its bytes begin and end.

    Raises DecodeError where one breaks a rule of protobuf. Groups, which it has given up, are none.
    """
    found = []
    while position < end:
        begin, tag, start = position, data[position], position + 1
        if tag > 127:
            tag, start = read_varint(data, begin, end)
        number, wire_type, value = tag >> 3, tag & 7, 0
        if wire_type == _VARINT or wire_type == _BYTES:
            if start < end and data[start] < 128:
                value, position = data[start], start + 1
            else:
                value, position = read_varint(data, start, end)
            if wire_type == _BYTES:
                start, position, value = position, position + value, 0
        elif wire_type == _FIXED64 or wire_type == _FIXED32:
            position = start + (8 if wire_type == _FIXED64 else 4)
        else:
            number = 0
        if not 0 < number < _NUMBERS:
            raise DecodeError(f"at byte {begin} is no field: {tag:#x}", position=begin)
        if position > end:
            reason = f"{position - start:,} bytes at byte {start} do not fit into the {end - start:,} that are left"
            raise DecodeError(reason, position=start)
        found.append((number, wire_type, value, start, position))
    return found


def _packed(data: bytes, position: int, end: int) -> list[int]:
    """Varints one behind the other."""
    found = []
    while position < end:
        number, position = read_varint(data, position, end)
        found.append(number)
    return found


def _feed_key(data: bytes, position: int, end: int) -> bytes:
    """The key in a message Feed."""
    key = None
    for number, wire_type, _, start, stop in fields_of(data, position, end):
        if number == _KEY:
            if wire_type != _BYTES:
                raise _mistyped(number, wire_type, start)
            key = data[start:stop]
    if key is None:
        raise DecodeError("a feed has a key, and this has none", position=end)
    return key


def _mistyped(number: int, wire_type: int, position: int) -> DecodeError:
    return DecodeError(f"the field {number} before byte {position} has the wire type {wire_type}", position=position)


def _text(text: bytes, begin: int) -> str:
    """The text whose UTF-8 begins there."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        position = begin + error.start
        raise DecodeError(f"the text at byte {begin} is no UTF-8: {error.reason}", position=position) from None
