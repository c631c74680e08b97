"""The arithmetic of blocks: placing, packing, walking; the compiled walk agrees with the plain one."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jitdb.errors import LogError
from jitdb.log.blocks import walk_kernels
from jitdb.log.blocks.block_format import (
    check_block_size,
    cut_run,
    header_size,
    is_zero,
    largest_record,
    pack,
    place,
    round_up,
    walk_block,
)
from jitdb.log.blocks.scanner import Walker, walk_python

BLOCK_SIZES = (16, 64, 512, 65536, 65537, 1 << 17)


@pytest.mark.parametrize(
    ("block_size", "header", "largest"),
    [(16, 2, 12), (65536, 2, 65532), (65537, 4, 65529), (1 << 24, 4, (1 << 24) - 8)],
)
def test_sizes(block_size: int, header: int, largest: int) -> None:
    assert (header_size(block_size), largest_record(block_size)) == (header, largest)


@pytest.mark.parametrize("bad", [0, 15, (1 << 24) + 1, -65536, 65536.0, "65536", True, None])
def test_block_sizes_that_cannot_be(bad: object) -> None:
    with pytest.raises(LogError, match="block_size"):
        check_block_size(bad)


@pytest.mark.parametrize(
    ("lengths", "end", "offsets"),
    [
        ([12], 0, [0]),  # ends where only the zero header fits
        ([13 - 1, 1], 0, [0, 16]),
        ([4, 4], 0, [0, 6]),  # 6 + 6 = 12: two bytes short of full
        ([4, 6], 0, [0, 6]),  # 6 + 8 = 14: exactly full
        ([4, 7], 0, [0, 16]),  # one byte too much
        ([1], 11, [11]),
        ([2], 11, [16]),
        ([1], 14, [16]),  # after an exactly full block
        ([12, 12, 12], 20, [32, 48, 64]),
    ],
)
def test_block_boundaries(lengths: list[int], end: int, offsets: list[int]) -> None:
    placed = place(lengths, end, 16)
    assert placed.offsets == offsets
    assert placed == place(np.array(lengths, np.int64), end, 16)
    assert placed.end == offsets[-1] + 2 + lengths[-1]


@given(st.data(), st.sampled_from(BLOCK_SIZES))
def test_placing_many_agrees_with_placing_one_by_one(data: st.DataObject, block_size: int) -> None:
    largest = largest_record(block_size)
    lengths = data.draw(st.lists(st.integers(1, largest) | st.sampled_from([1, largest, largest // 2]), max_size=40))
    end = 0
    if data.draw(st.booleans()):
        end = data.draw(st.integers(0, 3)) * block_size + data.draw(st.integers(0, largest + header_size(block_size)))
    one = place(lengths, end, block_size)
    assert one == place(np.array(lengths, np.int64), end, block_size)
    alone = [
        place([length], at, block_size)
        for length, at in zip(lengths, [end, *ends(one.offsets, lengths, block_size)], strict=False)
    ]
    assert [each.offsets[0] for each in alone] == one.offsets


def ends(offsets: list[int], lengths: list[int], block_size: int) -> list[int]:
    return [at + header_size(block_size) + length for at, length in zip(offsets, lengths, strict=True)]


@given(st.lists(st.binary(min_size=1, max_size=12), max_size=20))
def test_what_is_packed_is_walked(records: list[bytes]) -> None:
    fitting, size = [], 0
    for record in records:
        if size + 2 + len(record) <= 62:
            fitting.append(record)
            size += 2 + len(record)
    block = pack(fitting, list(map(len, fitting)), 64).ljust(64, b"\0")
    walk = walk_block(block, 64, 64)
    assert not walk.fault
    assert walk.end == size
    assert walk.lengths == list(map(len, fitting))
    assert list(cut_run(block, 0, walk.lengths, 64)) == fitting


@pytest.mark.parametrize(
    ("block", "used", "count", "end", "fault"),
    [
        (bytes(16), 16, 0, 0, False),  # EmptyBlock
        (b"", 0, 0, 0, False),  # NothingThere
        (b"\x01", 1, 0, 0, False),  # HalfHeaderAtEof
        (b"\x0c\0" + b"x" * 12 + b"\0\0", 16, 1, 14, False),  # ExactlyFull
        (b"\x0d\0" + b"x" * 13 + b"\0", 16, 0, 0, True),  # NoRoomForTheZeroHeader
        (b"\x01\0a\xff\xff" + bytes(11), 16, 1, 3, True),  # LengthLeadsOut
        (b"\x01\0a\x05\0bc", 7, 1, 3, True),  # RecordCutAtEof
        (b"\x01\0a\x05\0bcdef", 3, 1, 3, False),  # NotYetDurable
        (b"\x01\0a\0\0\x01\0b" + bytes(8), 16, 1, 3, False),  # BytesBehindTheEnd
    ],
)
def test_walking(block: bytes, used: int, count: int, end: int, fault: bool) -> None:
    walk = walk_block(block, used, 16)
    assert (len(walk.positions), walk.end, walk.fault) == (count, end, fault)


def both_walks(data: bytes, block_size: int) -> None:
    array = np.frombuffer(data, np.uint8).copy()
    plain = walk_python(array, len(array), block_size)
    compiled = Walker(len(array), block_size, total=1 << 40).walk(array, len(array))
    for one, other in zip(plain, compiled, strict=True):
        assert list(one) == list(other)
    header = header_size(block_size)
    for start, length in zip(plain.starts.tolist(), plain.lengths.tolist(), strict=True):
        begin = (start - header) // block_size * block_size
        assert start + length <= min(begin + block_size - header, len(data))


@given(st.binary(max_size=200), st.sampled_from([16, 17, 64]))
@settings(deadline=None)  # the first example may compile the kernel
@example(b"\xff" * 16, 16)
@example(b"\x01\0\0" * 5 + b"\0", 16)
def test_hostile_bytes(data: bytes, block_size: int) -> None:
    both_walks(data, block_size)


@given(st.lists(st.sampled_from([0, 1, 2, 3, 9, 12, 13, 255]), max_size=120), st.sampled_from([16, 64]))
def test_hostile_lengths(small: list[int], block_size: int) -> None:
    both_walks(bytes(small), block_size)


def test_hostile_wide_headers() -> None:
    chance = random.Random(3)
    block_size = 1 << 17
    for _ in range(20):
        data = bytearray(3 * block_size)
        for begin in range(0, len(data), block_size):
            position = begin
            while position < begin + block_size - 8:
                length = chance.choice([1, 7, 300, 1 << 16, 1 << 31, 0xFFFFFFFF])
                data[position : position + 4] = length.to_bytes(4, "little")
                position += 4 + min(length, 1 << 17)
        del data[3 * block_size :]
        both_walks(bytes(data), block_size)


def test_the_kernel_stays_within_its_output_arrays() -> None:
    data = np.frombuffer(b"\x01\0a" * 4 + bytes(4), np.uint8).copy()
    few = np.zeros(2, np.int64)
    count, faults = walk_kernels.walk(data, 16, 16, 2, few, few.copy(), np.zeros(2, np.uint8), few.copy())
    assert (count, faults) == (2, 0)


def test_the_kernel_runs_uncompiled() -> None:
    """numpy then checks every index."""
    script = (
        "import random, numpy as np\n"
        "from jitdb.log.blocks.scanner import Walker, walk_python\n"
        "chance = random.Random(5)\n"
        "for block_size in (16, 64, 65537):\n"
        "    for size in (0, 1, 15, 16, 48, 200, 70000):\n"
        "        data = np.array([chance.choice([0, 1, 2, 9, 255]) for _ in range(size)], np.uint8)\n"
        "        one = walk_python(data, size, block_size)\n"
        "        other = Walker(size, block_size, total=1 << 40).walk(data, size)\n"
        "        assert all(list(a) == list(b) for a, b in zip(one, other)), (block_size, size)\n"
    )
    environment = {**os.environ, "JITDB_KERNELS": "python"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_deleted_is_all_zero() -> None:
    for size in (1, 63, 64, 65, 5000):
        assert is_zero(bytes(size))
        assert not is_zero(bytes(size - 1) + b"\1")


@pytest.mark.parametrize(("offset", "rounded"), [(0, 0), (1, 16), (15, 16), (16, 16), (17, 32)])
def test_round_up(offset: int, rounded: int) -> None:
    assert round_up(offset, 16) == rounded
