"""The in-place scan of bipf records, compiled by numba: bytes in, positions out, nothing decoded.

A bipf value is a tag (u32, LEB128: `length << 3 | type`) and `length` bytes. A map's bytes are key, value, key,
value …, so whatever is not wanted is stepped over in one addition: the walk costs a few nanoseconds a key, whatever
the values' sizes.

Every position is checked against the end of the value that holds it, and that end against its parent's; a record
that breaks a rule is counted as malformed, and nothing past its end is ever read. A field is found when every map on
the way to it is well-formed, and it is itself, whichever other fields are looked for. The same functions run
uncompiled where JITDB_KERNELS=python, hence the explicit np.int64. An unsigned index spares numba the question whether
it counts from the end: a third of the time.

As in decoding, the last of several equal keys wins, at every level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT
from jitdb.log.codecs.bipf import format as bipf
from jitdb.log.codecs.bipf.read import place, read_tag
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

if TYPE_CHECKING:
    from jitdb.common.kernels import I32, I64, U8, F64Rows, I32Rows, U8Rows

# What is behind the literal of a shape's step, besides what the codecs have in common: a map whose pairs come next, and
# nothing but that map's end.
_ENTER, _LEAVE = 8, 9


@part
def walk(
    buf, position, end, record,
    first_child, next_sibling, key_start, key_length, field, subtree_end, keys,
    kind, start, length, number, ends, nodes, stack, last_seen,
):  # fmt: skip
    """Find every field of the trie in the record buf[position:end], key by key; what it is (see FINE)."""
    tag, position = read_tag(buf, position, end)
    if tag < 0 or position + (tag >> 3) != end:
        return SPOILED
    if (tag & 7) != bipf.OBJECT:
        return SHAPELESS
    verdict = FINE
    depth = 0
    ends[0] = end
    nodes[0] = 0
    here = end
    child_of = np.int64(first_child[0])
    while True:
        if position >= here:
            depth -= 1
            if depth < 0:
                return verdict
            here = ends[depth]
            child_of = np.int64(first_child[nodes[depth]])
            continue
        tag, position = read_tag(buf, position, here)
        size = tag >> 3
        # A key is a string, and its value follows inside the same map.
        good = (tag & 7) == bipf.STRING and size < here - position
        node = np.int64(-1)
        if good:
            node = find_node(buf, position, size, child_of, next_sibling, key_start, key_length, keys)
            tag, position = read_tag(buf, position + size, here)
            good = tag >= 0 and (tag >> 3) <= here - position
        if not good:  # this map is no map: what it held is forgotten, what stands around it is not
            verdict = SPOILED
            for below in range(nodes[depth] + 1, subtree_end[nodes[depth]]):
                if field[below] >= 0:
                    kind[field[below], record] = ABSENT
            position = here
            continue
        if node >= 0:
            if last_seen[node] == record:  # the same key again: what the first one held is forgotten
                verdict = max(verdict, SHAPELESS)
                for below in range(node, subtree_end[node]):
                    if field[below] >= 0:
                        kind[field[below], record] = ABSENT
            last_seen[node] = record
            if field[node] >= 0:
                found = place(buf, tag, position, field[node], record, kind, start, length, number, stack)
                if found == MALFORMED:
                    verdict = SPOILED
            if first_child[node] >= 0 and (tag & 7) == bipf.OBJECT:
                depth += 1
                here = position + (tag >> 3)
                ends[depth] = here
                nodes[depth] = node
                child_of = np.int64(first_child[node])
                continue
        position += tag >> 3


@part
def follow(buf, position, end, scratch, shape, record, kind, start, length, number, ends, stack):
    """Whether the record buf[position:end] has a shape; then its fields are found, else some may seem to be."""
    base = shape_at(shape)
    depth = np.int64(-1)
    here = end
    for step in range(scratch[base]):
        at = base + 1 + step * STEP
        if position > here or not fits(scratch, at, buf, position):
            return False
        position += scratch[at + SIZE]
        what = scratch[at + WHAT]
        if what == NOTHING:
            continue
        if what == _LEAVE:
            if position != here:
                return False
            depth -= 1
            here = ends[depth] if depth >= 0 else end
            continue
        tag, position = read_tag(buf, position, here)
        if tag < 0 or (tag >> 3) > here - position:
            return False
        is_map = (tag & 7) == bipf.OBJECT
        if what == _ENTER:
            if not is_map:
                return False
            depth += 1
            here = position + (tag >> 3)
            ends[depth] = here
            continue
        if is_map and (what & NO_MAP):
            return False
        if what & WANTED:
            found = place(buf, tag, position, scratch[at + ROW], record, kind, start, length, number, stack)
            if found == MALFORMED:
                return False
        position += tag >> 3
    return scratch[base] > 0 and position == end


@part
def learn(
    buf, position, end, first_child, next_sibling, key_start, key_length, field, keys, scratch, ends, nodes
):  # fmt: skip
    """Learn the shape of a record that `walk` found FINE."""
    shape = scratch[NEXT]
    nothing = np.int64(-1)
    steps = add_literal(scratch, shape, np.int64(0), buf, position, position, np.int64(_ENTER), nothing)
    tag, position = read_tag(buf, position, end)
    depth = 0
    here = end
    child_of = np.int64(first_child[0])
    while True:
        if position >= here:
            steps = add_literal(scratch, shape, steps, buf, position, position, np.int64(_LEAVE), nothing)
            depth -= 1
            if depth < 0:
                break
            here = ends[depth]
            child_of = np.int64(first_child[nodes[depth]])
            continue
        begin = position  # of the literal
        tag, position = read_tag(buf, position, here)
        node = find_node(buf, position, tag >> 3, child_of, next_sibling, key_start, key_length, keys)
        behind = position + (tag >> 3)
        tag, position = read_tag(buf, behind, here)
        what = np.int64(SKIPPED)
        row = nothing
        if node >= 0:
            row = np.int64(field[node])
            what = np.int64(WANTED if row >= 0 else SKIPPED)
            if first_child[node] >= 0:
                what = np.int64(_ENTER) if (tag & 7) == bipf.OBJECT else what | NO_MAP
                if what == _ENTER and row >= 0:  # of both, no shape tells
                    steps = nothing
                    break
        steps = add_literal(scratch, shape, steps, buf, begin, behind, what, row)
        if what == _ENTER:
            depth += 1
            here = position + (tag >> 3)
            ends[depth] = here
            nodes[depth] = node
            child_of = np.int64(first_child[node])
        else:
            position += tag >> 3
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
    ends, nodes = scratch[OWED:NODES], scratch[NODES:STACK]  # of each open map
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
            if not follow(buf, position, end, scratch, latest, record, kind, start, length, number, ends, stack):
                hit = np.int64(-1)
                for shape in range(scratch[KNOWN]):
                    if shape != latest and follow(
                        buf, position, end, scratch, shape, record, kind, start, length, number, ends, stack
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
            kind, start, length, number, ends, nodes, stack, last_seen,
        )  # fmt: skip
        if verdict == FINE and by_shape:
            learn(
                buf, position, end, first_child, next_sibling, key_start, key_length, field, keys, scratch, ends, nodes
            )  # fmt: skip
        if verdict == SPOILED:
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
        tag, at = read_tag(buf, position, end)
        if tag >= 0 and (tag >> 3) <= end - at:
            found = place(buf, tag, at, 0, record, kind, start, length, number, stack)
            if found != MALFORMED:
                ends[record] = at + (tag >> 3)
