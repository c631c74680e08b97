"""What a task of a read must know: which bytes of which log, and which of their records are rows. And these records,
some MiB at a time: read, verified and numbered.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from jitdb.engine.declared_time import CoreFields
from jitdb.engine.records import leads_out
from jitdb.errors import DamageWarning, LogCorrupt
from jitdb.log.blocks.block_format import header_size, round_up
from jitdb.log.blocks.scanner import scan
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.nodes.positions import Offsets, Seqs
from jitdb.spark_ext.counting import PIECE, records_between
from jitdb.spark_ext.errors import LogChanged
from jitdb.spark_ext.file_range import FileRange, Run, Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.blocks.scanner import Piece, Walked, Walker
    from jitdb.spark_ext.options import ReadOptions


@dataclass(frozen=True, slots=True)
class Partition:
    """The share of one task. Can be pickled.

    runs:    in the order of the log; only the last one may end within a block
    sums:    the checksums of their blocks, one run behind the other (see ScanSource.checksums); None: there are none
    deleted: offsets of records in the runs that were deleted, whether their bytes are zeros by now or not
    chosen:  the records wanted, by their seqs, as a serialized bitmap; None: all
    where:   the question whose answers are wanted, as JSON, of runs that follow on one another; None: it was answered
             already, or there is none
    shared:  fields that all records have by the log's path, whatever they say themselves
    indexed: how the log is opened whose indexes have all values of the rows; None: they are read from the log
    """

    snapshot: Snapshot
    runs: tuple[Run, ...]
    sums: NDArray[np.int64] | None
    deleted: NDArray[np.int64]
    core: CoreFields
    chosen: bytes | None = None
    where: dict[str, Any] | None = None
    skip_corrupt: bool = False
    shared: Mapping[str, Any] = field(default_factory=dict)
    indexed: ReadOptions | None = None

    def open(self) -> FileRange:
        """Its blocks, if this machine sees the log that the driver saw. Raises CopyDiffers, LogChanged."""
        file, runs = self.snapshot.open(), list(self.runs)
        if self.snapshot.form is None:  # all of the last block: its checksum is of all of it
            end = round_up(runs[-1].stop, self.snapshot.block_size)
            runs[-1] = runs[-1]._replace(stop=min(end, self.snapshot.end))
        return FileRange.of_file(
            self.snapshot, runs, file, self.sums, deleted=self.deleted, renamed=self.skip_corrupt
        )  # fmt: skip

    def ended(self, end: int) -> Partition:
        """All of the same compressed file, whose text ends here. Raises LogChanged where indexes tell another end."""
        if self.chosen is not None:
            raise LogChanged(
                f"its text ends at byte {end:,}, expected {self.snapshot.end:,}, as was indexed",
                path=self.snapshot.path,
                remedy="load it anew, or read with indexes=none",
            )
        (run,) = self.runs
        return replace(self, snapshot=replace(self.snapshot, end=end), runs=(run._replace(stop=end, stop_seq=-1),))


class Records(NamedTuple):
    """Some records, n of them, live and deleted.

    offsets, seqs:   int64, where each begins in the log, and its ordinal (that in its run where the first is unknown)
    starts, lengths: int64, its bytes in `buffer`, which the next ones overwrite
    deleted:         bool
    """

    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    seqs: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    deleted: NDArray[np.bool_]


class RecordReader(Protocol):
    """Reads the runs of one partition."""

    def records(self) -> Iterator[Records]:
        """All that begin in the runs. Raises LogCorrupt, CopyDiffers, LogChanged, OSError."""


class BlockReader:
    """Reads the runs of one partition."""

    def __init__(self, partition: Partition, source: FileRange) -> None:
        self._partition = partition
        self._source = source
        self._size = source.block_size
        self._next_seq = 0
        self._reported: set[int] = set()  # damaged blocks that are left out

    def records(self) -> Iterator[Records]:
        """All that begin in the runs. Raises LogCorrupt, CopyDiffers, LogChanged, OSError."""
        source = self._source
        for piece in scan(
            lambda buffer, at: source.read_blocks(at, at + len(buffer), buffer),
            0, source.durable_end, self._size, size=PIECE, walk=self._walk,
        ):  # fmt: skip
            yield self._numbered(piece)

    def _numbered(self, piece: Piece) -> Records:
        """The records of a piece that begin in the runs, with their places in the log."""
        starts, lengths, deleted = piece.walked[:3]
        positions = starts + (piece.begin - header_size(self._size))
        offsets, seqs = np.empty_like(positions), np.empty_like(positions)
        kept = np.zeros(len(positions), np.bool_)
        for number, begin, end in self._source.runs_in(piece.begin, piece.stop):
            run = self._partition.runs[number]
            low, high = positions.searchsorted([begin, end]).tolist()
            offsets[low:high] = positions[low:high] + (self._source.offset_in_log(begin) - begin)
            first, stop = (low + offsets[low:high].searchsorted([run.start, run.stop])).tolist()
            if begin == self._source.begins[number]:
                self._next_seq = max(run.first_seq, 0)
            seqs[low:high] = np.arange(low - first, high - first) + self._next_seq
            self._next_seq += stop - first
            is_whole = self._source.offset_in_log(begin) + end - begin >= run.stop
            kept[first:stop] = not is_whole or self._is_complete(run)
        if kept.all():
            return Records(piece.data, offsets, seqs, starts, lengths, deleted)
        return Records(piece.data, offsets[kept], seqs[kept], starts[kept], lengths[kept], deleted[kept])

    def _is_complete(self, run: Run) -> bool:
        """Whether a run that ends here held as many records as the driver says: else a length is not what it was."""
        if min(run.first_seq, run.stop_seq) < 0 or self._next_seq == run.stop_seq:
            return True
        first, last = run.start // self._size, (run.stop - 1) // self._size
        if first != last or first not in self._reported:  # of a block that is left out there is nothing to say
            where = f"block {first} is" if first == last else f"of blocks {first} to {last} one is"
            expected, got = run.stop_seq - run.first_seq, self._next_seq - run.first_seq
            self._complain(
                LogCorrupt(
                    f"{where} damaged, or was repaired: expected {expected:,} records, which were indexed, got {got:,}",
                    path=self._source.path, offset=run.start, block=first, expected=expected, got=got,
                    remedy="see verify(), or read with indexes=none",
                )
            )  # fmt: skip
        return False

    # --- damage ------------------------------------------------------------------------------------------------------

    def _walk(self, walker: Walker, begin: int, data: NDArray[np.uint8], size: int) -> tuple[Walked, list[int]]:
        first = begin // self._size
        walked = walker.walk(data, size, self._source.checksums(first, -(-size // self._size)))
        lost: list[int] = []
        if walked.wrong:
            lost = [number for number in walked.wrong if not self._is_sound(data, first, number)]
            walked = walker.walk(data, size)  # a second look may have brought other bytes
            walked.deleted[np.isin(walked.starts // self._size, lost)] = True
        for fault in walked.faults.tolist():
            offset = self._source.offset_in_log(begin + fault)
            if fault // self._size not in lost:
                self._complain(leads_out(self._source.path, offset, offset // self._size))
        return walked, []

    def _is_sound(self, data: NDArray[np.uint8], first: int, number: int) -> bool:
        """Look again at a block that does not have its checksum. False where it is to be left out."""
        found, fault = self._source.look(first + number)
        if fault is not None:
            self._complain(fault)
            return False
        at = number * self._size
        size = min(len(found), len(data) - at)
        data[at : at + size] = np.frombuffer(found, np.uint8)[:size]
        return True

    def _complain(self, fault: LogCorrupt) -> None:
        if not self._partition.skip_corrupt:
            raise fault
        if fault.block is not None:
            self._reported.add(fault.block)
        text = f"{fault.reason}. Its records are left out"
        warnings.warn(DamageWarning(text, [fault], path=fault.path, remedy=fault.remedy), stacklevel=2)


# --- asking ----------------------------------------------------------------------------------------------------------


def matching_offsets(partition: Partition, source: FileRange) -> NDArray[np.int64]:
    """The log's offsets of the live records of the runs that the question is true of, in order.

    Records of the first block that stand before its run may be among them. Raises QueryError, LogCorrupt, OSError.
    """
    from jitdb.engine.manager import IndexManager
    from jitdb.indexes.kinds.roaring import members_of
    from jitdb.operators.text.json import from_json

    assert partition.where is not None
    question = _local(from_json(partition.where), partition, source)
    manager = IndexManager(source, lambda: None, partition.core, 1, False)

    def look(end_seq: int) -> NDArray[np.int64]:
        return manager.records.offsets_of(members_of(manager.evaluator.matches(question, end_seq)))

    return manager.ask(question, False, None, look) + source.offset_in_log(0)


def asks_seqs(operation: Operation) -> bool:
    """Whether the question names records by their seqs."""
    return any(isinstance(leaf, Seqs) for leaf in operation.leaves())


def _local(operation: Operation, partition: Partition, source: FileRange) -> Operation:
    """The question with the seqs and offsets that records have in `source`."""

    def local(leaf: Operation) -> Operation:
        base, run = source.offset_in_log(0), partition.runs[0]
        if isinstance(leaf, Offsets):
            return Offsets(_moved(leaf.packed, base))
        if isinstance(leaf, Seqs):  # of the first block, records may stand before the run
            return Seqs(_moved(leaf.packed, run.first_seq - int(records_between(source, 0, [run.start - base])[0])))
        return leaf

    return operation.replaced(local)


def _moved(packed: bytes, by: int) -> bytes:
    """Those of these positions that are `by` or more, counted from there."""
    numbers = np.frombuffer(packed, "<u8")
    if by < 0:
        return (numbers + np.uint64(-by)).astype("<u8").tobytes()
    return (numbers[numbers >= by] - np.uint64(by)).astype("<u8").tobytes()
