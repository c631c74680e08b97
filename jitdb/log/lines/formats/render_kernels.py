"""Records of lines as JSON texts, compiled: which lines begin one, and what is written of each.

A record is a run of whole lines. What is none of the format's is a record if it is a JSON object, and else none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.fields.constants import DELETED, LIVE
from jitdb.log.codecs.json.read import skip_blanks
from jitdb.log.codecs.json.text import OPEN_MAP, RETURN
from jitdb.log.lines.formats.batch_kernels import behind_around, put_around, put_element, same_prefix
from jitdb.log.lines.formats.journal_kernels import put_journal
from jitdb.log.lines.formats.kinds import BATCH, CRI, DOCKER, JOURNAL, LOGFMT, OTLP, PATTERN
from jitdb.log.lines.formats.logfmt_kernels import begins_logfmt, put_logfmt
from jitdb.log.lines.formats.pattern_kernels import matched, put_pattern
from jitdb.log.lines.formats.runtime_kernels import begins_cri, begins_docker, put_cri, put_docker
from jitdb.log.lines.formats.writing_kernels import put_bytes

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8, U64


@part
def begins_record(how, data, before, before_end, p, end, program, classes, slots, stack, seen):
    """Whether the line data[p:end] begins a record, data[before:before_end] being the line before it (empty: none)."""
    if before < before_end and skip_blanks(data, p, end) == end:
        return False
    if how == PATTERN:
        return matched(data, p, end, program, classes, slots, stack, seen) >= 0
    if how == LOGFMT:
        return begins_logfmt(data, p, end) or (p < end and data[np.uint64(p)] == OPEN_MAP)
    if how == CRI:
        return begins_cri(data, before, before_end, p, end)
    return begins_docker(data, before, before_end, p, end)


@kernel
def join_lines(
    how: int, data: U8, before: int, before_end: int, starts: I64, lengths: I64, states: U8, count: int,
    program: I64, classes: U8, slots: I64, stack: I64, seen: U64,
) -> tuple[int, int, int]:  # fmt: skip
    """Join the lines that belong to the ones before them: how many records there are.

    data[before:before_end] is the line before the first one; empty where there is none. Lines that begin no record, and
    have none before them here, are left out: how many these are. Also how many lines the last record has.
    """
    records = 0
    left_out = 0
    last = 0
    for number in range(count):
        p = starts[number]
        end = p + lengths[number]
        if end > p and data[np.uint64(end - 1)] == RETURN:
            end -= 1
        is_blank = states[number] == DELETED
        is_new = False
        if not is_blank or before >= before_end:
            is_new = begins_record(how, data, before, before_end, p, end, program, classes, slots, stack, seen)
        if is_new or (records == 0 and before >= before_end and left_out == 0):
            starts[records] = p
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
        before = p
        before_end = end
    return records, left_out, last


@kernel
def begins(
    how: int, data: U8, before: int, before_end: int, begin: int, end: int,
    program: I64, classes: U8, slots: I64, stack: I64, seen: U64,
) -> int:  # fmt: skip
    """Whether the line data[begin:end] begins a record, behind the line data[before:before_end]."""
    return int(begins_record(how, data, before, before_end, begin, end, program, classes, slots, stack, seen))


@kernel
def render(
    how: int, data: U8, starts: I64, lengths: I64, states: U8, program: I64, classes: U8, fields: I64, keys: U8,
    latest: int, out: U8, places: I64, sizes: I64, spare: U8, slots: I64, stack: I64, seen: U64, levels: I64,
) -> int:  # fmt: skip
    """Write the live records as JSON texts, one behind the other: where each begins in `out`, and its bytes.

    latest: year and month, such as 202611, behind which no time without a year is
    """
    o = np.int64(0)
    # What was around the last element, and what was written of it: it mostly is the same around the next one.
    before, before_size, written, written_size = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for number in range(starts.shape[0]):
        places[number] = o
        sizes[number] = 0
        if states[number] != LIVE:
            continue
        start = starts[number]
        end = start + lengths[number]
        after = np.int64(-1)
        if how == PATTERN:
            after = put_pattern(
                data, start, end, program, classes, fields, keys, out, o, slots, stack, seen, levels, latest
            )
        elif how == LOGFMT:
            after = put_logfmt(data, start, end, out, o)
        elif how == CRI:
            after = put_cri(data, start, end, out, o, spare, levels)
        elif how == DOCKER:
            after = put_docker(data, start, end, out, o, spare, levels)
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
        if after < 0:  # another format's: only an object can be a record
            start = skip_blanks(data, start, end)
            is_one = start < end and data[np.uint64(start)] == OPEN_MAP
            after = put_bytes(data, start, end - start, out, o) if is_one else o
        sizes[number] = after - o
        o = after
    return o
