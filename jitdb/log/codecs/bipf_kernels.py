"""The in-place scan of bipf records, compiled by numba: bytes in, positions out, nothing decoded.

A bipf value is a tag (u32, LEB128: `length << 3 | type`) and `length` bytes. A map's bytes are key, value, key,
value …, so whatever is not wanted is stepped over in one addition: the walk costs a few nanoseconds a key, whatever
the values' sizes.

Every position is checked against the end of the value that holds it, and that end against its parent's; a record
that breaks a rule is counted as malformed, and nothing past its end is ever read. A field is found when every map on
the way to it is well-formed, and it is itself, whichever other fields are looked for. The same functions run
uncompiled under NUMBA_DISABLE_JIT=1, hence the explicit np.int64. An unsigned index spares numba the question whether
it counts from the end: a third of the time.

As in decoding, the last of several equal keys wins, at every level.
"""

from __future__ import annotations

import numpy as np

from jitdb.compiled import kernel
from jitdb.log.codecs.base import MAX_NESTING
from jitdb.log.codecs.located import LIVE
from jitdb.paths import MAX_DEPTH
from jitdb.values import ABSENT, ARRAY, BYTES, FALSE, MAP, NULL, NUMBER, STRING, TRUE

# The types in a tag's low three bits, and the kind of each; NULL stands for all of BOOLNULL.
_STRING, _BUFFER, _INT, _DOUBLE, _ARRAY, _OBJECT, _BOOLNULL = range(7)
_MALFORMED = 255
_KIND_OF_TYPE = np.array([STRING, BYTES, NUMBER, NUMBER, ARRAY, MAP, NULL, _MALFORMED], np.uint8)


@kernel
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


@kernel
def read_number(buf, size, position):
    """The double that an INT (4 bytes) or DOUBLE (8 bytes) payload holds; -0.0 becomes the equal 0.0."""
    bits = np.int64(0)
    for i in range(size):
        bits |= np.int64(buf[np.uint64(position + i)]) << (8 * i)
    if size == 8:
        return np.int64(bits).view(np.float64) + 0.0
    return np.float64(bits - ((bits >> 31) << 32))


@kernel
def kind_of_scalar(buf, tag, position):
    """The kind of an INT, DOUBLE or BOOLNULL; _MALFORMED where its size or byte breaks the format."""
    size = tag >> 3
    code = tag & 7
    if code == _BOOLNULL:
        if size == 0:
            return NULL
        if size == 1:
            byte = buf[position]
            return FALSE if byte == 0 else TRUE if byte == 1 else ABSENT if byte == 2 else _MALFORMED
    elif size == (4 if code == _INT else 8):
        return NUMBER
    return _MALFORMED


@kernel
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
            if code > _BUFFER and (code > _BOOLNULL or kind_of_scalar(buf, tag, position) == _MALFORMED):
                return False
            position += tag >> 3


