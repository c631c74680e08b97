"""Numbers of JSON, from their digits, for kernels.

An integer has up to 64 bits here, what a double is made of up to 19 digits. The double is the one that Python's float()
gives: by one multiplication or division where digits and power of ten are doubles themselves (W. D. Clinger, 1990),
else by 128 bits of the power of ten, where these make it certain (D. Lemire, "Number Parsing at a Gigabyte per Second",
2021). All else is left to Python: more digits, subnormal numbers, overflows.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.fields.part_kernels import first_marked, rest_of
from jitdb.log.codecs.fields.sixteen import digit_stops, trailing_zeros, word_at

if TYPE_CHECKING:
    from jitdb.common.kernels import U64

LEAST_POWER: Final = -342  # of ten: less, with 19 digits, is zero
MOST_POWER: Final = 308  # more is infinite
_EXACT_POWERS: Final = 23  # of ten that are doubles: 0 to 22

_MINUS, _PLUS, _DOT, _ZERO, _E = 45, 43, 46, 48, 101
_MOST_DIGITS = 19  # that always fit 64 bits
_LARGE = np.uint64(10**19)
_BYTE = np.uint64(255)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_1 = np.uint64(1)
_EXACT = np.uint64(1 << 53)
_TOP = np.uint64(1 << 63)
_FRACTION = np.uint64((1 << 52) - 1)
_DOUBTFUL = np.uint64(0x1FF)
_ALL = np.uint64((1 << 64) - 1)
_HIGH = np.uint64(0x8080808080808080)
_ZEROS = np.uint64(0x3030303030303030)
_EVEN = np.uint64(0x00FF00FF00FF00FF)
_PAIRS = np.uint64(0x0000FFFF0000FFFF)
_ABOVE_NINE = np.uint64(0x7676767676767676)  # what makes 128 or more of 10 and more
_TENS = np.array([10**count for count in range(9)], np.uint64)


@cache
def powers() -> U64:
    """uint64 [2 * powers + 23]: of each power of ten from LEAST_POWER on the leading 128 bits of five to it.

    These are two words, the high one first. Behind them stand the bits of the doubles 10**0 to 10**22.
    """
    found: list[int] = []
    for power in range(LEAST_POWER, MOST_POWER + 1):
        five: int = 5 ** abs(power)
        if power < 0:  # the reciprocal; where a product of it may be exact, it is rounded up
            five = (1 << five.bit_length() + 127) // five + (power >= -27)
        size = five.bit_length()
        leading = five << 128 - size if size <= 128 else five >> size - 128
        found += (leading >> 64, leading & (1 << 64) - 1)
    exact = np.array([float(10**power) for power in range(_EXACT_POWERS)])
    return np.concatenate([np.array(found, np.uint64), exact.view(np.uint64)])


@part
def store_word(out, at, word):
    """Eight bytes, the lowest first. With an unsigned index they are written at once."""
    start = np.uint64(at)
    for i in range(8):
        out[start + np.uint64(i)] = np.uint8((word >> np.uint64(8 * i)) & _BYTE)


@part
def store_big_endian(out, at, word, size):
    """The low `size` bytes of a word, the highest first."""
    start = np.uint64(at)
    for i in range(size):
        out[start + np.uint64(i)] = np.uint8((word >> np.uint64(8 * (size - 1 - i))) & _BYTE)


@part
def copy_words(source, at, out, o, size):
    """Copy bytes by words: up to seven more are written."""
    for i in range(0, size, 8):
        store_word(out, o + i, word_at(source, at + i))


@part
def eight_digits(word):
    """The number that eight digits are: pairs, fours, eights."""
    word = ((word & np.uint64(0x0F0F0F0F0F0F0F0F)) * np.uint64(2561)) >> np.uint64(8)
    word = ((word & _EVEN) * np.uint64(6553601)) >> np.uint64(16)
    return ((word & _PAIRS) * np.uint64(42949672960001)) >> _32


@part
def digits_before(word):
    """How many of eight bytes, from the first on, are digits."""
    digits = word ^ _ZEROS
    others = ((digits + _ABOVE_NINE) | digits) & _HIGH  # right up to the first that is no digit
    if others == 0:
        return np.int64(8)
    return first_marked(others)


@part
def read_digits(buf, p, number):
    """Digits from `p` on, behind those of `number`: where they end, and the number, modulo 2**64.

    Up to eight of them cost no branch that depends on their number: those that are not there become zeros in front.
    """
    while True:
        word = word_at(buf, p)
        count = digits_before(word)
        if count < 8:
            break
        number = number * _TENS[8] + eight_digits(word)
        p += 8
    if count > 0:
        number = number * _TENS[np.uint64(count)] + eight_digits(word << np.uint64(64 - 8 * count))
    return p + count, number


@part
def short_number_end(buf, p):
    """Where the number at `p` ends, if it has less than 16 digits, signs and dots; else -1, which says nothing.

    No branch depends on its sign, or its length.
    """
    left = np.int64(-1)
    stops = digit_stops(buf, p)
    negative = np.int64(buf[np.uint64(p)] == _MINUS)
    stops &= ~np.uint64(negative)
    count = np.int64(trailing_zeros(stops))
    char = np.int64(buf[np.uint64(p + count)])
    zeros = np.int64(buf[np.uint64(p + negative)] == _ZERO)  # in front: 1 or more
    if count == 16 or count == negative or (zeros and count > negative + 1):
        return left
    if char == _DOT:
        first = count + 1
        stops &= stops - _1
        count = np.int64(trailing_zeros(stops))
        char = np.int64(buf[np.uint64(p + count)])
        if count == first or count == 16 or char == _DOT:
            return left
    return left if char | 32 == _E else p + count


@part
def fits_word(digits, count, first, negative):
    """Whether an integer fits 64 bits that has so many digits, the first of them `first`, and is `digits` modulo 2**64.

    Of 20 digits with a one in front, what does not fit is less than 10**19 then.
    """
    if negative:
        return count < _MOST_DIGITS or (count == _MOST_DIGITS and digits <= _TOP)
    return count <= _MOST_DIGITS or (count == _MOST_DIGITS + 1 and first == _ZERO + 1 and digits >= _LARGE)


@part
def product(a, b):
    """The 128 bits of a product of two words, as two words, the high one first."""
    a_low, a_high = a & _LOW, a >> _32
    b_low, b_high = b & _LOW, b >> _32
    low = a_low * b_low
    left, right = a_high * b_low, a_low * b_high
    middle = (low >> _32) + (left & _LOW) + (right & _LOW)
    high = a_high * b_high + (left >> _32) + (right >> _32) + (middle >> _32)
    return high, (middle << _32) | (low & _LOW)


@part
def nearest_double(digits, power, powers):
    """The bits of the double nearest to digits * 10**power, without a sign; 0 where that is not certain.

    The digits are not 0, the power is one of the table.
    """
    shift = np.int64(0)
    step = np.int64(32)
    while step:
        if digits >> np.uint64(64 - step) == 0:
            digits <<= np.uint64(step)
            shift += step
        step >>= 1
    place = np.uint64(2 * (power - LEAST_POWER))
    high, low = product(digits, powers[place])
    if (high & _DOUBTFUL) == _DOUBTFUL:
        more, _ = product(digits, powers[place + _1])
        low += more
        if low < more:
            high += _1
    if low == _ALL:
        return np.uint64(0)
    top = np.int64(high >> np.uint64(63))
    right = np.uint64(top + 9)
    mantissa = high >> right
    exponent = ((217706 * power) >> 16) + 63 + top - shift + 1023
    if exponent <= 0:
        return np.uint64(0)
    if low <= _1 and -4 <= power <= 23 and (mantissa & np.uint64(3)) == _1 and mantissa << right == high:
        mantissa &= ~_1  # exactly between two doubles: the even one
    mantissa = (mantissa + (mantissa & _1)) >> _1
    if mantissa >= _EXACT:
        mantissa >>= _1
        exponent += 1
    if exponent >= 2047:
        return np.uint64(0)
    return (mantissa & _FRACTION) | (np.uint64(exponent) << np.uint64(52))


@part
def read_number(buf, p, powers):
    """The number at `p`: where it ends, -1 where it is left to Python; whether it is an integer; whether it has a minus
    sign; and without that, as a word, the integer or the bits of the double.

    Digits end it that lie behind it, too: a caller who knows where it ends sees to it that none are there.
    """
    left = np.int64(-1)
    negative = buf[np.uint64(p)] == _MINUS
    if negative:
        p += 1
    begin = p
    p, digits = read_digits(buf, p, np.uint64(0))
    count = p - begin
    starts_with_zero = buf[np.uint64(begin)] == _ZERO
    if count == 0 or (starts_with_zero and count > 1):
        return left, True, negative, digits
    char = np.int64(buf[np.uint64(p)])
    if char != _DOT and char | 32 != _E:
        return (p if fits_word(digits, count, buf[np.uint64(begin)], negative) else left), True, negative, digits
    power = np.int64(0)
    if char == _DOT:
        point = p
        p += 1
        if starts_with_zero:
            while buf[np.uint64(p)] == _ZERO:
                p += 1
            count = 0
        first = p
        p, digits = read_digits(buf, p, digits)
        count += p - first
        power = point + 1 - p
        if power == 0:
            return left, False, negative, digits
        char = np.int64(buf[np.uint64(p)])
    if count > _MOST_DIGITS:
        return left, False, negative, digits
    if char | 32 == _E:
        p += 1
        sign = buf[np.uint64(p)]
        if sign == _MINUS or sign == _PLUS:
            p += 1
        first = p
        p, exponent = read_digits(buf, p, np.uint64(0))
        if p == first or p - first > 4:
            return left, False, negative, digits
        power += -np.int64(exponent) if sign == _MINUS else np.int64(exponent)
    if digits == 0:
        return p, False, negative, digits
    if digits <= _EXACT and -22 <= power <= 22:
        ten = np.uint64(powers[np.uint64(2 * (MOST_POWER - LEAST_POWER + 1) + abs(power))]).view(np.float64)
        value = np.float64(digits) / ten if power < 0 else np.float64(digits) * ten
        return p, False, negative, np.float64(value).view(np.uint64)
    if power < LEAST_POWER or power > MOST_POWER:
        return left, False, negative, digits
    bits = nearest_double(digits, power, powers)
    return (p if bits != 0 else left), False, negative, bits


@part
def split(is_integer, negative, word):
    """A number that read_number gave as the pair (hi, lo) of jitdb.common.values."""
    if not is_integer:
        value = np.uint64(word).view(np.float64)
        return (-value if negative else value) + 0.0, np.int64(0)
    hi = np.float64(word)
    rest = rest_of(np.uint64(word).view(np.int64), hi)
    return (-hi if negative else hi) + 0.0, (-rest if negative else rest)
