"""Columns to records, compiled: every column is written by itself, at a place that each row has for its next value.

A row's place has room for all that it may hold; in the end `finish_rows` gives each record its head, and lets no room
between them. Where a value has no encoding, or may have none, a kernel says so, and the rows are left to Python.

A column's values are with its key, as the codec encodes it, and `there`, which says in which rows it has one. Whoever
calls sees to it that SLACK bytes lie behind the key, behind the texts, and behind the room of each row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.fields.constants import SLACK
from jitdb.log.codecs.json.heads import copy_words, put_bool, put_container_head, put_text_head, text_head_size
from jitdb.log.codecs.json.numbers import put_double, put_integer

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I64, U8, U64, Bools

NUMBER_BYTES: Final = 9  # of one, or of true and false, at most
TIME_BYTES: Final = 32
HEAD_BYTES: Final = 5  # of a text or a map, at most


@part
def put_key(key, out, cursors, counts, row):
    """Write the key of the row's next value; where that begins."""
    at = cursors[row]
    size = key.shape[0] - SLACK
    copy_words(key, 0, out, at, size)
    counts[row] += 1
    return at + size


@kernel
def put_integers(
    there: Bools, sizes: U64, negative: Bools, key: U8, out: U8, cursors: I64, counts: I64, bipf: int
) -> bool:
    """Write integers by their sizes, without a sign. Gives whether all could be."""
    for row in range(there.shape[0]):
        if there[row]:
            at = put_integer(out, put_key(key, out, cursors, counts, row), negative[row], sizes[row], bipf != 0)
            if at < 0:
                return False
            cursors[row] = at
    return True


@kernel
def put_doubles(there: Bools, values: F64, key: U8, out: U8, cursors: I64, counts: I64, bipf: int) -> bool:
    """Write doubles. Gives whether all could be."""
    for row in range(there.shape[0]):
        if there[row]:
            value = values[row]
            if bipf != 0 and value - value != 0.0:
                return False
            cursors[row] = put_double(out, put_key(key, out, cursors, counts, row), value, bipf != 0)
    return True


@kernel
def put_bools(there: Bools, values: Bools, key: U8, out: U8, cursors: I64, counts: I64, bipf: int) -> None:
    """Write true and false."""
    for row in range(there.shape[0]):
        if there[row]:
            at = put_key(key, out, cursors, counts, row)
            cursors[row] = put_bool(out, at, np.int64(values[row]), bipf != 0)


@kernel
def put_texts(
    there: Bools, ends: I64, texts: U8, is_encoded: int, key: U8, out: U8, cursors: I64, counts: I64, bipf: int
) -> None:
    """Write texts; those of row i lie behind ends[i], up to ends[i + 1]. With `is_encoded` these are whole values."""
    for row in range(there.shape[0]):
        if there[row]:
            at = put_key(key, out, cursors, counts, row)
            size = ends[row + 1] - ends[row]
            if is_encoded == 0:
                put_text_head(out, at, size, bipf != 0)
                at += text_head_size(size, bipf != 0)
            copy_words(texts, ends[row], out, at, size)
            cursors[row] = at + size


@part
def date_of(days):
    """Year, month and day that so many days behind 1970-01-01 are, from the year 0 on: years here begin in March."""
    days += 719_468  # since the first of March of the year 0
    cycle = days // 146_097  # of 400 years
    days -= cycle * 146_097
    years = (days - days // 1_460 + days // 36_524 - days // 146_096) // 365
    days -= 365 * years + years // 4 - years // 100
    months = (5 * days + 2) // 153
    is_next = np.int64(months > 9)
    return 400 * cycle + years + is_next, months + 3 - 12 * is_next, days - (153 * months + 2) // 5 + 1


@part
def put_digits(out, at, number, count):
    """Write a number with so many digits; where it ends."""
    for i in range(count - 1, -1, -1):
        out[np.uint64(at + i)] = 48 + number % 10
        number //= 10
    return at + count


@kernel
def put_times(
    there: Bools, values: I64, per_second: int, digits: int, has_zone: int,
    key: U8, out: U8, cursors: I64, counts: I64, bipf: int,
) -> bool:  # fmt: skip
    """Write instants since 1970 as text of RFC 3339, so many a second, which are so many digits; those with a zone are
    in UTC, and end before thousandths that are 0. Gives whether all are of the years 0 to 9999.
    """
    for row in range(there.shape[0]):
        if there[row]:
            seconds = values[row] // per_second
            rest = values[row] - seconds * per_second
            shown = np.int64(digits)
            while shown > 0 and rest % 1000 == 0:
                rest //= 1000
                shown -= 3
            size = 19 + (shown + 1 if shown else 0) + (1 if has_zone else 0)
            days = seconds // 86_400
            seconds -= days * 86_400
            if days < -719_528 or days >= 2_932_897:
                return False
            year, month, day = date_of(days)
            at = put_key(key, out, cursors, counts, row)
            put_text_head(out, at, size, bipf != 0)
            at = put_digits(out, at + text_head_size(size, bipf != 0), year, 4)
            out[np.uint64(at)] = 45
            at = put_digits(out, at + 1, month, 2)
            out[np.uint64(at)] = 45
            at = put_digits(out, at + 1, day, 2)
            out[np.uint64(at)] = 84
            at = put_digits(out, at + 1, seconds // 3600, 2)
            out[np.uint64(at)] = 58
            at = put_digits(out, at + 1, seconds // 60 % 60, 2)
            out[np.uint64(at)] = 58
            at = put_digits(out, at + 1, seconds % 60, 2)
            if shown:
                out[np.uint64(at)] = 46
                at = put_digits(out, at + 1, rest, shown)
            if has_zone:
                out[np.uint64(at)] = 90
                at += 1
            cursors[row] = at
    return True


@kernel
def finish_rows(
    starts: I64, cursors: I64, counts: I64, rows: U8, out: U8, lengths: I64, bipf: int, largest: int
) -> int:
    """Write the records of rows, whose values lie at `starts`, up to `cursors`, into `out`, one behind the other.

    Gives the bytes of all; -1 where one has more than `largest`.
    """
    o = np.int64(0)
    room = np.int64(1)
    for row in range(starts.shape[0]):
        size = cursors[row] - starts[row]
        copy_words(rows, starts[row], out, o + room, size)
        stop, room = put_container_head(out, o, room, o + room + size, counts[row], True, bipf != 0)
        lengths[row] = stop - o
        if stop - o > largest:
            return -1
        o = stop
    return o
