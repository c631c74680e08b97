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
from jitdb.indexes.kinds.kernels.places import number_of_places, place_at

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I16, I64, U8, U32, Bools, F64Rows, I64Rows

FAR = 9.2e18  # nanoseconds: 64 bits hold no more, whatever the shift
LEAST = 1075  # a double is its integer times 2 ** (exponent - LEAST)
DIGIT = 32  # bits
WAITING = 1 << 27  # numbers that are added without carrying: each adds less than 2**35 to a digit
SMALL = 1 << 31  # whole numbers below are a digit, and their squares two
LARGE = 1 << 53  # and of whole numbers below, two digits, and four
TOGETHER = 16  # codes that find_leading() looks at together
LONGEST = 48  # numbers of a run that sort_runs() sorts; longer ones numpy sorts faster
COUNT, LOW, HIGH, REST = (np.uint64(column) for column in range(4))  # of a group's row; REST has two
SUMS = 5
_LOW = np.uint64(0xFFFFFFFF)
_MANTISSA = np.uint64(0xFFFFFFFFFFFFF)
_1 = np.uint64(1)
_32 = np.uint64(32)


@kernel
def count_steps(hi: F64, lo: I16, columns: I64, width: int, size: int, shift: int, first: int, counts: I64) -> int:
    """counts[(step - first) * width + column] += 1 for each time; how many that were.

    `lo` and `columns` may be empty, for zeros; a column below 0 counts from the last one. What is no time (NaN), is
    far, or in no step of `counts` is passed over.
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
                if column < 0:
                    column += width
            if 0 <= column < width:
                counts[np.uint64(place * width + column)] += 1
                found += 1
    return found


@kernel
def add_weights(hi: F64, codes: U32, which: int, rows: F64Rows) -> None:
    """Count each record in the row of its code, behind the weight there, for which its number counts if it has one (not
    NaN): how many there are (0), the least (1) or the largest (2), which is NaN before the first.
    """
    for i in range(hi.shape[0]):
        number = hi[i]
        row = np.uint64(codes[i])
        rows[row, 1] += 1
        if number == number:
            weight = rows[row, 0]
            if which == 0:
                rows[row, 0] = weight + 1
            elif not (weight <= number if which == 1 else weight >= number):
                rows[row, 0] = number


@kernel
def add_spans(hi: F64, codes: U32, lows: F64, rows: F64Rows) -> None:
    """The same with the largest as weight, and the least in `lows`."""
    for i in range(hi.shape[0]):
        number = hi[i]
        row = np.uint64(codes[i])
        rows[row, 1] += 1
        if number == number:
            if not lows[row] <= number:
                lows[row] = number
            if not rows[row, 0] >= number:
                rows[row, 0] = number


@part
def sift_down(heap):
    """Let the first number of a heap, the largest of it but for that one, go where it belongs."""
    at, number = 0, heap[0]
    while True:
        child = 2 * at + 1
        if child + 1 < heap.shape[0] and heap[child + 1] > heap[child]:
            child += 1
        if child >= heap.shape[0] or heap[child] <= number:
            heap[at] = number
            return
        heap[at] = heap[child]
        at = child


@kernel
def find_leading(rows: F64Rows, sign: int, best: F64, codes: U32) -> tuple[int, int]:
    """How many codes have one of the least weights (add_weights) times `sign`: as many as `best` has room for, and all
    that have the last of these weights, too. They are written to `codes`, ascending; -1 where fewer have a weight. And
    how many codes some record has. Code 0 is none.

    Most codes have none, so some are looked at together, without branches.
    """
    best[:] = np.inf
    weighed = there = candidates = 0
    last = best[0]
    for begin in range(1, rows.shape[0], TOGETHER):
        end = min(begin + TOGETHER, rows.shape[0])
        may_be = False
        for code in range(begin, end):
            row = np.uint64(code)
            weight = sign * rows[row, 0]
            there += rows[row, 1] > 0
            weighed += weight == weight  # of codes that no record has, too, where all weights are numbers
            may_be |= weight <= last
        if may_be:
            for code in range(begin, end):
                row = np.uint64(code)
                weight = sign * rows[row, 0]
                if weight <= last and rows[row, 1] > 0:
                    codes[candidates] = code
                    candidates += 1
                    if weight < last:
                        best[0] = weight
                        sift_down(best)
                        last = best[0]
    if min(weighed, there) < best.shape[0]:
        return -1, there
    found = 0
    for at in range(candidates):
        code = np.uint64(codes[at])
        if sign * rows[code, 0] <= best[0]:
            codes[found] = code
            found += 1
    return found, there


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
def add_large(bits, rest, row, below, rows):
    """Add a finite double, by its bits, and a rest, to the sums of a row. False where there are too few digits."""
    digits = (rows.shape[1] - SUMS) // 3
    exponent = (bits >> 52) & 0x7FF
    whole = np.uint64(bits) & _MANTISSA
    if exponent == 0:
        exponent = np.int64(1)
    else:
        whole |= np.uint64(1) << np.uint64(52)
    place = exponent - LEAST + 32 * below
    if place < 0 or (place >> 5) + 3 > digits:
        return False
    sign = np.int64(-1) if bits < 0 else np.int64(1)
    high = whole >> _32
    low = whole & _LOW
    squares = 32 * (SUMS + digits)  # where they begin, in bits
    add_term(rows, row, whole, 32 * SUMS + place, sign)
    add_term(rows, row, low * low, squares + 2 * place, np.int64(1))
    add_term(rows, row, np.uint64(2) * high * low, squares + 2 * place + 32, np.int64(1))
    add_term(rows, row, high * high, squares + 2 * place + 64, np.int64(1))
    if rest != 0:
        twice = np.uint64(2 * abs(rest))
        if rest < 0:
            sign = -sign
        rows[row, np.uint64(SUMS + below)] += rest
        rows[row, np.uint64(SUMS + digits + 2 * below)] += rest * rest
        add_term(rows, row, low * twice, squares + place + 32 * below, sign)
        add_term(rows, row, high * twice, squares + place + 32 * below + 32, sign)
    return True


@part
def add_whole(whole, row, below, rows):
    """Add a whole number below LARGE to the sums of a row. False where there are too few digits: two."""
    digits = (rows.shape[1] - SUMS) // 3
    if below + 2 > digits:
        return False
    sign = np.int64(-1) if whole < 0 else np.int64(1)
    low = np.uint64(abs(whole)) & _LOW
    high = np.uint64(abs(whole)) >> _32
    sums = np.uint64(SUMS + below)
    rows[row, sums] += sign * np.int64(low)
    rows[row, sums + _1] += sign * np.int64(high)
    twice = np.uint64(2) * low * high
    squares = np.uint64(SUMS + digits + 2 * below)
    rows[row, squares] += np.int64((low * low) & _LOW)
    rows[row, squares + _1] += np.int64(((low * low) >> _32) + (twice & _LOW))
    rows[row, squares + np.uint64(2)] += np.int64((twice >> _32) + ((high * high) & _LOW))
    rows[row, squares + np.uint64(3)] += np.int64((high * high) >> _32)
    return True


@kernel
def add_numbers(
    hi: F64, lo: I16, groups: I64, begin: int, below: int, rows: I64Rows, fractions: Bools
) -> int:  # fmt: skip
    """Add the numbers from `begin` on to their groups; gives the first that has too few digits, or how many there are.

    `groups` may be empty for group 0, and `lo` for zeros. No number (NaN) and no group (one below 0) are passed over.
    rows: of each group how many (COUNT), hi of the least and the largest (LOW, HIGH: bits of doubles), lo of both, the
          digits of the sum, and twice as many of the sum of squares: a group of few digits is in one line of the cache
    fractions: whether some number of a group is not whole
    """
    sums = np.uint64(SUMS + below)
    squares = np.uint64(SUMS + (rows.shape[1] - SUMS) // 3 + 2 * below)
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
        bits = np.float64(number).view(np.int64)
        whole = np.int64(0)
        if -SMALL < number < SMALL:
            whole = np.int64(number)
        if np.float64(whole) == number and rest == 0:
            square = np.uint64(whole * whole)
            rows[row, sums] += whole
            rows[row, squares] += np.int64(square & _LOW)
            rows[row, squares + np.uint64(1)] += np.int64(square >> _32)
        elif rest == 0 and -LARGE < number < LARGE and np.floor(number) == number:
            if not add_whole(np.int64(number), row, below, rows):
                return i
        elif -np.inf < number < np.inf:
            if not add_large(bits, rest, row, below, rows):
                return i
            if number != np.floor(number):
                fractions[row] = True
        is_first = rows[row, COUNT] == 0
        rows[row, COUNT] += 1
        least = np.int64(rows[row, LOW]).view(np.float64)
        if is_first or number < least or (number == least and rest < rows[row, REST]):
            rows[row, LOW] = bits
            rows[row, REST] = rest
        largest = np.int64(rows[row, HIGH]).view(np.float64)
        if is_first or number > largest or (number == largest and rest > rows[row, REST + _1]):
            rows[row, HIGH] = bits
            rows[row, REST + _1] = rest
    return np.int64(hi.shape[0])


@part
def row_of(number, groups, rows, i):
    """The row of record i's group, -1 if the group has none or the number is NaN. Without `groups` there is one."""
    group = np.int64(0)
    if groups.shape[0] != 0:
        group = groups[i]
    if number != number or group < 0:
        return np.int64(-1)
    return rows[np.uint64(group)]


