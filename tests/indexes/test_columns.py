"""Columns compare as Python's numbers do, at every edge where doubles, 64-bit integers and their rests meet."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_cases import contents, make_numbers, make_offsets, numbers

from jitdb.common.values import split_number
from jitdb.indexes.files.segment_reader import read_segment
from jitdb.indexes.kinds.columns import ALL_WHOLE, HAS_RESTS, number_range
from jitdb.indexes.kinds.content import merged
from jitdb.indexes.kinds.numbers import Comparison, compare
from jitdb.indexes.kinds.offsets import damaged_blocks, load_offsets, offsets_at, rank_in, with_damaged
from jitdb.indexes.segment import ZONE, Segment

EDGES = [
    0, 1, -1, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, -(2**53), 2**63 - 1025, 2**63 - 513, 2**63 - 512, 2**63 - 511,
    2**63 - 1, 2**63, 2**63 + 1, 2**63 + 1024, 2**63 + 1025, 2**64 - 1025, 2**64 - 1024, 2**64 - 1, -(2**63),
    -(2**63) + 1, 0.5, -0.0, 5e-324, 1e308, 2.0**53, 2.0**63, 2.0**64, math.inf, -math.inf, math.nan,
]  # fmt: skip
ASKED = [*EDGES, 2**64, 2**64 + 1, 10**30, 10**300, 10**400, -(10**400), -(10**30), 2**1024, 2**1023]
RELATIONS: dict[Comparison, object] = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}


def column(values: Sequence[int | float | None], first_seq: int = 0) -> Segment:
    """A NUMBERS segment; None where a record has no number."""
    pairs = [(math.nan, 0) if value is None or value != value else split_number(value) for value in values]
    hi, lo = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs], np.int16)
    run = (first_seq, len(values), 10 * first_seq, 10 * (first_seq + len(values)))
    return make_numbers(hi, lo, run)


def found(segment: Segment, relation: Comparison, value: int | float) -> list[bool]:
    mask = compare(segment, relation, value)
    return [False] * segment.count if mask is None else mask.tolist()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("value", ASKED, ids=repr)
def test_every_edge_with_every_other(relation: Comparison, value: int | float) -> None:
    holds = RELATIONS[relation]
    expected = [bool(holds(edge, value)) for edge in EDGES]  # type: ignore[operator]
    assert found(column(EDGES), relation, value) == expected
    for edge, truth in zip(EDGES, expected, strict=True):
        assert found(column([edge]), relation, value) == [truth]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(numbers | st.none(), min_size=1, max_size=10),
    numbers | st.integers(),
    st.sampled_from(list(RELATIONS)),
)
def test_compare(values: list[int | float | None], value: int | float, relation: Comparison) -> None:
    holds = RELATIONS[relation]
    expected = [held is not None and bool(holds(held, value)) for held in values]  # type: ignore[operator]
    assert found(column(values), relation, value) == expected


def test_a_column_without_numbers_is_passed_over() -> None:
    assert compare(column([None, math.nan]), "gte", -math.inf) is None
    assert compare(column([1, 2]), "gt", 2**53 + 1) is None
    assert compare(column([1, 2]), "lt", -math.inf) is None


@pytest.mark.parametrize(
    ("values", "flags"),
    [
        ([1, 2.0, None], ALL_WHOLE),
        ([1, 0.5], 0),
        ([2**53 + 1], ALL_WHOLE | HAS_RESTS),
        ([2**53 + 1, 0.5], HAS_RESTS),
        ([math.inf], 0),
        ([None], ALL_WHOLE),
        ([2**53 + 2], ALL_WHOLE),
    ],
    ids=repr,
)
def test_what_a_column_says_of_itself(values: list[int | float | None], flags: int) -> None:
    segment = column(values)
    assert number_range(segment)[2] == flags
    assert len(segment.table) == (3 if flags == HAS_RESTS else 2)  # with the zones; whole numbers are packed


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(numbers | st.none(), min_size=1, max_size=5), min_size=1, max_size=4))
def test_merged_columns_are_the_column_of_all(parts: list[list[int | float | None]]) -> None:
    segments, first = [], 0
    for part in parts:
        segments.append(column(part, first))
        first += len(part)
    whole = column([value for part in parts for value in part])
    found = merged(segments)
    assert [bytes(part) for part in found.parts()] == [bytes(part) for part in whole.parts()]
    assert contents(segments) == contents([whole])


def test_offsets_beyond_32_bits() -> None:
    offsets = np.array([0, 2**32 + 7, 2**40], np.int64)
    segments = [make_offsets(offsets[:1], (0, 1, 0, 9)), make_offsets(offsets[1:], (1, 2, 9, 2**40 + 5))]
    found = merged(segments)
    assert load_offsets(found).tolist() == offsets.tolist()
    assert found.run == (0, 3, 0, 2**40 + 5)


@pytest.mark.parametrize("count", [1, 2, ZONE - 1, ZONE, ZONE + 1, 20 * ZONE + 7])
def test_offsets_of_some_records(count: int) -> None:
    """Of whichever zones they are, and however wide these are; from memory and from a file."""
    chance = np.random.default_rng(count)
    gaps = chance.integers(1, 200, count)
    gaps[chance.integers(0, count, 3)] += 1 << 17
    gaps[chance.integers(0, count)] += 1 << 40
    offsets = np.cumsum(gaps)
    first = make_offsets(offsets, (0, count, 0, int(offsets[-1]) + 1))
    data = b"".join(map(bytes, first.parts()))
    read, _ = read_segment(lambda at, size: data[at : at + size], 0, len(data), "x.index")
    more = make_offsets(offsets + offsets[-1] + 1, (count, count, int(offsets[-1]) + 1, 2 * int(offsets[-1]) + 2))
    every = np.append(offsets, offsets + offsets[-1] + 1)
    for segments in ([first, more], [read, more]):
        for size in (0, 1, 2, 9, 1000):
            seqs = np.sort(chance.integers(0, 2 * count, size)).astype(np.uint32)
            assert offsets_at(segments, seqs).tolist() == every[seqs].tolist()
            assert offsets_at(segments, seqs[::-1]).tolist() == every[seqs[::-1]].tolist()
            assert offsets_at(segments[:1], seqs[seqs < count]).tolist() == offsets[seqs[seqs < count]].tolist()
        for asked in [0, 1, *every[chance.integers(0, count, 20)].tolist(), int(offsets[-1]) + 1]:
            for near in (asked - 1, asked, asked + 1):
                assert rank_in(segments[0], near) == np.searchsorted(offsets, near)
        assert load_offsets(segments[0]).tolist() == offsets.tolist()


def test_few_records_take_few_bytes() -> None:
    """A zone is two bytes a record, and no other zone is read."""
    count, reads = 64 * ZONE, 0
    offsets = np.arange(count, dtype=np.int64) * 400
    data = b"".join(map(bytes, make_offsets(offsets, (0, count, 0, 400 * count)).parts()))

    def read_at(at: int, size: int) -> bytes:
        nonlocal reads
        reads += size
        return data[at : at + size]

    segment, _ = read_segment(read_at, 0, len(data), "x.index")
    reads = 0
    assert offsets_at([segment], np.array([5, 40 * ZONE], np.uint32)).tolist() == [2000, 400 * 40 * ZONE]
    assert reads <= 2 * 2 * ZONE + 8 * 64
    assert len(data) < 2.1 * count


def test_the_list_of_damaged_blocks_outlives_merging() -> None:
    parts = [
        make_offsets(np.arange(at, at + 3), (at, 3, at, at + 3), damaged) for at, damaged in ((0, [9, 2]), (3, ()))
    ]
    parts.append(with_damaged(make_offsets(np.arange(6, 8), (6, 2, 6, 8)), [1 << 40, 2]))
    found = merged(parts)
    assert damaged_blocks([found]) == damaged_blocks(parts) == {2, 9, 1 << 40}
    assert found.meta == b"".join(block.to_bytes(8, "little") for block in (2, 9, 1 << 40))
    assert load_offsets(found).tolist() == list(range(8))
