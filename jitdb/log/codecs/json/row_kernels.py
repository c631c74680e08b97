"""Lines, and rows of CSV, as records of the codec json, compiled.

Lines are copied as they stand, without the blanks around them; the codec's locator says which are no JSON. Each field
of a row becomes text, or stays as it stands where it is JSON already. A pass ends before a row that is left to Python:
one that is no CSV, or no UTF-8, has more or fewer fields than are named, goes on in another buffer, or has a number of
which numbers.py is not sure. In a column of numbers, what is none is text, and counted.

The caller's buffer ends with a newline, and SLACK bytes lie behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.fields.constants import SLACK
from jitdb.log.codecs.fields.located import Scratch
from jitdb.log.codecs.fields.part_kernels import first_marked
from jitdb.log.codecs.fields.sixteen import newlines, trailing_zeros, word_at
from jitdb.log.codecs.json.numbers import copy_words, powers, read_number, short_number_end, store_word
from jitdb.log.codecs.json.text import (
    BACKSLASH,
    CLOSE_MAP,
    MINUS,
    NEWLINE,
    OPEN_MAP,
    QUOTE,
    RETURN,
    SPACE,
    TAB,
    character_size,
    past_blanks,
    plain_bytes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.common.kernels import I64, U8, U64

# What a column holds: text, numbers, true and false, JSON.
TEXT, NUMBER, WORD, JSON = range(4)
# Which of its empty fields are fields of the record: none, those in quotes, all.
NONE, QUOTED, ALL = range(3)

_MOST_RECORDS: Final = 1 << 15  # of a pass
_GROWTH: Final = 8  # bytes of records for one of CSV, and _LEAST more: where that is not enough, a pass ends early
_LEAST: Final = 1 << 14
_ESCAPE: Final = 6  # bytes that one byte of a text takes, at most: \u0001
_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_RETURNS = np.uint64(0x0D0D0D0D0D0D0D0D)
_QUOTES = np.uint64(0x2222222222222222)
_CASE = np.uint64(0x2020202020202020)
_TRUE, _FALSE = (np.uint64(int.from_bytes(text, "little")) for text in (b"true", b"false"))
_FOUR, _FIVE = (np.uint64((1 << 8 * size) - 1) for size in (4, 5))
_SHORT = np.zeros(32, np.uint8)  # the letter behind a backslash, of each control character that has one
_SHORT[[8, 9, 10, 12, 13]] = list(b"btnfr")
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


@part
def copy_line(buf, begin, end, out, o):
    """Write the line buf[begin:end] without the blanks around it; where it ends, `o` where it is blank."""
    begin = past_blanks(buf, begin)
    while end > begin:
        char = buf[np.uint64(end - 1)]
        if char != SPACE and char != TAB and char != RETURN:
            break
        end -= 1
    size = max(end - begin, np.int64(0))
    copy_words(buf, begin, out, o, size)
    return np.int64(o + size)


@kernel
def frame_lines(buf: U8, begin: int, end: int, out: U8, lengths: I64, lines: I64) -> tuple[int, int, int, int]:
    """Write the lines buf[begin:end], but for blank ones, into `out`, one behind the other.

    Fills, per record, `lengths` (bytes) and `lines` (the number of its line, counted from 0 at `begin`); `out` has as
    many bytes as the lines, and SLACK more. Gives how many records there are, how many lines were done, where the next
    one begins, and where the records end.
    """
    room = min(lengths.shape[0], lines.shape[0])
    count = 0
    done = 0
    o = np.int64(0)
    position = np.int64(begin)
    at = position
    while at < end and count < room:
        found = newlines(buf, at)
        while found != 0 and count < room:
            stop = at + np.int64(trailing_zeros(found))
            if stop >= end:
                break
            found &= found - np.uint64(1)
            after = copy_line(buf, position, stop, out, o)
            if after > o:
                lengths[count] = after - o
                lines[count] = done
                count += 1
                o = after
            done += 1
            position = stop + 1
        at += 64
    return count, done, position, o


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
    and how many lines it ends."""
    left = np.int64(-1)
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
                return p, lines
            p += 2
        else:
            size = character_size(buf, p, char)
            if size == 0:
                return left, lines
            p += size
    return left, lines


