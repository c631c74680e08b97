"""Lines of JSON to records, compiled: one pass over a buffer of lines, every value written where the last one ended.

What is not certain to be a record as json and the codec would make it ends the pass: the line is left to them. So the
kernel knows no errors, and need not know all of JSON: it leaves what breaks a rule, integers beyond 64 bits, numbers
that json_numbers leaves, lone surrogates, a key that is there twice, text that is no UTF-8, more than MAX_DEPTH levels.

**Heads.** What stands before the parts of a container tells their number (msgpack) or bytes (bipf), known at its end.
Room is left as the last container at that node took; where that was wrong, the parts are moved.

Whoever calls sees to it that a buffer of lines ends with a newline, and SLACK bytes lie behind it; and that `out` has
GROWTH bytes for each byte of JSON, and SLACK more. Every loop ends at a control character, and a newline is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import NULL, NUMBER, TRUE
from jitdb.log.codecs.bipf.format import NULL_TAG
from jitdb.log.codecs.fields.constants import MALFORMED, SLACK
from jitdb.log.codecs.fields.located import Scratch
from jitdb.log.codecs.json.heads import put_bool, put_container_head
from jitdb.log.codecs.json.keys import (
    ARRAY_HEAD,
    BYTES,
    COUNT,
    KEY_BYTES,
    MAP_HEAD,
    NODE,
    NODES,
    ROOT,
    SERIAL,
    SLOTS,
    forget_keys,
    put_key,
)
from jitdb.log.codecs.json.numbers import powers, put_bits, put_number
from jitdb.log.codecs.json.text import (
    CLOSE_ARRAY,
    CLOSE_MAP,
    COMMA,
    NEWLINE,
    OPEN_ARRAY,
    OPEN_MAP,
    QUOTE,
    SPACE,
    past_blanks,
    put_text,
    read_word,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.common.kernels import I64, U8, U64

GROWTH: Final = 5  # "1," of JSON takes five bytes in bipf, "[" as many while it is open
MAX_DEPTH: Final = 128

# What ended a pass: the lines are all done, or there are as many records as fit; a line is left to Python.
DONE, LEFT = range(2)
MOST_RECORDS: Final = 1 << 15  # of a pass

# The state: what keys.py has there, and the open containers around the innermost.
_STACK: Final = 8
_FRAME: Final = 8  # int64 of one
STATE: Final = _STACK + (MAX_DEPTH + 1) * _FRAME


@part
def put_word(buf, p, out, o, bipf):
    """Write null, true, false, or a number that has a name; where it ends, -1 where it is left, where its bytes end."""
    kind, after, bits = read_word(buf, p)
    if kind == MALFORMED or (bipf and kind == NUMBER):
        return np.int64(-1), o
    if kind == NUMBER:
        return after, put_bits(out, o, bits, False)
    if kind == NULL:
        out[np.uint64(o)] = NULL_TAG if bipf else 0xC0
    else:
        return after, put_bool(out, o, np.int64(kind == TRUE), bipf)
    return after, o + 1


@part
def put_value(buf, p, out, o, bipf, tagged, powers, state, nodes, slots, keys):
    """Write the value at `p`, and all in it; where it ends, -1 where it is left, and where its bytes end."""
    left = np.int64(-1)
    depth = np.int64(0)
    is_map = False  # of the innermost open container
    head = np.int64(0)  # where it begins
    room = np.int64(0)  # bytes left for its head
    count = np.int64(0)  # its parts so far
    parent = np.int64(ROOT)  # its node
    last = np.int64(-1)  # the node of its last key
    serial = np.int64(0)  # its number
    while True:
        if is_map:
            p, o, last = put_key(state, nodes, slots, keys, parent, last, serial, buf, p, out, o, bipf, tagged)
            if p < 0:
                return left, o
        char = np.int64(buf[np.uint64(p)])
        if char <= SPACE:
            p = past_blanks(buf, p)
            char = np.int64(buf[np.uint64(p)])
        is_empty = False
        if char == QUOTE:
            p, o = put_text(buf, p + 1, out, o, bipf)
            if p < 0:
                return left, o
        elif char == OPEN_MAP or char == OPEN_ARRAY:
            if depth == MAX_DEPTH:
                return left, o
            frame = _STACK + depth * _FRAME
            state[frame] = is_map
            state[frame + 1] = head
            state[frame + 2] = room
            state[frame + 3] = count
            state[frame + 4] = parent
            state[frame + 5] = last
            state[frame + 6] = serial
            depth += 1
            if is_map:
                parent = last
            is_map = char == OPEN_MAP
            head = o
            room = nodes[parent * NODE + (MAP_HEAD if is_map else ARRAY_HEAD)]
            o += room
            count = np.int64(0)
            last = np.int64(-1)
            p += 1
            state[SERIAL] += 1
            serial = state[SERIAL]
            end = past_blanks(buf, p)
            if buf[np.uint64(end)] != (CLOSE_MAP if is_map else CLOSE_ARRAY):
                continue
            p = end
            is_empty = True
        else:
            after = left
            if char <= 57:  # behind the digits, no value begins
                after, o = put_number(buf, p, out, o, bipf, powers)
            if after < 0:
                after, o = put_word(buf, p, out, o, bipf)
                if after < 0:
                    return left, o
            p = after
        # What follows it; of an empty container, its end.
        if not is_empty:
            count += 1
        while True:
            if depth == 0:
                return p, o
            char = np.int64(buf[np.uint64(p)])
            if char != COMMA and char != CLOSE_MAP and char != CLOSE_ARRAY:
                p = past_blanks(buf, p)
                char = np.int64(buf[np.uint64(p)])
            p += 1
            if char == COMMA:
                break
            if char != (CLOSE_MAP if is_map else CLOSE_ARRAY):
                return left, o
            o, room = put_container_head(out, head, room, o, count, is_map, bipf)
            nodes[parent * NODE + (MAP_HEAD if is_map else ARRAY_HEAD)] = room
            depth -= 1
            frame = _STACK + depth * _FRAME
            is_map = state[frame] != 0
            head = state[frame + 1]
            room = state[frame + 2]
            count = state[frame + 3] + 1
            parent = state[frame + 4]
            last = state[frame + 5]
            serial = state[frame + 6]


@kernel
def begin_keys(state: I64, nodes: I64, slots: I64) -> None:
    """Nothing is known of keys."""
    state[SERIAL] = 0
    forget_keys(state, nodes, slots)


@kernel
def transcode(
    buf: U8, begin: int, end: int, out: U8, bipf: int, tagged: int, largest: int, powers: U64,
    state: I64, nodes: I64, slots: I64, keys: U8, lengths: I64, lines: I64,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Write the records of the lines buf[begin:end] into `out`, one behind the other; see the head of this file.

    Fills, per record, `lengths` (bytes) and `lines` (the number of its line, counted from 0 at `begin`). With `tagged`,
    maps that may stand for what JSON lacks are left, and so are records of more than `largest` bytes, and of zeros.

    Gives why it ended (DONE, LEFT), how many records there are, how many lines were done or passed over as blank, and
    where the next one begins, and where the records end.
    """
    room = min(lengths.shape[0], lines.shape[0])
    count = 0
    line = 0
    o = np.int64(0)
    position = np.int64(begin)
    if end + SLACK > buf.shape[0] or (end - begin) * GROWTH + SLACK > out.shape[0]:
        return LEFT, 0, 0, begin, 0
    while position < end and count < room:
        if state[COUNT] > NODES // 2 or state[BYTES] > KEY_BYTES // 2:
            forget_keys(state, nodes, slots)
        p = past_blanks(buf, position)
        if buf[np.uint64(p)] == NEWLINE:
            position = p + 1
            line += 1
            continue
        after, stop = put_value(buf, p, out, o, bipf != 0, tagged != 0, powers, state, nodes, slots, keys)
        if after >= 0:
            after = past_blanks(buf, after)
            if buf[np.uint64(after)] != NEWLINE or stop - o > largest or out[np.uint64(o)] == 0:
                after = np.int64(-1)
        if after < 0:
            return LEFT, count, line, position, o
        lengths[count] = stop - o
        lines[count] = line
        count += 1
        line += 1
        position = after + 1
        o = stop
    return DONE, count, line, position, o


