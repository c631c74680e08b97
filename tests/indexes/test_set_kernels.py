"""The kernels that write many roaring bitmaps at once, byte for byte against the library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_cases import make_bitmaps, make_grouped
from kernel_cases import COMPILED, EXAMPLES

from jitdb.indexes.kinds.roaring import CONTAINER, bitmap_of

pytestmark = pytest.mark.slow

SetParts = tuple[list[tuple[int, int]], list[int], int]  # runs (start, length), single members, how often each occurs

edges = st.sampled_from([0, 1, 5, 4096, 65_534, 65_535, 65_536, 131_071, 131_072])
runs = st.tuples(edges, st.sampled_from([1, 2, 3, 4, 10, 4095, 4097, 8192, 70_000] if COMPILED else [1, 2, 3, 10]))
sparse = st.lists(st.integers(0, 200_000), max_size=40)
compiled = pytest.mark.skipif(not COMPILED, reason="too many members for kernels that run as Python")


def assert_written_alike(groups: list[np.ndarray]) -> None:  # type: ignore[type-arg]
    """The kernel that writes many sets at once gives the bytes that the library gives for each."""
    keys = [f"{number:04}".encode() for number in range(len(groups))]
    members = np.concatenate([np.empty(0, np.uint32), *groups]).astype(np.uint32)
    begins = np.cumsum([0, *map(len, groups)])
    run = (0, 1 << 20, 0, 1)
    filled = [(key, bitmap_of(group)) for key, group in zip(keys, groups, strict=True) if len(group)]
    expected = make_bitmaps([key for key, _ in filled], [members for _, members in filled], run)
    found = make_grouped(keys, members, begins, run)
    assert found.meta == expected.meta
    for number in range(len(filled)):
        assert bytes(found.blob(number)) == bytes(expected.blob(number)), number
    assert b"".join(map(bytes, found.parts())) == b"".join(map(bytes, expected.parts()))


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(st.lists(st.tuples(st.lists(runs, max_size=5), sparse, st.integers(1, 3)), max_size=5))
def test_many_sets_are_written_as_the_library_writes_each(
    sets: list[tuple[list[tuple[int, int]], list[int], int]],
) -> None:
    groups = []
    for ranges, singles, repeats in sets:
        parts = [np.arange(start, start + length) for start, length in ranges]
        members = np.unique(np.concatenate([np.array(singles, np.int64), *parts]))
        groups.append(np.repeat(members, repeats).astype(np.uint32))
    assert_written_alike(groups)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 9, 16])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 4096, 4097, 60_000] if COMPILED else [1, 2, 4])
def test_many_containers_with_and_without_runs(count: int, length: int) -> None:
    everywhere = [np.arange(number * CONTAINER, number * CONTAINER + length) for number in range(count)]
    somewhere = [part if number % 3 else part[::2] for number, part in enumerate(everywhere)]
    assert_written_alike([np.concatenate(everywhere), np.concatenate(somewhere), np.arange(3)])


@compiled
@pytest.mark.parametrize("count", [4094, 4095, 4096, 4097, 4098])
@pytest.mark.parametrize("pairs", [2045, 2046, 2047, 2048, 2049])
def test_containers_at_their_limits(count: int, pairs: int) -> None:
    of_two = np.sort(np.concatenate([np.arange(pairs) * 9, np.arange(pairs) * 9 + 1]))
    of_three = np.sort(np.concatenate([np.arange(pairs) * 9 + add for add in range(3)]))
    assert_written_alike([np.arange(count) * 2, of_two, of_three, np.arange(count), np.array([], np.uint32)])
