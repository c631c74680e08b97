"""The in-place scan of msgpack records, compiled by numba: bytes in, positions out, nothing decoded.

A msgpack container says how many values it holds, not how many bytes, so what is not wanted must be walked too:
`skip` steps over a value of any depth by counting the values still owed, without a stack and in a number of steps
bounded by the record's bytes. That is why the scan takes about twice as long as that of bipf.

Every position is checked against the record's end; a record that breaks a rule is counted as malformed, its fields
are absent, and nothing past its end is ever read. A field whose own value could not be decoded is absent too. The same
functions run uncompiled where JITDB_KERNELS=python, hence the explicit np.int64. As in decoding, the last of several
equal keys wins, at every level.

Source of the format: the msgpack specification (fixint, fixmap, …; all lengths and numbers big-endian).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT, ARRAY, BYTES, EXTENSION, FALSE, MAP, NULL, NUMBER, STRING, TRUE
from jitdb.log.codecs.fields.constants import LIVE, MALFORMED, MAX_NESTING
from jitdb.log.codecs.fields.scratch import KNOWN, LAST_SEEN, LATEST, NEXT, NODES, OWED, ROW, SIZE, STACK, STEP, WHAT
from jitdb.log.codecs.fields.shape_kernels import (
    FINE,
    NO_MAP,
    NOTHING,
    SHAPELESS,
    SKIPPED,
    SLACK,
    SPOILED,
    WANTED,
    add_literal,
    are_tried,
    begin_shapes,
    find_node,
    fits,
    keep_shape,
    note_hit,
    note_miss,
    shape_at,
)

if TYPE_CHECKING:
    from jitdb.common.kernels import I32, I64, U8, F64Rows, I32Rows, U8Rows

_TOP = np.float64(2.0**63)
_MASK = np.int64(2**63 - 1)
_MAX_NANOSECONDS = 999_999_999
_BROKEN = 3  # beside what the codecs have in common: the record is malformed


@part
def big_endian(buf, position, size):
    """An unsigned integer of `size` bytes; of 8 bytes, its bits as a signed one."""
    bits = np.int64(0)
    for i in range(size):
        bits = (bits << 8) | np.int64(buf[np.uint64(position + i)])
    return bits


@part
def read_head(buf, position, end):
    """The head of the value at `position`: kind, where its payload begins, size and the count of values in it.

    Size is in bytes for strings, bytes, extensions and numbers (with their head; they start at `position`), and 0
    for containers, whose values follow. The kind is MALFORMED where the value passes `end`.
    """
    zero = np.int64(0)
    if position >= end:
        return np.int64(MALFORMED), position, zero, zero
    head = np.int64(buf[np.uint64(position)])
    if head < 0x80 or head >= 0xE0:  # fixint
        return np.int64(NUMBER), position, np.int64(1), zero
    at = position + 1
    left = end - at
    if head < 0x90:  # fixmap
        return np.int64(MAP), at, zero, 2 * (head & 0x0F)
    if head < 0xA0:  # fixarray
        return np.int64(ARRAY), at, zero, head & 0x0F
    if head < 0xC0:  # fixstr
        size = head & 0x1F
        return np.int64(STRING if size <= left else MALFORMED), at, size, zero
    if head == 0xC0:
        return np.int64(NULL), at, zero, zero
    if head == 0xC2:
        return np.int64(FALSE), at, zero, zero
    if head == 0xC3:
        return np.int64(TRUE), at, zero, zero
    if 0xCA <= head <= 0xD3:  # float 32, 64; uint and int 8 to 64
        size = np.int64(4 if head == 0xCA else 8 if head == 0xCB else 1 << ((head - 0xCC) & 3))
        return np.int64(NUMBER if size <= left else MALFORMED), position, size + 1, zero
    if 0xD4 <= head <= 0xD8:  # fixext 1 to 16: a type byte, then the data
        size = np.int64(1 + (1 << (head - 0xD4)))
        return np.int64(EXTENSION if size <= left else MALFORMED), at, size, zero
    # The rest have a length of 1, 2 or 4 bytes.
    width = zero
    if 0xC4 <= head <= 0xC9:  # bin 8, 16, 32; ext 8, 16, 32
        width = np.int64(1 << ((head - 0xC4) % 3))
    elif 0xD9 <= head <= 0xDB:  # str 8, 16, 32
        width = np.int64(1 << (head - 0xD9))
    elif head >= 0xDC:  # array 16, 32; map 16, 32
        width = np.int64(2 << ((head - 0xDC) & 1))
    if width == 0 or width > left:  # 0xC1 is never used
        return np.int64(MALFORMED), position, zero, zero
    size = big_endian(buf, at, width)
    at += width
    left -= width
    if head >= 0xDE:
        return np.int64(MAP), at, zero, 2 * size
    if head >= 0xDC:
        return np.int64(ARRAY), at, zero, size
    kind = np.int64(STRING)
    if head <= 0xC6:
        kind = np.int64(BYTES)
    elif head <= 0xC9:
        kind = np.int64(EXTENSION)
        size += 1
    if size > left:
        return np.int64(MALFORMED), position, zero, zero
    return kind, at, size, zero


@part
def skip(buf, position, end, owed):
    """Step over `owed` whole values: the position after them, or -1 where they pass `end` or break a rule."""
    while owed > 0:
        if owed > end - position:  # every value takes a byte: this also bounds a hostile count
            return np.int64(-1)
        head = np.int64(buf[np.uint64(position)])
        if head < 0x80 or head >= 0xE0:
            position += 1
            owed -= 1
        elif 0xA0 <= head < 0xC0 and (head & 0x1F) < end - position:
            position += 1 + (head & 0x1F)
            owed -= 1
        else:
            kind, at, size, inner = read_head(buf, position, end)
            if kind == MALFORMED:
                return np.int64(-1)
            position = at + size
            owed += inner - 1
    return position


@part
def rest(value, hi):
    """`value - hi`, where the double `hi` may be 2**63, which is no int64."""
    if hi >= _TOP:
        return (value - _MASK) - np.int64(1)
    return value - np.int64(hi)


@part
def read_number(buf, position):
    """The number whose head lies at `position`, as the pair (hi, lo) of jitdb.common.values."""
    head = np.int64(buf[np.uint64(position)])
    zero = np.int64(0)
    if head < 0x80:
        return np.float64(head), zero
    if head >= 0xE0:
        return np.float64(head - 256), zero
    if head == 0xCA:
        bits = big_endian(buf, position + 1, 4)
        return np.float64(np.int32(bits - ((bits >> 31) << 32)).view(np.float32)) + 0.0, zero
    if head == 0xCB:
        return np.int64(big_endian(buf, position + 1, 8)).view(np.float64) + 0.0, zero
    width = np.int64(1 << ((head - 0xCC) & 3))
    bits = big_endian(buf, position + 1, width)
    if width < 8:
        if head >= 0xD0:
            bits -= (bits >> (8 * width - 1)) << (8 * width)
        return np.float64(bits), zero
    if head == 0xCF and bits < 0:  # an unsigned integer of 2**63 or more: the same, 2**63 lower
        hi = np.float64(np.int64(bits).view(np.uint64))
        return hi, rest(bits & _MASK, hi - _TOP)
    hi = np.float64(bits)
    return hi, rest(bits, hi)


@part
def is_extension(buf, at, size):
    """Whether the payload of an extension (its code, then its data) is one: those of code -1 must be a timestamp."""
    if buf[at] != 0xFF:
        return True
    if size == 5:  # seconds (u32)
        return True
    if size == 9:  # nanoseconds (30 bits), seconds (34 bits)
        return ((big_endian(buf, at + 1, 8) >> 34) & 0x3FFFFFFF) <= _MAX_NANOSECONDS
    if size == 13:  # nanoseconds (u32), seconds (i64)
        return big_endian(buf, at + 1, 4) <= _MAX_NANOSECONDS
    return False


@part
def is_whole(buf, position, end, stack):
    """Whether the value at `position` can be decoded: whole, not nested too deep, and no map is (or is in) a key.

    `stack` has room for MAX_NESTING + 1 numbers.
    """
    depth = 0
    owed = np.int64(1)  # values still to come in the container
    keyed = np.int64(0)  # whether every other one of them is a key
    within = np.int64(0)  # whether the container is part of a key
    while True:
        if owed == 0:
            if depth == 0:
                return True
            depth -= 1
            owed, keyed, within = stack[depth] >> 2, (stack[depth] >> 1) & 1, stack[depth] & 1
            continue
        inside = within | (keyed & (owed + 1) & 1)
        owed -= 1
        kind, at, size, inner = read_head(buf, position, end)
        position = at + size
        if kind == MAP or kind == ARRAY:
            if depth == MAX_NESTING or (kind == MAP and inside):
                return False
            stack[depth] = owed << 2 | keyed << 1 | within
            depth += 1
            owed, keyed, within = inner, np.int64(kind == MAP), inside
        elif kind == MALFORMED or (kind == EXTENSION and not is_extension(buf, at, size)):
            return False


@part
def skip_value(buf, position, end):
    """As skip, of one value; short texts and numbers at once."""
    if position >= end:
        return np.int64(-1)
    head = np.int64(buf[np.uint64(position)])
    if head < 0x80 or head >= 0xE0 or head == 0xC0 or head == 0xC2 or head == 0xC3:
        return position + 1
    if 0xA0 <= head < 0xC0:
        position += 1 + (head & 0x1F)
    elif 0xCC <= head <= 0xD3:
        position += 1 + (1 << ((head - 0xCC) & 3))
    elif head == 0xCB:
        position += 9
    else:
        return skip(buf, position, end, np.int64(1))
    return position if position <= end else np.int64(-1)


@part
def place(buf, position, end, row, record, kind, start, length, number, stack):
    """Put the value at `position` into a row of the record, as locate does: what it is, and the position behind it.

    What it is: its kind, ABSENT where something inside it cannot be decoded, MALFORMED where it is not whole.
    """
    found, at, size, inner = read_head(buf, position, end)
    following = at + size
    if inner > 0:
        following = skip(buf, at, end, inner)
        size = following - at
    if found == MALFORMED or following < 0:
        return np.int64(MALFORMED), position
    if found == NUMBER:
        hi, size = read_number(buf, at)
        number[row, record] = hi
    elif (found == ARRAY or found == MAP or found == EXTENSION) and not is_whole(buf, position, end, stack):
        found = np.int64(ABSENT)
    kind[row, record] = found
    start[row, record] = at
    length[row, record] = size
    return found, following


@part
def walk(
    buf, position, end, record,
    first_child, next_sibling, key_start, key_length, field, subtree_end, keys,
    kind, start, length, number, owed, nodes, stack, last_seen,
):  # fmt: skip
    """Find every field of the trie in the record buf[position:end], key by key; what it is (see FINE)."""
    found, position, size, inner = read_head(buf, position, end)
    if found != MAP:
        broken = found == MALFORMED or skip(buf, position + size, end, inner) != end
        return _BROKEN if broken else SHAPELESS
    verdict = FINE
    depth = 0
    pairs = inner >> 1
    child_of = np.int64(first_child[0])
    owed[0] = pairs
    nodes[0] = 0
    while True:
        if pairs == 0:
            depth -= 1
            if depth < 0:
                return verdict if position == end else _BROKEN
            pairs = owed[depth]
            child_of = np.int64(first_child[nodes[depth]])
            continue
        pairs -= 1
        found, at, size, inner = read_head(buf, position, end)
        node = np.int64(-1)
        if found == STRING:
            node = find_node(buf, at, size, child_of, next_sibling, key_start, key_length, keys)
            position = at + size
        else:
            position = skip(buf, position, end, np.int64(1))
            if position < 0:
                return _BROKEN
        if node < 0:
            position = skip_value(buf, position, end)
            if position < 0:
                return _BROKEN
            continue
        if last_seen[node] == record:  # the same key again: what the first one held is forgotten
            if verdict == FINE:
                verdict = SHAPELESS
            for below in range(node, subtree_end[node]):
                if field[below] >= 0:
                    kind[field[below], record] = ABSENT
        last_seen[node] = record
        following = position
        if field[node] >= 0:
            found, following = place(
                buf, position, end, field[node], record, kind, start, length, number, stack
            )  # fmt: skip
            if found == MALFORMED:
                return _BROKEN
            if found == ABSENT:
                verdict = SPOILED
        if first_child[node] >= 0:
            found, at, size, inner = read_head(buf, position, end)
            if found == MAP:
                owed[depth] = pairs
                depth += 1
                nodes[depth] = node
                pairs = inner >> 1
                owed[depth] = pairs
                child_of = np.int64(first_child[node])
                position = at
                continue
        if field[node] < 0:
            following = skip_value(buf, position, end)
            if following < 0:
                return _BROKEN
        position = following


@part
def follow(buf, position, end, scratch, shape, record, kind, start, length, number, stack):
    """Whether the record buf[position:end] has a shape; then its fields are found, else some may seem to be."""
    base = shape_at(shape)
    for step in range(scratch[base]):
        at = base + 1 + step * STEP
        if position > end or not fits(scratch, at, buf, position):
            return False
        position += scratch[at + SIZE]
        what = scratch[at + WHAT]
        if what == NOTHING:
            continue
        if what & NO_MAP and read_head(buf, position, end)[0] == MAP:
            return False
        if what & WANTED:
            found, position = place(
                buf, position, end, scratch[at + ROW], record, kind, start, length, number, stack
            )  # fmt: skip
            if found == MALFORMED or found == ABSENT:
                return False
        else:
            position = skip_value(buf, position, end)
            if position < 0:
                return False
    return scratch[base] > 0 and position == end


@part
def learn(
    buf, position, end, first_child, next_sibling, key_start, key_length, field, keys, scratch, owed, nodes
):  # fmt: skip
    """Learn the shape of a record that `walk` found FINE."""
    shape = scratch[NEXT]
    steps = np.int64(0)
    begin = position  # of the literal
    found, position, size, inner = read_head(buf, position, end)
    depth = 0
    pairs = inner >> 1
    child_of = np.int64(first_child[0])
    while True:
        if pairs == 0:
            depth -= 1
            if depth < 0:
                break
            pairs = owed[depth]
            child_of = np.int64(first_child[nodes[depth]])
            continue
        pairs -= 1
        found, at, size, inner = read_head(buf, position, end)
        node = np.int64(-1)
        if found == STRING:
            node = find_node(buf, at, size, child_of, next_sibling, key_start, key_length, keys)
            position = at + size
        else:
            position = skip(buf, position, end, np.int64(1))
        what = np.int64(SKIPPED)
        row = np.int64(-1)
        if node >= 0:
            row = np.int64(field[node])
            what = np.int64(WANTED if row >= 0 else SKIPPED)
            if first_child[node] >= 0:
                found, at, size, inner = read_head(buf, position, end)
                if found == MAP and row >= 0:  # of both, no shape tells
                    keep_shape(scratch, np.int64(-1))
                    return
                if found == MAP:
                    owed[depth] = pairs
                    nodes[depth + 1] = node
                    depth += 1
                    pairs = inner >> 1
                    child_of = np.int64(first_child[node])
                    position = at
                    continue
                what |= NO_MAP
        steps = add_literal(scratch, shape, steps, buf, begin, position, what, row)
        position = skip_value(buf, position, end)
        begin = position
    if begin < end:  # maps without pairs at the end
        steps = add_literal(scratch, shape, steps, buf, begin, end, np.int64(NOTHING), np.int64(-1))
    keep_shape(scratch, steps)


@kernel
def locate(
    buf: U8, starts: I64, lengths: I64, states: U8, count: int,
    first_child: I32, next_sibling: I32, key_start: I32, key_length: I32, field: I32, subtree_end: I32, keys: U8,
    kind: U8Rows, start: I32Rows, length: I32Rows, number: F64Rows, scratch: I64,
) -> int:  # fmt: skip
    """Find every field of the trie in `count` records; record `i` is buf[starts[i] : starts[i] + lengths[i]].

    Records whose state is not LIVE have no fields. Gives the number of malformed records. `scratch` is that of
    scratch_of.
    """
    owed, nodes = scratch[OWED:NODES], scratch[NODES:STACK]  # of each open map: pairs still to come, its node
    stack, last_seen = scratch[STACK:LAST_SEEN], scratch[LAST_SEEN:]  # of each node: the record that had it last
    last_seen[:] = -1
    begin_shapes(scratch)
    malformed = 0
    for record in range(count):
        for row in range(kind.shape[0]):
            kind[row, record] = ABSENT
        if states[record] != LIVE:
            continue
        position = np.int64(starts[record])
        end = position + np.int64(lengths[record])
        by_shape = end + SLACK <= buf.shape[0] and are_tried(scratch)
        if by_shape and scratch[KNOWN] > 0:
            latest = scratch[LATEST]
            hit = latest
            if not follow(buf, position, end, scratch, latest, record, kind, start, length, number, stack):
                hit = np.int64(-1)
                for shape in range(scratch[KNOWN]):
                    if shape != latest and follow(
                        buf, position, end, scratch, shape, record, kind, start, length, number, stack
                    ):
                        hit = np.int64(shape)
                        break
            if hit >= 0:
                note_hit(scratch, hit)
                continue
            note_miss(scratch)
            for row in range(kind.shape[0]):
                kind[row, record] = ABSENT
        verdict = walk(
            buf, position, end, record,
            first_child, next_sibling, key_start, key_length, field, subtree_end, keys,
            kind, start, length, number, owed, nodes, stack, last_seen,
        )  # fmt: skip
        if verdict == FINE and by_shape:
            learn(
                buf, position, end, first_child, next_sibling, key_start, key_length, field, keys, scratch, owed, nodes
            )  # fmt: skip
        if verdict == _BROKEN:
            for row in range(kind.shape[0]):
                kind[row, record] = ABSENT
        if verdict >= SPOILED:
            malformed += 1
    return malformed


@part
def read_value(buf, position, end):
    """One value: its kind, payload start, size, number and the position behind it.

    The kind is MALFORMED, and the position stays where it was, when the value is not whole.
    """
    found, at, size, inner = read_head(buf, position, end)
    following = at + size
    if inner > 0:
        following = skip(buf, at, end, inner)
        if following < 0:
            return np.int64(MALFORMED), at, np.int64(0), 0.0, position
        size = following - at
    value = 0.0
    if found == NUMBER:
        value, size = read_number(buf, at)
    elif found == MALFORMED:
        following = position
    return found, at, size, value, following


@kernel
def values_at(
    buf: U8, starts: I64, lengths: I64, positions: I64,
    kind: U8Rows, start: I32Rows, length: I32Rows, number: F64Rows, ends: I64, stack: I64,
) -> None:  # fmt: skip
    """Put what lies at a position in each record into row 0, and where it ends; ABSENT and -1 where it is no value.

    `stack` has room for MAX_NESTING + 1 numbers.
    """
    for record in range(starts.shape[0]):
        kind[0, record] = ABSENT
        ends[record] = -1
        position = np.int64(starts[record] + positions[record])
        end = np.int64(starts[record] + lengths[record])
        if positions[record] < 0 or position >= end:
            continue
        found, following = place(buf, position, end, 0, record, kind, start, length, number, stack)
        if found != MALFORMED and found != ABSENT:
            ends[record] = following
