"""Records as programs write them: a few shapes, filled with values; and what goes wrong with some of them."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

from kernel_cases import bipf_value

from jitdb.common.paths import Path
from jitdb.log.codecs import get_codec
from jitdb.log.codecs.bipf.format import OBJECT, STRING

KEYS = [
    "a",
    "b",
    "c",
    "",
    "carrier",
    "departure",
    "k" * 11,
    "k" * 15,
    "k" * 16,
    "k" * 17,
    "a key of forty bytes, which are three words",
    "é",
]
LEAVES = [
    lambda rng: rng.randrange(-40, 140), lambda rng: rng.randrange(-(2**31), 2**31), lambda rng: rng.random(),
    lambda rng: rng.choice([None, True, False]), lambda rng: "x" * rng.randrange(40), lambda rng: "x" * 300,
    lambda rng: b"b" * rng.randrange(5), lambda rng: [1, "two", {"a": 3}][: rng.randrange(4)],
    lambda rng: {"b": 1, "c": [2]}, lambda rng: {}, lambda rng: float(2**53 + 2 * rng.randrange(9)),
]  # fmt: skip


def template(rng: Random, depth: int = 0) -> dict[str, Any]:
    """The keys of a map, in order; of each, what makes its value, or the keys of a map in it."""
    return {
        key: template(rng, depth + 1) if depth < 3 and rng.random() < 0.3 else rng.choice(LEAVES)
        for key in rng.sample(KEYS, rng.randrange(0, 6))
    }


def twin(shape: dict[str, Any], rng: Random) -> dict[str, Any]:
    """The same with another key in one place, as long as the one that was there."""
    renamed = rng.choice([*shape, ""])
    return {f"{key[:-1]}!" if key and key == renamed else key: inner for key, inner in shape.items()}


def filled(shape: Any, rng: Random, odd: float) -> Any:
    if rng.random() < odd:
        shape = rng.choice([*LEAVES, lambda _: {"b": 1, "c": 2}])  # of another type than usual
    if isinstance(shape, dict):
        return {key: filled(inner, rng, odd) for key, inner in shape.items()}
    return shape(rng)


def doubled(name: str, record: bytes, key: bytes) -> bytes:
    """A map with a pair more, whose key it may have already."""
    if name == "bipf":
        size = int.from_bytes(record[:1], "little") >> 3
        if record[0] & 7 != OBJECT or record[0] > 127:
            return record
        return bipf_value(OBJECT, record[1 : 1 + size] + bipf_value(STRING, key) + bytes([0x22]) + struct.pack("<i", 7))
    if not 0x80 <= record[0] < 0x8F:
        return record
    return bytes([record[0] + 1]) + record[1:] + get_codec(name).encode(key.decode()) + b"\x07"


def damaged(record: bytes, rng: Random) -> bytes:
    changed = bytearray(record)
    for _ in range(rng.randrange(1, 3)):
        at = rng.choice([rng.randrange(len(changed)), len(changed) - 1])
        changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed[: rng.choice([len(changed), rng.randrange(len(changed) + 1)])]) + rng.choice([b"", b"\0\0"])


def paths_of(shape: dict[str, Any], below: Path = ()) -> list[Path]:
    found: list[Path] = []
    for key, inner in shape.items():
        found.append((*below, key))
        if isinstance(inner, dict):
            found += paths_of(inner, (*below, key))
    return found


def some_records(name: str, shapes: list[dict[str, Any]], rng: Random) -> list[bytes]:
    """As logs have them: one shape for long, or a few that take turns, or any; some of them not quite right."""
    how = rng.choice(["one", "turns", "any"])
    odd, other = rng.choice([0.0, 0.05, 0.5]), rng.choice([0.0, 0.03, 0.2])
    key = rng.choice([None, None, *KEYS])  # that of a pair more in all records
    records = []
    for number in range(rng.randrange(1, 120)):
        which = {"one": 0, "turns": number, "any": rng.randrange(99)}[how] % len(shapes)
        value = {field: filled(inner, rng, other) for field, inner in shapes[which].items()}
        record = get_codec(name).encode(value)
        if rng.random() < other and name == "msgpack":
            record = record.replace(b"\xc4\x04bbbb", b"\xc7\x03\xff\0\0\0")  # a timestamp that is none
        if key is not None:
            record = doubled(name, record, key.encode())
        records.append(damaged(record, rng) if rng.random() < odd else record)
    return records
