"""The file beside a dictionary's in which the numbers of its values are kept (kinds/codes.py), so that a process does
not number them anew.

It begins as the dictionary's own file does, and has CODES segments, each of which names by a CRC the segment of the
dictionary that it is of. It answers nothing by itself: where it is missing, torn, damaged, or of another state of the
dictionary, values are numbered again, without a word. It is written by who numbered them, with a lock of its own, which
nobody waits for: who does not get it keeps the numbers in memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Final

from jitdb.errors import IndexDamaged
from jitdb.indexes.files.file import FileReader, Head, read_head, remove_file, write_parts
from jitdb.indexes.files.folder import CODES_SUFFIX, take_locks
from jitdb.indexes.files.segment_reader import read_segment
from jitdb.indexes.kinds.codes import fresh_in, is_of
from jitdb.indexes.segment import CODES, Segment
from jitdb.log.io.osfile import Descriptor, FileSystem

if TYPE_CHECKING:
    from jitdb.indexes.files.index import Index

_MOST_WASTE: Final = 2  # times what is valid: a file that is longer is written anew


class CodesFile:
    """The file of one index; without one where the index has none."""

    def __init__(self, index: Index, fs: FileSystem) -> None:
        self.path = None if index.path is None else index.path.with_suffix(CODES_SUFFIX)
        self.name = str(self.path)
        self._fs, self._head = fs, Head(index.log, index.spec)
        self._reader: FileReader | None = None
        self._segments: list[Segment] = []  # those in the file that were taken
        self._size = 0  # of the file, up to which it is valid; 0: it is not
        self._is_believed = True

    def load(self, segments: Sequence[Segment]) -> list[Segment]:
        """The CODES segments of the first of these DICTIONARY segments, one of each, as far as the file has them."""
        if self.path is None or not self._is_believed:
            return []
        with suppress(OSError, IndexDamaged):
            self._reader = FileReader(self._fs, self.path)
            self._size = read_head(self._reader, self._head, self.name)
            self._read(self._reader)
        self._segments = list(_fitting(self._segments, segments))
        return self._segments

    def forgotten(self) -> CodesFile:
        """The same file, of which nothing is believed: it is written anew."""
        self._reader, self._segments, self._size, self._is_believed = None, [], 0, False
        return self

    def save(self, kept: int, made: Sequence[Segment]) -> list[Segment]:
        """Put these behind the first so many that were there; as they lie in the file now, or, where it cannot be
        written, as they are.
        """
        with suppress(OSError, IndexDamaged):
            if self.path is not None and self._fs.exists(self.path.parent):  # it goes along with a file that is renamed
                held = take_locks(self._fs, self.path.parent, [self.path.name])
                if held is not None:
                    with held:
                        return self._saved(self._segments[:kept], made)
        return list(made)

    def _read(self, reader: FileReader) -> None:
        while 0 < self._size < reader.size:
            try:
                found, following = read_segment(reader, self._size, reader.size, self.name)
            except EOFError:
                break
            if found.kind != CODES:
                break
            before = [each for each in self._segments if each.first_seq < found.first_seq]
            self._segments, self._size = [*before, found], following

    def _saved(self, kept: Sequence[Segment], made: Sequence[Segment]) -> list[Segment]:
        assert self.path is not None
        found = self._fs.find(self.path)
        now = None if found is None else (found.st_dev, found.st_ino, found.st_size)
        reader = self._reader
        if now is not None and reader is not None and self._size and now != (*reader.which, reader.size):
            return list(made)  # another process wrote it: the next one takes that over
        size = sum(each.size for each in (*kept, *made))
        if now is None or reader is None or not self._size or self._size > _MOST_WASTE * size:
            return self._rewritten(kept, made)
        positions = list(accumulate((each.size for each in made), initial=self._size))
        with Descriptor(self._fs, self.path, os.O_RDWR) as descriptor:
            if reader.size > self._size:
                self._fs.truncate(descriptor, self._size)
            # Not synced, as appends to indexes are not: what is lost fails its CRC.
            write_parts(self._fs, descriptor, chain.from_iterable(each.parts() for each in made), self._size)
        self._reader = FileReader(self._fs, self.path)
        return self._taken(kept, made, positions)

    def _rewritten(self, kept: Sequence[Segment], made: Sequence[Segment]) -> list[Segment]:
        assert self.path is not None
        head, every = self._head.encode(), [*kept, *made]
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}-{id(self):x}.tmp")
        positions = list(accumulate((each.size for each in every), initial=len(head)))
        try:
            file = Descriptor(self._fs, temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            write_parts(self._fs, file.number, chain([head], *(each.parts() for each in every)), 0)
            self._fs.rename(temporary, self.path)
        except BaseException:
            with suppress(OSError):
                remove_file(self._fs, temporary)
            raise
        self._reader = FileReader(self._fs, self.path, file)
        return self._taken([], every, positions)[len(kept) :]

    def _taken(self, kept: Sequence[Segment], made: Sequence[Segment], positions: Sequence[int]) -> list[Segment]:
        """Those that were made, as they lie in the file."""
        reader, name = self._reader, self.name
        placed = [
            each.changed(blobs=None, read_at=reader, body_position=at + each.lead, path=name)
            for each, at in zip(made, positions, strict=False)
        ]
        self._segments, self._size = [*kept, *placed], positions[-1]
        return placed


def _fitting(made: Sequence[Segment], segments: Sequence[Segment]) -> list[Segment]:
    """Those of the first of these DICTIONARY segments."""
    found: list[Segment] = []
    before = 0
    for each, segment in zip(made, segments, strict=False):
        if not is_of(each, segment, before):
            break
        found.append(each)
        before += fresh_in(each)
    return found
