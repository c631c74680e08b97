"""Segments: the bytes of each kind, canonical merging, and what is done about bytes that are not what was written."""

from __future__ import annotations

import math
import struct
from contextlib import nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_cases import (
    contents,
    make_bitmaps,
    make_dictionary,
    make_numbers,
    make_offsets,
    make_prefix_map,
    make_prefixes,
    make_set,
    spans_of,
)
from pyroaring import BitMap
from thoroughness import combined

from jitdb.common.values import ABSENT, value_key
from jitdb.errors import IndexDamaged
from jitdb.indexes.files.segment_reader import read_segment
from jitdb.indexes.kinds.bitmaps import Dictionary, distinct_keys, records_with
from jitdb.indexes.kinds.content import merged
from jitdb.indexes.kinds.prefixes import (
    candidates,
    hashes_of_bitmaps,
    key_prefix,
    prefix_offset_of,
    prefixes_of,
    records_present,
)
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_range, dump
from jitdb.indexes.kinds.set import records_in_sets
from jitdb.indexes.segment import HEAD_SIZE, LAYOUTS, SPAN, Segment


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitdb.indexes.kinds.bitmaps._dictionary", Dictionary)


RUN = (SPAN, 3, 1000, 1300)  # the records 1,048,576 to 1,048,578, at the bytes 1,000 to 1,299 of the log


def file_of(segment: Segment) -> bytes:
    return b"".join(bytes(part) for part in segment.parts())


def read(data: bytes, position: int = 0) -> tuple[Segment, int]:
    return read_segment(lambda at, size: data[at : at + size], position, len(data), "x.index")


