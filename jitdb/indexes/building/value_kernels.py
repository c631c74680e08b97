"""Kernels that turn located values into numbers, prefixes and groups, while their bytes are in the cache.

**Numbering** gives equal values equal small numbers. A table (see numbering.py) is an open-addressing hash table
of entries; an entry keeps a copy of the value's payload in an arena. Kernels never grow anything: when there is
no room they stop and say at which record, and the caller makes room and calls again.

Whoever writes records chooses their values, and could make them begin their search at one slot, so that a scan takes
quadratic time. So slots follow from a hash with secret keys, not from the one on disk, which anybody can turn back. Its
step is NH (Black, Halevi, Krawczyk, Krovetz and Rogaway, "UMAC: fast and secure message authentication", 1999): which
difference two words make, nobody can tell without the key. And a search is given up after so many slots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT, ARRAY, MAP, NULL, NUMBER
from jitdb.indexes.hash_kernels import number_bits
from jitdb.indexes.kinds.seen import OTHERS
from jitdb.log.codecs.fields.constants import LIVE
from jitdb.log.codecs.fields.shape_kernels import word_at

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I16, I32, I64, U8, U32, U64, Bools

# Numbers that no value has.
NO_RECORD = np.uint32(0xFFFFFFFF)  # the record is deleted
NO_VALUE = np.uint32(0)  # the record lacks the field

_1, _8, _32 = (np.uint64(number) for number in (1, 8, 32))
_LOW = np.uint64(0xFFFFFFFF)


@part
def same_long_bytes(left, left_start, right, right_start, size):
    """Whether two runs of eight bytes or more are equal; the last word may overlap the one before."""
    last = size - 8
    done = np.int64(0)
    while done < last:
        if word_at(left, left_start + done) != word_at(right, right_start + done):
            return False
        done += 8
    return word_at(left, left_start + last) == word_at(right, right_start + last)


@part
def short_word(buf, start, size):
    """A run of less than eight bytes as a little-endian integer; where there are none, `start` may be anything."""
    if size > 0 and start + 8 <= buf.shape[0]:
        return word_at(buf, start) & ((_1 << np.uint64(8 * size)) - _1)
    word = np.uint64(0)
    for i in range(size):
        word |= np.uint64(buf[np.uint64(start + i)]) << np.uint64(8 * i)
    return word


@part
def mix_word(h, word, key):
    """One more word of 8 bytes: the product of its halves, each hidden by the key and by what came before."""
    h ^= word
    return ((h + key) & _LOW) * (((h >> _32) + (key >> _32)) & _LOW)


@part
def slot_hash(keys, kind, buf, start, length, number):
    """A hash of a located value that depends on three secret `keys` (uint64). Of a number the length is its rest."""
    h = keys[0] + ((np.uint64(length) << _8) | np.uint64(kind)) * (keys[1] | _1)
    if kind == NUMBER:
        h = mix_word(h, np.int64(number_bits(number)).view(np.uint64), keys[2])
    elif length >= 8:
        last = start + length - 8  # which may overlap the word before
        position = start
        while position < last:
            h = mix_word(h, word_at(buf, position), keys[2])
            position += 8
        h = mix_word(h, word_at(buf, last), keys[2])
    else:
        h = mix_word(h, short_word(buf, np.int64(start), np.int64(length)), keys[2])
    h = (h ^ (h >> _32)) * (keys[1] | _1)
    return h ^ (h >> _32)


@kernel
def number_values(
    buf: U8, kind: U8, start: I32, length: I32, number: F64, states: U8, first: int, count: int,
    keys: U64, most: int, largest: int, slots: I32, filled: int, used: int,
    entry_kind: U8, entry_start: I64, entry_length: I32, entry_number: F64, entry_hash: U64, arena: U8,
    out: U32,
) -> tuple[int, int, int, bool]:  # fmt: skip
    """Number the values of the records [first, count): out[i] = number, NO_VALUE or NO_RECORD.

    `filled` entries and `used` arena bytes are taken before the call. Gives the first record not done (`count` when
    all are), the entries and bytes taken now, and whether it stopped because a value was in none of the `most` slots
    that are looked at, or is an array or a map of more than `largest` bytes. Entry 0 is not used.
    """
    mask = slots.shape[0] - 1
    room = min(entry_kind.shape[0], slots.shape[0] - (slots.shape[0] >> 2))
    for i in range(first, count):
        held = kind[i]
        if held == ABSENT:
            out[i] = NO_VALUE if states[i] == LIVE else NO_RECORD
            continue
        at = np.int64(start[i])
        size = np.int64(length[i])
        if size > largest and (held == ARRAY or held == MAP):
            return i, filled, used, True
        h = slot_hash(keys, held, buf, at, size, number[i])
        slot = np.int64(h & np.uint64(mask))
        entry = np.int64(slots[slot])
        left = most
        while entry != 0:
            if entry_hash[entry] == h and entry_kind[entry] == held and entry_length[entry] == size:
                if held == NUMBER:
                    if number_bits(entry_number[entry]) == number_bits(number[i]):
                        break
                else:
                    base = entry_start[entry]
                    if size < 8:
                        if short_word(arena, base, size) == short_word(buf, at, size):
                            break
                    elif same_long_bytes(arena, base, buf, at, size):
                        break
            left -= 1
            if left == 0:
                return i, filled, used, True
            slot = (slot + 1) & mask
            entry = np.int64(slots[slot])
        if entry == 0:
            payload = np.int64(0) if held == NUMBER else size
            if filled >= room or used + payload > arena.shape[0]:
                return i, filled, used, False
            entry = filled
            filled += 1
            slots[slot] = entry
            entry_kind[entry] = held
            entry_start[entry] = used
            entry_length[entry] = size
            entry_number[entry] = number[i]
            entry_hash[entry] = h
            for j in range(payload):
                arena[used + j] = buf[at + j]
            used += payload
        out[i] = np.uint32(entry)
    return count, filled, used, False


@kernel
def refill_slots(slots: I32, entry_hash: U64, filled: int) -> None:
    """Enter the first `filled` entries into an empty, larger table of slots."""
    mask = slots.shape[0] - 1
    for entry in range(1, filled):
        slot = np.int64(entry_hash[entry] & np.uint64(mask))
        while slots[slot] != 0:
            slot = (slot + 1) & mask
        slots[slot] = entry


@kernel
def count_numbers(numbers: U32, bounds: I64, bases: I64, counts: I64) -> None:
    """How often each number occurs: counts[base + number], where piece p is numbers[bounds[p] : bounds[p + 1]]
    and has base bases[p]. NO_RECORD is passed over."""
    for piece in range(bases.shape[0]):
        base = bases[piece]
        for i in range(bounds[piece], bounds[piece + 1]):
            if numbers[i] != NO_RECORD:
                counts[base + np.int64(numbers[i])] += 1


@kernel
def group_records(
    numbers: U32, bounds: I64, bases: I64, places: U32, groups: int, owners: U32, lead: int, out: U32, begins: I64
) -> None:  # fmt: skip
    """Sort the records of all pieces by the group of their number, places[base + number], stably.

    `owners` names the record of each entry; empty, entry i is of record lead + i. Fills `out` with the sorted records
    and `begins` with where each group begins and, one behind the last, where that ends; begins[groups + 1] is scratch.
    Entries of NO_RECORD, or whose place is not below `groups`, are left out.
    """
    begins[:] = 0
    for piece in range(bases.shape[0]):
        base = bases[piece]
        for i in range(bounds[piece], bounds[piece + 1]):
            if numbers[i] != NO_RECORD:
                place = np.int64(places[base + np.int64(numbers[i])])
                if place < groups:
                    begins[place + 2] += 1
    for group in range(1, groups):
        begins[group + 1] += begins[group]
    # begins[group + 1] is where the group's next record goes: at the end, where the group ends.
    owned = owners.shape[0] > 0
    for piece in range(bases.shape[0]):
        base = bases[piece]
        for i in range(bounds[piece], bounds[piece + 1]):
            if numbers[i] != NO_RECORD:
                place = np.int64(places[base + np.int64(numbers[i])])
                if place < groups:
                    out[begins[place + 1]] = owners[i] if owned else np.uint32(lead + i)
                    begins[place + 1] += 1


@kernel
def byte_prefixes(
    buf: U8, kind: U8, start: I32, length: I32, number: F64, count: int, skip: int, out: U32
) -> None:  # fmt: skip
    """Four bytes of each payload from byte `skip` on, as a big-endian u32 (so that prefixes sort as bytes do).

    Bytes past the payload's end count as zero; a number's payload is that of its key; null, booleans, arrays and
    maps have none.
    """
    for i in range(count):
        held = kind[i]
        prefix = np.int64(0)
        if held == NUMBER:
            bits = number_bits(number[i])
            for j in range(skip, skip + 4):
                byte = np.int64(0)
                if j < 8:
                    byte = (bits >> (8 * j)) & 0xFF
                elif j < 10:
                    byte = (np.int64(length[i]) >> (8 * (j - 8))) & 0xFF
                prefix = (prefix << 8) | byte
        elif held != ABSENT and held != ARRAY and held != MAP:
            at = np.int64(start[i])
            size = np.int64(length[i])
            for j in range(skip, skip + 4):
                prefix <<= 8
                if j < size:
                    prefix |= np.int64(buf[at + j])
        out[i] = np.uint32(prefix)


@kernel
def smallest_numbers(
    kind: U8, number: F64, length: I32, more: int, out_hi: F64, out_lo: I16
) -> tuple[float, float, bool, bool, int]:  # fmt: skip
    """The number that each record holds in a field: hi and lo, or NaN and 0 where none does. With `more`, the smaller
    of that and of what `out_hi` and `out_lo` have already.

    Gives the smallest and largest hi, whether any lo is not 0, whether all numbers are whole, and the bits of seen.py.
    """
    rests = False
    whole = True
    seen = np.int64(0)
    low = np.inf
    high = -np.inf
    for i in range(kind.shape[0]):
        best = np.nan
        rest = np.int64(0)
        if more:
            best = out_hi[i]
            rest = np.int64(out_lo[i])
        if kind[i] == NUMBER:
            hi = number[i]
            lo = np.int64(length[i])
            if best != best or hi < best or (hi == best and lo < rest):
                best = hi
                rest = lo
        elif kind[i] != ABSENT and kind[i] != NULL:
            seen |= np.int64(OTHERS)
        if best == best:
            low = min(low, best)
            high = max(high, best)
            if rest != 0:
                rests = True
            if best != np.floor(best) or np.isinf(best):
                whole = False
        else:
            rest = np.int64(0)
        out_hi[i] = best
        out_lo[i] = np.int16(rest)
    return low, high, rests, whole, seen


@kernel
def equal_payloads(
    buf: U8, kind: U8, start: I32, length: I32, number: F64, count: int,
    wanted_kind: int, payload: U8, size: int, whole: int, out: Bools,
) -> None:  # fmt: skip
    """Which values have this kind and this payload (`whole`), or a payload that begins with it.

    The payload of a number is that of its key: hi (f64) and lo (i16), little-endian.
    """
    bits = np.int64(0)
    rest = np.int64(0)
    if wanted_kind == NUMBER and size == 10:
        for j in range(8):
            bits |= np.int64(payload[j]) << (8 * j)
        rest = np.int64(payload[8]) | (np.int64(payload[9]) << 8)
    for i in range(count):
        same = kind[i] == wanted_kind
        if same and wanted_kind == NUMBER:
            same = size == 10 and number_bits(number[i]) == bits and (np.int64(length[i]) & 0xFFFF) == rest
        elif same:
            same = length[i] == size if whole else length[i] >= size
            if same:
                at = np.int64(start[i])
                for j in range(size):
                    if buf[at + j] != payload[j]:
                        same = False
                        break
        out[i] = same
