"""The functions of sixteen.py in the processor's own instructions, as intrinsics that numba puts into kernels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_I1, _I8, _I16, _I64 = (ir.IntType(bits) for bits in (1, 8, 16, 64))
_BYTES: Final = ir.VectorType(_I8, 16)


def _each(byte: int) -> ir.Constant:
    return ir.Constant(_BYTES, [ir.Constant(_I8, byte)] * _BYTES.count)


def _load(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """A vector of bytes from the item `at` of an array on."""
    place = builder.gep(context.make_array(kind)(context, builder, array).data, [at])
    loaded = builder.load(builder.bitcast(place, _BYTES.as_pointer()))
    loaded.align = 1
    return loaded


def _stops(marks: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """An intrinsic that gives the mask of the bytes that `marks` marks."""

    def typed(typing: Any, buf: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            loaded = _load(context, builder, signature.args[0], *arguments)
            mask = builder.bitcast(marks(builder, loaded), _I16)
            return builder.or_(builder.zext(mask, _I64), ir.Constant(_I64, 1 << 16))

        return types.uint64(buf, types.int64), generate

    return typed


def _text(builder: Any, loaded: Any) -> Any:
    # As numbers with a sign, what is no ASCII is negative, and so below the first that is no control character.
    low = builder.icmp_signed("<", loaded, _each(32))
    odd = builder.or_(builder.icmp_unsigned("==", loaded, _each(34)), builder.icmp_unsigned("==", loaded, _each(92)))
    return builder.or_(low, odd)


def _digits(builder: Any, loaded: Any) -> Any:
    return builder.icmp_unsigned(">", builder.sub(loaded, _each(48)), _each(9))


def _of_line(marks: Callable[[Any, int], Any], builder: Any) -> Any:
    """The mask of 64 bytes, of the marks of four vectors: what a processor has no vector of 64 bytes for, LLVM takes
    apart byte by byte.
    """
    mask = None
    for part in range(4):
        bits = builder.zext(builder.bitcast(marks(builder, 16 * part), _I16), _I64)
        moved = builder.shl(bits, ir.Constant(_I64, 16 * part)) if part else bits
        mask = moved if mask is None else builder.or_(mask, moved)
    return mask


def _newlines(typing: Any, buf: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        buf, at = arguments

        def marks(builder: Any, part: int) -> Any:
            place = builder.add(at, ir.Constant(_I64, part))
            return builder.icmp_unsigned("==", _load(context, builder, signature.args[0], buf, place), _each(10))

        return _of_line(marks, builder)

    return types.uint64(buf, types.int64), generate


def _spread(builder: Any, word: Any, shift: int) -> Any:
    """A byte of a word in all places of a vector."""
    byte = builder.trunc(builder.lshr(word, ir.Constant(_I64, shift)), _I8)
    one = builder.insert_element(ir.Constant(_BYTES, ir.Undefined), byte, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), 16), None)  # all of them the first
    return builder.shuffle_vector(one, ir.Constant(_BYTES, ir.Undefined), places)


def _pairs(typing: Any, buf: Any, at: Any, distance: Any, wanted: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        buf, at, distance, wanted = arguments

        def marks(builder: Any, part: int) -> Any:
            found = None
            for begin, shift in ((at, 0), (builder.add(at, distance), 16)):
                place = builder.add(begin, ir.Constant(_I64, part))
                loaded = _load(context, builder, signature.args[0], buf, place)
                folded = builder.or_(loaded, _spread(builder, wanted, shift + 8))
                same = builder.icmp_unsigned("==", folded, _spread(builder, wanted, shift))
                found = same if found is None else builder.and_(found, same)
            return found

        return _of_line(marks, builder)

    return types.uint64(buf, types.int64, types.int64, types.int64), generate


def _word_at(typing: Any, buf: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.gep(context.make_array(signature.args[0])(context, builder, arguments[0]).data, [arguments[1]])
        loaded = builder.load(builder.bitcast(place, _I64.as_pointer()))
        loaded.align = 1
        return loaded if sys.byteorder == "little" else builder.bswap(loaded)

    return types.uint64(buf, types.int64), generate


def _trailing_zeros(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(_I1, 1))

    return types.uint64(types.uint64), generate


def _same_literal(typing: Any, buf: Any, at: Any, words: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        buf, at, words, place = arguments
        loaded = _load(context, builder, signature.args[0], buf, at)
        literal = _load(context, builder, signature.args[2], words, place)
        mask = _load(context, builder, signature.args[2], words, builder.add(place, ir.Constant(_I64, 2)))
        differ = builder.icmp_unsigned("!=", builder.and_(loaded, mask), literal)
        return builder.icmp_unsigned("==", builder.bitcast(differ, _I16), ir.Constant(_I16, 0))

    return types.boolean(buf, types.int64, words, types.int64), generate


word_at: Final[Any] = intrinsic(_word_at)
trailing_zeros: Final[Any] = intrinsic(_trailing_zeros)
newlines: Final[Any] = intrinsic(_newlines)
pairs: Final[Any] = intrinsic(_pairs)
text_stops: Final[Any] = intrinsic(_stops(_text))
digit_stops: Final[Any] = intrinsic(_stops(_digits))
same_literal: Final[Any] = intrinsic(_same_literal)