@part
def put_escape(out, o, char):
    """Write a quote, a backslash or a control character as a string of JSON has it; where it ends."""
    out[np.uint64(o)] = BACKSLASH
    letter = char if char >= SPACE else np.int64(_SHORT[char])
    if letter:
        out[np.uint64(o + 1)] = letter
        return np.int64(o + 2)
    out[np.uint64(o + 1)] = 117  # u
    out[np.uint64(o + 2)] = 48
    out[np.uint64(o + 3)] = 48
    out[np.uint64(o + 4)] = _HEX[char >> 4]
    out[np.uint64(o + 5)] = _HEX[char & 15]
    return np.int64(o + 6)


@part
def put_field(buf, p, stop, out, o, is_quoted, is_json):
    """Write the bytes of a field, in which a quote is doubled where it is quoted, as those of a string, or of JSON."""
    while p < stop:
        word = word_at(buf, p)
        store_word(out, o, word)
        plain = min(plain_bytes(word), stop - p)
        p += plain
        o += plain
        if p >= stop or plain == 8:
            continue
        char = np.int64(buf[np.uint64(p)])
        if char >= 128 or (is_json and char != QUOTE):
            out[np.uint64(o)] = char
            o += 1
        elif is_json:
            out[np.uint64(o)] = QUOTE
            o += 1
        else:
            o = put_escape(out, o, char)
        p += 2 if is_quoted and char == QUOTE else 1
    return np.int64(o)


@part
def put_string(buf, p, stop, out, o, is_quoted):
    """Write a field as a string; where it ends."""
    out[np.uint64(o)] = QUOTE
    o = put_field(buf, p, stop, out, o + 1, is_quoted, False)
    out[np.uint64(o)] = QUOTE
    return np.int64(o + 1)


@part
def number_stop(buf, p, stop, powers):
    """Where the number ends that the field buf[p:stop] begins with: `p` where it begins with none, -1 where Python has
    to say so."""
    char = np.int64(buf[np.uint64(p)])
    if char != MINUS and (char < 48 or char > 57):
        return np.int64(p)
    if short_number_end(buf, p) == stop:
        return np.int64(stop)
    after, _, _, _ = read_number(buf, p, powers)
    return np.int64(after if after <= stop else -1)


@part
def word_of(buf, begin, size):
    """1 where a field is true, 0 where it is false, whatever its case; -1 where it is neither."""
    word = word_at(buf, begin) | _CASE
    if size == 4 and word & _FOUR == _TRUE:
        return 1
    return 0 if size == 5 and word & _FIVE == _FALSE else -1


