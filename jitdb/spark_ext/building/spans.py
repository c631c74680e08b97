"""What workers do where all machines share the log and its indexes: count, index whole spans, join what is less.

What they make are files of one segment each, which lie where readers look for them (indexes/files/span_file.py). The
driver gets entries, some kilobytes each, and nothing counts before it has put them into an index file. Free of Spark.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from jitdb.indexes.files.file import Head, LogName
from jitdb.indexes.files.segment_reader import entry, in_memory, segment_of
from jitdb.indexes.files.span_file import write_span
from jitdb.indexes.kinds.bitmaps import distinct_keys
from jitdb.indexes.kinds.content import merged
from jitdb.indexes.kinds.prefixes import hashes_of_bitmaps
from jitdb.indexes.segment import BITMAPS, Segment
from jitdb.indexes.spec import IndexSpec
from jitdb.log.blocks.block_format import round_up
from jitdb.log.io import osfile
from jitdb.log.io.filenames import SPANS
from jitdb.spark_ext.building.cutting import Count, Edge, Piece
from jitdb.spark_ext.building.joining import are_unbounded
from jitdb.spark_ext.building.scanning import Job, Range, RangeHead, scan_range, settle
from jitdb.spark_ext.counting import records_from, records_in
from jitdb.spark_ext.errors import CopyDiffers, LogChanged, sends_errors
from jitdb.spark_ext.file_range import SHARED, FileRange

if TYPE_CHECKING:
    from jitdb.indexes.files.index import Index
    from jitdb.log.source import ScanSource

_FOLDER: Final = "the folder of the indexes must lie on storage that all machines share, as the log does"
_LOOKS: Final = 20  # at whether a file that another machine wrote has become visible here
_PAUSE: Final = 0.25  # seconds between them

#: Of a field with more values than any log's verdict allows.
Values = set[bytes] | None


@dataclass(frozen=True, slots=True)
class Shared:
    """What all tasks of a prebuild must know.

    origin: where the least of the indexes ends: a record begins there
    folder: of the index files, as all machines see it
    """

    job: Job
    name: LogName
    origin: int
    folder: str

    def path_of(self, number: int) -> Path:
        """Of the file of an index."""
        return Path(self.folder) / self.job.needs[number].spec.file_name()

    def put(self, number: int, segment: Segment) -> Segment:
        """Write a segment of an index into a file of its own. Raises CopyDiffers."""
        spec = self.job.needs[number].spec
        try:
            return write_span(osfile.fs, self.path_of(number), Head(self.name, spec), segment)
        except OSError as error:
            where = Path(self.folder) / SPANS
            raise CopyDiffers(
                f"{os.uname().nodename} cannot write there ({error.strerror})", path=where, remedy=_FOLDER
            ) from error

    def get(self, number: int, raw: bytes) -> Segment:
        """The segment of an entry, as another machine wrote it. Raises CopyDiffers where it is not there."""
        segment = segment_of(raw, osfile.fs, self.path_of(number))
        path: Path = getattr(segment.read_at, "path")  # noqa: B009
        for _ in range(_LOOKS):
            if osfile.fs.exists(path):
                return segment
            time.sleep(_PAUSE)  # a network file system may remember that it was not there
        raise CopyDiffers(f"{os.uname().nodename} does not see what another machine wrote", path=path, remedy=_FOLDER)


class Indexed(NamedTuple):
    """What a task made of its piece: entries of each target, some of hashes for bitmaps that may not stay such."""

    head: RangeHead
    start: int
    stop: int
    entries: dict[int, tuple[bytes, ...]]
    hashes: dict[int, bytes]


class Joint(NamedTuple):
    """Entries of one index and span that become one. is_hashed: of hashes, whatever they are of."""

    number: int
    is_hashed: bool
    entries: tuple[bytes, ...]


# --- counting --------------------------------------------------------------------------------------------------------


@sends_errors
def count(shared: Shared, part: Count) -> list[int]:
    """How many records begin in [places[0], stop) before each of the places, and before `stop`."""
    source, _ = _opened(shared, part.stop)
    begin = _boundary(source, part.places[0])
    wanted = np.array([*part.places, part.stop], np.int64)
    found = records_from(source, shared.origin, begin, part.stop, wanted)
    numbers: list[int] = (found - found[0]).tolist()
    return numbers


def _boundary(source: ScanSource, place: int) -> int:
    """From where on a chunk is to be read that has the records from this byte on: a line belongs to its newline."""
    before = max(place - 1, 0)
    return before - before % source.block_size


def _opened(shared: Shared, stop: int) -> tuple[FileRange, osfile.Descriptor]:
    snapshot = shared.job.snapshot
    file = snapshot.open(f"{SHARED}, or be a Hadoop URI")
    return FileRange.of_file(snapshot, [(0, snapshot.end)], file, None), file


def _place(source: ScanSource, origin: int, edge: Edge) -> int:
    """Where an edge is. Raises LogChanged."""
    left = edge.skip
    if not left:
        return edge.place
    for offsets, ends in records_in(source, origin, _boundary(source, edge.place), edge.stop):
        low = int(offsets.searchsorted(edge.place))
        if left <= len(offsets) - low:
            return int(ends[low + left - 1])
        left -= len(offsets) - low
    raise _recounted(source)


def _recounted(source: ScanSource) -> LogChanged:
    return LogChanged(
        "it has other records than were counted a moment ago", path=source.path, remedy="start the job again"
    )


def _whole(source: ScanSource, origin: int, until: int) -> int:
    """Where what must be read for the records before `until` ends: their last block counts as a whole."""
    end, size = source.durable_end, source.block_size
    at = min(round_up(until, size), end)
    if source.framing.is_blocked:
        return at
    while at < end:  # to where a line begins
        stop = min(at + size, end)
        for offsets, _ in records_in(source, origin, _boundary(source, at), stop):
            low = int(offsets.searchsorted(at))
            if low < len(offsets):
                return int(offsets[low])
        at = stop
    return end


# --- indexing --------------------------------------------------------------------------------------------------------


@sends_errors
def index(shared: Shared, piece: Piece) -> Indexed:
    """Index a piece of a log. Raises CopyDiffers, LogChanged, and as scan_range does."""
    job, snapshot = shared.job, shared.job.snapshot
    whole, file = _opened(shared, snapshot.end)
    start, until = (_place(whole, shared.origin, edge) for edge in (piece.begin, piece.end))
    stop = _whole(whole, shared.origin, until)
    sums = None if piece.sums is None else np.frombuffer(piece.sums, np.int64)
    first = piece.begin.place // snapshot.block_size
    source = FileRange.of_file(snapshot, [(0, stop)], file, sums, first_sum=first)
    part = Range(piece.number, start, stop, piece.targets)
    numbers = {job.needs[number].spec: number for number in piece.targets}

    def keep(index: Index, segment: Segment) -> Segment:
        return shared.put(numbers[index.spec], segment)

    made = scan_range(source, part, job.needs, job.hashed, first_seq=piece.first_seq, until=until, keep=keep)
    if piece.records not in (-1, made.head.records):
        raise _recounted(source)
    settle()
    entries = {number: tuple(map(_entry, segments)) for number, segments in made.segments.items()}
    hashes = {number: _entry(segment) for number, segment in made.hashes.items()}
    return Indexed(made.head, start, until, entries, hashes)


def _entry(segment: Segment) -> bytes:
    return b"".join(entry(segment))


# --- joining ---------------------------------------------------------------------------------------------------------


@sends_errors
def values(shared: Shared, asked: Sequence[tuple[int, bytes]]) -> dict[int, Values]:
    """The values in these entries, each with the number of its index; None for too many of them."""
    found: dict[int, Values] = {}
    for number, raw in asked:
        known = found.setdefault(number, set())
        if known is not None:
            segment = segment_of(raw, osfile.fs, shared.path_of(number))
            both = known | distinct_keys([segment])
            found[number] = None if are_unbounded(both) else both
    return found


@sends_errors
def join(shared: Shared, joint: Joint) -> bytes:
    """The one entry of a joint, whose segment is in a file of its own."""
    return _entry(shared.put(joint.number, joined(shared, joint)))


def joined(shared: Shared, joint: Joint) -> Segment:
    """The one segment of a joint. Raises IndexDamaged, CopyDiffers."""
    spec = shared.job.needs[joint.number].spec
    segments = [shared.get(joint.number, raw) for raw in joint.entries]
    return in_memory(merged(sorted(_alike(segments, spec, joint.is_hashed), key=lambda segment: segment.first_seq)))


def _alike(segments: Iterable[Segment], spec: IndexSpec, is_hashed: bool) -> list[Segment]:
    turn: Callable[[Segment], bool] = lambda segment: is_hashed and segment.kind == BITMAPS  # noqa: E731
    return [hashes_of_bitmaps(each, spec.is_owned) if turn(each) else each for each in segments]
