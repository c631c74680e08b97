"""How the trie of a new entry grows from those of others; compiled. growing.py has the arrays, walk.py what a walk is.

A node is its bytes, key, path and trie, one behind the other in `store`, and a row of numbers. A pointer's row is found
by open addressing. Beside the arrays of nodes, `new` has the path of the new entry and its key; `work` has numbers for
the kernel and for who calls it, then of each place and digit the first pointer there and the last, then these pointers,
which grow upward, three numbers each, and the nodes to go on from, which grow downward from the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.fields.part_kernels import read_varint
from jitdb.stores.hyperdb.format.path import END

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8, I64Rows

# The numbers of a node: its pointer; where its key, its path and its trie begin, and where this ends; where the feeds
# lie that its writer knew, behind their number; when a walk was there last, and from which place on; when it was last
# pointed at.
FEED, SEQ, KEY, PATH, TRIE, STOP, FEEDS, WALKED, BEGUN, POINTED, COLUMNS = range(11)

# The numbers in `work`: of the walk; how many pointers lead to nodes that are not there yet; whether there is no room;
# where pointers, and nodes to go on from, have got to; then the pointers that lead to none yet.
WALK, MISSED, IS_FULL, TOP, BOTTOM, MISSES = range(6)
MISSED_MOST = 64
ENDS = MISSES + 2 * MISSED_MOST

FULL, MISSING = -1, -2  # what grow gives instead of a size
SPREAD = 10368889  # slots between two entries that follow each other, so that no run of them fills many side by side

_DIGITS = END + 1
_FAR = 1 << 62  # beyond every path
_MANY = 256  # pointers in one place, of one digit
_TOP_BIT = np.int64(-(2**63))
_TWO = 20  # bytes of two numbers, at most


# --- what nodes say --------------------------------------------------------------------------------------------------


@part
def is_here(lengths, feed, seq):
    """Whether there is a record."""
    return feed < lengths.shape[0] and 0 < seq < lengths[feed]


@part
def row_of(world, feed, seq):
    """The row of the node at a pointer; -1 where there is none, or none yet."""
    _, nodes, slots, lengths, _, _, _, work = world
    if not is_here(lengths, feed, seq):
        return np.int64(-1)
    slot = (seq * SPREAD + feed) & (slots.shape[0] - 1)
    while slots[slot] >= 0:
        row = slots[slot]
        if nodes[row, FEED] == feed and nodes[row, SEQ] == seq:
            return np.int64(row)
        slot = (slot + 1) & (slots.shape[0] - 1)
    if work[MISSED] < MISSED_MOST:
        at = MISSES + 2 * work[MISSED]
        work[at] = feed
        work[at + 1] = seq
        work[MISSED] += 1
    return np.int64(-1)


@part
def end_of_trie(store, begin, stop, feeds):
    """`stop`, if these bytes are a trie with pointers to so many feeds; else `begin`: nobody can follow any of it."""
    at = np.int64(begin)
    last = np.int64(0)
    while at < stop:
        is_first = at == begin
        bits = np.int64(0)
        place, at = read_varint(store, at, stop)
        if at >= 0:
            bits, at = read_varint(store, at, stop)
        order = place ^ _TOP_BIT  # as numbers of 64 bits without a sign are
        if at < 0 or bits < 1 or bits >> _DIGITS != 0 or (order <= last and not is_first):
            return np.int64(begin)
        last = order
        for digit in range(_DIGITS):
            more = (bits >> digit) & 1
            while more != 0:
                number, at = read_varint(store, at, stop)
                if at < 0 or number < 0 or number >> 1 >= feeds:
                    return np.int64(begin)
                _, at = read_varint(store, at, stop)
                if at < 0:
                    return np.int64(begin)
                more = number & 1
    return np.int64(stop)


@part
def parting(world, row, begin):
    """The first place from `begin` on at which a node's path leaves the new one; its size where they are the same."""
    store, nodes, _, _, _, new, size, _ = world
    place = np.int64(begin)
    path = nodes[row, PATH]
    while place < size and store[np.uint64(path + place)] == new[np.uint64(place)]:
        place += 1
    return place


