"""Reading the values inside located arrays and maps, whichever of the encodings of FieldValues they have.

Kernels that follow paths, here, and those that hash (jitdb/indexes/hash_kernels.py) know nothing of the encodings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT, ARRAY, MAP, NUMBER, STRING
from jitdb.log.codecs.bipf import bipf_kernels as bipf
from jitdb.log.codecs.fields.constants import BIPF, KEYS, MALFORMED, MSGPACK
from jitdb.log.codecs.fields.part_kernels import find_node, opening, same_bytes
from jitdb.log.codecs.fields.sixteen import word_at
from jitdb.log.codecs.msgpack import msgpack_kernels as msgpack

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I32, I64, U8, Bools

# Steps of a path inside a value, beside positions: into a map, to each element of an array, and the same but that what
# is no array is its own only element, whatever steps follow.
KEY, ANY, EACH = -1, -2, -3


@part
def read_key_part(buf, position, end):
    """One part of a canonical key, as the formats' read_value gives a value."""
    zero = np.int64(0)
    size = zero
    if end - position >= 5:
        for i in range(4):
            size |= np.int64(buf[np.uint64(position + i)]) << (8 * i)
    at = position + 5
    if size < 1 or size > end - position - 4:
        return np.int64(MALFORMED), position, zero, 0.0, np.int64(-1)
    kind = np.int64(buf[np.uint64(position + 4)])
    size -= 1
    value = 0.0
    following = at + size
    if kind == NUMBER and size == 10:
        value = np.uint64(word_at(buf, at)).view(np.float64)
        size = np.int64(buf[np.uint64(at + 8)]) | np.int64(buf[np.uint64(at + 9)]) << 8
        size -= (size >> 15) << 16  # it has a sign
    elif kind == NUMBER:  # an integer that no codec has
        kind = np.int64(MALFORMED)
    return kind, at, size, value, following


# A row for each encoding: read_value, and open_value.
_READERS = {
    KEYS: (read_key_part, opening(read_key_part)),
    BIPF: (bipf.read_value, bipf.open_value),
    MSGPACK: (msgpack.read_value, msgpack.open_value),
}


def _asking(place: int) -> Any:
    """A reader that is given the encoding first, and calls the one at this place of its row."""
    chosen: Any = None
    for number, readers in _READERS.items():
        chosen = _one_or_other(number, readers[place], chosen)
    return chosen


def _one_or_other(number: int, reader: Any, other: Any) -> Any:
    @part
    def only(encoding, buf, position, end):
        return reader(buf, position, end)

    @part
    def either(encoding, buf, position, end):
        if encoding == number:
            return reader(buf, position, end)
        return other(encoding, buf, position, end)

    return only if other is None else either


read_value = _asking(0)  # one value: its kind, payload start, size, number and the position behind it
# The same, but a container is not stepped over: kind, payload start, size, number, how many values it has, where it
# ends; the end of a scalar is the position behind it.
open_value = _asking(1)


@part
def pluck_key(encoding, buf, position, end, keys, key_start, key_size):
    """Where the last value under this key of the map at [position, end) begins; -1 where there is none."""
    result = np.int64(-1)
    while position < end:
        kind, at, size, _, position = read_value(encoding, buf, position, end)
        if kind == MALFORMED or position >= end:
            return np.int64(-1)
        if kind == STRING and size == key_size and same_bytes(buf, at, keys, key_start, size):
            result = position
        kind, at, size, _, position = read_value(encoding, buf, position, end)
        if kind == MALFORMED:
            return np.int64(-1)
    return result


@part
def element_at(encoding, buf, position, end, number):
    """Where element `number` of the array at [position, end) begins; -1 where there is none."""
    while position < end:
        if number == 0:
            return np.int64(position)
        kind, _, _, _, position = read_value(encoding, buf, position, end)
        if kind == MALFORMED:
            break
        number -= 1
    return np.int64(-1)


