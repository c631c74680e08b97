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
from jitdb.common.values import ABSENT, ARRAY, BYTES, FALSE, MAP, NULL, NUMBER, STRING, TRUE
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

# The types in a tag's low three bits, and the kind of each; NULL stands for all of BOOLNULL.
_STRING, _BUFFER, _INT, _DOUBLE, _ARRAY, _OBJECT, _BOOLNULL = range(7)

# What is behind the literal of a shape's step, besides what the codecs have in common: a map whose pairs come next, and
# nothing but that map's end.
_ENTER, _LEAVE = 8, 9
_KIND_OF_TYPE = np.array([STRING, BYTES, NUMBER, NUMBER, ARRAY, MAP, NULL, MALFORMED], np.uint8)


@part
def read_long_tag(buf, position, end):
    """A tag of more than one byte, the first of which lies at `position`: the tag (-1: broken) and its end."""
    tag = np.int64(buf[np.uint64(position)]) & 127
    shift = 7
    while shift <= 28:
        position += 1
        if position >= end:
            return np.int64(-1), position
        byte = np.int64(buf[np.uint64(position)])
        tag |= (byte & 127) << shift
        if byte < 128:
            return tag, position + 1
        shift += 7
    return np.int64(-1), position


@part
def read_number(buf, size, position):
    """The double that an INT (4 bytes) or DOUBLE (8 bytes) payload holds; -0.0 becomes the equal 0.0."""
    bits = np.int64(0)
    for i in range(size):
        bits |= np.int64(buf[np.uint64(position + i)]) << (8 * i)
    if size == 8:
        return np.int64(bits).view(np.float64) + 0.0
    return np.float64(bits - ((bits >> 31) << 32))


@part
def kind_of_scalar(buf, tag, position):
    """The kind of an INT, DOUBLE or BOOLNULL; MALFORMED where its size or byte breaks the format."""
    size = tag >> 3
    code = tag & 7
    if code == _BOOLNULL:
        if size == 0:
            return NULL
        if size == 1:
            byte = buf[position]
            return FALSE if byte == 0 else TRUE if byte == 1 else ABSENT if byte == 2 else MALFORMED
    elif size == (4 if code == _INT else 8):
        return NUMBER
    return MALFORMED


@part
def is_whole(buf, position, end, keyed, stack):
    """Whether the payload [position, end) of a map (`keyed`) or array is well-formed at every depth, as decoding asks.

    `stack` has room for MAX_NESTING numbers.
    """
    depth = 1
    keyed = np.int64(keyed)
    while True:
        if position >= end:
            depth -= 1
            if depth == 0:
                return True
            end = stack[depth] >> 1
            keyed = stack[depth] & 1
            continue
        if keyed:
            tag = np.int64(buf[np.uint64(position)])
            if tag < 128:
                position += 1
            else:
                tag, position = read_long_tag(buf, position, end)
            if (tag & 7) != _STRING or (tag >> 3) >= end - position:
                return False
            position += tag >> 3
        tag = np.int64(buf[np.uint64(position)])
        if tag < 128:
            position += 1
        else:
            tag, position = read_long_tag(buf, position, end)
        if tag < 0 or (tag >> 3) > end - position:
            return False
        code = tag & 7
        if code == _ARRAY or code == _OBJECT:
            if depth == MAX_NESTING:
                return False
            stack[depth] = end << 1 | keyed
            depth += 1
            end = position + (tag >> 3)
            keyed = np.int64(code == _OBJECT)
        else:
            if code > _BUFFER and (code > _BOOLNULL or kind_of_scalar(buf, tag, position) == MALFORMED):
                return False
            position += tag >> 3


@part
def read_tag(buf, position, end):
    """The tag at `position`, -1 where it is broken or passes `end`, and its end."""
    if position >= end:
        return np.int64(-1), position
    tag = np.int64(buf[np.uint64(position)])
    if tag < 128:
        return tag, position + 1
    return read_long_tag(buf, position, end)


@part
def place(buf, tag, position, row, record, kind, start, length, number, stack):
    """Put the value with this tag, whose payload begins at `position`, into a row of the record, as locate does.

    Gives its kind; MALFORMED where it cannot be decoded, which leaves the field absent.
    """
    found = np.int64(_KIND_OF_TYPE[tag & 7])
    size = tag >> 3
    if found == NUMBER or found == NULL:
        found = np.int64(kind_of_scalar(buf, tag, position))
        if found == NUMBER:
            number[row, record] = read_number(buf, size, position)
        size = np.int64(0)
    elif (found == ARRAY or found == MAP) and not is_whole(buf, position, position + size, found == MAP, stack):
        found = np.int64(MALFORMED)
    kind[row, record] = ABSENT if found == MALFORMED else found
    start[row, record] = position
    length[row, record] = size
    return found


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
    if (tag & 7) != _OBJECT:
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
        good = (tag & 7) == _STRING and size < here - position
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
            if first_child[node] >= 0 and (tag & 7) == _OBJECT:
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
        is_map = (tag & 7) == _OBJECT
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
                what = np.int64(_ENTER) if (tag & 7) == _OBJECT else what | NO_MAP
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


@part
def read_value(buf, position, end):
    """One value: its kind, payload start, size, number and the position behind it; containers are not looked into.

    The kind is MALFORMED where a rule is broken; the position stays where it was when the value passes `end`.
    """
    if position >= end:
        return np.int64(MALFORMED), position, np.int64(0), 0.0, position
    begin = position
    tag = np.int64(buf[np.uint64(position)])
    if tag < 128:
        position += 1
    else:
        tag, position = read_long_tag(buf, position, end)
    size = tag >> 3
    if tag < 0 or size > end - position:
        return np.int64(MALFORMED), position, np.int64(0), 0.0, begin
    found = np.int64(_KIND_OF_TYPE[tag & 7])
    value = 0.0
    following = position + size
    if found == NUMBER or found == NULL:
        found = np.int64(kind_of_scalar(buf, tag, position))
        if found == NUMBER:
            value = read_number(buf, size, position)
        size = np.int64(0)
    return found, position, size, value, following


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
