"""The folding of crc.py in the processor's own instructions, as an intrinsic that numba puts into kernels.

Bytes are folded `lanes` * 16 of them at a time, as wide as the registers are, in ACCUMULATORS chains beside each other,
for a multiplication takes several cycles and the next one of a chain waits for it.

numba keys what it keeps on disk by the processor it was compiled for, which decides about the width; so the kernels of
one processor are never run on another.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from jitdb.common.kernels import widest_lanes
from jitdb.log.blocks.crc_arithmetic import ACCUMULATORS, LANE, fold_factors

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_FIRST, _LAST = 0x00, 0x11  # of both factors' halves, which ones are multiplied
_X86: Final = {1: "llvm.x86.pclmulqdq", 2: "llvm.x86.pclmulqdq.256", 4: "llvm.x86.pclmulqdq.512"}
_ARM: Final = "llvm.aarch64.neon.pmull64"


class Folder:
    """Emits the instructions that fold, `lanes` times 16 bytes at once."""

    def __init__(self, builder: ir.IRBuilder, triple: str, lanes: int) -> None:
        self._builder = builder
        self._is_arm = not triple.startswith("x86_64")
        self._lanes = lanes
        self.vector = ir.VectorType(_I64, 2 * lanes)

    def load(self, base: ir.Value, position: ir.Value, number: int) -> ir.Value:
        """The vector with this number from `position` on."""
        builder = self._builder
        place = builder.gep(base, [builder.add(position, _I64(number * LANE * self._lanes))])
        loaded = builder.load(builder.bitcast(place, self.vector.as_pointer()))
        loaded.align = 1
        return loaded

    def onto(self, value: ir.Value, bits: int, target: ir.Value) -> ir.Value:
        """`target`, which stands `bits` bits behind `value`, with `value` folded into it."""
        builder, width = self._builder, value.type.count
        factors = ir.Constant(value.type, [ir.Constant(_I64, factor) for factor in fold_factors(bits) * (width // 2)])
        moved = builder.xor(self._multiply(value, factors, _FIRST), self._multiply(value, factors, _LAST))
        return builder.xor(moved, target)

    def lanes_of(self, value: ir.Value) -> list[ir.Value]:
        """The vector's lanes, each a vector of 16 bytes."""
        nothing = ir.Constant(value.type, None)
        pair = ir.VectorType(_I32, 2)
        places = [ir.Constant(pair, [_I32(2 * lane), _I32(2 * lane + 1)]) for lane in range(self._lanes)]
        return [self._builder.shuffle_vector(value, nothing, place) for place in places]

    def _multiply(self, left: ir.Value, right: ir.Value, halves: int) -> ir.Value:
        builder, vector = self._builder, left.type
        if self._is_arm:
            half = _I32(halves & 1)
            pair = [builder.extract_element(value, half) for value in (left, right)]
            product = ir.FunctionType(ir.VectorType(_I8, LANE), [_I64, _I64])
            return builder.bitcast(builder.call(self._function(product, _ARM), pair), vector)
        product = ir.FunctionType(vector, [vector, vector, _I8])
        return builder.call(self._function(product, _X86[vector.count // 2]), [left, right, _I8(halves)])

    def _function(self, kind: ir.FunctionType, name: str) -> ir.Function:
        return cgutils.get_or_insert_function(self._builder.module, kind, name)


def emit_fold(builder: ir.IRBuilder, folder: Folder, lanes: int, base: Any, begin: Any, stop: Any, start: Any) -> Any:
    """The instructions of `fold`: a vector of 16 bytes."""
    step = LANE * lanes * ACCUMULATORS
    loaded = [folder.load(base, begin, number) for number in range(ACCUMULATORS)]
    before = builder.insert_element(ir.Constant(folder.vector, None), start, _I32(0))
    loaded[0] = builder.xor(loaded[0], before)

    entry = builder.block
    head, body, done = (builder.append_basic_block(name) for name in ("fold.head", "fold.body", "fold.done"))
    second = builder.add(begin, _I64(step))
    builder.branch(head)

    builder.position_at_end(head)
    position = builder.phi(_I64)
    position.add_incoming(second, entry)
    sums = [builder.phi(folder.vector) for _ in loaded]
    for total, value in zip(sums, loaded, strict=True):
        total.add_incoming(value, entry)
    after = builder.add(position, _I64(step))
    builder.cbranch(builder.icmp_signed("<=", after, stop), body, done)

    builder.position_at_end(body)
    for number, total in enumerate(sums):
        total.add_incoming(folder.onto(total, 8 * step, folder.load(base, position, number)), body)
    position.add_incoming(after, body)
    builder.branch(head)

    builder.position_at_end(done)
    whole = sums[0]
    for total in sums[1:]:
        whole = folder.onto(whole, 8 * LANE * lanes, total)
    first, *others = folder.lanes_of(whole)
    for lane in others:
        first = folder.onto(first, 8 * LANE, lane)
    return first


def _fold(typing: Any, data: Any, begin: Any, stop: Any, start: Any) -> Any:
    """`fold(data, begin, stop, start)` in a kernel: (first 8 bytes, last 8 bytes, position).

    The 16 bytes have the same remainder as `data[begin:position]`.

    `start` is added to the first bytes. `position` is `stop` rounded down to whole steps from `begin` on, of which
    there must be one: SMALLEST bytes are enough. Of all widths that is the caller's promise: nothing is checked here.
    """
    if not isinstance(data, types.Array) or data.layout != "C" or data.dtype != types.uint8:
        return None
    signature = types.Tuple((types.uint64, types.uint64, types.int64))(data, types.int64, types.int64, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        triple, _, features = context.codegen().magic_tuple()
        wide = widest_lanes(triple, features)
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        folder = Folder(builder, triple, wide)
        base = builder.bitcast(array.data, _I8.as_pointer())
        begin, stop, start = arguments[1:]
        found = emit_fold(builder, folder, wide, base, begin, stop, start)
        step = _I64(LANE * wide * ACCUMULATORS)
        length = builder.sub(stop, begin)
        position = builder.add(begin, builder.sub(length, builder.urem(length, step)))
        halves = [builder.extract_element(found, _I32(half)) for half in range(2)]
        return context.make_tuple(builder, signature.return_type, [*halves, position])

    return signature, generate


fold: Final[Any] = intrinsic(_fold)
