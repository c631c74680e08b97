"""A prebuild where all machines share the log and its indexes: workers write, the driver says what counts.

    workers   count the records of the log, chunk by chunk                                  (cutting.py)
    driver    which piece of the log is a span?
    workers   index a span each, or a part of one, and write a file for each index          (spans.py)
    driver    which indexes are of bitmaps, which of hashes?
    workers   join the parts of spans; turn bitmaps into hashes where the others are such   (seldom)
    driver    put entries into the index files, through the same code that the local engine writes them with

Small indexes are taken into the index files, so that there are few files. The driver's bytes do not grow with the log:
what it takes in has a limit, and an entry is of a span.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from jitdb.indexes.segment import BITMAPS, SPAN, Segment
from jitdb.log.io import osfile
from jitdb.log.io.filenames import SPANS
from jitdb.log.lines.line_log import LineLog
from jitdb.spark_ext.building import spans
from jitdb.spark_ext.building.cutting import Counted, Piece, chunks, counts, pieces, size_for, uncounted
from jitdb.spark_ext.building.scanning import Range, RangeHead
from jitdb.spark_ext.building.spans import Indexed, Joint, Shared

if TYPE_CHECKING:
    from jitdb.spark_ext.building.clusters import Cluster
    from jitdb.spark_ext.building.driver import Driver

AT_ONCE: Final = 16 << 20  # bytes of segments that the driver takes into the index files, in some 50 ms


class SharedBuild:
    """One prebuild. range_bytes: of the log, for each task; None: as many as suit the cluster; at_once: see AT_ONCE"""

    def __init__(self, cluster: Cluster, driver: Driver, range_bytes: int | None, at_once: int) -> None:
        self._cluster, self._driver, self._at_once = cluster, driver, at_once
        self._total = driver.end - min(begin.offset for begin in driver.begins)
        self._size = range_bytes or size_for(self._total, cluster.cores)
        folder = driver.folder.absolute()
        osfile.fs.make_folders(folder / SPANS)
        self._shared = Shared(driver.job(), driver.name, min(driver.begins).offset, str(folder))

    def scan(self) -> tuple[list[RangeHead], list[Range]]:
        """Have all indexed; what there is to know of each piece, and the bytes that it has."""
        tasks = [self._driver.with_sums(piece) for piece in self._pieces()]
        self._made: list[Indexed] = self._cluster.run("indexing", partial(spans.index, self._shared), tasks)
        parts = [
            Range(piece.number, made.start, made.stop, piece.targets)
            for piece, made in zip(tasks, self._made, strict=True)
        ]
        return [made.head for made in self._made], parts

    def _pieces(self) -> list[Piece]:
        driver = self._driver
        is_compressed = isinstance(driver.log, LineLog) and bool(driver.log.compression)
        if is_compressed or self._total <= self._size:  # what is decompressed in order is one task's
            return uncounted(driver.begins, driver.end)
        places = chunks((begin.offset for begin in driver.begins), driver.end, driver.log.block_size)
        asked = counts(places, driver.end, self._total // self._cluster.cores)
        seqs = [min(driver.begins).seq]
        for found in self._cluster.run("counting the records of", partial(spans.count, self._shared), asked):
            seqs += [seqs[-1] + number for number in found[1:]]
        return pieces(Counted([*places, driver.end], seqs), driver.begins, self._size)

    def values(self, numbers: Sequence[int]) -> dict[int, set[bytes] | None]:
        """All values that the bitmaps of these indexes are of; None are too many."""
        every = [(number, raw) for made in self._made for number in numbers for raw in made.entries.get(number, ())]
        groups = [every[at :: self._cluster.cores] for at in range(min(self._cluster.cores, len(every)))]
        united: dict[int, set[bytes] | None] = {number: set() for number in numbers}
        for found in self._cluster.run("counting values of", partial(spans.values, self._shared), groups):
            for number, keys in found.items():
                known = united[number]
                united[number] = None if known is None or keys is None else known | keys
        return united

    def segments(self) -> Iterator[tuple[int, Segment]]:
        """The segments of all indexes, one a span, those of one index in order."""
        joints = self._joints()
        if sum(made.head.bytes for made in self._made) <= self._at_once:
            for joint in joints:
                yield joint.number, spans.joined(self._shared, joint)
            return
        asked = [joint for joint in joints if joint.is_hashed or len(joint.entries) > 1]
        join = partial(spans.join, self._shared)
        made = dict(zip(map(id, asked), self._cluster.run("joining the indexes of", join, asked), strict=True))
        for joint in joints:
            yield joint.number, self._shared.get(joint.number, made.get(id(joint), joint.entries[0]))

    def _joints(self) -> list[Joint]:
        """What becomes of all entries, by index and span."""
        hashed = self._driver.hashed
        groups: dict[tuple[int, int], list[bytes]] = {}
        turned: set[tuple[int, int]] = set()
        for made in self._made:
            for number, raws in made.entries.items():
                if number in hashed and number in made.hashes:
                    raws = (made.hashes[number],)
                for raw in raws:
                    segment = self._shared.get(number, raw)
                    key = (number, segment.first_seq // SPAN)
                    groups.setdefault(key, []).append(raw)
                    if number in hashed and segment.kind == BITMAPS:
                        turned.add(key)
        return [Joint(key[0], key in turned, tuple(groups[key])) for key in sorted(groups)]

    def close(self) -> None:
        """Nothing is left behind that does not count."""
        self._driver.remove_spans()
        self._cluster.close()
