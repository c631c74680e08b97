"""Where a log is cut, so that a task builds whole spans: first its records are counted, chunk by chunk.

A span ends behind its last record, and nobody knows where that lies before all records before it are counted. Counting
takes a tenth of what indexing does. A task then finds the very byte in the one chunk where it must be.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from jitdb.indexes.segment import SPAN
from jitdb.log.blocks.block_format import round_up
from jitdb.spark_ext.building.scanning import Begin
from jitdb.spark_ext.counting import PIECE

_SMALLEST: Final = 16 << 20  # bytes: a task costs about 10 ms, and indexes this much in some 30
_LARGEST: Final = 1 << 30  # bytes: what a lost worker, or a slow one, costs in time
_COUNTED: Final = 128 << 20  # bytes: what a task counts in 20 ms, at least
_CHUNKS: Final = 1 << 16  # so many numbers come back, whatever the size of the log


def size_for(total: int, cores: int) -> int:
    """How many bytes a task may have when so many are to be indexed: a core's share, and a fourth more, for a span that
    is shared by two has to be joined.
    """
    return min(_LARGEST, max(_SMALLEST, total // cores)) * 5 // 4


class Edge(NamedTuple):
    """Where the `skip`-th of the records that begin in [place, stop) ends; `place` itself where `skip` is 0."""

    place: int
    stop: int
    skip: int = 0


class Piece(NamedTuple):
    """What one task indexes.

    first_seq: of its first record
    records:   how many there are; -1 where nobody counted them
    targets:   the numbers of the indexes that lack them
    sums:      the checksums of the blocks from that of `begin.place` on (see ScanSource.checksums); None: without any
    """

    number: int
    begin: Edge
    end: Edge
    first_seq: int
    records: int
    targets: tuple[int, ...]
    sums: bytes | None = None


class Count(NamedTuple):
    """What one task counts: how many records begin in [places[0], stop), before each of the places, and in all."""

    places: tuple[int, ...]
    stop: int


def chunks(begins: Iterable[int], end: int, block_size: int) -> list[int]:
    """The places up to which records are counted, ascending; the first is the least of `begins`, all of them are in."""
    inside = {begin for begin in begins if begin < end}
    first = min(inside)
    step = round_up(max(PIECE, (end - first) // _CHUNKS), round_up(PIECE, block_size))
    return sorted({*inside, *range(first - first % step + step, end, step)})


def counts(places: Sequence[int], end: int, size: int) -> list[Count]:
    """Who counts what of it; `size` are the bytes that a task should have."""
    size = max(size, _COUNTED)
    groups: dict[int, list[int]] = {}
    for place in places:
        groups.setdefault(place // size, []).append(place)
    edges = [*(group[0] for group in groups.values()), end]
    return [Count(tuple(group), stop) for group, stop in zip(groups.values(), edges[1:], strict=True)]


class Counted(NamedTuple):
    """How many records begin before each of these (ascending) places; the last one is the log's end."""

    places: list[int]
    seqs: list[int]

    def edge(self, seq: int) -> Edge:
        """Where the record with this seq begins, or rather the one before it ends."""
        at = bisect_left(self.seqs, seq)
        if at == 0:
            return Edge(self.places[0], self.places[0])
        return Edge(self.places[at - 1], self.places[at], seq - self.seqs[at - 1])

    def at(self, place: int) -> int:
        """How many begin before one of the places."""
        return self.seqs[bisect_left(self.places, place)]


class Cut(NamedTuple):
    """One of the places at which a log is cut, and how many records begin before it."""

    seq: int
    edge: Edge


def pieces(counted: Counted, begins: Sequence[Begin], size: int) -> list[Piece]:
    """The tasks: a span each, or a part of one where it is larger than `size` bytes.

    begins: where each index ends; the first of the places is the least of them
    """
    first, last, end = counted.seqs[0], counted.seqs[-1], counted.places[-1]
    marks = [Cut(counted.at(place), Edge(place, place)) for place in {begin.offset for begin in begins} if place < end]
    known = {mark.seq for mark in marks}
    spans = [Cut(seq, counted.edge(seq)) for seq in range(first - first % SPAN + SPAN, last, SPAN) if seq not in known]
    cuts = [*_finer(counted, [*sorted([*marks, *spans]), Cut(last, Edge(end, end))], size)]
    return [
        Piece(number, low.edge, high.edge, low.seq, high.seq - low.seq, _lacking(begins, low.edge.place))
        for number, (low, high) in enumerate(pairwise(cuts))
    ]


def _finer(counted: Counted, cuts: Sequence[Cut], size: int) -> Iterator[Cut]:
    """The cuts, and more where too much lies between two."""
    for low, high in pairwise(cuts):
        yield low
        parts = -(-(high.edge.place - low.edge.place) // size)
        inside = {low.seq + (high.seq - low.seq) * part // parts for part in range(1, parts)} - {low.seq, high.seq}
        yield from (Cut(seq, counted.edge(seq)) for seq in sorted(inside))
    yield cuts[-1]


def uncounted(begins: Sequence[Begin], end: int) -> list[Piece]:
    """One task from where the first index ends, or more where others end elsewhere."""
    known = {begin.offset: begin.seq for begin in begins if begin.offset < end}
    places = [*sorted(known), end]
    return [
        Piece(number, Edge(place, place), Edge(stop, stop), known[place], -1, _lacking(begins, place))
        for number, (place, stop) in enumerate(pairwise(places))
    ]


def _lacking(begins: Sequence[Begin], place: int) -> tuple[int, ...]:
    return tuple(number for number, begin in enumerate(begins) if begin.offset <= place)
