"""The keys of a group, in order, and where in its log each of them is held.

A log's indexes answer of what is durable, and a question costs a tenth of a millisecond or more. A spool looks up a key
with each message that it stores, and asks for the messages behind thousands of seqs at once. So it takes from the
indexes, once, what they know of sender, seq, level and shards, and keeps of each sender the seqs, ascending: 17 bytes a
message. No message is read for that.

A key is held as one record, a message, or as one for each shard. What was stored last under a key counts: a message, or
the shards that belong together, which are of one level and have the same data_shards and total_shards.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import compress, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.common.values import UNDEFINED
from jitdb.stores.spool.record import MAX_LEVEL, SENDER_BYTES, MessageId

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.answering.columns import Columns, ValueColumn

NUMBERS: Final = ("seq",)  # the fields that the keys are made of
VALUES: Final = ("sender", "level", "shard_index", "data_shards", "total_shards")

_SHARDED: Final = -1  # in the place of an offset
_NONE: Final = -1  # in the place of a number that a record does not have
_NO_NUMBER: Final = -2  # in the place of what is none


class Part(NamedTuple):
    """Which shard a record holds, and what it belongs to."""

    shard_index: int
    level: int
    data_shards: int
    total_shards: int


class Found(NamedTuple):
    """A key, and the records that hold it: of shards by their shard_index, of which `needed` make the message."""

    sender: bytes
    seq: int
    level: int
    offsets: tuple[int, ...]
    needed: int  # 0: it is one message

    @property
    def key(self) -> MessageId:
        return MessageId(self.sender, self.seq)

    @property
    def is_whole(self) -> bool:
        return not self.needed or len(self.offsets) >= self.needed


class _Shards:
    """The shards of a key that are here."""

    def __init__(self, part: Part) -> None:
        self.coding = part[1:]
        self.needed = part.data_shards
        self.offsets: dict[int, int] = {}  # by shard_index

    def ordered(self) -> tuple[int, ...]:
        return tuple(self.offsets[index] for index in sorted(self.offsets))


class _Row:
    """The keys of one sender: a place a seq, ascending."""

    __slots__ = ("levels", "offsets", "seqs", "shards")

    def __init__(self, seqs: bytes = b"", offsets: bytes = b"", levels: bytes = b"") -> None:
        self.seqs, self.offsets, self.levels = array("Q", seqs), array("q", offsets), bytearray(levels)
        self.shards: dict[int, _Shards] = {}

    def put(self, seq: int, offset: int, level: int, part: Part | None) -> list[int]:
        """Hold a record; the offsets of those whose place it takes."""
        is_last = not self.seqs or seq > self.seqs[-1]
        place = len(self.seqs) if is_last else bisect_left(self.seqs, seq)
        is_there = not is_last and self.seqs[place] == seq
        if not is_there:
            self.seqs.insert(place, seq)
            self.offsets.insert(place, _SHARDED)
            self.levels.insert(place, level)
        shards = self.shards.get(seq) if part is not None else None
        if shards is None or part is None or shards.coding != part[1:]:
            stale = list(self.held(place)) if is_there else []
            self.shards.pop(seq, None)
            shards = None if part is None else _Shards(part)
        else:
            stale = [shards.offsets[part.shard_index]] if part.shard_index in shards.offsets else []
        if shards is not None and part is not None:
            shards.offsets[part.shard_index] = offset
            self.shards[seq] = shards
            offset = _SHARDED
        self.offsets[place], self.levels[place] = offset, level
        return stale

    def held(self, place: int) -> tuple[int, ...]:
        """The offsets of the records that hold the key in this place; none in one that was just made."""
        offset = self.offsets[place]
        if offset != _SHARDED:
            return (offset,)
        shards = self.shards.get(self.seqs[place])
        return () if shards is None else shards.ordered()

    def found(self, sender: bytes, place: int) -> Found:
        seq, offset, level = self.seqs[place], self.offsets[place], self.levels[place]
        if offset != _SHARDED:
            return Found(sender, seq, level, (offset,), 0)
        return Found(sender, seq, level, self.held(place), self.shards[seq].needed)

    def below(self, seq: int, level: int) -> list[int]:
        """The places up to this seq whose level is below this one."""
        levels = self.levels[: bisect_right(self.seqs, seq)]
        if not levels or max(levels) < level:
            return list(range(len(levels)))
        return [place for place, held in enumerate(levels) if held < level]

    def remove(self, places: list[int]) -> None:
        """Hold these no more; they ascend."""
        if self.shards:
            for place in places:
                self.shards.pop(self.seqs[place], None)
        if places[-1] == len(places) - 1:  # the oldest, as nearly always
            for column in (self.seqs, self.offsets, self.levels):
                del column[: len(places)]
            return
        gone = set(places)
        kept = [place not in gone for place in range(len(self.seqs))]
        self.seqs, self.offsets = array("Q", compress(self.seqs, kept)), array("q", compress(self.offsets, kept))
        self.levels = bytearray(compress(self.levels, kept))


class Keys:
    """Those of one group. Not safe for threads.

    vector: the highest seq that each sender ever had here; it never goes back
    """

    def __init__(self) -> None:
        self.vector: dict[bytes, int] = {}
        self._rows: dict[bytes, _Row] = {}
        self._order: list[bytes] | None = []  # the senders, ascending; None: not known since one came or went

    def put(self, key: MessageId, offset: int, level: int, part: Part | None) -> list[int]:
        """Hold a record that was stored after all others; the offsets of those whose place it takes."""
        row = self._rows.get(key.sender)
        if row is None:
            row = self._rows[key.sender] = _Row()
            self._order = None
        if key.seq > self.vector.get(key.sender, -1):
            self.vector[key.sender] = key.seq
        return row.put(key.seq, offset, level, part)

    def load(self, columns: Columns) -> list[int]:
        """Hold what the log has, where nothing was held yet; the offsets of records whose place others take."""
        table = _Table.of(columns)
        alone, rest = table.parted()
        order = alone[np.lexsort((table.seqs[alone], table.ranks[alone]))]
        begins = np.searchsorted(table.ranks[order], np.arange(len(table.senders) + 1)).tolist()
        for sender, (start, stop) in zip(table.senders, pairwise(begins), strict=True):
            if start < stop:
                mine = order[start:stop]
                levels = table.levels[mine].astype(np.uint8)
                self._rows[sender] = _Row(*(each.tobytes() for each in (table.seqs[mine], table.offsets[mine], levels)))
                self.vector[sender] = max(self.vector.get(sender, -1), self._rows[sender].seqs[-1])
        self._order = None
        return self.add(table, rest)

    def add(self, table: _Table, rows: NDArray[np.intp]) -> list[int]:
        """Hold these records, one after the other; the offsets of those whose place others take."""
        return [stale for record in table.records(rows) for stale in self.put(*record)]

    def after(self, vector: Mapping[bytes, int], behind: MessageId | None) -> Iterator[Found]:
        """The keys above the seqs of the vector, in order; of senders that are not in it, all.

        behind: only keys behind this one
        """
        senders = self._ordered()
        for sender in senders[0 if behind is None else bisect_left(senders, behind.sender) :]:
            row, floor = self._rows[sender], vector.get(sender, -1)
            if behind is not None and sender == behind.sender:
                floor = max(floor, behind.seq)
            if row.seqs[-1] > floor:
                for place in range(bisect_right(row.seqs, floor), len(row.seqs)):
                    yield row.found(sender, place)

    def below(self, watermark: Mapping[bytes, int], level: int) -> dict[bytes, list[int]]:
        """Of each sender, the places of the keys whose level is below this one, and whose seq the watermark reaches."""
        rows = ((sender, self._rows.get(sender), seq) for sender, seq in watermark.items())
        found = {sender: row.below(seq, level) for sender, row, seq in rows if row is not None}
        return {sender: places for sender, places in found.items() if places}

    def offsets(self, chosen: Mapping[bytes, list[int]]) -> list[int]:
        """Of all records that hold these keys."""
        held = ((self._rows[sender], places) for sender, places in chosen.items())
        return [offset for row, places in held for place in places for offset in row.held(place)]

    def remove(self, chosen: Mapping[bytes, list[int]]) -> None:
        for sender, places in chosen.items():
            self._rows[sender].remove(places)
            if not self._rows[sender].seqs:
                del self._rows[sender]
                self._order = None

    def _ordered(self) -> list[bytes]:
        if self._order is None:
            self._order = sorted(self._rows)
        return self._order


class _Table(NamedTuple):
    """What the indexes say of the records that are messages, in the order of the log; of others, nothing."""

    senders: list[bytes]  # ascending
    ranks: NDArray[np.int64]  # of each record's sender among these
    seqs: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    levels: NDArray[np.int64]
    parts: tuple[NDArray[np.int64], ...]  # shard_index (-1: none), data_shards, total_shards

    @classmethod
    def of(cls, columns: Columns) -> _Table:
        sender, level, *part = columns.values
        senders = sorted(value for value in sender.values if type(value) is bytes and len(value) == SENDER_BYTES)
        known = {value: rank for rank, value in enumerate(senders)}
        ranks = _looked_up(sender, lambda value: known.get(value, _NONE) if type(value) is bytes else _NONE)
        levels = _looked_up(level, lambda value: 0 if value is UNDEFINED else _small(value))
        index, needed, total = parts = tuple(_looked_up(column, _small) for column in part)
        seqs, are_seqs = columns.numbers[0].naturals()
        are_shards = (index >= 0) & (index < total) & (needed >= 1) & (needed <= total)
        good = are_seqs & (ranks >= 0) & (levels >= 0) & ((index == _NONE) | are_shards)
        parts = tuple(each[good] for each in parts)
        return cls(senders, ranks[good], seqs[good], columns.offsets[good], levels[good], parts)

    def parted(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The messages that have their keys for themselves, nearly all of them; and the other records."""
        order = np.lexsort((self.seqs, self.ranks))
        ranks, seqs = self.ranks[order], self.seqs[order]
        same = (ranks[1:] == ranks[:-1]) & (seqs[1:] == seqs[:-1])
        shared = np.zeros(len(order), np.bool_)
        shared[order[1:][same]] = shared[order[:-1][same]] = True
        is_rest = shared | (self.parts[0] != _NONE)
        return np.flatnonzero(~is_rest), np.flatnonzero(is_rest)

    def records(self, rows: NDArray[np.intp]) -> Iterator[tuple[MessageId, int, int, Part | None]]:
        """What Keys.put takes."""
        columns = (self.ranks, self.seqs, self.offsets, self.levels, *self.parts)
        for rank, seq, offset, level, index, needed, total in zip(
            *(each[rows].tolist() for each in columns), strict=True
        ):
            part = None if index == _NONE else Part(index, level, needed, total)
            yield MessageId(self.senders[rank], seq), offset, level, part


def added(keys: Keys, columns: Columns) -> list[int]:
    """Have the keys hold what came to the log since; the offsets of records that others take the place of."""
    table = _Table.of(columns)
    return keys.add(table, np.arange(len(table.seqs)))


def _looked_up(column: ValueColumn, number: Callable[[Any], int]) -> NDArray[np.int64]:
    return np.array([*map(number, column.values), _NONE], np.int64)[column.codes]


def _small(value: Any) -> int:
    if value is UNDEFINED:
        return _NONE
    return value if type(value) is int and 0 <= value <= MAX_LEVEL else _NO_NUMBER
