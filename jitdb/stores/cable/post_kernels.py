"""The fields of posts, found where they lie, and their hashes; compiled. post.py says what a post is, and is right.

One walk over a record sees whether it is a post, to the last byte, and notes where its parts are: what breaks a rule
anywhere has no field at all. Text and bytes stay where they are. Lists of hashes are put into another buffer, as the
parts of a canonical key (jitdb.common.values); the hashes of the posts are for their caller to make.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT, ARRAY, BYTES, NUMBER, STRING
from jitdb.log.codecs.fields.constants import LIVE
from jitdb.log.codecs.fields.part_kernels import (
    HEAD,
    is_utf8,
    nearest_double,
    put_bytes,
    put_head,
    read_varint,
    rest_of,
)

if TYPE_CHECKING:
    from jitdb.common.kernels import I32, I64, U8, F64Rows, I32Rows, U8Rows

# What may be asked for; of what is OTHER, the record is decoded.
HASH, PUBLIC_KEY, SIGNATURE, LINKS, POST_TYPE, TIMESTAMP, CHANNEL, TEXT, TOPIC, HASHES, OTHER, NOTHING = range(12)

# What a record is: broken, or 1 and its type.
BROKEN = 0

# What the walk notes: where the links are and how many, the type, the timestamp, where the channel is and its bytes,
# the same of what is behind it: a text, a topic, or hashes and how many.
LINKS_AT, LINKS_COUNT, TYPE, TIME, CHANNEL_AT, CHANNEL_SIZE, BODY_AT, BODY_SIZE, FOUND = range(9)

_KEY, _SIGNED_AT, _HASH = 32, 96, 32  # bytes
_TEXT, _DELETE, _INFO, _TOPIC, _JOIN, _LEAVE = range(6)
PART = HEAD + _HASH  # bytes of a hash as a part

_NAME = np.frombuffer(b"name", np.uint8)
_ROLE = np.frombuffer(b"accept-role", np.uint8)


@part
def read_shortest(buf, position, end):
    """The number at `position`, and where it ends; -1 where it is cut short, longer than need be, or over 64 bits."""
    number, stop = read_varint(buf, position, end)
    if stop > position + 1 and buf[np.uint64(stop - 1)] == 0:
        return np.int64(0), np.int64(-1)
    return number, stop


@part
def read_sized(buf, position, end):
    """Where the bytes behind a length begin, and how many these are; -1 where they are not all there."""
    size, position = read_shortest(buf, position, end)
    if position < 0 or size < 0 or size > end - position:
        return np.int64(0), np.int64(-1)
    return np.int64(position), np.int64(size)


@part
def read_hashes(buf, position, end):
    """Where a list of hashes begins, and how many these are; -1 where they are not all there."""
    count, position = read_shortest(buf, position, end)
    if position < 0 or count < 0 or count > (end - position) // _HASH:
        return np.int64(0), np.int64(-1)
    return np.int64(position), np.int64(count)


@part
def is_text(buf, start, size, least, most):
    """Whether these bytes are text of so many codepoints."""
    if size < 0 or not is_utf8(buf, start, start + size):
        return False
    count = np.int64(0)
    for at in range(start, start + size):
        if buf[np.uint64(at)] & 0xC0 != 0x80:
            count += np.int64(1)
    return least <= count and count <= most


@part
def is_same(buf, start, size, word):
    """Whether these bytes are a word."""
    if size != word.shape[0]:
        return False
    same = True
    for i in range(size):
        same = same and buf[np.uint64(start + i)] == word[i]
    return same


@part
def end_of_info(buf, position, end):
    """Where the pairs of an information end; -1 where they break a rule."""
    broken = np.int64(-1)
    while True:
        key, size = read_sized(buf, position, end)
        if size <= 0:
            return np.int64(key) if size == 0 else broken
        value, length = read_sized(buf, key + size, end)
        if not is_text(buf, key, size, 1, 128) or length < 0 or length > 4096:
            return broken
        position = value + length
        if is_same(buf, key, size, _NAME) and not is_text(buf, value, length, 1, 32):
            return broken
        if is_same(buf, key, size, _ROLE):
            _, stop = read_shortest(buf, value, position)
            if stop != position:
                return broken


@part
def end_of_body(buf, position, end, found):
    """Where the body of a post ends, of the type that is noted; -1 where it breaks a rule."""
    broken = np.int64(-1)
    if found[TYPE] == _INFO:
        return end_of_info(buf, position, end)
    if found[TYPE] == _DELETE:
        start, count = read_hashes(buf, position, end)
        found[BODY_AT] = start
        found[BODY_SIZE] = count
        return np.int64(start + count * _HASH) if count >= 0 else broken
    start, size = read_sized(buf, position, end)
    if not is_text(buf, start, size, 1, 64):
        return broken
    found[CHANNEL_AT] = start
    found[CHANNEL_SIZE] = size
    position = start + size
    if found[TYPE] == _TEXT or found[TYPE] == _TOPIC:
        start, size = read_sized(buf, position, end)
        most = np.int64(4096 if found[TYPE] == _TEXT else 512)
        if not is_text(buf, start, size, 0, most) or size > 4096:
            return broken
        found[BODY_AT] = start
        found[BODY_SIZE] = size
        position = start + size
    return np.int64(position)


@part
def is_post(buf, start, end, found):
    """Note the parts of a post (see FOUND); whether it is one."""
    if end - start < _SIGNED_AT:
        return False
    at, count = read_hashes(buf, start + _SIGNED_AT, end)
    if count < 0:
        return False
    found[LINKS_AT] = at
    found[LINKS_COUNT] = count
    post_type, position = read_shortest(buf, at + count * _HASH, end)
    if position < 0 or post_type < 0 or post_type > _LEAVE:
        return False
    found[TYPE] = post_type
    timestamp, position = read_shortest(buf, position, end)
    if position < 0:
        return False
    found[TIME] = timestamp
    return end_of_body(buf, position, end, found) == end


@part
def put_post_field(what, row, record, begin, found, rows):
    """Put one field of a post into its row: where it lies, its number, or how much room it takes as parts."""
    kind, start, length, number = rows
    of = np.int64(ABSENT)
    at = np.int64(begin)
    size = np.int64(0)
    post_type = found[TYPE]
    if what == PUBLIC_KEY:
        of = np.int64(BYTES)
        size = np.int64(_KEY)
    elif what == SIGNATURE:
        of = np.int64(BYTES)
        at += np.int64(_KEY)
        size = np.int64(_SIGNED_AT - _KEY)
    elif what == HASH:
        of = np.int64(BYTES)
        at = np.int64(record * _HASH)
        size = np.int64(_HASH)
    elif what == POST_TYPE or what == TIMESTAMP:
        of = np.int64(NUMBER)
        value = post_type if what == POST_TYPE else found[TIME]
        hi = nearest_double(value)
        number[row, record] = hi
        size = rest_of(value, hi)
    elif what == CHANNEL and post_type != _DELETE and post_type != _INFO:
        of = np.int64(STRING)
        at = found[CHANNEL_AT]
        size = found[CHANNEL_SIZE]
    elif (what == TEXT and post_type == _TEXT) or (what == TOPIC and post_type == _TOPIC):
        of = np.int64(STRING)
        at = found[BODY_AT]
        size = found[BODY_SIZE]
    elif what == LINKS:
        of = np.int64(ARRAY)
        number[row, record] = PART * found[LINKS_COUNT]
    elif what == HASHES and post_type == _DELETE:
        of = np.int64(ARRAY)
        number[row, record] = PART * found[BODY_SIZE]
    kind[row, record] = of
    start[row, record] = at
    length[row, record] = size


@kernel
def locate_posts(
    buf: U8, starts: I64, lengths: I64, states: U8, what: I32,
    kind: U8Rows, start: I32Rows, length: I32Rows, number: F64Rows, verdict: U8, found: I64,
) -> int:  # fmt: skip
    """Find in each record, row by row, what is asked for; record `i` is buf[starts[i] : starts[i] + lengths[i]].

    verdict: what each live record is; 0 of others
    found:   room for FOUND numbers

    Of arrays only the room is given that write_hashes takes, as the number; the HASH of a record is said to lie at
    32 times its number, in a buffer that its caller makes. Gives how many records are broken.
    """
    rows = (kind, start, length, number)
    broken = 0
    for record in range(starts.shape[0]):
        for row in range(what.shape[0]):
            kind[row, record] = ABSENT
        verdict[record] = BROKEN
        if states[record] != LIVE:
            continue
        begin = np.int64(starts[record])
        if not is_post(buf, begin, begin + np.int64(lengths[record]), found):
            broken += 1
            continue
        verdict[record] = 1 + found[TYPE]
        for row in range(what.shape[0]):
            if what[row] < OTHER:
                put_post_field(what[row], row, record, begin, found, rows)
    return broken


@kernel
def write_hashes(what: int, buf: U8, starts: I64, lengths: I64, kind: U8, start: I32, out: U8, found: I64) -> None:
    """Write the links or the hashes (`what`) of all records that have a `kind`, each at its `start`."""
    for record in range(starts.shape[0]):
        if kind[record] == ABSENT:
            continue
        begin = np.int64(starts[record])
        is_post(buf, begin, begin + np.int64(lengths[record]), found)
        position = found[LINKS_AT] if what == LINKS else found[BODY_AT]
        count = found[LINKS_COUNT] if what == LINKS else found[BODY_SIZE]
        at = np.int64(start[record])
        for _ in range(count):
            at = put_head(out, at, BYTES, _HASH)
            at = put_bytes(out, at, buf, position, position + _HASH)
            position += _HASH
