"""A segment: one index over one run of records, immutable. docs/format-index.md explains every byte.

    segment = head (64 bytes), meta, blob table (12 bytes a blob), blobs

The head has a CRC of itself and one of meta and table; the table has length and CRC of each blob, so a reader fetches
and checks just the blobs it needs. As long as there are few, numpy is not imported for them.
"""

from __future__ import annotations

import struct
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias
from zlib import crc32

from pyroaring import BitMap

from jitdb.common.forking import fork_safe
from jitdb.common.immutable import Immutable
from jitdb.errors import IndexDamaged
from jitdb.indexes.witness import NO_JOURNAL, Journal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEPT_BYTES: Final = 256 << 20  # of all index files, in memory: the columns of some thirty spans

SPAN: Final = 1 << 20  # records; no segment crosses a multiple of it. On disk: never change.
ZONE: Final = 1 << 12  # records of a column whose extremes are known together. On disk: never change.

MAGIC: Final = b"JSEG"
HEAD: Final = struct.Struct("<4sBBHQIIQQIIQI")
# magic 4, kind 1, version 1, flags 2, first_seq 8, count 4, CRC of the last record 4, first_offset 8, end_offset 8,
# blobs 4, meta bytes 4, body bytes 8, CRC of meta and table 4
HEAD_SIZE: Final = HEAD.size + 4  # and the CRC of the head itself
NOTE: Final = struct.Struct("<QI")  # what of the journal of deletions was known: how many, and the CRC of their offsets
HAS_NOTE: Final = 1  # a flag: such a note stands behind meta
BLOB_ROW: Final = struct.Struct("<QI")  # length 8, crc 4

_FEW: Final = 1 << 12  # numbers that are read one by one; with more, numpy is sooner done, its import counted

_MOST_RECORDS: Final = 1 << 32  # a set's members have 32 bits
_LARGEST_SET: Final = 1 << 18  # bytes: the bits of a whole span are half of it
_FEW_BLOBS: Final = 4  # more are written as one: a column is not worth a copy, thousands of small writes are

# The kinds of segments. On disk: never change.
BITMAPS: Final = 1
PREFIXES: Final = 2
PREFIX_MAP: Final = 3
NUMBERS: Final = 4
OFFSETS: Final = 5
SET: Final = 6

# The version that a segment of each kind is written in, and the only one that is read. In version 1 of prefixes, all
# arrays had one hash, and all maps; in that of numbers, there were no zones.
VERSIONS: Final = {BITMAPS: 1, PREFIXES: 2, PREFIX_MAP: 2, NUMBERS: 2, OFFSETS: 1, SET: 1}

Run: TypeAlias = tuple[int, int, int, int]  # first_seq, count, first_offset, end_offset: what a segment covers
Blob: TypeAlias = bytes | memoryview
ReadAt: TypeAlias = Callable[[int, int], bytes]


