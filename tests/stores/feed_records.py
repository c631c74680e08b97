"""Records of feeds: those of the vectors, and those that any writer of protobuf may make, with what they say.

What a made-up record says is known from its parts: nothing here reads protobuf, and nothing is taken from jitdb.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

VECTORS = Path(os.environ.get("JITDB_VECTORS") or Path(__file__).parents[1] / "data" / "vectors") / "hyperdb"
HEADER = b"\x0a\x07hyperdb"
MOST = 2**64 - 1


def records_of_vectors() -> list[bytes]:
    """All records of feeds that are in the vectors, headers too, in the order of the files."""
    return [record for file in sorted(VECTORS.glob("*.json")) for record in _records_in(json.loads(file.read_text()))]


def feeds_of_vectors() -> Iterator[list[bytes]]:
    """Whole feeds."""
    for file in sorted(VECTORS.glob("single*.json")):
        for history in json.loads(file.read_text())["histories"]:
            records = [history["header"], *(node["entry"] for node in history["nodes"])]
            yield list(map(bytes.fromhex, records))


def _records_in(part: Any) -> Iterator[bytes]:
    if isinstance(part, list):
        for inner in part:
            yield from _records_in(inner)
    elif isinstance(part, dict):
        for name, inner in part.items():
            if name in ("header", "entry") and isinstance(inner, str):
                yield bytes.fromhex(inner)
            elif name in ("feed", "entries") and isinstance(inner, list):
                yield from map(bytes.fromhex, inner)
            else:
                yield from _records_in(inner)


# --- values, as questions see them -----------------------------------------------------------------------------------

numbers = st.integers(0, 300) | st.integers(0, MOST) | st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, 2**63, MOST])
segments = st.sampled_from(["", "a", "life", "cat", "größe", "\U0001f408", "x" * 40]) | st.text(max_size=6)
keys = st.lists(segments, max_size=5).map("/".join) | st.text("/a", max_size=30)
some_bytes = st.binary(max_size=12) | st.just(bytes(300))


def segments_in(key: str) -> list[str]:
    """The first segment of a key is none if it is empty, and then the last one."""
    found = key.split("/")
    found = found[1:] if found[0] == "" else found
    return found[:-1] if found and found[-1] == "" else found


def with_path(value: dict[str, Any]) -> dict[str, Any]:
    """An entry, and what its key is made of."""
    return {**value, "path": {str(number): each for number, each in enumerate(segments_in(value["key"]))}}


entries = st.fixed_dictionaries(
    {"key": keys, "deleted": st.booleans(), "trie": some_bytes, "clock": st.lists(numbers, max_size=4)},
    optional={
        "value": some_bytes, "inflate": numbers, "feeds": st.lists(some_bytes, min_size=1, max_size=3),
        "contentFeed": some_bytes,
    },
).map(with_path)  # fmt: skip
values = entries | entries | entries | st.just({"protocol": "hyperdb"})

# --- records, as any writer may make them ----------------------------------------------------------------------------


def varint(number: int, padding: int = 0, most: int = 10) -> bytes:
    """Base 128; the padding is zeros that need not be there, as far as so many bytes have room for them."""
    groups = [number >> shift & 127 for shift in range(0, max(number.bit_length(), 1), 7)]
    groups += [0] * min(padding, most - len(groups))
    return bytes([*(group | 128 for group in groups[:-1]), groups[-1]])


def field(number: int, said: int | bytes, wire_type: int | None = None, padding: int = 0) -> bytes:
    """A field: a varint of a number, else bytes behind their length. Tags and lengths have at most five bytes."""
    if wire_type is None:
        wire_type = 0 if isinstance(said, int) else 2
    tag = varint(number << 3 | wire_type, padding, 5)
    if isinstance(said, int):
        return tag + varint(said, padding)
    return tag + (varint(len(said), padding, 5) if wire_type == 2 else b"") + said


class Part(NamedTuple):
    """Bytes in a record, and what they say: of which field, and what."""

    name: str
    said: Any
    raw: bytes


def _parts(name: str, number: int, said: st.SearchStrategy[Any], raw: Any = lambda said: said) -> Any:
    return st.builds(lambda each, padding: Part(name, each, field(number, raw(each), None, padding)), said, _padding)


_padding = st.sampled_from([0, 0, 0, 1, 9])
_unknown = st.builds(
    lambda number, said, padding: Part("", None, field(number, *said, padding)),
    st.sampled_from([9, 15, 16, 2**29 - 1]),
    st.sampled_from([(7, 0), (MOST, 0), (b"12345678", 1), (b"", 2), (b"more", 2), (b"1234", 5)]),
    _padding,
)
_feeds = st.builds(
    lambda before, key, padding, after: Part("feeds", key, field(7, before + field(1, key, None, padding) + after)),
    st.sampled_from([b"", field(1, b"another"), field(2, 5), field(9, b"x")]), some_bytes, _padding,
    st.sampled_from([b"", field(2, b"y"), field(3, bytes(8), 1)]),
)  # fmt: skip
_packed = st.lists(numbers, max_size=3)
parts = st.one_of(
    _parts("key", 1, keys, str.encode),
    _parts("value", 2, some_bytes),
    _parts("deleted", 3, numbers),
    _parts("trie", 4, some_bytes),
    _parts("clock", 5, numbers),
    _parts("clock", 5, _packed, lambda lengths: b"".join(map(varint, lengths))),
    _parts("inflate", 6, numbers),
    _feeds,
    _parts("contentFeed", 8, some_bytes),
    _unknown,
)


def said_by(record: Sequence[Part]) -> dict[str, Any] | None:
    """What a record of these parts says; None if it is no record of a feed."""
    said: dict[str, Any] = {"deleted": False, "clock": []}
    for part in record:
        if part.name == "clock":
            said["clock"] += part.said if isinstance(part.said, list) else [part.said]
        elif part.name == "feeds":
            said.setdefault("feeds", []).append(part.said)
        elif part.name:
            said[part.name] = part.said != 0 if part.name == "deleted" else part.said
    if "key" in said and "trie" in said:
        return with_path(said)
    return {"protocol": "hyperdb"} if said.get("key") == "hyperdb" and "trie" not in said else None


messages = st.tuples(st.lists(parts, max_size=12), st.booleans(), st.booleans()).map(
    lambda drawn: [
        *drawn[0],
        *([Part("key", "a/b", field(1, b"a/b"))] if drawn[1] else []),
        *([Part("trie", b"\0\1\0\1", field(4, b"\0\1\0\1"))] if drawn[2] else []),
    ]
)

# --- records that are none -------------------------------------------------------------------------------------------

ENTRY = field(1, b"a/b") + field(4, b"")
BROKEN = {
    "nothing": b"",
    "no trie": field(1, b"a"),
    "no key": field(4, b""),
    "another protocol": field(1, b"hyperdrive"),
    "a header whose name is a number": field(1, b"hyperdb") + field(1, 7),
    "a key that is a number": field(1, 7) + ENTRY,
    "a value that is a number": ENTRY + field(2, 7),
    "a value of eight bytes": ENTRY + field(2, bytes(8), 1),
    "bytes for deleted": ENTRY + field(3, b"\1"),
    "a trie that is a number": field(4, 7) + ENTRY,
    "four bytes for the clock": ENTRY + field(5, bytes(4), 5),
    "bytes for inflate": ENTRY + field(6, b"\1"),
    "a number for the feeds": ENTRY + field(7, 7),
    "a feed without a key": ENTRY + field(7, field(2, b"x")),
    "a feed whose key is a number": ENTRY + field(7, field(1, 7)),
    "a feed cut short": ENTRY + field(7, b"\x0a\x05abc"),
    "a number for the content feed": ENTRY + field(8, 7),
    "a packed clock cut short": ENTRY + field(5, b"\1\x80"),
    "a packed number of 65 bits": ENTRY + field(5, b"\xff" * 9 + b"\2"),
    "the number 0 for a field": ENTRY + b"\2\0",
    "a field beyond 2**29": ENTRY + varint(1 << 32) + b"\0",
    "the beginning of a group": ENTRY + varint(9 << 3 | 3),
    "the end of a group": ENTRY + varint(9 << 3 | 4),
    "wire type 6": ENTRY + varint(9 << 3 | 6) + b"\0",
    "a tag cut short": ENTRY + b"\x80",
    "a tag of eleven bytes": ENTRY + b"\x90" + b"\x80" * 9 + b"\0\0",
    "a number cut short": ENTRY + b"\x28\x80",
    "a number of 65 bits": ENTRY + b"\x28" + b"\xff" * 9 + b"\2",
    "a number of eleven bytes": ENTRY + b"\x28" + b"\x80" * 10 + b"\0",
    "a length cut short": ENTRY + b"\x12\x80",
    "more bytes than there are": ENTRY + b"\x12\3ab",
    "2**63 bytes": ENTRY + b"\x12" + varint(2**63) + b"ab",
    "2**64 - 1 bytes": ENTRY + b"\x12" + varint(MOST) + b"ab",
    "eight bytes cut short": ENTRY + field(9, b"1234567", 1),
    "four bytes cut short": ENTRY + field(9, b"123", 5),
    "the clock's field alone": ENTRY + b"\x28",
}
NO_TEXT = [
    b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc2", b"\xc2a", b"\xe0\x9f\xbf", b"\xe0\xa0", b"\xed\xa0\x80",
    b"\xed\xbf\xbf", b"\xe2\x82", b"\xe2\x28\xa1", b"\xf0\x8f\xbf\xbf", b"\xf0\x90\x80", b"\xf4\x90\x80\x80",
    b"\xf5\x80\x80\x80", b"\xff", b"\xfe", b"\xf0\x9f\x90\x28",
]  # fmt: skip
BROKEN |= {
    f"the key {key!r}": field(1, key) + field(4, b"")
    for each in NO_TEXT
    for key in (each, b"a/b" + each, each + b"/c", b"12345678" + each + b"12345678")
}
