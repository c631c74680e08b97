"""An automaton of what stands between the values of records, by which a scan goes from value to value, reading no keys.

Records of one program have the same keys, mostly in the same order. A step of the automaton has a literal, the bytes
between two values (a key, and what else is there), and says what is behind it: a value that nobody asked for, a field,
a map. Each step knows which others followed it so far. Every byte of each literal is compared, every value is stepped
over as the general walk does it, and the last step must end where the record ends. So where the automaton leads through
a record, it finds the fields that the general walk finds. Any other record takes that walk, which adds steps.

In JSON, commas and brackets are in the literals: what may follow one value of a map may follow any other. So steps that
lead to the same place share one list of what follows, and some twenty steps know all records that have any of twenty
fields. In msgpack and bipf a head tells the size of a map, so each way through records has its own steps.

Where guesses are wrong all the time, as with new keys in each record, the walk alone is faster. So what goes wrong
costs trust, what goes right earns it, and without trust records take the walk alone for a while. An automaton that is
full begins anew.

The scratch memory is one array of int64, zeros at first, whose places have names here:

state              what is known
SLOTS slots        the steps; the first one is where a record begins
OPEN, NODES        of each open map: what tells its end, and its node in the trie
STACK              of each open container, where a value is looked at as a whole
LAST_SEEN          of each node of the trie: the attempt to read a record that came to it last
"""

from __future__ import annotations

from typing import Final

import numpy as np

from jitdb.common.kernels import part
from jitdb.common.paths import MAX_DEPTH
from jitdb.common.values import ABSENT
from jitdb.log.codecs.fields.constants import MAX_NESTING
from jitdb.log.codecs.fields.sixteen import same_literal

SLOTS: Final = 512

# Places in the state: slots that are taken (0: not begun), trust, how many records are read without the automaton from
# here on, how many it is the next time, and attempts so far.
TAKEN, TRUST, PAUSE, NEXT_PAUSE, ATTEMPT = range(5)
STATE: Final = 8  # so that slots begin where lines of the cache may

# Places in a slot: 16 bytes of a literal as two little-endian words, and the bits of each that count. A longer literal
# goes on in the next slot. Then, in the first one: the literal's bytes, what is behind it, and which field that is (-1:
# none). Then steps (START: none): guesses at what follows. Then the node of what is behind the literal (-1: none), and
# the number of the place that it leads to. Then steps again: the one that has the list of what follows, the first in
# its own list, and the next in the list that it is in.
WORD, WORD_2, MASK, MASK_2, SIZE, WHAT, ROW, LIKELY = range(8)
_GUESSES: Final = 4
GUESSED: Final = LIKELY + _GUESSES
NODE, GOAL, HOME, FIRST, NEXT = range(GUESSED, GUESSED + 5)
SLOT: Final = NEXT + 1  # 128 bytes, of which a hot path needs the first 64

START: Final = STATE  # the step where a record begins
OPEN: Final = STATE + SLOTS * SLOT
NODES: Final = OPEN + MAX_DEPTH + 1
STACK: Final = NODES + MAX_DEPTH + 1
LAST_SEEN: Final = STACK + MAX_NESTING + 1

# What is behind a literal: a value that nobody asked for; one that is a field (to both may be added that the value must
# be no map); a map whose pairs come next; nothing but that map's end; the record's end.
SKIPPED, WANTED, NO_MAP, ENTER, LEAVE, END = 1, 2, 4, 8, 16, 32

PIECE: Final = 16  # bytes
_LONGEST: Final = 256  # bytes of a literal
_MOST_TRUST: Final = 64
MISS: Final = 4  # trust that it costs if the automaton does not lead through a record
_WRONG: Final = 4  # first guesses in a record: with more, the automaton is as slow as the walk
_PAUSE: Final = 512  # records
_LONGEST_PAUSE: Final = 1 << 14
SEARCHED: Final = 32  # steps of a list, at most
SELDOM: Final = 8  # attempts: in one of so many, a guess that was right changes places with the one before it

SLACK: Final = 16  # bytes of the buffer that must lie behind a record that is read by the automaton


@part
def clear_slot(scratch, at):
    """No literal fits there, and nothing follows."""
    scratch[at : at + SLOT] = START
    scratch[at + WORD] = 1
    scratch[at + MASK] = 0


@part
def begin_automaton(scratch):
    """Nothing is known."""
    clear_slot(scratch, START)
    scratch[TAKEN] = 1


@part
def begin_attempt(scratch):
    """The number of a new attempt to read a record."""
    scratch[ATTEMPT] += 1
    return scratch[ATTEMPT]


@part
def is_first(scratch, node, attempt):
    """Whether this attempt comes to the node for the first time; notes that it does."""
    place = np.uint64(LAST_SEEN + node)
    seen = scratch[place]
    scratch[place] = attempt
    return seen != attempt


