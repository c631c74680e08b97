"""The codec json against json.loads; what its kernels find, and call malformed, against what it decodes."""

from __future__ import annotations

import json
import math
import struct
import sys
from collections.abc import Sequence
from pathlib import Path as FilePath
from random import Random
from typing import Any

import numpy as np
import pytest
from json_cases import KEYS, LONG, NO_NUMBERS, NOT_JSON, NUMBERS, framed, lines, number, of_programs, record_of
from kernel_cases import COMPILED, keys_found, scan
from thoroughness import tries

import jitdb
from jitdb import Log
from jitdb.common import kernels
from jitdb.common.paths import MAX_DEPTH, Path
from jitdb.common.values import UNDEFINED, value_at, value_key
from jitdb.errors import DecodeError, EncodeError
from jitdb.log.codecs import get_codec
from jitdb.log.codecs.fields.constants import MAX_NESTING, SLACK
from jitdb.log.codecs.fields.located import RecordBatch
from jitdb.operators import absent, and_, equal, gt, includes, not_, or_, predicate, starts_with

pytestmark = pytest.mark.slow

SLOW = kernels.WAY == "python"
JSON, MSGPACK = get_codec("json"), get_codec("msgpack")
PATHS: list[Path] = [
    ("a",), ("b",), ("a", "b"), ("a", "a"), ("k",), ("type",), ("é",), ("",), ('quote"',), ("\U0001f600",), ("$bytes",),
    ("back\\slash",),
]  # fmt: skip


def decoded(record: bytes) -> tuple[Any, bool]:
    try:
        return JSON.decode(record), True
    except DecodeError:
        return UNDEFINED, False


def check(records: Sequence[bytes], paths: Sequence[Path] = PATHS, *, after: bytes = b"\n" * SLACK) -> int:
    """Hold what the kernels find against what is decoded; how many records are malformed."""
    values = [decoded(record) for record in records]
    expected = [[value_key(value_at(value, path)) for path in paths] for value, _ in values]
    found = keys_found(JSON, records, paths, after=after)
    for record, one, other in zip(records, found, expected, strict=True):
        assert one == other, record
    bad = [number for number, (_, good) in enumerate(values) if not good]
    assert scan(JSON, records, paths, after=after)[1] == len(bad)
    lengths = np.array([len(record) for record in records], np.int64)
    starts = np.cumsum(lengths + len(after)) - lengths - len(after)
    buffer = np.frombuffer(bytearray(b"".join(record + after for record in records)), np.uint8)
    batch = RecordBatch(buffer, starts, lengths, np.zeros(len(records), np.uint8))
    assert JSON.locator(()).invalid(batch).tolist() == bad
    return len(bad)


def variants(texts: Sequence[bytes]) -> list[bytes]:
    return [*texts, *(b'{"k":' + text + b"}" for text in texts), *(b'{"a":{"b":[' + text + b"]}}" for text in texts)]


@pytest.mark.parametrize("seed", range(tries(6, 300)))
def test_any_texts(seed: int) -> None:
    random = Random(seed)
    records = [line for line in lines(random, 30 if not COMPILED else 400) for _ in range(random.choice([1, 1, 2]))]
    check(records, random.sample(PATHS, random.randrange(1, 8)), after=random.randbytes(SLACK))


def test_what_is_nearly_json() -> None:
    check(variants([*NOT_JSON, *(text.encode() for text in NO_NUMBERS), *(text.encode() for text in NUMBERS)]))


@pytest.mark.parametrize("after", [b"0", b".5", b"e5", b"-", b'"', b"e", b",", b"]", b"\0", b"} "])
def test_what_is_no_map_ends_with_the_record(after: bytes) -> None:
    """Whatever stands behind it."""
    words = [
        b"true",
        b"tru",
        b"null",
        b"nul",
        b"NaN",
        b"-Infinity",
        b"-Infinit",
        b'"a"',
        b'"a',
        b'"',
        b"-",
        b"1.",
        b"1e",
        b" 7 ",
    ]
    texts = [*words, *NOT_JSON, *(text.encode() for text in (*NO_NUMBERS, *NUMBERS))]
    check(texts, after=after * SLACK)


def test_decode_is_json_loads_or_what_import_refuses() -> None:
    random = Random(1)
    for record in [*lines(random, tries(2000, 100_000)), *variants(NOT_JSON), *variants([n.encode() for n in NUMBERS])]:
        value, good = decoded(record)
        assert good == (record_of(record, "msgpack") is not None), record
        assert record_of(record, "json") == (record.strip(b" \t\r") if good else None)
        if good:
            assert repr(value) == repr(json.loads(record.decode())), record


