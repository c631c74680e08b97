"""The fields of a feed's records, found where they lie; compiled. entry.py says what a record is, and is right.

One walk over a record notes where each of its fields was last, and whether all of them are as they should be: a record
that breaks a rule anywhere has no field at all, as it cannot be decoded. Text and bytes stay where they are. What a
record says more than once (clock, feeds) is put into another buffer, as the parts of a canonical key
(jitdb.common.values): first it is told how much room each takes, then they are written.

A number of up to 64 bits is carried by the int64 of the same bits; where one is a size, one that seems negative is
larger than any record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT, ARRAY, BYTES, FALSE, NUMBER, STRING, TRUE
from jitdb.log.codecs.fields.constants import LIVE
from jitdb.log.codecs.fields.part_kernels import (
    HEAD,
    is_utf8,
    nearest_double,
    put_bytes,
    put_head,
    put_number,
    read_varint,
    rest_of,
)

if TYPE_CHECKING:
    from jitdb.common.kernels import I32, I64, U8, F64Rows, I32Rows, U8Rows

# The numbers of an entry's fields, and what else may be asked for; of what is OTHER, the record is decoded.
KEY, VALUE, DELETED, TRIE, CLOCK, INFLATE, FEEDS, CONTENT_FEED = range(1, 9)
PROTOCOL, SEGMENT, OTHER, NOTHING = range(9, 13)

# What a record is.
BROKEN, HEADER, ENTRY = range(3)

# What the walk notes: of field `f`, at 2 * f, where its bytes begin, or its number; behind that how many these are, or
# whether it is there; then how many numbers the clock has, how many bytes the feeds' keys take as parts of an array.
CLOCKS, FEED_BYTES, FOUND = 18, 19, 20

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_WIRE_TYPES = np.array([9, _BYTES, _BYTES, _VARINT, _BYTES, _VARINT, _VARINT, _BYTES, _BYTES], np.uint8)
_HYPERDB = np.frombuffer(b"hyperdb", np.uint8)
_SLASH = ord("/")

CLOCK_PART = HEAD + 10  # bytes of a number


# --- protobuf --------------------------------------------------------------------------------------------------------


@part
def read_field(buf, position, end):
    """The field at `position`: its number and wire type, where its bytes begin (or what a varint says), how many they
    are, and where the next one begins; -1 where this one breaks a rule.
    """
    zero = np.int64(0)
    broken = np.int64(-1)
    tag, position = read_varint(buf, position, end)
    number = tag >> 3
    wire_type = tag & 7
    if position < 0 or number < 1 or tag >> 32 != 0:
        return zero, zero, zero, zero, broken
    if wire_type == _VARINT:
        value, position = read_varint(buf, position, end)
        return number, wire_type, value, zero, position
    size = np.int64(8 if wire_type == _FIXED64 else 4)
    if wire_type == _BYTES:
        size, position = read_varint(buf, position, end)
    elif wire_type != _FIXED64 and wire_type != _FIXED32:
        return zero, zero, zero, zero, broken
    if position < 0 or size < 0 or size > end - position:
        return zero, zero, zero, zero, broken
    return number, wire_type, position, size, np.int64(position + size)


@part
def count_varints(buf, position, end):
    """How many numbers stand one behind the other; -1 where they are not whole."""
    count = np.int64(0)
    while position < end:
        _, position = read_varint(buf, position, end)
        if position < 0:
            return np.int64(-1)
        count += np.int64(1)
    return count


@part
def read_feed(buf, position, end):
    """Where the key in a message Feed begins, and how many bytes it has: -1 where there is none."""
    start = np.int64(0)
    size = np.int64(-1)
    while position < end:
        number, wire_type, at, length, position = read_field(buf, position, end)
        if position < 0 or (number == KEY and wire_type != _BYTES):
            return np.int64(0), np.int64(-1)
        if number == KEY:
            start = at
            size = length
    return start, size


# --- one record ------------------------------------------------------------------------------------------------------


@part
def read_record(buf, position, end, found):
    """Note the fields of a record (see FOUND); whether it is an ENTRY, a HEADER, or BROKEN."""
    for i in range(FOUND):
        found[i] = -1 if i & 1 and i < CLOCKS else 0
    fine = True  # as an entry
    named = True  # as a header
    has_trie = False
    while position < end:
        number, wire_type, value, size, position = read_field(buf, position, end)
        if position < 0:
            return np.int64(BROKEN)
        if number > CONTENT_FEED:
            continue
        if number == TRIE:
            has_trie = True
        if number == CLOCK and wire_type == _BYTES:
            count = count_varints(buf, value, position)
            fine = fine and count >= 0
            found[CLOCKS] += count
        elif wire_type != _WIRE_TYPES[number]:
            fine = False
            named = named and number != KEY
        elif number == CLOCK:
            found[CLOCKS] += 1
        elif number == FEEDS:
            _, length = read_feed(buf, value, position)
            fine = fine and length >= 0
            found[FEED_BYTES] += HEAD + length
        else:
            found[2 * number] = value
            found[2 * number + 1] = size
    start = found[2 * KEY]
    length = found[2 * KEY + 1]
    if has_trie:
        return np.int64(ENTRY if fine and length >= 0 and is_utf8(buf, start, start + length) else BROKEN)
    named = named and length == _HYPERDB.shape[0]
    if named:
        for i in range(length):
            named = named and buf[np.uint64(start + i)] == _HYPERDB[i]
    return np.int64(HEADER if named else BROKEN)


@part
def segments_within(buf, start, length):
    """Where the segments of a key begin and end, all of them, and how many there are."""
    end = start + length
    count = np.int64(0)
    if length > 0 and buf[np.uint64(start)] == _SLASH:
        start += 1
    if start == end:
        return np.int64(start), np.int64(end), count
    if buf[np.uint64(end - 1)] == _SLASH:  # an empty segment at the end is none
        end -= 1
    count = np.int64(1)
    for at in range(start, end):
        if buf[np.uint64(at)] == _SLASH:
            count += np.int64(1)
    return np.int64(start), np.int64(end), count


@part
def end_of_segment(buf, position, end):
    """Where the segment that begins at `position` ends."""
    while position < end and buf[np.uint64(position)] != _SLASH:
        position += 1
    return np.int64(position)


# --- all records -----------------------------------------------------------------------------------------------------


@part
def put_place(buf, what, segment, row, record, found, rows):
    """Put one field of an entry into its row: where it lies, its number, or how much room it takes as parts."""
    kind, start, length, number = rows
    at = found[2 * KEY]
    size = found[2 * KEY + 1]
    of = np.int64(ABSENT)
    if what == KEY:
        of = np.int64(STRING)
    elif what == VALUE or what == TRIE or what == CONTENT_FEED:
        at = found[2 * what]
        size = found[2 * what + 1]
        of = np.int64(BYTES if size >= 0 else ABSENT)
    elif what == SEGMENT:
        at, end, count = segments_within(buf, at, size)
        if segment < count:
            of = np.int64(STRING)
            for _ in range(segment):
                at = end_of_segment(buf, at, end) + 1
            size = end_of_segment(buf, at, end) - at
    elif what == DELETED:
        of = np.int64(TRUE if found[2 * DELETED + 1] >= 0 and found[2 * DELETED] != 0 else FALSE)
        size = np.int64(0)
    elif what == INFLATE and found[2 * INFLATE + 1] >= 0:
        of = np.int64(NUMBER)
        hi = nearest_double(found[2 * INFLATE])
        number[row, record] = hi
        size = rest_of(found[2 * INFLATE], hi)
    elif what == CLOCK:
        of = np.int64(ARRAY)
        number[row, record] = CLOCK_PART * found[CLOCKS]
    elif what == FEEDS and found[FEED_BYTES] > 0:
        of = np.int64(ARRAY)
        number[row, record] = found[FEED_BYTES]
    kind[row, record] = of
    start[row, record] = at
    length[row, record] = size


@kernel
def locate_entries(
    buf: U8, starts: I64, lengths: I64, states: U8, what: I32, segment: I32,
    kind: U8Rows, start: I32Rows, length: I32Rows, number: F64Rows, verdict: U8, found: I64,
) -> int:  # fmt: skip
    """Find in each record, row by row, what is asked for; record `i` is buf[starts[i] : starts[i] + lengths[i]].

    what:    of each row, the number of a field, PROTOCOL, SEGMENT, OTHER, or NOTHING
    segment: of each row, which segment
    verdict: what each live record is; BROKEN for others
    found:   room for FOUND numbers

    Of arrays only the room is given that write_parts takes, as the number. Gives how many records are broken.
    """
    rows = (kind, start, length, number)
    broken = 0
    for record in range(starts.shape[0]):
        for row in range(what.shape[0]):
            kind[row, record] = ABSENT
        verdict[record] = BROKEN
        if states[record] != LIVE:
            continue
        position = np.int64(starts[record])
        is_what = read_record(buf, position, position + np.int64(lengths[record]), found)
        verdict[record] = is_what
        if is_what == BROKEN:
            broken += 1
        elif is_what == ENTRY:
            for row in range(what.shape[0]):
                put_place(buf, what[row], segment[row], row, record, found, rows)
        else:
            for row in range(what.shape[0]):
                if what[row] == PROTOCOL:
                    kind[row, record] = STRING
                    start[row, record] = found[2 * KEY]
                    length[row, record] = found[2 * KEY + 1]
    return broken


# --- parts of canonical keys -----------------------------------------------------------------------------------------


@kernel
def write_parts(what: int, buf: U8, starts: I64, lengths: I64, kind: U8, start: I32, out: U8) -> None:
    """Write the clock or the feeds (`what`) of all records that have a `kind`, each at its `start`."""
    for record in range(starts.shape[0]):
        if kind[record] == ABSENT:
            continue
        at = np.int64(start[record])
        position = np.int64(starts[record])
        end = position + np.int64(lengths[record])
        while position < end:
            number, wire_type, value, size, position = read_field(buf, position, end)
            if number != what:
                continue
            if what == FEEDS:
                value, size = read_feed(buf, value, position)
                at = put_head(out, at, BYTES, size)
                at = put_bytes(out, at, buf, value, value + size)
            elif wire_type == _VARINT:
                at = put_number(out, at, value)
            else:
                stop = value + size
                while value < stop:
                    entry, value = read_varint(buf, value, stop)
                    at = put_number(out, at, entry)
