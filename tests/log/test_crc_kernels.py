"""The checksums of many blocks at once are zlib's, on whichever processor, compiled or not."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thoroughness import tries

from jitdb.log.blocks.checksum import DAMAGED, UNKNOWN
from jitdb.log.blocks.crc import Room, is_compiled, mismatches, walk_verified
from jitdb.log.blocks.crc_arithmetic import power, tables
from jitdb.log.blocks.walk_kernels import walk
from jitdb.log.sidecar.checksums import decode_entries, encode_entry

pytestmark = pytest.mark.slow

compiled = pytest.mark.skipif(
    not is_compiled(), reason="needs compiled kernels, and a processor that multiplies without carries"
)
SIZES = (16, 40, 64, 500, 512, 513, 1024, 4096, 65536)


def some_bytes(count: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)


def room_for(size: int, block_size: int) -> Room:
    most, blocks = size // 3 + 1, size // block_size + 1
    return Room(
        np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.uint8),
        np.empty(blocks, np.int64), np.empty(blocks, np.int64),
    )  # fmt: skip


def test_powers_and_tables() -> None:
    assert [power(exponent) for exponent in (0, 1, 31, 32)] == [1 << 31, 1 << 30, 1, 0xEDB88320]
    rows = tables()
    for byte in (0, 1, 77, 255):
        # Without what zlib adds at the beginning and at the end.
        assert rows[0, byte] == zlib.crc32(bytes([byte]), 0xFFFFFFFF) ^ 0xFFFFFFFF
        assert rows[15, byte] == zlib.crc32(bytes([byte]) + bytes(15), 0xFFFFFFFF) ^ 0xFFFFFFFF


@compiled
def test_all_lengths_and_places() -> None:
    from jitdb.log.blocks.crc_kernels import crc32

    data, choose = some_bytes(200_000), random.Random(1)
    spans = [(begin, length) for begin in (0, 1, 7) for length in range(1100)]
    spans += [(choose.randrange(100_000), choose.randrange(100_000)) for _ in range(500)]
    for begin, length in spans:
        assert crc32(data, begin, begin + length) == zlib.crc32(data[begin : begin + length].data), (begin, length)


@pytest.mark.parametrize("block_size", SIZES)
@pytest.mark.parametrize("compile_it", [pytest.param(True, marks=compiled), False])
def test_wrong_blocks_are_found(block_size: int, compile_it: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the walk beside it is kernels.walk, on hostile bytes."""
    monkeypatch.setattr("jitdb.log.blocks.crc.is_compiled", lambda: compile_it)
    count, header = 70_000 // block_size + 5, 2
    data = some_bytes(count * block_size + block_size // 2, block_size)
    data[::3] = 0
    sums = np.array([zlib.crc32(data[at * block_size :][:block_size].data) for at in range(count + 1)], np.int64)
    choose = random.Random(block_size)
    wrong = sorted(choose.sample(range(count), 3))
    for number in wrong:
        data[number * block_size + choose.randrange(block_size)] ^= 1 << choose.randrange(8)
    sums[wrong[0]] = UNKNOWN
    good = next(number for number in range(count) if number not in wrong)
    sums[good] = DAMAGED
    sums[count] += 1  # of the last one, which is not whole
    room, plain = room_for(len(data), block_size), room_for(len(data), block_size)
    records, faults, found = walk_verified(data, len(data), block_size, header, sums, room)
    assert room.wrong[:found].tolist() == sorted([good, *wrong[1:]])
    assert mismatches(data, len(data), block_size, sums) == sorted([good, *wrong[1:]])
    assert (records, faults) == walk(data, len(data), block_size, header, *plain[:4])
    for ours, theirs, upto in zip(room, plain, (records, records, records, faults), strict=False):
        assert ours[:upto].tolist() == theirs[:upto].tolist()
    assert walk_verified(data, len(data), block_size, header, sums[:0], room)[2] == 0


@pytest.mark.parametrize("compile_it", [pytest.param(True, marks=compiled), False])
def test_entries(compile_it: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing ones and damaged ones, and one with a wrong bit, which is left to repair."""
    monkeypatch.setattr("jitdb.log.blocks.crc.is_compiled", lambda: compile_it)
    crcs = [0, 1, 0xFFFFFFFF, *some_bytes(400).view(np.uint32).tolist()]
    first, generation = (1 << 33) - 40, 0xFFFFFFF0
    raw = bytearray(b"".join(encode_entry(first + at, crc, generation) for at, crc in enumerate(crcs)))
    expected = list(crcs)
    raw[8 * 5 : 8 * 6], expected[5] = bytes(8), UNKNOWN
    raw[8 * 6 : 8 * 7], expected[6] = b"\x55" * 8, UNKNOWN
    raw[8 * 7 + 2], expected[7] = raw[8 * 7 + 2] ^ 4, UNKNOWN
    raw[8 * 8 : 8 * 9], expected[8] = encode_entry(first + 9, crcs[8], generation), UNKNOWN  # of another block
    assert decode_entries(bytes(raw), first, generation, len(crcs)).tolist() == expected
    assert decode_entries(bytes(raw[:21]), first, generation, 4).tolist() == [*expected[:2], UNKNOWN, UNKNOWN]
    assert decode_entries(b"", first, generation, 2).tolist() == [UNKNOWN, UNKNOWN]


# Other processors

CHECK = """
import zlib, sys
import numpy as np
from jitdb.log.blocks.crc import Room, is_compiled, walk_verified
from jitdb.common.kernels import numba_lanes
assert (is_compiled(), numba_lanes()) == (sys.argv[1] != "0" and sys.argv[2] == "1", int(sys.argv[1]))
data = np.random.default_rng(5).integers(1, 256, 5 * 5000, dtype=np.uint8)
sums = np.array([zlib.crc32(data[at * 5000:][:5000].data) for at in range(5)], np.int64)
data[3 * 5000 + 4999] ^= 1
room = Room(*(np.empty(25000, kind) for kind in (np.int64, np.int64, np.uint8, np.int64, np.int64)))
counts = walk_verified(data, len(data), 5000, 2, sums, room)
assert room.wrong[:counts.wrong].tolist() == [3], counts
if is_compiled():
    from jitdb.log.blocks import crc_kernels
    stats = crc_kernels.walk_verified.stats
    print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def run_check(folder: Path, lanes: int, jit: bool = True, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", CHECK, str(lanes), str(int(jit))],
        env={**os.environ, "JITDB_KERNELS": "numba", "NUMBA_CACHE_DIR": str(folder), **environment},
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip


@compiled
@pytest.mark.skipif(not sys.platform.startswith("linux") or os.uname().machine != "x86_64", reason="names its features")
def test_every_width(tmp_path: Path) -> None:
    """What one processor left in the cache is not run on another; a second process of one finds it there."""
    from llvmlite.binding import get_host_cpu_features

    from jitdb.common.kernels import numba_lanes

    host = get_host_cpu_features()
    assert run_check(tmp_path, numba_lanes()) == "0 1"
    assert run_check(tmp_path, numba_lanes()) == "1 0"
    widths = {4: ("vpclmulqdq", "avx512f"), 2: ("vpclmulqdq", "avx2"), 1: ("pclmul",), 0: ()}
    for width, wanted in list(widths.items())[:: tries(2, 1)]:
        if all(host.get(name) for name in wanted):
            features = ",".join(f"+{name}" for name in ("sse4.2", *wanted))
            found = run_check(tmp_path, width, NUMBA_CPU_NAME="x86-64", NUMBA_CPU_FEATURES=features)
            assert found == ("0 1" if width else "")


def test_uncompiled(tmp_path: Path) -> None:
    from jitdb.common.kernels import numba_lanes

    run_check(tmp_path, numba_lanes(), jit=False, JITDB_KERNELS="python")


def test_the_instructions_of_arm() -> None:
    """Those that another processor would get are run here, with its multiplication written out."""
    from llvmlite import binding, ir

    from jitdb.common.kernels import widest_lanes
    from jitdb.log.blocks.crc_folding import ACCUMULATORS, LANE, Folder, emit_fold

    triple = "aarch64-unknown-linux-gnu"
    assert (widest_lanes(triple, "+neon,+aes"), widest_lanes(triple, "+neon,-aes")) == (1, 0)
    assert widest_lanes("x86_64-pc-linux-gnu", "+pclmul,-vpclmulqdq,-avx512f") == 1
    word, module = ir.IntType(64), ir.Module()
    kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), word, word, word, word.as_pointer()])
    function = ir.Function(module, kind, "folded")
    builder = ir.IRBuilder(function.append_basic_block())
    base, begin, stop, start, out = function.args
    found = emit_fold(builder, Folder(builder, triple, 1), 1, base, begin, stop, start)
    builder.store(found, builder.bitcast(out, found.type.as_pointer())).align = 8
    builder.ret_void()
    text = str(module).replace("llvm.aarch64.neon.pmull64", "multiplied")
    assert "multiplied" in text
    text = "\n".join(line for line in text.splitlines() if not line.startswith("declare"))
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(text + MULTIPLIED), machine)
    engine.finalize_object()
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * 5)(engine.get_function_address("folded"))
    step = LANE * ACCUMULATORS
    data = some_bytes(20 * step)
    for begins, steps in ((0, 1), (3, 2), (8, 17)):
        length = steps * step + 5
        folded = np.zeros(2, np.uint64)
        call(data.ctypes.data, begins, begins + length, 0xFFFFFFFF, folded.ctypes.data)
        whole = data[begins : begins + steps * step]
        # The remainder of the 16 bytes is that of all of them: zlib's without what it adds at the beginning.
        assert zlib.crc32(folded.tobytes(), 0xFFFFFFFF) == zlib.crc32(whole.data)


MULTIPLIED = """
define <16 x i8> @"multiplied"(i64 %a, i64 %b) {
entry:
  %wide = zext i64 %a to i128
  br label %loop
loop:
  %bit = phi i64 [0, %entry], [%next, %loop]
  %sum = phi i128 [0, %entry], [%added, %loop]
  %shifted = lshr i64 %b, %bit
  %one = trunc i64 %shifted to i1
  %by = zext i64 %bit to i128
  %moved = shl i128 %wide, %by
  %term = select i1 %one, i128 %moved, i128 0
  %added = xor i128 %sum, %term
  %next = add i64 %bit, 1
  %done = icmp eq i64 %next, 64
  br i1 %done, label %end, label %loop
end:
  %bytes = bitcast i128 %added to <16 x i8>
  ret <16 x i8> %bytes
}
"""
