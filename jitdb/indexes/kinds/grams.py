"""Which texts of four bytes (*grams*) stand in which part of the log: a filter for texts that are looked for anywhere.
Segment kind GRAMS (docs/format-index.md).

A *page* is 64 KiB of the log, or a block where records do not cross blocks and these are larger; the records that begin
in it belong to it. It has ROWS bits, each of which stands for the grams of one hash. A text is not in a page that lacks
the bit of one of its grams. Bits lie by rows: all pages' bits of one hash, one behind the other, so a question reads a
few rows, not all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.indexes.kinds.builder import Builder, LocatedBatch, Piece, Pieces
from jitdb.indexes.kinds.content import Content, Places, shifts
from jitdb.indexes.kinds.kernels.grams import ESCAPED_SLASH, FOLDED, ROWS, SIZE, note_pages, row_of
from jitdb.indexes.kinds.roaring import bitmap_of
from jitdb.indexes.segment import GRAMS, SPAN, Run, Segment, make_segment

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.log.source import ScanSource

PAGE: Final = 1 << 16  # bytes of the log, at least
MOVED: Final = -1  # in place of a page's number: its records lie elsewhere since the log was compacted

_TOGETHER: Final = 64  # rows in a blob. On disk: never change
_BYTES: Final = ROWS // 8
_META: Final = struct.Struct("<I")  # how many pages
_EMPTY, _FULL, _MIXED = range(3)  # what a row has: no bit, all bits, or its bits follow


def page_size(log: ScanSource) -> int:
    """Bytes of a page of the log."""
    block = log.block_size if log.framing.is_blocked else 1
    return -(-PAGE // block) * block


class Rows(NamedTuple):
    """Rows that tell whether a page may hold some texts. It may if it has

    plain:   all of these,
    slashed: and all of these, which are of grams with a slash, or ESCAPED_SLASH: JSON may write `\\/` for a slash;
    odd:     or else one of these: then the texts may stand there in other bytes
    """

    plain: list[int]
    slashed: list[int]
    odd: list[int]

    @classmethod
    def of(cls, texts: Iterable[bytes], odd: Sequence[int] = ()) -> Rows:
        """
        >>> [len(rows) for rows in Rows.of([b"9f3a/77"])]
        [1, 3, 0]
        """
        found: tuple[set[int], set[int]] = set(), set()
        for text in texts:
            folded = FOLDED[np.frombuffer(text, np.uint8)]
            for at in range(len(folded) - SIZE + 1):
                gram = folded[at : at + SIZE].tobytes()
                if 0 not in gram:
                    word = np.uint64(int.from_bytes(gram, "big"))
                    found[b"/" in gram].add(int(row_of(word)))  # type: ignore[no-untyped-call]
        return cls(sorted(found[False]), sorted(found[True]), list(odd))


def load_pages(segment: Segment) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The first record of each page, as a number in the span; and the page's number. Raises IndexDamaged."""
    return np.frombuffer(segment.blob(0), "<u4"), np.frombuffer(segment.blob(1), "<i8")


