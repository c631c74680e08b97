"""The numbers of all records from the bitmaps of their values, read at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_cases import make_bitmaps
from pyroaring import BitMap

from jitdb.errors import IndexDamaged
from jitdb.indexes.files.segment_reader import read_segment
from jitdb.indexes.kinds.bitmaps import codes_in
from jitdb.indexes.kinds.kernels.roaring import number_members
from jitdb.indexes.segment import SPAN

COUNT = 150_000  # records: three containers


@st.composite
def sets(draw: st.DrawFn) -> list[BitMap]:
    """Sets without a common member: lists, bits, runs, and none at all."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shares = draw(st.lists(st.sampled_from([0.0, 0.00005, 0.001, 0.1, 0.4]), min_size=1, max_size=4))
    long = draw(st.sampled_from([1, 7, 5000]))  # neighbours of one value, which become runs
    owner = np.repeat(random.choice(len(shares) + 1, COUNT // long + 1, p=_all(shares)), long)[:COUNT]
    found = [BitMap(np.flatnonzero(owner == number).tolist()) for number in range(len(shares))]
    for each in found if draw(st.booleans()) else ():
        each.run_optimize()
    return found


def _all(shares: list[float]) -> list[float]:
    total = max(1.0, sum(shares))
    return [*(share / total for share in shares), 1 - sum(shares) / total]


@settings(max_examples=60, deadline=None)
@given(found=sets(), first=st.sampled_from([0, 5, 70_000]))
def test_they_are_those_of_each_bitmap(found: list[BitMap], first: int) -> None:
    placed = [BitMap([member + first for member in each]) for each in found]
    keys = [b"\x05" + bytes([65 + number]) for number in range(len(placed))]
    segment = make_bitmaps(keys, placed, (SPAN + first, COUNT, 0, 10**9))
    expected = np.zeros(COUNT, np.uint32)
    for number, each in enumerate(found):
        expected[list(each)] = number + 1
    numbers = codes_in(segment)
    assert (numbers == expected).all()


def test_a_record_that_is_not_the_segments() -> None:
    segment = make_bitmaps([b"\x05a", b"\x05b"], [BitMap([0, 1]), BitMap([2, 3])], (SPAN, 3, 0, 100))
    with pytest.raises(IndexDamaged, match="blob 1 is no set of the segment's records"):
        codes_in(segment)


def test_a_byte_of_the_file_that_is_another_one() -> None:
    """It would be a record of the segment's, too: only the checksum tells."""
    segment = make_bitmaps([b"\x05a", b"\x05b"], [BitMap([0, 1]), BitMap([2])], (SPAN, 4, 0, 100))
    data = bytearray(b"".join(map(bytes, segment.parts())))
    data[-2:] = b"\x03\x00"
    damaged, _ = read_segment(lambda at, size: bytes(data[at : at + size]), 0, len(data), "x.index")
    with pytest.raises(IndexDamaged, match="blob 1 at byte"):
        codes_in(damaged)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_bytes_lead_astray(data: st.DataObject) -> None:
    """A byte that is another one, or a set that is cut: an answer or a number, and no member elsewhere."""
    members = data.draw(st.sampled_from([[1, 2, 3], range(5000), range(0, 12_000, 2), [*range(50), 70_000, 140_000]]))
    one = BitMap(members)
    if data.draw(st.booleans()):
        one.run_optimize()
    raw = bytearray(one.serialize())
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(0, min(40, len(raw) - 1)))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.sampled_from([len(raw), len(raw) - 1, 9, 8, 3]))]
    around = np.full(COUNT + 2000, 9, np.uint32)
    around[1000:-1000] = 0
    ends = np.array([len(raw)], np.int64)
    assert number_members(
        np.frombuffer(bytes(raw), np.uint8), ends, np.array([5], np.uint32), 0, around[1000:-1000]
    ) in (-1, 0)
    assert (around[:1000] == 9).all()
    assert (around[-1000:] == 9).all()
