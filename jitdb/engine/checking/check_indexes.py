"""Is what the indexes of a log say true? Their bytes first, then their content against the records.

An index that belongs to another log, or to another generation of this one, is no damage: it is built anew, or carried
over, when it is needed. One that is behind is compared as far as it reaches. What is wrong can be dropped, and built
again in one scan.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path as FilePath
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from pyroaring import BitMap

from jitdb.engine.building.scan import Scan
from jitdb.engine.building.targets import IndexBuilderFactory
from jitdb.engine.catalog.catalog import Catalog
from jitdb.engine.catalog.copies import LastRecords
from jitdb.engine.catalog.log_content import changed_behind
from jitdb.engine.checking.report import DAMAGED, SOUND, VOID, WRONG, IndexCheck, Report, Sample
from jitdb.engine.manager import IndexManager
from jitdb.errors import IndexDamaged, IndexForeign, LogError, QueryError
from jitdb.indexes.files.file import FileReader, Head, LogName, read_head
from jitdb.indexes.files.folder import headless, index_files
from jitdb.indexes.files.index import Index
from jitdb.indexes.files.segment_reader import is_apart, read_segment
from jitdb.indexes.kinds.content import Content, Places, content_type
from jitdb.indexes.kinds.numbers import is_range_true
from jitdb.indexes.kinds.offsets import all_offsets
from jitdb.indexes.kinds.prefixes import hashes_of_bitmaps
from jitdb.indexes.kinds.roaring import bitmap_of, members_of
from jitdb.indexes.kinds.set import records_in_sets
from jitdb.indexes.segment import BITMAPS, NUMBERS, Segment
from jitdb.indexes.spec import OFFSETS, IndexSpec, Requirement, deleted_spec
from jitdb.log.blocks.checksum import UNKNOWN
from jitdb.log.columnar.table_log import TableLog
from jitdb.log.io import osfile
from jitdb.log.lines.line_log import LineLog
from jitdb.log.maintenance.report import Finding, LogReport, RepairAction, RepairReport, counted
from jitdb.log.objects.door import Location
from jitdb.log.source import MaintainedSource, ScanSource
from jitdb.operators.nodes.anywhere import anywhere_of
from jitdb.operators.nodes.text_match import text_match_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.errors import LogCorrupt
    from jitdb.log.codecs import Codec
    from jitdb.log.lines.streaming import Counted
    from jitdb.log.source import LogSource

_DELETED: Final = deleted_spec(b"")

_NAMED: Final = 20  # lines that cannot be read

Progress: TypeAlias = Callable[[int, int], object]


class IndexVerification:
    """The index files of a folder, held against their log."""

    def __init__(
        self, log: LogSource, folder: FilePath | None, given: Iterable[Requirement], sample: Sample, threads: int
    ) -> None:
        self.compared = 0
        self._log = log
        self._fs = osfile.fs
        self._name = LogName(log.identity, log.generation)
        self._given = {need.spec: need for need in given}
        self._sample = sample if log.framing.is_blocked else None  # else no block can be looked at alone
        self._threads = threads
        self._files = index_files(self._fs, folder)
        self._last = LastRecords(log)
        self._loaded: dict[IndexSpec, Index] = {}

    def run(self, progress: Progress) -> list[IndexCheck]:
        """A check for each file. Raises LogError, OSError."""
        checks = [self._bytes(path, head) for path, head in self._files]
        needs = {spec: _need(spec, self._given) for spec in self._loaded}
        wrong = self._wrong([need for need in needs.values() if need is not None], progress)
        return [
            self._content(path, head, check, wrong) for (path, head), check in zip(self._files, checks, strict=True)
        ]

    # --- bytes -----------------------------------------------------------------------------------------------------

    def _bytes(self, path: FilePath, head: Head | None) -> IndexCheck:
        """Whether every CRC of the file holds, and its segments fit together."""
        if head is None:
            return IndexCheck(path.name, "?", DAMAGED, message=headless(self._fs, path))
        form = head.spec.form
        if head.log.identity != self._name.identity or path.name != head.spec.file_name():
            return IndexCheck(path.name, form, VOID, message="of another log, or of this one before it was replaced")
        if head.log.generation != self._name.generation:
            older = head.log.generation < self._name.generation
            said = "is carried over when it is needed" if older else "refresh() first"
            return IndexCheck(path.name, form, VOID, message=f"of generation {head.log.generation}: {said}")
        index = Index(head.spec, head.log, path, self._fs)
        try:
            self._read_all(path, head)
            index.load()
            if index.damage is not None:
                raise index.damage
            for segment in filter(is_apart, index.segments):
                segment.verify()
            self._last.check(index)
        except IndexForeign as error:
            return IndexCheck(path.name, form, WRONG, "bytes", index.end_seq, message=str(error))
        except (IndexDamaged, OSError) as error:
            return IndexCheck(path.name, form, DAMAGED, message=str(error))
        self._loaded[head.spec] = index
        return IndexCheck(path.name, form, SOUND, "bytes", index.end_seq, message=self._behind(index))

    def _read_all(self, path: FilePath, head: Head) -> None:
        """Every segment, those too whose place others have taken."""
        reader = FileReader(self._fs, path)
        size = reader.size
        position = read_head(reader, head, str(path))
        while 0 < position < size:
            try:
                segment, position = read_segment(reader, position, size, str(path))
            except EOFError:
                return  # torn: what it covered is built again
            if not is_apart(segment):  # others that took its place may have had its file removed
                segment.verify()

    def _behind(self, index: Index) -> str:
        behind = self._log.durable_end - index.end_offset
        return f"{behind:,} bytes of the log behind" if behind > 0 and index.spec.form != "deleted" else ""

    # --- content ---------------------------------------------------------------------------------------------------

    def _content(
        self, path: FilePath, head: Head | None, check: IndexCheck, wrong: dict[IndexSpec, tuple[int, str]]
    ) -> IndexCheck:
        if head is None or check.state != SOUND:
            return check
        if head.spec not in wrong:
            said = "its content cannot be checked: pass the operations that it was built for"
            return IndexCheck(path.name, check.form, SOUND, "bytes", check.records, 0, said)
        count, said = wrong[head.spec]
        kind = "content" if self._sample is None else "sample"
        state = WRONG if count or said else SOUND
        return IndexCheck(path.name, check.form, state, kind, check.records, count, said or check.message)

    def _wrong(self, needs: list[Requirement], progress: Progress) -> dict[IndexSpec, tuple[int, str]]:
        """By index: how many records are wrong in it, and what is to be said of them."""
        if not needs or not self._log.durable_end:
            return {need.spec: (0, "") for need in needs}
        source: ScanSource = self._log
        if self._sample is not None:
            source = self._sampled(self._sample)
        fresh = self._build(source, [*needs, Requirement(OFFSETS), Requirement(_DELETED)], progress)
        offsets = all_offsets(fresh.get(OFFSETS).segments)
        dead = records_in_sets(fresh.get(_DELETED).segments)
        self.compared = len(offsets)
        seqs, lost = None, BitMap()
        if isinstance(source, SampledLog):
            offsets = source.real_offsets(offsets)
            seqs, lost = self._seqs(offsets)
        found = {}
        for need in needs:
            index = self._loaded[need.spec]
            new = fresh.get(_DELETED if need.spec.form == "deleted" else need.spec).segments
            if isinstance(source, SampledLog) and need.spec == OFFSETS:
                wrong, said = lost, self._unplaced(source, offsets)
            else:
                try:
                    wrong = wrong_records(need.spec, index.segments, new, dead | lost, seqs)
                    said = self._ends_wrong(index, offsets) if self._sample is None else ""
                    said = said or _ranges_wrong(index)
                except IndexDamaged as damage:
                    wrong, said = BitMap(), str(damage)
            found[need.spec] = (len(wrong), said or _first(wrong, offsets))
        return found

    def _build(self, source: ScanSource, needs: list[Requirement], progress: Progress) -> Catalog:
        catalog = Catalog(None, self._name)
        factory = IndexBuilderFactory(source)
        once = list({need.spec: need for need in needs}.values())
        targets = factory.targets(once, catalog, catalog.append)
        scan = Scan(source, targets, factory.paths, threads=self._threads)
        scan.run(lambda position: progress(position, scan.stop))
        return catalog

    def _ends_wrong(self, index: Index, offsets: NDArray[np.int64]) -> str:
        before = int(offsets.searchsorted(index.end_offset))
        if index.end_seq > len(offsets) or before == index.end_seq:
            return ""
        return f"it has {index.end_seq:,} records up to byte {index.end_offset:,}, where the log has {before:,}"

    # --- a sample --------------------------------------------------------------------------------------------------

    def _sampled(self, sample: float | int) -> SampledLog:
        size = self._log.block_size
        blocks = -(-self._log.durable_end // size)
        known = self._loaded.get(OFFSETS)
        records = known.end_seq if known is not None else self._log.durable_end // 100
        return SampledLog(self._log, choose_blocks(sample, blocks, records, Random()))

    def _seqs(self, offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], BitMap]:
        """The seqs of these records, as the index of offsets has them (or -1), and the numbers of those it lacks."""
        known = all_offsets(self._loaded[OFFSETS].segments) if OFFSETS in self._loaded else np.empty(0, np.int64)
        if not len(known):
            return np.full(len(offsets), -1), BitMap()
        at = known.searchsorted(offsets)
        there = known[np.minimum(at, len(known) - 1)] == offsets
        lacking = np.flatnonzero(~there & (offsets < self._loaded[OFFSETS].end_offset))
        return np.where(there, at, -1), BitMap(lacking.tolist())

    def _unplaced(self, source: SampledLog, offsets: NDArray[np.int64]) -> str:
        """Whether the index of offsets has others in the chosen blocks than there are."""
        index = self._loaded[OFFSETS]
        known = all_offsets(index.segments)
        begins = source.begins()
        inside = known.searchsorted(begins + self._log.block_size) - known.searchsorted(begins)
        there = int((offsets < index.end_offset).sum())
        if int(inside.sum()) == there:
            return ""
        return f"it has {int(inside.sum()):,} records in the chosen blocks, where the log has {there:,}"


def _ranges_wrong(index: Index) -> str:
    wrong = [each for each in index.segments if each.kind == NUMBERS and not is_range_true(each)]
    if not wrong:
        return ""
    return f"its numbers from record {wrong[0].first_seq:,} on are not within the bounds that it gives for them"


def _first(wrong: BitMap, offsets: NDArray[np.int64]) -> str:
    if not wrong:
        return ""
    return f"{len(wrong):,} records are not what it says, the first at offset {int(offsets[wrong.min()]):,}"


def wrong_records(
    spec: IndexSpec, old: Sequence[Segment], new: Sequence[Segment], dead: BitMap, seqs: NDArray[np.int64] | None = None
) -> BitMap:
    """The records, as `new` numbers them, of which the index `old` says something else, as far as it reaches.

    The two may be cut into other segments; one may have bitmaps where the other has hashes.

    new:  built from the compared records alone
    dead: those of them that are not to be looked at
    seqs: of each compared record, ascending, its seq in `old`, or -1 where that lacks it; by default all have the same

    Raises IndexDamaged.
    """
    if not old or not new:
        return BitMap()
    hashed = any(segment.kind != BITMAPS for segment in (*old, *new))
    told, found = (_content(segments, hashed, spec) for segments in (old, new))
    if seqs is None:
        seqs = np.arange(found.count)
    compared = np.flatnonzero((seqs >= 0) & (seqs < told.count))
    left = told.take(Places.chosen(seqs[compared], told.count))
    right = found.take(Places.chosen(compared, found.count))
    wrong = bitmap_of(compared[members_of(left.differing(right))].astype(np.uint32))
    if spec.form == "deleted":  # what was deleted since is no mistake, only what is said to be and is not
        wrong -= records_in_sets(new)
    return wrong - dead


def _content(segments: Sequence[Segment], hashed: bool, spec: IndexSpec) -> Content:
    """What they say together; bitmaps as hashes where the other index has hashes."""
    if hashed:
        segments = [hashes_of_bitmaps(each, spec.is_owned) if each.kind == BITMAPS else each for each in segments]
    kind = content_type(segments[0].kind)
    return kind.concat([kind.of(segment) for segment in segments])


def _need(spec: IndexSpec, given: dict[IndexSpec, Requirement]) -> Requirement | None:
    """What building such an index takes; None where only the next question brings it."""
    if spec.form == "text":
        with suppress(QueryError):  # of a regular expression, where RE2 is not installed
            (text_match_of if spec.paths else anywhere_of)(spec)
            return Requirement(spec)
        return None
    return given.get(spec) if spec.form == "predicate" or spec.index_type is not None else Requirement(spec)


def verify_database(
    log: LogSource,
    folder: FilePath | None,
    given: Iterable[Requirement],
    sample: Sample,
    threads: int,
    progress: Progress,
) -> Report:
    """See JITDB.verify. Logs of a kind that cannot be verified are taken for sound."""
    begin = time.perf_counter()
    if isinstance(log, MaintainedSource | TableLog):
        found = log.verify(progress)
    else:
        found = _held_against_indexes(log, folder)
        if isinstance(log, LineLog) and sample is None:
            lines = log.counted()
            blocks = -(-log.durable_end // log.block_size)
            found = replace(found, records=lines.stats.records, blocks=blocks, notes=(*found.notes, *_left_out(lines)))
    while True:
        name = LogName(log.identity, log.generation)
        check = IndexVerification(log, folder, given, sample, threads)
        indexes = tuple(check.run(progress))
        report = Report(found, indexes, check.compared, sample is not None, time.perf_counter() - begin)
        if report.ok or name == LogName(log.identity, log.generation):
            return report  # else the log was compacted or replaced meanwhile: what seems wrong is looked at again


def _held_against_indexes(log: LogSource, folder: FilePath | None) -> LogReport:
    """What the indexes know of the bytes of a log that others write."""
    if log.framing.is_blocked:
        return LogReport(str(log.path), notes=("this kind of log cannot be verified",))
    place = changed_behind(log, folder)
    if place is None:
        return LogReport(str(log.path), bytes=log.durable_end)
    log.doubt()
    said = "behind this byte it is not what was indexed: it was edited in place"
    found = Finding("block", log.path.name, place, said, "is not needed: the next question builds the indexes anew")
    return LogReport(str(log.path), (found,), bytes=log.durable_end)


def _left_out(lines: Counted) -> list[str]:
    """Which lines are left out of all answers, for they cannot be read."""
    numbers = lines.malformed
    if not numbers:
        return []
    which = ", ".join(f"{number:,}" for number in numbers[:_NAMED]) + ", …" * (len(numbers) > _NAMED)
    first = f" (the first: {lines.reason})" if lines.reason else ""
    return [f"left out of all answers: {counted(len(numbers), 'line')} that cannot be read: {which}{first}"]


def repair_database(
    log: MaintainedSource,
    folder: FilePath | None,
    manager: IndexManager,
    given: Sequence[Requirement],
    threads: int,
    progress: Progress,
) -> RepairReport:
    """See JITDB.repair. Indexes that cannot be used are dropped, and built again in one scan."""
    done = log.repair(progress)
    manager.follow(None)
    checks = IndexVerification(log, folder, given, None, threads).run(progress)
    bad = [check for check in checks if check.state != SOUND]
    if not bad:
        return done
    names = {check.file for check in bad}
    heads = [head for path, head in index_files(osfile.fs, folder) if head is not None and path.name in names]
    specs = [head.spec for head in heads if head.spec.form != "deleted"]
    dropped, kept = [], []
    for check in bad:
        try:
            manager.forget_files([check.file])
            dropped.append(
                RepairAction(f"index {check.file} ({check.state}): dropped, and built again when it is needed")
            )
        except LogError as error:
            kept.append(f"index {check.file} ({check.state}) stays: {error}")
    needs = {need.spec: need for need in given}
    manager.prepare([need for spec in specs if (need := _need(spec, needs)) is not None], None)
    return replace(done, actions=(*done.actions, *dropped), notes=(*done.notes, *kept))


# --- a sample of the blocks ------------------------------------------------------------------------------------------


class SampledLog(ScanSource):
    """The blocks with these numbers (ascending), one behind the other."""

    def __init__(self, log: ScanSource, blocks: list[int]) -> None:
        self._log = log
        self._blocks = np.array(blocks, np.int64)
        self._block_size = size = log.block_size
        end = log.durable_end
        last = (end - 1) // size
        whole = len(blocks) * size
        # The log's last block, if it is among them, is the last one here too, and ends where the log does.
        self._end = whole - (last + 1) * size + end if blocks and blocks[-1] == last else whole

    @property
    def path(self) -> Location:
        return self._log.path

    @property
    def codec(self) -> Codec:
        return self._log.codec

    @property
    def block_size(self) -> int:
        return self._block_size

    @property
    def durable_end(self) -> int:
        return self._end

    def read_blocks(self, start: int, stop: int, buffer: memoryview | NDArray[np.uint8]) -> int:
        view = (buffer if isinstance(buffer, memoryview) else buffer.data).cast("B")
        done, stop = 0, min(stop, self._end)
        for block in self._blocks[start // self.block_size : -(-stop // self.block_size)].tolist():
            begin = block * self.block_size
            room = view[done : min(done + self._block_size, stop - start)]
            done += self._log.read_blocks(begin, begin + len(room), room)
        return done

    def checksums(self, first: int, count: int) -> NDArray[np.int64]:
        chosen = self._blocks[first : first + count].tolist()
        behind = np.full(count - len(chosen), UNKNOWN, np.int64)
        return np.concatenate([*(self._log.checksums(block, 1) for block in chosen), behind])

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        """As ScanSource.second_look; the fault names the block in the log itself."""
        return self._log.second_look(int(self._blocks[block]))

    def real_offsets(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._blocks[offsets // self.block_size] * self.block_size + offsets % self.block_size

    def begins(self) -> NDArray[np.int64]:
        return self._blocks * self.block_size


def choose_blocks(sample: float | int, blocks: int, records: int, rng: Random) -> list[int]:
    """Numbers of blocks, by chance: a part of all (a float up to 1), or as many as hold about so many records.

    >>> choose_blocks(1.0, 3, 100, Random(1)), len(choose_blocks(10, 1000, 5000, Random(1)))
    ([0, 1, 2], 2)
    """
    share = sample if isinstance(sample, float) else sample / max(records, 1)
    return sorted(rng.sample(range(blocks), min(blocks, max(1, int(np.ceil(share * blocks))))))