@part
def is_tried(scratch):
    """Whether the automaton is tried on the next record."""
    if scratch[TAKEN] == 0:
        begin_automaton(scratch)
        scratch[TRUST] = _MOST_TRUST
        scratch[NEXT_PAUSE] = _PAUSE
    if scratch[PAUSE] > 0:
        scratch[PAUSE] -= 1
        return False
    return True


@part
def note_hit(scratch, wrong):
    """The automaton led through a record, in which so many first guesses were wrong."""
    if wrong > _WRONG:
        lose_trust(scratch, 1)
    elif scratch[TRUST] < _MOST_TRUST:
        scratch[TRUST] += 1
    else:
        scratch[NEXT_PAUSE] = _PAUSE


@part
def lose_trust(scratch, cost):
    """Without any, the next records are read without the automaton."""
    scratch[TRUST] -= cost
    if scratch[TRUST] <= 0:
        scratch[TRUST] = _MOST_TRUST // 4
        scratch[PAUSE] = scratch[NEXT_PAUSE]
        scratch[NEXT_PAUSE] = min(2 * scratch[NEXT_PAUSE], np.int64(_LONGEST_PAUSE))


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
def fits(scratch, at, buf, position, end):
    """Whether the literal of the step at `at` stands at `position`. SLACK bytes are in the buffer from there on, and
    behind `end`.
    """
    if not same_literal(buf, position, scratch, at + WORD):
        return False
    left = scratch[np.uint64(at + SIZE)]
    return left <= PIECE or fits_on(scratch, at, buf, position, end, left)


@part
def fits_on(scratch, at, buf, position, end, left):
    """The same of what a literal has behind its first piece."""
    if position + left > end:
        return False
    while left > PIECE:
        left -= PIECE
        position += PIECE
        at += SLOT
        if not same_literal(buf, position, scratch, at + WORD):
            return False
    return True


@part
def prefer(scratch, place):
    """The guess at this place was right, and changes places with the one before it."""
    scratch[place - 1], scratch[place] = scratch[place], scratch[place - 1]


@part
def home_of(scratch, goal):
    """The step that has the list of what follows at this place; START: none."""
    at = START + SLOT
    while at < START + scratch[TAKEN] * SLOT:
        if scratch[at + GOAL] == goal:
            return scratch[at + HOME]
        at += SLOT * pieces_of(scratch[at + SIZE])
    return np.int64(START)


@part
def guess(scratch, at, step):
    """This step follows the one at `at`: guess so from now on, after other guesses."""
    last = at + GUESSED - 1
    for place in range(at + LIKELY, last):
        if scratch[place] == START:
            last = place
            break
    scratch[last] = step


@part
def pieces_of(size):
    """How many slots a literal takes."""
    return max(np.int64(1), (size + PIECE - 1) // PIECE)


@part
def learn(scratch, before, buf, start, stop, what, row, node, goal):
    """The step with the literal buf[start:stop], and with what is behind it, that follows the one at `before`; -1 where
    there is no room for it.

    goal: the number of the place that it leads to, if steps that lead there have the same successors; else 0.
    """
    size = stop - start
    home = scratch[before + HOME]
    at = scratch[home + FIRST]
    while at != START:
        if scratch[at + SIZE] == size and scratch[at + WHAT] == what and fits(scratch, at, buf, start, stop):
            return np.int64(at)
        at = scratch[at + NEXT]
    pieces = pieces_of(size)
    if size > _LONGEST:
        return np.int64(-1)
    if scratch[TAKEN] + pieces > SLOTS:
        begin_automaton(scratch)
        return np.int64(-1)
    at = START + scratch[TAKEN] * SLOT
    shared = home_of(scratch, goal) if goal > 0 else np.int64(START)
    for piece in range(pieces):
        here, begin = at + piece * SLOT, start + piece * PIECE
        clear_slot(scratch, here)
        put_word(scratch, here + WORD, here + MASK, buf, begin, min(stop - begin, np.int64(8)))
        put_word(scratch, here + WORD_2, here + MASK_2, buf, begin + 8, min(stop - begin - 8, np.int64(8)))
    scratch[at + SIZE] = size
    scratch[at + WHAT] = what
    scratch[at + ROW] = row
    scratch[at + NODE] = node
    scratch[at + GOAL] = goal
    scratch[at + HOME] = at if shared == START else shared
    scratch[at + NEXT] = scratch[home + FIRST]
    scratch[home + FIRST] = at
    scratch[TAKEN] += pieces
    guess(scratch, before, at)
    return np.int64(at)


@part
def forget(kind, record, field, first, stop):
    """What the record holds under these nodes does not count."""
    for node in range(first, stop):
        if field[node] >= 0:
            kind[field[node], record] = ABSENT
