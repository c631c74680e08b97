"""The steps of JSON for the walk of ../locate_kernels.py.

Between two values stands a literal such as `, "carrier": `; maps that lead to a field are literals, too. Values are
read to their ends (read.py), whether asked for or not: so a record that is found to be one is one, whatever was asked
for, and what breaks a rule anywhere has no fields at all.

A record that a kernel is not certain of (UNSURE) has none here, and is named to the caller, who decodes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import inlined, kernel, part
from jitdb.log.codecs.fields.constants import BROKEN, SLACK, UNSURE
from jitdb.log.codecs.fields.sixteen import word_at
from jitdb.log.codecs.json.read import container_end, is_of_numbers, scalar_end, skip_blanks, take_value, text_end
from jitdb.log.codecs.json.text import CLOSE_MAP, COLON, COMMA, OPEN_ARRAY, OPEN_MAP, QUOTE, SPACE, put_text
from jitdb.log.codecs.locate_kernels import LAST, locating, node_of

# What most programs write before a key and behind it: the walk looks for that first.
_THREE = np.uint64(0xFFFFFF)
_BEFORE_KEY, _BEHIND_KEY = (np.uint64(int.from_bytes(text, "little")) for text in (b', "', b'": '))

if TYPE_CHECKING:
    from jitdb.common.kernels import I32, I64, U8, U64, F64Rows, I32Rows, U8Rows


@inlined
def key_node(buf, key, size, is_plain, child, trie, text):
    """The node among `child` and its siblings whose key is the text buf[key : key + size]; -1: none.

    One that is not plain is read into `text` first, unless it is longer than any key.
    """
    if is_plain:
        return node_of(buf, key, size, child, trie)
    if size + SLACK > text.shape[0]:
        return np.int64(-1)
    _, size = put_text(buf, key, text, np.int64(0))
    return node_of(text, np.int64(0), size, child, trie)


@inlined
def past_blanks(buf, position, end):
    """Where the blanks from `position` on end, and what is there; mostly there is one, or none."""
    char = buf[np.uint64(position)]
    if char == SPACE:
        position += 1
        char = buf[np.uint64(position)]
    if char <= SPACE:
        position = skip_blanks(buf, position, end)
        char = buf[np.uint64(position)]
    return position, char


@part
def open_map(buf, position, end):
    """See locating; `left` is 1 as long as nothing of the map was read."""
    return position < end and buf[np.uint64(position)] == OPEN_MAP, position + 1, np.int64(1)


@inlined
def next_pair(buf, position, end, left, child, trie, aids):
    """See locating."""
    broken, no_node, read = np.int64(BROKEN), np.int64(-1), np.int64(0)
    if left == 0 and word_at(buf, position) & _THREE == _BEFORE_KEY:
        key = position + 3
    else:
        position, char = past_blanks(buf, position, end)
        if char == CLOSE_MAP:
            return np.int64(LAST), position + 1, read
        if left == 0:
            if char != COMMA:
                return no_node, broken, read
            position, char = past_blanks(buf, position + 1, end)
        if char != QUOTE or position >= end:
            return no_node, broken, read
        key = position + 1
    position, is_plain = text_end(buf, key, end)
    if position < 0:
        return no_node, position, read
    node = no_node
    if child >= 0:
        node = key_node(buf, key, position - key, is_plain, child, trie, aids[0])
    if word_at(buf, position) & _THREE == _BEHIND_KEY and buf[np.uint64(position + 3)] > SPACE:
        position += 3
        return node, position if position < end else broken, read
    position, char = past_blanks(buf, position + 1, end)
    if char != COLON:
        return no_node, broken, read
    position, _ = past_blanks(buf, position + 1, end)
    return node, position if position < end else broken, read


@inlined
def take(buf, position, end, row, record, rows, stack, depth, aids):
    """See locating."""
    return take_value(buf, position, end, row, record, rows, stack, depth, aids[1]), True


@part
def whole_end(buf, position, end, stack):
    """See locating."""
    position = skip_blanks(buf, position, end)
    if position >= end:
        return np.int64(BROKEN)
    if buf[np.uint64(position)] == OPEN_ARRAY:
        position = container_end(buf, position, end, stack, np.int64(0))
    elif is_of_numbers(buf[np.uint64(end)]):
        return np.int64(UNSURE)  # a number would not end where the record does
    else:
        position = scalar_end(buf, position, end + 1)
    return position if position < 0 else skip_blanks(buf, position, end)


_locate = locating(open_map, next_pair, take, whole_end, skip_blanks, joins=True, slack=SLACK, needs_slack=True)


@kernel
def locate_texts(
    buf: U8, starts: I64, lengths: I64, states: U8,
    first_child: I32, next_sibling: I32, key_start: I32, key_length: I32, field: I32, subtree_end: I32, keys: U8,
    kind: U8Rows, start: I32Rows, length: I32Rows, number: F64Rows, scratch: I64, verdicts: U8, text: U8, powers: U64,
) -> int:  # fmt: skip
    """See locating. All records are DOUBTFUL that lie too near to the end of the buffer.

    To the kind of a value whose payload must be written anew, WRITTEN is added. `text` has room for a key with escapes,
    and SLACK bytes more.
    """
    trie = (first_child, next_sibling, key_start, key_length, field, subtree_end, keys)
    rows = (kind, start, length, number)
    malformed: int = _locate(buf, starts, lengths, states, trie, rows, scratch, verdicts, (text, powers))
    return malformed
