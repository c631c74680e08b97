"""What workers scan: a range of a log, by the local engine's scan, into segments whose seqs count from its beginning.

Segments travel between machines as they stand in an index file, so that their CRCs travel with them. Free of Spark:
transports.py has these functions run.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from jitdb.common.values import ARRAY, MAP
from jitdb.engine.building.scan import Scan
from jitdb.engine.building.targets import BuildTarget, IndexBuilderFactory
from jitdb.engine.catalog.catalog import Catalog
from jitdb.indexes.files.file import LogName
from jitdb.indexes.files.segment_reader import read_segment
from jitdb.indexes.kinds.bitmaps import FEW_VALUES, RECORDS_A_VALUE, dictionary_of, distinct_keys
from jitdb.indexes.kinds.builder import Pieces
from jitdb.indexes.kinds.set_builders import OffsetsBuilder, ValuesBuilder
from jitdb.indexes.segment import BITMAPS, Segment
from jitdb.indexes.spec import Requirement
from jitdb.spark_ext.errors import sends_errors
from jitdb.spark_ext.file_range import SHARED, FileRange, Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.files.index import Index
    from jitdb.indexes.kinds.builder import Builder
    from jitdb.log.source import ScanSource

_ADVICE: Final = f"{SHARED}, or be a Hadoop URI"


class Begin(NamedTuple):
    """Up to where an index holds the log already."""

    seq: int
    offset: int


class Range(NamedTuple):
    """Bytes [start, stop) of a log, which begin and end at a block's boundary or at the end of a record.

    `targets` are the numbers of the indexes that lack these records.
    """

    number: int
    start: int
    stop: int
    targets: tuple[int, ...]


def cut_ranges(begins: Sequence[int], end: int, block_size: int, size: int) -> list[Range]:
    """Ranges of at most about `size` bytes, in order, that together bring every index up to `end`.

    begins: of each index, the end of the last record that it holds; 0 where it holds none

    >>> cut_ranges([0, 70], 250, 64, 128)
    [Range(number=0, start=0, stop=70, targets=(0,)), Range(number=1, start=70, stop=128, targets=(0, 1)), \
Range(number=2, start=128, stop=250, targets=(0, 1))]
    """
    size = max(size // block_size, 1) * block_size
    first = min(begins, default=end)
    return ranges_at(range(first - first % size, end, size), begins, end)


def ranges_at(edges: Iterable[int], begins: Sequence[int], end: int) -> list[Range]:
    """Ranges that meet at these edges, and wherever an index ends: see cut_ranges."""
    first = min(begins, default=end)
    inside = {edge for edge in (*edges, *begins) if first <= edge < end}
    return [
        Range(number, start, stop, tuple(each for each, begin in enumerate(begins) if begin <= start))
        for number, (start, stop) in enumerate(pairwise([*sorted(inside), end]))
    ]


# --- what comes of a range -------------------------------------------------------------------------------------------


class Keys(NamedTuple):
    """How many values the bitmaps of an index are of, so that its verdict can often be told without looking at them."""

    distinct: int
    containers: int
    bytes: int


def counted(keys: Collection[bytes]) -> Keys:
    """Those of these values."""
    return Keys(len(keys), sum(key[0] in (ARRAY, MAP) for key in keys), sum(map(len, keys)))


class RangeHead(NamedTuple):
    """What the driver must know of a range before anything is merged."""

    number: int
    records: int
    end: int  # where its last record ends in the log; its start where it has none
    malformed: int
    faults: tuple[int, ...]  # log positions of headers behind which nothing can be found
    corrupt: dict[int, str]  # what is wrong with blocks that are not what was written, by their numbers
    kinds: dict[int, int]  # of each target, the kind of its segments; those of a range without records are not there
    keys: dict[int, Keys]  # of each target whose segments are BITMAPS
    bytes: int  # of all segments

    def broken(self, block_size: int) -> set[int]:
        """The numbers of all damaged blocks."""
        return {*self.corrupt, *(fault // block_size for fault in self.faults)}


@dataclass(frozen=True, slots=True)
class Partial:
    """A range's segments. They count from 0, so that they are cut and moved before they are merged (joining.py)."""

    head: RangeHead
    start: int
    ends: bytes  # of each record, where it ends, less `start`: u32
    segments: dict[int, tuple[bytes, ...]]  # of each target, as pack makes them
    hashes: dict[int, bytes]  # of hashes, for some of those that are of bitmaps and may not stay so

    def end_of(self, seq: int) -> int:
        """Where a record ends in the log, by its seq in the range."""
        return self.start + int.from_bytes(self.ends[4 * seq : 4 * seq + 4], "little")


