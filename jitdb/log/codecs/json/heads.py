"""What stands before texts and containers, in msgpack and bipf, and words, for kernels that make records (kernels.py,
rows/).
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.bipf.format import BOOL_TAG
from jitdb.log.codecs.fields.sixteen import word_at
from jitdb.log.codecs.json.numbers import store_big_endian, store_word


@part
def tag_size(length):
    """Bytes of a bipf tag of a value of so many bytes."""
    if length < 16:
        return 1
    if length < 2048:
        return 2
    if length < 262144:
        return 3
    return 4 if length < 33554432 else 5


@part
def put_tag(out, o, tag):
    """Write a bipf tag; where it ends."""
    while tag > 127:
        out[np.uint64(o)] = (tag & 127) | 128
        tag >>= 7
        o += 1
    out[np.uint64(o)] = tag
    return np.int64(o + 1)


@part
def text_head_size(length, bipf):
    """Bytes before a text of so many bytes."""
    if bipf:
        return tag_size(length)
    if length < 32:
        return 1
    return 2 if length < 256 else 3 if length < 65536 else 5


@part
def put_text_head(out, o, length, bipf):
    """Write what stands before a text of so many bytes."""
    if bipf:
        put_tag(out, o, length << 3)
    elif length < 32:
        out[np.uint64(o)] = 0xA0 | length
    elif length < 256:
        out[np.uint64(o)] = 0xD9
        out[np.uint64(o + 1)] = length
    elif length < 65536:
        out[np.uint64(o)] = 0xDA
        store_big_endian(out, o + 1, np.uint64(length), 2)
    else:
        out[np.uint64(o)] = 0xDB
        store_big_endian(out, o + 1, np.uint64(length), 4)


@part
def copy_words(source, at, out, o, size):
    """Copy bytes, to lower places if both are one array, by words: up to seven more are written."""
    for i in range(0, size, 8):
        store_word(out, o + i, word_at(source, at + i))


@part
def move_up(out, at, size, distance):
    """Move bytes to higher places."""
    for i in range(size - 1, -1, -1):
        out[np.uint64(at + distance + i)] = out[np.uint64(at + i)]


@part
def put_container_head(out, head, left, o, count, is_map, bipf):
    """Write the head of a container whose parts end at `o`, with `left` bytes left for it; where they end then, and
    the bytes of the head."""
    if bipf:
        size = o - head - left
        wanted = tag_size(size)
    else:
        size = count
        wanted = 1 if count < 16 else 3 if count < 65536 else 5
    if wanted != left:
        if wanted < left:
            copy_words(out, head + left, out, head + wanted, o - head - left)
        else:
            move_up(out, head + left, o - head - left, wanted - left)
        o += wanted - left
    if bipf:
        put_tag(out, head, (size << 3) | (5 if is_map else 4))
    elif size < 16:
        out[np.uint64(head)] = (0x80 if is_map else 0x90) | size
    elif size < 65536:
        out[np.uint64(head)] = 0xDE if is_map else 0xDC
        store_big_endian(out, head + 1, np.uint64(size), 2)
    else:
        out[np.uint64(head)] = 0xDF if is_map else 0xDD
        store_big_endian(out, head + 1, np.uint64(size), 4)
    return o, np.int64(wanted)


@part
def put_bool(out, o, is_true, bipf):
    """Write true or false; where it ends."""
    if bipf:
        out[np.uint64(o)] = BOOL_TAG
        out[np.uint64(o + 1)] = is_true
        return np.int64(o + 2)
    out[np.uint64(o)] = 0xC2 + is_true
    return np.int64(o + 1)
