"""Records of lines as JSON texts, compiled: which lines begin one, and what is written of each.

A record is a run of whole lines. A line that is none of the format's is a record, too, where it is a whole one of
another kind: a JSON object, and among lines of text also pairs, and text that begins as lines of a log do, with a time
or a level. The arrays `other` are those of the pattern by which the last are found and written (table.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.fields.constants import DELETED, LIVE
from jitdb.log.codecs.fields.part_kernels import same_bytes
from jitdb.log.codecs.json.read import skip_blanks
from jitdb.log.codecs.json.text import CLOSE_MAP, NEWLINE, OPEN_MAP, QUOTE, RETURN
from jitdb.log.lines.formats.kernels.batches import behind_around, put_around, put_element, same_prefix
from jitdb.log.lines.formats.kernels.bodies import put_trace
from jitdb.log.lines.formats.kernels.journald import put_journal
from jitdb.log.lines.formats.kernels.kinds import (
    BATCH,
    CRI,
    DOCKER,
    FOLDS,
    GOES_ON,
    HEADER,
    JOURNAL,
    JSON,
    LEADS,
    LINES,
    LOGFMT,
    LTSV,
    OTLP,
    PATTERN,
    SKIPS,
    SPANS,
    STAMPED,
    TABLE,
)
from jitdb.log.lines.formats.kernels.logfmt import are_pairs, begins_logfmt, begins_ltsv, put_logfmt, put_ltsv
from jitdb.log.lines.formats.kernels.patterns import matched, put_pattern
from jitdb.log.lines.formats.kernels.runtimes import begins_cri, begins_docker, put_cri, put_docker
from jitdb.log.lines.formats.kernels.tables import put_row
from jitdb.log.lines.formats.kernels.traces import goes_on
from jitdb.log.lines.formats.kernels.writing import (
    is_object,
    line_end,
    put_byte,
    put_bytes,
    put_members,
    put_slack,
    without_blanks,
)

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8, U64

_NOTHING = 2  # bytes of an object without members


@part
def begins_object(data, p, end, stack):
    """Whether a line is a JSON object, and begins with `{"`."""
    is_one = p + 1 < end and data[np.uint64(p)] == OPEN_MAP and data[np.uint64(p + 1)] == QUOTE
    return is_one and is_object(data, p, without_blanks(data, p, end), stack)


@part
def is_folded(data, before, before_end, p, end, program, slots):
    """Whether the text of the line data[p:end], which was matched, goes on with the one of the line before it, behind
    the same bytes."""
    text = slots[2 * (program[1] - 1)]
    size = text - p
    if text < 0 or before >= before_end or before_end - before < size or not same_bytes(data, p, data, before, size):
        return False
    return goes_on(data, before + size, before_end, text, end)


@part
def put_folded(data, start, end, program, classes, fields, keys, out, o, spare, slots, stack, seen, levels, latest):
    """The same as put_pattern, without what stands before the texts of the lines behind the first one."""
    stop, following = line_end(data, start, end)
    if following >= end:
        return put_pattern(
            data, start, end, program, classes, fields, keys, out, o, slots, stack, seen, levels, latest
        )  # fmt: skip
    at = put_bytes(data, start, stop - start, spare, np.int64(0))
    while following < end:
        p = following
        stop, following = line_end(data, p, end)
        is_one = matched(data, p, stop, program, classes, slots, stack, seen) >= 0
        text = slots[2 * (program[1] - 1)] if is_one else np.int64(-1)
        text = p if text < 0 else text
        at = put_bytes(data, text, stop - text, spare, put_byte(spare, at, NEWLINE))
    put_slack(spare, at)
    return put_pattern(
        spare, np.int64(0), at, program, classes, fields, keys, out, o, slots, stack, seen, levels, latest
    )  # fmt: skip


@part
def begins_record(how, data, before, before_end, p, end, program, classes, other, other_classes, slots, stack, seen):
    """Whether the line data[p:end] begins a record, data[before:before_end] being the line before it (empty: none)."""
    if before < before_end and skip_blanks(data, p, end) == end:
        return False
    if how == DOCKER:
        return begins_docker(data, before, before_end, p, end)
    if how == CRI or how == STAMPED:
        return begins_cri(how, data, before, before_end, p, end) or begins_object(data, p, end, stack)
    is_own = False
    if how == PATTERN:
        is_own = matched(data, p, end, program, classes, slots, stack, seen) >= 0
        if is_own and program[LEADS] and before < before_end:
            group = 2 * (program[LEADS] - 1)
            is_own = matched(data, before, before_end, program, classes, slots, stack, seen) < 0 or slots[group] < 0
        if program[LINES] & SPANS:
            return is_own
        if is_own and program[LINES] & FOLDS and is_folded(data, before, before_end, p, end, program, slots):
            return False
    elif how == LTSV:
        is_own = begins_ltsv(data, p, end)
    else:
        is_own = begins_logfmt(data, p, end)
    return (
        is_own
        or begins_object(data, p, end, stack)
        or matched(data, p, end, other, other_classes, slots, stack, seen) >= 0
        or are_pairs(data, p, without_blanks(data, p, end))
    )


@part
def without_return(data, p, end):
    """Where the line data[p:end] ends, without a carriage return at its end."""
    return end - 1 if end > p and data[np.uint64(end - 1)] == RETURN else end


@part
def behind_zeros(data, p, end):
    """Where the text of the line data[p:end] begins: zeros stand where a file was cut while it was written to."""
    while p < end and data[np.uint64(p)] == 0:
        p += 1
    return p


@part
def put_another(how, data, start, end, other, other_classes, other_fields, other_keys,
                out, o, slots, stack, seen, levels, latest):  # fmt: skip
    """A record whose first line is none of the format's; -1 where it is no whole line of another kind."""
    nothing = np.int64(-1)
    stop, _ = line_end(data, start, end)
    last = without_blanks(data, start, stop)
    begin = skip_blanks(data, start, last)
    if is_object(data, begin, last, levels):
        o = put_members(data, begin, last, out, put_byte(out, o, OPEN_MAP))
        return put_byte(out, put_trace(data, stop, end, out, o), CLOSE_MAP)
    if how == CRI or how == DOCKER or how == STAMPED:
        return nothing
    after = put_pattern(
        data, start, end, other, other_classes, other_fields, other_keys, out, o, slots, stack, seen, levels, latest
    )
    if after < 0 and are_pairs(data, start, last):
        return put_logfmt(data, start, end, out, o)
    return after


