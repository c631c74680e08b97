"""The doors into and out of roaring bitmaps, against Python's sets."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from pyroaring import BitMap

from jitdb.indexes.kinds.roaring import (
    CONTAINER,
    bitmap_of,
    bitmap_of_mask,
    bitmap_of_range,
    dump,
    members_of,
    union_of,
)

edges = st.sampled_from([0, 1, 5, 4095, 4096, 4097, 65_534, 65_535, 65_536, 65_537, 131_071, 131_072, 1 << 20])
runs = st.tuples(edges, st.sampled_from([1, 2, 3, 4, 10, 4095, 4096, 4097, 8192, 65_536, 70_000]))
sparse = st.lists(st.integers(0, 200_000), max_size=40)


def expected_members(bitmap: BitMap) -> list[int]:
    return list(bitmap)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_bitmap_of_and_back(members: list[int]) -> None:
    bitmap = bitmap_of(np.array(members, np.uint32))
    assert bitmap == BitMap(members)
    assert members_of(bitmap).tolist() == sorted(set(members))
    assert members_of(bitmap).dtype == np.uint32


def test_bitmap_of_takes_slices_that_are_not_contiguous() -> None:
    assert list(bitmap_of(np.arange(20, dtype=np.uint32)[::3])) == [0, 3, 6, 9, 12, 15, 18]


@settings(max_examples=150, deadline=None)
@given(st.lists(runs, max_size=4), sparse, edges | st.integers(0, 200_000), st.integers(0, 140_000))
def test_bitmap_of_mask(ranges: list[tuple[int, int]], singles: list[int], first: int, size: int) -> None:
    mask = np.zeros(size, np.bool_)
    for start, length in ranges:
        mask[start : start + length] = True
    mask[[single for single in singles if single < size]] = True
    bitmap = bitmap_of_mask(mask, first)
    assert np.array_equal(members_of(bitmap), np.flatnonzero(mask) + first)
    assert dump(bitmap) == dump(bitmap_of(members_of(bitmap)))


@pytest.mark.parametrize("first", [0, 1, CONTAINER - 1, CONTAINER, CONTAINER + 1, 2**32 - 3 * CONTAINER])
@pytest.mark.parametrize("size", [0, 1, CONTAINER - 1, CONTAINER, CONTAINER + 1, 2 * CONTAINER])
@pytest.mark.parametrize("every", [1, 2, 15, 17, 10**9])
def test_bitmap_of_mask_at_the_edges_of_containers(first: int, size: int, every: int) -> None:
    mask = np.zeros(size, np.bool_)
    mask[::every] = True
    assert np.array_equal(members_of(bitmap_of_mask(mask, first)), np.flatnonzero(mask) + first)


@pytest.mark.parametrize("count", [4095, 4096, 4097])
def test_bitmap_of_mask_where_lists_become_bits(count: int) -> None:
    mask = np.zeros(CONTAINER, np.bool_)
    mask[: 2 * count : 2] = True
    bitmap = bitmap_of_mask(mask, CONTAINER)
    assert len(bitmap) == count
    assert dump(bitmap) == dump(BitMap(range(CONTAINER, CONTAINER + 2 * count, 2)))


def test_bitmap_of_mask_at_the_last_seqs() -> None:
    mask = np.ones(10, np.bool_)
    assert members_of(bitmap_of_mask(mask, 2**32 - 10)).tolist() == list(range(2**32 - 10, 2**32))


def test_ranges() -> None:
    assert list(bitmap_of_range(3, 7)) == [3, 4, 5, 6]
    assert list(bitmap_of_range(3, 3)) == list(bitmap_of_range(7, 3)) == []
    assert len(bitmap_of_range(0, 2**32)) == 2**32


@given(st.lists(st.sets(st.integers(0, 100_000), max_size=20), max_size=5))
def test_union_of(sets: list[set[int]]) -> None:
    assert set(union_of(BitMap(one) for one in sets)) == set().union(*sets)


def test_the_serialization_is_the_portable_one() -> None:
    # Cookie 12346 (no runs), one container: key 0, two members, at byte 16. From the format's specification.
    assert dump(BitMap([5, 700])) == struct.pack("<IIHHI", 12346, 1, 0, 1, 16) + struct.pack("<HH", 5, 700)
    # Cookie 12347 with runs, one container, all of them runs; key 1, 100 members in one run from 10 on.
    runs_of_100 = struct.pack("<HHB", 12347, 0, 1) + struct.pack("<HH", 1, 99) + struct.pack("<HHH", 1, 10, 99)
    assert dump(bitmap_of_range(CONTAINER + 10, CONTAINER + 110)) == runs_of_100


class OneSerialization(RuleBasedStateMachine):
    """Whatever was done to a set, its bytes are those of its members put into a new one."""

    def __init__(self) -> None:
        super().__init__()
        self.bitmap = BitMap()
        self.model: set[int] = set()

    @rule(run=runs)
    def add_run(self, run: tuple[int, int]) -> None:
        self.bitmap |= bitmap_of_range(run[0], sum(run))
        self.model |= set(range(run[0], sum(run)))

    @rule(run=runs)
    def remove_run(self, run: tuple[int, int]) -> None:
        self.bitmap = self.bitmap - bitmap_of_range(run[0], sum(run))
        self.model -= set(range(run[0], sum(run)))

    @rule(members=st.sets(st.integers(0, 30), max_size=8), base=edges)
    def unite_with_a_few(self, members: set[int], base: int) -> None:
        few = {base + member for member in members}
        self.bitmap = union_of([self.bitmap, BitMap.deserialize(dump(BitMap(few)))])
        self.model |= few

    @rule(members=st.sets(st.integers(0, 30), max_size=8))
    def remove_a_few(self, members: set[int]) -> None:
        self.bitmap = self.bitmap - BitMap(members)
        self.model -= members

    @rule()
    def save_and_load(self) -> None:
        self.bitmap = BitMap.deserialize(dump(self.bitmap))

    @rule()
    def shift(self) -> None:
        self.bitmap = self.bitmap.shift(1)
        self.model = {member + 1 for member in self.model}

    @invariant()
    def one_serialization(self) -> None:
        assert dump(self.bitmap.copy()) == dump(bitmap_of(np.array(sorted(self.model), np.uint32)))


OneSerialization.TestCase.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
TestOneSerialization = OneSerialization.TestCase
