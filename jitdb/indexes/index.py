"""An index: the segments of one spec, in the order of the records, in one file or in memory alone.

    file = magic (8 bytes), head length (u32), head (JSON), CRC of all before (u32), segments

A file is only ever appended to, or replaced whole by rename. A segment that covers records which older ones cover
takes their place, so merging small segments is an append too; the file is rewritten when half of it is out of date.
So the beginning of a file is an earlier state of the index: from the first torn or damaged segment on, it is dropped
and built again. The head names the log the index belongs to (identity and generation).

Several processes may keep the same file. One that finds it longer than it left it, or another in its place, takes that
over if it covers the same records, and else replaces it; whoever has the old one open goes on reading that.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Final
from zlib import crc32

from jitdb.errors import IndexDamaged, IndexForeign
from jitdb.indexes.bitmap import merge_bitmaps, merge_sets
from jitdb.indexes.column import merge_numbers, merge_offsets
from jitdb.indexes.prefix import merge_prefix_maps, merge_prefixes
from jitdb.indexes.segment import (
    BITMAPS,
    HEAD_SIZE,
    NUMBERS,
    OFFSETS,
    PREFIX_MAP,
    PREFIXES,
    SET,
    SPAN,
    Segment,
    read_segment,
)
from jitdb.indexes.spec import IndexSpec

MAGIC: Final = b"JITDBIX1"
FAN_IN: Final = 8  # segments of about one size that are merged into one: bounds both files' length and merging

_MERGE: Final[dict[int, Callable[[Sequence[Segment]], Segment]]] = {
    BITMAPS: merge_bitmaps,
    SET: merge_sets,
    PREFIXES: merge_prefixes,
    PREFIX_MAP: merge_prefix_maps,
    NUMBERS: merge_numbers,
    OFFSETS: merge_offsets,
}


@dataclass(frozen=True, slots=True)
class LogName:
    """Which log an index belongs to: 16 random bytes made with the log, and how often it was rewritten since."""

    identity: bytes
    generation: int


class Index:
    """The segments of one index. Not thread-safe: the engine's lock guards it.

    `path` is None for an index that is kept in memory (its folder cannot be written). `name` is what IndexDamaged calls
    it, in memory too.
    """

    def __init__(self, spec: IndexSpec, log: LogName, path: FilePath | None) -> None:
        self.spec = spec
        self.path = path
        self.name = str(path or spec.file_name())
        self.segments: list[Segment] = []
        self.damage: IndexDamaged | None = None  # what load() found where it stopped reading
        self._log = log
        self._reached = 0
        self._reader: FileReader | None = None
        self._size = 0  # valid bytes of the file; 0: not written yet
        self._seen = 0  # bytes that the file had when we left it
        self._saved = True  # whether the file holds all segments

    @property
    def end_seq(self) -> int:
        """Records covered: all below this seq."""
        return self.segments[-1].end_seq if self.segments else 0

    @property
    def end_offset(self) -> int:
        """Where in the log the covered records end."""
        return self.segments[-1].end_offset if self.segments else 0

    @property
    def reached(self) -> int:
        """How far the log was scanned for it: past `end_offset` where a damaged block hides the rest."""
        return max(self._reached, self.end_offset)

    def reach(self, offset: int) -> None:
        """The log was scanned up to here."""
        self._reached = offset

    @property
    def kind(self) -> int:
        """The kind of the segments; 0 while there are none."""
        return self.segments[-1].kind if self.segments else 0

    @property
    def size(self) -> int:
        """Bytes that the valid segments take."""
        return sum(segment.size for segment in self.segments)

    def since(self, seq: int) -> list[Segment]:
        """The segments that hold records of `seq` or later."""
        return [segment for segment in self.segments if segment.end_seq > seq]

    # --- reading ---------------------------------------------------------------------------------------------------

    def load(self) -> bool:
        """Read the file's segments; False when there is no file.

        The first damaged one ends the index, as a torn one does, and `damage` tells of it: what stands before it is an
        earlier state of the index. Raises IndexForeign when the file belongs to another log, IndexDamaged when it is
        no index file, OSError.
        """
        if self.path is None:
            return False
        try:
            self._reader = FileReader(self.path)
        except FileNotFoundError:
            return False
        self.segments = []
        self._seen = self._reader.identity()[1]
        self._size = position = self._read_head(self._reader)
        while 0 < position < self._seen:
            try:
                segment, position = read_segment(self._reader, position, self._seen, self.name)
                self._take(segment)
            except EOFError:
                break  # torn: what it covered is built again
            except IndexDamaged as damage:
                self.damage = damage
                break
            self._size = position
        return True

    def _read_head(self, read_at: FileReader) -> int:
        """Where the segments begin; 0 when the head is torn."""
        expected = self._head()
        found = read_at(0, len(expected))
        if found == expected:
            return len(expected)
        if expected.startswith(found):
            return 0
        length = int.from_bytes(found[8:12], "little")
        whole = read_at(0, 12 + min(length, self._seen) + 4)
        if found[:8] != MAGIC or crc32(whole[:-4]) != int.from_bytes(whole[-4:], "little"):
            raise IndexDamaged("the head is not that of an index file", path=self.name, offset=0)
        raise IndexForeign("belongs to another log, or to this one before it was replaced", path=self.name)

    def _take(self, segment: Segment) -> None:
        while self.segments and self.segments[-1].first_seq >= segment.first_seq:
            self.segments.pop()
        kind = self.kind or segment.kind
        if (segment.first_seq, segment.first_offset, segment.kind) != (self.end_seq, self.end_offset, kind):
            raise IndexDamaged(
                f"a segment of kind {segment.kind} begins at record {segment.first_seq} (byte {segment.first_offset}), "
                f"expected kind {kind}, record {self.end_seq} (byte {self.end_offset})",
                path=self.name,
            )
        self.segments.append(segment)

    # --- writing ---------------------------------------------------------------------------------------------------

    def append(self, segment: Segment) -> None:
        """Add the segment that follows; merges small ones.

        Raises OSError when the file cannot be written, IndexDamaged when one to merge cannot be read.
        """
        saved, self._saved = self._saved, False
        self._take(segment)
        run = self._mergeable()
        if len(run) > 1:
            segment = _MERGE[segment.kind](run)
            self._take(segment)
        if not saved or not self._write(segment) or self._size > 2 * self.size + (1 << 16):
            self.rewrite()
        self._saved = True

    def _mergeable(self) -> list[Segment]:
        """The last segments of the last span: all when it is full, else FAN_IN or more of one size or less."""
        span = self.segments[-1].first_seq // SPAN
        tail = [segment for segment in self.segments if segment.first_seq // SPAN == span]
        if tail[-1].end_seq % SPAN == 0:
            return tail
        run: list[Segment] = []
        for segment in reversed(tail):
            if _level(segment) > _level(tail[-1]):
                break
            run.insert(0, segment)
        return run if len(run) >= FAN_IN else []

    def merge(self) -> None:
        """Bring the index into its one canonical form, a segment a span, and rewrite its file."""
        spans: dict[int, list[Segment]] = {}
        for segment in self.segments:
            spans.setdefault(segment.first_seq // SPAN, []).append(segment)
        self.segments = [run[0] if len(run) == 1 else _MERGE[run[0].kind](run) for run in spans.values()]
        self.rewrite()

    def replace(self, segments: Sequence[Segment]) -> None:
        """Other segments in place of all there are."""
        self._saved = False
        self.segments = list(segments)
        self.rewrite()

    def rewrite(self) -> None:
        """Write the valid segments into a new file that replaces the old one. Raises OSError, IndexDamaged."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}-{id(self):x}.tmp")
        positions = []
        try:
            with open(temporary, "wb") as file:
                file.write(self._head())
                for segment in self.segments:
                    positions.append(file.tell())
                    file.writelines(segment.parts())
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            reader = FileReader(temporary)
            os.replace(temporary, self.path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(self.path.parent)
        self._reader = reader
        self._size = self._seen = size
        self.segments = [self._at(*pair) for pair in zip(self.segments, positions, strict=True)]
        self._saved = True

    def _write(self, segment: Segment) -> bool:
        """Append the segment to the file; False when that must not be, and the file is to be written anew."""
        if self.path is None:
            return True
        if self._reader is None or not self._size:
            return self._create(segment)
        try:
            file = open(self.path, "r+b")  # noqa: SIM115
        except FileNotFoundError:
            return False
        with file:
            with suppress(OSError):  # not every file system has locks
                fcntl.flock(file, fcntl.LOCK_EX)
            # Another process may have appended to the file or replaced it: then it is not ours to write to.
            found = os.fstat(file.fileno())
            if self._reader.identity() != ((found.st_dev, found.st_ino), self._seen):
                return self._adopt()
            file.truncate(self._size)
            file.seek(self._size)
            # Not synced: what a power failure takes of it fails its CRC, and is built again.
            file.writelines(segment.parts())
            position, self._size = self._size, file.tell()
        self._seen = self._size
        self.segments[-1] = self._at(segment, position)
        return True

    def _create(self, segment: Segment) -> bool:
        """A new file of one segment; False when there is one already."""
        assert self.path is not None
        if len(self.segments) > 1:
            return False
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = open(self.path, "xb")  # noqa: SIM115
        except FileExistsError:
            return self._adopt()
        with file:
            head = self._head()
            file.write(head)
            file.writelines(segment.parts())
            self._reader = FileReader(self.path)
            self._size = self._seen = file.tell()
        self.segments[-1] = self._at(segment, len(head))
        return True

    def _adopt(self) -> bool:
        """Take over the file that another process wrote, when it covers just what this index does."""
        other = Index(self.spec, self._log, self.path)
        try:
            other.load()
        except (IndexDamaged, OSError):
            return False
        if (other.end_seq, other.end_offset, other.kind) != (self.end_seq, self.end_offset, self.kind):
            return False
        self.segments = other.segments
        self._reader, self._size, self._seen = other._reader, other._size, other._seen
        return True

    def _at(self, segment: Segment, position: int) -> Segment:
        """The segment as it lies in the file now; that of a full span lets go of its bytes in memory."""
        if segment.blobs is not None and segment.end_seq % SPAN:
            return segment
        body = position + HEAD_SIZE + len(segment.meta) + segment.table.nbytes
        return replace(segment, blobs=None, read_at=self._reader, body_position=body, path=self.name)

    def _head(self) -> bytes:
        head = {
            "log": self._log.identity.hex(),
            "generation": self._log.generation,
            "index": self.spec.descriptor(),
        }
        text = json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
        raw = MAGIC + len(text).to_bytes(4, "little") + text
        return raw + crc32(raw).to_bytes(4, "little")


class FileReader:
    """Reads (position, length) of one open file, which stays readable when its name is given to another."""

    def __init__(self, path: FilePath) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __call__(self, position: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, position)

    def identity(self) -> tuple[tuple[int, int], int]:
        """Which file it is, and how many bytes it has now."""
        found = os.fstat(self._descriptor)
        return (found.st_dev, found.st_ino), found.st_size

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)


def _level(segment: Segment) -> int:
    """Segments of one level are of about one size: FAN_IN times the size is one level up."""
    return (max(segment.count, 1).bit_length() - 1) // (FAN_IN.bit_length() - 1)


def sync_folder(folder: FilePath) -> None:
    """Make a rename in this folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
