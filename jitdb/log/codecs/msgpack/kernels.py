"""The in-place scan of msgpack records, compiled by numba: bytes in, positions out, nothing decoded.

A msgpack container says how many values it holds, not how many bytes, so what is not wanted must be walked too
(read.py). That is why the scan takes about twice as long as that of bipf.

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
from jitdb.common.values import ABSENT, MAP, STRING
from jitdb.log.codecs.fields.constants import LIVE, MALFORMED
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
from jitdb.log.codecs.msgpack.read import place, read_head, skip, skip_value

if TYPE_CHECKING:
    from jitdb.common.kernels import I32, I64, U8, F64Rows, I32Rows, U8Rows

_BROKEN = 3  # beside what the codecs have in common: the record is malformed


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
