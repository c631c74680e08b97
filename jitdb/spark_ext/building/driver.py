"""What the driver does of a prebuild, whoever scans and merges: which indexes are stale, their files, their locks."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.engine.catalog.catalog import Catalog
from jitdb.engine.catalog.log_content import content_of
from jitdb.engine.declared_time import CoreFields
from jitdb.engine.records import MAX_RECORDS, DamageReport, Records
from jitdb.errors import IndexDamaged, LogSuperseded, LogWarning, QueryError
from jitdb.indexes.files.file import Head as FileHead
from jitdb.indexes.files.file import LogName
from jitdb.indexes.kinds.bitmaps import distinct_keys
from jitdb.indexes.segment import BITMAPS
from jitdb.indexes.spec import OFFSETS, IndexSpec, Requirement
from jitdb.log.any_log import AnyLog
from jitdb.log.blocks.checksum import UNKNOWN
from jitdb.log.io import osfile
from jitdb.log.lines.files.compressed_file import MANY
from jitdb.log.lines.line_log import LineLog
from jitdb.spark_ext.building.cutting import Piece
from jitdb.spark_ext.building.joining import (
    Placing,
    are_too_many,
    misfits,
    places,
    span_of,
    surely_bitmaps,
    surely_hashed,
)
from jitdb.spark_ext.building.scanning import Begin, Job, Range, RangeHead, Task, ranges_at
from jitdb.spark_ext.errors import LogChanged, SparkError, without_identity
from jitdb.spark_ext.file_range import Snapshot

if TYPE_CHECKING:
    from jitdb.indexes.files.folder import Held
    from jitdb.indexes.files.index import Index
    from jitdb.indexes.segment import Segment

_LOOKS: Final = 100  # at where a compressed file ends that is written at this very moment
_DECOMPRESSED: Final = (
    1 << 30
)  # bytes of text, for each range of a compressed file, of which all before is decompressed
_PAUSE: Final = 0.1  # seconds between looks whether another process is done with the same indexes


def files_read(needs: Sequence[Requirement], core: CoreFields) -> Callable[[str], bool]:
    """Whether a prebuild of these indexes reads the index file of this name."""
    names = {need.spec.file_name() for need in (*_always(core), *needs)}
    # Of those of deleted records, only the log knows which counts; of those of times, it may.
    return lambda name: name in names or ".deleted-" in name or ".time-" in name


def _always(core: CoreFields) -> list[Requirement]:
    """What is brought up to date whatever is asked for, but for the index of deleted records."""
    return [Requirement(OFFSETS), Requirement(core.column("timestamp"))]


class Again(Exception):
    """Indexes were discarded: there is more to do than was thought. Never leaves this package."""


class Driver:
    """The stale ones of some indexes of a log, locked until it is left: a context manager.

    needs:  the requirements of the stale indexes; the numbers of indexes everywhere else count in this list
    begins: up to where each of them holds the log already
    end:    up to where each will hold it
    """

    def __init__(self, log: AnyLog, folder: Path, needs: Sequence[Requirement], core: CoreFields) -> None:
        if not log.identity_is_stored:
            raise without_identity(log.path, "its index files could not be told from those of another log")
        if isinstance(log, LineLog) and log.compression:
            _settle(log)
        self.log = log
        self.folder = folder
        self.end = log.durable_end
        token = log.foreign_change_token()
        content = content_of(log, folder, token)
        self.name = LogName(log.identity, log.generation, content.name)
        self.catalog = Catalog(folder, self.name, source=log, quiet=content.by_deletion)
        deleted = Records(log, self.catalog).note_changes(token)
        offsets, times = _always(core)
        every = (offsets, Requirement(deleted), times, *needs)
        self._wanted = list({need.spec: need for need in every}.values())
        self._held: Held | None = None
        self._written: dict[IndexSpec, Index] = {}

    def __enter__(self) -> Driver:
        indexes = [self.catalog.get(need.spec) for need in self._wanted]
        while (held := self.catalog.lock(indexes)) is None:
            time.sleep(_PAUSE)
        self._held = held
        try:
            for index in sorted(indexes, key=lambda index: index.spec != OFFSETS):
                self.catalog.catch_up(index)
            self._look()
        except BaseException:
            held.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            self._held.release()

    def _look(self) -> None:
        """See which are stale."""
        self.needs = [need for need in self._wanted if self.catalog.get(need.spec).reached < self.end]
        self.indexes: list[Index] = [self.catalog.get(need.spec) for need in self.needs]
        self.specs = [need.spec for need in self.needs]
        self.begins = [Begin(index.end_seq, index.end_offset) for index in self.indexes]
        self.hashed = {
            number
            for number, index in enumerate(self.indexes)
            if index.spec.form == "auto" and index.kind not in (0, BITMAPS)
        }

    @property
    def attempts(self) -> int:
        """How many scans are enough: each that is not the last one finds an index damaged, which is then made anew."""
        return len(self._wanted) + 1

    @property
    def fresh(self) -> list[Index]:
        """The indexes that were up to date already."""
        return [self.catalog.get(need.spec) for need in self._wanted if need not in self.needs]

    # --- what workers must know --------------------------------------------------------------------------------------

    def job(self) -> Job:
        """What is the same for all ranges."""
        return Job(Snapshot.of(self.log, self.end), tuple(self.needs), frozenset(self.hashed))

    def ranges(self, parts: Sequence[Range]) -> list[Range]:
        """The same ranges, of lines from where one begins to where one ends; some may be gone then."""
        log = self.log
        if not isinstance(log, LineLog):
            return list(parts)
        begins = {begin.offset for begin in self.begins}
        if log.compression:
            parts = ranges_at(range(0, self.end, _DECOMPRESSED), [begin.offset for begin in self.begins], self.end)
        edges = [part.start if part.start in begins else log.next_line(part.start) for part in parts]
        whole = [(*edge, part.targets) for edge, part in zip(pairwise([*edges, self.end]), parts, strict=True)]
        return [Range(number, *each) for number, each in enumerate(each for each in whole if each[0] < each[1])]

    def task(self, part: Range) -> Task:
        """A range, with the checksums of its blocks, where there are any.

        Not those of before another program changed the log: a worker that is sent bytes cannot look at the log again.
        """
        if isinstance(self.log, LineLog):  # nobody wrote any
            return Task(part, None)
        first = part.start // self.log.block_size
        sums = self.log.checksums(first, -(-part.stop // self.log.block_size) - first, settled=True)
        return Task(part, sums.tobytes() if (sums != UNKNOWN).any() else None)

    def with_sums(self, piece: Piece) -> Piece:
        """A piece, with the checksums of its blocks, where there are any."""
        if isinstance(self.log, LineLog):  # nobody wrote any
            return piece
        first = piece.begin.place // self.log.block_size
        sums = self.log.checksums(first, -(-piece.end.stop // self.log.block_size) - first, settled=True)
        return piece._replace(sums=sums.tobytes() if (sums != UNKNOWN).any() else None)

    # --- bitmaps or hashes -------------------------------------------------------------------------------------------

    def undecided(self, heads: Sequence[RangeHead]) -> list[int]:
        """Notes of the `auto` indexes what they are, as far as the heads tell; gives those whose keys must be seen."""
        records = self.records(heads)
        left = []
        for number in range(len(self.specs)):
            if self.specs[number].form != "auto" or number in self.hashed:
                continue
            if surely_hashed(number, heads, records):
                self.hashed.add(number)
            elif not surely_bitmaps(number, heads, self._known(number), records):
                left.append(number)
        return left

    def decide(self, number: int, keys: set[bytes] | None, heads: Sequence[RangeHead]) -> None:
        """The verdict, by all values that the ranges hold; None are more than any limit allows."""
        if keys is None or are_too_many(keys | self._known(number), self.records(heads)):
            self.hashed.add(number)

    def _known(self, number: int) -> set[bytes]:
        return distinct_keys(self.indexes[number].segments)

    def records(self, heads: Sequence[RangeHead]) -> int:
        """How many records the log has. Raises QueryError for more than bitmaps can hold."""
        count = min(self.begins).seq + sum(head.records for head in heads)
        if count > MAX_RECORDS:
            raise QueryError(
                f"more than {MAX_RECORDS:,} records cannot be indexed", path=self.log.path, remedy="split the log"
            )
        return count

    # --- writing -----------------------------------------------------------------------------------------------------

    def check_log(self) -> None:
        """Whether the log is still the one that was scanned. Raises LogChanged."""
        self.log.refresh()
        if (self.log.identity, self.log.generation) != (self.name.identity, self.name.generation):
            raise LogChanged(
                "it was compacted, truncated or replaced while it was scanned", path=self.log.path, remedy="start again"
            )

    def write(self, segments: Iterable[tuple[int, Segment]]) -> None:
        """Append segments to the indexes of these numbers, in order, those of offsets first, and bring the files into
        their one canonical form.

        Raises LogChanged, SparkError; Again when indexes turned out damaged, all of them at once.
        """
        self.check_log()
        broken: set[IndexSpec] = set()
        for number, segment in segments:
            index = self._written[self.specs[number]] = self.indexes[number]
            if index.spec not in broken:
                with self._noting(index, broken):
                    self.catalog.append(index, segment)
                self._check_file(index)
        for index in self._written.values():
            if index.spec not in broken and not self._is_canonical(index):
                with self._noting(index, broken):
                    self._merge(index)
            self._check_file(index)
        for index in self.indexes:
            if index.spec not in broken:
                index.reach(self.end)
        self._again_if(broken)
        self.catalog.tidy(self.indexes)

    @contextmanager
    def _noting(self, index: Index, broken: set[IndexSpec]) -> Iterator[None]:
        """Forget the index if it turns out damaged, and note that."""
        try:
            yield
        except IndexDamaged as damage:
            self.catalog.discard(index, damage)
            broken.add(index.spec)

    def _again_if(self, broken: Collection[IndexSpec]) -> None:
        if broken:
            self._look()
            raise Again

    def remove_spans(self) -> None:
        """Remove the files of spans that do not count."""
        for need in self._wanted:
            index = self.catalog.get(need.spec)
            if index.path is not None:
                index.remove_spans()

    def placing(self, heads: Sequence[RangeHead], parts: Sequence[Range]) -> Placing:
        """Where the ranges' records stand. The damaged blocks that were found are listed in the index of offsets.

        Raises Again for indexes that count other records than there are now, or turned out damaged.
        """
        where = places(heads, min(self.begins))
        corrupt = sorted({block for head in heads for block in head.broken(self.log.block_size)})
        offsets = self.catalog.get(OFFSETS)
        broken: set[IndexSpec] = set()
        for number, reason in misfits(self.begins, {part.start: where[part.number].first_seq for part in parts}):
            index = self.indexes[number]
            self.catalog.discard(index, IndexDamaged(reason, path=index.name))
            broken.add(index.spec)
        if OFFSETS not in broken:
            with self._noting(offsets, broken):
                self.catalog.list_damaged(corrupt, self.log.block_size)
        self._again_if(broken)
        self._written[OFFSETS] = offsets
        return Placing(where, self.specs, self.hashed, corrupt, self.log.block_size)

    def warn_of(self, heads: Sequence[RangeHead]) -> None:
        """Tell of damaged blocks, as the local engine does."""
        corrupt = {block: text for head in heads for block, text in head.corrupt.items()}
        if corrupt:
            text = f"{corrupt[min(corrupt)]}{_more(corrupt)}. Their records are left out of all answers."
            warnings.warn(text, LogWarning, stacklevel=4)
        DamageReport(self.log).broken_at([fault for head in heads for fault in head.faults])

    def _merge(self, index: Index) -> None:
        try:
            index.merge(apart=True)
        except OSError as error:
            raise SparkError(f"cannot be written ({error.strerror})", path=index.path) from error

    def _is_canonical(self, index: Index) -> bool:
        if index.path is None or not index.segments:
            return True
        spans = [span_of(segment) for segment in index.segments]
        size = osfile.fs.stat(index.path).st_size
        return len(set(spans)) == len(spans) and size == index.size_in_file + len(
            FileHead(self.name, index.spec).encode()
        )

    def _check_file(self, index: Index) -> None:
        if index.path is None:
            raise SparkError("index files cannot be written there; the warning before says why", path=self.folder)


def _settle(log: LineLog) -> None:
    """See where the text of a compressed file ends, which it may have claimed. Raises LogError, OSError."""
    buffer = np.empty(MANY, np.uint8)
    for _ in range(_LOOKS):
        try:
            end = log.durable_end
            log.read_blocks(max(0, end - MANY), end, buffer)
            return
        except LogSuperseded:
            log.refresh()
    raise LogChanged("it changes again and again", path=log.path, remedy="start again when that has ended")


def _more(found: Collection[object]) -> str:
    return f" (and {len(found) - 1:,} more blocks)" if len(found) > 1 else ""