@kernel
def locate(
    buf, starts, lengths, states, count,
    first_child, next_sibling, key_start, key_length, field, subtree_end, keys,
    kind, start, length, number,
):  # fmt: skip
    """Find every field of the trie in `count` records; record `i` is buf[starts[i] : starts[i] + lengths[i]].

    Records whose state is not LIVE have no fields. Gives the number of malformed records.
    """
    fields = kind.shape[0]
    ends = np.empty(MAX_DEPTH + 1, np.int64)
    nodes = np.empty(MAX_DEPTH + 1, np.int64)
    stack = np.empty(MAX_NESTING, np.int64)
    last_seen = np.full(field.shape[0], -1, np.int64)
    malformed = 0
    for record in range(count):
        for row in range(fields):
            kind[row, record] = ABSENT
        if states[record] != LIVE:
            continue
        position = np.int64(starts[record])
        end = position + np.int64(lengths[record])
        tag = np.int64(buf[np.uint64(position)]) if position < end else np.int64(-1)
        if tag < 128:
            position += 1
        else:
            tag, position = read_long_tag(buf, position, end)
        good = tag >= 0 and position + (tag >> 3) == end
        if not good:
            malformed += 1
            continue
        if (tag & 7) != _OBJECT:
            continue
        depth = 0
        ends[0] = end
        nodes[0] = 0
        here = end
        child_of = first_child[0]
        whole = True
        while depth >= 0:
            if position >= here:
                depth -= 1
                if depth >= 0:
                    here = ends[depth]
                    child_of = first_child[nodes[depth]]
                continue
            tag = np.int64(buf[np.uint64(position)])
            if tag < 128:
                position += 1
            else:
                tag, position = read_long_tag(buf, position, here)
            size = tag >> 3
            # A key is a string, and its value follows inside the same map.
            good = (tag & 7) == _STRING and size < here - position
            if good:
                node = child_of
                while node >= 0:
                    if key_length[node] == size:
                        at = key_start[node]
                        same = True
                        for i in range(size):
                            if buf[np.uint64(position + i)] != keys[np.uint64(at + i)]:
                                same = False
                                break
                        if same:
                            break
                    node = next_sibling[node]
                position += size
                tag = np.int64(buf[np.uint64(position)])
                if tag < 128:
                    position += 1
                else:
                    tag, position = read_long_tag(buf, position, here)
                good = tag >= 0 and (tag >> 3) <= here - position
            if not good:  # this map is no map: what it held is forgotten, what stands around it is not
                whole = False
                for below in range(nodes[depth] + 1, subtree_end[nodes[depth]]):
                    if field[below] >= 0:
                        kind[field[below], record] = ABSENT
                position = here
                continue
            if node < 0:
                position += tag >> 3
                continue
            if last_seen[node] == record:  # the same key again: what the first one held is forgotten
                for below in range(node, subtree_end[node]):
                    if field[below] >= 0:
                        kind[field[below], record] = ABSENT
            last_seen[node] = record
            row = field[node]
            if row >= 0:
                found = np.int64(_KIND_OF_TYPE[tag & 7])
                size = tag >> 3
                if found == NUMBER or found == NULL:
                    found = kind_of_scalar(buf, tag, position)
                    if found == NUMBER:
                        number[row, record] = read_number(buf, size, position)
                    size = np.int64(0)
                elif (found == ARRAY or found == MAP) and not is_whole(
                    buf, position, position + size, found == MAP, stack
                ):
                    found = np.int64(_MALFORMED)
                if found == _MALFORMED:
                    whole = False
                    found = np.int64(ABSENT)
                kind[row, record] = found
                start[row, record] = position
                length[row, record] = size
            if first_child[node] >= 0 and (tag & 7) == _OBJECT:
                depth += 1
                here = position + (tag >> 3)
                ends[depth] = here
                nodes[depth] = node
                child_of = first_child[node]
                continue
            position += tag >> 3
        if not whole:
            malformed += 1
    return malformed


@kernel
def read_value(buf, position, end):
    """One value: its kind, payload start, size, number and the position behind it; containers are not looked into.

    The kind is _MALFORMED where a rule is broken; the position stays where it was when the value passes `end`.
    """
    if position >= end:
        return np.int64(_MALFORMED), position, np.int64(0), 0.0, position
    begin = position
    tag = np.int64(buf[np.uint64(position)])
    if tag < 128:
        position += 1
    else:
        tag, position = read_long_tag(buf, position, end)
    size = tag >> 3
    if tag < 0 or size > end - position:
        return np.int64(_MALFORMED), position, np.int64(0), 0.0, begin
    found = np.int64(_KIND_OF_TYPE[tag & 7])
    value = 0.0
    following = position + size
    if found == NUMBER or found == NULL:
        found = np.int64(kind_of_scalar(buf, tag, position))
        if found == NUMBER:
            value = read_number(buf, size, position)
        size = np.int64(0)
    return found, position, size, value, following
