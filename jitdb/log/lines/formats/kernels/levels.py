"""The level of a record of text, for kernels: `ERROR name: no route`, `[main] WARN x`, `[core:error] [pid 7] x`.

Programs write it near the beginning, in capital letters, or in brackets, where blanks may stand beside it. A word of
the list that is part of a longer word is none. Colours of the terminal may stand around it. In letters of any case
it is the first word, with a colon behind it or between tabs or bars, or stands between two colons behind what is
without a blank: `warn: x`, `zone: error: x`, `imap(ada)<7>: Error: x`, or behind a name in brackets: `[api] error: x`,
or is alone in angle brackets: `<warn> x`. Of two in bars, `| TRACE | ERROR |`, the later counts: the first is a name.

Some programs write theirs otherwise: `fatal: [host]` of Ansible; `TLS Error: x` of OpenVPN, a word of capital letters
and `Error:`; `debug 3: x` of BIND; `| SUCCESS |` of loguru, between bars;
`[CRT]` of lnd; `E1128 08:00:00.000000 7 a.go:1] x` of klog, of which the letter is the level.

A level in capital letters is none where it stands in a path or a name with hyphens, or where more words are before it
than a head has (is_in_words): then the next one counts. Nor is it one without a colon behind a first word that is a
level in other letters, `info handling ERROR page`: which of them is meant is not certain.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.fields.sixteen import trailing_zeros, word_at
from jitdb.log.codecs.json.text import BACKSLASH, COLON, COMMA, OPEN_MAP, QUOTE, SPACE, TAB
from jitdb.log.lines.formats.kernels.writing import put_byte, put_bytes

_NEAR = 80  # bytes of a text in which its level begins
_LEAST, _MOST = 3, 9  # bytes of a level
_WIDE = 8  # bytes of a word
_COLOUR = 4  # digits of a colour, and its `m`, at most
_PADDED = 8  # blanks beside it in brackets, at most
_OPEN, _CLOSE, _DASH, _SLASH, _BAR = 91, 93, 45, 47, 124
_LESS, _GREATER = 60, 62
_E, _F, _I, _W = 69, 70, 73, 87  # of klog
_CASE = 32  # the bit that tells small letters from capital ones
_ZERO, _NINE, _SEMICOLON, _M, _ESC = 48, 57, 59, 109, 27
_NAMES = (
    b"TRACE DEBUG INFO NOTICE WARN WARNING ERROR ERR CRITICAL CRIT FATAL PANIC ALERT EMERG SEVERE "
    b"TRC TRAC VRB DBG DEBU INF WRN ERRO FTL FATA PANI LOG"
).split()
_FIRST_NAMES = b"TRCE DBUG FAIL VERBOSE".split()  # that are one only as the first word: of ASP.NET; of Winston
# As words of eight bytes; the last one is a level only with a colon behind it, as Postgres writes it.
_FIRST_WORDS = np.array([int.from_bytes(name, "little") for name in _FIRST_NAMES], np.uint64)
_WORDS = np.array([int.from_bytes(name, "little") for name in _NAMES], np.uint64)
_MASKS = np.array([(1 << 8 * min(size, _WIDE)) - 1 for size in range(_MOST + 2)], np.uint64)
_SMALL = np.uint64(0xDFDFDFDFDFDFDFDF)  # without the bit that tells small letters from capital ones
_AS_IS = np.uint64(0xFFFFFFFFFFFFFFFF)
# Bytes from 64 to 95, among them capital letters and brackets, have these bits of the first mask.
_HIGH, _CAPITAL = np.uint64(0xE0E0E0E0E0E0E0E0), np.uint64(0x4040404040404040)
_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_OF_WORDS = np.array([bytes([byte]).isalnum() or byte == 95 or byte >= 128 for byte in range(256)], np.bool_)
_LETTERS = np.array([chr(byte).isalpha() and byte < 128 for byte in range(256)], np.bool_)
_ALERT = np.uint64(int.from_bytes(b"ALERT", "little"))
_EMERGENC, _Y, _BYTE = np.uint64(int.from_bytes(b"EMERGENC", "little")), np.uint64(89), np.uint64(255)
_CRT = np.uint64(int.from_bytes(b"CRT", "little"))
_ERROR = np.uint64(int.from_bytes(b"Error", "little"))
_DEBUG = np.uint64(int.from_bytes(b"DEBUG", "little"))
_SUCCESS, _SUCCESS_SIZE = np.uint64(int.from_bytes(b"SUCCESS", "little")), 7
_FATAL, _FATAL_SIZE = np.uint64(int.from_bytes(b"fatal: ", "little")), 7
_LEVEL = np.frombuffer(b',"level":"......', np.uint8)
_GRADES = np.frombuffer(b"error   warning info    info    ........", np.uint8)  # of Snort's priorities, 1 to 4
_GRADE_SIZES = np.array([5, 7, 4, 4], np.int64)
_LEVEL_SIZE = 10


@part
def is_level(word):
    is_one = False
    for number in range(_WORDS.shape[0] - 1):
        is_one |= _WORDS[number] == word
    return is_one


@part
def is_emergency(data, p, small):
    """Whether the nine bytes at `p` are EMERGENCY."""
    return word_at(data, p) & small == _EMERGENC and np.uint64(data[np.uint64(p + _WIDE)]) & small & _BYTE == _Y


@part
def is_level_at(data, p, size, small):
    """Whether a level of this size is at `p`. small: _SMALL, of letters of any case, or _AS_IS, of capital ones."""
    if size > _WIDE:
        return size == _MOST and is_emergency(data, p, small)
    return size >= _LEAST and is_level(word_at(data, p) & _MASKS[size] & small)


@part
def word_end(data, p, end):
    """Where the word ends that begins at `p`, or goes on behind as many bytes as a level has."""
    end = min(end, p + _MOST + 1)
    while p < end and _OF_WORDS[data[np.uint64(p)]]:
        p += 1
    return p


@part
def before_colours(data, begin, p):
    """Where what stands before `p` ends, without what says how a terminal shows what follows, as `ESC[31m` does."""
    while p - 2 > begin and data[np.uint64(p - 1)] == _M:
        q = p - 2
        while q > begin and (_ZERO <= data[np.uint64(q)] <= _NINE or data[np.uint64(q)] == _SEMICOLON):
            q -= 1
        if q == begin or data[np.uint64(q)] != _OPEN or data[np.uint64(q - 1)] != _ESC:
            break
        p = q - 1
    return p


@part
def behind_colour(data, begin, first, p):
    """Where the word data[first:p] begins, without the end of a colour before it, which is of digits and a letter."""
    q = first
    while q < p and _ZERO <= data[np.uint64(q)] <= _NINE:
        q += 1
    return q + 1 if q < p and before_colours(data, begin, q + 1) <= q else first


@part
def level_before(data, begin, p):
    """Where the level begins that stands between a bracket or a colon and the bracket at `p`, in small letters or
    capital ones, -1 where none does; and where it ends. Blanks may stand beside it."""
    nothing = np.int64(-1)
    p = before_colours(data, begin, p)
    least = max(begin, p - _PADDED)
    while p > least and data[np.uint64(p - 1)] == SPACE:
        p -= 1
    first = p
    while first > begin and p - first <= _MOST + _COLOUR and _OF_WORDS[data[np.uint64(first - 1)]]:
        first -= 1
    first = behind_colour(data, begin, first, p)
    if not _LEAST <= p - first <= _MOST or first == begin:
        return nothing, p
    behind = before_colours(data, begin, first)
    least = max(begin, behind - _PADDED)
    while behind > least and data[np.uint64(behind - 1)] == SPACE:
        behind -= 1
    before = data[np.uint64(behind - 1)] if behind > begin else np.uint8(0)
    is_one = before == _OPEN or (before == COLON and behind == first)
    is_crt = p - first == 3 and word_at(data, first) & _MASKS[3] == _CRT
    is_one = is_one and (is_crt or is_level_at(data, first, p - first, _SMALL))
    return (np.int64(first) if is_one else nothing), p


@part
def capital_or_bracket(data, p):
    """How many of the eight bytes at `p` are before the first one that is a capital letter, a bracket, or one of the
    few signs between these."""
    word = (word_at(data, p) & _HIGH) ^ _CAPITAL
    found = (word - _ONES) & ~word & _TOPS
    return np.int64(trailing_zeros(found) >> np.uint64(3)) if found else np.int64(8)


@part
def is_behind(data, p, end):
    """Whether a colon and a blank, or the end, stand at `p`."""
    return p < end and data[np.uint64(p)] == COLON and (p + 1 == end or data[np.uint64(p + 1)] == SPACE)


@part
def behind_number(data, p, after, end):
    """Where the number ends that stands behind the level data[p:after], if this is `debug`; else `after`."""
    stop = after + 1
    if after - p != 5 or word_at(data, p) & _MASKS[5] & _SMALL != _DEBUG or stop >= end:
        return after
    while stop < end and _ZERO <= data[np.uint64(stop)] <= _NINE:
        stop += 1
    return stop if stop > after + 1 and data[np.uint64(after)] == SPACE else after


@part
def is_any_level(data, p, after):
    """Whether data[p:after] is a level in letters of any case, as the first word of a text."""
    if not _LEAST <= after - p <= _MOST:
        return False
    word = word_at(data, p) & _MASKS[after - p] & _SMALL
    is_one = is_level_at(data, p, after - p, _SMALL)
    for number in range(_FIRST_WORDS.shape[0]):
        is_one |= _FIRST_WORDS[number] == word
    return is_one


@part
def behind_blanks(data, p, end):
    while p < end and data[np.uint64(p)] == SPACE:
        p += 1
    return p


@part
def is_klog(data, p, after, end):
    """Whether data[p:after] begins a line of klog, `E1128 08:00:00.000000 7 a.go:1] x`."""
    if after - p != 5 or after + 3 >= end or data[np.uint64(after)] != SPACE or data[np.uint64(after + 3)] != COLON:
        return False
    for at in range(p + 1, after):
        if not _ZERO <= data[np.uint64(at)] <= _NINE:
            return False
    letter = data[np.uint64(p)]
    return letter == _E or letter == _F or letter == _I or letter == _W


@part
def first_level(data, p, end):
    """Where the level begins that is the first word of a text, or stands behind the first colon with a blank, -1 where
    none does; and where it ends."""
    nothing = np.int64(-1)
    mark = data[np.uint64(p)] if p < end else np.uint8(0)
    is_cell = mark == TAB or mark == _BAR
    first = p + 1 if is_cell or mark == _LESS else p
    first = behind_blanks(data, first, end) if mark == _BAR else first
    after = word_end(data, first, end)
    if is_cell:
        stop = behind_blanks(data, after, end) if mark == _BAR else after
        is_one = stop < end and data[np.uint64(stop)] == mark and is_any_level(data, first, after)
        return (np.int64(first) if is_one else nothing), after
    if mark == _LESS:
        is_one = after + 1 < end and data[np.uint64(after)] == _GREATER and data[np.uint64(after + 1)] == SPACE
        return (np.int64(first) if is_one and is_any_level(data, first, after) else nothing), after
    if is_klog(data, p, after, end):
        return np.int64(p), p + 1
    if is_any_level(data, first, after) and is_behind(data, behind_number(data, first, after, end), end):
        return np.int64(first), after
    near = min(end, p + _NEAR)
    if after == p and not (p < end and data[np.uint64(p)] == _SLASH):
        return nothing, after
    while after < near and data[np.uint64(after)] != SPACE:
        after += 1
    if data[np.uint64(after - 1)] != COLON:
        return nothing, after
    first = after + 1
    after = word_end(data, first, end)
    is_one = is_any_level(data, first, after) and is_behind(data, behind_number(data, first, after, end), end)
    return (np.int64(first) if is_one and first < near else nothing), after


@part
def word_before(data, begin, p):
    """Where the word begins that ends at `p`, which letters of one case make, all of it between blanks; -1 where none
    does."""
    first = p
    if p <= begin:
        return np.int64(-1)
    case = data[np.uint64(p - 1)] & _CASE
    while first > begin and _LETTERS[data[np.uint64(first - 1)]] and data[np.uint64(first - 1)] & _CASE == case:
        first -= 1
    is_one = first < p and (first == begin or data[np.uint64(first - 1)] == SPACE)
    return np.int64(first) if is_one else np.int64(-1)


@part
def is_in_words(data, begin, p, after, end):
    """Whether the level data[p:after] in capital letters is a word of a text, and not one of its head:

    - in a path, `/docs/ERROR`, but for `[thread/INFO]`; in a name with hyphens, `pool-ERROR-handler`
    - behind a comma, as in `done, ERROR count 0`, but for `main, ERROR, x` and `x, ERROR: y`
    - behind three words of small letters, without a colon behind it: `it then wrote ERROR twice`
    - ALERT behind a word of capital letters, `SERVICE ALERT:`, or without a colon behind one of small letters
    """
    behind = data[np.uint64(after)] if after < end else np.uint8(0)
    if behind == _DASH and after + 1 < end and _OF_WORDS[data[np.uint64(after + 1)]]:
        return True
    if p == begin:
        return False
    before = data[np.uint64(p - 1)]
    if before == _SLASH or before == BACKSLASH:
        return behind != _CLOSE
    if before == _DASH:
        return p - 1 > begin and _OF_WORDS[data[np.uint64(p - 2)]]
    if before != SPACE:
        return False
    if p - 1 > begin and data[np.uint64(p - 2)] == COMMA:
        return behind != COMMA and behind != COLON
    first = word_before(data, begin, p - 1)
    if first < 0:
        return False
    is_small = data[np.uint64(first)] & _CASE != 0
    if after - p == 5 and word_at(data, p) & _MASKS[5] == _ALERT:
        return not is_small or behind != COLON
    if not is_small or behind == COLON:
        return False
    for _ in range(2):
        if first - 1 <= begin:
            return False
        first = word_before(data, begin, first - 1)
        if first < 0 or data[np.uint64(first)] & _CASE == 0:
            return False
    return True


@part
def begins_with_level(data, p, end):
    """Whether a text begins with a level that is not all in capital letters, and a blank."""
    after = word_end(data, p, end)
    return (
        after < end
        and data[np.uint64(after)] == SPACE
        and is_any_level(data, p, after)
        and data[np.uint64(after - 1)] & _CASE != 0
    )


@part
def put_level_at(data, first, stop, out, o):
    o = (
        put_bytes(_LEVEL, 0, _LEVEL_SIZE, out, o)
        if out[np.uint64(o - 1)] != OPEN_MAP
        else put_bytes(_LEVEL, 1, _LEVEL_SIZE - 1, out, o)
    )
    return put_byte(out, put_bytes(data, first, stop - first, out, o), QUOTE)


@part
def put_grade(data, p, end, out, o):
    """The member `level` of a priority of Snort: 1 is high, 2 medium, 3 low, 4 very low."""
    grade = np.int64(data[np.uint64(p)]) - _ZERO - 1
    if end - p != 1 or not 0 <= grade < 4:
        return o
    return put_level_at(_GRADES, 8 * grade, 8 * grade + _GRADE_SIZES[grade], out, o)


@part
def is_behind_capitals(data, begin, p):
    """Whether a blank stands before `p`, and a word of capital letters before that."""
    first = word_before(data, begin, p - 1) if p - 1 > begin and data[np.uint64(p - 1)] == SPACE else np.int64(-1)
    return first >= 0 and data[np.uint64(first)] & _CASE == 0


@part
def is_between_bars(data, begin, p, after, end):
    """Whether data[p:after] stands between bars, with a blank before it and blanks behind."""
    while after < end and data[np.uint64(after)] == SPACE:
        after += 1
    return (
        p - 1 > begin
        and data[np.uint64(p - 1)] == SPACE
        and data[np.uint64(p - 2)] == _BAR
        and after < end
        and data[np.uint64(after)] == _BAR
    )


@part
def level_of_next_bar(data, begin, p, after, end):
    """Where the level data[p:after] is; or where it stands between bars, and another one in capital letters between the
    next two, as `| TRACE | ERROR |` of an agent of Datadog's that has the name TRACE, where that one is."""
    if not is_between_bars(data, begin, p, after, end):
        return np.int64(p), np.int64(after)
    first = behind_blanks(data, behind_blanks(data, after, end) + 1, end)
    stop = word_end(data, first, end)
    is_one = is_between_bars(data, p, first, stop, end) and is_level_at(data, first, stop - first, _AS_IS)
    return (np.int64(first), np.int64(stop)) if is_one else (np.int64(p), np.int64(after))