def load_row(segment: Segment, row: int) -> NDArray[np.uint8]:
    """The bits of a row, a bit a page, the lowest first. Raises IndexDamaged."""
    (count,) = _META.unpack(segment.meta)
    size = -(-count // 8)
    blob = np.frombuffer(segment.blob(2 + row // _TOGETHER), np.uint8)
    states, row = blob[:_TOGETHER], row % _TOGETHER
    if states[row] != _MIXED:
        return np.full(size, 255 if states[row] == _FULL else 0, np.uint8)
    begin = _TOGETHER + size * int(np.count_nonzero(states[:row] == _MIXED))
    if begin + size > len(blob):
        raise segment.damage("a row of grams is cut")
    return blob[begin : begin + size]


class Grams(Content):
    """The pages of some records, and their bits.

    firsts:  uint32, the number of the first record of each page; those before the first page's may hold any text
    numbers: int64, the pages' own, or MOVED
    bits:    uint8 [pages, ROWS / 8]
    """

    def __init__(
        self, first: int, count: int, firsts: NDArray[np.uint32], numbers: NDArray[np.int64], bits: NDArray[np.uint8]
    ) -> None:
        self.first, self.count = first, count
        self.firsts, self.numbers, self.bits = firsts, numbers, bits

    @staticmethod
    def fits(segment: Segment) -> bool:
        if len(segment.meta) != _META.size or len(segment.table) != 2 + ROWS // _TOGETHER:
            return False
        (count,) = _META.unpack(segment.meta)
        lengths = segment.table.lengths
        most = _TOGETHER * (1 + -(-count // 8))
        return [*lengths[:2]] == [4 * count, 8 * count] and all(_TOGETHER <= each <= most for each in lengths[2:])

    @staticmethod
    def is_inside(segment: Segment, number: int, blob: bytes) -> bool:
        if number:
            return True
        firsts = np.frombuffer(blob, "<u4").astype(np.int64) - segment.first_in_span
        return not len(firsts) or bool(firsts[0] >= 0 and firsts[-1] < segment.count and (np.diff(firsts) > 0).all())

    @classmethod
    def of(cls, segment: Segment) -> Grams:
        firsts, numbers = load_pages(segment)
        rows = np.stack([load_row(segment, row) for row in range(ROWS)])
        count = len(firsts)
        bits = np.empty((count, _BYTES), np.uint8)
        for begin in range(0, ROWS, _TOGETHER):
            some = np.unpackbits(rows[begin : begin + _TOGETHER], axis=1, count=count, bitorder="little")
            bits[:, begin // 8 : (begin + _TOGETHER) // 8] = np.packbits(some.T, axis=1, bitorder="little")
        return cls(segment.first_in_span, segment.count, firsts, numbers, bits)

    def take(self, places: Places) -> Grams:
        """The pages of which a record is left, with all of their bits."""
        every = places.numbers(np.arange(self.first, self.first + self.count, dtype=np.uint32), self.first)
        left = np.flatnonzero(every >= 0)
        of = np.searchsorted(self.firsts, left + self.first, side="right") - 1
        of, at = np.unique(of, return_index=True)
        firsts, of = every[left[at]][of >= 0].astype(np.uint32), of[of >= 0]
        is_same = bool((every[left] - left == self.first).all())  # cut, and not moved
        numbers = self.numbers[of] if is_same else np.full(len(of), MOVED)
        return Grams(places.first, places.count, firsts, numbers, self.bits[of])

    @classmethod
    def concat(cls, parts: Sequence[Grams]) -> Grams:
        firsts = np.concatenate(
            [part.firsts + np.uint32(by) for part, by in zip(parts, shifts(parts), strict=True)]
        ).astype(np.uint32)
        numbers = np.concatenate([part.numbers for part in parts])
        bits = np.concatenate([part.bits for part in parts])
        return cls(parts[0].first, sum(part.count for part in parts), *_joined(firsts, numbers, bits))

    def segment(self, run: Run) -> Segment:
        blobs: list[Any] = [self.firsts.astype("<u4").tobytes(), self.numbers.astype("<i8").tobytes()]
        for begin in range(0, _BYTES, _TOGETHER // 8):
            some = np.unpackbits(self.bits[:, begin : begin + _TOGETHER // 8], axis=1, bitorder="little")
            states = np.full(_TOGETHER, _MIXED, np.uint8)
            states[some.all(0)] = _FULL
            states[~some.any(0)] = _EMPTY
            mixed = np.packbits(some.T[states == _MIXED], axis=1, bitorder="little")
            blobs.append(states.tobytes() + mixed.tobytes())
        return make_segment(GRAMS, run, _META.pack(len(self.firsts)), blobs)

    def differing(self, other: Grams) -> BitMap:
        """The records of the other's pages whose grams these do not all have: a page may have more than it needs."""
        begins = np.concatenate([other.firsts, [other.first + other.count]]).astype(np.int64)
        wrong: list[int] = []
        for page, (begin, end) in enumerate(pairwise(begins.tolist())):
            low = int(np.searchsorted(self.firsts, begin, side="right")) - 1
            high = int(np.searchsorted(self.firsts, end, side="left"))
            if low < 0:
                continue  # these may hold any text
            known = np.bitwise_or.reduce(self.bits[low:high], axis=0)
            if (other.bits[page] & ~known).any():
                wrong += range(begin, end)
        return bitmap_of(np.array(wrong, np.uint32))


def _joined(
    firsts: NDArray[np.uint32], numbers: NDArray[np.int64], bits: NDArray[np.uint8]
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint8]]:
    """The same with neighbours of one page as one."""
    if not len(numbers):
        return firsts, numbers, bits
    begins = np.flatnonzero(np.append(True, (numbers[1:] != numbers[:-1]) | (numbers[1:] == MOVED)))
    return firsts[begins], numbers[begins], np.bitwise_or.reduceat(bits, begins, axis=0)


class GramsBuilder(Builder):
    """Notes the grams of each page."""

    def __init__(self, log: ScanSource) -> None:
        # A line that begins where a chunk begins belongs to the chunk before (log/lines/line_walkers.py).
        self._page, self._before = page_size(log), int(not log.framing.is_blocked)

    def new_worker(self) -> Any:
        return np.empty(ROWS, np.uint8)

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        records = batch.records
        assert records.offsets is not None
        most = int((records.offsets[-1] - records.offsets[0]) // self._page + 2) if len(records) else 0
        most = min(most, len(records))
        firsts, numbers = np.empty(most, np.int32), np.empty(most, np.int64)
        bits = np.empty((most, _BYTES), np.uint8)
        count = note_pages(
            records.buffer, records.starts, records.lengths, records.states, records.offsets, self._page, self._before,
            worker, firsts, numbers, bits,
        )  # fmt: skip
        return Piece(len(records), (numbers[:count], bits[:count]), firsts[:count], goes_on=True)

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        pages = _joined(pieces.members(), pieces.joined(0), pieces.joined(1))
        return Grams(run[0] % SPAN, run[1], *pages).segment(run)


def pages_with(segment: Segment, rows: Rows) -> NDArray[np.bool_]:
    """The pages that may hold the texts of these rows. Raises IndexDamaged."""
    (count,) = _META.unpack(segment.meta)
    load: Callable[[int], NDArray[np.uint8]] = partial(load_row, segment)
    found = np.full(-(-count // 8), 255, np.uint8)
    for row in rows.plain:
        found = found & load(row)
    if rows.slashed:
        escaped = load(ESCAPED_SLASH)
        for row in rows.slashed:
            found = found & (load(row) | escaped)
    for row in rows.odd:
        found = found | load(row)
    return np.unpackbits(found, count=count, bitorder="little").view(np.bool_)