@kernel
def frame_rows(
    buf: U8, begin: int, end: int, line: int, out: U8, delimiter: int, kept: int, powers: U64,
    kinds: I64, keys: U8, key_ends: I64, misfits: I64, first_misfits: I64, noted: I64, lengths: I64, lines: I64,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Write the records of the rows buf[begin:end] into `out`, one behind the other; see the head of this file.

    line:        the number of the one at `begin`
    kept:        which empty fields are fields
    kinds, key_ends: of each column, what it holds, and where its name, `,"name":`, ends in `keys`
    misfits, first_misfits: of each column, how many of its fields did not fit it so far, and the line of the first
    noted:       room for a number a column

    Fills, per record, `lengths` (bytes) and `lines` (the number of its first line, counted from 0 at `begin`). Gives
    whether it ended at a row that is left, how many records there are, how many lines were done, where the next one
    begins, and where the records end.
    """
    columns = kinds.shape[0]
    room = min(lengths.shape[0], lines.shape[0])
    limit = out.shape[0] - SLACK
    delimiters = np.uint64(delimiter) * _ONES
    count = 0
    done = 0
    o = np.int64(0)
    position = np.int64(begin)
    while position < end and count < room:
        p = position
        char = np.int64(buf[np.uint64(p)])
        if char == NEWLINE or (char == RETURN and buf[np.uint64(p + 1)] == NEWLINE):  # a blank line
            position = p + (1 if char == NEWLINE else 2)
            done += 1
            continue
        at = o
        odd = np.int64(0)  # fields that do not fit
        more = np.int64(0)  # lines that end within it
        key = np.int64(0)
        has_room = True
        ended = False
        for column in range(columns):
            is_quoted = buf[np.uint64(p)] == QUOTE
            if is_quoted:
                first = p + 1
                stop, within = quoted_end(buf, first, end)
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
            if at + key_size + _ESCAPE * size + SLACK > limit:
                has_room = False
                break
            if size > 0 or kept == ALL or (is_quoted and kept == QUOTED):
                copy_words(keys, key, out, at, key_size)
                at += key_size
                kind = kinds[column]
                fits = True
                if kind == JSON:
                    at = put_field(buf, first, stop, out, at, is_quoted, True)
                elif kind == NUMBER:
                    number_end = number_stop(buf, first, stop, powers)
                    if number_end < 0:
                        break
                    fits = number_end == stop and size > 0
                    if fits:
                        copy_words(buf, first, out, at, size)
                        at += size
                elif kind == WORD:
                    which = word_of(buf, first, size)
                    fits = which >= 0
                    if fits:
                        store_word(out, at, _TRUE if which else _FALSE)
                        at += 4 if which else 5
                if kind == TEXT or not fits:
                    at = put_string(buf, first, stop, out, at, is_quoted)
                if not fits:
                    noted[odd] = column
                    odd += 1
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
        if not ended:
            return int(has_room or count == 0), count, done, position, o
        if at == o:
            at += 1
        out[np.uint64(o)] = OPEN_MAP  # in place of the first comma
        out[np.uint64(at)] = CLOSE_MAP
        at += 1
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
    return 0, count, done, position, o


class Framed(NamedTuple):
    """The records of some lines, up to one that is left to Python, or all."""

    data: NDArray[np.uint8]  # the records, one behind the other; the next call overwrites them
    lengths: NDArray[np.int64]  # (n,) bytes of each
    lines: NDArray[np.int64]  # (n,) which line each was, counted from 0
    done: int  # lines that are records now, or blank
    position: int  # where the next one begins
    is_left: bool  # whether that one is left


class LineFramer:
    """Makes records of lines as they stand. Not safe for threads."""

    def __init__(self) -> None:
        self._scratch = Scratch()
        self._lengths, self._lines = (np.empty(_MOST_RECORDS, np.int64) for _ in range(2))

    def frame(self, data: bytearray, begin: int, end: int) -> Framed:
        """The lines data[begin:end], which ends with a newline; SLACK bytes lie behind it. Of very many, the first."""
        out = self._scratch.room(end - begin + SLACK)
        count, done, position, used = frame_lines(
            np.frombuffer(data, np.uint8), begin, end, out, self._lengths, self._lines
        )
        return Framed(out[: used + SLACK], self._lengths[:count], self._lines[:count], done, position, False)


class RowFramer:
    """Makes records of rows of CSV. Not safe for threads.

    misfits, first_misfits: int64, of each column, how many of its fields did not fit it, and the line of the first
    """

    def __init__(self, delimiter: str, columns: Sequence[tuple[str, int]], kept: int) -> None:
        """delimiter: of ASCII; columns: of each its name as JSON, and what it holds; kept: which empty fields are"""
        names = [f",{name}:".encode() for name, _ in columns]
        self._format = ord(delimiter), kept, powers()
        self._columns = (
            np.array([kind for _, kind in columns], np.int64),
            np.frombuffer(b"".join(names) + bytes(SLACK), np.uint8),
            np.cumsum([len(name) for name in names], dtype=np.int64),
        )
        self.misfits, self.first_misfits, self._noted = (np.zeros(len(columns), np.int64) for _ in range(3))
        self._scratch = Scratch()
        self._lengths, self._lines = (np.empty(_MOST_RECORDS, np.int64) for _ in range(2))

    def frame(self, data: bytearray | bytes, begin: int, end: int, line: int) -> Framed:
        """The rows data[begin:end], which ends with a newline and begins with this line; SLACK bytes lie behind it. Of
        very many lines, the first.
        """
        out = self._scratch.room(_GROWTH * (end - begin) + _LEAST)  # of which little is ever touched
        left, count, done, position, used = frame_rows(
            np.frombuffer(data, np.uint8), begin, end, line, out, *self._format, *self._columns,
            self.misfits, self.first_misfits, self._noted, self._lengths, self._lines,
        )  # fmt: skip
        return Framed(out[:used], self._lengths[:count], self._lines[:count], done, position, left != 0)