class Kept:
    """The blobs that were used last, of all files of this process, up to KEPT_BYTES of them. Safe for threads.

    Those of a file go when its reader goes: a rewritten index is another file.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._blobs: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._readers: dict[int, weakref.ref[ReadAt]] = {}
        self._gone: deque[int] = deque()  # ids of readers that are no more; filled by the garbage collector
        self._lock = fork_safe(Lock())

    def get(self, reader: ReadAt, position: int) -> bytes | None:
        with self._lock:
            self._drop_gone()
            key = (id(reader), position)
            if key in self._blobs:
                self._blobs.move_to_end(key)
            return self._blobs.get(key)

    def put(self, reader: ReadAt, position: int, blob: bytes) -> None:
        with self._lock:
            self._drop_gone()
            number = id(reader)
            if number not in self._readers:
                self._readers[number] = weakref.ref(reader, lambda _: self._gone.append(number))
            if (number, position) not in self._blobs:
                self.bytes += len(blob)
            self._blobs[number, position] = blob
            while self.bytes > KEPT_BYTES and len(self._blobs) > 1:
                self.bytes -= len(self._blobs.popitem(last=False)[1])

    def clear(self) -> None:
        with self._lock:
            self._blobs.clear()
            self.bytes = 0

    def _drop_gone(self) -> None:
        while self._gone:
            number = self._gone.popleft()
            del self._readers[number]
            for key in [key for key in self._blobs if key[0] == number]:
                self.bytes -= len(self._blobs.pop(key))


_KEPT: Final = Kept()


class Table:
    """Length and CRC of each blob of a segment, as they stand there: rows of BLOB_ROW."""

    __slots__ = ("_ends", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._ends: Sequence[int] | NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.raw) // BLOB_ROW.size

    def __getitem__(self, number: int) -> tuple[int, int]:
        length, crc = BLOB_ROW.unpack_from(self.raw, number * BLOB_ROW.size)
        return length, crc

    @property
    def lengths(self) -> list[int]:
        """Of all blobs."""
        return [length for length, _ in BLOB_ROW.iter_unpack(self.raw)]

    def end(self, number: int) -> int:
        """Where a blob ends in the body; there are no more bytes than fit 63 bits."""
        if self._ends is None:
            few = len(self) <= _FEW
            self._ends = list(accumulate(self.lengths)) if few else self._column().cumsum(dtype="i8")
        return int(self._ends[number])

    def total(self) -> int:
        """The sum of all lengths, however large they are."""
        if len(self) <= _FEW:
            return sum(self.lengths)
        high, low = divmod(self._column(), 1 << 32)
        return (int(high.sum()) << 32) + int(low.sum())

    def longest(self) -> int:
        """The largest length; 0 where there is none."""
        if len(self) <= _FEW:
            return max(self.lengths, default=0)
        return int(self._column().max())

    def _column(self) -> NDArray[np.uint64]:
        import numpy as np

        column: NDArray[np.uint64] = np.frombuffer(self.raw, [("length", "<u8"), ("crc", "<u4")])["length"]
        return column


def small_numbers(data: bytes, count: int, start: int) -> tuple[int, ...] | NDArray[np.uint32]:
    """So many u32 from this byte on: few in a tuple, many in an array."""
    if count <= _FEW:
        return struct.unpack_from(f"<{count}I", data, start)
    import numpy as np

    return np.frombuffer(data, "<u4", count, start)


class Segment(Immutable):
    """One run of records in one index. Bytes come from memory (`blobs`) or from the file, when asked for.

    It covers the records [first_seq, first_seq + count), which lie in the log from the byte first_offset up to
    end_offset (just past the last one). `last_crc` is the CRC-32 of that one's bytes; 0 where it is not known.
    `journal` is how much of the log's journal of deletions was known when it was written.
    """

    __slots__ = __match_args__ = (
        "kind", "first_seq", "count", "first_offset", "end_offset", "meta", "table", "blobs", "read_at",
        "body_position", "path", "last_crc", "journal",
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

    def __init__(
        self,
        kind: int,
        first_seq: int,
        count: int,
        first_offset: int,
        end_offset: int,
        meta: bytes,
        table: Table,
        blobs: tuple[Blob, ...] | None = None,
        read_at: ReadAt | None = None,
        body_position: int = 0,
        path: str = "",
        last_crc: int = 0,
        journal: Journal = NO_JOURNAL,
    ) -> None:
        self._keep(
            kind, first_seq, count, first_offset, end_offset, meta, table, blobs, read_at, body_position, path,
            last_crc, journal,
        )  # fmt: skip

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def end_seq(self) -> int:
        return self.first_seq + self.count

    @property
    def run(self) -> Run:
        return self.first_seq, self.count, self.first_offset, self.end_offset

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self.lead + self.body_size

    @property
    def lead(self) -> int:
        """Bytes before the blobs."""
        return HEAD_SIZE + len(self.meta) + len(self._note()) + len(self.table.raw)

    @property
    def body_size(self) -> int:
        """Bytes of all blobs."""
        return self.table.end(len(self.table) - 1) if len(self.table) else 0

    def _note(self) -> bytes:
        return NOTE.pack(*self.journal) if self.journal.crc else b""

    def blob(self, number: int) -> Blob:
        """One blob, its CRC checked when it comes from the file. Raises IndexDamaged."""
        if self.blobs is not None:
            return self.blobs[number]
        assert self.read_at is not None
        length, _ = self.table[number]
        position = self.body_position + self.table.end(number) - length
        blob = _KEPT.get(self.read_at, position)
        if blob is not None:
            return blob
        found = self._read(number, position, length)
        _KEPT.put(self.read_at, position, found)
        return found

    def verify(self) -> None:
        """Read all blobs, from the file if they lie there. Raises IndexDamaged."""
        if self.blobs is None:
            for number, length in enumerate(self.table.lengths):
                self._read(number, self.body_position + self.table.end(number) - length, length)

    def _read(self, number: int, position: int, length: int) -> bytes:
        assert self.read_at is not None
        found = self.read_at(position, length)
        expected, got = self.table[number][1], crc32(found)
        if len(found) != length or expected != got:
            raise IndexDamaged(
                f"blob {number} at byte {position}: expected {length} bytes with CRC {expected:08x}, "
                f"got {len(found)} with {got:08x}",
                path=self.path,
                offset=position,
            )
        if not _is_inside(self, number, found):
            raise self.damage(f"blob {number} at byte {position} speaks of records that are not the segment's")
        return found

    def set(self, number: int) -> BitMap:
        """The blob as a set, of `seq - span_start`. Raises IndexDamaged."""
        try:
            found = BitMap.deserialize(bytes(self.blob(number)))
        except (ValueError, IndexError) as error:  # what it raises for bytes that are no such set
            raise self.damage(f"blob {number}: {error}") from error
        lead = self.first_seq % SPAN
        if found and not (lead <= found.min() and found.max() < lead + self.count):
            raise self.damage(f"blob {number}: a set of records that are not the segment's")
        return found

    def damage(self, what: str) -> IndexDamaged:
        """The error for a segment that is not what any jitdb writes."""
        return IndexDamaged(what, path=self.path, offset=self.body_position)

    def parts(self) -> list[Blob]:
        """The segment as it stands in the file, in pieces."""
        table, note = self.table.raw, self._note()
        meta = self.meta + note
        head = HEAD.pack(
            MAGIC, self.kind, VERSIONS[self.kind], HAS_NOTE if note else 0, self.first_seq, self.count, self.last_crc,
            self.first_offset, self.end_offset, len(self.table), len(meta), self.body_size, crc32(table, crc32(meta)),
        )  # fmt: skip
        blobs = [self.blob(number) for number in range(len(self.table))]
        if len(blobs) > _FEW_BLOBS:
            blobs = [b"".join(blobs)]
        return [head, struct.pack("<I", crc32(head)), meta, table, *blobs]


def make_segment(kind: int, run: Run, meta: bytes, blobs: Sequence[Blob]) -> Segment:
    """A segment in memory."""
    table = b"".join(map(BLOB_ROW.pack, map(len, blobs), map(crc32, blobs)))
    return Segment(kind, *run, meta, Table(table), tuple(blobs))


def read_segment(read_at: ReadAt, position: int, file_size: int, path: str) -> tuple[Segment, int]:
    """The segment at `position` and the position after it.

    Raises EOFError where the file ends inside it or has nothing but zeros for its head (a torn write: the file grew,
    its bytes did not reach the disk), and where it is of an older version: both are built again without a word.
    IndexDamaged where a CRC does not hold.
    """
    raw = read_at(position, HEAD_SIZE)
    if len(raw) < HEAD_SIZE or not any(raw):
        raise EOFError
    expected, got = int.from_bytes(raw[-4:], "little"), crc32(raw[:-4])
    if expected != got:
        raise IndexDamaged(f"segment head: expected CRC {expected:08x}, got {got:08x}", path=path, offset=position)
    (
        magic, kind, version, flags, first_seq, count, last_crc, first_offset, end_offset, blobs, meta_size, body, crc
    ) = HEAD.unpack(raw[:-4])  # fmt: skip
    wanted = VERSIONS.get(kind, 0)
    if magic != MAGIC or not 0 < version <= wanted:
        raise IndexDamaged(
            f"segment of kind {kind}, version {version}, expected {wanted} at most", path=path, offset=position
        )
    if version < wanted:
        raise EOFError
    extra = meta_size + blobs * BLOB_ROW.size
    following = position + HEAD_SIZE + extra + body
    if following > file_size:
        raise EOFError  # before a byte of what it announces is read
    raw = read_at(position + HEAD_SIZE, extra)
    if crc32(raw) != crc:
        raise IndexDamaged(
            f"segment directory: expected CRC {crc:08x}, got {crc32(raw):08x}", path=path, offset=position + HEAD_SIZE
        )
    table = Table(raw[meta_size:])
    note = NOTE.size if flags & HAS_NOTE and meta_size >= NOTE.size else 0
    journal = Journal(*NOTE.unpack_from(raw, meta_size - note)) if note else NO_JOURNAL
    segment = Segment(
        kind, first_seq, count, first_offset, end_offset, raw[: meta_size - note], table,
        None, read_at, position + HEAD_SIZE + extra, path, last_crc, journal,
    )  # fmt: skip
    if not (_is_run(segment) and table.total() == body and _SHAPES[kind](segment)):
        raise segment.damage(f"segment of kind {kind}: what its head and directory say does not fit together")
    return segment, following


# What a segment must be, whoever wrote it: a CRC tells what was damaged, not what somebody made up.


def _is_run(segment: Segment) -> bool:
    first, count, begin, end = segment.run
    inside = count > 0 and first % SPAN + count <= SPAN and first + count <= _MOST_RECORDS
    return inside and begin < end < 1 << 63 and segment.kind in _SHAPES


def _has(segment: Segment, meta: int, *lengths: int) -> bool:
    return (len(segment.meta), len(segment.table)) == (meta, len(lengths)) and segment.table.lengths == [*lengths]


def _are_sets(segment: Segment) -> bool:
    return segment.table.longest() <= _LARGEST_SET


def _is_bitmaps(segment: Segment) -> bool:
    meta, keys = segment.meta, len(segment.table)
    if len(meta) < 4 + 8 * keys or int.from_bytes(meta[:4], "little") != keys:
        return False
    lengths = small_numbers(meta, keys, 4)
    size = sum(lengths) if isinstance(lengths, tuple) else int(lengths.sum(dtype="u8"))
    return 0 not in lengths and size == len(meta) - 4 - 8 * keys and _are_sets(segment)


def _is_prefixes(segment: Segment) -> bool:
    lengths = segment.table.lengths if len(segment.table) == 2 else [0]
    return lengths[0] <= _LARGEST_SET and _has(segment, 4, lengths[0], 4 * segment.count)


def _is_prefix_map(segment: Segment) -> bool:
    size = segment.table[0][0] if len(segment.table) else 1
    return size % 4 == 0 and _has(segment, 4, size, size)


def _is_numbers(segment: Segment) -> bool:
    rests = len(segment.meta) == 20 and segment.meta[16] & 1
    zones = -(-segment.count // ZONE)
    return _has(segment, 20, 8 * segment.count, *([2 * segment.count] if rests else []), 16 * zones)


def _is_offsets(segment: Segment) -> bool:
    if len(segment.meta) % 8:
        return False
    blocks = [block for (block,) in struct.iter_unpack("<q", segment.meta)]
    listed = all(0 <= block < segment.end_offset for block in blocks)
    return listed and _has(segment, len(segment.meta), 8 * segment.count)


def _is_set(segment: Segment) -> bool:
    return len(segment.table) == 1 and len(segment.meta) % 16 == 0 and _are_sets(segment)


_SHAPES: Final[dict[int, Callable[[Segment], bool]]] = {
    BITMAPS: _is_bitmaps,
    PREFIXES: _is_prefixes,
    PREFIX_MAP: _is_prefix_map,
    NUMBERS: _is_numbers,
    OFFSETS: _is_offsets,
    SET: _is_set,
}


def _is_inside(segment: Segment, number: int, blob: bytes) -> bool:
    """Whether a blob that names records, or places in the log, names those of the segment alone."""
    if segment.kind not in (OFFSETS, PREFIX_MAP):
        return True
    import numpy as np

    if segment.kind == OFFSETS:
        offsets = np.frombuffer(blob, "<i8")
        inside = segment.first_offset <= offsets[0] and offsets[-1] < segment.end_offset
        return bool(inside and (offsets[1:] > offsets[:-1]).all())
    if number == 1 and blob:
        members, lead = np.frombuffer(blob, "<u4"), segment.first_seq % SPAN
        return bool(lead <= members.min() and members.max() < lead + segment.count)
    return True
