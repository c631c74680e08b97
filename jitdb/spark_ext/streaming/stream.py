"""A log as a stream: where it stands, how far the next batch goes, and who reads what of it. Knows nothing of Spark.

A place is a cursor (cursor.py), which is what Spark keeps in its checkpoint: the tail block still fills, so places are
ends of records, not of blocks.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from jitdb.engine.cursor import UNKNOWN, Cursor, parse_cursor
from jitdb.errors import QueryError
from jitdb.log.opening.swap import KEPT
from jitdb.spark_ext.counting import place_of, records_between, walked
from jitdb.spark_ext.errors import LogChanged, without_identity
from jitdb.spark_ext.file_range import Run
from jitdb.spark_ext.reading.opening import open_log
from jitdb.spark_ext.reading.partitions import Partition
from jitdb.spark_ext.reading.planning import Share, blocks_of_task, steady

if TYPE_CHECKING:
    from jitdb.spark_ext.options import ReadOptions


class Limit(NamedTuple):
    """Of a batch; None: no limit. A batch has one record at least."""

    records: int | None = None
    bytes: int | None = None


class LogStream:
    """One log, followed by the driver of a stream."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._log = open_log(options)
        if not self._log.identity_is_stored:
            self._log.close()
            raise without_identity(options.path, "a stream could not tell it from another log after a restart")
        self._until: tuple[int, int] | None = None  # generation, and end of what is read
        self._moved: dict[tuple[Cursor, int], Cursor] = {}  # of places before a compaction, and the generation now

    @staticmethod
    def as_offset(place: Cursor) -> dict[str, Any]:
        """What Spark keeps of a place in its checkpoint."""
        return {**place._asdict(), "identity": place.identity.hex()}

    @staticmethod
    def of_offset(form: dict[str, Any]) -> Cursor:
        """The place that Spark kept. Raises QueryError."""
        try:
            identity = bytes.fromhex(str(form["identity"]))
            return Cursor(identity, int(form["generation"]), int(form["seq"]), int(form["offset"]))
        except (KeyError, ValueError, TypeError) as error:
            raise QueryError(f"the checkpoint is of another kind of stream: {form!r} is no place in a log") from error

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    # --- places ------------------------------------------------------------------------------------------------------

    def first(self) -> Cursor:
        """Where a new stream begins. Raises QueryError."""
        log, where = self._log, self._options.starting_offset
        if where.lower() == "earliest":
            return self._place(0, 0)
        if where.lower() == "latest":
            return self._at(log.durable_end)
        try:
            cursor = parse_cursor(where)
        except QueryError as error:
            raise QueryError(f"the option startingOffset is 'earliest', 'latest' or a cursor: {error}") from error
        return self.now(cursor)

    def latest(self) -> Cursor:
        """The log's end as it is now; how many records come before it is not counted."""
        self._log.refresh()
        return self._place(UNKNOWN, self._log.durable_end)

    def stop_here(self) -> None:
        """Read what there is now, and no more."""
        self._log.refresh()
        self._until = (self._log.generation, self._log.durable_end)

    def stop_at(self, end: Cursor) -> None:
        """Read up to there; to the log's end where it was compacted since."""
        self._until = (end.generation, end.offset)

    def next(self, start: Cursor, limit: Limit) -> Cursor:
        """Where the batch that begins at `start` ends; `start` itself when there is nothing to read.

        But a place that compactions will soon have been forgotten since is told anew: an empty batch, which Spark notes
        in its checkpoint.

        Raises LogChanged, LogError, OSError.
        """
        self._log.refresh()
        place, stop = self.now(start), self._stop()
        seq, offset = place.seq, place.offset
        for offsets, ends in walked(self._log, offset, stop):
            taken = len(offsets)
            if limit.records is not None:
                taken = min(taken, limit.records - (seq - place.seq))
            if limit.bytes is not None:
                fitting = int(ends.searchsorted(place.offset + limit.bytes, side="right"))
                taken = min(taken, fitting if seq > place.seq else max(fitting, 1))
            if taken:
                seq, offset = seq + taken, int(ends[taken - 1])
            if taken < len(offsets):
                break
        if seq > place.seq or self._log.generation - start.generation >= KEPT // 2:
            return self._place(seq, offset)
        return start

    def now(self, place: Cursor) -> Cursor:
        """The same place in the log as it is now. Raises LogChanged where it cannot be told."""
        log = self._log
        if place.offset == 0:
            return self._place(0, 0)
        reason = place.lost(log)
        if reason:
            raise LogChanged(
                f"the stream cannot go on: {reason}", path=log.path, remedy="begin anew, with a new checkpoint"
            )
        if place.generation == log.generation:
            return place
        # A stream without news asks for the same place again and again: the log is walked for it once.
        known = place, log.generation
        if known not in self._moved:
            seq = place.moved_seq(log)
            self._moved[known] = self._place(seq, place_of(log, seq))
        return self._moved[known]

    def is_compacted(self, place: Cursor) -> bool:
        """Whether the log was compacted since the place was made."""
        return place.identity == self._log.identity and place.generation < self._log.generation

    def _stop(self) -> int:
        end = self._log.durable_end
        if self._until is None:
            return end
        if self._until[0] != self._log.generation:  # it was compacted since: its end is elsewhere
            self._until = (self._log.generation, end)
        return min(self._until[1], end)

    def _place(self, seq: int, offset: int) -> Cursor:
        return Cursor(self._log.identity, self._log.generation, seq, offset)

    def _at(self, offset: int) -> Cursor:
        return self._place(int(records_between(self._log, 0, [offset])[0]) if offset else 0, offset)

    # --- reading -----------------------------------------------------------------------------------------------------

    def partitions(self, start: Cursor, end: Cursor, *, slow: bool) -> list[tuple[Partition, ...]]:
        """What each task of a batch reads. Raises LogChanged, LogError, OSError."""
        return [(part,) for part in self.parts(start, end, slow=slow)]

    def parts(self, start: Cursor, end: Cursor, *, slow: bool) -> list[Partition]:
        """The same, one by one."""
        self._log.refresh()
        return steady(self._log, lambda: self._cut(self.now(start), self.now(end), slow))

    def _cut(self, start: Cursor, end: Cursor, slow: bool) -> list[Partition]:
        log = self._log
        if start.offset >= end.offset:
            return []
        block = start.offset - start.offset % log.block_size
        size = blocks_of_task(self._options, end.offset - block, log.block_size, slow=slow) * log.block_size
        edges = [start.offset, *range(block + size, end.offset, size), end.offset]
        seqs = [start.seq + count for count in records_between(log, start.offset, edges[:-1]).tolist()] + [end.seq]
        runs = [Run(*edge, *numbers) for edge, numbers in zip(pairwise(edges), pairwise(seqs), strict=True)]
        share = Share(log, self._options)
        return [share.partition((run,), self._options.where) for run in runs]