@part
def level_behind(data, begin, p, end):
    """Where the level begins that stands behind the name in brackets with which a text begins, the closing one of which
    is at `p`, with a colon behind it; -1 where none does; and where it ends."""
    nothing = np.int64(-1)
    first = p + 2
    if data[np.uint64(begin)] != _OPEN or first >= end or data[np.uint64(p + 1)] != SPACE:
        return nothing, p
    after = word_end(data, first, end)
    if not is_any_level(data, first, after) or not is_behind(data, after, end):
        return nothing, p
    for at in range(begin, p):
        if data[np.uint64(at)] == _CLOSE:
            return nothing, p
    return np.int64(first), after


@part
def is_fatal_before(data, begin, p):
    """Whether `fatal: ` stands before `p`, and a blank before that."""
    first = p - _FATAL_SIZE
    return (
        first > begin and word_at(data, first) & _MASKS[_FATAL_SIZE] == _FATAL and data[np.uint64(first - 1)] == SPACE
    )


@part
def put_level(data, p, end, out, o):
    """The member `level` of a record with this text, where it has one; where what is written ends."""
    if p + 1 < end and data[np.uint64(p)] == OPEN_MAP and data[np.uint64(p + 1)] == QUOTE:
        return o  # JSON says it itself
    begin = p
    first, stop = first_level(data, p, end)
    if first >= 0:
        first, stop = level_of_next_bar(data, begin, first, stop, end)
        return put_level_at(data, first, stop, out, o)
    near = min(end, p + _NEAR)
    last = min(end, near + _MOST + _PADDED)
    while True:
        ahead = capital_or_bracket(data, p)
        p += ahead
        if p >= last:
            return o
        if ahead == 8:
            continue
        first = p
        after = p
        stop = p
        if data[np.uint64(p)] == _CLOSE:
            first, stop = level_before(data, begin, p)
            if first < 0:
                first, stop = level_behind(data, begin, p, end)
        elif data[np.uint64(p)] == _OPEN and is_fatal_before(data, begin, p):
            first, stop = p - _FATAL_SIZE, p - 2
        elif p == begin or not _OF_WORDS[data[np.uint64(p - 1)]] or before_colours(data, begin, p) < p:
            after = word_end(data, p, end)
            size = after - p
            word = word_at(data, p) & _MASKS[size]
            is_one = is_level_at(data, p, size, _AS_IS)
            if size == 3 and word == _WORDS[_WORDS.shape[0] - 1]:
                is_one = after < end and data[np.uint64(after)] == COLON
            if size == 5 and word == _ERROR:
                is_one = is_behind(data, after, end) and is_behind_capitals(data, begin, p)
            if size == _SUCCESS_SIZE and word == _SUCCESS:
                is_one = is_between_bars(data, begin, p, after, end)
            is_one = is_one and not is_in_words(data, begin, p, after, end)
            if is_one and not is_behind(data, after, end):
                is_one = not begins_with_level(data, begin, end)
            first = p if is_one else np.int64(-1)
            stop = after
        else:
            first = np.int64(-1)
        if 0 <= first < near:
            first, stop = level_of_next_bar(data, begin, first, stop, end)
            return put_level_at(data, first, stop, out, o)
        p = max(p + 1, after)
