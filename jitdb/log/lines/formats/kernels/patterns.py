"""Records that a pattern describes, for kernels, and the machine that runs a pattern's program (pattern.py) on a line.

It goes one way and remembers where others begin. Each SPLIT is entered once at each byte, so the time is bounded by
the splits of the program times the bytes of the line. A line for which there is no room does not match.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.common.zone_kernels import UNKNOWN, ahead_of_name
from jitdb.log.codecs.json.text import CLOSE_MAP, COLON, COMMA, OPEN_MAP, QUOTE, SPACE
from jitdb.log.lines.formats.kernels.bodies import put_body
from jitdb.log.lines.formats.kernels.console import put_shown_event
from jitdb.log.lines.formats.kernels.kinds import (
    ATTRIBUTES,
    BODY,
    BSD_TIME,
    CHAR,
    CLASS,
    DAY_MONTH,
    DOUBLED,
    END,
    ESCAPED,
    EXTENSION,
    FIELD,
    GRADED,
    JUMP,
    KLOG_TIME,
    LEVELED,
    LINES,
    MATCH,
    MONTH_DAY,
    NIL,
    NUMBER,
    PAIRS,
    PEEK,
    SAVE,
    SHOWN,
    SPAN,
    SPANS,
    SPLIT,
    WORD,
    ZONED_TIME,
)
from jitdb.log.lines.formats.kernels.levels import put_grade, put_level, word_end
from jitdb.log.lines.formats.kernels.logfmt import put_attributes, put_extension, put_pairs, put_unescaped
from jitdb.log.lines.formats.kernels.tables import quote_from
from jitdb.log.lines.formats.kernels.writing import (
    line_end,
    put_byte,
    put_escaped,
    put_key,
    put_quoted,
    put_scalar,
    put_trace_key,
    without_blanks,
)

_1 = np.uint64(1)
_ZERO, _NINE, _PLUS, _DASH, _DOT, _SLASH = 48, 57, 43, 45, 46, 47
_FIRST_YEAR = 20  # of those with two digits in front of a month
_MOST_AHEAD = 14  # hours by which a zone is ahead of UTC
_A, _P, _M, _Z, _CLOSE = 65, 80, 77, 90, 93
_NARROW = np.frombuffer(b"\xe2\x80\xaf", np.uint8)  # a blank, U+202F
_MONTHS = np.frombuffer(b"JanFebMarAprMayJunJulAugSepOctNovDec", np.uint8)


@part
def matched(data, start, end, program, classes, slots, stack, seen):
    """Where the match of data[start:end] ends, which begins at `start`; -1 where there is none.

    slots: of each group where it begins and ends, -1 of one that takes no part
    """
    nothing = np.int64(-1)
    slots[:] = nothing
    size = end - start + 1
    splits = np.int64(program[0])
    if splits:
        words = (splits * size + 63) >> 6
        if words > seen.shape[0]:
            return nothing
        seen[:words] = np.uint64(0)
    top = np.int64(0)
    pc = np.int64(1)  # of groups of four numbers; the first has what holds for all
    p = np.int64(start)
    while True:
        at = np.uint64(4 * pc)
        operation = program[at]
        first = np.int64(program[at + _1])
        is_fine = False
        if operation == CHAR:
            if p < end and data[np.uint64(p)] == first:
                p += 1
                pc += 1
                is_fine = True
        elif operation == SPAN:
            base = first << 8
            q = p
            while q < end and classes[np.uint64(base + data[np.uint64(q)])]:
                q += 1
            if q - p >= program[at + np.uint64(2)]:
                p = q
                pc += 1
                is_fine = True
        elif operation == CLASS:
            if p < end and classes[np.uint64((first << 8) + data[np.uint64(p)])]:
                p += 1
                pc += 1
                is_fine = True
        elif operation == SAVE:
            if top:
                if top + 2 > stack.shape[0]:
                    return nothing
                stack[top] = -1 - first
                stack[top + 1] = slots[first]
                top += 2
            slots[first] = p
            pc += 1
            is_fine = True
        elif operation == SPLIT:
            bit = np.int64(program[at + np.uint64(3)]) * size + (p - start)
            mask = _1 << np.uint64(bit & 63)
            if not seen[np.uint64(bit >> 6)] & mask:
                seen[np.uint64(bit >> 6)] |= mask
                if top + 2 > stack.shape[0]:
                    return nothing
                stack[top] = program[at + np.uint64(2)] + 1
                stack[top + 1] = p
                top += 2
                pc = first + 1
                is_fine = True
        elif operation == PEEK:
            is_here = p < end and classes[np.uint64((first << 8) + data[np.uint64(p)])]
            pc = pc + 1 if is_here else program[at + np.uint64(2)] + 1
            is_fine = True
        elif operation == JUMP:
            pc = first + 1
            is_fine = True
        elif operation == END:
            if p == end:
                pc += 1
                is_fine = True
        elif operation == MATCH:
            return p
        while not is_fine:  # back to where there was another way
            if top == 0:
                return nothing
            top -= 2
            if stack[top] < 0:
                slots[-1 - stack[top]] = stack[top + 1]
            else:
                pc = stack[top]
                p = stack[top + 1]
                is_fine = True


@part
def put_two(out, o, number):
    out[np.uint64(o)] = _ZERO + number // 10
    out[np.uint64(o + 1)] = _ZERO + number % 10
    return o + 2


@part
def two_digits(data, p):
    """The number of one or two digits, with a blank or nothing before the one."""
    high = np.int64(data[np.uint64(p)])
    return (high - _ZERO if high >= _ZERO else 0) * 10 + np.int64(data[np.uint64(p + 1)]) - _ZERO


@part
def put_day(out, o, year, month, day):
    """The quote and the date with which a time begins, and its T."""
    o = put_two(out, put_two(out, put_byte(out, o, QUOTE), year // 100), year % 100)
    o = put_two(out, put_byte(out, o, _DASH), month)
    o = put_two(out, put_byte(out, o, _DASH), day)
    return put_byte(out, o, 84)


@part
def put_date(data, p, end, out, o, month, day, latest):
    """A time without its year as ISO 8601: that of the last year in which it is not behind the month `latest`."""
    year = latest // 100
    if month * 100 + day > (latest % 100) * 100 + 32:
        year -= 1
    o = put_day(out, o, year, month, day)
    return put_byte(out, put_escaped(data, p, end, out, o), QUOTE)


@part
def put_klog_time(data, p, end, out, o, latest):
    """`1120 14:03:11.5`, also with two or four digits of the year before the month, as ISO 8601."""
    blank = p + 4
    while data[np.uint64(blank)] != SPACE:
        blank += 2
    month, day = two_digits(data, blank - 4), two_digits(data, blank - 2)
    if blank == p + 4:
        return put_date(data, blank + 1, end, out, o, month, day, latest)
    year = two_digits(data, blank - 6) + 100 * (two_digits(data, p) if blank == p + 8 else 20)
    o = put_day(out, o, year, month, day)
    return put_byte(out, put_escaped(data, blank + 1, end, out, o), QUOTE)


@part
def put_odd_time(data, p, end, out, o):
    """`2026.11.20 14:03:11` of ClickHouse, `2026-11-20  4:03:11` of MariaDB, `2026-11-20  14:03:11` of apt, and
    `2026/11/20 - 14:03:11` of Gin as ISO 8601; else nothing."""
    mark = data[np.uint64(p + 4)]
    if end - p < 19 or data[np.uint64(p + 7)] != mark or data[np.uint64(p + 10)] != SPACE:
        return o
    is_padded = mark == _DASH and data[np.uint64(p + 11)] == SPACE
    is_dashed = mark == _SLASH and data[np.uint64(p + 11)] == _DASH and data[np.uint64(p + 12)] == SPACE
    if not is_padded and not is_dashed and mark != _DOT:
        return o
    year = 100 * two_digits(data, p) + two_digits(data, p + 2)
    o = put_day(out, o, year, two_digits(data, p + 5), two_digits(data, p + 8))
    if is_padded and data[np.uint64(p + 13)] == COLON:
        o = put_byte(out, o, _ZERO)
    clock = p + 13 if is_dashed else p + 12 if is_padded else p + 11
    return put_byte(out, put_escaped(data, clock, end, out, o), QUOTE)


@part
def digits_at(data, p, end):
    """How many digits stand at `p`."""
    first = p
    while p < end and _ZERO <= data[np.uint64(p)] <= _NINE:
        p += 1
    return p - first


@part
def put_clock_of_twelve(data, p, end, out, o):
    """`2:03:11.5 PM` as 14:03:11.5, and a quote; nothing where it is no such time of day. A narrow blank may stand
    before PM."""
    nothing = np.int64(-1)
    size = digits_at(data, p, end)
    half = data[np.uint64(end - 2)]
    is_one = 1 <= size <= 2 and (half == _A or half == _P) and data[np.uint64(end - 1)] == _M
    stop = end - 3
    if data[np.uint64(stop)] == _NARROW[2]:
        stop -= 2
        is_one &= data[np.uint64(stop)] == _NARROW[0] and data[np.uint64(stop + 1)] == _NARROW[1]
    else:
        is_one &= data[np.uint64(stop)] == SPACE
    if not is_one or stop < p + size + 6 or data[np.uint64(p + size)] != COLON:
        return nothing
    hour = np.int64(data[np.uint64(p)]) - _ZERO if size == 1 else two_digits(data, p)
    o = put_two(out, o, hour % 12 + (12 if half == _P else 0))
    return put_byte(out, put_escaped(data, p + size, stop, out, o), QUOTE)


@part
def put_other_day(data, p, end, out, o):
    """`20.11.2026 14:03:11`, `11/20/2026 02:03:11 PM`, `Nov 20, 2026 2:03:11 PM` `2026 Nov 20 14:03:11`,
    `261120 14:03:11` and `261120 140311` (HDFS) as ISO 8601; else nothing."""
    nothing = np.int64(-1)
    first = digits_at(data, p, end)
    if first == 6 and end - p == 15 and data[np.uint64(p + 6)] == SPACE and data[np.uint64(p + 9)] == COLON:
        o = put_day(out, o, 2000 + two_digits(data, p), two_digits(data, p + 2), two_digits(data, p + 4))
        o = put_two(out, o, two_digits(data, p + 7))
        return put_byte(out, put_escaped(data, p + 9, end, out, o), QUOTE)
    if first == 6 and end - p == 13 and data[np.uint64(p + 6)] == SPACE and digits_at(data, p + 7, end) == 6:
        o = put_day(out, o, 2000 + two_digits(data, p), two_digits(data, p + 2), two_digits(data, p + 4))
        o = put_byte(out, put_two(out, o, two_digits(data, p + 7)), COLON)
        o = put_byte(out, put_two(out, o, two_digits(data, p + 9)), COLON)
        return put_byte(out, put_two(out, o, two_digits(data, p + 11)), QUOTE)
    if end - p < 19:
        return nothing
    if first == 0:
        month = month_at(data, p)
        size = digits_at(data, p + 4, end)
        q = p + 4 + size
        is_day = month > 0 and data[np.uint64(p + 3)] == SPACE and 1 <= size <= 2
        is_day = is_day and data[np.uint64(q)] == COMMA and data[np.uint64(q + 1)] == SPACE
        if not is_day or digits_at(data, q + 2, end) != 4:
            return nothing
        day = two_digits(data, p + 4) if size == 2 else np.int64(data[np.uint64(p + 4)]) - _ZERO
        year = 100 * two_digits(data, q + 2) + two_digits(data, q + 4)
        q += 7 if data[np.uint64(q + 6)] == COMMA else 6
        if data[np.uint64(q)] != SPACE:
            return nothing
        return put_clock_of_twelve(data, q + 1, end, out, put_day(out, o, year, month, day))
    if first == 4 and data[np.uint64(p + 4)] == SPACE and month_at(data, p + 5) > 0:
        year = 100 * two_digits(data, p) + two_digits(data, p + 2)
        is_day = data[np.uint64(p + 8)] == SPACE and data[np.uint64(p + 11)] == SPACE
        o = put_day(out, o, year, month_at(data, p + 5), two_digits(data, p + 9))
        return put_byte(out, put_escaped(data, p + 12, end, out, o), QUOTE) if is_day else nothing
    mark = data[np.uint64(p + 2)]
    is_day = first == 2 and (mark == _DOT or mark == _SLASH) and data[np.uint64(p + 5)] == mark
    is_day = is_day and digits_at(data, p + 3, end) == 2 and digits_at(data, p + 6, end) == 4
    clock = p + 12 if data[np.uint64(p + 10)] == COMMA else p + 11
    if not is_day or data[np.uint64(clock - 1)] != SPACE:
        return nothing
    year = 100 * two_digits(data, p + 6) + two_digits(data, p + 8)
    one, other = two_digits(data, p), two_digits(data, p + 3)
    if mark == _SLASH:
        return put_clock_of_twelve(data, clock, end, out, put_day(out, o, year, one, other))
    return put_byte(out, put_escaped(data, clock, end, out, put_day(out, o, year, other, one)), QUOTE)


@part
def put_day_of_snort(data, p, end, out, o, latest):
    """`11/20-14:03:11.5`, also with a year of two or four digits behind the day, as ISO 8601; else nothing."""
    is_day = digits_at(data, p, end) == 2 and data[np.uint64(p + 2)] == _SLASH and digits_at(data, p + 3, end) == 2
    if end - p < 14 or not is_day:
        return o
    month, day = two_digits(data, p), two_digits(data, p + 3)
    if data[np.uint64(p + 5)] == _DASH:
        return put_date(data, p + 6, end, out, o, month, day, latest)
    size = digits_at(data, p + 6, end)
    clock = p + 6 + size
    if data[np.uint64(p + 5)] != _SLASH or (size != 2 and size != 4) or data[np.uint64(clock)] != _DASH:
        return o
    o = put_day(
        out, o, two_digits(data, clock - 2) + (2000 if size == 2 else 100 * two_digits(data, p + 6)), month, day
    )
    return put_byte(out, put_escaped(data, clock + 1, end, out, o), QUOTE)


@part
def put_number(data, p, size, out, o):
    """A number of one or two digits, as two."""
    return put_two(out, o, two_digits(data, p) if size == 2 else np.int64(data[np.uint64(p)]) - _ZERO)


@part
def put_numbered_day(data, p, end, out, o, is_day_first):
    """`28/11/2026 10:00:00.5` as ISO 8601, or with hyphens, and `11/28/26 1:00:00:123` of WebSphere; dots divide days
    from months."""
    first = digits_at(data, p, end)
    other = digits_at(data, p + first + 1, end)
    last = p + first + other + 2
    size = digits_at(data, last, end)
    mark = data[np.uint64(p + first)]
    clock = last + size
    clock += 2 if data[np.uint64(clock)] == COMMA else 1
    hour = digits_at(data, clock, end)
    is_one = 1 <= first <= 2 and 1 <= other <= 2 and (size == 2 or size == 4) and 1 <= hour <= 2
    if not is_one or data[np.uint64(last - 1)] != mark or data[np.uint64(clock - 1)] != SPACE:
        return put_quoted(data, p, end, out, o)
    o = put_two(out, put_byte(out, o, QUOTE), two_digits(data, last) if size == 4 else 20)
    o = put_byte(out, put_two(out, o, two_digits(data, last + size - 2)), _DASH)
    if is_day_first or mark == _DOT:
        o = put_byte(out, put_number(data, p + first + 1, other, out, o), _DASH)
        o = put_number(data, p, first, out, o)
    else:
        o = put_byte(out, put_number(data, p, first, out, o), _DASH)
        o = put_number(data, p + first + 1, other, out, o)
    o = put_number(data, clock, hour, out, put_byte(out, o, 84))
    clock += hour
    if end - clock == 10 and data[np.uint64(end - 4)] == COLON:
        o = put_byte(out, put_escaped(data, clock, end - 4, out, o), _DOT)
        clock = end - 3
    return put_byte(out, put_escaped(data, clock, end, out, o), QUOTE)


@part
def month_at(data, p):
    """The month whose name begins with the three letters at `p`; 0 of none."""
    month = np.int64(0)
    for number in range(12):
        is_same = True
        for i in range(3):
            is_same &= data[np.uint64(p + i)] == _MONTHS[3 * number + i]
        if is_same:
            month = np.int64(number + 1)
    return month


@part
def offset_end(data, begin, p, end):
    """Where `-0500` or `-05:00` ends that stands behind a time from `begin` to `p`, perhaps behind a blank; `p` where
    none does, or where the time has a zone."""
    is_iso = data[np.uint64(begin + 4)] == _DASH  # whose pattern takes it
    last, sign = data[np.uint64(p - 1)], data[np.uint64(p - 5)]
    is_zoneless = (_ZERO <= last <= _NINE or last == _M) and sign != _DASH and sign != _PLUS
    q = p + 1 if p < end and data[np.uint64(p)] == SPACE else p
    if is_iso or not is_zoneless or q + 5 > end or (data[np.uint64(q)] != _DASH and data[np.uint64(q)] != _PLUS):
        return p
    gap = np.int64(data[np.uint64(q + 3)] == COLON)
    stop = q + 5 + gap
    if digits_at(data, q + 1, end) != (2 if gap else 4) or (gap and digits_at(data, q + 4, end) != 2):
        return p
    minutes = two_digits(data, q + 3 + gap)
    if two_digits(data, q + 1) > _MOST_AHEAD or minutes > 45 or minutes % 15:
        return p
    if stop < end and (data[np.uint64(stop)] == _DOT or word_end(data, stop, end) > stop):
        return p
    is_clock = stop + 1 < end and data[np.uint64(stop)] == COLON and digits_at(data, stop + 1, end) > 0
    return p if is_clock else stop


@part
def put_bsd_time(data, p, end, out, o, latest):
    """`Nov 20 14:03:11` as 2026-11-20T14:03:11, and `26/11/20 14:03:11`, `1120 14:03:11.5` and those of put_odd_time,
    put_other_day and put_day_of_snort, too; else a number or text, as it stands."""
    is_short = end - p == 17 or (end - p > 17 and offset_end(data, p, p + 17, end) == end)
    if is_short and data[np.uint64(p + 2)] == _SLASH and data[np.uint64(p + 5)] == _SLASH:
        year, month = two_digits(data, p), two_digits(data, p + 3)
        if year >= _FIRST_YEAR and month <= 12:  # else the month, or the day, is first, and the year last
            o = put_day(out, o, 2000 + year, month, two_digits(data, p + 6))
            return put_byte(out, put_escaped(data, p + 9, end, out, o), QUOTE)
    after = put_day_of_snort(data, p, end, out, o, latest)
    if after > o:
        return after
    if end - p >= 14 and data[np.uint64(p + 2)] == _DASH and data[np.uint64(p + 5)] == SPACE:
        month, day = two_digits(data, p), two_digits(data, p + 3)
        is_day = digits_at(data, p, end) == 2 and digits_at(data, p + 3, end) == 2
        if is_day and 1 <= month <= 12 and 1 <= day <= 31 and data[np.uint64(p + 8)] == COLON:
            return put_date(data, p + 6, end, out, o, month, day, latest)
    if end - p >= 13 and data[np.uint64(p + 4)] == SPACE and data[np.uint64(p + 7)] == COLON:
        month, day = two_digits(data, p), two_digits(data, p + 2)
        if digits_at(data, p, end) == 4 and 1 <= month <= 12 and 1 <= day <= 31:
            return put_klog_time(data, p, end, out, o, latest)
    month = month_at(data, p)
    is_clock = end - p >= 15 and data[np.uint64(p + 9)] == COLON and data[np.uint64(p + 12)] == COLON
    if month == 0 or not is_clock or data[np.uint64(p + 3)] != SPACE:
        after = put_other_day(data, p, end, out, o)
        if after < 0:
            after = put_odd_time(data, p, end, out, o)
        return after if after > o else put_scalar(data, p, end, out, o)
    return put_date(data, p + 7, end, out, o, month, two_digits(data, p + 4), latest)


@part
def zone_end(data, p, end):
    """Where the name of a known zone ends that stands behind a blank at `p`; `p` where none does."""
    q = p + 1
    if q >= end or data[np.uint64(p)] != SPACE or not _A <= data[np.uint64(q)] <= _Z:
        return p
    q = word_end(data, q, end)
    return q if ahead_of_name(data, p + 1, q) < UNKNOWN else p


@part
def behind_zone(data, p, end):
    """Where text begins behind the zone that ends at `p`, and behind the marks there."""
    for mark in (_CLOSE, COLON, SPACE):
        if p < end and data[np.uint64(p)] == mark:
            p += 1
    return p


@part
def put_doubled(data, p, end, out, o):
    """A text in which quotes are doubled."""
    o = put_byte(out, o, QUOTE)
    while p < end:
        stop = quote_from(data, p, end)
        o = put_escaped(data, p, min(stop + 1, end), out, o)
        p = stop + 2
    return put_byte(out, o, QUOTE)


@part
def put_field(kind, data, p, end, out, o, latest):
    if kind == NUMBER or kind == WORD or kind == GRADED:
        return put_scalar(data, p, end, out, o)
    if kind == BSD_TIME or kind == ZONED_TIME:
        return put_bsd_time(data, p, end, out, o, latest)
    if kind == DAY_MONTH or kind == MONTH_DAY:
        return put_numbered_day(data, p, end, out, o, kind == DAY_MONTH)
    if kind == ESCAPED:
        return put_unescaped(data, p, end, out, o)
    if kind == DOUBLED:
        return put_doubled(data, p, end, out, o)
    if kind == KLOG_TIME and end - p >= 13:
        return put_klog_time(data, p, end, out, o, latest)
    return put_quoted(data, p, end, out, o)


@part
def put_groups(data, end, fields, keys, out, o, slots, levels, latest):
    """The members of a record that a match has found, which goes on up to `end`; and whether one took what goes on."""
    has_body = False
    begin = np.int64(0)  # of the text behind a zone
    for place in range(0, fields.shape[0], FIELD):
        kind = fields[place + 3]
        p = slots[2 * fields[place]]
        after = slots[2 * fields[place] + 1]
        if p < 0 or after < p:
            continue
        if kind == ZONED_TIME:
            stop = zone_end(data, after, end)
            stop = offset_end(data, p, after, end) if stop == after else stop
            begin = behind_zone(data, stop, end) if stop > after else begin
            after = stop
        p = max(p, begin) if kind == BODY or kind == LEVELED else p
        is_dash = after - p == 1 and data[np.uint64(p)] == _DASH
        if (kind == NUMBER and (is_dash or after == p)) or (kind == NIL and is_dash):
            continue
        if kind == LEVELED:
            o = put_level(data, p, after, out, o)
        if kind == BODY or kind == LEVELED:
            o = put_body(data, p, after, end, out, o, keys, fields[place + 1], fields[place + 2], levels)
            has_body = True
            continue
        if kind == PAIRS:
            o = put_pairs(data, p, after, out, o)
            continue
        if kind == SHOWN:
            o = put_shown_event(data, p, after, out, o, keys, fields[place + 1], fields[place + 2])
            continue
        if kind == EXTENSION:
            o = put_extension(data, p, after, out, o)
            continue
        if kind == ATTRIBUTES:
            o = put_attributes(data, p, after, out, o)
            continue
        o = put_key(keys, fields[place + 1], fields[place + 2], out, o)
        o = put_field(kind, data, p, after, out, o, latest)
        if kind == GRADED:
            o = put_grade(data, p, after, out, o)
    return o, has_body


@part
def put_pattern(data, start, end, program, classes, fields, keys, out, o, slots, stack, seen, levels, latest):
    """A record that a pattern describes; -1 where it does not."""
    stop, following = line_end(data, start, end)
    if program[LINES] & SPANS:
        stop, following = without_blanks(data, start, end), np.int64(end)
    if matched(data, start, stop, program, classes, slots, stack, seen) < 0:
        return np.int64(-1)
    o, has_body = put_groups(data, end, fields, keys, out, put_byte(out, o, OPEN_MAP), slots, levels, latest)
    if not has_body and following < end:
        after = without_blanks(data, following, end)
        if after > following:
            o = put_byte(out, put_escaped(data, following, after, out, put_trace_key(out, o)), QUOTE)
    return put_byte(out, o, CLOSE_MAP)