def test_numbers_and_texts_within_containers() -> None:
    random = Random(5)
    some = [
        f'{{"a":[{number(random)}],"b":{{"c":{number(random)}}}}}' for _ in range(20 if SLOW else tries(4000, 10**6))
    ]
    count = 10 if SLOW else tries(4000, 10**6)
    values = [struct.unpack("<d", random.randbytes(8))[0] for _ in range(count)]
    values += [math.ldexp(random.getrandbits(53), random.randrange(-1000, 900)) for _ in range(count)]
    some += [f'{{"a":{value!r},"b":[{value!r}]}}' for value in values if math.isfinite(value)]
    for size in (0, 15, 16, 31, 32, 255, 256, 5000):
        some.append(json.dumps({"a": ["x" * size, "é" * size, '"' * size], "b": {"k" * size: [[]] * size}}))
    for depth in (1, 2, MAX_NESTING - 1, MAX_NESTING):
        some.append('{"a":' * depth + "1" + "}" * depth)
        some.append('{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}")
    check([line.encode() for line in some], [("a",), ("b",), ("b", "c")])


@pytest.mark.parametrize("seed", range(tries(12, 3_000)))
def test_records_of_programs(seed: int) -> None:
    """Of which most are read by the automaton."""
    random = Random(seed)
    records = of_programs(random, random.choice([20, 300]) if COMPILED else 30)
    names = random.sample(KEYS + LONG, 5)
    paths = {tuple(random.sample(names, random.randrange(1, 4))) for _ in range(random.randrange(1, 8))}
    after = random.choice([b"\n" * SLACK, random.randbytes(SLACK), records[0] + bytes(SLACK)])
    check(records, sorted(paths), after=after)


@pytest.mark.parametrize(
    ("usual", "odd"),
    [
        (['{"a": {"b": 1}, "x": 0}', '{"x": 0, "a": {"c": 1}}'], '{"a": {"b": 1}, "x": 0, "a": {"c": 1}}'),
        (['{"a": null, "x": 1}'], '{"a": {"b": 1}, "x": 1}'),
        (['{"a": {"b": 1}, "x": 1}'], '{"a": null, "x": 1}'),
        (['{"a": {"c": 0, "b": 1}}'], '{"a": {, "b": 1}}'),
        (['{"a": {"c": 0, "b": 1}, "x": 2}'], '{"a": {"c": 0}"x": 2}'),
        (['{"a": 1, "b": 2}'], '{"a": 1, "b": 2}}'),
        (['{"a": 1, "b": 2}', '{"a": 1}'], '{"a": 1}, "b": 2}'),
        (['{"a": 1, "a key of forty bytes, three words": 2}'], '{"a": 1, "a key of forty bytes, other words": 2}'),
        (['{"a": {"b": 1}}', '{"x": 0, "a": {}}', '{"a": {}, "x": 0}'], '{"a": {"b": 1}, "x": 0, "a": {}}'),
        ([f'{{"k{number}": 0, "a": 1}}' for number in range(700)], '{"k1": 0, "a": 2, "a": 3}'),
    ],
)  # fmt: skip
def test_what_the_steps_of_other_records_do_not_lead_through(usual: list[str], odd: str) -> None:
    some = [record.encode() for record in usual]
    for before in (some, some[::-1]):
        for times in (1, 20) if COMPILED else (2,):
            records = [*before * times, odd.encode(), odd.encode(), *before * times, odd.encode()]
            check(records, [("a",), ("b",), ("x",)])
            check(records, [("a", "b"), ("x",)])


def test_lines_are_framed_without_the_blanks_around_them() -> None:
    random = Random(8)
    some = [*lines(random, 20 if SLOW else 3000), b"", b" ", b"\r", b"  1\t\r", b" " * 200, b" " * 200 + b"{}"] * 2
    kept = [(at, line.strip(b" \t\r")) for at, line in enumerate(some) if line.strip(b" \t\r")]
    assert framed(some, fill=10) == framed(some) == kept
    if not SLOW:
        assert len(framed([b"1"] * 100_000)) == 100_000


TEXT = (
    b' {"a" : {"b":[1, "x\\n", {"b":null}], "ab":-0.5e3} ,\t"b":true,"\\u0062":"\xc3\xa9\\ud83d\\ude00","":{"":2.5},'
    b'"type":"plain text of some words","k":[[],{}],"a":{"b":18446744073709551615}}\r'
)


def test_every_truncation() -> None:
    records = [TEXT[:size] for size in range(0, len(TEXT) - 1, 1 if COMPILED else 9)]
    for after in (b"\n" * SLACK, b"}" * 200, b'"' * SLACK, b"0" * SLACK, TEXT):
        assert check([*records, TEXT], [("a",), ("a", "b"), ("b",), ("", "")], after=after) == len(records)


def test_every_byte_changed() -> None:
    random = Random(2)
    values = range(256) if COMPILED else (0, 34, 44, 58, 92, 128)
    for at in range(0, len(TEXT), 1 if COMPILED else 5):
        check([TEXT[:at] + bytes([value]) + TEXT[at + 1 :] for value in values], random.sample(PATHS, 4))


def test_the_last_of_equal_keys_counts_however_it_is_written() -> None:
    ways = [b'"a"', b'"\\u0061"', b'"b"', b'"\\u0062"']
    values = [
        b"1",
        b'{"a":1}',
        b'{"b":{"a":2}}',
        b'{"a":1,"\\u0061":2}',
        b"[1]",
        b"{}",
        b'"x"',
        b"99999999999999999999999",
    ]
    random = Random(3)
    records = [
        b"{" + b",".join(random.choice(ways) + b":" + random.choice(values) for _ in range(4)) + b"}"
        for _ in range(900)
    ]
    check(records if COMPILED else records[:60], [("a",), ("a", "a"), ("a", "b"), ("b",), ("b", "b", "a")])


@pytest.mark.parametrize("levels", [100, 127, 128, 190, 191, 192, MAX_NESTING - 1, MAX_NESTING, MAX_NESTING + 1, 5000])
def test_nesting(levels: int) -> None:
    inner = levels - 1
    maps, arrays = b'{"a":' * inner + b"1" + b"}" * inner, b"[" * inner + b"]" * inner
    records = [b'{"k":' + text + b',"b":2}' for text in (maps, arrays)]
    records += [b"[" + text + b"]" for text in (maps, arrays)]
    bad = check(records * 2, [("k",), ("b",), ("k", "a"), ("k", *["a"] * (MAX_DEPTH - 1))])
    assert bad == (8 if levels > MAX_NESTING else 0)


def test_decoding_works_near_the_end_of_the_stack() -> None:
    record = b"[" * MAX_NESTING + b"]" * MAX_NESTING

    def dive(levels: int) -> None:
        if levels:
            dive(levels - 1)
        else:
            JSON.decode(record)

    depth, frame = 0, sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        depth += 1
    dive(sys.getrecursionlimit() - depth - 60)


@pytest.mark.parametrize(
    ("record", "reason", "position"),
    [
        (b'{"a":1', "Expecting ',' delimiter", 6),
        ('{"é":01}'.encode(), "Expecting ',' delimiter", 7),
        (b'["\xff"]', "not UTF-8: byte 0xff", 2),
        (b'[1, 99999999999999999999]', "67 bits", 4),
        (b'["\\ud800"]', "lone surrogate", 2),
        (b"[" * 300, "deeper than 256", 256),
        (b"1" * 5000, "more than 4,300 digits", None),
        (b"", "Expecting value", 0),
    ],
    ids=str,
)  # fmt: skip
def test_an_error_says_where(record: bytes, reason: str, position: int | None) -> None:
    with pytest.raises(DecodeError, match=reason) as caught:
        JSON.decode(record)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"value": {"content": {"x": {1}}}}, r"^value\.content\.x: .*set"),
        ({"value": [0, {"n": 2**64}]}, r"^value\[1\]\.n: .*65 bits"),
        ({"a": {1: 2}}, "^a: one of the keys: .*int"),
        ({"a": b"x"}, "^a: .*bytes"),
        ({"a": float("nan")}, "^a: JSON has no number nan"),
        ({"a": "\ud800"}, "^a: .*lone surrogate"),
        ({"a": ["\udcc3\udca9"]}, r"^a\[0\]: .*lone surrogate"),
        (UNDEFINED, "Undefined"),
    ],
)
def test_what_json_has_no_word_for(value: Any, message: str) -> None:
    with pytest.raises(EncodeError, match=message):
        JSON.encode(value)