@kernel
def count_cells(hi: F64, groups: I64, rows: I64, least: int, width: int, cells: U32) -> int:
    """cells[row * width + number - least] += 1 for each number of a group that has a row (not -1); how many are not
    whole, or have no cell.
    """
    outside = 0
    for i in range(hi.shape[0]):
        row = row_of(hi[i], groups, rows, i)
        if row >= 0:
            if least <= hi[i] < least + width and np.float64(np.int64(hi[i])) == hi[i]:
                cells[np.uint64(row * width + np.int64(hi[i]) - least)] += np.uint32(1)
            else:
                outside += 1
    return outside


@kernel
def mark_bits(groups: I64, values: U32, width: int, bits: U8) -> None:
    """Set the bit of the group and the value of each record, the lowest of a byte first: each group has `width` bits. A
    group below 0, and the value 0, are none.
    """
    for i in range(groups.shape[0]):
        if groups[i] >= 0 and values[i] != 0:
            place = groups[i] * width + np.int64(values[i])
            bits[np.uint64(place >> 3)] |= 1 << (place & 7)


@kernel
def count_bits(bits: U8, size: int, counts: I64) -> None:
    """How many of each `size` bytes' bits are set; bytes that are not there have none."""
    for group in range(counts.shape[0]):
        for at in range(group * size, min((group + 1) * size, bits.shape[0])):
            byte = bits[np.uint64(at)]
            while byte:
                byte &= byte - 1
                counts[group] += 1


