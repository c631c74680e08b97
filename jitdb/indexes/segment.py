"""A segment: one index over one run of records, immutable. docs/format-index.md explains every byte.

A reader fetches and checks only the blobs that it needs. Nothing here imports numpy, so that a process that asks once
starts sooner.
"""

from __future__ import annotations

import struct
import weakref
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from pyroaring import BitMap

from jitdb.common import memory
from jitdb.common.forking import fork_safe
from jitdb.common.immutable import Immutable
from jitdb.common.zlib import crc32
from jitdb.errors import IndexDamaged

if TYPE_CHECKING:
    from jitdb.indexes.spec import Form

SPAN: Final = 1 << 20  # records; no segment crosses a multiple of it. On disk: never change.
ZONE: Final = 1 << 12  # records of a column whose extremes are known together. On disk: never change.

MAGIC: Final = b"JSEG"
APART: Final = b"JREF"  # in its place: the blobs lie in a file of their own (files/span_file.py)
HEAD: Final = struct.Struct("<4sBBHQIIQQIIQI")
# magic 4, kind 1, version 1, flags 2, first_seq 8, count 4, CRC of the last record 4, first_offset 8, end_offset 8,
# blobs 4, meta bytes 4, body bytes 8, CRC of meta and table 4
HEAD_SIZE: Final = HEAD.size + 4  # and the CRC of the head itself
NOTE: Final = struct.Struct("<QI")  # what of the journal of deletions was known: how many, and the CRC of their offsets
HAS_NOTE: Final = 1  # a flag: such a note stands behind meta
BLOB_ROW: Final = struct.Struct("<QI")  # length 8, crc 4

KEPT_FOR_ONE: Final = 16 << 20  # by a process of one question: two columns of a span
_FEW_BLOBS: Final = 4  # more are joined and written at once; few large ones are not worth the copy

# The kinds of segments. On disk: never change.
BITMAPS: Final = 1
PREFIXES: Final = 2
PREFIX_MAP: Final = 3
NUMBERS: Final = 4
OFFSETS: Final = 5
SET: Final = 6
DICTIONARY: Final = 7
GRAMS: Final = 8
CODES: Final = 9


class Layout(NamedTuple):
    """A kind of segment.

    version: the only one that is written and read
    content: a module in kinds/ and its Content, which merges, moves, renumbers and compares such segments
    name:    what people call the kind
    forms:   the forms of indexes (spec.Form) that may have such segments
    shape:   a module and the Shape in it, where Content imports numpy and questions are answered without
    """

    version: int
    content: str
    name: str
    forms: tuple[Form, ...]
    shape: str = ""


# In version 1 of prefixes, all arrays had one hash, and all maps, and in 2 there were no buckets; in that of numbers,
# there were no zones, in 2 no text spelled a number, in 3 and 6 to 8 fewer texts were times, and in 4 none was packed;
# in 1 of offsets each took 8 bytes, and in 2 there were no zones; in 1 of grams none had a slash.
LAYOUTS: Final[dict[int, Layout]] = {
    BITMAPS: Layout(1, "bitmaps:Bitmaps", "bitmaps", ("auto", "bitmap")),
    PREFIXES: Layout(3, "prefixes:Prefixes", "prefixes", ("auto", "prefix")),
    PREFIX_MAP: Layout(3, "prefixes:PrefixMap", "prefix map", ("auto", "prefix_map")),
    NUMBERS: Layout(13, "numbers:Numbers", "numbers", ("column", "time"), "columns:NumbersShape"),
    OFFSETS: Layout(3, "offsets:Offsets", "offsets", ("offsets",)),
    SET: Layout(1, "set:Set", "set", ("predicate", "text", "deleted")),
    DICTIONARY: Layout(1, "dictionary:DictionaryColumn", "dictionary", ("dictionary",), "columns:DictionaryShape"),
    GRAMS: Layout(2, "grams:Grams", "grams", ("grams",)),
    CODES: Layout(1, "codes:Codes", "codes", ()),  # of no index: they lie beside one (files/codes_file.py)
}

T = TypeVar("T")
Run: TypeAlias = tuple[int, int, int, int]  # first_seq, count, first_offset, end_offset: what a segment covers
Blob: TypeAlias = bytes | memoryview
ReadAt: TypeAlias = Callable[[int, int], bytes]


class Journal(NamedTuple):
    """How much of a journal of deletions was known: how many deletions, and the CRC-32 of their offsets.

    Marks in the journal are not counted: a power failure may take the last one, and they are not about records.
    """

    deletions: int = 0
    crc: int = 0


NO_JOURNAL: Final = Journal()


