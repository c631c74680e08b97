"""Kernels of columns: the numbers that texts spell, the smallest numbers, the earliest times, and the extremes of each
zone.

Which number a text spells is defined by number_of_text in jitdb/common/values.py.

What time a value is (text, a number, or a timestamp of msgpack) is defined by jitdb/common/times.py; here that is done
for whole columns. A time is nanoseconds since 1970, as a pair as numbers are (jitdb.common.values): whole nanoseconds
of 64 bits, or beyond them (before 1677, after 2262) a double.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT, EXTENSION, NULL, NUMBER, STRING
from jitdb.common.zone_kernels import ahead_by_clock
from jitdb.indexes.kinds.kernels.seen import MICROSECONDS, MILLISECONDS, NANOSECONDS, OTHERS, SECONDS, TEXTS, ZONELESS
from jitdb.indexes.kinds.kernels.time_text import NO_TIME, WHOLE, days_before_date, days_in_month, read_time
from jitdb.log.codecs.json.numbers import LEAST_POWER, MOST_POWER, fits_word, nearest_double, split

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I16, I32, I64, U8, U32, U64

UNSURE = 254  # no kind: a text that spells a number, which only Python reads exactly

_BILLION = 1_000_000_000
_FIRST_DATED, _END_DATED = 19700101e6, 22000101e6  # bounds of numbers that may be dates
_MOST = (1 << 63) - 1

_KEPT = 19  # digits that always fit 64 bits
_FAR_POWER = 100_000  # of ten: what is written larger is as large
_EXACT = np.uint64(1 << 53)
_TEN = np.uint64(10)
_NO_BITS = np.uint64(0)


@part
def double_of(digits, power, is_cut, powers):
    """The bits of the double nearest to digits * 10**power; 0 where that is not certain. `is_cut`: more digits follow,
    so it is certain where the next number of as many digits has the same double.
    """
    if digits <= _EXACT and -22 <= power <= 22 and not is_cut:
        ten = np.uint64(powers[np.uint64(2 * (MOST_POWER - LEAST_POWER + 1) + abs(power))]).view(np.float64)
        value = np.float64(digits) / ten if power < 0 else np.float64(digits) * ten
        return np.float64(value).view(np.uint64)
    if power < LEAST_POWER or power > MOST_POWER:
        return _NO_BITS
    bits = nearest_double(digits, power, powers)
    if is_cut and nearest_double(digits + np.uint64(1), power, powers) != bits:
        return _NO_BITS
    return bits


@part
def spelled_number(buf, at, end, powers):
    """What the text from `at` to `end` spells: STRING no number; NUMBER the pair that follows; or UNSURE."""
    none = np.int64(STRING), 0.0, np.int64(0)
    if at == end or np.int64(buf[np.uint64(end - 1)]) - 48 > 9 or np.int64(buf[np.uint64(end - 1)]) < 48:
        return none
    sign = np.int64(buf[np.uint64(at)])
    negative = sign == 45
    if negative or sign == 43:
        at += 1
    first = at
    word = np.uint64(0)  # the digits before the point, modulo 2**64
    digits = np.uint64(0)  # those that count, up to _KEPT of them
    kept = np.int64(0)
    power = np.int64(0)
    is_cut = False
    point = np.int64(-1)
    while at < end:
        char = np.int64(buf[np.uint64(at)])
        if char == 46 and point < 0:
            point = at
        elif 48 <= char <= 57:
            digit = np.uint64(char - 48)
            if point < 0:
                word = word * _TEN + digit
            if kept < _KEPT:
                digits = digits * _TEN + digit
                kept += np.int64(digits != 0)
                power -= np.int64(point >= 0)
            else:
                is_cut |= char != 48
                power += np.int64(point < 0)
        else:
            break
        at += 1
    whole = (at if point < 0 else point) - first
    if whole == 0 or (buf[np.uint64(first)] == 48 and whole > 1) or point + 1 == at:
        return none
    if at == end and point < 0 and fits_word(word, whole, buf[np.uint64(first)], negative):
        hi, lo = split(True, negative, word)
        return np.int64(NUMBER), hi, lo
    if at < end:
        if np.int64(buf[np.uint64(at)]) | 32 != 101:
            return none
        at += 1
        falls = np.int64(buf[np.uint64(at)]) == 45
        if falls or np.int64(buf[np.uint64(at)]) == 43:
            at += 1
        exponent = np.int64(0)
        while at < end:
            digit_of_it = np.int64(buf[np.uint64(at)]) - 48
            if digit_of_it < 0 or digit_of_it > 9:
                return none
            exponent = min(exponent * 10 + digit_of_it, np.int64(_FAR_POWER))
            at += 1
        power += -exponent if falls else exponent
    bits = double_of(digits, power, is_cut, powers) if digits != 0 else _NO_BITS
    if digits != 0 and bits == 0:
        return np.int64(UNSURE), 0.0, np.int64(0)
    hi, lo = split(False, negative, bits)
    return np.int64(NUMBER), hi, lo


@kernel
def read_spelled(buf: U8, start: I32, powers: U64, kind: U8, length: I32, number: F64) -> tuple[int, int]:
    """Make of each text that spells a number that number, or UNSURE; `powers` are those of codecs/json/numbers.py.

    Gives how many spell one, and how many of these are UNSURE.
    """
    found = 0
    unsure = 0
    for i in range(kind.shape[0]):
        if kind[i] == STRING:
            at = np.int64(start[i])
            held, hi, lo = spelled_number(buf, at, at + np.int64(length[i]), powers)
            if held != STRING:
                kind[i] = np.uint8(held)
                found += 1
            if held == NUMBER:
                number[i] = hi
                length[i] = np.int32(lo)
            elif held == UNSURE:
                unsure += 1
    return found, unsure


@part
def read_big_endian(buf, at, size):
    found = np.uint64(0)
    for i in range(size):
        found = (found << np.uint64(8)) | np.uint64(buf[np.uint64(at + i)])
    return found


@part
def read_extension(buf, at, size):
    """A timestamp of msgpack, behind the byte of its code: as read_time gives it."""
    nothing = NO_TIME, np.int64(0), np.int64(0), np.int64(OTHERS)
    if size < 1 or buf[np.uint64(at)] != 255:
        return nothing
    if size == 5:
        return WHOLE, np.int64(read_big_endian(buf, at + 1, 4)), np.int64(0), np.int64(0)
    if size == 9:
        word = read_big_endian(buf, at + 1, 8)
        return WHOLE, np.int64(word & np.uint64((1 << 34) - 1)), np.int64(word >> np.uint64(34)), np.int64(0)
    if size == 13:
        nanoseconds = np.int64(read_big_endian(buf, at + 1, 4))
        return WHOLE, np.int64(read_big_endian(buf, at + 5, 8)), nanoseconds, np.int64(0)
    return nothing


@part
def unit_of(size, unit):
    """Nanoseconds in the unit of a number of this size, and its bit: 0 is told by the size, 1 to 4 are s to ns."""
    if unit == 1 or (unit == 0 and size < 1e11):
        return np.int64(_BILLION), np.int64(SECONDS)
    if unit == 2 or (unit == 0 and size < 1e14):
        return np.int64(1_000_000), np.int64(MILLISECONDS)
    if unit == 3 or (unit == 0 and size < 1e17):
        return np.int64(1_000), np.int64(MICROSECONDS)
    return np.int64(1), np.int64(NANOSECONDS)


@part
def read_digits(value, rest, unit):
    """The number `20151201103000`, or 20151201103000123 with milliseconds, in the unit 0: as read_time gives it."""
    nothing = NO_TIME, np.int64(0), np.int64(0), np.int64(0)
    is_long = value >= 1e15
    if unit != 0 or not (_FIRST_DATED <= value < _END_DATED or _FIRST_DATED * 1e3 <= value < _END_DATED * 1e3):
        return nothing
    floor = np.floor(value)
    digits = np.int64(floor) + rest
    nanoseconds = np.int64(np.rint((value - floor) * 1e9))
    if is_long:
        nanoseconds += digits % 1000 * 1_000_000
        digits //= 1000
    date, clock = digits // 1_000_000, digits % 1_000_000
    year, month, day = date // 10_000, date // 100 % 100, date % 100
    hour, minute, second = clock // 10_000, clock // 100 % 100, clock % 100
    if month < 1 or month > 12 or day < 1 or day > days_in_month(year, month):
        return nothing
    if hour > 23 or minute > 59 or second > 60:
        return nothing
    of_day = 3600 * hour + 60 * minute + second
    return WHOLE, 86_400 * days_before_date(year, month, day) + of_day, nanoseconds, np.int64(TEXTS | ZONELESS)


@part
def split_nanoseconds(whole):
    """Nanoseconds as the pair of a number: the nearest double, and what is left."""
    hi = np.float64(whole)
    if hi >= 9223372036854775808.0:  # the nearest double to what is just below it
        return hi, (whole - np.int64(_MOST)) - 1
    return hi, whole - np.int64(hi)


@kernel
def least_numbers(
    buf: U8, kind: U8, start: I32, length: I32, number: F64, unit: int, begins: I64, aheads: I64, more: int,
    out_hi: F64, out_lo: I16,
) -> int:  # fmt: skip
    """The time that each record holds in a field: hi and lo, or NaN and 0 where it holds none. With `more`, the earlier
    of that and of what `out_hi` and `out_lo` have already. `unit`: 0 is told by the size, 1 to 4 are s, ms, us, ns; -1:
    not times are looked for, but numbers, as they are. `begins`, `aheads`: when the clocks that wrote times without a
    zone were set (zones.py); empty: they are UTC, as is a date alone (of ten bytes).

    Gives the bits of seen.py.
    """
    seen = np.int64(0)
    for i in range(kind.shape[0]):
        best = np.nan
        rest = np.int64(0)
        if more:
            best = out_hi[i]
            rest = np.int64(out_lo[i])
        held = kind[i]
        if held != ABSENT and held != NULL:
            hi = np.nan
            lo = np.int64(0)
            if unit < 0:
                if held == NUMBER:
                    hi = number[i]
                    lo = np.int64(length[i])
                else:
                    seen |= np.int64(OTHERS)
            else:
                is_time = np.int64(NO_TIME)
                seconds = nanoseconds = np.int64(0)
                bits = np.int64(OTHERS)
                if held == NUMBER:
                    is_time, seconds, nanoseconds, bits = read_digits(number[i], np.int64(length[i]), unit)
                elif held == STRING:
                    at = np.int64(start[i])
                    is_time, seconds, nanoseconds, bits = read_time(buf, at, at + np.int64(length[i]))
                elif held == EXTENSION:
                    is_time, seconds, nanoseconds, bits = read_extension(buf, np.int64(start[i]), np.int64(length[i]))
                seen |= bits
                value = number[i]
                if is_time == WHOLE:
                    is_day = held == STRING and length[i] == 10
                    if begins.shape[0] > 0 and bits & np.int64(ZONELESS) and not is_day:
                        seconds -= ahead_by_clock(seconds, begins, aheads)
                    if -9_223_372_036 <= seconds < 9_223_372_036:
                        hi, lo = split_nanoseconds(seconds * _BILLION + nanoseconds)
                    else:
                        hi = np.float64(seconds) * 1e9
                elif held == NUMBER and value == value:
                    factor, bit = unit_of(abs(value), unit)
                    seen |= bit
                    most = np.int64(_MOST) // factor
                    floor = np.floor(value)
                    part_of_one = value - floor
                    if -9223372036854775808.0 <= floor < 9223372036854775808.0:
                        units = np.int64(floor) + np.int64(length[i])
                        if -most <= units < most:
                            beyond = np.int64(np.rint(part_of_one * np.float64(factor)))
                            hi, lo = split_nanoseconds(units * factor + beyond)
                        else:
                            hi = np.float64(units) * np.float64(factor)
                    else:
                        hi = value * np.float64(factor)
            if hi == hi and (best != best or hi < best or (hi == best and lo < rest)):
                best = hi
                rest = lo
        out_hi[i] = best
        out_lo[i] = np.int16(rest)
    return seen


@kernel
def measure_zones(hi: F64, lo: I16, zone: int, lowest: F64, highest: F64) -> tuple[float, float, bool, bool]:
    """Fill the extremes of each `zone` records: the smallest hi, -inf where a record has none, and the largest, -inf
    where none has one.

    Gives the smallest and largest hi of all, inf and -inf where there is none, whether any rest is not 0, and whether
    all numbers are whole. `lo` is empty where all rests are 0.
    """
    low = np.inf
    high = -np.inf
    rests = False
    whole = True
    for number in range(lowest.shape[0]):
        least = np.inf
        most = -np.inf
        lacks = False
        for i in range(number * zone, min((number + 1) * zone, hi.shape[0])):
            value = hi[i]
            if value == value:
                least = min(least, value)
                most = max(most, value)
                whole &= value == np.floor(value) and not np.isinf(value)
            else:
                lacks = True
        lowest[number] = -np.inf if lacks else least
        highest[number] = most
        low = min(low, least)
        high = max(high, most)
    for i in range(lo.shape[0]):
        rests |= lo[i] != 0
    return low, high, rests, whole


@part
def stands_after(key, rest, seq, other_key, other_rest, other_seq):
    """Whether one number, its rest, and then the record come after others."""
    if key != other_key:
        return key > other_key
    if rest != other_rest:
        return rest > other_rest
    return seq > other_seq


@kernel
def settle(keys: F64, rests: I16, seqs: U32, sign: int, most: int) -> bool:
    """Sort records, mostly in order, by number, rest, and seq; in place, by at most so many steps.

    sign: -1: of equal numbers the largest seq is first
    False: it was given up; the records are in some other order.
    """
    for i in range(1, keys.shape[0]):
        key, rest, seq = keys[i], np.int64(rests[i]), np.int64(seqs[i])
        j = i
        while j > 0 and stands_after(
            keys[j - 1], np.int64(rests[j - 1]), sign * np.int64(seqs[j - 1]), key, rest, sign * seq
        ):
            keys[j], rests[j], seqs[j] = keys[j - 1], rests[j - 1], seqs[j - 1]
            j -= 1
        keys[j], rests[j], seqs[j] = key, rest, seq
        most -= i - j
        if most < 0:
            return False
    return True


_MOST_PACKED = 2.0**62  # differences of smaller numbers fit 64 bits


@part
def as_whole(hi, lo, i, places):
    """The number times `places`, as a whole number, and whether dividing that gives the number back."""
    value = hi[i] * places
    if not -_MOST_PACKED < value < _MOST_PACKED:
        return np.int64(0), False
    if places == 1:
        rest = np.int64(lo[i]) if lo.shape[0] > 0 else np.int64(0)
        whole = np.int64(value) + rest
        return whole, np.float64(whole) == hi[i] and whole - np.int64(np.float64(whole)) == rest and not is_minus(hi[i])
    whole = np.int64(np.rint(value))
    return whole, np.float64(whole) / places == hi[i] and not is_minus(hi[i])


@part
def is_minus(value):
    """Whether it is minus zero, which no whole number is."""
    return value == 0 and np.signbit(value)


@kernel
def measure_numbers(hi: F64, lo: I16, places: int, found: I64) -> bool:
    """Whether every number but NaN, times `places`, is whole, and comes back when it is divided.

    Fills `found`: the smallest and the largest of these whole numbers; whether any number is NaN; and the greatest of
    10**9, 10**6, 10**3 and 1 that divides what each is above the smallest. `lo` is empty if all rests are 0.
    """
    low = np.int64(_MOST)
    high = np.int64(-_MOST)
    gaps = np.int64(0)
    step = np.int64(_BILLION)
    first = np.int64(0)
    for i in range(hi.shape[0]):
        if hi[i] != hi[i]:
            gaps = 1
            continue
        whole, is_exact = as_whole(hi, lo, i, places)
        if not is_exact:
            return False
        if low > high:
            first = whole
        low = min(low, whole)
        high = max(high, whole)
        while step > 1 and (whole - first) % step != 0:
            step //= 1000
    found[0] = low
    found[1] = high
    found[2] = gaps
    found[3] = step
    return True


@kernel
def pack_numbers(hi: F64, lo: I16, places: int, low: int, step: int, none: int, codes: U32) -> None:
    """Set codes[i] to how many steps the number is above the smallest, to `none` if it is NaN."""
    for i in range(hi.shape[0]):
        if hi[i] != hi[i]:
            codes[i] = none
        else:
            whole, _ = as_whole(hi, lo, i, places)
            codes[i] = whole - low if step == 1 else (whole - low) // step


@kernel
def unpack_numbers(codes: U32, none: int, low: int, step: int, divides: int, hi: F64, lo: I16) -> None:
    """Compute the numbers from their codes (pack_numbers). `divides`: `step` divides them, and is no step."""
    for i in range(codes.shape[0]):
        code = np.int64(codes[i])
        whole = low + code if divides else low + step * code
        number = np.float64(whole)
        hi[i] = np.nan if code == none else number / step if divides else number
        if lo.shape[0] > 0:
            lo[i] = 0 if code == none else whole - np.int64(number)
