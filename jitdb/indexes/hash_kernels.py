"""The hash of a value from its bytes in a record: what hashing.py says, without decoding.

An array or map takes one walk over its bytes, with a stack of the containers around. The pairs of all open maps lie in
one array: at a map's end its own are sorted by the hash of the key, and of equal keys the last counts, as in decoding.
So a container takes time in proportion to its bytes, but for the sorting (n log n, whatever the hashes are), and 24
bytes of memory for each pair.

The bytes have one of the encodings of FieldValues, the parts of a canonical key among them, so that what is asked for
is hashed by the same walk as what was found. Whoever calls has seen that they are well-formed; of others the hash means
nothing, and no byte outside is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT, ARRAY, EXTENSION, MAP, NUMBER, STRING
from jitdb.indexes.hashing import P1, P2
from jitdb.log.codecs.container_kernels import open_value
from jitdb.log.codecs.fields.constants import MALFORMED, MANY, MAX_NESTING
from jitdb.log.codecs.fields.sixteen import word_at

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I32, I64, U8, U32, U64, I64Rows, U64Rows

_P1 = np.uint64(P1)
_P2 = np.uint64(P2)
_29, _32 = np.uint64(29), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_NAN_BITS = np.int64(0x7FF8000000000000)


@part
def number_bits(value):
    """The bits of a double, one pattern for all NaNs."""
    if value != value:
        return _NAN_BITS
    return np.float64(value).view(np.int64)


@part
def take_word(h, word):
    """One more word."""
    h = (h ^ word) * _P1
    return h ^ (h >> _29)


@part
def end_hash(h, length):
    """The hash after the last word of so many bytes."""
    h = (h ^ np.uint64(length)) * _P2
    return h ^ (h >> _32)


@part
def hash_bytes(kind, buf, start, length):
    """The hash of a payload of bytes."""
    h = np.uint64(kind + 1) * _P1
    position = start
    whole = start + (length & ~7)
    while position < whole:
        h = take_word(h, word_at(buf, position))
        position += 8
    rest = length & 7
    if rest:
        short = np.int64(0)
        for i in range(rest):
            short |= np.int64(buf[position + i]) << (8 * i)
        h = take_word(h, np.int64(short).view(np.uint64))
    return end_hash(h, length)


@part
def hash_number(value, rest):
    """The hash of the number (value, rest): its key's payload is 8 and 2 bytes."""
    h = np.uint64(NUMBER + 1) * _P1
    h = take_word(h, np.int64(number_bits(value)).view(np.uint64))
    h = take_word(h, np.uint64(rest & 0xFFFF))
    return end_hash(h, 10)


@part
def is_after(pairs, left, right):
    """Whether one pair stands after another: by the hash of its key, then by its place."""
    if pairs[left, 0] != pairs[right, 0]:
        return pairs[left, 0] > pairs[right, 0]
    return pairs[left, 1] > pairs[right, 1]


@part
def sift_down(pairs, base, root, count):
    """Let the pair base + root of a heap of `count` sink to its place."""
    while True:
        child = 2 * root + 1
        if child >= count:
            return
        if child + 1 < count and is_after(pairs, base + child + 1, base + child):
            child += 1
        if not is_after(pairs, base + child, base + root):
            return
        for column in range(3):
            held = pairs[base + root, column]
            pairs[base + root, column] = pairs[base + child, column]
            pairs[base + child, column] = held
        root = child


