"""Shapes: what records of one program have in common, by which a scan goes from value to value without reading keys.

A shape is a list of steps. Each has a literal, up to 16 bytes that must stand where the step before ended (keys, and
what else lies between two values), and says what stands behind it: a value that nobody asked for, one that is field
number `row`, and so on. Every byte of every literal is compared, every value is stepped
over as the general walk does it, and the last step must end where the record ends: so a record that fits a shape has
the same fields at the same places as the general walk finds. What does not fit takes that walk, which notes a new shape
on its way. The shapes of a call live in its scratch memory, and the oldest gives way.

Records whose shapes change all the time would pay for each try. So each miss costs some of the trust that each hit
earns, and without trust, records take the general walk alone for a while.

The scratch memory is one array of int64, whose places have names here:

state              what is known of shapes
SHAPES + 1 shapes  how many steps each has, then these; one is in the making
OPEN, NODES        of each open map: what tells its end, and its node in the trie
STACK              of each open container, where a value is looked at as a whole
LAST_SEEN          of each node of the trie: the record that had it last
"""

from __future__ import annotations

from typing import Final

import numpy as np

from jitdb.common.kernels import part
from jitdb.common.paths import MAX_DEPTH
from jitdb.common.values import ABSENT
from jitdb.log.codecs.fields.constants import MAX_NESTING
from jitdb.log.codecs.fields.part_kernels import same_bytes
from jitdb.log.codecs.fields.sixteen import same_literal, trailing_zeros

SHAPES: Final = 8
STEPS: Final = 96  # of a shape, at most: a record that needs more has none

# Places in the state: how many shapes there were so far, which one is in the making, which one fitted last, trust, and
# how many records are read without shapes.
KNOWN, NEXT, LATEST, TRUST, PAUSE = range(5)
STATE: Final = 5

# Places in a step: the literal as two little-endian words, the bits of each that count, its bytes, what is behind it.
WORD, WORD_2, MASK, MASK_2, SIZE, WHAT, ROW = range(7)
STEP: Final = 7
SHAPE: Final = 1 + STEPS * STEP

OPEN: Final = STATE + (SHAPES + 1) * SHAPE
NODES: Final = OPEN + MAX_DEPTH + 1
STACK: Final = NODES + MAX_DEPTH + 1
LAST_SEEN: Final = STACK + MAX_NESTING + 1

# What is behind a literal: the next step goes on with it; a value that nobody asked for; one that is a field (to the
# last two may be added that the value must be no map); a map whose pairs come next; nothing but that map's end.
NOTHING, SKIPPED, WANTED, NO_MAP, ENTER, LEAVE = 0, 1, 2, 4, 8, 16

_MOST_TRUST: Final = 64
_COST: Final = 4  # of a miss
_PAUSE: Final = 512  # records

SLACK: Final = 16  # bytes of the buffer that must lie behind a record that is read by a shape


@part
def first_marked(word):
    """Of which of its eight bytes, from the lowest on, a word has the top bit set first, and no other bit."""
    return np.int64(trailing_zeros(word) >> np.uint64(3))


@part
def begin_shapes(scratch):
    """No shape is known."""
    scratch[:STATE] = 0
    scratch[TRUST] = _MOST_TRUST
    for shape in range(SHAPES + 1):
        scratch[shape_at(shape)] = 0


@part
def are_tried(scratch):
    """Whether the next record is read by shapes."""
    if scratch[PAUSE] > 0:
        scratch[PAUSE] -= 1
        return False
    return True


@part
def shape_at(shape):
    """Where a shape is in the scratch memory."""
    return STATE + shape * SHAPE


@part
def note_hit(scratch, shape):
    """A record had this shape."""
    scratch[LATEST] = shape
    if scratch[TRUST] < _MOST_TRUST:
        scratch[TRUST] += 1


@part
def note_miss(scratch):
    """A record had none of the shapes."""
    scratch[TRUST] -= _COST
    if scratch[TRUST] <= 0:
        scratch[TRUST] = _MOST_TRUST // 4
        scratch[PAUSE] = _PAUSE


@part
def keep_shape(scratch, steps):
    """The shape in the making has so many steps; it is none if they are too many (-1)."""
    if steps < 0:
        return
    shape = scratch[NEXT]
    scratch[shape_at(shape)] = steps
    scratch[LATEST] = shape
    scratch[KNOWN] = max(scratch[KNOWN], shape + 1)
    scratch[NEXT] = (shape + 1) % (SHAPES + 1)
    scratch[shape_at(scratch[NEXT])] = 0


@part
def put_word(scratch, word, mask, buf, start, size):
    """Put up to eight bytes, as word_at gives them, and the mask of as many, into these places."""
    bits = np.int64(0)
    ones = np.int64(0)
    for i in range(size):
        bits |= np.int64(buf[np.uint64(start + i)]) << np.int64(8 * i)
        ones |= np.int64(255) << np.int64(8 * i)
    scratch[word] = bits
    scratch[mask] = ones


@part
def add_literal(scratch, steps, buf, start, stop, what, row):
    """Add steps with the literal buf[start:stop], and what is behind it, to the shape in the making, which has `steps`.

    Gives how many there are then; -1 if too many.
    """
    while True:
        if steps == STEPS:
            return np.int64(-1)
        size = min(stop - start, np.int64(16))
        at = shape_at(scratch[NEXT]) + 1 + steps * STEP
        put_word(scratch, at + WORD, at + MASK, buf, start, min(size, np.int64(8)))
        put_word(scratch, at + WORD_2, at + MASK_2, buf, start + 8, size - 8)
        start += size
        scratch[at + SIZE] = size
        scratch[at + WHAT] = what if start == stop else NOTHING
        scratch[at + ROW] = row
        steps += 1
        if start == stop:
            return np.int64(steps)


@part
def fits(scratch, at, buf, position):
    """Whether the literal of the step at `at` stands at `position`, from where on SLACK bytes are in the buffer."""
    return same_literal(buf, position, scratch, at + WORD)


@part
def find_node(buf, at, size, node, next_sibling, key_start, key_length, keys):
    """The node with the key buf[at : at + size] among `node` and its siblings; -1: none."""
    while node >= 0:
        if key_length[node] == size and same_bytes(buf, at, keys, key_start[node], size):
            return np.int64(node)
        node = next_sibling[node]
    return np.int64(-1)


@part
def forget(kind, record, field, first, stop):
    """What the record holds under these nodes does not count."""
    for node in range(first, stop):
        if field[node] >= 0:
            kind[field[node], record] = ABSENT
