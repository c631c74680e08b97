"""What posts and messages are made of: numbers, hashes, and text behind its length.

number = varint        unsigned LEB128: groups of seven bits, low ones first, in as few bytes as hold it
hash   = u8[32]
sized  = varint u8[*]  the length in bytes, and so many bytes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from jitdb.common.words import shown, type_and_size
from jitdb.errors import DecodeError
from jitdb.stores.cable.errors import InvalidMessage, InvalidPost, NotEncodable
from jitdb.stores.varint import MOST, read_varint, varint

HASH_BYTES: Final = 32

# How long a text may be: at least and at most so many codepoints.
CODEPOINTS: Final = {"channel": (1, 64), "topic": (0, 512), "key": (1, 128), "name": (1, 32)}
# And these, at most so many bytes.
BYTES: Final = {"text": 4096, "value": 4096}


class Reader:
    """Takes one part after the other from bytes that anybody may have sent. Raises `error`, with the position."""

    def __init__(self, data: bytes, error: type[InvalidPost] | type[InvalidMessage], position: int = 0) -> None:
        self.data = data
        self.position = position
        self._error = error

    def refuse(self, reason: str, position: int) -> InvalidPost | InvalidMessage:
        """The error that says so."""
        return self._error(reason, position=position)

    def number(self) -> int:
        """A number of at most 64 bits, in as few bytes as hold it."""
        begin = self.position
        try:
            number, self.position = read_varint(self.data, begin)
        except DecodeError as error:
            raise self.refuse(error.reason, begin) from None
        if number < 1 << 7 * (self.position - begin - 1) and self.position > begin + 1:
            raise self.refuse(f"the number at byte {begin} takes more bytes than it needs", begin)
        return number

    def take(self, size: int, what: str) -> bytes:
        """So many bytes."""
        begin = self.position
        if size > len(self.data) - begin:
            raise self.refuse(
                f"{what} takes {size:,} bytes at byte {begin}, and {len(self.data) - begin:,} are left", begin
            )
        self.position = begin + size
        return self.data[begin : self.position]

    def hashes(self, what: str) -> tuple[bytes, ...]:
        """Hashes behind their number."""
        count = self.number()
        raw = self.take(count * HASH_BYTES, what)
        return tuple(raw[at : at + HASH_BYTES] for at in range(0, len(raw), HASH_BYTES))

    def sized(self, what: str) -> bytes:
        """Bytes behind their length."""
        return self.take(self.number(), what)

    def text(self, what: str) -> str:
        """Text behind its length, within its limits."""
        begin = self.position
        return self.as_text(what, self.sized(what), begin)

    def as_text(self, what: str, raw: bytes, begin: int) -> str:
        """The text that these bytes are, within its limits."""
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            reason = f"the {what} at byte {begin} is no UTF-8: {error.reason}"
            raise self.refuse(reason, begin) from None
        wrong = over_limit(what, text, len(raw))
        if wrong:
            raise self.refuse(wrong, begin)
        return text

    def end(self) -> None:
        """Nothing may follow."""
        left = len(self.data) - self.position
        if left:
            raise self.refuse(f"{left:,} bytes follow the end at byte {self.position}", self.position)


def over_limit(what: str, text: str, size: int) -> str:
    """What is wrong with the length of a text of so many bytes; empty where nothing is.

    >>> over_limit("name", "", 0), over_limit("name", "\N{CAT}" * 32, 128)
    ('the name has 0 codepoints, and must have 1 to 32', '')
    """
    if what in BYTES and size > BYTES[what]:
        return f"the {what} has {size:,} bytes, and must have at most {BYTES[what]:,}"
    least, most = CODEPOINTS.get(what, (0, size))
    if not least <= len(text) <= most:
        return f"the {what} has {len(text):,} codepoints, and must have {least} to {most}"
    return ""


def number(what: str, given: Any) -> bytes:
    """The bytes of a number. Raises NotEncodable."""
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= MOST:
        raise NotEncodable(f"{what}: a whole number of at most 64 bits, not {shown(given)}")
    return varint(given)


def fixed(what: str, given: Any, size: int = HASH_BYTES) -> bytes:
    """So many bytes, as they are. Raises NotEncodable."""
    if not isinstance(given, (bytes, bytearray, memoryview)) or len(given) != size:
        raise NotEncodable(f"{what}: {size} bytes, not {type_and_size(given)}")
    return bytes(given)


def hashes(what: str, given: Any) -> bytes:
    """Hashes behind their number. Raises NotEncodable."""
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
        raise NotEncodable(f"{what}: a list of hashes, not {shown(given)}")
    return varint(len(given)) + b"".join(fixed(what, each) for each in given)


def text(what: str, given: Any) -> bytes:
    """Text behind its length, within its limits. Raises NotEncodable."""
    raw = utf8(what, given)
    return varint(len(raw)) + raw


def utf8(what: str, given: Any) -> bytes:
    """The bytes of a text, within its limits. Raises NotEncodable."""
    if not isinstance(given, str):
        raise NotEncodable(f"{what}: text, not {type_and_size(given)}")
    try:
        raw = given.encode()
    except UnicodeEncodeError:
        raise NotEncodable(f"{what}: the string has a lone surrogate and is not Unicode text") from None
    wrong = over_limit(what, given, len(raw))
    if wrong:
        raise NotEncodable(wrong, remedy="shorten it" if given else "give it one")
    return raw


class Part(NamedTuple):
    """How a field is read and written; `write` is told its name."""

    read: Callable[[Reader], Any]
    write: Callable[[str, Any], bytes]


NUMBER: Final = Part(Reader.number, number)
HASHES: Final = Part(lambda reader: reader.hashes("the list of hashes"), hashes)


def text_part(name: str) -> Part:
    """The field of this name, a text within its limits."""
    return Part(lambda reader: reader.text(name), text)