def test_a_log_of_lines_answers_as_what_import_makes_of_them(tmp_path: FilePath) -> None:
    random = Random(4)
    some = [line for line in lines(random, 30 if not COMPILED else tries(300, 3000)) if decoded(line)[1]]
    some = [line for line in some if JSON.decode(line) != 0]  # which looks deleted in msgpack
    with Log(tmp_path / "lines", codec="raw", block_size=1 << 20) as log:
        log.append_many(some)
    with Log(tmp_path / "records", block_size=1 << 20) as log:
        log.append_many([JSON.decode(line) for line in some])
    with (
        jitdb.open(tmp_path / "lines", "memory", codec="json", read_only=True) as one,
        jitdb.open(tmp_path / "records", "memory", read_only=True) as other,
    ):
        places = [{record.offset: number for number, record in enumerate(db.log.stream())} for db in (one, other)]
        held = [item for line in some if isinstance(item := JSON.decode(line), dict)]
        for path in (
            ("a",),
            ("b",),
            ("type",),
            ("a", "b"),
            *random.sample([(key,) for item in held for key in item], 4),
        ):
            asked = [absent(path), starts_with(path, "p"), gt(7, path), predicate(path, is_some, name="some")]
            found = [value for item in held if (value := value_at(item, path)) is not UNDEFINED]
            for value in random.sample(found, min(3, len(found))):
                asked += [equal(path, value), equal(path, value, prefix=32), equal(path, value, use_map=True)]
                asked += [includes(path, value), includes(path, value, pluck="a"), not_(equal(path, value))]
            asked += [and_(not_(absent(path)), or_(*asked[1:]))]
            for question in asked:
                answers = [
                    [place[offset] for offset in db.all(question, as_offsets=True, sort_by="arrival")]
                    for db, place in zip((one, other), places, strict=True)
                ]
                assert answers[0] == answers[1], question


def is_some(value: Any) -> bool:
    return bool(value)