def head(kind: int, meta: bytes, table: bytes, body: int) -> bytes:
    """The head of a segment over RUN, written field by field."""
    raw = b"JSEG" + bytes([kind, LAYOUTS[kind].version if kind in LAYOUTS else 1, 0, 0]) + struct.pack("<4Q", *RUN)
    raw += struct.pack("<IIQ", len(table) // 12, len(meta), body) + struct.pack("<I", crc32(meta + table))
    return raw + struct.pack("<I", crc32(raw))


def whole(kind: int, meta: bytes, *blobs: bytes) -> bytes:
    table = b"".join(struct.pack("<QI", len(blob), crc32(blob)) for blob in blobs)
    return head(kind, meta, table, sum(map(len, blobs))) + meta + table + b"".join(blobs)


ONE = struct.pack("<IIHHIH", 12346, 1, 0, 0, 16, 0)  # the roaring set {0}
TWO = struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 1, 2)  # {1, 2}
NAN = bytes.fromhex("000000000000f87f")
GOLDEN = [
    (
        "bitmaps",
        make_bitmaps([b"\x00", b"\x05a"], [BitMap([0]), BitMap([1, 2])], RUN),
        whole(1, struct.pack("<IIIII", 2, 1, 2, 1, 2) + b"\x00" + b"\x05a", ONE, TWO),
    ),
    (
        "prefixes",
        make_prefixes(BitMap([1, 2]), np.array([0, 0x61626364, 7], np.uint32), 1, RUN),
        # The cells of 7 and 0x61626364 are 0 and 1; two bits are the record's number.
        whole(2, struct.pack("<i", 1), TWO, struct.pack("<IIII", 2, 0b101, 7 << 2 | 2, 0x8589_8D90 | 1)),
    ),
    (
        "prefix map",
        make_prefix_map(np.array([9, 4, 9, 9], np.uint32), np.array([2, 0, 1, 2], np.uint32), -1, RUN),
        whole(
            3,
            struct.pack("<i", -1),
            dump(bitmap_of_range(0, 3)),
            struct.pack("<IIIII", 3, 0b111, 4 << 2, 9 << 2 | 1, 9 << 2 | 2),
        ),
    ),
    (
        "numbers",
        make_numbers(np.array([1.5, math.nan, -2.0]), None, RUN),
        whole(
            4,
            struct.pack("<ddIBBBxIq", -2.0, 1.5, 0, 2, 1, 1, 10, -20),
            bytes([35, 255, 0]),
            struct.pack("<dd", -math.inf, 1.5),
        ),
    ),
    (
        "numbers of many digits",
        make_numbers(np.array([1 / 3, math.nan, -2.0]), None, RUN),
        whole(
            4,
            struct.pack("<ddI16x", -2.0, 1 / 3, 0),
            struct.pack("<d", 1 / 3) + NAN + struct.pack("<d", -2.0),
            struct.pack("<dd", -math.inf, 1 / 3),
        ),
    ),
    (
        "numbers in steps",  # of thousands, and with a rest each
        make_numbers(np.array([2.0**53, 2.0**53, 2.0**53 + 7e10]), np.array([1, 1, 1], np.int16), RUN),
        whole(
            4,
            struct.pack("<ddIBBBxIq", 2.0**53, 2.0**53 + 7e10, 3, 1, 1, 0, 10**9, 2**53 + 1),
            bytes([0, 0, 70]),
            struct.pack("<dd", 2.0**53, 2.0**53 + 7e10),
        ),
    ),
    (
        "no numbers",
        make_numbers(np.full(3, math.nan), None, RUN),
        whole(
            4,
            struct.pack("<ddIBBBxIq", math.inf, -math.inf, 2, 1, 0, 1, 1, 0),
            b"",
            struct.pack("<dd", -math.inf, -math.inf),
        ),
    ),
    (
        "numbers with rests",
        make_numbers(np.array([2.0**53, 0.0, 2.0**64]), np.array([1, 0, -1], np.int16), RUN),
        whole(
            4,
            struct.pack("<ddI16x", 0.0, 2.0**64, 3),
            struct.pack("<ddd", 2.0**53, 0, 2.0**64),
            struct.pack("<hhh", 1, 0, -1),
            struct.pack("<dd", 0.0, 2.0**64),
        ),
    ),
    (
        "offsets",
        make_offsets(np.array([1000, 1100, 1299]), RUN),
        whole(5, b"", struct.pack("<q", 1000), struct.pack("<HH", 100, 199)),
    ),
    ("set", make_set(BitMap([1, 2]), RUN), whole(6, b"", TWO)),
    (
        "dictionary",
        make_dictionary([value_key("unused"), value_key(2**53 + 1), value_key("a")], [3, 0, 2], RUN),
        whole(
            7,
            struct.pack("<I", 2),
            struct.pack("<II", 2, 13),
            b"\x05a" + b"\x04" + struct.pack("<dh", 2.0**53, 1),
            bytes([1, 0, 2]),
        ),
    ),
    ("no values", make_dictionary([], [0, 0, 0], RUN), whole(7, bytes(4), b"", b"", bytes(3))),
    ("no keys", make_bitmaps([], [], RUN), whole(1, struct.pack("<I", 0))),
    ("empty set", make_set(BitMap(), RUN), whole(6, b"", struct.pack("<II", 12346, 0))),
]
each = pytest.mark.parametrize(("segment", "expected"), [row[1:] for row in GOLDEN], ids=[row[0] for row in GOLDEN])


@each
def test_golden_bytes(segment: Segment, expected: bytes) -> None:
    assert HEAD_SIZE == 64
    assert file_of(segment) == expected
    assert segment.size == len(expected)


@each
def test_what_is_written_is_read(segment: Segment, expected: bytes) -> None:
    again, following = read(b"before" + expected + b"behind", 6)
    assert following == 6 + len(expected)
    assert contents([again]) == contents([segment])
    assert (again.kind, again.run, again.meta) == (segment.kind, segment.run, segment.meta)
    assert file_of(again) == expected


@each
def test_a_torn_segment_is_the_end_of_the_file(segment: Segment, expected: bytes) -> None:
    for size in range(len(expected)):
        with pytest.raises(EOFError):
            read(expected[:size])


@each
def test_zeros_are_a_torn_segment(segment: Segment, expected: bytes) -> None:
    with pytest.raises(EOFError):
        read(bytes(len(expected)))


