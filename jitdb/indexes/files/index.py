"""An index: the segments of one spec, in the order of the records, in one file or in memory alone.

A file is only appended to, or replaced whole by rename. A segment that covers the records of older ones takes their
place, so merging small segments is an append, too; the file is rewritten when half of it is out of date. So the
beginning of a file is an earlier state of the index: what stands behind the first torn or damaged segment is built
again. The head names the log that the index belongs to (identity and generation).

Several processes may keep the same file. A writer holds its lock (folder.py) and calls catch_up() first: what others
made of the file counts. Where there are no locks, a writer that finds the file longer than it left it, or another one
in its place, takes that over if it covers the same records, and replaces it otherwise. A process that has the old file
open goes on reading that.

A segment may lie apart, in a file of its own (span_file.py); then the index file has an entry for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path as FilePath
from typing import Final, get_args

from jitdb.errors import IndexDamaged, IndexForeign
from jitdb.indexes.files.file import (
    FileReader,
    Head,
    LogName,
    head_of,
    is_newer,
    read_head,
    remove_file,
    write_parts,
)
from jitdb.indexes.files.folder import is_first
from jitdb.indexes.files.segment_reader import entry, entry_size, in_memory, is_apart, read_segment
from jitdb.indexes.files.span_file import remove_spans
from jitdb.indexes.kinds.content import is_void, merged
from jitdb.indexes.segment import LAYOUTS, SPAN, Segment
from jitdb.indexes.spec import Form, IndexSpec
from jitdb.log.io import osfile
from jitdb.log.io.osfile import Descriptor, FileSystem

KINDS: Final[dict[Form, tuple[int, ...]]] = {  # of segments that an index of each form may have
    form: tuple(kind for kind, layout in LAYOUTS.items() if form in layout.forms) for form in get_args(Form)
}
FAN_IN: Final = 8  # segments of about one size that are merged into one: bounds the length of files, and merging


class Index:
    """The segments of one index. Not thread-safe: the engine's lock guards it.

    `path` is None for an index in memory (its folder cannot be written). IndexDamaged calls the index by its `name`.
    `may_wait`: it gets no file as long as no record has a value, unless another process asked for it (folder.is_first).
    """

    def __init__(self, spec: IndexSpec, log: LogName, path: FilePath | None, fs: FileSystem | None = None) -> None:
        self.spec = spec
        self.log = log
        self.path = path
        self.name = str(path or spec.file_name())
        self._segments: list[Segment]
        self._scanned = 0  # up to which byte of the log
        self.end_seq: int  # it covers all records below this seq,
        self.end_offset: int  # which lie before this byte of the log
        self.reached: int  # how far the log was scanned: past `end_offset` where a damaged block hides the rest
        self.segments = []
        self.damage: IndexDamaged | None = None  # what was found where reading stopped
        self._fs = fs or osfile.fs
        self._head = Head(log, spec)
        self._reader: FileReader | None = None
        self._size = 0  # valid bytes of the file; 0: not written yet
        self._seen = 0  # bytes that the file had when we left it
        self._saved = True  # whether the file holds all segments
        self.may_wait = False
        self._is_first: bool | None = None  # whether this process asks for it first; None: not looked up yet
        self._early = False  # whether the file holds segments that were saved early, and those that took their place

    @property
    def segments(self) -> list[Segment]:
        return self._segments

    @segments.setter
    def segments(self, segments: list[Segment]) -> None:
        seq, end = (segments[-1].end_seq, segments[-1].end_offset) if segments else (0, 0)
        # In one call: a Ctrl-C comes before it or after it.
        self.__dict__.update(_segments=segments, end_seq=seq, end_offset=end, reached=max(self._scanned, end))

    def reach(self, offset: int) -> None:
        """Note that the log was scanned up to here."""
        self._scanned = offset
        self.reached = max(offset, self.end_offset)

    @property
    def kind(self) -> int:
        """The kind of the segments; 0 while there are none."""
        return self.segments[-1].kind if self.segments else 0

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def size_in_file(self) -> int:
        """Bytes of the segments in the index file itself."""
        return sum(map(entry_size, self.segments))

    def since(self, seq: int) -> list[Segment]:
        """The segments that hold records of `seq` or later."""
        return [segment for segment in self.segments if segment.end_seq > seq]

    # --- reading ---------------------------------------------------------------------------------------------------

    def load(self) -> bool:
        """Read the file's segments; False when there is no file.

        A damaged segment ends the index, as a torn one does, and `damage` describes it. Raises IndexForeign when the
        file belongs to another log, or to another generation of it, IndexDamaged when it is no index file, OSError.
        """
        if self.path is None:
            return False
        try:
            self._reader = FileReader(self._fs, self.path)
        except FileNotFoundError:
            return False
        self.segments = []
        self._seen = self._reader.size
        self._size = read_head(self._reader, self._head, self.name)
        self._read_on()
        return True

    def catch_up(self) -> bool:
        """Take over what other processes made of the file; True when they did more than append to it.

        An index whose file is gone stays as it is, and the next segment is written into a new file. Raises as load()
        does; then nothing changed.
        """
        if self.path is None:
            return False
        try:
            found = self._fs.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        known = self._reader.which if self._reader is not None and self._size else None
        if known == (found.st_dev, found.st_ino) and found.st_size >= self._size:
            self.damage = None
            if found.st_size != self._size:
                self._seen = found.st_size
                self._read_on()
            return False
        other = Index(self.spec, self.log, self.path, self._fs)
        other.load()
        replaced = bool(self.segments)
        self._become(other)
        return replaced

    def verify(self) -> None:
        """Read every byte of the index. Raises IndexDamaged."""
        for segment in self.segments:
            segment.verify()

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def clear(self) -> None:
        """Forget all segments; the file stays as it is."""
        self._become(Index(self.spec, self.log, self.path, self._fs))

    def _become(self, other: Index) -> None:
        self.segments, self.damage = other.segments, other.damage
        self._reader, self._size, self._seen = other._reader, other._size, other._seen
        self._saved = True
        self.reach(0)

    def _read_on(self) -> None:
        """Read the segments behind those that are known."""
        assert self._reader is not None
        self.damage = None
        position = self._size
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

    def _take(self, segment: Segment) -> None:
        self.segments = [each for each in self.segments if each.first_seq < segment.first_seq]
        kinds = (self.kind,) if self.kind else KINDS[self.spec.form]
        place = (segment.first_seq, segment.first_offset)
        if place != (self.end_seq, self.end_offset) or segment.kind not in kinds:
            raise IndexDamaged(
                f"a segment of kind {segment.kind} begins at record {segment.first_seq} (byte {segment.first_offset}), "
                f"expected kind {kinds[0]}, record {self.end_seq} (byte {self.end_offset})",
                path=self.name,
            )
        self.segments = [*self.segments, segment]

    # --- writing ---------------------------------------------------------------------------------------------------

    def append(self, segment: Segment, early: bool = False) -> None:
        """Add the segment that follows, or one that covers the last ones, too. Merges small ones.

        `early`: a longer segment will take its place; finish() then gives back the space in the file. Raises OSError
        when the file cannot be written, IndexDamaged when a segment to be merged cannot be read.
        """
        saved, self._saved = self._saved, False
        self._early |= bool(self.segments) and self.segments[-1].first_seq >= segment.first_seq
        self._take(segment)
        run = [] if early else self._mergeable()
        if len(run) > 1:
            segment = merged(run)
            self._take(segment)
        if self._waits():
            self._share(segment)
            return
        if not saved or not self._write(segment) or self._size > 2 * self.size_in_file + (1 << 16):
            self.rewrite()
        self._saved = True

    @property
    def is_waiting(self) -> bool:
        """Whether it is kept in memory because no record has a value."""
        return self.path is not None and bool(self.segments) and not self._size

    def _waits(self) -> bool:
        if not self.may_wait or self.path is None or self._size or not all(map(is_void, self.segments)):
            return False
        if self._is_first is None:
            is_there = self._fs.find(self.path) is not None  # of an earlier generation, say
            self._is_first = not is_there and is_first(self._fs, self.path.parent, self.path.name)
        return self._is_first

    def _share(self, segment: Segment) -> None:
        """Spans without any value are all alike: keep their bytes in memory once."""
        for other in self.segments[:-1]:
            if (other.kind, other.count, other.table.raw) == (segment.kind, segment.count, segment.table.raw):
                self.segments[-1] = segment.changed(blobs=other.blobs)

    def wait_as(self, other: Index) -> None:
        """Wait for a value as this index of an earlier generation did."""
        self.may_wait, self._is_first = other.may_wait, other._is_first

    def keep(self) -> None:
        """Give it a file in any case. Raises as rewrite() does."""
        self.may_wait = False
        if self.is_waiting:
            self.rewrite()

    def _mergeable(self) -> list[Segment]:
        """The last segments of the last span: all when it is full, else FAN_IN or more of about one size."""
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

    def finish(self) -> None:
        """Give back the space of segments that were saved early. Raises as rewrite() does."""
        if self._early:
            self.rewrite()

    def merge(self, *, apart: bool = False) -> None:
        """Bring the index into its canonical form, a segment a span, and rewrite its file.

        apart: what lies in files of its own stays there, instead of in the index file
        """
        spans: dict[int, list[Segment]] = {}
        for segment in self.segments:
            spans.setdefault(segment.first_seq // SPAN, []).append(segment)
        found = [merged(run) for run in spans.values()]
        self.segments = found if apart else [in_memory(each) if is_apart(each) else each for each in found]
        self.rewrite()
        self.remove_spans()

    def remove_spans(self) -> None:
        """Remove the files in which segments lay apart, and do no more. The lock is to be held."""
        if self.path is not None:
            remove_spans(self._fs, self.path, self.segments)

    def replace(self, segments: Sequence[Segment]) -> None:
        """Put other segments in place of all."""
        self._saved = False
        self.segments = list(segments)
        self.rewrite()

    def turn(self, change: Callable[[Segment], Segment]) -> None:
        """Put another segment in place of each; of those that are written, one at a time is in memory.

        Raises as rewrite() does; where the file cannot be written, they are all in memory.
        """
        self._saved = False
        try:
            self.rewrite(change)
        except (OSError, IndexForeign):
            self.segments = list(map(change, self.segments))
            raise

    def rewrite(self, change: Callable[[Segment], Segment] = lambda segment: segment) -> None:
        """Write the valid segments into a new file that replaces the old one.

        Raises OSError, IndexDamaged; IndexForeign where the old one is of a newer generation of the log.
        """
        if self.path is None or self._waits():
            self.segments = list(map(change, self.segments))
            return
        fs, head = self._fs, self._head.encode()
        written, sizes = list[Segment](), list[int]()

        def parts() -> Iterator[bytes | memoryview]:
            yield head
            for segment in map(change, self.segments):
                yield from entry(segment)
                written.append(_without_bytes(segment))
                sizes.append(entry_size(segment))

        fs.make_folders(self.path.parent)
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}-{id(self):x}.tmp")
        try:
            file = Descriptor(fs, temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            size = write_parts(fs, file.number, parts(), 0)
            if self._size:  # a new file, as later appends, is built again if a power failure takes it
                fs.fsync(file.number)
            self._refuse_newer()
            fs.rename(temporary, self.path)
        except BaseException:
            with suppress(OSError):
                remove_file(fs, temporary)
            raise
        if self._size:
            fs.sync_folder(self.path.parent)
        self._reader = FileReader(fs, self.path, file)
        self._size = self._seen = size
        self._early = False
        positions = accumulate(sizes, initial=len(head))
        self.segments = [self._at(*pair) for pair in zip(written, positions, strict=False)]
        self._saved = True

    def _refuse_newer(self) -> None:
        """Raise IndexForeign if the file is of a newer generation: this process knows an old state of the log."""
        assert self.path is not None
        found = head_of(self._fs, self.path)
        if found is not None and is_newer(found, self._head):
            raise IndexForeign(
                f"of generation {found.log.generation} of the log already, this is {self.log.generation}",
                path=self.name,
                generation=found.log.generation,
            )

    def _write(self, segment: Segment) -> bool:
        """Append the segment to the file; False when the file must be rewritten instead."""
        if self.path is None or self._reader is None or not self._size:
            return False
        fs = self._fs
        try:
            file = Descriptor(fs, self.path, os.O_WRONLY)
        except FileNotFoundError:
            return False
        with file as descriptor:
            # Another process may have appended to the file or replaced it; then this one must not append.
            found = fs.fstat(descriptor)
            if (self._reader.which, self._seen) != ((found.st_dev, found.st_ino), found.st_size):
                return self._adopt()
            if found.st_size > self._size:
                fs.truncate(descriptor, self._size)
            # Not synced: what a power failure takes of it fails its CRC, and is built again.
            position, self._size = self._size, write_parts(fs, descriptor, entry(segment), self._size)
        self._seen = self._size
        self.segments[-1] = self._at(segment, position)
        return True

    def _adopt(self) -> bool:
        """Take over the file that another process wrote, when it covers just what this index does."""
        other = Index(self.spec, self.log, self.path, self._fs)
        with suppress(IndexDamaged, OSError):
            other.load()
        if other._newest() != self._newest():
            return False
        self._become(other)
        return True

    def _newest(self) -> tuple[int, ...] | None:
        """Equal in two files of the same index if they cover the same records."""
        last = self.segments[-1] if self.segments else None
        return (last.kind, last.end_seq, last.end_offset, last.last_crc) if last is not None else None

    def _at(self, segment: Segment, position: int) -> Segment:
        """The segment as it lies in the file now."""
        segment = _without_bytes(segment)
        if is_apart(segment) or segment.blobs is not None:
            return segment
        body = position + segment.lead
        return segment.changed(read_at=self._reader, body_position=body, path=self.name)


def _without_bytes(segment: Segment) -> Segment:
    """A segment that was written: that of a full span drops its bytes in memory."""
    is_kept = segment.blobs is None or segment.end_seq % SPAN or is_apart(segment)
    return segment if is_kept else segment.changed(blobs=None)


def _level(segment: Segment) -> int:
    """Segments of one level have about one size: FAN_IN times the size is one level up."""
    return (max(segment.count, 1).bit_length() - 1) // (FAN_IN.bit_length() - 1)
