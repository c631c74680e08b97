"""The in-place scan of records, compiled by numba: bytes in, positions out, nothing decoded.

One walk serves bipf and msgpack, whose kernels give its steps: whether a map tells where it ends, and open_map,
read_key, skip_value, read_value and is_whole. In bipf a length says where a map ends, and whatever is not wanted
is stepped over in one addition. In msgpack a count says how many pairs are still to come, and what is not wanted must
be walked too, which takes about twice as long. `left` is that end, or that count. The compiler makes a walk of its own
for each format.

Every position is checked against the end of what holds it, and nothing past that is read. A record that breaks a rule
is counted as malformed. In bipf, what is no map holds no fields, and what stands around it does; in msgpack, where
nothing tells how far it goes, the whole record has none. A field whose own value could not be decoded is absent. As in
decoding, the last of several equal keys wins, at every level.

The same functions run uncompiled where JITDB_KERNELS=python, hence the explicit np.int64. An unsigned index spares
numba the question whether it counts from the end: a third of the time.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import inlined, part
from jitdb.common.values import ABSENT, ARRAY, EXTENSION, MAP, NUMBER
from jitdb.log.codecs.fields import shape_kernels as shapes
from jitdb.log.codecs.fields.constants import LIVE, MALFORMED

# What the walk of a record finds: all its fields; a value that cannot be decoded, or more; nothing that is a record.
FINE, SPOILED, BROKEN = range(3)


@inlined
def place(read_value, buf, position, end, row, record, rows):
    """Put the value at `position` into a row of the record: its kind, and where it ends, -1 where it is not whole.

    The kind is MALFORMED where it is none, which leaves the field absent. Containers are not looked into.
    """
    kind, start, length, number = rows
    found, at, size, value, following = read_value(buf, position, end)
    if found == NUMBER:
        number[row, record] = value
    kind[row, record] = ABSENT if found == MALFORMED else found
    start[row, record] = at
    length[row, record] = size
    return found, following


@inlined
def is_sound(is_whole, buf, position, end, found, stack):
    """Whether the value at `position`, which is found to be of this kind, can be decoded."""
    if found == ARRAY or found == MAP or found == EXTENSION:
        return is_whole(buf, position, end, stack)
    return found != MALFORMED


@part
def walk(steps, learns, buf, position, end, record, trie, rows, scratch, stack):
    """Find every field of the trie in the record buf[position:end], key by key: what it is (see FINE).

    `learns`: the record's shape, on the way.
    """
    has_ends, open_map, read_key, skip_value, read_value, is_whole = steps
    count = np.int64(0 if learns else -1)  # of the shape's steps
    first_child, next_sibling, key_start, key_length, field, subtree_end, keys = trie
    kind = rows[0]
    nothing = np.int64(-1)
    begin = position  # of the literal
    is_map, position, left = open_map(buf, position, end)
    if (has_ends or not is_map) and skip_value(buf, begin, end) != end:
        return BROKEN
    if not is_map:
        return FINE
    if has_ends and count >= 0:
        count = shapes.add_literal(scratch, count, buf, begin, begin, shapes.ENTER, nothing)
    if has_ends:
        begin = position
    verdict = FINE
    depth = 0
    scratch[shapes.NODES] = 0
    child_of = np.int64(first_child[0])
    while True:
        if position >= left if has_ends else left == 0:
            if has_ends and count >= 0:
                count = shapes.add_literal(scratch, count, buf, begin, position, shapes.LEAVE, nothing)
            depth -= 1
            if depth < 0:
                break
            left = scratch[shapes.OPEN + depth]
            child_of = np.int64(first_child[scratch[shapes.NODES + depth]])
            continue
        if not has_ends:
            left -= 1
        here = left if has_ends else end
        key, size, position = read_key(buf, position, here)
        following = nothing
        what, row = np.int64(shapes.SKIPPED), nothing
        if position >= 0:
            node = shapes.find_node(buf, key, size, child_of, next_sibling, key_start, key_length, keys)
            if node < 0:
                following = skip_value(buf, position, here)
            else:
                row = np.int64(field[node])
                if (
                    scratch[shapes.LAST_SEEN + node] == record
                ):  # the same key again: what the first one held is forgotten
                    shapes.forget(kind, record, field, node, subtree_end[node])
                    count = nothing
                scratch[shapes.LAST_SEEN + node] = record
                if row >= 0:
                    what = np.int64(shapes.WANTED)
                    found, following = place(read_value, buf, position, here, row, record, rows)
                    if not is_sound(is_whole, buf, position, here, found, stack):
                        kind[row, record] = ABSENT
                        verdict = SPOILED
                if first_child[node] >= 0:
                    is_map, at, inner = open_map(buf, position, here)
                    if is_map:
                        if row >= 0:  # of both, no shape tells
                            count = nothing
                        if has_ends and count >= 0:
                            count = shapes.add_literal(
                                scratch, count, buf, begin, position, np.int64(shapes.ENTER), nothing
                            )
                        if has_ends:
                            begin = at
                        scratch[shapes.OPEN + depth] = left
                        depth += 1
                        scratch[shapes.NODES + depth] = node
                        position = at
                        left = inner
                        child_of = np.int64(first_child[node])
                        continue
                    what |= shapes.NO_MAP
                if row < 0:
                    following = skip_value(buf, position, here)
        if following < 0:
            if not has_ends:
                return BROKEN
            spoiled = scratch[shapes.NODES + depth]
            shapes.forget(kind, record, field, spoiled + 1, subtree_end[spoiled])
            verdict = SPOILED
            following = here
            count = nothing
        if count >= 0:
            count = shapes.add_literal(scratch, count, buf, begin, position, what, row)
        position = following
        begin = following
    if position != end:
        return BROKEN
    if begin < end and count >= 0:  # maps without pairs at the end
        count = shapes.add_literal(scratch, count, buf, begin, end, shapes.NOTHING, nothing)
    if verdict == FINE:
        shapes.keep_shape(scratch, count)
    return verdict


@part
def follow(steps, buf, position, end, scratch, shape, record, rows, stack):
    """Whether the record buf[position:end] has a shape; then its fields are found, else some may seem to be."""
    has_ends, open_map, _, skip_value, read_value, is_whole = steps
    base = shapes.shape_at(shape)
    depth = np.int64(-1)
    here = end
    for step in range(scratch[base]):
        at = base + 1 + step * shapes.STEP
        if position > here or not shapes.fits(scratch, at, buf, position):
            return False
        position += scratch[at + shapes.SIZE]
        what = scratch[at + shapes.WHAT]
        if what & shapes.NO_MAP and open_map(buf, position, here)[0]:
            return False
        if what & shapes.SKIPPED:
            position = skip_value(buf, position, here)
            if position < 0:
                return False
        elif what & shapes.WANTED:
            found, following = place(read_value, buf, position, here, scratch[at + shapes.ROW], record, rows)
            if not is_sound(is_whole, buf, position, here, found, stack):
                return False
            position = following
        elif has_ends and what == shapes.ENTER:
            is_map, position, here = open_map(buf, position, here)
            if not is_map:
                return False
            depth += 1
            scratch[shapes.OPEN + depth] = here
        elif has_ends and what == shapes.LEAVE:
            if position != here:
                return False
            depth -= 1
            here = scratch[shapes.OPEN + depth] if depth >= 0 else end
    return scratch[base] > 0 and position == end


@part
def follow_any(steps, buf, position, end, scratch, record, rows, stack):
    """The number of the shape that the record has; -1: none."""
    latest = scratch[shapes.LATEST]
    if follow(steps, buf, position, end, scratch, latest, record, rows, stack):
        return latest
    for shape in range(scratch[shapes.KNOWN]):
        if shape != latest and follow(steps, buf, position, end, scratch, shape, record, rows, stack):
            return np.int64(shape)
    return np.int64(-1)


@part
def locate(steps, buf, starts, lengths, states, trie, rows, scratch):
    """Find every field of the trie in all records; record `i` is buf[starts[i] : starts[i] + lengths[i]].

    Records whose state is not LIVE have no fields. Gives the number of malformed records.
    """
    kind = rows[0]
    scratch[shapes.LAST_SEEN :] = -1
    stack = scratch[shapes.STACK : shapes.LAST_SEEN]
    shapes.begin_shapes(scratch)
    malformed = 0
    for record in range(kind.shape[1]):
        for row in range(kind.shape[0]):
            kind[row, record] = ABSENT
        if states[record] != LIVE:
            continue
        position = np.int64(starts[record])
        end = position + np.int64(lengths[record])
        by_shape = end + shapes.SLACK <= buf.shape[0] and shapes.are_tried(scratch)
        if by_shape and scratch[shapes.KNOWN] > 0:
            shape = follow_any(steps, buf, position, end, scratch, record, rows, stack)
            if shape >= 0:
                shapes.note_hit(scratch, shape)
                continue
            shapes.note_miss(scratch)
            for row in range(kind.shape[0]):
                kind[row, record] = ABSENT
        verdict = walk(steps, by_shape, buf, position, end, record, trie, rows, scratch, stack)
        if verdict == BROKEN:
            for row in range(kind.shape[0]):
                kind[row, record] = ABSENT
        if verdict != FINE:
            malformed += 1
    return malformed


@part
def values(read_value, is_whole, buf, starts, lengths, positions, rows, ends, stack):
    """Put what lies at a position in each record into row 0, and where it ends; ABSENT and -1 where it is no value.

    `stack` has room for MAX_NESTING + 1 numbers.
    """
    for record in range(starts.shape[0]):
        rows[0][0, record] = ABSENT
        ends[record] = -1
        position = np.int64(starts[record] + positions[record])
        end = np.int64(starts[record] + lengths[record])
        if positions[record] < 0 or position >= end:
            continue
        found, following = place(read_value, buf, position, end, 0, record, rows)
        if is_sound(is_whole, buf, position, end, found, stack):
            ends[record] = following
        else:
            rows[0][0, record] = ABSENT