# Segments that nobody writes, under checksums that hold: (kind, meta, blobs).
THREE_BITS = struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 1, 3)  # {1, 3}: the record 3 is not of RUN
MADE_UP: dict[str, tuple[Any, ...]] = {
    "an unknown kind": (8, b"", b""),
    "values without a code": (7, struct.pack("<I", 1), struct.pack("<I", 1), b"\x03"),
    "a code without a value": (7, struct.pack("<I", 1), struct.pack("<I", 1), b"\x03", bytes([0, 1, 2])),
    "values that end before they begin": (7, struct.pack("<I", 2), struct.pack("<II", 2, 2), b"\x05a", bytes(3)),
    "values that end behind the last": (7, struct.pack("<I", 1), struct.pack("<I", 3), b"\x05a", bytes(3)),
    "a number of two bytes": (7, struct.pack("<I", 1), struct.pack("<I", 2), b"\x04a", bytes(3)),
    "a value of no kind": (7, struct.pack("<I", 1), struct.pack("<I", 2), b"\x0aa", bytes(3)),
    "keys that are not there": (1, struct.pack("<I", 2) + bytes(16), ONE, TWO),
    "more keys than bytes": (1, struct.pack("<I", 0xFFFFFFFF), ONE),
    "keys without sets": (1, struct.pack("<III", 1, 1, 1) + b"\x05"),
    "keys longer than what is there": (1, struct.pack("<III", 1, 0xFFFFFFFF, 1) + b"\x05", ONE),
    "an empty key": (1, struct.pack("<III", 1, 0, 1), ONE),
    "a set that is none": (6, b"", b"abc"),
    "a set of bytes that are missing": (6, b"", TWO[:-1]),
    "a set that is not sorted": (6, b"", struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 2, 1)),
    "a set of other records": (6, b"", THREE_BITS),
    "a set of many millions": (6, b"", dump(bitmap_of_range(0, 2**24))),
    "a set larger than any": (6, b"", bytes(1 << 19)),
    "two sets": (6, b"", ONE, TWO),
    "a set with meta": (6, b"x", ONE),
    "records that are not there": (2, struct.pack("<i", 1), THREE_BITS, struct.pack("<III", 1, 1, 0)),
    "prefixes of other records": (2, struct.pack("<i", 1), TWO, struct.pack("<III", 1, 1, 3)),
    "fewer prefixes than are said": (2, struct.pack("<i", 1), TWO, struct.pack("<III", 2, 1, 0)),
    "more prefixes than are said": (2, struct.pack("<i", 1), TWO, struct.pack("<IIII", 1, 1, 0, 0)),
    "many millions of prefixes": (2, struct.pack("<i", 1), TWO, struct.pack("<III", 2**32 - 1, 1, 0)),
    "prefixes in fewer cells": (3, struct.pack("<i", 1), TWO, struct.pack("<IIII", 2, 1, 0, 0)),
    "prefixes in more cells": (3, struct.pack("<i", 1), TWO, struct.pack("<IIII", 2, 7, 0, 0)),
    "a prefix behind all cells": (3, struct.pack("<i", 1), TWO, struct.pack("<III", 1, 16, 0)),
    "no prefix in a bucket": (3, struct.pack("<i", 1), TWO, bytes(8)),
    "prefixes without offset": (2, b"", TWO, struct.pack("<III", 1, 1, 0)),
    "prefixes of two buckets": (3, struct.pack("<i", -1), TWO, b"", b""),
    "half a bucket": (3, struct.pack("<i", -1), TWO, bytes(7)),
    "a column that is too short": (4, struct.pack("<ddI", 0, 1, 0), bytes(16), bytes(16)),
    "a column without its rests": (4, struct.pack("<ddI", 0, 1, 1), bytes(24), bytes(16)),
    "a column without its zones": (4, struct.pack("<ddI", 0, 1, 0), bytes(24)),
    "a column of more zones": (4, struct.pack("<ddI", 0, 1, 0), bytes(24), bytes(32)),
    "a column without a head": (4, b"", bytes(24)),
    "offsets elsewhere": (5, b"", struct.pack("<q", 1000), struct.pack("<HH", 100, 200)),
    "offsets before the first": (5, b"", struct.pack("<q", 999), struct.pack("<HH", 100, 100)),
    "offsets that stay": (5, b"", struct.pack("<q", 1000), struct.pack("<HH", 0, 100)),
    "offsets that go back": (5, b"", struct.pack("<q", 1000), struct.pack("<QQ", 200, 2**64 - 100)),
    "too many offsets": (5, b"", struct.pack("<q", 1000), struct.pack("<HHH", 100, 100, 50)),
    "offsets of too many zones": (5, b"", struct.pack("<qq", 1000, 1100), struct.pack("<H", 100), b""),
    "offsets without a zone": (5, b"", struct.pack("<q", 1000)),
    "half a damaged block": (5, bytes(7), struct.pack("<q", 1000), struct.pack("<HH", 100, 100)),
    "damaged blocks that no log has": (5, b"\xff" * 8, struct.pack("<q", 1000), struct.pack("<HH", 100, 100)),
}


