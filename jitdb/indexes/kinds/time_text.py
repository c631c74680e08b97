"""Times in text, for kernels: jitdb/common/times.py says what is one."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitdb.common.kernels import part
from jitdb.indexes.kinds.seen import OTHERS, TEXTS, ZONELESS

NO_TIME = 0  # what a read time is: none, or whole nanoseconds
WHOLE = 1

_LEAST_NAMED = 16  # characters: 1/Dec/2015:10:30


def _words(names: str) -> Any:
    return np.array([int.from_bytes(name.encode(), "big") for name in names.split()])


_MONTHS = _words("jan feb mar apr may jun jul aug sep oct nov dec")
_WEEKDAYS = _words("mon tue wed thu fri sat sun")
_ZONES = _words("utc gmt")
_DATE = np.frombuffer(b"/Date(", np.uint8)


@part
def word_of(buf, at):
    """Three letters as a number, small ones for capitals."""
    a, b, c = np.int64(buf[np.uint64(at)]), np.int64(buf[np.uint64(at + 1)]), np.int64(buf[np.uint64(at + 2)])
    return ((a | 32) << 16) | ((b | 32) << 8) | (c | 32)


@part
def place_of_word(word, words):
    """Where a word of three letters stands among others; -1 where it is none of them."""
    for i in range(words.shape[0]):
        if words[i] == word:
            return np.int64(i)
    return np.int64(-1)


@part
def two_digits(buf, at, end):
    """The number that two digits make; -1 where there are none."""
    if at + 2 > end:
        return np.int64(-1)
    tens = np.int64(buf[np.uint64(at)]) - 48
    ones = np.int64(buf[np.uint64(at + 1)]) - 48
    if tens < 0 or tens > 9 or ones < 0 or ones > 9:
        return np.int64(-1)
    return 10 * tens + ones


@part
def is_zone_name(buf, at, end):
    """Whether UTC or GMT stands here."""
    return end - at == 3 and place_of_word(word_of(buf, at), _ZONES) >= 0


@part
def is_local_zone(buf, at, end):
    """Whether the name of a zone stands here that means other things in other places: CET, EST, MSK. Three to five
    letters in capitals behind a blank."""
    if not 3 <= end - at <= 5 or buf[np.uint64(at - 1)] != 32:
        return False
    are_capitals = True
    for place in range(at, end):
        are_capitals &= 65 <= buf[np.uint64(place)] <= 90
    return are_capitals


@part
def days_before_date(year, month, day):
    """Days from 1970 to a date of the Gregorian calendar, from the year 0 on."""
    years = year - (1 if month < 3 else 0) + 400  # which begin in March; none is negative
    months = (month + 9) % 12
    leaps = years // 4 - years // 100 + years // 400
    return 365 * years + leaps + (153 * months + 2) // 5 + day - 1 - 719_468 - 146_097


@part
def days_in_month(year, month):
    if month == 2:
        return np.int64(29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28)
    return np.int64(30 if month == 4 or month == 6 or month == 9 or month == 11 else 31)


@part
def read_offset(buf, at, end):
    """Seconds by which a zone `+01:00`, `+0100` or `+01` is ahead of UTC; 100,000 where it is none of these."""
    bad = np.int64(100_000)
    sign = np.int64(buf[np.uint64(at)])
    if sign != 43 and sign != 45:
        return bad
    hours = two_digits(buf, at + 1, end)
    minutes = np.int64(0)
    at += 3
    if at < end:
        if buf[np.uint64(at)] == 58:
            at += 1
        minutes = two_digits(buf, at, end)
        at += 2
    if at != end or hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return bad
    return (3600 * hours + 60 * minutes) * np.int64(-1 if sign == 45 else 1)


@part
def read_clock(buf, at, end):
    """The time of day at `at`: where it ends, -1 where there is none; its seconds, and nanoseconds beyond them."""
    none = np.int64(-1), np.int64(0), np.int64(0)
    hour, minute = two_digits(buf, at, end), two_digits(buf, at + 3, end)
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or buf[np.uint64(at + 2)] != 58:
        return none
    seconds = 3600 * hour + 60 * minute
    nanoseconds = np.int64(0)
    at += 5
    if at < end and buf[np.uint64(at)] == 58:
        second = two_digits(buf, at + 1, end)
        if second < 0 or second > 60:
            return none
        seconds += second
        at += 3
        if at < end and (buf[np.uint64(at)] == 46 or buf[np.uint64(at)] == 44):
            at += 1
            first, scale = at, np.int64(100_000_000)
            while at < end:
                digit = np.int64(buf[np.uint64(at)]) - 48
                if digit < 0 or digit > 9:
                    break
                nanoseconds += digit * scale
                scale //= 10
                at += 1
            if at == first:
                return none
    return at, seconds, nanoseconds


@part
def read_zone(buf, at, end):
    """The zone behind the time of day, up to the end: bits of seen.py (OTHERS: it is none); seconds ahead of UTC."""
    if at == end:
        return np.int64(TEXTS | ZONELESS), np.int64(0)
    if buf[np.uint64(at)] == 32:
        at += 1
        if at == end:
            return np.int64(OTHERS), np.int64(0)
    char = np.int64(buf[np.uint64(at)])
    if ((char == 90 or char == 122) and at + 1 == end) or is_zone_name(buf, at, end):
        return np.int64(TEXTS), np.int64(0)
    ahead = read_offset(buf, at, end)
    if ahead == 100_000 and is_local_zone(buf, at, end):
        return np.int64(TEXTS | ZONELESS), np.int64(0)
    return np.int64(OTHERS if ahead == 100_000 else TEXTS), ahead


@part
def read_day(buf, at, end):
    """One or two digits: where they end, -1 where there are none; and their number."""
    none = np.int64(-1), np.int64(0)
    if at >= end:
        return none
    day = np.int64(buf[np.uint64(at)]) - 48
    if day < 0 or day > 9:
        return none
    at += 1
    if at < end:
        digit = np.int64(buf[np.uint64(at)]) - 48
        if 0 <= digit <= 9:
            return at + 1, 10 * day + digit
    return at, day


@part
def read_month_first(buf, at, end):
    """`Dec  1 2015 10:30:00`, with a zone or without: as read_time gives it."""
    nothing = NO_TIME, np.int64(0), np.int64(0), np.int64(OTHERS)
    month = place_of_word(word_of(buf, at), _MONTHS) + 1
    at += 3
    if buf[np.uint64(at)] != 32:
        return nothing
    at, day = read_day(buf, at + (2 if buf[np.uint64(at + 1)] == 32 else 1), end)
    if at < 0 or end - at < 11 or buf[np.uint64(at)] != 32 or buf[np.uint64(at + 5)] != 32:
        return nothing
    century, years = two_digits(buf, at + 1, end), two_digits(buf, at + 3, end)
    at, of_day, nanoseconds = read_clock(buf, at + 6, end)
    if at < 0 or century < 0 or years < 0:
        return nothing
    bits, ahead = read_zone(buf, at, end)
    year = 100 * century + years
    if bits == OTHERS or day < 1 or day > days_in_month(year, month):
        return nothing
    return WHOLE, 86_400 * days_before_date(year, month, day) + of_day - ahead, nanoseconds, bits


@part
def read_named_time(buf, at, end):
    """A text with the name of a month: as read_time gives it."""
    nothing = NO_TIME, np.int64(0), np.int64(0), np.int64(OTHERS)
    if end - at < _LEAST_NAMED:
        return nothing
    is_of_c = False
    if place_of_word(word_of(buf, at), _MONTHS) >= 0:
        return read_month_first(buf, at, end)
    if np.int64(buf[np.uint64(at)]) > 57:
        if place_of_word(word_of(buf, at), _WEEKDAYS) < 0:
            return nothing
        is_of_c = buf[np.uint64(at + 3)] == 32
        if not is_of_c and (buf[np.uint64(at + 3)] != 44 or buf[np.uint64(at + 4)] != 32):
            return nothing
        at += 4 if is_of_c else 5
    if is_of_c:  # Tue Dec  1 10:30:00 2015
        month = place_of_word(word_of(buf, at), _MONTHS) + 1
        at += 3
        if buf[np.uint64(at)] != 32:
            return nothing
        at += 2 if buf[np.uint64(at + 1)] == 32 else 1
        at, day = read_day(buf, at, end)
        if at < 0 or at >= end or buf[np.uint64(at)] != 32:
            return nothing
        at, of_day, nanoseconds = read_clock(buf, at + 1, end)
        bits, ahead = np.int64(TEXTS | ZONELESS), np.int64(0)
        if at >= 0 and end - at >= 9 and buf[np.uint64(at)] == 32 and is_zone_name(buf, at + 1, at + 4):
            bits = np.int64(TEXTS)
            at += 4
        if at >= 0 and end - at == 9 and buf[np.uint64(at + 5)] == 32 and is_zone_name(buf, at + 6, end):
            bits = np.int64(TEXTS)
            end -= 4
        if at < 0 or end - at != 5 or buf[np.uint64(at)] != 32:
            return nothing
        at += 1
        century, years = two_digits(buf, at, end), two_digits(buf, at + 2, end)
    else:
        at, day = read_day(buf, at, end)
        if at < 0 or end - at < 12:
            return nothing
        mark = np.int64(buf[np.uint64(at)])
        if (mark != 47 and mark != 45 and mark != 32) or buf[np.uint64(at + 4)] != mark:
            return nothing
        month = place_of_word(word_of(buf, at + 1), _MONTHS) + 1
        century, years = two_digits(buf, at + 5, end), two_digits(buf, at + 7, end)
        if buf[np.uint64(at + 9)] != 32 and (mark != 47 or buf[np.uint64(at + 9)] != 58):
            return nothing
        at, of_day, nanoseconds = read_clock(buf, at + 10, end)
        if at < 0:
            return nothing
        bits, ahead = read_zone(buf, at, end)
    year = 100 * century + years
    if bits == OTHERS or century < 0 or years < 0 or month < 1 or day < 1 or day > days_in_month(year, month):
        return nothing
    return WHOLE, 86_400 * days_before_date(year, month, day) + of_day - ahead, nanoseconds, bits


@part
def read_net_time(buf, at, end):
    """`/Date(1448965800000)/`, also with a zone behind the digits: as read_time gives it."""
    nothing = NO_TIME, np.int64(0), np.int64(0), np.int64(OTHERS)
    for i in range(_DATE.shape[0]):
        if at + i >= end or buf[np.uint64(at + i)] != _DATE[i]:
            return nothing
    at += _DATE.shape[0]
    is_before = at < end and buf[np.uint64(at)] == 45
    at += np.int64(is_before)
    first = at
    number = np.int64(0)
    while at < end and at - first < 16 and 48 <= buf[np.uint64(at)] <= 57:
        number = 10 * number + np.int64(buf[np.uint64(at)]) - 48
        at += 1
    if not 1 <= at - first <= 15:
        return nothing
    if at + 5 < end and (buf[np.uint64(at)] == 43 or buf[np.uint64(at)] == 45):
        if two_digits(buf, at + 1, end) < 0 or two_digits(buf, at + 3, end) < 0:
            return nothing
        at += 5
    if end - at != 2 or buf[np.uint64(at)] != 41 or buf[np.uint64(at + 1)] != 47:
        return nothing
    if is_before:
        number = -number
    seconds = number // 1000
    return WHOLE, seconds, (number - 1000 * seconds) * 1_000_000, np.int64(TEXTS)


@part
def read_time(buf, at, end):
    """The text from `at` to `end`: what it is, seconds since 1970, nanoseconds beyond them, and the bits of seen.py."""
    nothing = NO_TIME, np.int64(0), np.int64(0), np.int64(OTHERS)
    if at < end and buf[np.uint64(at)] == 47:
        return read_net_time(buf, at, end)
    if end - at < 10:
        return nothing
    mark = np.int64(buf[np.uint64(at + 4)])
    if (mark != 45 and mark != 47) or buf[np.uint64(at + 7)] != mark:
        return read_named_time(buf, at, end)
    century, years = two_digits(buf, at, end), two_digits(buf, at + 2, end)
    month, day = two_digits(buf, at + 5, end), two_digits(buf, at + 8, end)
    if century < 0 or years < 0:
        return nothing
    year = 100 * century + years
    if month < 1 or month > 12 or day < 1 or day > days_in_month(year, month):
        return nothing
    seconds = 86_400 * days_before_date(year, month, day)
    at += 10
    if at == end:
        return WHOLE, seconds, np.int64(0), np.int64(TEXTS | ZONELESS)
    between = np.int64(buf[np.uint64(at)])
    if between != 84 and between != 116 and between != 32:
        return nothing
    at, of_day, nanoseconds = read_clock(buf, at + 1, end)
    if at < 0:
        return nothing
    bits, ahead = read_zone(buf, at, end)
    if bits == OTHERS:
        return nothing
    return WHOLE, seconds + of_day - ahead, nanoseconds, bits
