"""The keys that lines of JSON have in common, for the kernel that transcodes them (kernels.py).

Records of one program have the same keys, mostly in the same order. A key is a node of a tree: the same bytes under the
same parent are the same node, found by a hash of both. A node knows the bytes that it had in JSON, quotes, colon and
blanks included, its bytes in a record, and the key that came behind it: these bytes are tried first. Each map that is
opened has a number of its own, which it leaves at the nodes of its keys: so a key that comes twice is noticed. A tree
that has grown too large is forgotten, between two lines.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.fields.constants import SLACK
from jitdb.log.codecs.fields.sixteen import word_at
from jitdb.log.codecs.json.heads import copy_words
from jitdb.log.codecs.json.text import BACKSLASH, COLON, QUOTE, past_blanks, put_text

# The int64 of a node: the literal of its key as words, then what else it knows.
_WORDS: Final = 5  # words of a literal, at most: longer ones are read each time
(
    _SIZE, _KEY, _KEY_SIZE, _NEXT, _FIRST, MAP_HEAD, ARRAY_HEAD, _SEEN, _PARENT, _LAST_MASK, _LITERAL,
) = range(11)  # fmt: skip
NODE: Final = 16  # int64 of a node: a power of two

NODES: Final = 4096
_TRIES: Final = 3  # keys that may have been left out, before a key is read
SLOTS: Final = 4 * NODES  # of the hash: a power of two
KEY_BYTES: Final = 64 * NODES  # of all nodes
ROOT: Final = 0

# The first places of the state: how many nodes there are, how many bytes of keys, the number of the last map opened.
COUNT, BYTES, SERIAL = range(3)

_DOLLAR = 36
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@part
def forget_keys(state, nodes, slots):
    """There is only the root."""
    for i in range(SLOTS):
        slots[i] = -1
    state[COUNT] = 1
    state[BYTES] = 0
    clear_node(nodes, ROOT)


@part
def clear_node(nodes, node):
    """Nothing is known of a node but that it is one."""
    at = node * NODE
    nodes[at + _SIZE] = 0
    nodes[at + _NEXT] = -1
    nodes[at + _FIRST] = -1
    nodes[at + MAP_HEAD] = 1
    nodes[at + ARRAY_HEAD] = 1
    nodes[at + _SEEN] = 0


@part
def find_key(state, nodes, slots, keys, parent, out, o, size):
    """The node under `parent` whose key is out[o : o + size], made where there is none; -1 where there is no room."""
    whole = size & ~7
    h = np.uint64(parent) * _FACTOR
    for i in range(0, whole, 8):
        h = (h ^ word_at(out, o + i)) * _FACTOR
        h ^= h >> np.uint64(29)
    rest = (np.uint64(1) << np.uint64(8 * (size - whole))) - np.uint64(1)  # the bits of the last word that count
    h = (h ^ (word_at(out, o + whole) & rest)) * _FACTOR
    h ^= h >> np.uint64(32)
    slot = np.int64(h & np.uint64(SLOTS - 1))
    while True:
        node = slots[slot]
        if node < 0:
            break
        at = node * NODE
        if nodes[at + _PARENT] == parent and nodes[at + _KEY_SIZE] == size:
            key = nodes[at + _KEY]
            same = ((word_at(keys, key + whole) ^ word_at(out, o + whole)) & rest) == 0
            for i in range(0, whole, 8):
                if word_at(keys, key + i) != word_at(out, o + i):
                    same = False
                    break
            if same:
                return node
        slot = (slot + 1) & (SLOTS - 1)
    node = state[COUNT]
    key = state[BYTES]
    if node == NODES or key + size + SLACK > keys.shape[0]:
        return np.int64(-1)
    state[COUNT] = node + 1
    state[BYTES] = key + size
    slots[slot] = node
    copy_words(out, o, keys, key, size)
    clear_node(nodes, node)
    at = node * NODE
    nodes[at + _KEY] = key
    nodes[at + _KEY_SIZE] = size
    nodes[at + _PARENT] = parent
    return node


@part
def keep_literal(nodes, node, buf, begin, end):
    """The key of the node stands as buf[begin:end] in JSON."""
    size = end - begin
    at = node * NODE
    if nodes[at + _SIZE] == size and fits(nodes, at, buf, begin):
        return
    if size > 8 * _WORDS:
        nodes[at + _SIZE] = 0
        return
    nodes[at + _SIZE] = size
    words = (size + 7) >> 3
    mask = _ALL >> np.uint64(8 * (8 * words - size))
    nodes[at + _LAST_MASK] = np.uint64(mask).view(np.int64)
    for i in range(words):
        word = word_at(buf, begin + 8 * i)
        if i == words - 1:
            word &= mask
        nodes[at + _LITERAL + i] = np.uint64(word).view(np.int64)


@part
def fits(nodes, at, buf, p):
    """Whether the literal of the node at `at` stands at `p`."""
    size = nodes[at + _SIZE]
    if size == 0:
        return False
    place = at + _LITERAL
    while size > 8:
        if word_at(buf, p) != np.int64(nodes[place]).view(np.uint64):
            return False
        p += 8
        place += 1
        size -= 8
    mask = np.int64(nodes[at + _LAST_MASK]).view(np.uint64)
    return (word_at(buf, p) & mask) == np.int64(nodes[place]).view(np.uint64)


@part
def put_key(state, nodes, slots, keys, parent, last, serial, buf, p, out, o, bipf, tagged):
    """Write the key at `p`, behind the key `last` of the same map (-1: it is the first), up to its value.

    Gives where the value begins, -1 where the line is left, where the key's bytes end, and its node.
    """
    node = nodes[parent * NODE + _FIRST] if last < 0 else nodes[last * NODE + _NEXT]
    tries = _TRIES
    while node >= 0 and not fits(nodes, node * NODE, buf, p):
        node = nodes[node * NODE + _NEXT] if tries else np.int64(-1)  # as if a key had been left out
        tries -= 1
    if node < 0:
        return read_key(state, nodes, slots, keys, parent, last, serial, buf, p, out, o, bipf, tagged)
    at = node * NODE
    if nodes[at + _SEEN] == serial:
        return np.int64(-1), o, node
    nodes[at + _SEEN] = serial
    size = nodes[at + _KEY_SIZE]
    copy_words(keys, nodes[at + _KEY], out, o, size)
    return p + nodes[at + _SIZE], o + size, node


@part
def read_key(state, nodes, slots, keys, parent, last, serial, buf, p, out, o, bipf, tagged):
    """As put_key, of a key that is not the one that was expected."""
    left = np.int64(-1)
    begin = p
    p = past_blanks(buf, p)
    if buf[np.uint64(p)] != QUOTE:
        return left, o, left
    if tagged and (buf[np.uint64(p + 1)] == _DOLLAR or buf[np.uint64(p + 1)] == BACKSLASH):
        return left, o, left
    p, end = put_text(buf, p + 1, out, o, bipf)
    if p < 0:
        return left, o, left
    p = past_blanks(buf, p)
    if buf[np.uint64(p)] != COLON:
        return left, o, left
    p = past_blanks(buf, p + 1)
    node = find_key(state, nodes, slots, keys, parent, out, o, end - o)
    if node < 0 or nodes[node * NODE + _SEEN] == serial:
        return left, o, left
    nodes[node * NODE + _SEEN] = serial
    keep_literal(nodes, node, buf, begin, p)
    place = parent * NODE + _FIRST if last < 0 else last * NODE + _NEXT
    if nodes[node * NODE + _NEXT] < 0 and nodes[place] != node:
        nodes[node * NODE + _NEXT] = nodes[place]  # the one that was expected may come yet
    nodes[place] = node
    return p, end, node
