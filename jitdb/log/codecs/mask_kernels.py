"""The kernel that writes the patterns of texts: what varies gives way to placeholders (masks.py has the rules).

A text is gone through once, a word at a time: a run of letters and digits, of which every byte that is not ASCII is
one. At a word that has a digit in it, or may begin a time or an id, the rules are tried one after the other; each says
where what it takes ends, 0 where it takes nothing. Nothing ends within a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import inlined, kernel, part
from jitdb.common.placeholders import HEX_DIGITS, ID, IP, MOST, NUM, REST, TIME, UUID
from jitdb.common.values import STRING

if TYPE_CHECKING:
    from jitdb.common.kernels import I32, U8

#: Bits of a byte's class.
DIGIT, HEX, LETTER, BLANK = 1, 2, 4, 8  # HEX: letters from a to f
WORD = DIGIT | HEX | LETTER

TOKENS = 128  # words between blanks of a pattern, at most
LONGEST = 64  # letters of a word that stays

_PLUS, _DASH, _DOT, _COMMA, _SLASH, _ZERO, _X, _COLON, _LESS, _MORE, _E, _T, _V, _Z = (
    43, 45, 46, 44, 47, 48, 120, 58, 60, 62, 101, 84, 118, 90,
)  # fmt: skip
_SPACE = 32
_CLOSERS = (41, 93, 125, 46)  # behind ) ] } and . a sign is none


@inlined
def kind_at(buf, at, end, classes):
    """The class of the byte there, 0 behind the end."""
    return classes[np.uint64(buf[np.uint64(at)])] if at < end else np.uint8(0)


@inlined
def is_byte(buf, at, end, char):
    return at < end and buf[np.uint64(at)] == char


@inlined
def is_sign(buf, at, end):
    return at < end and (buf[np.uint64(at)] == _PLUS or buf[np.uint64(at)] == _DASH)


@part
def run_of(buf, at, end, classes, wanted):
    """How many bytes from there on are of these classes."""
    begin = at
    while at < end and (classes[np.uint64(buf[np.uint64(at)])] & wanted) != 0:
        at += 1
    return at - begin


@part
def ends_word(buf, at, end, classes):
    return (kind_at(buf, at, end, classes) & WORD) == 0


@part
def are(buf, at, end, classes, wanted, count):
    """Whether so many bytes there are of these classes."""
    if at + count > end:
        return False
    same = True
    for i in range(count):
        same = same and (classes[np.uint64(buf[np.uint64(at + i)])] & wanted) != 0
    return same


@part
def offset_end(buf, at, end, classes):
    """Where a time ends that has come this far: behind Z, or an offset from UTC, if one follows."""
    if is_byte(buf, at, end, _Z) and ends_word(buf, at + 1, end, classes):
        return at + 1
    if is_sign(buf, at, end) and are(buf, at + 1, end, classes, DIGIT, 2):
        minutes = at + 3 + is_byte(buf, at + 3, end, _COLON)
        if are(buf, minutes, end, classes, DIGIT, 2) and ends_word(buf, minutes + 2, end, classes):
            return minutes + 2
    return at if ends_word(buf, at, end, classes) else np.int64(0)


@part
def clock_end(buf, at, end, classes):
    """The end of hh:mm, hh:mm:ss and hh:mm:ss.fraction, with an offset or not."""
    if not (
        are(buf, at, end, classes, DIGIT, 2)
        and is_byte(buf, at + 2, end, _COLON)
        and are(buf, at + 3, end, classes, DIGIT, 2)
    ):
        return np.int64(0)
    if is_byte(buf, at + 5, end, _COLON) and are(buf, at + 6, end, classes, DIGIT, 2):
        if is_byte(buf, at + 8, end, _DOT) or is_byte(buf, at + 8, end, _COMMA):
            digits = run_of(buf, at + 9, end, classes, DIGIT)
            if digits > 0:
                found = offset_end(buf, at + 9 + digits, end, classes)
                if found != 0:
                    return found
        found = offset_end(buf, at + 8, end, classes)
        if found != 0:
            return found
    return offset_end(buf, at + 5, end, classes)


@part
def date_end(buf, at, end, classes):
    """The end of 2026-11-20, with a time behind T or a space, or not; of 2026/11/20, too."""
    for place in (4, 7):
        if not (is_byte(buf, at + place, end, _DASH) or is_byte(buf, at + place, end, _SLASH)):
            return np.int64(0)
    if not (
        are(buf, at, end, classes, DIGIT, 4)
        and are(buf, at + 5, end, classes, DIGIT, 2)
        and are(buf, at + 8, end, classes, DIGIT, 2)
    ):
        return np.int64(0)
    if is_byte(buf, at + 10, end, _T) or is_byte(buf, at + 10, end, _SPACE):
        found = clock_end(buf, at + 11, end, classes)
        if found != 0:
            return found
    return at + 10 if ends_word(buf, at + 10, end, classes) else np.int64(0)


@part
def three(buf, at, end):
    """The three bytes there as a number."""
    if at + 3 > end:
        return np.int64(0)
    first, second, third = buf[np.uint64(at)], buf[np.uint64(at + 1)], buf[np.uint64(at + 2)]
    return np.int64(first) << 16 | np.int64(second) << 8 | np.int64(third)


@part
def is_name(word, names):
    """Whether the three bytes are one of these."""
    found = False
    for place in range(names.shape[0]):
        found = found or names[place] == word
    return found


@part
def named_end(buf, at, end, classes, days, months):
    """The end of `Nov 20`, with a day of the week before, and a time and a year behind, or without."""
    word = three(buf, at, end)
    if is_name(word, days):
        at += 3 + is_byte(buf, at + 3, end, _COMMA)
        if not is_byte(buf, at, end, _SPACE):
            return np.int64(0)
        at += 1
        word = three(buf, at, end)
    if not (is_name(word, months) and is_byte(buf, at + 3, end, _SPACE)):
        return np.int64(0)
    at += 4 + is_byte(buf, at + 4, end, _SPACE)
    digits = run_of(buf, at, end, classes, DIGIT)
    at += digits
    if not 1 <= digits <= 2 or not ends_word(buf, at, end, classes):
        return np.int64(0)
    if is_byte(buf, at, end, _SPACE):
        clock = clock_end(buf, at + 1, end, classes)
        if clock != 0:
            at = clock
    has_year = is_byte(buf, at, end, _SPACE) and are(buf, at + 1, end, classes, DIGIT, 4)
    return at + 5 if has_year and ends_word(buf, at + 5, end, classes) else at


@part
def slashed_end(buf, at, end, classes, months):
    """The end of 20/Nov/2026, with a time behind a colon, or not."""
    if not (is_byte(buf, at + 2, end, _SLASH) and is_byte(buf, at + 6, end, _SLASH)):
        return np.int64(0)
    if not (
        are(buf, at, end, classes, DIGIT, 2)
        and is_name(three(buf, at + 3, end), months)
        and are(buf, at + 7, end, classes, DIGIT, 4)
    ):
        return np.int64(0)
    if is_byte(buf, at + 11, end, _COLON):
        found = clock_end(buf, at + 12, end, classes)
        if found != 0:
            return found
    return at + 11 if ends_word(buf, at + 11, end, classes) else np.int64(0)


@part
def uuid_end(buf, at, end, classes):
    """The end of 8-4-4-4-12 hexadecimal digits."""
    if at + 36 > end:
        return np.int64(0)
    for place in range(36):
        char = buf[np.uint64(at + place)]
        if place == 8 or place == 13 or place == 18 or place == 23:
            if char != _DASH:
                return np.int64(0)
        elif (classes[np.uint64(char)] & (DIGIT | HEX)) == 0:
            return np.int64(0)
    return at + 36 if ends_word(buf, at + 36, end, classes) else np.int64(0)


@part
def ip_end(buf, at, end, classes):
    """The end of four numbers of up to three digits with dots between them."""
    for part_of in range(4):
        digits = run_of(buf, at, end, classes, DIGIT)
        if not 1 <= digits <= 3:
            return np.int64(0)
        at += digits
        if part_of < 3:
            if not is_byte(buf, at, end, _DOT):
                return np.int64(0)
            at += 1
    is_more = is_byte(buf, at, end, _DOT) and (kind_at(buf, at + 1, end, classes) & DIGIT) != 0
    return at if not is_more and ends_word(buf, at, end, classes) else np.int64(0)


@part
def unit_end(buf, at, end, classes):
    """Behind the digits of a number: where its unit begins and ends, letters of up to three bytes; 0, 0 for more."""
    if is_byte(buf, at, end, _E) or is_byte(buf, at, end, _E - 32):
        power = at + 1 + is_sign(buf, at + 1, end)
        digits = run_of(buf, power, end, classes, DIGIT)
        if digits > 0:
            letters = run_of(buf, power + digits, end, classes, HEX | LETTER)
            if letters <= 3 and ends_word(buf, power + digits + letters, end, classes):
                return power + digits, power + digits + letters
    letters = run_of(buf, at, end, classes, HEX | LETTER)
    if letters <= 3 and ends_word(buf, at + letters, end, classes):
        return at, at + letters
    return np.int64(0), np.int64(0)


@part
def number_end(buf, at, end, classes):
    """Where the unit of a number of digits and dots begins and ends; 0, 0 where there is none."""
    digits = run_of(buf, at, end, classes, DIGIT)
    if digits == 0:
        return np.int64(0), np.int64(0)
    at += digits
    before = np.int64(0)  # where it ends without what is behind the last dot
    while is_byte(buf, at, end, _DOT):
        digits = run_of(buf, at + 1, end, classes, DIGIT)
        if digits == 0:
            break
        before = at
        at += 1 + digits
    begin, behind = unit_end(buf, at, end, classes)
    return (begin, behind) if behind != 0 else (before, before)


@inlined
def put(buf, begin, end, out, size):
    """Write bytes of the text; gives how many there are now."""
    for at in range(begin, end):
        out[np.uint64(size)] = buf[np.uint64(at)]
        size += 1
    return size


@part
def put_name(out, size, number, names):
    """Write a placeholder, of which `names` has eight bytes each, the first of them its length."""
    place = 8 * number
    for at in range(place + 1, place + 1 + names[np.uint64(place)]):
        out[np.uint64(size)] = names[np.uint64(at)]
        size += 1
    return size


@part
def name_end(buf, at, end, names):
    """The end of what is written like a placeholder."""
    for number in range(names.shape[0] // 8):
        count = np.int64(names[np.uint64(8 * number)])
        if at + count <= end:
            same = True
            for i in range(count):
                if buf[np.uint64(at + i)] != names[np.uint64(8 * number + 1 + i)]:
                    same = False
                    break
            if same:
                return at + count
    return np.int64(0)


@part
def is_hex(buf, at, word, seen, classes):
    """Whether the word is hexadecimal digits: behind 0x, or eight at least with a letter and a digit among them."""
    length = word - at
    if length > 2 and buf[np.uint64(at)] == _ZERO and (buf[np.uint64(at + 1)] | 32) == _X:
        return run_of(buf, at + 2, word, classes, DIGIT | HEX) == length - 2
    return length >= 8 and seen == (DIGIT | HEX)


@part
def put_mixed(buf, at, word, classes, out, size, names):
    """Write a word with a digit in it: letters before a number, or any."""
    letters = run_of(buf, at, word, classes, HEX | LETTER)
    is_named = letters >= 2 or (letters == 1 and (buf[np.uint64(at)] | 32) == _V)
    if is_named and letters <= LONGEST and run_of(buf, at + letters, word, classes, DIGIT) == word - at - letters:
        return put_name(out, put(buf, at, at + letters, out, size), NUM, names)
    return put_name(out, size, ID, names)


@part
def time_end(buf, at, end, word, seen, classes, days, months):
    """The end of a time that begins with this word."""
    length = word - at
    found = np.int64(0)
    if seen == DIGIT:
        if length == 4:
            found = date_end(buf, at, end, classes)
        elif length == 2:
            found = clock_end(buf, at, end, classes)
            if found == 0:
                found = slashed_end(buf, at, end, classes, months)
    elif length == 3 and (seen & DIGIT) == 0:
        found = named_end(buf, at, end, classes, days, months)
    return found


@part
def put_word(buf, at, end, classes, days, months, names, out, size):
    """Write what the word there begins; gives where that ends, and how many bytes are written."""
    word = at
    seen = np.uint8(0)
    while word < end:
        kind = classes[np.uint64(buf[np.uint64(word)])]
        if (kind & WORD) == 0:
            break
        seen |= kind
        word += 1
    length = word - at
    if length == 8 and (seen & LETTER) == 0 and is_byte(buf, word, end, _DASH):
        found = uuid_end(buf, at, end, classes)
        if found != 0:
            return found, put_name(out, size, UUID, names)
    if 2 <= length <= 4:
        found = time_end(buf, at, end, word, seen, classes, days, months)
        if found != 0:
            return found, put_name(out, size, TIME, names)
    if (seen & DIGIT) == 0:
        return word, put(buf, at, word, out, size) if length <= LONGEST else put_name(out, size, ID, names)
    begins = (classes[np.uint64(buf[np.uint64(at)])] & DIGIT) != 0
    if begins:
        found = ip_end(buf, at, end, classes)
        if found != 0:
            return found, put_name(out, size, IP, names)
    if is_hex(buf, at, word, seen, classes):
        return word, put_name(out, size, HEX_DIGITS, names)
    if begins:
        unit, found = number_end(buf, at, end, classes)
        if found != 0:
            return found, put(buf, unit, found, out, put_name(out, size, NUM, names))
    return word, put_mixed(buf, at, word, classes, out, size, names)


@part
def may_be_signed(buf, begin, at, classes):
    """Whether a plus or minus there may be that of a number."""
    if at == begin:
        return True
    before = buf[np.uint64(at - 1)]
    for closer in _CLOSERS:
        if before == closer:
            return False
    return (classes[np.uint64(before)] & WORD) == 0


@part
def put_text(buf, begin, end, classes, days, months, names, out, first):
    """Write the pattern of the text; gives where it ends."""
    size, at = first, begin
    tokens = 1
    while at < end:
        char = buf[np.uint64(at)]
        kind = classes[np.uint64(char)]
        if kind == BLANK:
            at += run_of(buf, at, end, classes, BLANK)
            if at == end:
                break
            if size > first:
                out[np.uint64(size)] = _SPACE
                size += 1
                tokens += 1
            if tokens > TOKENS:
                return put_name(out, size, REST, names)
            continue
        if size - first >= MOST:
            return put_name(out, size, REST, names)
        if (kind & WORD) != 0:
            at, size = put_word(buf, at, end, classes, days, months, names, out, size)
            continue
        found = unit = np.int64(0)
        if char == _LESS:
            found = name_end(buf, at, end, names)
            if found != 0:
                size = put_name(out, size, ID, names)
        elif is_sign(buf, at, end) and may_be_signed(buf, begin, at, classes):
            unit, found = number_end(buf, at + 1, end, classes)
            if found != 0:
                size = put(buf, unit, found, out, put_name(out, size, NUM, names))
        if found != 0:
            at = found
        else:
            out[np.uint64(size)] = char
            size += 1
            at += 1
    return size


@kernel
def mask_texts(
    buf: U8, kind: U8, start: I32, length: I32, classes: U8, days: I32, months: I32, names: U8,
    out: U8, out_start: I32, out_length: I32,
) -> None:  # fmt: skip
    """The pattern of each text, one behind the other in `out`; other values have none, of length 0."""
    size = np.int64(0)
    for value in range(kind.shape[0]):
        out_start[value] = size
        if kind[value] == STRING:
            begin = np.int64(start[value])
            size = put_text(
                buf, begin, begin + np.int64(length[value]), classes, days, months, names, out, np.int64(size)
            )
        out_length[value] = size - out_start[value]