@part
def has_key(world, row):
    """Whether a node has the key of the new entry."""
    store, nodes, _, _, _, new, size, _ = world
    key = nodes[row, KEY]
    length = nodes[row, PATH] - key
    same = np.int64(0)
    if length == new.shape[0] - size:
        while same < length and store[np.uint64(key + same)] == new[np.uint64(size + same)]:
            same += 1
    return same == length and length == new.shape[0] - size


# --- the walk --------------------------------------------------------------------------------------------------------


@part
def point(world, row, place, digit, feed, seq):
    """Point at an entry that goes on with this digit, once; row: that of its node, where that was looked at."""
    _, nodes, _, _, _, _, _, work = world
    ends = ENDS + 2 * (place * _DIGITS + digit)
    at = work[ends]
    if digit == END:  # of which all were looked at, and belong to one place: there may be thousands
        if nodes[row, POINTED] == work[WALK]:
            return
        nodes[row, POINTED] = work[WALK]
        at = np.int64(-1)
    while at >= 0:
        if work[at] == feed and work[at + 1] == seq:
            return
        at = work[at + 2]
    at = work[TOP]
    if at + 3 > work[BOTTOM]:
        work[IS_FULL] = 1
        return
    work[TOP] = at + 3
    work[at] = feed
    work[at + 1] = seq
    work[at + 2] = -1
    if work[ends] < 0:
        work[ends] = at
    else:
        work[work[ends + 1] + 2] = at
    work[ends + 1] = at


@part
def take_over(world, known, at, stop, place, digit, is_ours):
    """Point where a node does, at this place with this digit, unless that `is_ours`; gives where the next digit's
    pointers begin. known: where the feeds lie that its writer knew.

    Where it points at more than one node, those are looked at, and left out if they do not belong there.
    """
    store, nodes, _, lengths, feeds, _, _, _ = world
    more = np.int64(1)
    is_single = True
    while more != 0:
        number, at = read_varint(store, at, stop)
        seq, at = read_varint(store, at, stop)
        more = number & 1
        is_single = is_single and more == 0
        if is_ours:
            continue
        feed = feeds[known + 1 + (number >> 1)]
        if is_single and digit != END:  # as nearly all are: a look at the node would cost a read
            if is_here(lengths, feed, seq):
                point(world, np.int64(-1), place, digit, feed, seq)
            continue
        row = row_of(world, feed, seq)
        if row < 0 or parting(world, row, 0) < place or has_key(world, row):
            continue
        if store[np.uint64(nodes[row, PATH] + place)] == digit:
            point(world, row, place, digit, feed, seq)
    return at


@part
def go_on(world, row, place, end):
    """Go on from a node: from this place, up to where that was begun at before."""
    _, nodes, _, _, _, _, _, work = world
    at = work[BOTTOM] - 3
    if at < work[TOP]:
        work[IS_FULL] = 1
        return
    work[BOTTOM] = at
    work[at] = row
    work[at + 1] = place
    work[at + 2] = end
    nodes[row, WALKED] = work[WALK]
    nodes[row, BEGUN] = place


@part
def follow(world, known, at, stop, place):
    """Go on from the nodes at these pointers that share the path below `place`."""
    store, nodes, _, _, feeds, _, _, work = world
    more = np.int64(1)
    while more != 0:
        number, at = read_varint(store, at, stop)
        seq, at = read_varint(store, at, stop)
        more = number & 1
        row = row_of(world, feeds[known + 1 + (number >> 1)], seq)
        if row < 0:
            continue
        end = np.int64(_FAR)
        if nodes[row, WALKED] == work[WALK]:
            end = nodes[row, BEGUN]
        if end > place and parting(world, row, 0) >= place:
            go_on(world, row, place, end)


@part
def walk_node(world, row, begin, end):
    """Take over what a node points at, from `begin` up to where its path leaves the new one, and go on from there."""
    store, nodes, _, _, feeds, new, size, _ = world
    limit = min(end, size)
    if begin >= limit:
        return
    parted = parting(world, row, begin)
    if parted == size and not has_key(world, row):
        parted = np.int64(size - 1)  # their keys collide
    known = nodes[row, FEEDS]
    at = nodes[row, TRIE]
    stop = end_of_trie(store, at, nodes[row, STOP], feeds[known])
    on = np.int64(-1)  # where the pointers begin that lead on
    while at < stop:
        place, at = read_varint(store, at, stop)
        bits, at = read_varint(store, at, stop)
        if place < 0 or place > parted or place >= limit:
            break
        for digit in range(_DIGITS):
            if (bits >> digit) & 1 == 0:
                continue
            is_own = np.int64(new[np.uint64(place)]) == digit
            if is_own and place == parted:
                on = np.int64(at)
            is_ours = place < begin or (is_own and digit != END)  # of that digit the new entry itself is the nearest
            at = take_over(world, known, at, stop, place, np.int64(digit), is_ours)
    if parted < limit:
        theirs = np.int64(store[np.uint64(nodes[row, PATH] + parted)])
        point(world, row, parted, theirs, nodes[row, FEED], nodes[row, SEQ])
        if on >= 0:
            follow(world, known, on, stop, parted + 1)


