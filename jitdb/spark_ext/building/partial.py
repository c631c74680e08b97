"""What a scan of one range gives: segments whose seqs count from the range's first record. The local engine's scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jitdb.common.values import ARRAY, MAP
from jitdb.engine.building.scan import Scan
from jitdb.engine.building.targets import BuildTarget, IndexBuilderFactory
from jitdb.engine.catalog.catalog import Catalog
from jitdb.engine.plan import Requirement
from jitdb.indexes.building.builders import OffsetsBuilder
from jitdb.indexes.building.field_builder import ValuesBuilder
from jitdb.indexes.files.file import LogName
from jitdb.indexes.kinds.bitmaps import FEW_VALUES, RECORDS_A_VALUE, dictionary_of
from jitdb.indexes.segment import BITMAPS, Segment
from jitdb.spark_ext.building.ranges import Range
from jitdb.spark_ext.building.wire import pack
from jitdb.spark_ext.range_source import RangeSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.building.builders import Builder
    from jitdb.indexes.files.index import Index


class Keys(NamedTuple):
    """How many values the bitmaps of an index are of, so that its verdict can often be told without looking at them."""

    distinct: int
    containers: int
    bytes: int


class Head(NamedTuple):
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
    """A range's segments. They count from 0, so that they are cut and moved before they are merged (Placing.of)."""

    head: Head
    start: int
    ends: bytes  # of each record, where it ends, less `start`: u32
    segments: dict[int, tuple[bytes, ...]]  # of each target, as wire.pack makes them
    hashes: dict[int, bytes]  # of hashes, for some of those that are of bitmaps and may not stay so

    def end_of(self, seq: int) -> int:
        """Where a record ends in the log, by its seq in the range."""
        return self.start + int.from_bytes(self.ends[4 * seq : 4 * seq + 4], "little")


class _RangeTarget(BuildTarget):
    """Takes what a range holds from its first byte on. What is its last record, is none of the log's."""

    def __init__(self, index: Index, builder: Builder, start: int) -> None:
        self.made: list[Segment] = []
        self.hashes: list[Segment] = []
        super().__init__(index, builder, self.made.append)
        self.begin_offset = start
        self._from = (0, start)

    def make(self, last: bool) -> Segment:
        segment = super().make(last=False)
        builder = self.builder
        may_be_hashed = segment.kind == BITMAPS and self.index.spec.form == "auto"
        if may_be_hashed and len(dictionary_of(segment)) > max(FEW_VALUES, segment.count // RECORDS_A_VALUE):
            # So many values here: probably too many in all, and hashing them one by one later would take long.
            assert isinstance(builder, ValuesBuilder)
            self.hashes.append(builder.make_hashes([(seq, piece) for seq, piece, _ in self._fed], segment.run))
        return segment


class _Ends(_RangeTarget):
    """Notes where the records end, and makes no index."""

    def __init__(self, index: Index, start: int) -> None:
        super().__init__(index, OffsetsBuilder(), start)
        self.ends: list[NDArray[np.int64]] = []

    def feed(self, piece: object, seq: int, ends: NDArray[np.int64]) -> None:
        self.ends.append(ends)


def scan_range(source: RangeSource, part: Range, needs: Sequence[Requirement], hashed: frozenset[int]) -> Partial:
    """Scan one range.

    needs:  what is built, by number
    hashed: the numbers of those `auto` indexes that are known to be of hashes already

    Raises what the user's functions raise, LogError, OSError.
    """
    memory = Catalog(None, LogName(bytes(16), 0))
    shop = IndexBuilderFactory()
    made = shop.targets([needs[number] for number in part.targets], memory, lambda index, segment: None)
    targets = {
        number: _RangeTarget(target.index, target.builder, part.start)
        for number, target in zip(part.targets, made, strict=True)
    }
    for number in hashed.intersection(targets):
        builder = targets[number].builder
        assert isinstance(builder, ValuesBuilder)
        builder.hashed = True
    ends = _Ends(made[0].index, part.start)
    scan = Scan(source, [*targets.values(), ends], shop.paths, threads=1)
    scan.run()
    return _partial(part, targets, ends.ends, scan)


def _partial(part: Range, targets: dict[int, _RangeTarget], ends: list[NDArray[np.int64]], scan: Scan) -> Partial:
    made = {number: target.made for number, target in targets.items()}
    every = np.concatenate([np.empty(0, np.int64), *ends])
    kinds, keys = {}, {}
    for number, segments in made.items():
        if segments:
            kinds[number] = max(segment.kind for segment in segments)  # hashes once, hashes from then on
            if kinds[number] == BITMAPS:
                keys[number] = _keys_of(segments)
    packed = {number: tuple(map(pack, segments)) for number, segments in made.items() if segments}
    hashes = {
        number: pack(target.hashes[0])
        for number, target in targets.items()
        if len(target.hashes) == len(target.made) == 1
    }
    head = Head(
        number=part.number,
        records=len(every),
        end=int(every[-1]) if len(every) else part.start,
        malformed=scan.malformed,
        faults=tuple(scan.faults),
        corrupt={block: str(fault) for block, fault in scan.corrupt.items()},
        kinds=kinds,
        keys=keys,
        bytes=sum(len(raw) for each in packed.values() for raw in each),
    )
    return Partial(head, part.start, (every - part.start).astype("<u4").tobytes(), packed, hashes)


def _keys_of(segments: Sequence[Segment]) -> Keys:
    """Those of all segments together; a value that several hold counts as many times."""
    count = containers = size = 0
    for segment in segments:
        dictionary = dictionary_of(segment)
        found = [dictionary[number] for number in range(len(dictionary))]
        count += len(found)
        containers += sum(key[0] in (ARRAY, MAP) for key in found)
        size += sum(map(len, found))
    return Keys(count, containers, size)
