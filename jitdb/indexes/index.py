"""An index: the segments of one spec, in the order of the records, in one file or in memory alone.

    file = magic (8 bytes), head length (u32), head (JSON), CRC of all before (u32), segments

A file is only ever appended to, or replaced whole by rename. A segment that covers records which older ones cover
takes their place, so merging small segments is an append too; the file is rewritten when half of it is out of date.
What is torn at the end is dropped and built again; a damaged file is an IndexDamaged error for the caller, who
builds it anew. The head names the log the index belongs to (identity and generation).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Final
from zlib import crc32

from jitdb.errors import IndexDamaged
from jitdb.indexes.bitmap import merge_bitmaps, merge_sets
from jitdb.indexes.column import merge_numbers, merge_offsets
from jitdb.indexes.prefix import merge_prefix_maps, merge_prefixes
from jitdb.indexes.segment import (
    BITMAPS, HEAD_SIZE, NUMBERS, OFFSETS, PREFIX_MAP, PREFIXES, SET, SPAN, ReadAt, Segment, read_segment,
)  # fmt: skip
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

    `path` is None for an index that is kept in memory (its folder cannot be written).
    """

    def __init__(self, spec: IndexSpec, log: LogName, path: FilePath | None) -> None:
        self.spec = spec
        self.path = path
        self.segments: list[Segment] = []
        self._log = log
        self._reached = 0
        self._size = 0  # valid bytes of the file; 0: not written yet
        self._reader: ReadAt | None = None

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

        Raises IndexDamaged when it is not what was written, or belongs to another log.
        """
        if self.path is None or not self.path.exists():
            return False
        self._reader = FileReader(self.path)
        file_size = self.path.stat().st_size
        position = self._read_head(file_size)
        self.segments = []
        while position < file_size:
            try:
                segment, following = read_segment(self._reader, position, file_size, str(self.path))
            except EOFError:
                break  # torn: what it covered is built again
            self._take(segment)
            position = following
        self._size = position
        return True

    def _read_head(self, file_size: int) -> int:
        assert self.path is not None
        assert self._reader is not None
        expected = self._head()
        found = self._reader(0, len(expected))
        if found == expected:
            return len(expected)
        if file_size < len(expected) and expected.startswith(found):
            return 0  # torn in the head: an empty index
        length = int.from_bytes(found[8:12], "little")
        whole = self._reader(0, 12 + min(length, file_size) + 4)
        if found[:8] != MAGIC or crc32(whole[:-4]) != int.from_bytes(whole[-4:], "little"):
            raise IndexDamaged("the head is not that of an index file", path=self.path, offset=0)
        raise IndexDamaged(f"belongs to another log or index: {whole[12:-4].decode(errors='replace')}", path=self.path)

    def _take(self, segment: Segment) -> None:
        while self.segments and self.segments[-1].first_seq >= segment.first_seq:
            self.segments.pop()
        last = self.segments[-1] if self.segments else None
        end = (last.end_seq, last.end_offset) if last else (0, 0)
        if (segment.first_seq, segment.first_offset) != end:
            raise IndexDamaged(
                f"a segment begins at record {segment.first_seq} (byte {segment.first_offset}), "
                f"expected record {end[0]} (byte {end[1]})",
                path=self.path or self.spec.file_name(),
            )
        self.segments.append(segment)

    # --- writing ---------------------------------------------------------------------------------------------------

    def append(self, segment: Segment) -> None:
        """Add the segment that follows; merges small ones. Raises OSError when the file cannot be written."""
        self._take(segment)
        run = self._mergeable()
        if len(run) > 1:
            segment = _MERGE[segment.kind](run)
            self._take(segment)
        self._write(segment)
        if self.path is not None and self._size > 2 * self.size + (1 << 16):
            self.rewrite()

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
        self.segments = list(segments)
        self.rewrite()

    def rewrite(self) -> None:
        """Write the valid segments into a new file that replaces the old one. Raises OSError."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(f".{os.getpid()}.tmp")
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
            os.replace(temporary, self.path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(self.path.parent)
        self._size = size
        self._reader = FileReader(self.path)
        self.segments = [self._at(*pair) for pair in zip(self.segments, positions, strict=True)]

    def _write(self, segment: Segment) -> None:
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Not synced: what a power failure takes of it fails its CRC, and is built again.
        with open(self.path, "r+b" if self._size else "wb") as file:
            file.truncate(self._size)
            file.seek(self._size)
            if not self._size:
                file.write(self._head())
            position = file.tell()
            file.writelines(segment.parts())
            self._size = file.tell()
        if self._reader is None:
            self._reader = FileReader(self.path)
        self.segments[-1] = self._at(segment, position)

    def _at(self, segment: Segment, position: int) -> Segment:
        """The segment as it lies in the file now; that of a full span lets go of its bytes in memory."""
        if segment.blobs is not None and segment.end_seq % SPAN:
            return segment
        body = position + HEAD_SIZE + len(segment.meta) + segment.table.nbytes
        return replace(segment, blobs=None, read_at=self._reader, body_position=body, path=str(self.path))

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
