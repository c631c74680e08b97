"""The kernel that looks for a text in the values of records that are JSON texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import inlined, kernel, part
from jitdb.log.codecs.fields.search_kernels import has_no_ascii, holds_text
from jitdb.log.codecs.json.read import skip_blanks, text_end
from jitdb.log.codecs.json.text import (
    CLOSE_ARRAY,
    CLOSE_MAP,
    COLON,
    COMMA,
    OPEN_ARRAY,
    OPEN_MAP,
    QUOTE,
    SPACE,
    put_text,
)

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8

NO, YES, UNSURE = 0, 1, 2  # whether a record holds the text; UNSURE: Python says


@inlined
def word_end(buf, at, end):
    """Where the number or word at `at` ends."""
    while at < end:
        char = buf[np.uint64(at)]
        if char <= SPACE or char == COMMA or char == CLOSE_MAP or char == CLOSE_ARRAY:
            break
        at += 1
    return at


@inlined
def in_text(buf, at, end, is_plain, needle, fold, text):
    """Whether the text between the quotes buf[at:end] holds the needle; escapes are undone in `text`."""
    if not is_plain:
        behind, size = put_text(buf, at, text, np.int64(0))
        if behind < 0 or (fold and has_no_ascii(text, np.int64(0), size)):
            return np.int64(UNSURE)
        return np.int64(holds_text(text, np.int64(0), size, needle, fold))
    if fold and has_no_ascii(buf, at, end):
        return np.int64(UNSURE)
    return np.int64(holds_text(buf, at, end, needle, fold))


@part
def in_values(buf, at, end, needle, fold, text):
    """Whether a value of the record buf[at:end] holds the needle: any but the keys of maps."""
    while at < end:
        char = buf[np.uint64(at)]
        if char == QUOTE:
            close, is_plain = text_end(buf, at + 1, end)
            if close < 0:
                return np.int64(UNSURE)
            behind = skip_blanks(buf, close + 1, end)
            is_key = behind < end and buf[np.uint64(behind)] == COLON
            if not is_key:
                found = in_text(buf, at + 1, close, is_plain, needle, fold, text)
                if found != NO:
                    return found
            at = behind + is_key
        elif (
            char <= SPACE
            or char == COMMA
            or char == OPEN_MAP
            or char == CLOSE_MAP
            or char == OPEN_ARRAY
            or char == CLOSE_ARRAY
        ):
            at += 1
        else:
            close = word_end(buf, at, end)
            if holds_text(buf, at, close, needle, fold):
                return np.int64(YES)
            at = close
    return np.int64(NO)


@kernel
def search_values(buf: U8, starts: I64, lengths: I64, needle: U8, fold: int, text: U8, found: U8) -> int:
    """Of the records that are marked in `found`, set whether a value holds the needle: NO, YES or UNSURE.

    `text` has room for the longest of them and SLACK; SLACK bytes stand behind the last record. Gives how many are
    UNSURE.
    """
    unsure = 0
    for i in range(starts.shape[0]):
        if found[i]:
            found[i] = in_values(buf, starts[i], starts[i] + lengths[i], needle, fold, text)
            unsure += found[i] == UNSURE
    return unsure
