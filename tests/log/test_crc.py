"""The checksums and the deflate that all use are those of Python's zlib; and those of many blocks, and of entries."""

from __future__ import annotations

import gzip
import random
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitdb.common import zlib as ours
from jitdb.log.blocks.checksum import (
    DAMAGED,
    UNKNOWN,
    Room,
    crcs_of,
    mismatches,
    walk_verified,
)
from jitdb.log.blocks.walk_kernels import walk
from jitdb.log.sidecar.checksums import FLAGS, UNPROVEN, Entry, decode_entries, encode_entries

SIZES = (16, 40, 64, 500, 512, 513, 1024, 4096, 65536)


def some_bytes(count: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)


def test_known_checksums() -> None:
    """Of the catalogue of CRCs ("check"), RFC 3720 B.4 style runs, and of nothing."""
    vectors = {b"": 0, b"123456789": 0xCBF43926, bytes(32): 0x190A55AD, b"\xff" * 32: 0xFF6CAB0B, b"a": 0xE8B7BE43}
    assert {data: ours.crc32(data) for data in vectors} == vectors


def test_checksums_of_all_lengths_and_places() -> None:
    data, choose = some_bytes(200_000).data, random.Random(1)
    spans = [(begin, length) for begin in (0, 1, 7) for length in [*range(65), *range(65, 1100, 13)]]
    spans += [(choose.randrange(100_000), choose.randrange(100_000)) for _ in range(500)]
    for begin, length in spans:
        part, before = data[begin : begin + length], choose.randrange(1 << 32)
        assert ours.crc32(part) == zlib.crc32(part), (begin, length)
        assert ours.crc32(part, before) == zlib.crc32(part, before), (begin, length)


def test_checksum_of_a_large_buffer() -> None:
    data = some_bytes(40_000_003)
    assert ours.crc32(data) == zlib.crc32(data) == ours.crc32(data[9_999_999:], ours.crc32(data[:9_999_999]))


def inflated(module: Any, data: bytes, feed: int, most: int) -> tuple[list[bytes], bool, bytes, type | None]:
    """What a stream gives, piece by piece; whether it ended, what is behind it, and how it failed."""
    stream, pieces, left = module.decompressobj(31), [], b""
    try:
        for at in range(0, len(data), feed):
            left += data[at : at + feed]
            while left and not stream.eof:
                pieces.append(stream.decompress(left, most))
                left = stream.unconsumed_tail
    except module.error:
        return [b"".join(pieces)], stream.eof, b"", module.error
    return pieces, stream.eof, stream.unused_data, None


@given(st.binary(max_size=3000), st.integers(0, 9), st.integers(1, 400), st.integers(1, 500), st.data())
def test_streams_end_and_break_as_those_of_zlib(text: bytes, level: int, feed: int, most: int, draw: Any) -> None:
    data = bytearray(gzip.compress(text * 5, level, mtime=0) + draw.draw(st.binary(max_size=20)))
    del data[draw.draw(st.integers(len(data) // 2, len(data))) :]
    if data and draw.draw(st.booleans()):
        data[draw.draw(st.integers(0, len(data) - 1))] ^= 1 << draw.draw(st.integers(0, 7))
    found, expected = inflated(ours, bytes(data), feed, most), inflated(zlib, bytes(data), feed, most)
    assert found[1:3] == expected[1:3]
    assert (found[3] is ours.error) == (expected[3] is zlib.error)
    texts = b"".join(found[0]), b"".join(expected[0])
    if expected[3] is None:
        assert texts[0] == texts[1]
    else:  # one of them may stop at the damage sooner
        assert texts[0].startswith(texts[1]) or texts[1].startswith(texts[0])


def test_a_copy_of_a_stream_goes_on_by_itself() -> None:
    data = zlib.compress(b"abc" * 1000)
    stream = ours.decompressobj()
    begun = stream.decompress(data, 100)
    other = stream.copy()
    for each in (stream, other):
        assert begun + each.decompress(each.unconsumed_tail) == b"abc" * 1000
    assert zlib.decompress(ours.compress(b"abc" * 1000, 1)) == b"abc" * 1000


@pytest.mark.parametrize("block_size", SIZES)
def test_wrong_blocks_are_found(block_size: int) -> None:
    """And the walk beside it is walk_kernels.walk, on hostile bytes."""
    count, header = 70_000 // block_size + 5, 2
    data = some_bytes(count * block_size + block_size // 2, block_size)
    data[::3] = 0
    sums = np.array([zlib.crc32(data[at * block_size :][:block_size].data) for at in range(count + 1)], np.int64)
    assert crcs_of(data, len(data), block_size, np.arange(count + 1)).tolist() == sums.tolist()
    choose = random.Random(block_size)
    wrong = sorted(choose.sample(range(count), 3))
    for number in wrong:
        data[number * block_size + choose.randrange(block_size)] ^= 1 << choose.randrange(8)
    sums[wrong[0]] = UNKNOWN
    good = next(number for number in range(count) if number not in wrong)
    sums[good] = DAMAGED
    sums[count] += 1  # of the last one, which is not whole
    room, plain = Room.of(len(data), block_size, header), Room.of(len(data), block_size, header)
    more = np.concatenate([sums, np.full(9, 5, np.int64)])  # of blocks that are not there
    records, faults, found = walk_verified(data, len(data), block_size, header, more, room)
    assert room.wrong[:found].tolist() == sorted([good, *wrong[1:]])
    assert mismatches(data, len(data), block_size, sums) == sorted([good, *wrong[1:]])
    assert (records, faults) == walk(data, len(data), block_size, header, *plain[:4])
    for one, other, upto in zip(room, plain, (records, records, records, faults), strict=False):
        assert one[:upto].tolist() == other[:upto].tolist()
    assert walk_verified(data, len(data), block_size, header, sums[:0], room)[2] == 0


@pytest.mark.parametrize("flags", FLAGS)
def test_entries(flags: int) -> None:
    """Missing ones and damaged ones, and one with a wrong bit, which is left to repair."""
    crcs = [0, 1, 0xFFFFFFFF, *some_bytes(400).view(np.uint32).tolist()]
    first, generation = (1 << 33) - 40, 0xFFFFFFF0
    raw = bytearray(encode_entries([Entry(crc, flags) for crc in crcs], generation, first))
    expected: list[Entry | None] = [Entry(crc, flags) for crc in crcs]
    raw[8 * 5 : 8 * 6], expected[5] = bytes(8), None
    raw[8 * 6 : 8 * 7], expected[6] = b"\x55" * 8, None
    raw[8 * 7 + 2], expected[7] = raw[8 * 7 + 2] ^ 4, None
    raw[8 * 8 : 8 * 9], expected[8] = encode_entries([Entry(crcs[8])], generation, first + 9), None  # of another block
    expected[9] = Entry(crcs[9], FLAGS[-1] - flags)  # not all are of one kind
    raw[8 * 9 : 8 * 10] = encode_entries([expected[9]], generation, first + 9)
    found = decode_entries(bytes(raw), first, generation)
    assert found == expected
    assert found[0] is not None
    assert found[0].is_doubt == bool(flags & UNPROVEN)
    assert decode_entries(bytes(raw[:21]), first, generation) == expected[:2]
    assert decode_entries(b"", first, generation) == []
