"""Lines of JSON to records, compiled: one pass over a buffer of lines, every value written where the last one ended.

What is not certain to be a record as json and the codec would make it ends the pass: the line is left to them. So the
kernel knows no errors, and need not know all of JSON: it leaves what breaks a rule, integers beyond 64 bits, numbers
that json_numbers leaves, lone surrogates, a key that is there twice, text that is no UTF-8, more than MAX_DEPTH levels.

**Keys.** Records of one program have the same keys, mostly in the same order. A key is a node of a tree: the same bytes
under the same parent are the same node, found by a hash of both. A node knows the bytes that it had in JSON, quotes,
colon and blanks included, its bytes in a record, and the key that came behind it: these bytes are tried first. Each map
that is opened has a number of its own, which it leaves at the nodes of its keys: so a key that comes twice is noticed.
A tree that has grown too large is forgotten, between two lines.

**Heads.** What stands before the parts of a container tells their number (msgpack) or bytes (bipf), known at its end.
Room is left as the last container at that node took; where that was wrong, the parts are moved.

Whoever calls sees to it that a buffer of lines ends with a newline, and SLACK bytes lie behind it; and that `out` has
GROWTH bytes for each byte of JSON, and SLACK more. Every loop ends at a control character, and a newline is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.bipf.format import BOOL_TAG, NULL_TAG
from jitdb.log.codecs.fields.constants import SLACK
from jitdb.log.codecs.fields.shape_kernels import word_at
from jitdb.log.codecs.json.numbers import put_bits, put_number, store_big_endian, store_word

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8, U64

GROWTH: Final = 5  # "1," of JSON takes five bytes in bipf, "[" as many while it is open
MAX_DEPTH: Final = 128

# What ended a pass: the lines are all done, or there are as many records as fit; a line is left to Python.
DONE, LEFT = range(2)

# The int64 of a node: the literal of its key as words, then what else it knows.
_WORDS: Final = 5  # words of a literal, at most: longer ones are read each time
(
    _SIZE, _KEY, _KEY_SIZE, _NEXT, _FIRST, _MAP_HEAD, _ARRAY_HEAD, _SEEN, _PARENT, _LAST_MASK, _LITERAL,
) = range(11)  # fmt: skip
NODE: Final = 16  # int64 of a node: a power of two

MOST_RECORDS: Final = 1 << 15  # of a pass
NODES: Final = 4096
_TRIES: Final = 3  # keys that may have been left out, before a key is read
SLOTS: Final = 4 * NODES  # of the hash: a power of two
KEY_BYTES: Final = 64 * NODES  # of all nodes
_ROOT: Final = 0

# The state: how many nodes there are, how many bytes of keys, the number of the last map that was opened.
_COUNT, _BYTES, _SERIAL = range(3)
_STACK: Final = 8
_FRAME: Final = 8  # int64 of an open container around the innermost
STATE: Final = _STACK + (MAX_DEPTH + 1) * _FRAME

_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS = 34, 92, 44, 58, 45
_OPEN_MAP, _CLOSE_MAP, _OPEN_ARRAY, _CLOSE_ARRAY = 123, 125, 91, 93
_SPACE, _TAB, _RETURN, _NEWLINE = 32, 9, 13, 10
_DOLLAR = 36

_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_QUOTES = np.uint64(0x2222222222222222)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_SPACES = np.uint64(0x2020202020202020)
_BYTE = np.uint64(255)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_NAN = np.uint64(0x7FF8000000000000)
_INFINITE = np.uint64(0x7FF0000000000000)
_NEGATIVE = np.uint64(1 << 63)

_WORD_NULL, _WORD_TRUE, _WORD_ALSE, _WORD_NAN = (
    np.uint64(int.from_bytes(text, "little")) for text in (b"null", b"true", b"alse", b"NaN")
)
_WORD_INFINITY = np.uint64(int.from_bytes(b"Infinity", "little"))
_FOUR = np.uint64(0xFFFFFFFF)
_THREE = np.uint64(0xFFFFFF)


@part
def past_blanks(buf, p):
    """Where the blanks from `p` on end."""
    while True:
        char = buf[np.uint64(p)]
        if char != _SPACE and char != _TAB and char != _RETURN:
            return p
        p += 1


# --- text ------------------------------------------------------------------------------------------------------------


@part
def plain_bytes(word):
    """How many of eight bytes of a string, from the first on, stand for themselves: no quotes, escapes, UTF-8.

    A borrow can spoil bytes behind the first that counts, never one before it.
    """
    stops = (((word ^ _QUOTES) - _ONES) | ((word ^ _BACKSLASHES) - _ONES) | (word - _SPACES) | word) & _HIGH
    if stops == 0:
        return np.int64(8)
    return np.int64((((((stops - np.uint64(1)) & ~stops) >> np.uint64(7)) & _ONES) * _ONES) >> np.uint64(56))


@part
def tag_size(length):
    """Bytes of a bipf tag of a value of so many bytes."""
    if length < 16:
        return 1
    if length < 2048:
        return 2
    if length < 262144:
        return 3
    return 4 if length < 33554432 else 5


@part
def put_tag(out, o, tag):
    """Write a bipf tag; where it ends."""
    while tag > 127:
        out[np.uint64(o)] = (tag & 127) | 128
        tag >>= 7
        o += 1
    out[np.uint64(o)] = tag
    return np.int64(o + 1)


@part
def text_head_size(length, bipf):
    """Bytes before a text of so many bytes."""
    if bipf:
        return tag_size(length)
    if length < 32:
        return 1
    return 2 if length < 256 else 3 if length < 65536 else 5


@part
def put_text_head(out, o, length, bipf):
    """Write what stands before a text of so many bytes."""
    if bipf:
        put_tag(out, o, length << 3)
    elif length < 32:
        out[np.uint64(o)] = 0xA0 | length
    elif length < 256:
        out[np.uint64(o)] = 0xD9
        out[np.uint64(o + 1)] = length
    elif length < 65536:
        out[np.uint64(o)] = 0xDA
        store_big_endian(out, o + 1, np.uint64(length), 2)
    else:
        out[np.uint64(o)] = 0xDB
        store_big_endian(out, o + 1, np.uint64(length), 4)


@part
def copy_words(source, at, out, o, size):
    """Copy bytes, to lower places if both are one array, by words: up to seven more are written."""
    for i in range(0, size, 8):
        store_word(out, o + i, word_at(source, at + i))


@part
def move_up(out, at, size, distance):
    """Move bytes to higher places."""
    for i in range(size - 1, -1, -1):
        out[np.uint64(at + distance + i)] = out[np.uint64(at + i)]


@part
def put_text(buf, p, out, o, bipf):
    """Write the string whose opening quote is before `p`; where it ends (-1: it is left), and where its bytes end."""
    most = 15 if bipf else 31  # bytes of a text behind a head of one byte
    length = np.int64(0)
    while length < 32:
        word = word_at(buf, p + length)
        store_word(out, o + 1 + length, word)
        plain = plain_bytes(word)
        length += plain
        if plain < 8:
            break
    if length >= 32:
        plain = np.int64(8)
        while plain == 8:
            plain = plain_bytes(word_at(buf, p + length))
            length += plain
    if buf[np.uint64(p + length)] != _QUOTE:
        return put_rest_of_text(buf, p, out, o, length, bipf)
    if length > most:
        head = text_head_size(length, bipf)
        copy_words(buf, p, out, o + head, length)
        put_text_head(out, o, length, bipf)
        return p + length + 1, o + head + length
    out[np.uint64(o)] = (length << 3) if bipf else (0xA0 | length)
    return p + length + 1, o + 1 + length


@part
def put_rest_of_text(buf, p, out, o, length, bipf):
    """As put_text, of a string whose first `length` bytes stand for themselves, and then something does not."""
    base = o + 5  # behind the largest head
    copy_words(buf, p, out, base, length)
    p += length
    at = base + length
    while True:
        word = word_at(buf, p)
        plain = plain_bytes(word)
        store_word(out, at, word)
        p += plain
        at += plain
        if plain == 8:
            continue
        char = np.int64(buf[np.uint64(p)])
        if char == _QUOTE:
            break
        if char < 32:
            return np.int64(-1), o
        if char == _BACKSLASH:
            p, code = read_escape(buf, p)
            if p < 0:
                return np.int64(-1), o
            at = put_character(out, at, code)
            continue
        while char >= 128:
            size = character_size(buf, p, char)
            if size == 0:
                return np.int64(-1), o
            for i in range(size):
                out[np.uint64(at + i)] = buf[np.uint64(p + i)]
            p += size
            at += size
            char = np.int64(buf[np.uint64(p)])
    length = at - base
    head = text_head_size(length, bipf)
    if head < 5:
        copy_words(out, base, out, o + head, length)
    put_text_head(out, o, length, bipf)
    return p + 1, o + head + length


@part
def character_size(buf, p, first):
    """Bytes of the character of UTF-8 at `p`, whose first byte is `first`, 128 or more; 0 where there is none."""
    if first < 0xC2 or first > 0xF4:
        return 0
    second = np.int64(buf[np.uint64(p + 1)])
    if second & 0xC0 != 0x80:
        return 0
    if first < 0xE0:
        return 2
    if np.int64(buf[np.uint64(p + 2)]) & 0xC0 != 0x80:
        return 0
    if first < 0xF0:
        if (first == 0xE0 and second < 0xA0) or (first == 0xED and second >= 0xA0):
            return 0
        return 3
    if np.int64(buf[np.uint64(p + 3)]) & 0xC0 != 0x80:
        return 0
    if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second >= 0x90):
        return 0
    return 4


@part
def read_hex(buf, p):
    """The number that four hexadecimal digits are; -1 where one is none."""
    code = np.int64(0)
    for i in range(4):
        char = np.int64(buf[np.uint64(p + i)])
        if 48 <= char <= 57:
            digit = char - 48
        elif 97 <= char | 32 <= 102:
            digit = (char | 32) - 87
        else:
            return np.int64(-1)
        code = (code << 4) | digit
    return code


@part
def read_escape(buf, p):
    """The character that the escape at `p` stands for: where it ends, -1 where it is left, and the code point."""
    left = np.int64(-1)
    char = np.int64(buf[np.uint64(p + 1)])
    if char == 117:  # u
        code = read_hex(buf, p + 2)
        if code < 0 or 0xDC00 <= code < 0xE000:
            return left, left
        if code < 0xD800 or code >= 0xE000:
            return p + 6, code
        if buf[np.uint64(p + 6)] != _BACKSLASH or buf[np.uint64(p + 7)] != 117:
            return left, left
        low = read_hex(buf, p + 8)
        if low < 0xDC00 or low >= 0xE000:
            return left, left
        return p + 12, 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
    code = left
    if char == _QUOTE or char == _BACKSLASH or char == 47:
        code = char
    elif char == 98:
        code = np.int64(8)
    elif char == 102:
        code = np.int64(12)
    elif char == 110:
        code = np.int64(10)
    elif char == 114:
        code = np.int64(13)
    elif char == 116:
        code = np.int64(9)
    return (p + 2 if code >= 0 else left), code


@part
def put_character(out, at, code):
    """Write a code point as UTF-8; where it ends."""
    if code < 0x80:
        out[np.uint64(at)] = code
        return np.int64(at + 1)
    if code < 0x800:
        out[np.uint64(at)] = 0xC0 | (code >> 6)
        out[np.uint64(at + 1)] = 0x80 | (code & 63)
        return np.int64(at + 2)
    if code < 0x10000:
        out[np.uint64(at)] = 0xE0 | (code >> 12)
        out[np.uint64(at + 1)] = 0x80 | ((code >> 6) & 63)
        out[np.uint64(at + 2)] = 0x80 | (code & 63)
        return np.int64(at + 3)
    out[np.uint64(at)] = 0xF0 | (code >> 18)
    out[np.uint64(at + 1)] = 0x80 | ((code >> 12) & 63)
    out[np.uint64(at + 2)] = 0x80 | ((code >> 6) & 63)
    out[np.uint64(at + 3)] = 0x80 | (code & 63)
    return np.int64(at + 4)


# --- keys ------------------------------------------------------------------------------------------------------------


@part
def forget_keys(state, nodes, slots):
    """There is only the root."""
    for i in range(SLOTS):
        slots[i] = -1
    state[_COUNT] = 1
    state[_BYTES] = 0
    clear_node(nodes, _ROOT)


@part
def clear_node(nodes, node):
    """Nothing is known of a node but that it is one."""
    at = node * NODE
    nodes[at + _SIZE] = 0
    nodes[at + _NEXT] = -1
    nodes[at + _FIRST] = -1
    nodes[at + _MAP_HEAD] = 1
    nodes[at + _ARRAY_HEAD] = 1
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
    node = state[_COUNT]
    key = state[_BYTES]
    if node == NODES or key + size + SLACK > keys.shape[0]:
        return np.int64(-1)
    state[_COUNT] = node + 1
    state[_BYTES] = key + size
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
    if buf[np.uint64(p)] != _QUOTE:
        return left, o, left
    if tagged and (buf[np.uint64(p + 1)] == _DOLLAR or buf[np.uint64(p + 1)] == _BACKSLASH):
        return left, o, left
    p, end = put_text(buf, p + 1, out, o, bipf)
    if p < 0:
        return left, o, left
    p = past_blanks(buf, p)
    if buf[np.uint64(p)] != _COLON:
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


# --- values ----------------------------------------------------------------------------------------------------------


@part
def put_word(buf, p, out, o, bipf):
    """Write null, true, false, or a number that has a name; where it ends, -1 where it is left, where its bytes end."""
    left = np.int64(-1)
    word = word_at(buf, p)
    four = word & _FOUR
    if four == _WORD_NULL:
        out[np.uint64(o)] = NULL_TAG if bipf else 0xC0
        return p + 4, o + 1
    is_true = four == _WORD_TRUE
    if is_true or (word & _BYTE == np.uint64(102) and (word >> np.uint64(8)) & _FOUR == _WORD_ALSE):
        p += 4 if is_true else 5
        if bipf:
            out[np.uint64(o)] = BOOL_TAG
            out[np.uint64(o + 1)] = 1 if is_true else 0
            return p, o + 2
        out[np.uint64(o)] = 0xC3 if is_true else 0xC2
        return p, o + 1
    if bipf:
        return left, o
    if word & _THREE == _WORD_NAN:
        return p + 3, put_bits(out, o, _NAN, False)
    if word == _WORD_INFINITY:
        return p + 8, put_bits(out, o, _INFINITE, False)
    if word & _BYTE == np.uint64(_MINUS) and word_at(buf, p + 1) == _WORD_INFINITY:
        return p + 9, put_bits(out, o, _INFINITE | _NEGATIVE, False)
    return left, o


@part
def put_container_head(out, head, left, o, count, is_map, bipf):
    """Write the head of a container whose parts end at `o`, with `left` bytes left for it; where they end then, and
    the bytes of the head."""
    if bipf:
        size = o - head - left
        wanted = tag_size(size)
    else:
        size = count
        wanted = 1 if count < 16 else 3 if count < 65536 else 5
    if wanted != left:
        if wanted < left:
            copy_words(out, head + left, out, head + wanted, o - head - left)
        else:
            move_up(out, head + left, o - head - left, wanted - left)
        o += wanted - left
    if bipf:
        put_tag(out, head, (size << 3) | (5 if is_map else 4))
    elif size < 16:
        out[np.uint64(head)] = (0x80 if is_map else 0x90) | size
    elif size < 65536:
        out[np.uint64(head)] = 0xDE if is_map else 0xDC
        store_big_endian(out, head + 1, np.uint64(size), 2)
    else:
        out[np.uint64(head)] = 0xDF if is_map else 0xDD
        store_big_endian(out, head + 1, np.uint64(size), 4)
    return o, np.int64(wanted)


@part
def put_value(buf, p, out, o, bipf, tagged, powers, state, nodes, slots, keys):
    """Write the value at `p`, and all in it; where it ends, -1 where it is left, and where its bytes end."""
    left = np.int64(-1)
    depth = np.int64(0)
    is_map = False  # of the innermost open container
    head = np.int64(0)  # where it begins
    room = np.int64(0)  # bytes left for its head
    count = np.int64(0)  # its parts so far
    parent = np.int64(_ROOT)  # its node
    last = np.int64(-1)  # the node of its last key
    serial = np.int64(0)  # its number
    while True:
        if is_map:
            p, o, last = put_key(state, nodes, slots, keys, parent, last, serial, buf, p, out, o, bipf, tagged)
            if p < 0:
                return left, o
        char = np.int64(buf[np.uint64(p)])
        if char <= _SPACE:
            p = past_blanks(buf, p)
            char = np.int64(buf[np.uint64(p)])
        is_empty = False
        if char == _QUOTE:
            p, o = put_text(buf, p + 1, out, o, bipf)
            if p < 0:
                return left, o
        elif char == _OPEN_MAP or char == _OPEN_ARRAY:
            if depth == MAX_DEPTH:
                return left, o
            frame = _STACK + depth * _FRAME
            state[frame] = is_map
            state[frame + 1] = head
            state[frame + 2] = room
            state[frame + 3] = count
            state[frame + 4] = parent
            state[frame + 5] = last
            state[frame + 6] = serial
            depth += 1
            if is_map:
                parent = last
            is_map = char == _OPEN_MAP
            head = o
            room = nodes[parent * NODE + (_MAP_HEAD if is_map else _ARRAY_HEAD)]
            o += room
            count = np.int64(0)
            last = np.int64(-1)
            p += 1
            state[_SERIAL] += 1
            serial = state[_SERIAL]
            end = past_blanks(buf, p)
            if buf[np.uint64(end)] != (_CLOSE_MAP if is_map else _CLOSE_ARRAY):
                continue
            p = end
            is_empty = True
        else:
            after = left
            if char <= 57:  # behind the digits, no value begins
                after, o = put_number(buf, p, out, o, bipf, powers)
            if after < 0:
                after, o = put_word(buf, p, out, o, bipf)
                if after < 0:
                    return left, o
            p = after
        # What follows it; of an empty container, its end.
        if not is_empty:
            count += 1
        while True:
            if depth == 0:
                return p, o
            char = np.int64(buf[np.uint64(p)])
            if char != _COMMA and char != _CLOSE_MAP and char != _CLOSE_ARRAY:
                p = past_blanks(buf, p)
                char = np.int64(buf[np.uint64(p)])
            p += 1
            if char == _COMMA:
                break
            if char != (_CLOSE_MAP if is_map else _CLOSE_ARRAY):
                return left, o
            o, room = put_container_head(out, head, room, o, count, is_map, bipf)
            nodes[parent * NODE + (_MAP_HEAD if is_map else _ARRAY_HEAD)] = room
            depth -= 1
            frame = _STACK + depth * _FRAME
            is_map = state[frame] != 0
            head = state[frame + 1]
            room = state[frame + 2]
            count = state[frame + 3] + 1
            parent = state[frame + 4]
            last = state[frame + 5]
            serial = state[frame + 6]


@kernel
def begin_keys(state: I64, nodes: I64, slots: I64) -> None:
    """Nothing is known of keys."""
    state[_SERIAL] = 0
    forget_keys(state, nodes, slots)


@kernel
def transcode(
    buf: U8, begin: int, end: int, out: U8, bipf: int, tagged: int, largest: int, powers: U64,
    state: I64, nodes: I64, slots: I64, keys: U8, lengths: I64, lines: I64,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Write the records of the lines buf[begin:end] into `out`, one behind the other; see the head of this file.

    Fills, per record, `lengths` (bytes) and `lines` (the number of its line, counted from 0 at `begin`). With `tagged`,
    maps that may stand for what JSON lacks are left, and so are records of more than `largest` bytes, and of zeros.

    Gives why it ended (DONE, LEFT), how many records there are, how many lines were done or passed over as blank, and
    where the next one begins, and where the records end.
    """
    room = min(lengths.shape[0], lines.shape[0])
    count = 0
    line = 0
    o = np.int64(0)
    position = np.int64(begin)
    if end + SLACK > buf.shape[0] or (end - begin) * GROWTH + SLACK > out.shape[0]:
        return LEFT, 0, 0, begin, 0
    while position < end and count < room:
        if state[_COUNT] > NODES // 2 or state[_BYTES] > KEY_BYTES // 2:
            forget_keys(state, nodes, slots)
        p = past_blanks(buf, position)
        if buf[np.uint64(p)] == _NEWLINE:
            position = p + 1
            line += 1
            continue
        after, stop = put_value(buf, p, out, o, bipf != 0, tagged != 0, powers, state, nodes, slots, keys)
        if after >= 0:
            after = past_blanks(buf, after)
            if buf[np.uint64(after)] != _NEWLINE or stop - o > largest or out[np.uint64(o)] == 0:
                after = np.int64(-1)
        if after < 0:
            return LEFT, count, line, position, o
        lengths[count] = stop - o
        lines[count] = line
        count += 1
        line += 1
        position = after + 1
        o = stop
    return DONE, count, line, position, o
