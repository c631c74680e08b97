"""Posts for tests: those of the vectors, and any that hypothesis makes; what the vectors say, by kind of file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from jitdb.stores.cable.post import FIELDS, Post

VECTORS = Path(os.environ.get("JITDB_VECTORS") or Path(__file__).parent.parent / "data" / "vectors") / "cable"
MOST = 2**64 - 1


def vectors(kind: str, part: str) -> list[Any]:
    """What all files of a kind hold in a part."""
    found = [case for path in sorted(VECTORS.glob(f"{kind}*.json")) for case in json.loads(path.read_text())[part]]
    assert found, f"there are no {kind}*.json with {part} in {VECTORS}"
    return found


def cases(kind: str, part: str) -> list[Any]:
    """The same, named."""
    found = enumerate(vectors(kind, part))
    return [pytest.param(case, id=f"{case['name']}-{number}") for number, case in found]


def raw(value: Any) -> Any:
    """Hashes in hex, and lists of such, as bytes."""
    return tuple(map(bytes.fromhex, value)) if isinstance(value, list) else bytes.fromhex(value)


def post_of(case: dict[str, Any]) -> Post:
    """A post of the vectors, from what they say of its fields."""
    said = dict(case["fields"])
    for name in ("links", "hashes"):
        if name in said:
            said[name] = raw(said[name])
    if "info" in said:
        pairs = [(key, value.encode() if isinstance(value, str) else bytes([value])) for key, value in said["info"]]
        said["info"] = tuple(pairs)
    key = vectors("posts", "keys")[case["author"]]["public_key"]
    return Post(public_key=raw(key), signature=raw(case["signature"]), **said)


# --- any post --------------------------------------------------------------------------------------------------------

hashes = st.lists(st.binary(min_size=32, max_size=32), max_size=4).map(tuple)
numbers = st.integers(0, 300) | st.integers(0, MOST) | st.sampled_from([2**53 + 1, 2**63 - 1, 2**63, MOST])
letters = st.characters(exclude_categories=["Cs"])
channels = st.sampled_from(["default", "dev", "größe", "\U0001f408"]) | st.text(letters, min_size=1, max_size=64)
keys = st.text(letters, min_size=1, max_size=20).filter(lambda key: key not in ("name", "accept-role"))
pairs = (
    st.tuples(st.just("name"), st.text(letters, min_size=1, max_size=32).map(str.encode))
    | st.tuples(st.just("accept-role"), st.sampled_from([b"\0", b"\x01"]))
    | st.tuples(keys, st.binary(max_size=20))
)
bodies = {
    "channel": channels,
    "text": st.text(letters, max_size=30) | st.just("x" * 4096),
    "topic": st.text(letters, max_size=30) | st.just("\U0001f408" * 512),
    "hashes": hashes,
    "info": st.lists(pairs, max_size=4, unique_by=lambda pair: pair[0]).map(tuple),
}


def body_of(post_type: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({name: bodies[name] for name in FIELDS[post_type]})


@st.composite
def posts(draw: st.DrawFn) -> Post:
    """Any post, signed by nobody."""
    post_type = draw(st.sampled_from(sorted(FIELDS)))
    key, signature = draw(st.binary(min_size=32, max_size=32)), draw(st.binary(min_size=64, max_size=64))
    return Post(key, signature, draw(hashes), post_type, draw(numbers), **draw(body_of(post_type)))


HEAD = bytes(96)  # a key and a signature
# Posts that break a rule, behind their key and signature; each says what is wrong with it.
BROKEN = {
    "nothing": b"",
    "links cut short": b"\x01" + bytes(31),
    "more links than memory": b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    "a number of 65 bits": b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
    "a number without an end": b"\x80" * 10,
    "a number that is longer than need be": b"\x80\x00" + b"\x04\x01\x01c",
    "a type behind the last one": b"\x00\x06\x01\x01c",
    "a type that is no byte": b"\x00\x80\x02\x01\x01c",
    "no timestamp": b"\x00\x04",
    "no channel": b"\x00\x04\x01\x00",
    "a channel that is cut short": b"\x00\x04\x01\x02c",
    "a channel of 65 codepoints": b"\x00\x04\x01\x41" + b"c" * 65,
    "a channel that is no UTF-8": b"\x00\x04\x01\x01\xff",
    "a surrogate": b"\x00\x04\x01\x03\xed\xa0\x80",
    "a text that is too long": b"\x00\x00\x01\x01c\x81\x20" + b"x" * 4097,
    "a topic of 513 codepoints": b"\x00\x03\x01\x01c\x81\x04" + b"t" * 513,
    "hashes that are cut short": b"\x00\x01\x01\x02" + bytes(63),
    "no end of the information": b"\x00\x02\x01\x01k\x01v",
    "a key without a value": b"\x00\x02\x01\x01k",
    "a key that is too long": b"\x00\x02\x01\x81\x01" + b"k" * 129 + b"\x00\x00",
    "a value that is too long": b"\x00\x02\x01\x01k\x81\x20" + b"v" * 4097 + b"\x00",
    "an empty name": b"\x00\x02\x01\x04name\x00\x00",
    "a name of 33 codepoints": b"\x00\x02\x01\x04name\x21" + b"n" * 33 + b"\x00",
    "a role that is no number": b"\x00\x02\x01\x0baccept-role\x02\x00\x00\x00",
    "a byte behind the end": b"\x00\x04\x01\x01c\x00",
}
