"""The in-place scan of records, compiled by numba: bytes in, positions out, nothing decoded.

One walk serves all formats. Each gives its steps (`locating`), and the compiler makes a walk of its own of them. In
bipf a length says where a map ends, and whatever is not wanted is stepped over in one addition. In msgpack a count says
how many pairs are still to come, and what is not wanted must be walked too, which takes about twice as long. In JSON a
brace ends a map. `left` is that end, that count, or 1 as long as nothing of the map was read.

A record is walked key by key, and what stands between its values is noted in an automaton
(fields/automaton_kernels.py). A record that this leads through is read from value to value, and what stands between
them is compared as literals.

Every position is checked against the end of what holds it, and nothing past that is read. A record that breaks a rule
is counted as malformed. In bipf, what is no map holds no fields, and what stands around it does; elsewhere, nothing
tells how far it goes, so the whole record has none. A field whose own value cannot be decoded is absent. As in
decoding, the last of several equal keys wins, at every level.

The same functions run uncompiled where JITDB_KERNELS=python, hence the explicit np.int64. An unsigned index spares
numba the question whether it counts from the end: a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitdb.common.kernels import inlined, part
from jitdb.common.paths import MAX_DEPTH
from jitdb.common.values import ABSENT, ARRAY, EXTENSION, MAP, NUMBER
from jitdb.log.codecs.fields import automaton_kernels as automaton
from jitdb.log.codecs.fields.constants import LIVE, MALFORMED, UNSURE
from jitdb.log.codecs.fields.part_kernels import find_node
from jitdb.log.codecs.fields.sixteen import same_literal

# Verdicts on a record: it has its fields; it has them, but for a value that cannot be decoded; it is none; it must be
# decoded.
FINE, SPOILED, WRONG, DOUBTFUL = range(4)
LAST = -2  # in place of a node: the map has no more pairs

_ALIKE = 8  # records in a row that were as was guessed, before two are followed at once


@part
def verdict_of(position):
    """The verdict on a record in which something is UNSURE, or BROKEN, or does not end where it should."""
    return np.int64(DOUBTFUL if position == UNSURE else WRONG)


@part
def no_blanks(buf, position, end):
    """The step `skip_blanks` of formats without blanks."""
    return position


@inlined
def node_of(buf, key, size, child, trie):
    """The node among `child` and its siblings with the key buf[key : key + size]; -1: none."""
    _, next_sibling, key_start, key_length, _, _, keys = trie
    return find_node(buf, key, size, child, next_sibling, key_start, key_length, keys)


@inlined
def place(read_value, buf, position, end, row, record, rows):
    """Put the value at `position` into a row of the record: its kind, and where it ends, -1 where it is not whole.

    The kind is MALFORMED where it is none, which leaves the field absent. Containers are not looked into.
    """
    kind, start, length, number = rows
    found, at, size, value, following = read_value(buf, position, end)
    if found == NUMBER:
        number[row, record] = value
    kind[row, record] = ABSENT if found == MALFORMED else found
    start[row, record] = at
    length[row, record] = size
    return found, following


@inlined
def is_sound(is_whole, buf, position, end, found, stack):
    """Whether the value at `position`, which is found to be of this kind, can be decoded."""
    if found == ARRAY or found == MAP or found == EXTENSION:
        return is_whole(buf, position, end, stack)
    return found != MALFORMED


@part
def clear(kind, record):
    """The record has no fields."""
    for row in range(kind.shape[0]):
        kind[row, record] = ABSENT


def taking(read_value: Any, is_whole: Any, skip_value: Any) -> Any:
    """The step `take` of a format with these readers."""

    @inlined
    def take(buf, position, end, row, record, rows, stack, depth, aids):
        if row < 0:
            return skip_value(buf, position, end), True
        found, following = place(read_value, buf, position, end, row, record, rows)
        is_fine = is_sound(is_whole, buf, position, end, found, stack)
        if not is_fine:
            rows[0][row, record] = ABSENT
        return following, is_fine

    return take


def locating(
    open_map: Any, next_pair: Any, take: Any, whole_end: Any, skip_blanks: Any = no_blanks, *,
    has_ends: bool = False, joins: bool = False, slack: int = automaton.SLACK, needs_slack: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """The walk through records of a format with these steps. `aids` are what only its own steps need.

    open_map(buf, position, end):    whether a map begins there, where its pairs do, and `left`
    next_pair(buf, position, end, left, child, trie, aids): the node of the next key of a map among `child` and its
                                     siblings (-1: none; LAST), where its value begins, and `left`. With LAST, where the
                                     map ends; else BROKEN or UNSURE, where there is no pair
    take(buf, position, end, row, record, rows, stack, depth, aids): where the value ends, BROKEN or UNSURE, and whether
                                     it can be decoded, if it is asked for; then it is put into this row, which is -1
                                     where it is not. It is in `depth` containers
    whole_end(buf, position, end, stack): where a record that is no map ends, BROKEN or UNSURE
    has_ends:                        whether `left` is where a map ends
    joins:                           whether what may follow a value of a map may follow each of its values
    slack:                           bytes of the buffer that must lie behind a record that is read by the automaton
    needs_slack:                     also behind one that is walked
    """

    @part
    def goal_in(node, is_entered):
        """The number of the place in the map of this node of the trie behind its brace, or behind a value of it."""
        return np.int64(2 * node + is_entered + 1 if joins else 0)

    @part
    def walk(learns, buf, position, end, record, trie, rows, scratch, stack, aids):
        """Find every field of the trie in the record buf[position:end], key by key: the verdict on it.

        `learns`: its steps, on the way.
        """
        step = np.int64(automaton.START if learns else -1)  # of the automaton; -1: none is learned
        attempt = automaton.begin_attempt(scratch)
        first_child, _, _, _, field, subtree_end, _ = trie
        kind = rows[0]
        nothing, nowhere = np.int64(-1), np.int64(0)
        enter, leave, behind = np.int64(automaton.ENTER), np.int64(automaton.LEAVE), np.int64(automaton.END)
        begin = position  # of the literal
        is_map, position, left = open_map(buf, skip_blanks(buf, position, end), end)
        if not is_map:
            after = whole_end(buf, begin, end, stack)
            return np.int64(FINE) if after == end else verdict_of(after)
        if has_ends:
            if left != end:
                return np.int64(WRONG)
            if step >= 0:
                step = automaton.learn(scratch, step, buf, begin, begin, enter, nothing, nothing, nowhere)
            begin = position
        verdict = np.int64(FINE)
        depth = np.int64(0)
        map_node = np.int64(0)
        scratch[automaton.NODES] = 0
        while True:
            node, position, left = next_pair(buf, position, end, left, np.int64(first_child[map_node]), trie, aids)
            if node == LAST:
                if has_ends and step >= 0:
                    step = automaton.learn(scratch, step, buf, begin, position, leave, nothing, nothing, nowhere)
                depth -= 1
                if depth < 0 or position > end:
                    break
                left = scratch[automaton.OPEN + depth]
                map_node = np.int64(scratch[automaton.NODES + depth])
                continue
            here = left if has_ends else end
            following = position
            what, row, inner = np.int64(automaton.SKIPPED), nothing, nothing
            if position >= 0 and node < 0:
                following, _ = take(buf, position, here, nothing, record, rows, stack, depth + 1, aids)
            elif position >= 0:
                row, inner = np.int64(field[node]), np.int64(first_child[node])
                if row >= 0:
                    what = np.int64(automaton.WANTED)
                if not automaton.is_first(scratch, node, attempt):  # what the first one held is void
                    automaton.forget(kind, record, field, node, subtree_end[node])
                    step = nothing
                enters, at, inside = False, position, left
                if inner >= 0:
                    enters, at, inside = open_map(buf, position, here)
                if row >= 0 or not enters:
                    following, is_fine = take(buf, position, here, row, record, rows, stack, depth + 1, aids)
                    if not is_fine:
                        verdict = np.int64(SPOILED)
                if enters and (has_ends or following >= 0):
                    if row >= 0:  # no step is both
                        step = nothing
                    if step >= 0:
                        stop = position if has_ends else at
                        to = goal_in(node, 1)
                        step = automaton.learn(scratch, step, buf, begin, stop, enter, nothing, np.int64(node), to)
                    begin = at
                    scratch[automaton.OPEN + depth] = left
                    depth += 1
                    scratch[automaton.NODES + depth] = node
                    position = at
                    left = inside
                    map_node = np.int64(node)
                    continue
                if inner >= 0:
                    what |= automaton.NO_MAP
            if following < 0:
                if not has_ends:
                    return verdict_of(following)
                automaton.forget(kind, record, field, map_node + 1, subtree_end[map_node])
                verdict = np.int64(SPOILED)
                following = here
                step = nothing
            if step >= 0:
                to = goal_in(map_node, 0)
                step = automaton.learn(scratch, step, buf, begin, position, what, row, np.int64(node), to)
            position = following
            begin = following
        if skip_blanks(buf, position, end) != end:
            return np.int64(WRONG)
        if verdict == FINE and step >= 0:  # with what closes maps
            automaton.learn(scratch, step, buf, begin, end, behind, nothing, nothing, nowhere)
        return verdict

    @part
    def leads(buf, position, here, end, scratch, at):
        """Whether the record goes on at `position` with the step at `at`, in a map that ends at `here`."""
        if not automaton.fits(scratch, at, buf, position, here):
            return False
        what = scratch[np.uint64(at + automaton.WHAT)]
        if not has_ends and what <= automaton.WANTED:  # a literal that ends behind `end` has no value
            return True
        position += scratch[np.uint64(at + automaton.SIZE)]
        if what <= automaton.WANTED:
            return position <= here
        if what == automaton.END:
            return position == end
        if what == automaton.LEAVE:
            return position == here
        if position > here:
            return False
        is_map, _, _ = open_map(buf, position, here)
        return is_map or not has_ends if what == automaton.ENTER else not is_map

    @part
    def any_next(buf, position, here, end, scratch, at, is_settled):
        """The step that follows the one at `at`, where the first guess is wrong; START: none is known."""
        for place in range(at + automaton.LIKELY + 1, at + automaton.GUESSED):
            step = scratch[np.uint64(place)]
            if leads(buf, position, here, end, scratch, step):
                if not is_settled:
                    automaton.prefer(scratch, place)
                return step
        step = scratch[scratch[at + automaton.HOME] + automaton.FIRST]
        for _ in range(automaton.SEARCHED):
            if step == automaton.START:
                break
            if leads(buf, position, here, end, scratch, step):
                automaton.guess(scratch, at, step)
                return step
            step = scratch[step + automaton.NEXT]
        return np.int64(automaton.START)

    @part
    def follow(buf, position, end, record, rows, scratch, stack, aids):
        """In how many steps a first guess was wrong, while the automaton led through the record buf[position:end]; -1
        where it did not. Then some fields may seem to be found.
        """
        missed = np.int64(-1)
        wrong = np.int64(0)
        attempt = automaton.begin_attempt(scratch)
        is_settled = attempt % automaton.SELDOM != 0
        before = np.int64(automaton.START)
        depth = np.int64(-1)
        here = end
        deep = np.int64(MAX_DEPTH + 1)  # no step tells how many maps are around it
        while True:
            at = scratch[np.uint64(before + automaton.LIKELY)]
            if not leads(buf, position, here, end, scratch, at):
                wrong += 1
                at = any_next(buf, position, here, end, scratch, before, is_settled)
                if at == automaton.START:
                    return missed
            before = at
            position += scratch[np.uint64(at + automaton.SIZE)]
            what = scratch[np.uint64(at + automaton.WHAT)]
            node = scratch[np.uint64(at + automaton.NODE)]
            if node >= 0 and not automaton.is_first(scratch, node, attempt):
                return missed
            if what >= automaton.ENTER:
                if what == automaton.END:
                    return wrong
                if has_ends and what == automaton.ENTER:
                    _, position, here = open_map(buf, position, here)
                    depth += 1
                    scratch[automaton.OPEN + depth] = here
                elif has_ends:
                    depth -= 1
                    here = scratch[automaton.OPEN + depth] if depth >= 0 else end
                continue
            row = scratch[np.uint64(at + automaton.ROW)]
            position, is_fine = take(buf, position, here, row, record, rows, stack, deep, aids)
            if position < 0 or not is_fine:
                return missed

    @part
    def follow_two(buf, position, end, next_, next_end, record, rows, scratch, stack, aids):
        """Whether all first guesses are right of the record buf[position:end] and of the one after it,
        buf[next_:next_end]. See follow, which was led through records in the same way, so that no node comes twice.

        Where one value ends tells where the next one begins, so the processor waits most of the time. It does not wait
        for the one record while it waits for the other.
        """
        at = np.int64(automaton.START)
        deep = np.int64(MAX_DEPTH + 1)
        while True:
            at = scratch[np.uint64(at + automaton.LIKELY)]
            size = scratch[np.uint64(at + automaton.SIZE)]
            # As leads() does it, but what both have in common is read once.
            if not same_literal(buf, position, scratch, at) or not same_literal(buf, next_, scratch, at):
                return False
            if size > automaton.PIECE:
                if not automaton.fits_on(scratch, at, buf, position, end, size):
                    return False
                if not automaton.fits_on(scratch, at, buf, next_, next_end, size):
                    return False
            what = scratch[np.uint64(at + automaton.WHAT)]
            position += size
            next_ += size
            if what > automaton.WANTED:
                if what == automaton.END:
                    return position == end and next_ == next_end
                if position > end or next_ > next_end:
                    return False
                if what == automaton.ENTER:
                    continue
                if open_map(buf, position, end)[0] or open_map(buf, next_, next_end)[0]:
                    return False
            row = scratch[np.uint64(at + automaton.ROW)]
            position, is_fine = take(buf, position, end, row, record, rows, stack, deep, aids)
            next_, is_next_fine = take(buf, next_, next_end, row, record + 1, rows, stack, deep, aids)
            if position < 0 or next_ < 0 or not is_fine or not is_next_fine:
                return False

    @part
    def locate(buf, starts, lengths, states, trie, rows, scratch, verdicts, aids):
        """Find every field of the trie in all records; record `i` is buf[starts[i] : starts[i] + lengths[i]].

        Fills `verdicts`. Records whose state is not LIVE have no fields, and are FINE. Gives how many are malformed, so
        far as is certain.
        """
        kind = rows[0]
        stack = scratch[automaton.STACK : automaton.LAST_SEEN]
        malformed = 0
        alike = 0  # records in a row that were as was guessed
        record = np.int64(-1)
        while record + 1 < starts.shape[0]:
            record += 1
            clear(kind, record)
            verdicts[record] = FINE
            if states[record] != LIVE:
                continue
            position = np.int64(starts[record])
            end = position + np.int64(lengths[record])
            if not has_ends and alike >= _ALIKE and record + 1 < starts.shape[0] and states[record + 1] == LIVE:
                next_ = np.int64(starts[record + 1])
                next_end = next_ + np.int64(lengths[record + 1])
                if max(end, next_end) + slack <= buf.shape[0]:
                    clear(kind, record + 1)
                    if follow_two(buf, position, end, next_, next_end, record, rows, scratch, stack, aids):
                        verdicts[record + 1] = FINE
                        record += 1
                        continue
                    alike = 0
                    clear(kind, record)
            has_slack = end + slack <= buf.shape[0]
            is_tried = has_slack and automaton.is_tried(scratch)
            if is_tried:
                wrong = follow(buf, position, end, record, rows, scratch, stack, aids)
                if wrong >= 0:
                    alike = alike + 1 if wrong == 0 else 0
                    automaton.note_hit(scratch, wrong)
                    continue
                automaton.lose_trust(scratch, automaton.MISS)
                clear(kind, record)
            alike = 0
            verdict = np.int64(DOUBTFUL)
            if has_slack or not needs_slack:
                verdict = walk(is_tried, buf, position, end, record, trie, rows, scratch, stack, aids)
            verdicts[record] = verdict
            if verdict >= WRONG:
                clear(kind, record)
            if verdict == SPOILED or verdict == WRONG:
                malformed += 1
        return malformed

    return locate


@part
def values(read_value, is_whole, buf, starts, lengths, positions, rows, ends, stack):
    """Put what lies at a position in each record into row 0, and where it ends; ABSENT and -1 where it is no value.

    `stack` has room for MAX_NESTING + 1 numbers.
    """
    for record in range(starts.shape[0]):
        rows[0][0, record] = ABSENT
        ends[record] = -1
        position = np.int64(starts[record] + positions[record])
        end = np.int64(starts[record] + lengths[record])
        if positions[record] < 0 or position >= end:
            continue
        found, following = place(read_value, buf, position, end, 0, record, rows)
        if is_sound(is_whole, buf, position, end, found, stack):
            ends[record] = following
        else:
            rows[0][0, record] = ABSENT