def pack(segment: Segment) -> bytes:
    """The bytes of a segment. Raises IndexDamaged."""
    return b"".join(segment.parts())


def unpack(raw: bytes) -> Segment:
    """The segment of these bytes, all in memory and verified. Raises IndexDamaged, EOFError."""
    segment, _ = read_segment(lambda position, length: raw[position : position + length], 0, len(raw), "a segment sent")
    segment.verify()
    position = segment.lead
    blobs = []
    for length in segment.table.lengths:
        blobs.append(raw[position : position + length])
        position += length
    return segment.changed(blobs=tuple(blobs), read_at=None)


# --- tasks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """What is the same for all ranges of a log. hashed: the numbers of those `auto` indexes known to be of hashes."""

    snapshot: Snapshot
    needs: tuple[Requirement, ...]
    hashed: frozenset[int]


class Task(NamedTuple):
    """A range, and the checksums of its blocks (see ScanSource.checksums): int64, or None."""

    part: Range
    sums: bytes | None


@sends_errors
def scan_shared(job: Job, task: Task) -> Partial:
    """Scan a range of a file that all machines share. Raises CopyDiffers, LogChanged, and as scan_range does."""
    file, first = job.snapshot.open(_ADVICE), task.part.start // job.snapshot.block_size
    return _scan(
        job, task, FileRange.of_file(job.snapshot, [(0, task.part.stop)], file, _sums(task), first_sum=first)
    )  # fmt: skip


@sends_errors
def scan_blocks(job: Job, tasks: Sequence[Task], begin: int, blocks: Iterable[bytes]) -> Iterator[Partial]:
    """Scan ranges whose blocks, from the byte `begin` of the log on, somebody else has read."""
    data = bytearray().join(blocks)
    for task in tasks:
        first = task.part.start - task.part.start % job.snapshot.block_size
        view = memoryview(data)[first - begin :]
        yield _scan(job, task, FileRange.of_bytes(job.snapshot, task.part.stop, view, first, _sums(task)))


def _scan(job: Job, task: Task, source: ScanSource) -> Partial:
    made = scan_range(source, task.part, job.needs, job.hashed)
    settle()
    ends = (made.ends - task.part.start).astype("<u4").tobytes()
    segments = {number: tuple(map(pack, each)) for number, each in made.segments.items()}
    hashes = {number: pack(each) for number, each in made.hashes.items()}
    return Partial(made.head, task.part.start, ends, segments, hashes)


def _sums(task: Task) -> NDArray[np.int64] | None:
    return None if task.sums is None else np.frombuffer(task.sums, np.int64)


_settled = False


def settle() -> None:
    """Tell the garbage collector that what was imported stays. To be called by a task when all of it is imported.

    Spark's workers collect garbage between any two tasks, and walk through all objects that there are: with numba
    loaded that is 40 ms each time, more than a task of some MiB takes. What is
    garbage by then is collected first, so nothing is kept that would not be kept anyway.
    """
    global _settled
    if not _settled:
        _settled = True
        gc.collect()
        gc.freeze()


# --- the scan --------------------------------------------------------------------------------------------------------


Keep: TypeAlias = Callable[["Index", Segment], Segment]