@kernel
def count_groups(groups: I64, values: U32, counts: I64) -> None:
    """Count the records that have a value (not 0) by their group, from -2 on, which is the first of the counts."""
    for i in range(groups.shape[0]):
        if values[i] != 0:
            counts[np.uint64(groups[i] + 2)] += 1


@kernel
def put_numbers(hi: F64, lo: I16, groups: I64, rows: I64, nexts: I64, out: F64, out_lo: I16) -> None:
    """Put each number of a group that has a row (not -1) at the next place of that row. Both `lo` may be empty."""
    for i in range(hi.shape[0]):
        row = row_of(hi[i], groups, rows, i)
        if row >= 0:
            place = np.uint64(nexts[np.uint64(row)])
            out[place] = hi[i]
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


@part
def place_in(number, least, shift):
    """The part of 2**shift doubles that a double is in, in their order; the first begins at `least`.

    By their bits as integers, of which those of the larger double are larger (quantiles._in_order).
    """
    bits = np.float64(number).view(np.int64)
    if bits < 0:
        bits ^= np.int64(0x7FFFFFFFFFFFFFFF)
    return (np.uint64(bits) - np.uint64(np.int64(least))) >> np.uint64(shift)


@kernel
def count_parts(hi: F64, groups: I64, group: int, least: int, shift: int, cells: I64) -> None:
    """cells[part] += 1 for each number of the group that is in a part: see place_in(). `groups`: as add_numbers()."""
    for i in range(hi.shape[0]):
        if hi[i] == hi[i] and (groups.shape[0] == 0 or groups[i] == group):
            place = place_in(hi[i], least, shift)
            if place < np.uint64(cells.shape[0]):
                cells[place] += 1


@kernel
def take_parts(
    hi: F64, groups: I64, group: int, least: int, shift: int, wanted: Bools, out: F64, taken: int
) -> int:  # fmt: skip
    """Put each number of the group that is in a wanted part into out[taken:]; how many are there then."""
    for i in range(hi.shape[0]):
        if hi[i] == hi[i] and (groups.shape[0] == 0 or groups[i] == group):
            place = place_in(hi[i], least, shift)
            if place < np.uint64(wanted.shape[0]) and wanted[place]:
                out[np.uint64(taken)] = hi[i]
                taken += 1
    return taken


@part
def cell_of(number, shift):
    """The cell of a double (cells.py)."""
    if number == 0:
        return np.int64(0)
    bits = np.float64(number).view(np.int64)
    if bits < 0:
        bits ^= np.int64(0x7FFFFFFFFFFFFFFF)
    return bits >> np.int64(shift)


@kernel
def count_chosen(hi: F64, begin: int, end: int, places: U32, shift: int, first: int, cells: I64) -> None:
    """cells[cell - first] += 1 for each number (not NaN) at these places; without any, from `begin` to `end`."""
    for i in range(number_of_places(begin, end, places)):
        at = place_at(begin, places, i)
        if hi[at] == hi[at]:
            cells[np.uint64(cell_of(hi[at], shift) - first)] += 1


@kernel
def choose_in_cells(
    hi: F64, begin: int, end: int, places: U32, shift: int, first: int, wanted: Bools, out: U32
) -> int:  # fmt: skip
    """The places, among these as count_chosen() has them, of numbers in wanted cells; how many are put into `out`.

    wanted[cell - first]; cells beyond are not.
    """
    taken = np.int64(0)
    for i in range(number_of_places(begin, end, places)):
        at = place_at(begin, places, i)
        if hi[at] == hi[at]:
            place = cell_of(hi[at], shift) - first
            if 0 <= place < wanted.shape[0] and wanted[np.uint64(place)]:
                out[np.uint64(taken)] = np.uint32(at)
                taken += 1
    return taken