class Transcoded(NamedTuple):
    """The records of some lines, up to one that is left to Python, or all."""

    data: NDArray[np.uint8]  # the records, one behind the other; the next call overwrites them
    lengths: NDArray[np.int64]  # (n,) bytes of each
    lines: NDArray[np.int64]  # (n,) which line each was, counted from 0
    done: int  # lines that are records now, or blank
    position: int  # where the next one begins
    is_left: bool  # whether that one is left


class KeyTree:
    """What keys.py knows of keys, none at first: memory that kernels fill."""

    def __init__(self) -> None:
        self.nodes = np.zeros(STATE, np.int64), np.empty(NODES * NODE, np.int64), np.empty(SLOTS, np.int64)
        self.keys = np.empty(KEY_BYTES, np.uint8)
        begin_keys(*self.nodes)


class Transcoder:
    """Makes the records that the codec would make of what json reads. Not safe for threads."""

    def __init__(self, codec: str, largest: int, *, tagged: bool) -> None:
        """codec: "msgpack" or "bipf"; largest: bytes of a record; tagged: what export wrote of others is left."""
        self._format = int(codec == "bipf"), int(tagged), largest
        self._tree = KeyTree()
        self._scratch = Scratch()
        self._lengths = np.empty(MOST_RECORDS, np.int64)
        self._lines = np.empty(MOST_RECORDS, np.int64)
        self._powers = powers()

    def transcode(self, data: bytearray, begin: int, end: int) -> Transcoded:
        """The records of the lines data[begin:end], which ends with a newline; SLACK bytes lie behind it.

        Of very many lines, only the first ones are done.
        """
        buffer = np.frombuffer(data, np.uint8)
        out = self._scratch.room(GROWTH * (end - begin) + SLACK)  # of which little is ever touched
        why, count, done, position, used = transcode(
            buffer, begin, end, out, *self._format, self._powers,
            *self._tree.nodes, self._tree.keys, self._lengths, self._lines,
        )  # fmt: skip
        return Transcoded(out[:used], self._lengths[:count], self._lines[:count], done, position, why == LEFT)
