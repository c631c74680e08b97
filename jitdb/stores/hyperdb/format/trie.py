"""The trie that each entry carries. tries/growing.py makes that of a new one.

A trie has a bucket for each place of its key's path at which another key's path leaves it: of each digit that goes on
there, the newest entries. It lies in an entry as, for each bucket that is not empty,

    varint   the place in the path
    varint   a bit for each digit (0 to 4) that has pointers, digit 0 the lowest
    then for each of these digits, lowest first, its pointers, at least one:
        varint   number of the feed, in the writer's own order, times 2; plus 1 if another pointer follows
        varint   seq of the entry in that feed
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from jitdb.errors import DecodeError
from jitdb.stores.varint import read_varint

DIGIT_COUNT: Final = 5


class Pointer(NamedTuple):
    """An entry: the number of its feed, and its seq there."""

    feed: int
    seq: int


_DIGITS: Final = [[digit for digit in range(DIGIT_COUNT) if bits >> digit & 1] for bits in range(1 << DIGIT_COUNT)]

Bucket: TypeAlias = dict[int, list[Pointer]]  # by digit
Trie: TypeAlias = dict[int, Bucket]  # by place


def decode_trie(data: bytes, feeds: Sequence[int]) -> Trie:
    """A trie of these bytes; feeds: of each number in the writer's order, the feed here.

    >>> decode_trie(bytes.fromhex("01040002"), [0])
    {1: {2: [Pointer(feed=0, seq=2)]}}

    Raises DecodeError for what is cut short, places out of order, a digit above 4, or a feed that has no number.
    """
    trie: Trie = {}
    position, end = 0, len(data)
    last = -1
    while position < end:
        begin = position
        place, position = read_varint(data, position)
        bits, position = read_varint(data, position)
        if bits >> DIGIT_COUNT or not bits or place <= last:
            reason = f"the bucket at byte {begin} of a trie is none: place {place}, digits {bits:#b}"
            raise DecodeError(reason, position=begin)
        bucket = trie[place] = {}
        last = place
        for digit in _DIGITS[bits]:
            bucket[digit], position = _pointers(data, position, feeds)
    return trie


def _pointers(data: bytes, position: int, feeds: Sequence[int]) -> tuple[list[Pointer], int]:
    pointers = []
    more = 1
    while more:
        begin = position
        number, position = read_varint(data, position)
        seq, position = read_varint(data, position)
        more, number = number & 1, number >> 1
        if number >= len(feeds):
            raise DecodeError(
                f"the pointer at byte {begin} of a trie is to feed {number} of {len(feeds)}", position=begin
            )
        pointers.append(Pointer(feeds[number], seq))
    return pointers, position
