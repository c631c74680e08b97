"""Times in text, for kernels: jitdb/common/times.py says what is one."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitdb.common.kernels import part
from jitdb.common.zone_kernels import NO_NAME, UNKNOWN, ahead_of_name
from jitdb.indexes.kinds.kernels.seen import OTHERS, TEXTS, ZONELESS

NO_TIME = 0  # what a read time is: none, or whole nanoseconds
WHOLE = 1

_LEAST_NAMED = 15  # characters: Dec 1 2015 1:30


def _words(names: str) -> Any:
    return np.array([int.from_bytes(name.encode(), "big") for name in names.split()])


_MONTHS = _words("jan feb mar apr may jun jul aug sep oct nov dec")
_WEEKDAYS = _words("mon tue wed thu fri sat sun")
_BRACKETED = 12  # bytes of a date alone in brackets
_ZONES = _words("utc gmt")
_NO_ZONE = 100_000  # in place of seconds
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
def read_zone_name(buf, at, end):
    """The name of a zone behind a blank: as read_zone gives it. One that is not known may mean anything, and counts as
    none."""
    ahead = ahead_of_name(buf, at, end) if buf[np.uint64(at - 1)] == 32 else np.int64(NO_NAME)
    if ahead == NO_NAME:
        return np.int64(OTHERS), np.int64(0)
    if ahead == UNKNOWN:
        return np.int64(TEXTS | ZONELESS), np.int64(0)
    return np.int64(TEXTS), ahead


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
    """Seconds by which a zone `+01:00`, `+0100` or `+01` is ahead of UTC; _NO_ZONE where it is none of these."""
    bad = np.int64(_NO_ZONE)
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
def read_seconds(buf, at, end):
    """What may stand behind minutes, at `at`: where that ends, -1 where it is none; the second, and nanoseconds."""
    none = np.int64(-1), np.int64(0), np.int64(0)
    second = nanoseconds = np.int64(0)
    if at < end and buf[np.uint64(at)] == 58:
        second = two_digits(buf, at + 1, end)
        if second < 0 or second > 60:
            return none
        at, nanoseconds = read_fraction(buf, at + 3, end)
    return at, second, nanoseconds


@part
def read_fraction(buf, at, end):
    """A fraction of a second, or nothing: where it ends, -1 where it has no digits; and its nanoseconds."""
    nanoseconds = np.int64(0)
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
            at = np.int64(-1)
    return at, nanoseconds


@part
def read_clock(buf, at, end):
    """The time of day at `at`: where it ends, -1 where there is none; its seconds, and nanoseconds beyond them."""
    hour, minute = two_digits(buf, at, end), two_digits(buf, at + 3, end)
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or buf[np.uint64(at + 2)] != 58:
        return np.int64(-1), np.int64(0), np.int64(0)
    at, second, nanoseconds = read_seconds(buf, at + 5, end)
    return at, 3600 * hour + 60 * minute + second, nanoseconds


@part
def read_half(buf, at, end):
    """AM or PM behind a blank, which may be a narrow one: where it ends, `at` where none is; 65 of AM, 80 of PM, 0."""
    first = at
    if at + 5 <= end and buf[np.uint64(at)] == 0xE2 and buf[np.uint64(at + 1)] == 0x80:
        at += 2
        is_blank = buf[np.uint64(at)] == 0xAF
    else:
        is_blank = at + 3 <= end and buf[np.uint64(at)] == 32
    if not is_blank:
        return first, np.int64(0)
    half = np.int64(buf[np.uint64(at + 1)]) & 0xDF
    behind = np.int64(buf[np.uint64(at + 3)]) & 0xDF if at + 3 < end else np.int64(0)
    if (half != 65 and half != 80) or np.int64(buf[np.uint64(at + 2)]) & 0xDF != 77 or 65 <= behind <= 90:
        return first, np.int64(0)
    return at + 3, half


@part
def read_clock_of_twelve(buf, at, end):
    """`2:30:00.5 PM`, or a time of day without AM or PM: as read_clock gives it, and whether it has one of them."""
    none = np.int64(-1), np.int64(0), np.int64(0), False
    at, hour = read_day(buf, at, end)
    if at < 0 or at >= end or buf[np.uint64(at)] != 58:
        return none
    minute = two_digits(buf, at + 1, end)
    if minute < 0 or minute > 59:
        return none
    at, second, nanoseconds = read_seconds(buf, at + 3, end)
    if at < 0:
        return none
    at, half = read_half(buf, at, end)
    if half:
        if hour < 1 or hour > 12:
            return none
        hour = hour % 12 + (12 if half == 80 else 0)
    if hour > 23:
        return none
    return at, 3600 * hour + 60 * minute + second, nanoseconds, half > 0


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
    is_behind_name = at + 3 < end and is_zone_name(buf, at, at + 3)
    ahead = read_offset(buf, at + 3 if is_behind_name else at, end)
    if ahead == _NO_ZONE:
        return read_zone_name(buf, at, end)
    return np.int64(TEXTS), ahead


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
def time_of_parts(buf, at, end, year, month, day, of_day, nanoseconds):
    """A date, a time of day, and the zone that stands from `at` to the end: as read_time gives it."""
    bits, ahead = read_zone(buf, at, end)
    if bits == OTHERS or month < 1 or month > 12 or day < 1 or day > days_in_month(year, month):
        return NO_TIME, np.int64(0), np.int64(0), np.int64(OTHERS)
    return WHOLE, 86_400 * days_before_date(year, month, day) + of_day - ahead, nanoseconds, bits


@part
def read_year_and_twelve(buf, at, end, month, day, is_named, needs_half):
    """What follows a month and a day that end at `at`: ` 2015 10:30:00`, ` 2015, 2:30 PM`, and behind a month's name
    ` 2015 @ 10:30:00`: as read_time gives it.
    """
    nothing = NO_TIME, np.int64(0), np.int64(0), np.int64(OTHERS)
    century, years = two_digits(buf, at, end), two_digits(buf, at + 2, end)
    at += 4
    if at < end and buf[np.uint64(at)] == 44:
        at += 1
    elif is_named and at + 2 < end and buf[np.uint64(at)] == 32 and buf[np.uint64(at + 1)] == 64:
        at += 2
    if century < 0 or years < 0 or at >= end or buf[np.uint64(at)] != 32:
        return nothing
    at, of_day, nanoseconds, is_half = read_clock_of_twelve(buf, at + 1, end)
    if at < 0 or (needs_half and not is_half):
        return nothing
    return time_of_parts(buf, at, end, 100 * century + years, month, day, of_day, nanoseconds)


@part
def read_month_first(buf, at, end):
    """`Dec  1 2015 10:30:00`, `Dec 1, 2015 2:30:00 PM`, with a zone or without: as read_time gives it."""
    nothing = NO_TIME, np.int64(0), np.int64(0), np.int64(OTHERS)
    month = place_of_word(word_of(buf, at), _MONTHS) + 1
    at += 3
    if buf[np.uint64(at)] != 32:
        return nothing
    at, day = read_day(buf, at + (2 if buf[np.uint64(at + 1)] == 32 else 1), end)
    if at < 0:
        return nothing
    if at < end and buf[np.uint64(at)] == 44:
        at += 1
    if at >= end or buf[np.uint64(at)] != 32:
        return nothing
    return read_year_and_twelve(buf, at + 1, end, month, day, True, False)


@part
def read_of_javascript(buf, at, end, month, day):
    """What follows the day in `Tue Dec 01 2015 10:30:00 GMT+0100 (CET)`: as read_time gives it."""
    century, years = two_digits(buf, at, end), two_digits(buf, at + 2, end)
    if buf[np.uint64(end - 1)] == 41:
        begin = end - 2
        while begin > at and buf[np.uint64(begin)] != 40 and buf[np.uint64(begin)] != 41:
            begin -= 1
        if buf[np.uint64(begin)] == 40 and buf[np.uint64(begin - 1)] == 32:
            end = begin - 1
    at, of_day, nanoseconds = read_clock(buf, at + 5, end)
    if at < 0 or century < 0 or years < 0:
        return NO_TIME, np.int64(0), np.int64(0), np.int64(OTHERS)
    return time_of_parts(buf, at, end, 100 * century + years, month, day, of_day, nanoseconds)


@part
def read_of_numbers(buf, at, end, mark):
    """`12/1/2015 2:30:00 PM` and, with dots, `1.12.2015 10:30:00`: as read_time gives it."""
    nothing = NO_TIME, np.int64(0), np.int64(0), np.int64(OTHERS)
    begin = at
    at, month = read_day(buf, at, end)
    if at < 0 or at >= end or buf[np.uint64(at)] != mark:
        return nothing
    at, day = read_day(buf, at + 1, end)
    if at < 0 or at >= end or buf[np.uint64(at)] != mark:
        return nothing
    if mark == 47:
        return read_year_and_twelve(buf, at + 1, end, month, day, False, True)
    if at == begin + 5 and at + 5 == end and two_digits(buf, at + 1, end) >= 0 and two_digits(buf, at + 3, end) >= 0:
        year = 100 * two_digits(buf, at + 1, end) + two_digits(buf, at + 3, end)
        return time_of_parts(buf, end, end, year, day, month, np.int64(0), np.int64(0))
    return read_year_and_twelve(buf, at + 1, end, day, month, False, False)


@part
def read_of_db2(buf, at, end, year, month, day):
    """What follows the date in `2015-12-01-10.30.00.123456+060`, or with a blank: as read_time gives it."""
    nothing = NO_TIME, np.int64(0), np.int64(0), np.int64(OTHERS)
    hour, minute, second = two_digits(buf, at, end), two_digits(buf, at + 3, end), two_digits(buf, at + 6, end)
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 60:
        return nothing
    if buf[np.uint64(at + 2)] != 46 or buf[np.uint64(at + 5)] != 46:
        return nothing
    at += 8
    nanoseconds = np.int64(0)
    if at < end and buf[np.uint64(at)] == 46:
        at, nanoseconds = read_fraction(buf, at, end)
    ahead = np.int64(0)
    bits = np.int64(TEXTS | ZONELESS)
    if at >= 0 and at + 4 == end:
        sign, tens = np.int64(buf[np.uint64(at)]), two_digits(buf, at + 2, end)
        hundreds = np.int64(buf[np.uint64(at + 1)]) - 48
        if (sign != 43 and sign != 45) or tens < 0 or hundreds < 0 or hundreds > 9:
            return nothing
        ahead = 60 * (100 * hundreds + tens) * np.int64(-1 if sign == 45 else 1)
        bits = np.int64(TEXTS)
        at = end
    if at != end:
        return nothing
    of_day = 3600 * hour + 60 * minute + second
    return WHOLE, 86_400 * days_before_date(year, month, day) + of_day - ahead, nanoseconds, bits


@part
def read_basic(buf, at, end):
    """`20151201T103000`, or with a blank or a hyphen for the T, or with colons: as read_time gives it."""
    nothing = NO_TIME, np.int64(0), np.int64(0), np.int64(OTHERS)
    century, years = two_digits(buf, at, end), two_digits(buf, at + 2, end)
    month, day = two_digits(buf, at + 4, end), two_digits(buf, at + 6, end)
    gap = np.int64(at + 14 < end and buf[np.uint64(at + 11)] == 58 and buf[np.uint64(at + 14)] == 58)
    hour, minute = two_digits(buf, at + 9, end), two_digits(buf, at + 11 + gap, end)
    second = two_digits(buf, at + 13 + 2 * gap, end)
    is_day = century >= 0 and years >= 0 and month >= 0 and day >= 0
    if not is_day or hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 60:
        return nothing
    at, nanoseconds = read_fraction(buf, at + 15 + 2 * gap, end)
    if at < 0:
        return nothing
    of_day = 3600 * hour + 60 * minute + second
    return time_of_parts(buf, at, end, 100 * century + years, month, day, of_day, nanoseconds)


@part
def read_other_time(buf, at, end):
    """A text that does not begin with `2015-12-`, `2015/12/` or `2015.12.`: as read_time gives it."""
    char = np.int64(buf[np.uint64(at + 8)])
    is_basic = two_digits(buf, at + 1, end) >= 0
    if char | 32 == 116 or ((char == 32 or char == 45) and is_basic):  # T; a blank, a hyphen
        return read_basic(buf, at, end)
    slash = at + 1 if np.int64(buf[np.uint64(at + 1)]) < 48 else at + 2
    mark = np.int64(buf[np.uint64(slash)])
    if (mark == 47 or mark == 46) and np.int64(buf[np.uint64(slash + 1)]) <= 57:
        return read_of_numbers(buf, at, end, mark)
    return read_named_time(buf, at, end)


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
        if at + 5 < end and buf[np.uint64(at + 5)] == 32:
            return read_of_javascript(buf, at + 1, end, month, day)
        at, of_day, nanoseconds = read_clock(buf, at + 1, end)
        bits, ahead = np.int64(TEXTS | ZONELESS), np.int64(0)
        is_named = False
        if at >= 0 and end - at >= 9 and buf[np.uint64(at)] == 32 and np.int64(buf[np.uint64(at + 1)]) > 57:
            first = at
            at += 1
            while at < end and buf[np.uint64(at)] != 32:
                at += 1
            bits, ahead = read_zone(buf, first, at)
            if bits == OTHERS or at - first < 4:
                return nothing
            is_named = True
        if at < 0 or end - at < 5 or buf[np.uint64(at)] != 32:
            return nothing
        at += 1
        century, years = two_digits(buf, at, end), two_digits(buf, at + 2, end)
        at += 4
        if at < end:
            is_behind_blank = buf[np.uint64(at)] == 32
            at += np.int64(is_behind_blank)
            bits = np.int64(TEXTS)
            if not (is_behind_blank and is_zone_name(buf, at, end)):
                if is_named or at == end:
                    return nothing
                ahead = read_offset(buf, at, end)
                if ahead == _NO_ZONE:
                    return nothing
    else:
        at, day = read_day(buf, at, end)
        if at < 0 or end - at < 12:
            return nothing
        mark = np.int64(buf[np.uint64(at)])
        if (mark != 47 and mark != 45 and mark != 32) or buf[np.uint64(at + 4)] != mark:
            return nothing
        month = place_of_word(word_of(buf, at + 1), _MONTHS) + 1
        century, years = two_digits(buf, at + 5, end), two_digits(buf, at + 7, end)
        if buf[np.uint64(at + 9)] == 58 and mark == 45 and buf[np.uint64(at + 10)] == 58:
            at += 1
        elif buf[np.uint64(at + 9)] != 32 and (mark != 47 or buf[np.uint64(at + 9)] != 58):
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
    if end - at > _BRACKETED and buf[np.uint64(at)] == 91 and buf[np.uint64(end - 1)] == 93:
        at += 1
        end -= 1
    elif at < end and buf[np.uint64(at)] == 47:
        return read_net_time(buf, at, end)
    if end - at < 10:
        return nothing
    mark = np.int64(buf[np.uint64(at + 4)])
    is_first = mark == 45 or mark == 47 or (mark == 46 and end - at > 10)
    if not is_first or buf[np.uint64(at + 7)] != mark:
        return read_other_time(buf, at, end)
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
    if mark == 45 and (between == 45 or (between == 32 and at + 3 < end and buf[np.uint64(at + 3)] == 46)):
        return read_of_db2(buf, at + 1, end, year, month, day)
    if between != 84 and between != 116 and between != 32 and between != 95:
        return nothing
    at, of_day, nanoseconds = read_clock(buf, at + 1, end)
    if at < 0:
        return nothing
    bits, ahead = read_zone(buf, at, end)
    if bits == OTHERS:
        return nothing
    return WHOLE, seconds + of_day - ahead, nanoseconds, bits
