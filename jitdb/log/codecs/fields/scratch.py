"""The scratch memory of the kernels that locate fields: one array of int64, whose places have names here.

shapes (shape_kernels.py)       their state, then SHAPES shapes
of each open container          three arrays, of MAX_DEPTH + 1 twice, and of MAX_NESTING + 1
of each node of the trie        one place
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.paths import MAX_DEPTH
from jitdb.log.codecs.fields.constants import MAX_NESTING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.fields.trie import Trie

SHAPES: Final = 8
STEPS: Final = 96  # of a shape, at most: a record that needs more has none
STEP: Final = 7  # int64 of a step
SHAPE: Final = 1 + STEPS * STEP  # int64 of a shape: how many steps it has, then these
STATE: Final = 5  # int64 before the shapes
SHAPES_SCRATCH: Final = STATE + SHAPES * SHAPE  # int64 in all

# Places in the state: how many shapes there are, which one is learned next, which one fitted last, trust, and how many
# records are read without shapes.
KNOWN, NEXT, LATEST, TRUST, PAUSE = range(STATE)

# Places in a step: the literal as two little-endian words, the bits of them that count, its bytes, what is behind it.
WORD, MASK, WORD_2, MASK_2, SIZE, WHAT, ROW = range(STEP)

# Where the other arrays begin.
OWED: Final = SHAPES_SCRATCH
NODES: Final = OWED + MAX_DEPTH + 1
STACK: Final = NODES + MAX_DEPTH + 1
LAST_SEEN: Final = STACK + MAX_NESTING + 1


def scratch_of(trie: Trie) -> NDArray[np.int64]:
    """What a kernel needs to locate the fields of the trie."""
    return np.empty(LAST_SEEN + len(trie.field), np.int64)