@kernel
def values_inside(
    encoding: int, buf: U8, kind: U8, start: I32, length: I32, number: F64, first: int, count: int,
    what: I32, key_starts: I32, key_sizes: I32, keys: U8, absent: int, stack: I64,
    owner: I32, out_kind: U8, out_start: I32, out_length: I32, out_number: F64,
) -> tuple[int, int]:  # fmt: skip
    """List what a path leads to in each of some values, with the value that owns it; see Steps.

    With `absent`, a value in which it leads nowhere owns one entry, which is ABSENT. `stack` has room for three numbers
    a step, and three more: of each array that is gone through, what is left of it and the step behind it. Stops before
    the value whose entries do not fit any more and gives its number (`count` at the end) and how many are written.
    """
    written = 0
    room = owner.shape[0]
    steps = what.shape[0]
    for record in range(first, count):
        before = written
        depth = np.int64(0)  # arrays that are gone through, one in the other
        step = np.int64(0)
        found, at, size = np.int64(kind[record]), np.int64(start[record]), np.int64(length[record])
        value = number[record]
        while True:
            while step < steps and found != ABSENT:
                wanted = what[step]
                if wanted == ANY or wanted == EACH:
                    if found == ARRAY:
                        stack[3 * depth] = at
                        stack[3 * depth + 1] = at + size
                        stack[3 * depth + 2] = step + 1
                        depth += 1
                        found = np.int64(ABSENT)
                    elif wanted == EACH:
                        step = np.int64(steps)
                    else:
                        found = np.int64(ABSENT)
                    continue
                inner = np.int64(-1)
                if wanted == KEY and found == MAP:
                    inner = pluck_key(encoding, buf, at, at + size, keys, key_starts[step], key_sizes[step])
                elif wanted >= 0 and found == ARRAY:
                    inner = element_at(encoding, buf, at, at + size, np.int64(wanted))
                if inner < 0:
                    found = np.int64(ABSENT)
                else:
                    found, at, size, value, _ = read_value(encoding, buf, inner, at + size)
                    if found == MALFORMED:
                        found = np.int64(ABSENT)
                step += 1
            if found != ABSENT:
                if written >= room:
                    return record, before
                owner[written] = record
                out_kind[written] = found
                out_start[written] = at
                out_length[written] = size
                out_number[written] = value
                written += 1
            while depth > 0 and stack[3 * depth - 3] >= stack[3 * depth - 2]:
                depth -= 1
            if depth == 0:
                break
            position = stack[3 * depth - 3]
            found, at, size, value, following = read_value(encoding, buf, position, stack[3 * depth - 2])
            step = stack[3 * depth - 1]
            if found == MALFORMED:
                found = np.int64(ABSENT)
            stack[3 * depth - 3] = following if following > position else stack[3 * depth - 2]
        if absent and written == before:
            if written >= room:
                return record, before
            owner[written] = record
            out_kind[written] = ABSENT
            out_start[written] = 0
            out_length[written] = 0
            out_number[written] = 0.0
            written += 1
    return count, written


@kernel
def first_with_more(
    encoding: int, buf: U8, kind: U8, start: I32, length: I32, first: int,
    first_child: I32, next_sibling: I32, key_start: I32, key_length: I32, field: I32, keys: U8, stack: I64,
) -> int:  # fmt: skip
    """The number of the first map, from `first` on, that has a field which the trie has not; of all where none has.

    A field is what holds no map, or an empty one, or one in as many as `stack` has room for, which is four numbers a
    level. Keys that are no text are passed over. Maps of one program have their keys in one order: so the node behind
    the one before is tried first.
    """
    deepest = stack.shape[0] >> 2
    count: int = kind.shape[0]
    for record in range(first, count):
        if kind[record] != MAP:
            continue
        position = np.int64(start[record])
        end = position + np.int64(length[record])
        child = np.int64(first_child[0])
        likely = child
        depth = np.int64(0)
        while True:
            if position >= end:
                if depth == 0:
                    break
                depth -= 1
                position, end = stack[4 * depth], stack[4 * depth + 1]
                child, likely = stack[4 * depth + 2], stack[4 * depth + 3]
                continue
            is_text, at, size, _, position = read_value(encoding, buf, position, end)
            if is_text == MALFORMED or position >= end:
                position = end
                continue
            found, inner, inner_size, _, position = read_value(encoding, buf, position, end)
            if found == MALFORMED:
                position = end
                continue
            if is_text != STRING:
                continue
            node = likely
            if node < 0 or key_length[node] != size or not same_bytes(buf, at, keys, key_start[node], size):
                node = find_node(buf, at, size, child, next_sibling, key_start, key_length, keys)
                if node < 0:
                    return record
            likely = np.int64(next_sibling[node])
            if found == MAP and inner_size > 0 and depth + 1 < deepest:
                stack[4 * depth], stack[4 * depth + 1] = position, end
                stack[4 * depth + 2], stack[4 * depth + 3] = child, likely
                depth += 1
                position = inner
                end = inner + inner_size
                child = np.int64(first_child[node])
                likely = child
                if child < 0:
                    return record
            elif field[node] < 0:
                return record
    return count


@kernel
def gather(buffer: U8, start: I32, length: I32, wanted: Bools, offsets: I32, out: U8) -> int:
    """Copy the wanted payloads buffer[start[i] : start[i] + length[i]] into `out`, and note where each ends.

    `offsets` has an entry more than there are payloads; what is not wanted is empty. A payload that does not lie in the
    buffer, or does not fit, is empty too. Gives the bytes written.
    """
    at = np.int64(0)
    room = np.int64(out.shape[0])
    offsets[0] = 0
    for i in range(start.shape[0]):
        if wanted[i]:
            begin = np.int64(start[i])
            size = np.int64(length[i])
            if begin >= 0 and 0 <= size <= room - at and size <= buffer.shape[0] - begin:
                for j in range(size):
                    out[np.uint64(at + j)] = buffer[np.uint64(begin + j)]
                at += size
        offsets[i + 1] = at
    return at
