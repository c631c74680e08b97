"""What workers are told, and what they do with it. Free of Spark: each way of running them wraps these functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.engine.plan import Requirement
from jitdb.indexes.kinds.bitmaps import MAX_VALUE_BYTES, MAX_VALUES
from jitdb.indexes.spec import IndexSpec
from jitdb.spark_ext.building.joining import Placing, joined, keys_of, span_of
from jitdb.spark_ext.building.partial import Partial, scan_range
from jitdb.spark_ext.building.ranges import Range
from jitdb.spark_ext.building.wire import pack, unpack
from jitdb.spark_ext.building.worker import settle
from jitdb.spark_ext.failures import sends_errors
from jitdb.spark_ext.range_source import SHARED, Blocks, Fingerprint, RangeSource, Shape, SharedFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

PART_BYTES: Final = 64 << 20  # of segments, to be merged by one task: what comes back at once
_ADVICE: Final = f"{SHARED}, or be a Hadoop URI"

Key = tuple[int, int]  # the numbers of an index and of a span


@dataclass(frozen=True, slots=True)
class Job:
    """What is the same for all ranges of a log.

    fingerprint: of the log, to be checked before it is read; None where Spark reads it
    hashed:      the numbers of those `auto` indexes that are known to be of hashes
    """

    shape: Shape
    fingerprint: Fingerprint | None
    needs: tuple[Requirement, ...]
    hashed: frozenset[int]

    @property
    def specs(self) -> list[IndexSpec]:
        return [need.spec for need in self.needs]


class Task(NamedTuple):
    """A range, and the checksums of its blocks (see ScanSource.checksums): int64, or None."""

    part: Range
    sums: bytes | None


@sends_errors
def scan_shared(job: Job, task: Task) -> Partial:
    """Scan a range of a file that all machines share. Raises CopyDiffers, and as scan_range does."""
    assert job.fingerprint is not None
    job.fingerprint.check(job.shape.path, job.shape.block_size, _ADVICE)
    first = task.part.start // job.shape.block_size
    return _scan(job, task, SharedFile(job.shape, task.part.stop, first, _sums(task), _ADVICE))


@sends_errors
def scan_blocks(job: Job, tasks: Sequence[Task], begin: int, blocks: Iterable[bytes]) -> Iterator[Partial]:
    """Scan ranges whose blocks, from the byte `begin` of the log on, somebody else has read."""
    data = bytearray().join(blocks)
    size = job.shape.block_size
    for task in tasks:
        first = task.part.start // size
        skipped = first * size - begin
        yield _scan(job, task, Blocks(job.shape, task.part.stop, first, _sums(task), memoryview(data)[skipped:]))


def _scan(job: Job, task: Task, source: RangeSource) -> Partial:
    partial = scan_range(source, task.part, job.needs, job.hashed)
    settle()
    return partial


def _sums(task: Task) -> NDArray[np.int64] | None:
    return None if task.sums is None else np.frombuffer(task.sums, np.int64)


@sends_errors
def values_in(partial: Partial, numbers: Sequence[int]) -> dict[int, set[bytes] | None]:
    """The values that these indexes hold in a range; None for too many of them."""
    return {number: _bounded(keys_of(number, partial)) for number in numbers}


def values_in_both(
    left: dict[int, set[bytes] | None], right: dict[int, set[bytes] | None]
) -> dict[int, set[bytes] | None]:
    """Those of two sets of ranges."""
    both: dict[int, set[bytes] | None] = {}
    for number in left:
        mine, others = left[number], right[number]
        both[number] = None if mine is None or others is None else _bounded(mine | others)
    return both


def _bounded(keys: set[bytes]) -> set[bytes] | None:
    """The keys, or None once they are more than any log's verdict allows: whoever unites them needs no more room."""
    return None if len(keys) > MAX_VALUES or sum(map(len, keys)) > MAX_VALUE_BYTES else keys


@sends_errors
def place_packed(placing: Placing, partial: Partial) -> Iterator[tuple[Key, bytes]]:
    """The segments of a range at their places in the log, packed, each by its index and span."""
    for number, segment in placing.of(partial):
        yield (number, span_of(segment)), pack(segment)


@sends_errors
def join_packed(raws: Iterable[Any]) -> bytes:
    """The one segment of an index and a span, packed."""
    settle()
    return pack(joined(unpack(bytes(raw)) for raw in raws))
