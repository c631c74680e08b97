"""Which texts' patterns are those of one statement of a program: similar ones become one, `<*>` where they differ.

As Drain does it (He, Zhu, Zheng, Lyu: "Drain: An Online Log Parsing Approach with Fixed Depth Tree", ICWS 2017): of as
many words, and at least so many of them the same. It works on the few patterns that texts have by themselves, in the
order of their text, so the same ones always give the same. Two things are added:

- Words that only a few stand beside each other for are no variables: `VM started` and `VM stopped` stay apart.
- A pattern that fits a text is the text's pattern. Where two would fit, they become one.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.placeholders import ANY_WORD
from jitdb.common.values import value_of_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIMILAR: Final = 0.6  # of the words are the same
SHORTEST: Final = 3  # words of patterns that become one
FEW: Final = 4  # words that stay apart
MOST: Final = 1 << 16  # patterns that are compared
_GROUPS: Final = 1 << 11  # of patterns with as many words: more are not compared with each other
_ANY: Final = 0  # the number of ANY_WORD


@lru_cache(maxsize=16)
def merged(own: tuple[bytes, ...]) -> dict[bytes, str] | None:
    """For each of these patterns of texts, by their keys, all different, the one that it becomes a part of, or itself.
    None: they are too many, and too different.
    """
    found: dict[bytes, str] = {}
    by_length: dict[int, list[list[str]]] = defaultdict(list)
    keys: dict[int, list[bytes]] = defaultdict(list)
    for key in sorted(own):
        words = value_of_key(key).split(" ")
        by_length[len(words)].append(words)
        keys[len(words)].append(key)
    for length, rows in by_length.items():
        numbers: dict[str, int] = {ANY_WORD: _ANY}
        table = np.array([[numbers.setdefault(word, len(numbers)) for word in row] for row in rows], np.int32)
        names = list(numbers)
        groups = _clustered(table)
        if groups is None:
            return None
        groups = _apart(table, groups, np.array(["<" not in name for name in names]))
        groups, shown = _closed(table, groups)
        texts = {group: " ".join(names[word] for word in row) for group, row in shown.items()}
        found |= {key: texts[group] for key, group in zip(keys[length], groups.tolist(), strict=True)}
    return found


def _clustered(table: NDArray[np.int32]) -> NDArray[np.int64] | None:
    """The group of each row of words: the one that it is most similar to, or a new one. None: there are too many."""
    count, length = table.shape
    groups = np.arange(count)
    if length < SHORTEST:
        return groups
    shown = np.empty((min(count, _GROUPS), length), np.int32)
    made = 0
    for number, row in enumerate(table):
        same = ((shown[:made] == row) & (row != _ANY)).sum(axis=1)
        best = int(same.argmax()) if made else 0
        if made and same[best] >= SIMILAR * length:
            shown[best][shown[best] != row] = _ANY
        elif made == len(shown):
            return None
        else:
            best, made = made, made + 1
            shown[best] = row
        groups[number] = best
    return groups


def _apart(table: NDArray[np.int32], groups: NDArray[np.int64], is_plain: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The groups, taken apart where a place has few words, all without placeholders."""
    found, made = np.empty_like(groups), 0
    waiting = _members(groups)
    while waiting:
        members = waiting.pop()
        held = [np.unique(column) for column in table[members].T] if len(members) > 1 else []
        few = [at for at, words in enumerate(held) if 1 < len(words) <= FEW and is_plain[words].all()]
        if few:
            column = table[members, min(few, key=lambda at: len(held[at]))]
            waiting += [members[column == word] for word in np.unique(column)]
        else:
            found[members] = made
            made += 1
    return found


def _members(groups: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The rows of each group."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def _closed(
    table: NDArray[np.int32], groups: NDArray[np.int64]
) -> tuple[NDArray[np.int64], dict[int, NDArray[np.int32]]]:
    """The groups, of which two are one where the words of the one fit a row of the other; and their words."""
    shown = {int(groups[members[0]]): _words(table[members]) for members in _members(groups)}
    waiting = [group for group, words in shown.items() if (words == _ANY).any()]
    while waiting:
        group = waiting.pop()
        if group not in shown:
            continue
        words = shown[group]
        fitting = ((table == words) | (words == _ANY)).all(axis=1)
        also = set(np.unique(groups[fitting]).tolist()) - {group}
        if also:
            groups[np.isin(groups, list(also))] = group
            for other in also:
                del shown[other]
            shown[group] = _words(table[groups == group])
            waiting.append(group)
    return groups, shown


def _words(rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """What all rows have, and ANY_WORD where they differ."""
    return np.where((rows == rows[0]).all(axis=0), rows[0], _ANY)
