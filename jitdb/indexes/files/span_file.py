"""Files of one segment each, in the folder `spans` beside the index files. They never change, and their names tell so.

What builds in many places at once (spark_ext/building) writes such a file for each span. It counts once an entry in the
index file says where it lies; until then nothing of it is believed. So any number of processes write without a lock,
one that is lost leaves nothing behind but a file that no entry names, and the same segment has the same name whoever
wrote it: put if it is not there.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Final

from jitdb.common.digests import blake2b
from jitdb.errors import IndexDamaged
from jitdb.indexes.files.file import FileReader, Head, remove_file, write_parts
from jitdb.indexes.segment import Segment
from jitdb.log.io.filenames import SPANS
from jitdb.log.io.osfile import Descriptor, FileSystem

SUFFIX: Final = ".span"  # on disk: never change
DIGEST: Final = 8  # bytes
PLACE: Final = struct.Struct(f"<Q{DIGEST}sI")  # where in the file its blobs begin, its digest; crc32 of both


class SpanFile(FileReader):
    """Reads such a file, which is opened when it is first read. Raises IndexDamaged, of the index, where it is gone."""

    def __init__(self, fs: FileSystem, path: FilePath, digest: bytes, index: str) -> None:
        """`index`: what errors call it by"""
        self.path, self.fs, self.digest, self._index = path, fs, digest, index

    def _open_again(self) -> Descriptor:
        try:
            return Descriptor(self.fs, self.path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise IndexDamaged(f"{SPANS}/{self.path.name} is gone", path=self._index) from error


def span_path(index: FilePath, first_seq: int, digest: bytes) -> FilePath:
    """Where the file with this digest lies, of the index whose file has this path."""
    return index.parent / SPANS / f"{index.stem}.{first_seq:x}-{digest.hex()}{SUFFIX}"


def write_span(fs: FileSystem, index: FilePath, head: Head, segment: Segment) -> Segment:
    """Write the segment, all in memory, into a file of its own; the same segment, as it lies there.

    The folder must be there. Raises OSError.
    """
    first, parts = head.encode(), segment.parts()
    # Meta and table are in it, and so the CRC of every blob.
    digest = blake2b(b"".join([first, *segment.lead_parts()]), digest_size=DIGEST).digest()
    path = span_path(index, segment.first_seq, digest)
    temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        with Descriptor(fs, temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
            write_parts(fs, file, [first, *parts], 0)
        fs.rename(temporary, path)
    except BaseException:
        with suppress(OSError):
            remove_file(fs, temporary)
        raise
    body = len(first) + segment.lead
    return segment.changed(
        blobs=None, read_at=SpanFile(fs, path, digest, str(index)), body_position=body, path=str(index)
    )


def remove_spans(fs: FileSystem, index: FilePath, but: Iterable[Segment] = ()) -> None:
    """Remove the files of the spans of an index, whose lock is held, but for those that these segments lie in."""
    kept = {segment.read_at.path.name for segment in but if isinstance(segment.read_at, SpanFile)}
    with suppress(OSError):
        for name in fs.listdir(index.parent / SPANS):
            if name.startswith(f"{index.stem}.") and name not in kept:
                with suppress(OSError):
                    remove_file(fs, index.parent / SPANS / name)
