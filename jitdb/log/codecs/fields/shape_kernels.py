"""Shapes: what records of one program have in common, by which a scan goes from value to value without reading keys.

A shape is a list of steps. Each has a literal, up to 16 bytes that must stand where the step before ended (keys, and
what else lies between two values), and says what stands behind it: a value that nobody asked for, one that is field
number `row`, and so on; the codecs' kernels know that. Every byte of every literal is compared, every value is stepped
over as the general walk does it, and the last step must end where the record ends: so a record that fits a shape has
the same fields at the same places as the general walk finds. What does not fit takes that walk, which then shows a new
shape. The shapes of a call live in its scratch memory, SHAPES of them, and the oldest gives way.

Records whose shapes change all the time would pay for each try. So each miss costs some of the trust that each hit
earns, and without trust, records take the general walk alone for a while.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.fields.scratch import (
    KNOWN,
    LATEST,
    MASK,
    MASK_2,
    NEXT,
    PAUSE,
    ROW,
    SHAPE,
    SHAPES,
    SIZE,
    STATE,
    STEP,
    STEPS,
    TRUST,
    WHAT,
    WORD,
    WORD_2,
)

# What is behind a literal: the next step goes on with it; a value that nobody asked for; one that is a field. To one of
# the last two may be added that the value must be no map.
NOTHING, SKIPPED, WANTED, NO_MAP = 0, 1, 2, 4

# What the walk of a record finds: nothing special; nothing that a shape could be learned of; a value that cannot be
# decoded, or more.
FINE, SHAPELESS, SPOILED = range(3)

_MOST_TRUST: Final = 64
_COST: Final = 4  # of a miss
_PAUSE: Final = 512  # records

SLACK: Final = 16  # bytes of the buffer that must lie behind a record that is read by a shape


@part
def word_at(buf, position):
    """Eight bytes as a little-endian integer. With an unsigned index numba reads them at once."""
    start = np.uint64(position)
    word = np.uint64(0)
    for i in range(8):
        word |= np.uint64(buf[start + np.uint64(i)]) << np.uint64(8 * i)
    return word


@part
def begin_shapes(scratch):
    """No shape is known."""
    for place in range(STATE):
        scratch[place] = 0
    scratch[TRUST] = _MOST_TRUST


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
    """The shape that was learned at shape_at(scratch[NEXT]) has so many steps; it is none if they are too many (-1)."""
    shape = scratch[NEXT]
    scratch[shape_at(shape)] = steps
    if steps < 0:
        return
    scratch[LATEST] = shape
    scratch[KNOWN] = max(scratch[KNOWN], shape + 1)
    scratch[NEXT] = (shape + 1) % SHAPES


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
def add_literal(scratch, shape, steps, buf, start, stop, what, row):
    """Add steps with the literal buf[start:stop] and what is behind it; how many there are then, -1 if too many."""
    while steps >= 0:
        if steps == STEPS:
            return np.int64(-1)
        size = min(stop - start, np.int64(16))
        at = shape_at(shape) + 1 + steps * STEP
        put_word(scratch, at + WORD, at + MASK, buf, start, min(size, np.int64(8)))
        put_word(scratch, at + WORD_2, at + MASK_2, buf, start + 8, size - 8)
        start += size
        scratch[at + SIZE] = size
        scratch[at + WHAT] = what if start == stop else NOTHING
        scratch[at + ROW] = row
        steps += 1
        if start == stop:
            break
    return np.int64(steps)


@part
def fits(scratch, at, buf, position):
    """Whether the literal of the step at `at` stands at `position`, from where on SLACK bytes are in the buffer."""
    if (np.uint64(word_at(buf, position)).view(np.int64) & scratch[at + MASK]) != scratch[at + WORD]:
        return False
    if scratch[at + SIZE] <= 8:
        return True
    return (np.uint64(word_at(buf, position + 8)).view(np.int64) & scratch[at + MASK_2]) == scratch[at + WORD_2]


@part
def find_node(buf, at, size, node, next_sibling, key_start, key_length, keys):
    """The node with the key buf[at : at + size] among `node` and its siblings; -1: none."""
    while node >= 0:
        if key_length[node] == size:
            base = key_start[node]
            same = True
            for i in range(size):
                if buf[np.uint64(at + i)] != keys[np.uint64(base + i)]:
                    same = False
                    break
            if same:
                return np.int64(node)
        node = next_sibling[node]
    return np.int64(-1)
