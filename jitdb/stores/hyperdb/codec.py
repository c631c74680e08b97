"""The codec "hyperdb": a feed's records as questions see them.

    an entry     {"key": "a/b", "path": {"0": "a", "1": "b"}, "value": b"…", "deleted": False, "trie": b"…",
                  "clock": [3, 1], "inflate": 1, "feeds": [b"…", b"…"], "contentFeed": b"…"}
    the header   {"protocol": "hyperdb"}

What an entry does not have is left out, but for `deleted`, which is then False, and `clock`, which is empty. `path` is
what the key is made of (format/path.py); it stands in no record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from jitdb.common.paths import Keys
from jitdb.common.words import shown, type_and_size
from jitdb.errors import DecodeError, EncodeError
from jitdb.log.codecs import Codec
from jitdb.log.codecs.base import Buffer
from jitdb.stores.hyperdb.format.entry import HEADER, PROTOCOL, Entry, decode_entry, decode_header, encode_entry
from jitdb.stores.hyperdb.format.path import segments_of

if TYPE_CHECKING:
    from jitdb.log.codecs.fields.located import Locator

FIELDS: Final = ("key", "path", "value", "deleted", "trie", "clock", "inflate", "feeds", "contentFeed")

_MOST: Final = 2**64 - 1


class HyperdbCodec(Codec):
    """Entries of a feed, and its header.

    >>> codec = HyperdbCodec()
    >>> record = codec.encode({"key": "life/cat", "value": b"meow", "trie": b"", "clock": [2], "inflate": 1})
    >>> codec.decode(record)["path"]
    {'0': 'life', '1': 'cat'}
    """

    name: ClassVar[str] = "hyperdb"

    def encode(self, value: Any) -> bytes:
        """The record that `decode` makes this of, or that of an Entry. Raises EncodeError."""
        if isinstance(value, Entry):
            return encode_entry(value)
        if not isinstance(value, dict):
            raise EncodeError(f"an entry of a feed is a dict, not {type_and_size(value)}")
        if "protocol" in value:
            if len(value) > 1 or value["protocol"] != PROTOCOL:
                raise EncodeError(f"the header of a feed is {{'protocol': {PROTOCOL!r}}}, not {type_and_size(value)}")
            return HEADER
        return encode_entry(entry_of(value))

    def decode(self, record: Buffer) -> dict[str, Any]:
        record = bytes(record)
        try:
            entry = decode_entry(record)
        except DecodeError:
            if not is_header(record):
                raise
            return {"protocol": PROTOCOL}
        return values_of(entry)

    def looks_like(self, records: Sequence[bytes]) -> bool:
        """The header, and entries."""
        return bool(records) and is_header(records[0]) and all(map(self.is_valid, records))

    def locator(self, paths: Sequence[Keys]) -> Locator:
        from jitdb.stores.hyperdb.format.entry_locator import EntryLocator  # with numpy

        return EntryLocator(self, paths)


def is_header(record: bytes) -> bool:
    """Whether it is the first record of a feed of ours."""
    try:
        return decode_header(record) == PROTOCOL
    except DecodeError:
        return False


def path_of(key: str) -> dict[str, str]:
    """The segments of a key by their numbers, as text.

    >>> path_of("life//cat/")
    {'0': 'life', '1': '', '2': 'cat'}
    """
    return {str(number): segment for number, segment in enumerate(segments_of(key))}


def values_of(entry: Entry) -> dict[str, Any]:
    """An entry as questions see it."""
    found: dict[str, Any] = {"key": entry.key, "path": path_of(entry.key)}
    if entry.value is not None:
        found["value"] = entry.value
    found |= {"deleted": entry.deleted, "trie": entry.trie, "clock": list(entry.clock)}
    if entry.inflate >= 0:
        found["inflate"] = entry.inflate
    if entry.feeds:
        found["feeds"] = list(entry.feeds)
    if entry.content_feed is not None:
        found["contentFeed"] = entry.content_feed
    return found


def entry_of(value: dict[str, Any]) -> Entry:
    """The entry that is seen so. Raises EncodeError, which names the field."""
    for name in value:
        if name not in FIELDS:
            raise EncodeError(f"an entry has no field {shown(name)}: it has {', '.join(FIELDS)}")
    for name in ("key", "trie"):
        if name not in value:
            raise EncodeError(f"{name}: every entry has one, and this has none")
    key = _text(value["key"])
    if "path" in value and value["path"] != path_of(key):
        raise EncodeError(f"path: that of the key {shown(key)} is {shown(path_of(key))}, not {shown(value['path'])}")
    deleted = value.get("deleted", False)
    if deleted is not True and deleted is not False:
        raise EncodeError(f"deleted: True or False, not {shown(deleted)}")
    feeds = [_bytes("feeds", feed) for feed in _list("feeds", value["feeds"])] if "feeds" in value else None
    if feeds == []:
        raise EncodeError("feeds: an entry names a feed, or leaves them out")
    return Entry(
        key=key,
        value=_bytes("value", value["value"]) if "value" in value else None,
        deleted=deleted,
        trie=_bytes("trie", value["trie"]),
        clock=tuple(_number("clock", length) for length in _list("clock", value.get("clock", ()))),
        inflate=_number("inflate", value["inflate"]) if "inflate" in value else -1,
        feeds=tuple(feeds) if feeds else None,
        content_feed=_bytes("contentFeed", value["contentFeed"]) if "contentFeed" in value else None,
    )


def _text(key: Any) -> str:
    if not isinstance(key, str):
        raise EncodeError(f"key: text, not {shown(key)}")
    try:
        key.encode()
    except UnicodeEncodeError:
        raise EncodeError("key: the string has a lone surrogate and is not Unicode text") from None
    return str(key)


def _bytes(name: str, given: Any) -> bytes:
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given)
    raise EncodeError(f"{name}: bytes, not {type_and_size(given)}")


def _list(name: str, given: Any) -> Iterable[Any]:
    if isinstance(given, (list, tuple)):
        return given
    raise EncodeError(f"{name}: a list, not {type_and_size(given)}")


def _number(name: str, given: Any) -> int:
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= _MOST:
        return int(given)
    raise EncodeError(f"{name}: a whole number of at most 64 bits, not {shown(given)}")