@kernel
def join_lines(
    how: int, data: U8, before: int, before_end: int, starts: I64, lengths: I64, states: U8, count: int,
    program: I64, classes: U8, other: I64, other_classes: U8, slots: I64, stack: I64, seen: U64,
) -> tuple[int, int, int]:  # fmt: skip
    """Join the lines that belong to the ones before them: how many records there are.

    data[before:before_end] is the line before the first one; empty where there is none. Lines that begin no record, and
    have none before them here, are left out: how many these are. Also how many lines the last record has.
    """
    records = 0
    left_out = 0
    last = 0
    if before_end - before > 1:  # an empty line is one
        before_end = without_return(data, before, before_end)
    for number in range(count):
        p = starts[number]
        end = without_return(data, p, p + lengths[number])
        p = behind_zeros(data, p, end)
        is_blank = states[number] == DELETED
        is_new = False
        if not is_blank or before >= before_end:
            is_new = begins_record(
                how, data, before, before_end, p, end, program, classes, other, other_classes, slots, stack, seen
            )
        if is_new or (records == 0 and before >= before_end and left_out == 0):
            starts[records] = starts[number]
            lengths[records] = lengths[number]
            states[records] = states[number]
            records += 1
            last = 1
        elif records:
            lengths[records - 1] = starts[number] + lengths[number] - starts[records - 1]
            if not is_blank:
                states[records - 1] = LIVE
            last += 1
        else:
            left_out += 1
        before = starts[number]
        before_end = end
    return records, left_out, last


@kernel
def begins(
    how: int, data: U8, before: int, before_end: int, begin: int, end: int,
    program: I64, classes: U8, other: I64, other_classes: U8, slots: I64, stack: I64, seen: U64,
) -> int:  # fmt: skip
    """Whether the line data[begin:end] begins a record, behind the line data[before:before_end]."""
    before_end = without_return(data, before, before_end)
    end = without_return(data, begin, end)
    begin = behind_zeros(data, begin, end)
    return int(
        begins_record(
            how, data, before, before_end, begin, end, program, classes, other, other_classes, slots, stack, seen
        )
    )