@pytest.mark.parametrize("name", MADE_UP)
def test_what_nobody_writes_is_damage(name: str) -> None:
    kind, meta, *blobs = MADE_UP[name]
    with pytest.raises(IndexDamaged, match=r"^x\.index: "):
        contents([read(whole(kind, meta, *blobs))[0]])


@pytest.mark.parametrize(
    ("number", "field", "value"),
    combined(
        3,
        range(len(GOLDEN)),
        range(8, 48, 8),
        [0, 1, 5, 2**20 - 1, 2**20, 2**31, 2**32 - 1, 2**32, 2**62, 2**63, 2**64 - 1],
    ),
)
def test_a_head_that_nobody_writes_is_damage_or_the_end(number: int, field: int, value: int) -> None:
    data = bytearray(GOLDEN[number][2])
    data[field : field + 8] = struct.pack("<Q", value)
    data[60:64] = struct.pack("<I", crc32(data[:60]))
    with suppress(IndexDamaged, EOFError):
        contents([read(bytes(data))[0]])


@pytest.mark.parametrize("lengths", [(2**64 - 1, 19), (2**63, 2**63 + 18), (0, 36), (18, 17)])
def test_blobs_whose_lengths_do_not_add_up(lengths: tuple[int, int]) -> None:
    meta = struct.pack("<IIIII", 2, 1, 2, 1, 1) + b"\x00\x05a"
    table = b"".join(struct.pack("<QI", length, crc32(ONE)) for length in lengths)
    with pytest.raises(IndexDamaged):
        contents([read(head(1, meta, table, 36) + meta + table + ONE + ONE)[0]])


@each
def test_every_turned_bit_is_found(segment: Segment, expected: bytes) -> None:
    for position in range(len(expected)):
        for bit in range(8):
            turned = bytearray(expected)
            turned[position] ^= 1 << bit
            with pytest.raises((IndexDamaged, EOFError)):
                contents([read(bytes(turned))[0]])


def test_damage_says_what_was_expected_and_where() -> None:
    data = bytearray(file_of(make_set(BitMap([1]), RUN)))
    data[-1] ^= 1
    with pytest.raises(
        IndexDamaged, match=r"blob 0 at byte 76: expected 18 bytes with CRC [0-9a-f]{8}, got 18"
    ) as caught:
        contents([read(bytes(data))[0]])
    assert (caught.value.path, caught.value.offset) == ("x.index", 76)


def test_another_version_is_refused() -> None:
    data = bytearray(file_of(make_set(BitMap([1]), RUN)))
    data[5] = 2
    data[60:64] = struct.pack("<I", crc32(bytes(data[:60])))
    with pytest.raises(IndexDamaged, match="version 2, expected 1 at most"):
        read(bytes(data))


def test_an_older_version_is_as_if_it_were_not_there() -> None:
    prefixes = make_prefixes(BitMap([1]), np.zeros(RUN[1], np.uint32), -1, RUN)
    data = bytearray(file_of(prefixes))
    for version, error in ((3, None), (2, EOFError), (1, EOFError), (0, IndexDamaged), (4, IndexDamaged)):
        data[5] = version
        data[60:64] = struct.pack("<I", crc32(bytes(data[:60])))
        with pytest.raises(error) if error else nullcontext():
            read(bytes(data))


# --- bitmaps ---------------------------------------------------------------------------------------------------------

keys = st.binary(min_size=1, max_size=4)


@given(st.sets(keys, max_size=20), keys)
def test_finding_a_key(held: set[bytes], other: bytes) -> None:
    ordered = sorted(held)
    dictionary = Dictionary(make_bitmaps(ordered, [BitMap([1])] * len(held), RUN).meta)
    assert len(dictionary) == len(ordered)
    assert [dictionary[number] for number in range(len(ordered))] == ordered
    for key in (*ordered, other):
        assert dictionary.find(key) == (ordered.index(key) if key in held else -1)


