"""Rows of CSV to records, compiled: one pass over a buffer of lines, every value written where the last one ended.

As the kernel of JSON's lines (json/kernels.py), it ends at what is not certain to be a record as csv, the rules of
cli/input/csv_rows.py and the codec would make it: a row that is no CSV, or no UTF-8, has more or fewer fields than are
named, goes on in another buffer, or has a number of which json_numbers is not sure. What begins as no number can, in a
column of numbers, or goes on as none can, is text there, and counted.

Whoever calls sees to it that a buffer ends with a newline, and SLACK bytes lie behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.fields.constants import SLACK
from jitdb.log.codecs.fields.located import Scratch
from jitdb.log.codecs.fields.shape_kernels import first_marked
from jitdb.log.codecs.fields.sixteen import word_at
from jitdb.log.codecs.json.heads import copy_words, put_bool, put_container_head, put_text_head, text_head_size
from jitdb.log.codecs.json.kernels import DONE, LEFT, MOST_RECORDS, Transcoded
from jitdb.log.codecs.json.numbers import powers, put_number
from jitdb.log.codecs.json.text import MINUS, NEWLINE, QUOTE, RETURN, character_size
from jitdb.log.codecs.rows.columns import NUMBER, TEXT, WORD, Column

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8, U64

_GROWTH: Final = 8  # bytes of records for one of CSV: where it is more, a pass ends early
_MOST_HEAD = 16  # bytes before a value, and of a number

_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_RETURNS = np.uint64(0x0D0D0D0D0D0D0D0D)
_QUOTES = np.uint64(0x2222222222222222)
_CASE = np.uint64(0x2020202020202020)
_TRUE, _FALSE = (np.uint64(int.from_bytes(text, "little")) for text in (b"true", b"false"))
_FOUR, _FIVE = (np.uint64((1 << 8 * size) - 1) for size in (4, 5))


@part
def field_end(buf, p, delimiters):
    """Where the field at `p`, which has no quotes around it, ends; -1 where it has no UTF-8.

    A borrow can spoil bytes behind the first that counts, never one before it.
    """
    while True:
        word = word_at(buf, p)
        stops = (
            ((word ^ delimiters) - _ONES) | ((word ^ _NEWLINES) - _ONES) | ((word ^ _RETURNS) - _ONES) | word
        ) & _HIGH
        if stops == 0:
            p += 8
            continue
        p += first_marked(stops)
        char = np.int64(buf[np.uint64(p)])
        if char < 128:
            return p
        size = character_size(buf, p, char)
        if size == 0:
            return np.int64(-1)
        p += size


@part
def quoted_end(buf, p, end):
    """The closing quote of the field that begins at `p`, behind the opening one, before `end`, -1 where there is none;
    how many quotes in it stand for one, and how many lines it ends."""
    left = np.int64(-1)
    doubled = np.int64(0)
    lines = np.int64(0)
    while p < end:
        word = word_at(buf, p)
        stops = (((word ^ _QUOTES) - _ONES) | ((word ^ _NEWLINES) - _ONES) | word) & _HIGH
        if stops == 0:
            p += 8
            continue
        p += first_marked(stops)
        char = np.int64(buf[np.uint64(p)])
        if char == NEWLINE:
            lines += 1
            p += 1
        elif char == QUOTE:
            if buf[np.uint64(p + 1)] != QUOTE:
                return p, doubled, lines
            doubled += 1
            p += 2
        else:
            size = character_size(buf, p, char)
            if size == 0:
                return left, doubled, lines
            p += size
    return left, doubled, lines


@part
def put_plain_text(buf, begin, size, out, o, bipf):
    """Write a text; where it ends."""
    head = text_head_size(size, bipf)
    put_text_head(out, o, size, bipf)
    copy_words(buf, begin, out, o + head, size)
    return o + head + size


@part
def put_quoted_text(buf, begin, stop, doubled, out, o, bipf):
    """Write a text in which so many pairs of quotes stand for one; where it ends."""
    size = stop - begin - doubled
    head = text_head_size(size, bipf)
    put_text_head(out, o, size, bipf)
    at = o + head
    p = begin
    while p < stop:
        char = buf[np.uint64(p)]
        out[np.uint64(at)] = char
        at += 1
        p += 2 if char == QUOTE else 1
    return at


@part
def word_of(buf, begin, size):
    """1 where a field is true, 0 where it is false, whatever its case; -1 where it is neither."""
    word = word_at(buf, begin) | _CASE
    if size == 4 and word & _FOUR == _TRUE:
        return 1
    return 0 if size == 5 and word & _FIVE == _FALSE else -1


@kernel
def transcode_rows(
    buf: U8, begin: int, end: int, line: int, out: U8, bipf: int, delimiter: int, keeps_empty: int, largest: int,
    powers: U64, kinds: I64, keys: U8, key_ends: I64, misfits: I64, first_misfits: I64, noted: I64, lengths: I64,
    lines: I64,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Write the records of the rows buf[begin:end] into `out`, one behind the other; see the head of this file.

    line:        the number of the one at `begin`
    keeps_empty: whether an empty field is one
    kinds, key_ends: of each column, what it holds, and where its encoded name ends in `keys`
    misfits, first_misfits: of each column, how many of its fields did not fit it so far, and the line of the first
    noted:       room for a number a column

    Fills, per record, `lengths` (bytes) and `lines` (the number of its first line, counted from 0 at `begin`).

    Gives why it ended (DONE, LEFT), how many records there are, how many lines were done, where the next one begins,
    and where the records end.
    """
    columns = kinds.shape[0]
    room = min(lengths.shape[0], lines.shape[0])
    limit = out.shape[0] - SLACK
    delimiters = np.uint64(delimiter) * _ONES
    is_bipf = bipf != 0
    count = 0
    done = 0
    o = np.int64(0)
    position = np.int64(begin)
    head_room = np.int64(1)
    if end + SLACK > buf.shape[0]:
        return LEFT, 0, 0, begin, 0
    while position < end and count < room:
        p = position
        char = np.int64(buf[np.uint64(p)])
        if char == NEWLINE or (char == RETURN and buf[np.uint64(p + 1)] == NEWLINE):  # a blank line
            position = p + (1 if char == NEWLINE else 2)
            done += 1
            continue
        at = o + head_room
        parts = np.int64(0)
        odd = np.int64(0)  # fields that do not fit
        more = np.int64(0)  # lines that end within it
        key = np.int64(0)
        fits = at + _MOST_HEAD < limit
        ended = False
        for column in range(columns):
            doubled = np.int64(0)
            if buf[np.uint64(p)] == QUOTE:
                first = p + 1
                stop, doubled, within = quoted_end(buf, first, end)
                more += within
                after = stop + 1
            else:
                first = p
                stop = field_end(buf, p, delimiters)
                after = stop
            if stop < 0:
                break
            size = stop - first
            key_size = key_ends[column] - key
            if at + key_size + size + _MOST_HEAD > limit:
                fits = False
                break
            if size > 0 or keeps_empty != 0:
                copy_words(keys, key, out, at, key_size)
                at += key_size
                parts += 1
                kind = kinds[column]
                is_text = kind == TEXT
                if kind == NUMBER:
                    lead = np.int64(buf[np.uint64(first)])
                    if lead == MINUS or 48 <= lead <= 57:
                        ends_at, number_end = put_number(buf, first, out, at, is_bipf, powers)
                        if ends_at < 0 or ends_at > stop:
                            break
                        is_text = ends_at < stop
                        if not is_text:
                            at = number_end
                    else:
                        is_text = True
                elif kind == WORD:
                    which = word_of(buf, first, size)
                    is_text = which < 0
                    if not is_text:
                        at = put_bool(out, at, which, is_bipf)
                if is_text:
                    if kind != TEXT:
                        noted[odd] = column
                        odd += 1
                    if doubled:
                        at = put_quoted_text(buf, first, stop, doubled, out, at, is_bipf)
                    else:
                        at = put_plain_text(buf, first, size, out, at, is_bipf)
            key = key_ends[column]
            char = np.int64(buf[np.uint64(after)])
            if column < columns - 1:
                if char != delimiter:
                    break
                p = after + 1
            elif char == NEWLINE:
                p = after + 1
                ended = True
            elif char == RETURN and buf[np.uint64(after + 1)] == NEWLINE:
                p = after + 2
                ended = True
        if not fits and count > 0:
            break
        if not ended or not fits:
            return LEFT, count, done, position, o
        at, head_room = put_container_head(out, o, head_room, at, parts, True, is_bipf)
        if at - o > largest:
            return LEFT, count, done, position, o
        for i in range(odd):
            column = noted[i]
            if misfits[column] == 0:
                first_misfits[column] = line + done
            misfits[column] += 1
        lengths[count] = at - o
        lines[count] = done
        count += 1
        done += more + 1
        position = p
        o = at
    return DONE, count, done, position, o