@kernel
def count_fitting(
    how: int, data: U8, starts: I64, lengths: I64, program: I64, classes: U8, slots: I64, stack: I64, seen: U64
) -> int:
    """How many of these lines are of the format itself, which is a pattern, logfmt or LTSV."""
    count = 0
    for number in range(starts.shape[0]):
        end, _ = line_end(data, starts[number], starts[number] + lengths[number])
        p = behind_zeros(data, starts[number], end)
        if how == PATTERN:
            count += matched(data, p, end, program, classes, slots, stack, seen) >= 0
        elif how == LTSV:
            count += begins_ltsv(data, p, end)
        else:
            count += begins_logfmt(data, p, end)
    return count


@kernel
def match_ends(
    data: U8, starts: I64, lengths: I64, program: I64, classes: U8, slots: I64, stack: I64, seen: U64, ends: I64
) -> int:
    """Where the match of each record ends that is of a pattern, into `ends`; -1 of one that is none. How many are."""
    count = 0
    for number in range(ends.shape[0]):
        end = starts[number] + lengths[number]
        ends[number] = matched(data, behind_zeros(data, starts[number], end), end, program, classes, slots, stack, seen)
        count += ends[number] >= 0
    return count


@kernel
def render(
    how: int, data: U8, starts: I64, lengths: I64, states: U8, program: I64, classes: U8, fields: I64, keys: U8,
    other: I64, other_classes: U8, other_fields: I64, other_keys: U8,
    latest: int, out: U8, places: I64, sizes: I64, spare: U8, slots: I64, stack: I64, seen: U64, levels: I64,
) -> int:  # fmt: skip
    """Write the live records as JSON texts, one behind the other: where each begins in `out`, and its bytes.

    latest: year and month, such as 202611, behind which no time without a year is
    slots:  of a table that cannot be read on, which record was the first to say so, and what it is (kinds.py)
    """
    o = np.int64(0)
    # What was around the last element, and what was written of it: it mostly is the same around the next one.
    before, before_size, written, written_size = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for number in range(starts.shape[0]):
        places[number] = o
        sizes[number] = 0
        if states[number] != LIVE:
            continue
        end = starts[number] + lengths[number]
        start = behind_zeros(data, starts[number], end)
        after = np.int64(-1)
        if how == PATTERN and program[LINES] & FOLDS:
            after = put_folded(
                data, start, end, program, classes, fields, keys, out, o, spare, slots, stack, seen, levels, latest
            )
        elif how == PATTERN:
            after = put_pattern(
                data, start, end, program, classes, fields, keys, out, o, slots, stack, seen, levels, latest
            )
            if after - o == _NOTHING and program[LINES] & SKIPS:
                states[number] = DELETED
                continue
        elif how == LOGFMT:
            after = put_logfmt(data, start, end, out, o)
        elif how == LTSV:
            after = put_ltsv(data, start, end, out, o)
        elif how == CRI or how == STAMPED:
            after = put_cri(
                how, data, start, end, out, o, spare, levels, program, classes, fields, keys, slots, stack, seen, latest
            )
        elif how == DOCKER:
            after = put_docker(
                data, start, end, out, o, spare, levels, program, classes, fields, keys, slots, stack, seen, latest
            )
        elif how == JOURNAL:
            after = put_journal(data, start, end, out, o, spare, levels)
        elif how == BATCH or how == OTLP:
            if before_size and before_size <= end - start and same_prefix(data, before, start, before_size):
                p, after = start + before_size, put_bytes(out, written, written_size, out, o)
            else:
                p, after = put_around(how, data, start, end, fields, keys, out, o, levels, stack)
                before, before_size, written, written_size = start, np.int64(0), o, after - o
                before_size = p - start if p >= 0 else before_size
            if p >= 0:
                after = put_element(how, data, p, end, out, after, levels, stack)
            if p < 0 or after < 0:
                after = np.int64(-1)
                before_size = np.int64(0)  # what was written is written over
                start = behind_around(data, start, end, fields)
        elif how == TABLE:
            after = put_row(data, start, end, program, classes, fields, keys, out, o)
            if after <= GOES_ON and slots[0] < 0:
                slots[0] = number
                slots[1] = after
            if after == HEADER:
                states[number] = DELETED
                continue
        if after < 0 and how != JSON and how != JOURNAL and how != BATCH and how != OTLP and how != TABLE:
            after = put_another(
                how, data, start, end, other, other_classes, other_fields, other_keys,
                out, o, slots, stack, seen, levels, latest
            )  # fmt: skip
        if after < 0:  # another format's: only an object can be a record
            start = skip_blanks(data, start, end)
            is_one = start < end and data[np.uint64(start)] == OPEN_MAP
            after = put_bytes(data, start, end - start, out, o) if is_one else o
        sizes[number] = after - o
        o = after
    return o