class Table:
    """Length and CRC of each blob of a segment; `raw` is rows of BLOB_ROW."""

    __slots__ = ("__weakref__", "_ends", "lengths", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.lengths = array("Q", [length for length, _ in BLOB_ROW.iter_unpack(raw)])
        self._ends: array[int] | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    def crc(self, number: int) -> int:
        return int(BLOB_ROW.unpack_from(self.raw, number * BLOB_ROW.size)[1])

    def end(self, number: int) -> int:
        """Where a blob ends in the body."""
        if self._ends is None:
            self._ends = array("Q", accumulate(self.lengths))
        return self._ends[number]


_NOTHING: Final = (None, 0)


class BlobCache:
    """The blobs that were used last, or what they stand for, of all files of this process, up to its share of memory.
    Safe for threads.

    is_for_one: the process asks one question, and what it read once it hardly needs again: up to KEPT_FOR_ONE

    The blobs of a file are dropped with its reader: a rewritten index is another file.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self.is_for_one = False
        self._blobs: OrderedDict[tuple[int, int], tuple[Any, int]] = OrderedDict()  # each with its size
        self._readers: dict[int, weakref.ref[Any]] = {}
        self._gone: deque[int] = deque()  # ids of readers that were deleted; the garbage collector adds to it
        self._lock = fork_safe(Lock())

    def get(self, reader: object, position: int) -> Any:
        """None where it is not there."""
        with self._lock:
            self._drop_gone()
            key = (id(reader), position)
            if key in self._blobs:
                self._blobs.move_to_end(key)
            return self._blobs.get(key, _NOTHING)[0]

    def put(self, reader: object, position: int, blob: Any, size: int) -> None:
        with self._lock:
            self._drop_gone()
            number = id(reader)
            if number not in self._readers:
                self._readers[number] = weakref.ref(reader, lambda _: self._gone.append(number))
            if (number, position) not in self._blobs:
                self.bytes += size
            self._blobs[number, position] = blob, size
            most = min(KEPT_FOR_ONE, memory.for_blobs()) if self.is_for_one else memory.for_blobs()
            while self.bytes > most and len(self._blobs) > 1:
                self.bytes -= self._blobs.popitem(last=False)[1][1]

    def clear(self) -> None:
        with self._lock:
            self._blobs.clear()
            self.bytes = 0

    def _drop_gone(self) -> None:
        while self._gone:
            number = self._gone.popleft()
            del self._readers[number]
            for key in [key for key in self._blobs if key[0] == number]:
                self.bytes -= self._blobs.pop(key)[1]


blob_cache: Final = BlobCache()


class Segment(Immutable):
    """One run of records in one index. Bytes come from memory (`blobs`) or from the file, when asked for.

    It covers the records [first_seq, first_seq + count), which lie in the log from the byte first_offset up to
    end_offset (just past the last one). `last_crc` is the CRC-32 of the last record's bytes, 0 where it is not known.
    `journal` is how much of the log's journal of deletions was known when it was written. `is_inside` says whether the
    blob with this number, as it was read, names nothing but what the segment covers.
    """

    __slots__ = __match_args__ = (
        "kind", "first_seq", "count", "first_offset", "end_offset", "meta", "table", "blobs", "read_at",
        "body_position", "path", "last_crc", "journal", "is_inside",
    )  # fmt: skip

    kind: int
    first_seq: int
    count: int
    first_offset: int
    end_offset: int
    meta: bytes
    table: Table
    blobs: tuple[Blob, ...] | None
    read_at: ReadAt | None
    body_position: int
    path: str
    last_crc: int
    journal: Journal
    is_inside: Callable[[Segment, int, bytes], bool]

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def end_seq(self) -> int:
        return self.first_seq + self.count

    @property
    def span_start(self) -> int:
        """The seq that its sets count from."""
        return self.first_seq - self.first_in_span

    @property
    def first_in_span(self) -> int:
        """The number of its first record in its sets."""
        return self.first_seq % SPAN

    @property
    def run(self) -> Run:
        return self.first_seq, self.count, self.first_offset, self.end_offset

    @property
    def size(self) -> int:
        return self.lead + self.body_size

    @property
    def lead(self) -> int:
        """Bytes before the blobs."""
        return HEAD_SIZE + len(self.meta) + len(self._note()) + len(self.table.raw)

    @property
    def body_size(self) -> int:
        return self.table.end(len(self.table) - 1) if len(self.table) else 0

    def _note(self) -> bytes:
        return NOTE.pack(*self.journal) if self.journal.crc else b""

    def blob(self, number: int, *, keep: bool = True) -> Blob:
        """One blob. From the file, its CRC is checked, and it is kept for the next to ask. Raises IndexDamaged."""
        if self.blobs is not None:
            return self.blobs[number]
        assert self.read_at is not None
        length = self.table.lengths[number]
        if not length:  # the cache knows blobs by their places, and the next one begins at the same place
            return self._read(number)
        position = self.body_position + self.table.end(number) - length
        blob: Blob | None = blob_cache.get(self.read_at, position)
        if blob is None:
            blob = self._read(number)
            if keep:
                blob_cache.put(self.read_at, position, blob, length)
        return blob

    def decoded(self, number: int, size: int, decode: Callable[[Blob], T], *, keep: bool = True) -> T:
        """A decoded blob of `size` bytes. It is kept for the next to ask, in place of the blob. Raises IndexDamaged."""
        return self.derived(number, size, lambda: decode(self.blob(number, keep=False)), keep=keep)

    def derived(self, number: int, size: int, make: Callable[[], T], *, keep: bool = True) -> T:
        """What follows from the segment, of `size` bytes, which is kept for the next to ask. `number`: of a blob, which
        it is made of, or how many there are, if of all; of each one thing may be kept.
        """
        reader, position = (self.table, 0) if self.blobs is not None else (self.read_at, self.body_position)
        found: T | None = blob_cache.get(reader, ~(position + number))  # no blob begins there
        if found is None:
            found = make()
            if keep:
                blob_cache.put(reader, ~(position + number), found, size)
        return found

    def verify(self) -> None:
        """Read all blobs, from the file if they lie there. Raises IndexDamaged."""
        if self.blobs is None:
            for number in range(len(self.table)):
                self._read(number)

    def body(self) -> bytes:
        """All blobs, one behind the other, in one read. They are not kept. Raises IndexDamaged."""
        if self.blobs is not None or self.read_at is None:
            return b"".join(self.blobs or ())
        found = memoryview(self.read_at(self.body_position, self.body_size))
        begin = 0
        for number, (length, crc) in enumerate(BLOB_ROW.iter_unpack(self.table.raw)):
            if crc32(found[begin : begin + length]) != crc:
                self._read(number)  # says what is wrong
            begin += length
        return bytes(found)

    def _read(self, number: int) -> bytes:
        assert self.read_at is not None
        length, expected = self.table.lengths[number], self.table.crc(number)
        position = self.body_position + self.table.end(number) - length
        found = self.read_at(position, length)
        if len(found) != length or crc32(found) != expected:
            raise IndexDamaged(
                f"blob {number} at byte {position}: expected {length} bytes with CRC {expected:08x}, "
                f"got {len(found)} with {crc32(found):08x}",
                path=self.path,
                offset=position,
            )
        if not self.is_inside(self, number, found):
            raise self.damage(f"blob {number} at byte {position} names records that are not the segment's")
        return found

    def set(self, number: int) -> BitMap:
        """The blob as a set, of `seq - span_start`. Raises IndexDamaged."""
        try:
            found = BitMap.deserialize(bytes(self.blob(number)))
        except (ValueError, IndexError) as error:  # raised for bytes that are no set
            raise self.damage(f"blob {number}: {error}") from error
        lead = self.first_in_span
        if found and not (lead <= found.min() and found.max() < lead + self.count):
            raise self.damage(f"blob {number}: a set of records that are not the segment's")
        return found

    def damage(self, what: str) -> IndexDamaged:
        """The error for a segment that no jitdb writes."""
        return IndexDamaged(what, path=self.path, offset=self.body_position)

    def parts(self) -> list[Blob]:
        """The segment as it stands in the file, in pieces."""
        blobs = [self.blob(number, keep=False) for number in range(len(self.table))]
        if len(blobs) > _FEW_BLOBS:
            blobs = [b"".join(blobs)]
        return [*self.lead_parts(), *blobs]

    def lead_parts(self, magic: bytes = MAGIC) -> list[Blob]:
        """What stands before the blobs."""
        table, note = self.table.raw, self._note()
        meta = self.meta + note
        head = HEAD.pack(
            magic, self.kind, LAYOUTS[self.kind].version, HAS_NOTE if note else 0, self.first_seq, self.count,
            self.last_crc, self.first_offset, self.end_offset, len(self.table), len(meta), self.body_size,
            crc32(table, crc32(meta)),
        )  # fmt: skip
        return [head, struct.pack("<I", crc32(head)), meta, table]


def make_segment(kind: int, run: Run, meta: bytes, blobs: Sequence[Blob]) -> Segment:
    table = Table(b"".join(map(BLOB_ROW.pack, map(len, blobs), map(crc32, blobs))))
    return Segment(kind, *run, meta, table, tuple(blobs), None, 0, "", 0, NO_JOURNAL, lambda *_: True)