class RowTranscoder:
    """Makes the records of rows. Not safe for threads.

    misfits, first_misfits: int64, of each column, how many of its fields did not fit it, and the line of the first
    """

    def __init__(
        self, codec: str, largest: int, delimiter: str, columns: Sequence[Column], *, keeps_empty: bool
    ) -> None:
        """codec: "msgpack" or "bipf"; largest: bytes of a record; delimiter: of ASCII; keeps_empty: fields, too"""
        names = b"".join(column.name for column in columns)
        self._format = int(codec == "bipf"), ord(delimiter), int(keeps_empty), largest
        self._columns = (
            np.array([column.holds for column in columns], np.int64),
            np.frombuffer(names + bytes(SLACK), np.uint8),
            np.cumsum([len(column.name) for column in columns], dtype=np.int64),
        )
        self.misfits, self.first_misfits, self._noted = (np.zeros(len(columns), np.int64) for _ in range(3))
        self._scratch = Scratch()
        self._lengths = np.empty(MOST_RECORDS, np.int64)
        self._lines = np.empty(MOST_RECORDS, np.int64)
        self._powers = powers()

    def transcode(self, data: bytearray, begin: int, end: int, line: int) -> Transcoded:
        """The records of the rows data[begin:end], which ends with a newline and begins with this line; SLACK bytes lie
        behind it.

        Of very many lines, only the first ones are done.
        """
        out = self._scratch.room(_GROWTH * (end - begin) + SLACK)  # of which little is ever touched
        bipf, delimiter, keeps_empty, largest = self._format
        why, count, done, position, used = transcode_rows(
            np.frombuffer(data, np.uint8), begin, end, line, out, bipf, delimiter, keeps_empty, largest,
            self._powers, *self._columns, self.misfits, self.first_misfits, self._noted, self._lengths, self._lines,
        )  # fmt: skip
        return Transcoded(out[:used], self._lengths[:count], self._lines[:count], done, position, why == LEFT)