def cut(assigned: list[bytes | None], size: int, cuts: list[int]) -> list[Segment]:
    """BITMAPS segments of one span: record i has the key assigned[i] (None: deleted)."""
    segments, bounds = [], [0, *sorted(set(cuts)), size]
    for start, stop in pairwise(bounds):
        if start == stop:
            continue
        groups: dict[bytes, list[int]] = {}
        for seq in range(start, stop):
            key = assigned[seq]
            if key is not None:
                groups.setdefault(key, []).append(seq)
        names = sorted(groups)
        bitmaps = [bitmap_of(np.array(groups[name], np.uint32)) for name in names]
        segments.append(make_bitmaps(names, bitmaps, (start, stop - start, 10 * start, 10 * stop)))
    return segments


some_keys = st.sampled_from([None, bytes([ABSENT]), value_key("a"), value_key("b"), value_key(1), value_key([1])])
assignments = st.lists(some_keys, min_size=1, max_size=40)


@settings(max_examples=150, deadline=None)
@given(assignments, st.lists(st.integers(1, 39), max_size=5))
def test_merged_bitmaps_do_not_show_how_they_were_cut(assigned: list[bytes | None], cuts: list[int]) -> None:
    cuts = [one for one in cuts if one < len(assigned)]
    whole_segment = cut(assigned, len(assigned), [])[0]
    parts = cut(assigned, len(assigned), cuts)
    assert file_of(merged(parts)) == file_of(whole_segment)
    assert contents(parts) == contents([whole_segment])
    assert distinct_keys(parts) == {key for key in assigned if key is not None}
    for key in (value_key("a"), value_key("nowhere")):
        assert list(records_with(parts, key)) == [seq for seq, held in enumerate(assigned) if held == key]


@settings(max_examples=150, deadline=None)
@given(assignments, st.lists(st.integers(1, 39), max_size=5))
def test_hashes_made_of_bitmaps_are_those_made_of_values(assigned: list[bytes | None], cuts: list[int]) -> None:
    cuts = [one for one in cuts if one < len(assigned)]
    there = [(seq, key) for seq, key in enumerate(assigned) if key is not None and key[0] != ABSENT]
    prefixes = np.zeros(len(assigned), np.uint32)
    for seq, key in there:
        prefixes[seq] = key_prefix(key, -1)
    run = (0, len(assigned), 0, 10 * len(assigned))
    seqs = np.array([seq for seq, _ in there], np.uint32)
    parts = cut(assigned, len(assigned), cuts)
    as_list = merged([hashes_of_bitmaps(part, as_map=False) for part in parts])
    assert file_of(as_list) == file_of(make_prefixes(bitmap_of(seqs), prefixes, -1, run))
    as_map = merged([hashes_of_bitmaps(part, as_map=True) for part in parts])
    assert file_of(as_map) == file_of(make_prefix_map(prefixes[seqs], seqs, -1, run))


@given(st.sets(st.integers(0, 99), max_size=30), st.lists(st.integers(1, 99), max_size=4))
def test_merged_sets(held: set[int], cuts: list[int]) -> None:
    bounds = sorted({0, 100, *cuts})
    parts = [
        make_set(BitMap(seq for seq in held if start <= seq < stop), (start, stop - start, start, stop))
        for start, stop in pairwise(bounds)
    ]
    assert file_of(merged(parts)) == file_of(make_set(BitMap(held), (0, 100, 0, 100)))
    assert set(records_in_sets(parts)) == held


# --- prefixes --------------------------------------------------------------------------------------------------------

