"""The in-place scan of records that are JSON, compiled: bytes in, positions out, as ../locate_kernels.py does it.

A record is walked key by key, and its shape is noted: what stands between two values, `, "carrier": `, as a literal. A
record of a shape that is known is read from value to value, and each literal compared by words; maps that lead to a
field are literals, too. Values are read to their ends (read.py), whether asked for or not: so a record that is found to
be one is one, whatever was asked for, and what breaks a rule anywhere has no fields at all.

A record that a kernel is not certain of (UNSURE) has none here, and is named to the caller, who decodes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import inlined, kernel, part
from jitdb.common.paths import MAX_DEPTH
from jitdb.common.values import ABSENT
from jitdb.log.codecs.fields import shape_kernels as shapes
from jitdb.log.codecs.fields.constants import LIVE, SLACK
from jitdb.log.codecs.json.read import (
    BROKEN,
    UNSURE,
    container_end,
    is_of_numbers,
    scalar_end,
    skip_blanks,
    take,
    text_end,
)
from jitdb.log.codecs.json.text import CLOSE_MAP, COLON, COMMA, OPEN_ARRAY, OPEN_MAP, QUOTE, SPACE, put_text

if TYPE_CHECKING:
    from jitdb.common.kernels import I32, I64, U8, U64, F64Rows, I32Rows, U8Rows

_ALIKE = 8  # records in a row that had one shape, before two are followed at once
FINE, WRONG, DOUBTFUL = range(3)  # of a record: it has its fields, it is malformed, it must be decoded


@part
def find_node(buf, key, size, is_plain, child, next_sibling, key_start, key_length, keys, text):
    """The node among `child` and its siblings whose key is the text buf[key : key + size]; -1: none.

    One that is not plain is read into `text` first, unless it is longer than any key.
    """
    if is_plain:
        return shapes.find_node(buf, key, size, child, next_sibling, key_start, key_length, keys)
    if size + SLACK > text.shape[0]:
        return np.int64(-1)
    _, size = put_text(buf, key, text, np.int64(0))
    return shapes.find_node(text, np.int64(0), size, child, next_sibling, key_start, key_length, keys)


@inlined
def past_blanks(buf, position, end):
    """Where the blanks from `position` on end, and what is there; mostly there is one, or none."""
    char = buf[np.uint64(position)]
    if char == SPACE:
        position += 1
        char = buf[np.uint64(position)]
    if char <= SPACE:
        position = skip_blanks(buf, position, end)
        char = buf[np.uint64(position)]
    return position, char


@part
def walk(learns, buf, position, end, record, trie, rows, scratch, stack, text, powers):
    """Find every field of the trie in the record buf[position:end], key by key: where it ends, BROKEN or UNSURE.

    `learns`: the record's shape, on the way.
    """
    count = np.int64(0 if learns else -1)  # of the shape's steps
    first_child, next_sibling, key_start, key_length, field, subtree_end, keys = trie
    kind = rows[0]
    broken, nothing = np.int64(BROKEN), np.int64(-1)
    begin = position  # of the literal
    position = skip_blanks(buf, position, end)
    if position >= end:
        return broken
    if buf[np.uint64(position)] != OPEN_MAP:
        if buf[np.uint64(position)] == OPEN_ARRAY:
            position = container_end(buf, position, end, stack, np.int64(0))
        elif is_of_numbers(buf[np.uint64(end)]):
            return np.int64(UNSURE)  # a number would not end where the record does
        else:
            position = scalar_end(buf, position, end + 1)
        return position if position < 0 or skip_blanks(buf, position, end) == end else broken
    position += 1
    depth = np.int64(0)
    scratch[shapes.NODES] = 0
    child_of = np.int64(first_child[0])
    is_first = True  # nothing is in the map yet
    while True:
        position, char = past_blanks(buf, position, end)
        if char == CLOSE_MAP:
            position += 1
            is_first = False
            depth -= 1
            if depth < 0 or position > end:
                break
            child_of = np.int64(first_child[scratch[shapes.NODES + depth]])
            continue
        if not is_first:
            if char != COMMA:
                return broken
            position, char = past_blanks(buf, position + 1, end)
        is_first = False
        if char != QUOTE or position >= end:
            return broken
        key = position + 1
        position, is_plain = text_end(buf, key, end)
        if position < 0:
            return position
        node = nothing
        if child_of >= 0:
            size = position - key
            node = find_node(buf, key, size, is_plain, child_of, next_sibling, key_start, key_length, keys, text)
        position, char = past_blanks(buf, position + 1, end)
        if char != COLON:
            return broken
        position, _ = past_blanks(buf, position + 1, end)
        if position >= end:
            return broken
        here = position
        what, row = np.int64(shapes.SKIPPED), nothing
        inner = nothing  # the first node in it
        if node >= 0:
            row, inner = np.int64(field[node]), np.int64(first_child[node])
            if row >= 0:
                what = np.int64(shapes.WANTED)
            if scratch[shapes.LAST_SEEN + node] == record:  # the same key again: what the first one held is forgotten
                shapes.forget(kind, record, field, node, subtree_end[node])
                count = nothing
            scratch[shapes.LAST_SEEN + node] = record
        enters = inner >= 0 and buf[np.uint64(here)] == OPEN_MAP
        if row >= 0 or not enters:
            position = take(buf, here, end, row, record, rows, stack, depth + 1, powers)
            if position < 0:
                return position
        if enters:
            if row >= 0:  # of both, no shape tells
                count = nothing
            depth += 1
            scratch[shapes.NODES + depth] = node
            child_of = inner
            position = here + 1
            is_first = True
            continue
        if inner >= 0:
            what |= shapes.NO_MAP
        if count >= 0:
            count = shapes.add_literal(scratch, count, buf, begin, here, what, row)
        begin = position
    position = skip_blanks(buf, position, end)
    if position != end:
        return broken
    if count >= 0:
        count = shapes.add_literal(scratch, count, buf, begin, end, np.int64(shapes.NOTHING), nothing)
    shapes.keep_shape(scratch, count)
    return position


@part
def follow(buf, position, end, scratch, shape, record, rows, stack, powers):
    """Whether the record buf[position:end] has a shape; then its fields are found, else some may seem to be."""
    at = shapes.shape_at(shape)
    steps = scratch[at]
    at += 1
    for _ in range(steps):
        if not shapes.fits(scratch, at, buf, position):
            return False
        position += scratch[np.uint64(at + shapes.SIZE)]
        what = scratch[np.uint64(at + shapes.WHAT)]
        row = scratch[np.uint64(at + shapes.ROW)]
        at += shapes.STEP
        if what == shapes.NOTHING:
            if position > end:
                return False
            continue
        if what & shapes.NO_MAP and buf[np.uint64(position)] == OPEN_MAP:
            return False
        # Behind the end, there is no value. No shape tells how many maps are around it.
        position = take(buf, position, end, row, record, rows, stack, np.int64(MAX_DEPTH + 1), powers)
        if position < 0:
            return False
    return steps > 0 and position == end


@part
def follow_two(buf, position, end, next_, next_end, scratch, shape, record, rows, stack, powers):
    """Whether the record buf[position:end] and the one after it, buf[next_:next_end], both have a shape: see follow.

    Where one value ends tells where the next one begins, so the processor waits most of the time. It does not wait for
    the one record while it waits for the other.
    """
    at = shapes.shape_at(shape)
    steps = scratch[at]
    at += 1
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
        if what & shapes.NO_MAP and (buf[np.uint64(position)] == OPEN_MAP or buf[np.uint64(next_)] == OPEN_MAP):
            return False
        position = take(buf, position, end, row, record, rows, stack, np.int64(MAX_DEPTH + 1), powers)
        next_ = take(buf, next_, next_end, row, record + 1, rows, stack, np.int64(MAX_DEPTH + 1), powers)
        if position < 0 or next_ < 0:
            return False
    return steps > 0 and position == end and next_ == next_end


@part
def follow_any(buf, position, end, scratch, record, rows, stack, powers):
    """The number of the shape that the record has, the latest one being tried first; -1: none."""
    shape = scratch[shapes.LATEST]
    known = scratch[shapes.KNOWN]
    for _ in range(known):
        if follow(buf, position, end, scratch, shape, record, rows, stack, powers):
            return shape
        shape = shape + 1 if shape + 1 < known else np.int64(0)
    return np.int64(-1)


@kernel
def locate_texts(
    buf: U8, starts: I64, lengths: I64, states: U8,
    first_child: I32, next_sibling: I32, key_start: I32, key_length: I32, field: I32, subtree_end: I32, keys: U8,
    kind: U8Rows, start: I32Rows, length: I32Rows, number: F64Rows, scratch: I64, text: U8, powers: U64, verdicts: U8,
) -> tuple[int, int]:  # fmt: skip
    """Find every field of the trie in all records; record `i` is buf[starts[i] : starts[i] + lengths[i]].

    Records whose state is not LIVE have no fields, and are FINE. To the kind of a value whose payload must be written
    anew, WRITTEN is added. `text` has room for a key with escapes, and SLACK bytes more. Gives how many records are
    WRONG, and how many DOUBTFUL, as all are that lie too near to the end of the buffer; verdicts[i] says which.
    """
    trie = (first_child, next_sibling, key_start, key_length, field, subtree_end, keys)
    rows = (kind, start, length, number)
    scratch[shapes.LAST_SEEN :] = -1
    stack = scratch[shapes.STACK : shapes.LAST_SEEN]
    shapes.begin_shapes(scratch)
    wrong = 0
    doubtful = 0
    alike = 0  # records in a row that had the latest shape
    record = np.int64(-1)
    while record + 1 < starts.shape[0]:
        record += 1
        for row in range(kind.shape[0]):
            kind[row, record] = ABSENT
        verdicts[record] = FINE
        if states[record] != LIVE:
            continue
        position = np.int64(starts[record])
        end = position + np.int64(lengths[record])
        if alike >= _ALIKE and record + 1 < starts.shape[0] and states[record + 1] == LIVE:
            next_ = np.int64(starts[record + 1])
            next_end = next_ + np.int64(lengths[record + 1])
            if max(end, next_end) + SLACK <= buf.shape[0]:
                for row in range(kind.shape[0]):
                    kind[row, record + 1] = ABSENT
                shape = scratch[shapes.LATEST]
                if follow_two(
                    buf, position, end, next_, next_end, scratch, shape, record, rows, stack, powers
                ):  # fmt: skip
                    verdicts[record + 1] = FINE
                    record += 1
                    continue
                alike = 0
                for row in range(kind.shape[0]):
                    kind[row, record] = ABSENT
        after = np.int64(UNSURE)
        if end + SLACK <= buf.shape[0]:
            by_shape = shapes.are_tried(scratch)
            if by_shape and scratch[shapes.KNOWN] > 0:
                latest = scratch[shapes.LATEST]
                shape = follow_any(buf, position, end, scratch, record, rows, stack, powers)
                if shape >= 0:
                    alike = alike + 1 if shape == latest else 0
                    shapes.note_hit(scratch, shape)
                    continue
                shapes.note_miss(scratch)
                for row in range(kind.shape[0]):
                    kind[row, record] = ABSENT
            alike = 0
            after = walk(by_shape, buf, position, end, record, trie, rows, scratch, stack, text, powers)
        if after >= 0:
            continue
        for row in range(kind.shape[0]):
            kind[row, record] = ABSENT
        if after == BROKEN:
            verdicts[record] = WRONG
            wrong += 1
        else:
            verdicts[record] = DOUBTFUL
            doubtful += 1
    return wrong, doubtful
