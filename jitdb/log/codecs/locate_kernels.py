"""The in-place scan of records, compiled by numba: bytes in, positions out, nothing decoded.

One walk serves all formats. Each gives its steps (`locating`), and the compiler makes a walk of its own of them. In
bipf a length says where a map ends, and whatever is not wanted is stepped over in one addition. In msgpack a count says
how many pairs are still to come, and what is not wanted must be walked too, which takes about twice as long. In JSON a
brace ends a map. `left` is that end, that count, or 1 as long as nothing of the map was read.

A record is walked key by key, and its shape is noted (fields/shape_kernels.py). A record of a known shape is read from
value to value, and what stands between them is compared as literals.

Every position is checked against the end of what holds it, and nothing past that is read. A record that breaks a rule
is counted as malformed. In bipf, what is no map holds no fields, and what stands around it does; elsewhere, nothing
tells how far it goes, so the whole record has none. A field whose own value cannot be decoded is absent. As in
decoding, the last of several equal keys wins, at every level.

The same functions run uncompiled where JITDB_KERNELS=python, hence the explicit np.int64. An unsigned index spares
numba the question whether it counts from the end: a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitdb.common.kernels import inlined, part
from jitdb.common.paths import MAX_DEPTH
from jitdb.common.values import ABSENT, ARRAY, EXTENSION, MAP, NUMBER
from jitdb.log.codecs.fields import shape_kernels as shapes
from jitdb.log.codecs.fields.constants import LIVE, MALFORMED, UNSURE

# Verdicts on a record: it has its fields; it has them, but for a value that cannot be decoded; it is none; it must be
# decoded.
FINE, SPOILED, WRONG, DOUBTFUL = range(4)
LAST = -2  # in place of a node: the map has no more pairs

_ALIKE = 8  # records in a row that had one shape, before two are followed at once


@part
def verdict_of(position):
    """The verdict on a record in which something is UNSURE, or BROKEN, or does not end where it should."""
    return np.int64(DOUBTFUL if position == UNSURE else WRONG)


@part
def no_blanks(buf, position, end):
    """The step `skip_blanks` of formats without blanks."""
    return position


@inlined
def node_of(buf, key, size, child, trie):
    """The node among `child` and its siblings with the key buf[key : key + size]; -1: none."""
    _, next_sibling, key_start, key_length, _, _, keys = trie
    return shapes.find_node(buf, key, size, child, next_sibling, key_start, key_length, keys)


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
def clear(kind, record):
    """The record has no fields."""
    for row in range(kind.shape[0]):
        kind[row, record] = ABSENT


def taking(read_value: Any, is_whole: Any, skip_value: Any) -> Any:
    """The step `take` of a format with these readers."""

    @inlined
    def take(buf, position, end, row, record, rows, stack, depth, aids):
        if row < 0:
            return skip_value(buf, position, end), True
        found, following = place(read_value, buf, position, end, row, record, rows)
        is_fine = is_sound(is_whole, buf, position, end, found, stack)
        if not is_fine:
            rows[0][row, record] = ABSENT
        return following, is_fine

    return take


def locating(
    open_map: Any, next_pair: Any, take: Any, whole_end: Any, skip_blanks: Any = no_blanks, *,
    has_ends: bool = False, slack: int = shapes.SLACK, needs_slack: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """The walk through records of a format with these steps. `aids` are what only its own steps need.

    open_map(buf, position, end):    whether a map begins there, where its pairs do, and `left`
    next_pair(buf, position, end, left, child, trie, aids): the node of the next key of a map among `child` and its
                                     siblings (-1: none; LAST), where its value begins, and `left`. With LAST, where the
                                     map ends; else BROKEN or UNSURE, where there is no pair
    take(buf, position, end, row, record, rows, stack, depth, aids): where the value ends, BROKEN or UNSURE, and whether
                                     it can be decoded, if it is asked for; then it is put into this row, which is -1
                                     where it is not. It is in `depth` containers
    whole_end(buf, position, end, stack): where a record that is no map ends, BROKEN or UNSURE
    has_ends:                        whether `left` is where a map ends
    slack:                           bytes of the buffer that must lie behind a record that is read by its shape
    needs_slack:                     also behind one that is walked
    """

    @part
    def walk(learns, buf, position, end, record, trie, rows, scratch, stack, aids):
        """Find every field of the trie in the record buf[position:end], key by key: the verdict on it.

        `learns`: the record's shape, on the way.
        """
        count = np.int64(0 if learns else -1)  # of the shape's steps
        first_child, _, _, _, field, subtree_end, _ = trie
        kind = rows[0]
        nothing = np.int64(-1)
        begin = position  # of the literal
        is_map, position, left = open_map(buf, skip_blanks(buf, position, end), end)
        if not is_map:
            after = whole_end(buf, begin, end, stack)
            return np.int64(FINE) if after == end else verdict_of(after)
        if has_ends:
            if left != end:
                return np.int64(WRONG)
            if count >= 0:
                count = shapes.add_literal(scratch, count, buf, begin, begin, np.int64(shapes.ENTER), nothing)
            begin = position
        verdict = np.int64(FINE)
        depth = np.int64(0)
        scratch[shapes.NODES] = 0
        child_of = np.int64(first_child[0])
        while True:
            node, position, left = next_pair(buf, position, end, left, child_of, trie, aids)
            if node == LAST:
                if has_ends and count >= 0:
                    count = shapes.add_literal(scratch, count, buf, begin, position, np.int64(shapes.LEAVE), nothing)
                depth -= 1
                if depth < 0 or position > end:
                    break
                left = scratch[shapes.OPEN + depth]
                child_of = np.int64(first_child[scratch[shapes.NODES + depth]])
                continue
            here = left if has_ends else end
            following = position
            what, row, inner = np.int64(shapes.SKIPPED), nothing, nothing
            if position >= 0 and node < 0:
                following, _ = take(buf, position, here, nothing, record, rows, stack, depth + 1, aids)
            elif position >= 0:
                row, inner = np.int64(field[node]), np.int64(first_child[node])
                if row >= 0:
                    what = np.int64(shapes.WANTED)
                if scratch[shapes.LAST_SEEN + node] == record:  # the same key again: forget what the first one held
                    shapes.forget(kind, record, field, node, subtree_end[node])
                    count = nothing
                scratch[shapes.LAST_SEEN + node] = record
                enters, at, inside = False, position, left
                if inner >= 0:
                    enters, at, inside = open_map(buf, position, here)
                if row >= 0 or not enters:
                    following, is_fine = take(buf, position, here, row, record, rows, stack, depth + 1, aids)
                    if not is_fine:
                        verdict = np.int64(SPOILED)
                if enters and (has_ends or following >= 0):
                    if row >= 0:  # of both, no shape tells
                        count = nothing
                    if has_ends:
                        if count >= 0:
                            enter = np.int64(shapes.ENTER)
                            count = shapes.add_literal(scratch, count, buf, begin, position, enter, nothing)
                        begin = at
                    scratch[shapes.OPEN + depth] = left
                    depth += 1
                    scratch[shapes.NODES + depth] = node
                    position = at
                    left = inside
                    child_of = inner
                    continue
                if inner >= 0:
                    what |= shapes.NO_MAP
            if following < 0:
                if not has_ends:
                    return verdict_of(following)
                spoiled = scratch[shapes.NODES + depth]
                shapes.forget(kind, record, field, spoiled + 1, subtree_end[spoiled])
                verdict = np.int64(SPOILED)
                following = here
                count = nothing
            if count >= 0:
                count = shapes.add_literal(scratch, count, buf, begin, position, what, row)
            position = following
            begin = following
        if skip_blanks(buf, position, end) != end:
            return np.int64(WRONG)
        if begin < end and count >= 0:  # what closes maps, and maps without pairs at the end
            count = shapes.add_literal(scratch, count, buf, begin, end, np.int64(shapes.NOTHING), nothing)
        if verdict == FINE:
            shapes.keep_shape(scratch, count)
        return verdict

    @part
    def follow(buf, position, end, scratch, shape, record, rows, stack, aids):
        """Whether the record buf[position:end] has a shape; then its fields are found, else some may seem to be."""
        at = shapes.shape_at(shape)
        steps = scratch[at]
        at += 1
        depth = np.int64(-1)
        here = end
        for _ in range(steps):
            if not shapes.fits(scratch, at, buf, position):
                return False
            position += scratch[np.uint64(at + shapes.SIZE)]
            what = scratch[np.uint64(at + shapes.WHAT)]
            row = scratch[np.uint64(at + shapes.ROW)]
            at += shapes.STEP
            if what == shapes.NOTHING:
                if position > here:
                    return False
                continue
            if has_ends and what == shapes.ENTER:
                is_map, position, here = open_map(buf, position, here)
                if not is_map:
                    return False
                depth += 1
                scratch[shapes.OPEN + depth] = here
                continue
            if has_ends and what == shapes.LEAVE:
                if position != here:
                    return False
                depth -= 1
                here = scratch[shapes.OPEN + depth] if depth >= 0 else end
                continue
            if what & shapes.NO_MAP and open_map(buf, position, here)[0]:
                return False
            # Behind the end, there is no value. No shape tells how many maps are around it.
            deep = np.int64(MAX_DEPTH + 1)
            position, is_fine = take(buf, position, here, row, record, rows, stack, deep, aids)
            if position < 0 or not is_fine:
                return False
        return steps > 0 and position == end

    @part
    def follow_two(buf, position, end, next_, next_end, scratch, record, rows, stack, aids):
        """Whether the record buf[position:end] and the one after it, buf[next_:next_end], both have the latest shape.

        See follow. Where one value ends tells where the next one begins, so the processor waits most of the time. It
        does not wait for the one record while it waits for the other.
        """
        at = shapes.shape_at(scratch[shapes.LATEST])
        steps = scratch[at]
        at += 1
        deep = np.int64(MAX_DEPTH + 1)
        for _ in range(steps):
            if not shapes.fits(scratch, at, buf, position) or not shapes.fits(scratch, at, buf, next_):
                return False
            size = scratch[np.uint64(at + shapes.SIZE)]
            what = scratch[np.uint64(at + shapes.WHAT)]
            row = scratch[np.uint64(at + shapes.ROW)]
            position += size
            next_ += size
            at += shapes.STEP
            if what == shapes.NOTHING:
                if position > end or next_ > next_end:
                    return False
                continue
            if what & shapes.NO_MAP and (open_map(buf, position, end)[0] or open_map(buf, next_, next_end)[0]):
                return False
            position, is_fine = take(buf, position, end, row, record, rows, stack, deep, aids)
            next_, is_next_fine = take(buf, next_, next_end, row, record + 1, rows, stack, deep, aids)
            if position < 0 or next_ < 0 or not is_fine or not is_next_fine:
                return False
        return steps > 0 and position == end and next_ == next_end

    @part
    def follow_any(buf, position, end, scratch, record, rows, stack, aids):
        """The number of the shape that the record has, the latest one being tried first; -1: none."""
        shape = scratch[shapes.LATEST]
        known = scratch[shapes.KNOWN]
        for _ in range(known):
            if follow(buf, position, end, scratch, shape, record, rows, stack, aids):
                return shape
            shape = shape + 1 if shape + 1 < known else np.int64(0)
        return np.int64(-1)

    @part
    def locate(buf, starts, lengths, states, trie, rows, scratch, verdicts, aids):
        """Find every field of the trie in all records; record `i` is buf[starts[i] : starts[i] + lengths[i]].

        Fills `verdicts`. Records whose state is not LIVE have no fields, and are FINE. Gives how many are malformed, so
        far as is certain.
        """
        kind = rows[0]
        scratch[shapes.LAST_SEEN :] = -1
        stack = scratch[shapes.STACK : shapes.LAST_SEEN]
        shapes.begin_shapes(scratch)
        malformed = 0
        alike = 0  # records in a row that had the latest shape
        record = np.int64(-1)
        while record + 1 < starts.shape[0]:
            record += 1
            clear(kind, record)
            verdicts[record] = FINE
            if states[record] != LIVE:
                continue
            position = np.int64(starts[record])
            end = position + np.int64(lengths[record])
            if not has_ends and alike >= _ALIKE and record + 1 < starts.shape[0] and states[record + 1] == LIVE:
                next_ = np.int64(starts[record + 1])
                next_end = next_ + np.int64(lengths[record + 1])
                if max(end, next_end) + slack <= buf.shape[0]:
                    clear(kind, record + 1)
                    if follow_two(buf, position, end, next_, next_end, scratch, record, rows, stack, aids):
                        verdicts[record + 1] = FINE
                        record += 1
                        continue
                    alike = 0
                    clear(kind, record)
            has_slack = end + slack <= buf.shape[0]
            by_shape = has_slack and shapes.are_tried(scratch)
            if by_shape and scratch[shapes.KNOWN] > 0:
                latest = scratch[shapes.LATEST]
                shape = follow_any(buf, position, end, scratch, record, rows, stack, aids)
                if shape >= 0:
                    alike = alike + 1 if shape == latest else 0
                    shapes.note_hit(scratch, shape)
                    continue
                shapes.note_miss(scratch)
                clear(kind, record)
            alike = 0
            verdict = np.int64(DOUBTFUL)
            if has_slack or not needs_slack:
                verdict = walk(by_shape, buf, position, end, record, trie, rows, scratch, stack, aids)
            verdicts[record] = verdict
            if verdict >= WRONG:
                clear(kind, record)
            if verdict == SPOILED or verdict == WRONG:
                malformed += 1
        return malformed

    return locate


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