prefix_values = st.sampled_from([0, 1, 2, 0x61626364, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(prefix_values | st.none(), min_size=1, max_size=30),
    st.sampled_from([0, 64, SPAN, 5 * SPAN + 64]),
    prefix_values,
    prefix_values,
)
def test_candidates(held: list[int | None], first_seq: int, low: int, high: int) -> None:
    low, high = min(low, high), max(low, high)
    run = (first_seq, len(held), 0, 10)
    lead = first_seq % SPAN
    present = [number for number, prefix in enumerate(held) if prefix is not None]
    prefixes = np.array([prefix or 0 for prefix in held], np.uint32)
    relative = np.array(present, np.uint32) + np.uint32(lead)
    for segment in (
        make_prefixes(bitmap_of(relative), prefixes, -1, run),
        make_prefix_map(prefixes[present], relative, -1, run),
    ):
        assert list(records_present(segment)) == [first_seq + number for number in present]
        for bounds in ((low, high), (low, low), (0, 0), (0, 0xFFFFFFFF)):
            expected = [first_seq + n for n in present if bounds[0] <= int(prefixes[n]) <= bounds[1]]
            assert list(candidates(segment, *bounds)) == expected


@pytest.mark.parametrize("count", [1, 2, 3, 100, 4096, 4097, 9000, 40_000])
@pytest.mark.parametrize("values", [1, 30, 1 << 32], ids=["one", "some", "any"])
def test_buckets_of_many_pairs(count: int, values: int) -> None:
    """Of prefixes that lie anywhere or all in one bucket, of all records or of few."""
    chance = np.random.default_rng(count)
    for share in (1.0, 0.01):
        there = np.flatnonzero(chance.random(count) < share).astype(np.uint32)
        prefixes = (chance.integers(0, values, len(there)) + (0x61626364 if values < 99 else 0)).astype(np.uint32)
        pairs = sorted(zip(prefixes.tolist(), there.tolist(), strict=True))
        held = np.zeros(count, np.uint32)
        held[there] = prefixes
        for made in (
            make_prefixes(bitmap_of(there), held, -1, (0, count, 0, count)),
            make_prefix_map(prefixes, there, -1, (0, count, 0, count)),
        ):
            segment, _ = read(file_of(made))
            found = prefixes_of(segment)
            assert list(zip(*(column.tolist() for column in found), strict=True)) == pairs
            assert segment.body_size <= 5 * len(there) + count // 4 + 8 * len(segment.table) + 99
            for low in (0, 0x61626364, 0xFFFFFFFF, *chance.choice(prefixes, 5).tolist()) if len(pairs) else (0,):
                for high in (low, min(low + 9, 0xFFFFFFFF), min(low + (1 << 27), 0xFFFFFFFF)):
                    wanted = sorted(seq for prefix, seq in pairs if low <= prefix <= high)
                    assert list(candidates(segment, low, high)) == wanted


def test_one_value_takes_one_bucket() -> None:
    count, reads = 1 << 18, 0
    made = make_prefixes(
        bitmap_of_range(0, count), np.random.default_rng(1).integers(0, 1 << 32, count).astype(np.uint32), -1,
        (0, count, 0, count),
    )  # fmt: skip
    data = file_of(made)

    def read_at(at: int, size: int) -> bytes:
        nonlocal reads
        reads += size
        return data[at : at + size]

    segment, _ = read_segment(read_at, 0, len(data), "x.index")
    reads = 0
    candidates(segment, 0x12345678, 0x12345678)
    assert reads <= 5 * 4500
    assert segment.body_size <= 4.3 * count


def test_prefix_offsets_are_kept() -> None:
    for offset in (-1, 0, 1, 2**31 - 1):
        segment = make_prefixes(BitMap(), np.empty(0, np.uint32), offset, RUN)
        assert prefix_offset_of(segment) == offset


def test_the_bytes_of_a_prefix_sort_as_the_values_do() -> None:
    words = ["", "\x01", "a", "ab", "abc", "abcd", "abce", "b", "é", "￿"]
    prefixes = [key_prefix(value_key(word), 0) for word in words]
    assert prefixes == sorted(prefixes)
    assert key_prefix(value_key("%abcde"), 1) == int.from_bytes(b"abcd", "big")


# --- spans -----------------------------------------------------------------------------------------------------------


def test_sets_count_from_their_span() -> None:
    with spans_of(16):
        segment = make_set(BitMap([4, 5]), (36, 4, 0, 9))
        assert contents([segment]) == [("set", 36), ("set", 37)]
    segment = make_set(BitMap([4, 5]), (3 * SPAN + 4, 4, 0, 9))
    assert contents([segment]) == [("set", 3 * SPAN + 4), ("set", 3 * SPAN + 5)]


def test_seqs_up_to_the_last_of_32_bits() -> None:
    first = 2**32 - 4
    segment = make_set(BitMap([SPAN - 1]), (first, 4, 0, 9))
    assert contents([segment]) == [("set", 2**32 - 1)]
    prefixes = make_prefixes(
        bitmap_of(np.array([SPAN - 1], np.uint32)), np.array([0, 0, 0, 7], np.uint32), -1, (first, 4, 0, 9)
    )
    assert list(candidates(prefixes, 7, 7)) == [2**32 - 1]


def test_dumping_does_not_change_a_set(tmp_path: Path) -> None:
    bitmap = BitMap(range(100))
    assert BitMap.deserialize(dump(bitmap)) == bitmap == BitMap(range(100))
