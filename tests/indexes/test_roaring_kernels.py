"""Sets that the kernels write are byte for byte those that the library writes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_cases import make_bitmaps, make_grouped
from kernel_cases import EXAMPLES

from jitdb.indexes.kinds.bitmaps import dictionary_of, load_bitmap
from jitdb.indexes.kinds.roaring import bitmap_of
from jitdb.indexes.segment import SPAN

RUN = (0, SPAN, 0, 1)


def runs(draw: st.DrawFn) -> list[int]:
    start = draw(st.integers(0, SPAN - 70_000))
    return list(range(start, start + draw(st.sampled_from([1, 2, 3, 4, 5, 4096, 4097, 65_536, 70_000]))))


@st.composite
def sets(draw: st.DrawFn) -> list[int]:
    """Lists, bits and runs, alone and mixed, around the sizes at which a container changes."""
    members: list[int] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["few", "run", "steps"]))
        if kind == "few":
            members += draw(st.lists(st.integers(0, SPAN - 1), max_size=20))
        elif kind == "run":
            members += runs(draw)
        else:
            start, step = draw(st.integers(0, 65_536)), draw(st.integers(2, 5))
            members += range(start, start + step * draw(st.sampled_from([10, 4095, 4096, 4097])), step)
    return members


def check(groups: list[list[int]]) -> None:
    groups = [group for group in groups if group]  # a value that no record has is no key
    keys = [bytes([5, number]) for number in range(len(groups))]
    members = np.concatenate([np.empty(0, np.uint32), *(np.array(sorted(group), np.uint32) for group in groups)])
    begins = np.cumsum([0, *map(len, groups)])
    ours = make_grouped(keys, members, begins, RUN)
    theirs = make_bitmaps(keys, [bitmap_of(np.array(sorted(set(group)), np.uint32)) for group in groups], RUN)
    assert ours.meta == theirs.meta
    assert b"".join(ours.parts()) == b"".join(theirs.parts())
    for number, group in enumerate(groups):
        assert set(load_bitmap(ours, number)) == set(group)
        assert dictionary_of(ours).cardinalities[number] == len(set(group))


@given(st.lists(sets(), max_size=5))
@settings(max_examples=EXAMPLES, deadline=None)
def test_kernel_and_library_write_the_same(groups: list[list[int]]) -> None:
    check(groups)


@pytest.mark.parametrize(
    "members",
    [
        [0, 1],  # runs would take as many bytes: a list
        [0, 1, 2],
        [0, 1, 2, 3],  # runs take less
        [7, 7, 7],  # one member, said three times
        list(range(0, 8192, 2)),  # 4,096: the longest list
        list(range(0, 8194, 2)),  # 4,097: bits
        list(range(65_536)),
        [number << 16 for number in range(3)],
        [number << 16 | low for number in range(3) for low in range(9)],  # runs without offsets
        [number << 16 | low for number in range(4) for low in range(9)],  # runs with offsets
        [number << 16 | low for number in range(16) for low in range(9)],
    ],
)
def test_edges(members: list[int]) -> None:
    check([members, [SPAN - 1], members])
