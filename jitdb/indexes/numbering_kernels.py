"""Kernels that give equal values equal small numbers.

A table (see numbering.py) is an open-addressing hash table
of entries; an entry keeps a copy of the value's payload in an arena. Kernels never grow anything: when there is
no room they stop and say at which record, and the caller makes room and calls again.

Whoever writes records chooses their values, and could make them begin their search at one slot, so that a scan takes
quadratic time. So slots follow from a hash with secret keys, not from the one on disk, which anybody can turn back. Its
step is NH (Black, Halevi, Krawczyk, Krovetz and Rogaway, "UMAC: fast and secure message authentication", 1999): which
difference two words make, nobody can tell without the key. And a search is given up after so many slots.

Most fields have few values, which are short. So the entry of a value that fits a word is also kept where that word
says: who finds it there needs no hash, and looks at one place in memory instead of four.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT, ARRAY, MAP, NUMBER
from jitdb.indexes.hash_kernels import number_bits
from jitdb.log.codecs.fields.constants import LIVE
from jitdb.log.codecs.fields.sixteen import word_at

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I32, I64, U8, U32, U64

# Numbers that no value has.
NO_RECORD = np.uint32(0xFFFFFFFF)  # the record is deleted
NO_VALUE = np.uint32(0)  # the record lacks the field

RECENT = 256  # places of such entries: each holds the word, what tells values of one word apart, and the entry
_PLACE_BITS = np.uint64(64 - 8)
_SPREAD = np.uint64(
    0x9E3779B97F4A7C15
)  # 2**64 divided by the golden ratio (Knuth, "The Art of Computer Programming" 3, 6.4)

_1, _2, _8, _32 = (np.uint64(number) for number in (1, 2, 8, 32))
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
def copy_bytes(source, at, target, place, size):
    """Copy a run of bytes, by unsigned indices: so it is one of whole vectors."""
    begin, into = np.uint64(at), np.uint64(place)
    for i in range(np.uint64(size)):
        target[into + i] = source[begin + i]


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
    fixed: int, keys: U64, most: int, largest: int, slots: I32, filled: int, used: int,
    entry_kind: U8, entry_start: I64, entry_length: I32, entry_number: F64, entry_hash: U64, arena: U8,
    recent: U64, out: U32,
) -> tuple[int, int, int, bool]:  # fmt: skip
    """Number the values of the records [first, count): out[i] = number, NO_VALUE or NO_RECORD.

    `filled` entries and `used` arena bytes are taken before the call. Gives the first record not done (`count` when
    all are), the entries and bytes taken now, and whether it stopped because a value was in none of the `most` slots
    that are looked at, or is an array or a map of more than `largest` bytes. Entry 0 is not used. Where the table is
    `fixed` (1), a value that is not in it is NO_VALUE.
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
        place = np.uint64(0)
        tag = (np.uint64(size) << _8) | np.uint64(held)
        is_short = filled <= RECENT and (held == NUMBER or size < 8)
        word = np.uint64(0)
        if is_short:
            word = np.int64(number_bits(number[i])).view(np.uint64) if held == NUMBER else short_word(buf, at, size)
            place = np.uint64(3) * (((word ^ tag) * _SPREAD) >> _PLACE_BITS)
            if recent[place] == word and recent[place + _1] == tag:
                out[i] = np.uint32(recent[place + _2])
                continue
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
        if entry == 0 and fixed != 0:
            out[i] = NO_VALUE
            continue
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
            copy_bytes(buf, at, arena, used, payload)
            used += payload
        if is_short:
            recent[place] = word
            recent[place + _1] = tag
            recent[place + _2] = np.uint64(entry)
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