# --- what is written -------------------------------------------------------------------------------------------------


@part
def keep_newest(work, first):
    """Of more pointers than any honest trie has in one place, of one digit, keep the newest of each feed."""
    count = np.int64(0)
    at = first
    while at >= 0:
        count += 1
        at = work[at + 2]
    if count <= _MANY:
        return
    last = first
    at = work[first + 2]
    while at >= 0:
        after = work[at + 2]
        kept = first
        while kept != last and work[kept] != work[at]:
            kept = work[kept + 2]
        if work[kept] == work[at]:
            work[kept + 1] = max(work[kept + 1], work[at + 1])
        else:
            work[last + 2] = at
            last = at
        at = after
    work[last + 2] = -1


@part
def put_varint(out, at, number):
    """Write a number; gives where the next one goes."""
    while number > 127:
        out[np.uint64(at)] = np.uint8(number & 127 | 128)
        number >>= 7
        at += 1
    out[np.uint64(at)] = np.uint8(number)
    return np.int64(at + 1)


@part
def encoded(work, numbers, size, out):
    """Write the trie that was found; how many bytes it has, or FULL."""
    at = np.int64(0)
    for place in range(size):
        ends = ENDS + 2 * _DIGITS * place
        bits = np.int64(0)
        for digit in range(_DIGITS):
            if work[ends + 2 * digit] >= 0:
                bits |= np.int64(1) << digit
        if bits == 0:
            continue
        if at + _TWO > out.shape[0]:
            return np.int64(FULL)
        at = put_varint(out, at, np.int64(place))
        at = put_varint(out, at, bits)
        for digit in range(_DIGITS):
            pointer = work[ends + 2 * digit]
            if digit != END and pointer >= 0:
                keep_newest(work, pointer)
            while pointer >= 0:
                if at + _TWO > out.shape[0]:
                    return np.int64(FULL)
                after = work[pointer + 2]
                number = numbers[work[pointer]] << 1
                at = put_varint(out, at, number | 1 if after >= 0 else number)
                at = put_varint(out, at, work[pointer + 1])
                pointer = after
    return at


@kernel
def grow(
    store: U8, nodes: I64Rows, slots: I64, lengths: I64, feeds: I64, heads: I64, new: U8, size: int, numbers: I64,
    work: I64, out: U8,
) -> int:  # fmt: skip
    """Write the trie of a new entry; how many bytes it has, MISSING where nodes are to be added first, or FULL.

    slots:   rows of nodes, or -1; a power of two of them
    lengths: how many records of each feed count
    feeds:   lists of feeds: how many they are, and their numbers
    heads:   the rows of the nodes that the walk begins at
    size:    of the path in `new`, behind which the key is
    numbers: that of each feed in the writer's own order
    work:    its WALK is another one each time
    """
    world = (store, nodes, slots, lengths, feeds, new, np.int64(size), work)
    work[MISSED] = 0
    work[IS_FULL] = 0
    work[TOP] = ENDS + 2 * _DIGITS * size
    work[BOTTOM] = work.shape[0]
    if work[TOP] > work[BOTTOM]:
        return FULL
    for at in range(ENDS, work[TOP]):
        work[at] = -1
    for at in range(heads.shape[0]):
        go_on(world, heads[at], np.int64(0), np.int64(_FAR))
    while work[BOTTOM] < work.shape[0] and work[IS_FULL] == 0:
        at = work[BOTTOM]
        work[BOTTOM] = at + 3
        walk_node(world, work[at], work[at + 1], work[at + 2])
    if work[IS_FULL] != 0:
        return FULL
    if work[MISSED] > 0:
        return MISSING
    count: int = encoded(work, numbers, np.int64(size), out)
    return count
