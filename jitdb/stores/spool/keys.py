"""The keys of a group, in order, and where in its log each of them is held.

A log's indexes answer of what is durable, and a question costs a tenth of a millisecond or more. A spool looks up a key
with each message that it stores, and asks for the messages behind thousands of seqs at once. So it takes from the
indexes, once, what they know of sender, seq, level and shards, and keeps of each sender the seqs, ascending: 17 bytes a
message (20 where there are shards). No message is read for that.

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

    from jitdb.engine.answering.finder import Columns, ValueColumn

NUMBERS: Final = ("seq",)  # the fields that the keys are made of
VALUES: Final = ("sender", "level", "shard_index", "data_shards", "total_shards")

# Which part of a message a record holds: of a shard its shard_index, data_shards and total_shards, a byte each.
WHOLE: Final = bytes((255, 0, 0))

_NONE: Final = -1  # in the place of a number that a record does not have
_NO_NUMBER: Final = -2  # in the place of what is none


class Run(NamedTuple):
    """Keys of one sender that follow each other, and the offsets of the records that hold them.

    needed: 0: each is one message; else it is one key, of whose shards, by their shard_index, so many make the message
    """

    sender: bytes
    seqs: list[int]
    levels: list[int]
    offsets: list[int]
    needed: int = 0

    @property
    def is_whole(self) -> bool:
        return len(self.offsets) >= self.needed


class _Row:
    """The records of one sender, by seq, and shards of one message by their shard_index; each has a place.

    parts: 3 bytes a place; empty while all are WHOLE
    """

    __slots__ = ("levels", "offsets", "parts", "seqs")

    def __init__(self, seqs: bytes = b"", offsets: bytes = b"", levels: bytes = b"", parts: bytes = b"") -> None:
        self.seqs, self.offsets = array("Q", seqs), array("q", offsets)
        self.levels, self.parts = bytearray(levels), bytearray(parts)

    def put(self, seq: int, offset: int, level: int, part: bytes) -> list[int]:
        """Hold a record; the offsets of those whose place it takes."""
        has_parts = bool(self.parts) or part != WHOLE
        if has_parts and not self.parts:
            self.parts = bytearray(WHOLE) * len(self.seqs)
        if not self.seqs or seq > self.seqs[-1]:
            place = stop = len(self.seqs)
        else:
            place, stop = bisect_left(self.seqs, seq), bisect_right(self.seqs, seq)
        if part != WHOLE and place < stop and self._belongs(place, level, part):
            for each in range(place, stop):
                place += self.parts[3 * each] < part[0]
            stop = place + (place < stop and self.parts[3 * place] == part[0])
        stale = self.offsets[place:stop].tolist()
        self.seqs[place:stop], self.offsets[place:stop] = array("Q", (seq,)), array("q", (offset,))
        self.levels[place:stop] = bytes((level,))
        if has_parts:
            self.parts[3 * place : 3 * stop] = part
        return stale

    def _belongs(self, place: int, level: int, part: bytes) -> bool:
        """Whether a shard is of the same message as the one there."""
        return self.levels[place] == level and self.parts[3 * place + 1 : 3 * place + 3] == part[1:]

    def runs(self, sender: bytes, place: int, count: int) -> Iterator[Run]:
        """At most so many keys from a place on."""
        if not self.parts:
            part = slice(place, place + count)
            yield Run(sender, self.seqs[part].tolist(), list(self.levels[part]), self.offsets[part].tolist())
            return
        while place < len(self.seqs) and count > 0:
            stop, seq = place + 1, self.seqs[place]
            while stop < len(self.seqs) and self.seqs[stop] == seq:
                stop += 1
            offsets = self.offsets[place:stop].tolist()
            yield Run(sender, [seq], [self.levels[place]], offsets, self.parts[3 * place + 1])
            place, count = stop, count - 1

    def below(self, seq: int, level: int) -> list[int]:
        """The places up to this seq whose level is below this one."""
        levels = self.levels[: bisect_right(self.seqs, seq)]
        if not levels or max(levels) < level:
            return list(range(len(levels)))
        return [place for place, held in enumerate(levels) if held < level]

    def remove(self, places: list[int]) -> None:
        """Hold these no more; they ascend."""
        if places[-1] == len(places) - 1:  # the oldest, as nearly always
            for column in (self.seqs, self.offsets, self.levels):
                del column[: len(places)]
            del self.parts[: 3 * len(places)]
            return
        kept = np.ones(len(self.seqs), np.bool_)
        kept[places] = False
        if self.parts:
            self.parts = bytearray(np.frombuffer(bytes(self.parts), np.uint8).reshape(-1, 3)[kept].tobytes())
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

    def put(self, key: MessageId, offset: int, level: int, part: bytes) -> list[int]:
        """Hold a record that was stored after all others; the offsets of those whose place it takes."""
        row = self._rows.get(key.sender)
        if row is None:
            row = self._rows[key.sender] = _Row()
            self._order = None
        if key.seq > self.vector.get(key.sender, -1):
            self.vector[key.sender] = key.seq
        return row.put(key.seq, offset, level, part)

    def load(self, columns: Columns) -> list[int]:
        """Hold what the indexes know of a log; the offsets of those records whose place others take."""
        table = _Table.of(columns)
        order, rest = table.parted()
        begins = np.searchsorted(table.ranks[order], np.arange(len(table.senders) + 1)).tolist()
        for sender, (start, stop) in zip(table.senders, pairwise(begins), strict=True):
            if start < stop:
                self._rows[sender] = row = _Row(*table.row(order[start:stop]))
                self.vector[sender] = max(self.vector.get(sender, -1), row.seqs[-1])
        self._order = None
        return [stale for record in table.records(rest) for stale in self.put(*record)]

    def follow(self, columns: Columns) -> None:
        """Hold what came to a log since."""
        table = _Table.of(columns)
        for record in table.records(np.arange(len(table.seqs))):
            self.put(*record)

    def after(self, vector: Mapping[bytes, int], behind: MessageId | None, count: int) -> list[Run]:
        """The first so many keys above the seqs of the vector, in order; of senders that are not in it, all.

        behind: only keys behind this one
        """
        senders, found = self._ordered(), []
        for sender in senders[0 if behind is None else bisect_left(senders, behind.sender) :]:
            row, floor = self._rows[sender], vector.get(sender, -1)
            if behind is not None and sender == behind.sender:
                floor = max(floor, behind.seq)
            if row.seqs[-1] > floor:
                for run in row.runs(sender, bisect_right(row.seqs, floor), count):
                    found.append(run)
                    count -= len(run.seqs)
                if not count:
                    break
        return found

    def below(self, watermark: Mapping[bytes, int], level: int) -> dict[bytes, list[int]]:
        """Of each sender, the places of the records whose level is below this one, and that the watermark reaches."""
        rows = ((sender, self._rows.get(sender), seq) for sender, seq in watermark.items())
        found = {sender: row.below(seq, level) for sender, row, seq in rows if row is not None}
        return {sender: places for sender, places in found.items() if places}

    def count(self, chosen: Mapping[bytes, list[int]]) -> int:
        """How many keys these places hold."""
        found = 0
        for sender, places in chosen.items():
            row = self._rows[sender]
            found += len({row.seqs[place] for place in places} if row.parts else places)
        return found

    def offsets(self, chosen: Mapping[bytes, list[int]]) -> list[int]:
        """Of the records in these places."""
        held = ((self._rows[sender], places) for sender, places in chosen.items())
        return [row.offsets[place] for row, places in held for place in places]

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
    parts: NDArray[np.uint8]  # 3 columns

    @classmethod
    def of(cls, columns: Columns) -> _Table:
        sender, level, *part = columns.values
        senders = sorted(value for value in sender.values if type(value) is bytes and len(value) == SENDER_BYTES)
        known = {value: rank for rank, value in enumerate(senders)}
        ranks = _looked_up(sender, lambda value: known.get(value, _NONE) if type(value) is bytes else _NONE)
        levels = _looked_up(level, lambda value: 0 if value is UNDEFINED else _small(value))
        index, needed, total = (_looked_up(column, _small) for column in part)
        seqs, are_seqs = columns.numbers[0].naturals()
        are_shards = (index >= 0) & (index < total) & (needed >= 1) & (needed <= total)
        parts = np.stack((index, needed, total), axis=1)
        parts[index == _NONE] = tuple(WHOLE)
        good = are_seqs & (ranks >= 0) & (levels >= 0) & ((index == _NONE) | are_shards)
        return cls(senders, ranks[good], seqs[good], columns.offsets[good], levels[good], parts[good].astype(np.uint8))

    def parted(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The records that others share their key with only as shards of the same message, in the order of keys; and
        the other ones, few, in that of the log.
        """
        order = np.lexsort((self.parts[:, 0], self.seqs, self.ranks))
        columns = [column[order] for column in (self.ranks, self.seqs, self.levels, *self.parts.T)]
        ranks, seqs, levels, index, needed, total = (column[1:] == column[:-1] for column in columns)  # as before
        same = ranks & seqs
        fits = levels & needed & total & ~index  # another shard of the same message
        keys = np.cumsum(np.append(np.ones(min(1, len(order)), np.intp), ~same))  # of which key each record is
        is_rest = np.isin(keys, keys[1:][same & ~fits])
        return order[~is_rest], np.sort(order[is_rest])

    def row(self, records: NDArray[np.intp]) -> tuple[bytes, bytes, bytes, bytes]:
        """What a _Row is made of."""
        columns = (self.seqs[records], self.offsets[records], self.levels[records].astype(np.uint8))
        seqs, offsets, levels = (column.tobytes() for column in columns)
        parts = self.parts[records]
        return seqs, offsets, levels, b"" if (parts[:, 0] == WHOLE[0]).all() else parts.tobytes()

    def records(self, rows: NDArray[np.intp]) -> Iterator[tuple[MessageId, int, int, bytes]]:
        """What Keys.put takes."""
        columns = (each[rows].tolist() for each in (self.ranks, self.seqs, self.offsets, self.levels, self.parts))
        for rank, seq, offset, level, part in zip(*columns, strict=True):
            yield MessageId(self.senders[rank], seq), offset, level, bytes(part)


def _looked_up(column: ValueColumn, number: Callable[[Any], int]) -> NDArray[np.int64]:
    return np.array([*map(number, column.values), _NONE], np.int64)[column.codes]


def _small(value: Any) -> int:
    if value is UNDEFINED:
        return _NONE
    return value if type(value) is int and 0 <= value <= MAX_LEVEL else _NO_NUMBER
