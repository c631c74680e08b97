"""The lines of one partition, some MiB at a time: found, numbered, and without those that are no records."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from jitdb.errors import MalformedWarning
from jitdb.log.codecs.fields.constants import LIVE
from jitdb.log.codecs.fields.located import RecordBatch
from jitdb.spark_ext.counting import PIECE
from jitdb.spark_ext.errors import LogChanged
from jitdb.spark_ext.file_range import FileRange
from jitdb.spark_ext.reading.partitions import Partition, Records

if TYPE_CHECKING:
    from jitdb.log.codecs.fields.located import Locator


class LineReader:
    """Reads the runs of one partition; a run begins where a line does, and ends with one."""

    def __init__(self, partition: Partition, source: FileRange) -> None:
        self._partition = partition
        self._source = source
        # What was answered already is of records alone.
        self._is_sure = partition.chosen is not None or partition.where is not None
        self._locator: Locator = source.codec.locator([])
        self._firsts: list[int] = []  # of each run so far, how many lines were before it
        self._lines = 0
        self._malformed = 0
        self._first_malformed = -1  # its offset

    def records(self) -> Iterator[Records]:
        """All that begin in the runs. Raises LogChanged, CopyDiffers, LogError, OSError."""
        source = self._source
        for start, stop in source.texts():
            size = min(PIECE, stop - start)  # what it reads into: of thousands of small files, that costs most
            walker = source.framing.walker(source, size, stop)
            for begin in range(start, stop, size):
                for count, *_ in walker.walks(begin, start):
                    if count:
                        yield self._numbered(walker.batch(0, count, begin))
        self._check()
        source.check()
        self._tell()

    def _numbered(self, lines: RecordBatch) -> Records:
        source, positions = self._source, lines.offsets
        assert positions is not None
        run = source.begins.searchsorted(positions, side="right") - 1
        fresh = np.arange(len(self._firsts), int(run[-1]) + 1)
        self._firsts += (self._lines + run.searchsorted(fresh)).tolist()
        bases = np.array([max(each.first_seq, 0) for each in self._partition.runs[: len(self._firsts)]], np.int64)
        seqs = np.arange(self._lines, self._lines + len(lines)) + (bases - np.array(self._firsts, np.int64))[run]
        self._lines += len(lines)
        offsets = positions + source.shifts[run]
        deleted = lines.states != LIVE
        if not self._is_sure:
            wrong = self._locator.invalid(lines)
            deleted[wrong] = True
            if len(wrong) and not self._malformed:
                self._first_malformed = int(offsets[wrong[0]])
            self._malformed += len(wrong)
        return Records(lines.buffer, offsets, seqs, lines.starts, lines.lengths, deleted)

    def _check(self) -> None:
        """Raise LogChanged where a run has not as many lines as were indexed."""
        ends = [*self._firsts[1:], self._lines]
        for run, first, end in zip(self._partition.runs, self._firsts, ends, strict=False):
            expected = run.stop_seq - run.first_seq
            if min(run.first_seq, run.stop_seq) >= 0 and end - first != expected:
                raise LogChanged(
                    f"it was edited: expected {expected:,} lines from byte {run.start:,} on, as were indexed, got "
                    f"{end - first:,}",
                    path=self._source.path,
                    remedy="ask it anew, or read with indexes=none",
                )

    def _tell(self) -> None:
        if not self._malformed:
            return
        what = f"{self._malformed:,} lines" if self._malformed > 1 else "a line"
        row = getattr(self._source.framing, "row", None)
        form = self._source.codec.name.upper() if row is None else row.title
        text = f"{what} cannot be read as {form}, left out of all answers: the first at byte {self._first_malformed:,}"
        path = self._source.path
        warnings.warn(MalformedWarning(text, (), self._malformed, path=path), stacklevel=2)
