"""Times counted by steps of one length, and what the numbers of many groups are like, in one pass each.

Most times are in the step of the one before, so that their step is known already.

Sums are exact: a row of digits of 32 bits for each group, each digit in 64 bits of its own, so that carries can wait
(a superaccumulator; Kulisch, "Computer arithmetic and validity"). `below` digits of a sum stand behind the point, and
twice as many of a sum of squares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I16, I64, U32, Bools, F64Rows, I64Rows

FAR = 9.2e18  # nanoseconds: 64 bits hold no more, whatever the shift
LEAST = 1075  # a double is its integer times 2 ** (exponent - LEAST)
DIGIT = 32  # bits
WAITING = 1 << 27  # numbers that are added without carrying: each adds less than 2**35 to a digit
SMALL = 1 << 31  # whole numbers below are a digit, and their squares two
LONGEST = 48  # numbers of a run that sort_runs() sorts; longer ones numpy sorts faster
_LOW = np.uint64(0xFFFFFFFF)
_MANTISSA = np.uint64(0xFFFFFFFFFFFFF)
_32 = np.uint64(32)


@kernel
def count_steps(hi: F64, lo: I16, columns: I64, width: int, size: int, shift: int, first: int, counts: I64) -> int:
    """counts[(step - first) * width + column] += 1 for each time; how many that were.

    `lo` and `columns` may be empty, for zeros. What is no time (NaN), is far, or in no step of `counts` is passed over.
    """
    found = 0
    begin = np.int64(0)  # of the step before: it holds no time yet
    end = np.int64(0)
    place = np.int64(0)
    steps = np.int64(counts.shape[0]) // width
    for i in range(hi.shape[0]):
        time = hi[i]
        if not (-FAR < time < FAR):
            continue
        shifted = np.int64(time) + shift
        if lo.shape[0] != 0:
            shifted += np.int64(lo[i])
        if not (begin <= shifted < end):
            step = shifted // size
            place = step - first
            begin = step * size
            end = begin + size
        if 0 <= place < steps:
            column = np.int64(0)
            if columns.shape[0] != 0:
                column = columns[i]
            if 0 <= column < width:
                counts[np.uint64(place * width + column)] += 1
                found += 1
    return found


@part
def add_term(digits, row, number, place, sign):
    """Add sign * number * 2**place to a row of digits; `number` is a uint64."""
    at = np.uint64(place >> 5)
    shift = np.uint64(place & 31)
    low = (number & _LOW) << shift
    high = ((number >> _32) << shift) + (low >> _32)
    digits[row, at] += sign * np.int64(low & _LOW)
    digits[row, at + np.uint64(1)] += sign * np.int64(high & _LOW)
    digits[row, at + np.uint64(2)] += sign * np.int64(high >> _32)


@part
def add_large(bits, rest, row, below, sums, squares):
    """Add a finite double, by its bits, and a rest, to a row. False where there are too few digits."""
    exponent = (bits >> 52) & 0x7FF
    whole = np.uint64(bits) & _MANTISSA
    if exponent == 0:
        exponent = np.int64(1)
    else:
        whole |= np.uint64(1) << np.uint64(52)
    place = exponent - LEAST + 32 * below
    if place < 0 or (place >> 5) + 3 > sums.shape[1]:
        return False
    sign = np.int64(-1) if bits < 0 else np.int64(1)
    high = whole >> _32
    low = whole & _LOW
    add_term(sums, row, whole, place, sign)
    add_term(squares, row, low * low, 2 * place, np.int64(1))
    add_term(squares, row, np.uint64(2) * high * low, 2 * place + 32, np.int64(1))
    add_term(squares, row, high * high, 2 * place + 64, np.int64(1))
    if rest != 0:
        twice = np.uint64(2 * abs(rest))
        if rest < 0:
            sign = -sign
        sums[row, np.uint64(below)] += rest
        squares[row, np.uint64(2 * below)] += rest * rest
        add_term(squares, row, low * twice, place + 32 * below, sign)
        add_term(squares, row, high * twice, place + 32 * below + 32, sign)
    return True


@kernel
def add_numbers(
    hi: F64, lo: I16, groups: I64, begin: int, below: int, counts: I64, ends: F64Rows, rests: I64Rows,
    fractions: Bools, sums: I64Rows, squares: I64Rows,
) -> int:  # fmt: skip
    """Add the numbers from `begin` on to their groups; gives the first that has too few digits, or how many there are.

    `groups` may be empty for group 0, and `lo` for zeros. No number (NaN) and no group (one below 0) are passed over.
    counts: of each group; ends, rests: hi and lo of its least and its largest; fractions: whether some is not whole
    """
    for i in range(begin, hi.shape[0]):
        number = hi[i]
        group = np.int64(0)
        if groups.shape[0] != 0:
            group = groups[i]
        if number != number or group < 0:
            continue
        row = np.uint64(group)
        rest = np.int64(0)
        if lo.shape[0] != 0:
            rest = np.int64(lo[i])
        whole = np.int64(0)
        if -SMALL < number < SMALL:
            whole = np.int64(number)
        if np.float64(whole) == number and rest == 0:
            square = np.uint64(whole * whole)
            sums[row, np.uint64(below)] += whole
            squares[row, np.uint64(2 * below)] += np.int64(square & _LOW)
            squares[row, np.uint64(2 * below + 1)] += np.int64(square >> _32)
        elif -np.inf < number < np.inf:
            if not add_large(np.float64(number).view(np.int64), rest, row, below, sums, squares):
                return i
            if number != np.floor(number):
                fractions[row] = True
        counts[row] += 1
        if number < ends[0, row] or (number == ends[0, row] and (rest < rests[0, row] or counts[row] == 1)):
            ends[0, row] = number
            rests[0, row] = rest
        if number > ends[1, row] or (number == ends[1, row] and (rest > rests[1, row] or counts[row] == 1)):
            ends[1, row] = number
            rests[1, row] = rest
    return np.int64(hi.shape[0])


@kernel
def count_cells(hi: F64, groups: I64, rows: I64, least: int, width: int, cells: U32) -> None:
    """cells[row * width + number - least] += 1 for each number, which is whole, of a group that has a row (not -1)."""
    for i in range(hi.shape[0]):
        number = hi[i]
        group = np.int64(0)
        if groups.shape[0] != 0:
            group = groups[i]
        if number != number or group < 0:
            continue
        row = rows[np.uint64(group)]
        if row >= 0:
            cells[np.uint64(row * width + np.int64(number) - least)] += np.uint32(1)


@kernel
def put_numbers(hi: F64, lo: I16, groups: I64, rows: I64, nexts: I64, out: F64, out_lo: I16) -> None:
    """Put each number of a group that has a row (not -1) at the next place of that row. Both `lo` may be empty."""
    for i in range(hi.shape[0]):
        number = hi[i]
        group = np.int64(0)
        if groups.shape[0] != 0:
            group = groups[i]
        if number != number or group < 0:
            continue
        row = rows[np.uint64(group)]
        if row >= 0:
            place = np.uint64(nexts[np.uint64(row)])
            out[place] = number
            if lo.shape[0] != 0:
                out_lo[place] = lo[i]
            nexts[np.uint64(row)] += 1


@kernel
def sort_runs(numbers: F64, ends: I64) -> None:
    """Sort each run of numbers that is not longer than LONGEST; ends[i] is where run i ends."""
    begin = np.int64(0)
    for run in range(ends.shape[0]):
        end = ends[run]
        if end - begin <= LONGEST:
            for i in range(begin + 1, end):
                number = numbers[np.uint64(i)]
                at = i
                while at > begin and numbers[np.uint64(at - 1)] > number:
                    numbers[np.uint64(at)] = numbers[np.uint64(at - 1)]
                    at -= 1
                numbers[np.uint64(at)] = number
        begin = end
