"""The kernel that makes records of lines, against json and the codecs: the same bytes, or the line is left."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from random import Random

import msgpack
import pytest
from json_cases import NO_NUMBERS, NOT_JSON, NUMBERS, lines, number, record_of, transcode
from thoroughness import tries

from jitdb.cli.input.lines import LineReader
from jitdb.common import kernels
from jitdb.log.codecs import get_codec
from jitdb.log.codecs.fields.constants import MAX_NESTING
from jitdb.log.codecs.json.kernels import MAX_DEPTH, MOST_RECORDS
from jitdb.log.codecs.json.keys import NODES

pytestmark = pytest.mark.slow

SLOW = kernels.WAY == "python"
codecs = pytest.mark.parametrize("codec", ["msgpack", "bipf"])


def check(some: Sequence[bytes], codec: str, *, tagged: bool = False, fill: int = 0xA5) -> int:
    """How many lines were left that are records."""
    reader, made = LineReader(tagged), get_codec(codec)
    found = transcode(some, codec, tagged=tagged, fill=fill)
    assert len(found) == len(some)
    left = 0
    for line, record in zip(some, found, strict=True):
        expected = record_of(line, made, reader)
        if record is not None:
            assert record == expected, line
            assert any(record)
        elif expected is not None and any(expected):
            left += 1
    return left


@codecs
@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("seed", range(tries(3, 60)))
def test_any_lines(codec: str, tagged: bool, seed: int) -> None:
    random = Random(seed)
    some = lines(random, 20 if SLOW else tries(800, 5000))
    assert check(some, codec, tagged=tagged, fill=random.randrange(256)) < len(some) // (2 if tagged else 4)


@codecs
def test_what_is_nearly_json(codec: str) -> None:
    some = [*NOT_JSON, *(text.encode() for text in NO_NUMBERS)]
    some += [b'{"k":' + line + b"}" for line in some] + [b"[" + line + b"]" for line in some]
    some = [line.replace(b"\n", b"") for line in some]
    for tagged in (False, True):
        assert check(some, codec, tagged=tagged) < 60


@codecs
def test_every_number(codec: str) -> None:
    assert check([b"[" + text.encode() + b"]" for text in NUMBERS], codec) < 20
    random = Random(5)
    some = [f"[{number(random)}]".encode() for _ in range(40 if SLOW else tries(20_000, 2_000_000))]
    assert check(some, codec) < len(some) // 8  # subnormal ones, and such of too many digits


def test_doubles_are_those_of_python() -> None:
    """Also where 128 bits of a power of ten hardly do: what is made of doubles is never left."""
    random = Random(6)
    count = 20 if SLOW else tries(20_000, 1_000_000)
    values = [struct.unpack("<d", random.randbytes(8))[0] for _ in range(count)]
    values += [math.ldexp(random.getrandbits(53), random.randrange(-1000, 900)) for _ in range(count)]
    values = [value for value in values if math.isfinite(value) and abs(value) > 2.3e-308]
    found = transcode([repr(value).encode() for value in values], "msgpack")
    assert found == [msgpack.packb(value) for value in values]


@codecs
def test_lengths_around_the_heads(codec: str) -> None:
    some = []
    for size in [*range(40), *range(250, 262), *range(2040, 2056), 65533, 65535, 65536, 262143, 262144]:
        if SLOW and size not in (0, 15, 16, 31, 32, 255, 256):
            continue
        some.append(json.dumps({"k" * (size % 300): "x" * size, "é": "é" * (size // 2)}, ensure_ascii=False).encode())
        some.append(json.dumps(["x" * size + '"', {"y": [1] * min(size, 3000)}]).encode())
        some.append(json.dumps({str(key): key for key in range(min(size, 300))}).encode())
    some.append(json.dumps([[0] * (20 if SLOW else 70_000), {"a": [0] * 17}]).encode())
    assert check(some + some[::-1], codec) == 0


@codecs
def test_depths(codec: str) -> None:
    some = []
    for depth in (1, 2, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, MAX_NESTING, MAX_NESTING + 1, 1000, 50_000):
        some += [b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth, b"[" * depth]
    found = transcode(some, codec)
    assert [record is not None for record in found[0:21:3]] == [True] * 4 + [False] * 3
    check(some, codec)


@codecs
def test_keys_without_end(codec: str) -> None:
    """The tree of keys is forgotten when it is large; a line of more keys than it holds is left."""
    count = 60 if SLOW else 3 * NODES
    some = [json.dumps({f"key {line}": {f"inner {line}": line}, "same": 1}).encode() for line in range(count)]
    assert check(some, codec) == 0
    wide = json.dumps({f"key {at}": at for at in range(NODES + 1)}).encode()
    long = json.dumps({"k" * 300_000: 1}).encode()
    if not SLOW:
        assert check([wide, long, b'{"a":1}', wide], codec) == 3


@codecs
def test_the_same_keys_in_another_order(codec: str) -> None:
    random = Random(7)
    some = []
    for _ in range(15 if SLOW else 3000):
        names = random.sample("abcdefghij", random.randrange(1, 10))
        some.append(json.dumps({name: dict.fromkeys(names[:3], 1) for name in names}).encode())
    assert check(some, codec) == 0
    doubled = [line[:-1] + b"," + line[1:] for line in some]  # each key twice
    assert transcode(doubled, codec) == [None] * len(doubled)


def test_tagged_maps_are_left() -> None:
    some = [b'{"$bytes":"eHk="}', b'[{"a":{"$map":[]}}]', b'{"a":1,"$b":2}', b'{"$":1}', b'{"a":"$bytes"}']
    assert [record is None for record in transcode(some, "msgpack", tagged=True)] == [True, True, True, True, False]
    assert None not in transcode(some, "msgpack")


def test_records_that_no_log_takes_are_left() -> None:
    assert transcode([b"0", b"1", b'""'], "msgpack") == [None, b"\x01", b"\xa0"]
    assert transcode([b'""', b"0"], "bipf") == [None, b"\x22\0\0\0\0"]
    some = [b'"' + b"x" * size + b'"' for size in (10, 11)]
    assert transcode(some, "msgpack", largest=11) == [b"\xaa" + b"x" * 10, None]


def test_more_lines_than_a_pass_takes() -> None:
    if not SLOW:
        assert transcode([b"1"] * (2 * MOST_RECORDS + 1), "msgpack") == [b"\x01"] * (2 * MOST_RECORDS + 1)
