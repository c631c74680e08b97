"""Lengths of time in texts, compiled: `76.5ms`, `1h2m3s`, `00:00:01.5`, `PT1.5S`, as length_of_text in
jitdb/common/times.py says it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT, NUMBER, STRING
from jitdb.indexes.kinds.kernels.numbers import UNSURE
from jitdb.indexes.kinds.kernels.time_text import read_fraction, two_digits

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I32, U8

_MOST = (1 << 63) - 1
_DIGITS = 18  # of a number that always fits 64 bits
_EXACT = 1 << 53
_SPACE, _DASH, _DOT, _ZERO = 32, 45, 46, 48
_D, _H, _I, _M, _N, _S, _U, _W = 100, 104, 105, 109, 110, 115, 117, 119
_MICRO = (0xC2, 0xB5)  # µ, and the Greek letter
_GREEK = (0xCE, 0xBC)
_COMMA, _COLON, _P, _T = 44, 58, 80, 84
_SECOND = 1_000_000_000
_WHOLE = 9  # digits of a number by a clock, or of ISO 8601
_PLACES = np.frombuffer(b"WDHMS", np.uint8)
_SECONDS = np.array([604_800, 86_400, 3_600, 60, 1])


@part
def is_small(char):
    return 97 <= char <= 122


@part
def unit_at(buf, at, end):
    """The nanoseconds of the unit that stands there, 0 for none, and its bytes."""
    first = np.int64(buf[np.uint64(at)]) if at < end else np.int64(0)
    second = np.int64(buf[np.uint64(at + 1)]) if at + 1 < end else np.int64(0)
    third = np.int64(buf[np.uint64(at + 2)]) if at + 2 < end else np.int64(0)
    unit, size = np.int64(0), np.int64(2)
    if second == _S and first == _N:
        unit = np.int64(1)
    elif second == _S and first == _U:
        unit = np.int64(1_000)
    elif second == _S and first == _M:
        unit = np.int64(1_000_000)
    elif (first == _MICRO[0] and second == _MICRO[1]) or (first == _GREEK[0] and second == _GREEK[1]):
        unit, size = np.int64(1_000 if third == _S else 0), np.int64(3)
    elif first == _M and second == _I and third == _N:
        unit, size = np.int64(60 * _SECOND), np.int64(3)
    else:
        size = np.int64(1)
        if first == _S:
            unit = np.int64(_SECOND)
        elif first == _M:
            unit = np.int64(60 * _SECOND)
        elif first == _H:
            unit = np.int64(3_600 * _SECOND)
        elif first == _D:
            unit = np.int64(86_400 * _SECOND)
        elif first == _W:
            unit = np.int64(604_800 * _SECOND)
    if at + size < end and is_small(np.int64(buf[np.uint64(at + size)])):
        unit = np.int64(0)
    return unit, size


@part
def whole_at(buf, at, end):
    """The number of up to nine digits that stands there, and where it ends; where it began if it is none."""
    first = at
    number = np.int64(0)
    while at < end and 0 <= np.int64(buf[np.uint64(at)]) - _ZERO <= 9 and at - first <= _WHOLE:
        number = number * 10 + np.int64(buf[np.uint64(at)]) - _ZERO
        at += 1
    return (np.int64(first) if at - first > _WHOLE else np.int64(at)), number


@part
def in_nanoseconds(seconds, nanoseconds):
    """As length_in gives it, of a length that is not negative."""
    if seconds > _MOST // _SECOND or (seconds == _MOST // _SECOND and nanoseconds > _MOST % _SECOND):
        return np.int64(ABSENT), np.int64(0)
    return np.int64(NUMBER), seconds * _SECOND + nanoseconds


@part
def length_by_clock(buf, at, end):
    """`00:00:01.5`, perhaps with days and a dot before: as length_in gives it."""
    none = np.int64(ABSENT), np.int64(0)
    first = at
    at, hours = whole_at(buf, at, end)
    days = np.int64(0)
    if at > first and at < end and buf[np.uint64(at)] == _DOT:
        first = at + 1
        days = hours
        at, hours = whole_at(buf, first, end)
    if at == first or at + 6 > end or buf[np.uint64(at)] != _COLON or buf[np.uint64(at + 3)] != _COLON:
        return none
    minutes, seconds = two_digits(buf, at + 1, end), two_digits(buf, at + 4, end)
    if minutes < 0 or minutes > 59 or seconds < 0 or seconds > 59:
        return none
    at, nanoseconds = read_fraction(buf, at + 6, end)
    if at != end:
        return none
    return in_nanoseconds(86_400 * days + 3_600 * hours + 60 * minutes + seconds, nanoseconds)


@part
def length_of_iso(buf, at, end):
    """`1DT2H3M4.5S`, what stands behind the P: as length_in gives it."""
    none = np.int64(ABSENT), np.int64(0)
    seconds = nanoseconds = np.int64(0)
    place = np.int64(-1)
    is_clock = False
    while at < end:
        if buf[np.uint64(at)] == _T and not is_clock:
            is_clock = True
            at += 1
        first = at
        at, number = whole_at(buf, at, end)
        if at == first or at >= end:
            return none
        has_fraction = buf[np.uint64(at)] == _DOT or buf[np.uint64(at)] == _COMMA
        if has_fraction:
            at, nanoseconds = read_fraction(buf, at, end)
            if at < 0 or at >= end:
                return none
        found = np.int64(-1)
        for each in range(_PLACES.shape[0]):
            if buf[np.uint64(at)] == _PLACES[each]:
                found = np.int64(each)
        if found <= place or (found >= 2) != is_clock or (has_fraction and found != 4):
            return none
        place = found
        seconds += number * _SECONDS[found]
        at += 1
    if place < 0:
        return none
    return in_nanoseconds(seconds, nanoseconds)


@part
def length_in_other_form(buf, at, end):
    """The same of what is not written with units."""
    if buf[np.uint64(at)] == _P:
        return length_of_iso(buf, at + 1, end)
    first = at
    while at < end and (buf[np.uint64(at)] == _DOT or 0 <= np.int64(buf[np.uint64(at)]) - _ZERO <= 9):
        at += 1
    if at == first or at >= end or buf[np.uint64(at)] != _COLON:
        return np.int64(ABSENT), np.int64(0)
    return length_by_clock(buf, first, end)


@part
def length_in(buf, at, end):
    """What a text is: ABSENT no length; NUMBER one of so many nanoseconds; or UNSURE."""
    none = np.int64(ABSENT), np.int64(0)
    negative = at < end and buf[np.uint64(at)] == _DASH
    at += np.int64(negative)
    if at >= end:
        return none
    held, length = length_in_other_form(buf, at, end)
    if held == NUMBER:
        return held, -length if negative else length
    total = np.int64(0)
    is_unsure = False
    while at < end:
        digits, count, behind, point = np.int64(0), np.int64(0), np.int64(0), False
        while at < end:
            char = np.int64(buf[np.uint64(at)])
            if char == _DOT and count > 0 and not point:
                point = True
            elif 0 <= char - _ZERO <= 9:
                count += 1
                behind += np.int64(point)
                if count <= _DIGITS:
                    digits = digits * 10 + char - _ZERO
            else:
                break
            at += 1
        if count == 0 or (point and behind == 0):
            return none
        at += np.int64(at < end and buf[np.uint64(at)] == _SPACE)
        unit, size = unit_at(buf, at, end)
        if unit == 0:
            return none
        at += size
        at += np.int64(at < end and buf[np.uint64(at)] == _SPACE)
        if count > _DIGITS or (point and digits > _EXACT):
            is_unsure = True
        elif point:
            ten = np.float64(1.0)
            for _ in range(behind):
                ten *= 10.0
            product = np.float64(digits) / ten * np.float64(unit)
            if product >= 9e18:
                is_unsure = True
            else:
                total += np.int64(np.rint(product))
        elif digits > _MOST // unit:
            is_unsure = True
        else:
            total += digits * unit
        if total < 0:
            is_unsure = True
            total = np.int64(0)
    if is_unsure:
        return np.int64(UNSURE), np.int64(0)
    return np.int64(NUMBER), -total if negative else total


@kernel
def read_lengths(buf: U8, start: I32, kind: U8, length: I32, number: F64) -> int:
    """Make of each text that is a length of time its seconds, or UNSURE, and of all else what is ABSENT.

    Gives how many are UNSURE.
    """
    unsure = 0
    for i in range(kind.shape[0]):
        held, nanoseconds = np.int64(ABSENT), np.int64(0)
        if kind[i] == STRING:
            at = np.int64(start[i])
            held, nanoseconds = length_in(buf, at, at + np.int64(length[i]))
        kind[i] = np.uint8(held)
        unsure += int(held == UNSURE)
        if held == NUMBER:
            number[i] = np.float64(nanoseconds) / 1e9
            length[i] = np.int32(0)
    return unsure