@part
def sort_pairs(pairs, base, count):
    """Heapsort: nobody can choose keys that make it slow, and it needs no room."""
    for root in range(count // 2 - 1, -1, -1):
        sift_down(pairs, base, root, count)
    for last in range(count - 1, 0, -1):
        for column in range(3):
            held = pairs[base, column]
            pairs[base, column] = pairs[base + last, column]
            pairs[base + last, column] = held
        sift_down(pairs, base, 0, last)


@part
def same_key(buf, left, right):
    """Whether two keys are the same text; each is its start << 32 | its size."""
    size = np.int64(left & _LOW)
    if size != np.int64(right & _LOW):
        return False
    for i in range(size):
        if buf[np.uint64((left >> _32) + np.uint64(i))] != buf[np.uint64((right >> _32) + np.uint64(i))]:
            return False
    return True


@part
def hash_pairs(buf, pairs, base, count):
    """The hash of a map with these pairs, repeats of a key among them."""
    empty = np.uint64(MAP + 1) * _P1
    h = empty
    words = np.int64(0)
    sort_pairs(pairs, base, count)
    for i in range(base, base + count):
        if i + 1 < base + count and pairs[i, 0] == pairs[i + 1, 0]:
            if same_key(buf, pairs[i, 1], pairs[i + 1, 1]):
                continue  # a later one of the same key counts
            return end_hash(empty, 0)
        h = take_word(take_word(h, pairs[i, 0]), pairs[i, 2])
        words += 2
    return end_hash(h, 8 * words)


@part
def hash_container(encoding, buf, kind, start, length, stack, hashes, pairs):
    """The hash of the array or map with the payload [start, start + length), and whether there was room to make it.

    `stack` (MAX_NESTING x 5), `hashes` (MAX_NESTING) and `pairs` (one a row: hash of the key, its start << 32 | its
    size, hash of the value) are the room: it ends where more pairs are open at once.
    """
    depth = 0
    filled = np.int64(0)
    position = np.int64(start)
    # Of the innermost open container: values to come, where it ends, its first pair (-1: an array), values so far,
    # whether it counts as empty.
    owed, end = np.int64(MANY), position + np.int64(length)
    base = np.int64(0 if kind == MAP else -1)
    done = np.int64(0)
    void = np.int64(0)
    h = np.uint64(kind + 1) * _P1
    while True:
        place = np.int64(-1)  # of a text, start << 32 | size
        if owed == 0 or position >= end:
            if base < 0:
                found = end_hash(h, 8 * done)
            else:
                found = hash_pairs(buf, pairs, base, np.int64(0) if void else filled - base)
                filled = base
            if depth == 0:
                return found, True
            depth -= 1
            owed, end, base = stack[depth, 0], stack[depth, 1], stack[depth, 2]
            done, void = stack[depth, 3], stack[depth, 4]
            h = hashes[depth]
        else:
            inside, at, size, value, inner, following = open_value(encoding, buf, position, end)
            owed -= 1
            if inside == MALFORMED or (depth + 1 == MAX_NESTING and (inside == ARRAY or inside == MAP)):
                return hash_bytes(kind, buf, position, np.int64(0)), True
            if inside == ARRAY or inside == MAP:
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = owed, end, base
                stack[depth, 3], stack[depth, 4] = done, void
                hashes[depth] = h
                depth += 1
                position = at
                owed, end = inner, following
                base = filled if inside == MAP else np.int64(-1)
                done = np.int64(0)
                void = np.int64(0)
                h = np.uint64(inside + 1) * _P1
                continue
            position = following
            if inside == NUMBER:
                found = hash_number(value, size)
            elif inside == EXTENSION and size > 0 and buf[np.uint64(at)] == 0xFF:
                found = hash_bytes(inside, buf, at, np.int64(1))
            else:
                found = hash_bytes(inside, buf, at, size)
            if inside == STRING:
                place = at << 32 | size
        if base < 0:
            h = take_word(h, found)
        elif done & 1:
            pairs[filled - 1, 2] = found
        else:
            if place < 0:
                void = np.int64(1)
                place = np.int64(0)
            if filled == pairs.shape[0]:
                return h, False
            pairs[filled, 0], pairs[filled, 1], pairs[filled, 2] = found, np.uint64(place), np.uint64(0)
            filled += 1
        done += 1


@kernel
def hash_scalars(buf: U8, kind: U8, start: I64, length: I32, number: F64, count: int, out: U32) -> None:
    """The stored prefix (upper 32 bits of the hash) of each value; 0 where there is none. Containers are left alone."""
    for i in range(count):
        held = np.int64(kind[i])
        if held == ABSENT:
            out[i] = 0
        elif held == NUMBER:
            out[i] = np.uint32(hash_number(number[i], np.int64(length[i])) >> _32)
        elif held != ARRAY and held != MAP:
            out[i] = np.uint32(hash_bytes(held, buf, start[i], np.int64(length[i])) >> _32)


@kernel
def hash_containers(
    encoding: int, buf: U8, kind: U8, start: I64, length: I32, first: int, count: int,
    stack: I64Rows, hashes: U64, pairs: U64Rows, out: U32,
) -> int:  # fmt: skip
    """The same of the arrays and maps among the values [first, count), in this encoding. See hash_container.

    Gives the first value not done, for which `pairs` has no room; `count` when all are.
    """
    for i in range(first, count):
        held = np.int64(kind[i])
        if held == ARRAY or held == MAP:
            h, done = hash_container(encoding, buf, held, start[i], np.int64(length[i]), stack, hashes, pairs)
            if not done:
                return i
            out[i] = np.uint32(h >> _32)
    return count


@kernel
def byte_prefixes(
    buf: U8, kind: U8, start: I32, length: I32, number: F64, count: int, skip: int, out: U32
) -> None:  # fmt: skip
    """Four bytes of each payload from byte `skip` on, as a big-endian u32 (so that prefixes sort as bytes do).

    Bytes past the payload's end count as zero; a number's payload is that of its key; null, booleans, arrays and
    maps have none.
    """
    for i in range(count):
        held = kind[i]
        prefix = np.int64(0)
        if held == NUMBER:
            bits = number_bits(number[i])
            for j in range(skip, skip + 4):
                byte = np.int64(0)
                if j < 8:
                    byte = (bits >> (8 * j)) & 0xFF
                elif j < 10:
                    byte = (np.int64(length[i]) >> (8 * (j - 8))) & 0xFF
                prefix = (prefix << 8) | byte
        elif held != ABSENT and held != ARRAY and held != MAP:
            at = np.int64(start[i])
            size = np.int64(length[i])
            for j in range(skip, skip + 4):
                prefix <<= 8
                if j < size:
                    prefix |= np.int64(buf[at + j])
        out[i] = np.uint32(prefix)
