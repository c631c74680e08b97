"""Lengths of time in texts, compiled: `76.5ms`, `1h2m3s`, as length_of_text in jitdb/common/times.py says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT, NUMBER, STRING
from jitdb.indexes.kinds.number_kernels import UNSURE

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I32, U8

_MOST = (1 << 63) - 1
_DIGITS = 18  # of a number that always fits 64 bits
_EXACT = 1 << 53
_SPACE, _DASH, _DOT, _ZERO = 32, 45, 46, 48
_D, _H, _I, _M, _N, _S, _U, _W = 100, 104, 105, 109, 110, 115, 117, 119
_MICRO = (0xC2, 0xB5)  # µ, and the Greek letter
_GREEK = (0xCE, 0xBC)
_SECOND = 1_000_000_000


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
def length_in(buf, at, end):
    """What a text is: ABSENT no length; NUMBER one of so many nanoseconds; or UNSURE."""
    none = np.int64(ABSENT), np.int64(0)
    negative = at < end and buf[np.uint64(at)] == _DASH
    at += np.int64(negative)
    if at >= end:
        return none
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