class _RangeTarget(BuildTarget):
    """Takes what a range holds from its first byte on. What is its last record, is none of the log's.

    keep: puts away each segment that is made, and gives it as it is then
    """

    def __init__(self, index: Index, builder: Builder, begin: Begin, keep: Keep) -> None:
        self.made: list[Segment] = []
        self.hashes: list[Segment] = []
        super().__init__(index, builder, lambda segment: self.made.append(keep(self.index, segment)))
        self._keep = keep
        self._from = self.begin_seq, self.begin_offset = begin

    def make(self, last: bool) -> Segment:
        segment = super().make(last=False)
        builder = self.builder
        may_be_hashed = segment.kind == BITMAPS and self.index.spec.form == "auto"
        if may_be_hashed and len(dictionary_of(segment)) > max(FEW_VALUES, segment.count // RECORDS_A_VALUE):
            # So many values here: probably too many in all, and hashing them one by one later would take long.
            assert isinstance(builder, ValuesBuilder)
            hashes = builder.make_hashes(Pieces((seq, piece) for seq, piece, _ in self._fed), segment.run)
            self.hashes.append(self._keep(self.index, hashes))
        return segment


class _Ends(_RangeTarget):
    """Notes where the records end, and makes no index."""

    def __init__(self, index: Index, begin: Begin) -> None:
        super().__init__(index, OffsetsBuilder(), begin, lambda index, segment: segment)
        self.ends: list[NDArray[np.int64]] = []

    def feed(self, piece: object, seq: int, ends: NDArray[np.int64]) -> None:
        self.ends.append(ends)


class Scanned(NamedTuple):
    """What a scan made of a range: the segments of each target, and where its records end (int64)."""

    head: RangeHead
    segments: dict[int, list[Segment]]
    hashes: dict[int, Segment]  # of hashes, for some of those that are of bitmaps and may not stay so
    ends: NDArray[np.int64]


def scan_range(
    source: ScanSource,
    part: Range,
    needs: Sequence[Requirement],
    hashed: Collection[int],
    *,
    first_seq: int = 0,
    until: int = sys.maxsize,
    keep: Keep = lambda index, segment: segment,
) -> Scanned:
    """Scan one range.

    needs:  what is built, by number
    hashed: the numbers of those `auto` indexes that are known to be of hashes already
    first_seq: of its first record
    until:  see Scan
    keep:   see _RangeTarget

    Raises what the user's functions raise, LogError, OSError.
    """
    memory = Catalog(None, LogName(bytes(16), 0))
    shop = IndexBuilderFactory(source)
    made = shop.targets([needs[number] for number in part.targets], memory, lambda index, segment: None)
    begin = Begin(first_seq, part.start)
    targets = {
        number: _RangeTarget(target.index, target.builder, begin, keep)
        for number, target in zip(part.targets, made, strict=True)
    }
    for number in targets.keys() & hashed:
        builder = targets[number].builder
        assert isinstance(builder, ValuesBuilder)
        builder.hashed = True
    ends = _Ends(made[0].index, begin)
    scan = Scan(source, [*targets.values(), ends], shop.paths, threads=1, until=until)
    scan.run()
    every = np.concatenate([np.empty(0, np.int64), *ends.ends])
    segments = {number: target.made for number, target in targets.items() if target.made}
    kinds = {number: max(each.kind for each in made) for number, made in segments.items()}  # once hashes, hashes on
    head = RangeHead(
        number=part.number,
        records=len(every),
        end=int(every[-1]) if len(every) else part.start,
        malformed=scan.malformed,
        faults=tuple(scan.faults),
        corrupt={block: str(fault) for block, fault in scan.corrupt.items()},
        kinds=kinds,
        keys={number: _keys_of(made) for number, made in segments.items() if kinds[number] == BITMAPS},
        bytes=sum(each.size for made in segments.values() for each in made),
    )
    hashes = {
        number: target.hashes[0] for number, target in targets.items() if len(target.hashes) == len(target.made) == 1
    }
    return Scanned(head, segments, hashes, every)


def _keys_of(segments: Sequence[Segment]) -> Keys:
    """Those of all segments together, of which a range has two where it crosses the end of a span."""
    return counted(distinct_keys(segments))
