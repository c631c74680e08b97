"""Which text belongs to the text before it, as the lines of a stack trace do, for kernels.

Only two lines next to each other are looked at, so that a scan may begin anywhere. Python, Java, Go and JavaScript
indent the frames of a stack; what is not indented is known by its words, or is the name of an exception.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.fields.part_kernels import same_bytes
from jitdb.log.codecs.json.text import BACKSLASH, SPACE, TAB

_DASH, _DOT, _ZERO, _NINE, _COLON, _BRACKET = 45, 46, 48, 57, 58, 40
_TRACEBACK = np.frombuffer(b"Traceback (most recent call last)", np.uint8)
_CAUSED = np.frombuffer(b"Caused by:", np.uint8)
_DURING = np.frombuffer(b"During handling of ", np.uint8)
_ABOVE = np.frombuffer(b"The above exception ", np.uint8)
_GOROUTINE = np.frombuffer(b"goroutine ", np.uint8)
_EXCEPTION = np.frombuffer(b"Exception", np.uint8)
_ERROR = np.frombuffer(b"Error", np.uint8)
_THROWABLE = np.frombuffer(b"Throwable", np.uint8)


@part
def begins_with(data, p, end, text):
    return end - p >= text.shape[0] and same_bytes(data, p, text, np.int64(0), text.shape[0])


@part
def is_indented(data, p, end):
    """Whether a line, or the text in a line of JSON, begins with a blank."""
    if p >= end:
        return True
    char = data[np.uint64(p)]
    return char == SPACE or char == TAB or (char == BACKSLASH and p + 1 < end and data[np.uint64(p + 1)] == 116)


@part
def is_frame(data, p, end):
    """Whether a line begins with a name, and behind it is a colon, a bracket, or nothing: the last line of a traceback
    in Python, or the function in a stack of Go."""
    first = p
    while p < end:
        char = np.int64(data[np.uint64(p)])
        is_letter = 97 <= char | 32 <= 122 or char == 95 or char == 36
        if not is_letter and (p == first or not (_DASH <= char <= _NINE)):
            break
        p += 1
    return p > first and (p == end or data[np.uint64(p)] == _COLON or data[np.uint64(p)] == _BRACKET)


@part
def ends_with(data, p, end, text):
    size = text.shape[0]
    return end - p > size and same_bytes(data, end - size, text, np.int64(0), size)


@part
def is_thrown(data, p, end):
    """Whether a line is the first of a stack trace of Java or .NET: `java.lang.IllegalStateException: closed`, a name
    with dots that ends as such names do, and behind it a colon or nothing."""
    first = p
    dots = 0
    while p < end:
        char = np.int64(data[np.uint64(p)])
        is_letter = 97 <= char | 32 <= 122 or char == 95 or char == 36
        if not is_letter and (p == first or not (char == _DOT or _ZERO <= char <= _NINE)):
            break
        dots += char == _DOT
        p += 1
    if dots == 0 or not (p == end or data[np.uint64(p)] == _COLON):
        return False
    return (
        ends_with(data, first, p, _EXCEPTION)
        or ends_with(data, first, p, _ERROR)
        or ends_with(data, first, p, _THROWABLE)
    )


@part
def goes_on(data, before, before_end, p, end):
    """Whether the text data[p:end] belongs to the one before it, data[before:before_end], as a stack trace does."""
    if is_indented(data, p, end):
        return True
    char = data[np.uint64(p)]
    if char == 84 and (begins_with(data, p, end, _TRACEBACK) or begins_with(data, p, end, _ABOVE)):
        return True
    if char == 67 and begins_with(data, p, end, _CAUSED):
        return True
    if char == 68 and begins_with(data, p, end, _DURING):
        return True
    if char == 103 and begins_with(data, p, end, _GOROUTINE):
        return True
    if is_thrown(data, p, end):
        return True
    if end - p == 1 and (char == 125 or char == 93 or char == 41):  # of an object that JavaScript shows: }, ], )
        return True
    is_within = (before < before_end and is_indented(data, before, before_end)) or begins_with(
        data, before, before_end, _GOROUTINE
    )
    return is_within and is_frame(data, p, end)
