"""Small files of one folder that are scanned, and counted, as one log: a bundle.

It lies in `.jitdb/NAME/` in the folder of its files (NAME being its identity, hex), with its indexes in `indexes/`, and
says in `members` which files they are, little-endian:

    0   "JBUNDL1\\n"
    8   identity   16 bytes: its name to indexes
    24  files      u32; of each: device, inode, size (u64 each), mtime, ctime (i64 each, nanoseconds), bytes of its name
                   (u16), name
        CRC-32 of all before

It is good as long as all these files are what they were. They may have other names in the folder by now.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.common.zlib import crc32
from jitdb.log.io import osfile
from jitdb.log.io.filenames import BUNDLED, temporary_name
from jitdb.log.lines.files.stamp import Stamp

_MAGIC: Final = b"JBUNDL1\n"
_HEAD: Final = struct.Struct("<8s16sI")
_FILE: Final = struct.Struct("<QQQqqH")
_CRC: Final = struct.Struct("<I")


class BundledFile(NamedTuple):
    """One of them, as it was when it was looked at: all of it is lines, the last of which has its newline."""

    name: str
    stamp: Stamp

    def is_in(self, folder: str) -> bool:
        """Whether it still is that file, under that name."""
        return _stamp_at(os.path.join(folder, self.name)) == self.stamp

    def is_renamed(self, there: Stamp) -> bool:
        """Whether it is the file of this stamp, which has another name: to rename a file changes its ctime alone."""
        return self.stamp[:4] == there[:4]


class Bundle(NamedTuple):
    """See the head of this file.

    folder: of the files
    place:  the bundle's own folder; None where it is kept in memory
    """

    folder: str
    place: Path | None
    identity: bytes
    files: tuple[BundledFile, ...]

    @property
    def path(self) -> str:
        """What it is called by those who take it for a log."""
        return os.path.join(self.folder, self.identity.hex())

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.stamp.size for file in self.files)

    def paths(self) -> set[str]:
        """Of the files."""
        return {os.path.join(self.folder, file.name) for file in self.files}

    def is_current(self) -> bool:
        """Whether all files are what they were. One `stat` each."""
        return all(file.is_in(self.folder) for file in self.files)

    def changed(self) -> set[str]:
        """The names of the files that are not what they were, or not there."""
        return {file.name for file in self.files if not file.is_in(self.folder)}

    def look(self) -> bytes | None:
        """Its identity, as long as all files are what they were."""
        return self.identity if self.is_current() else None

    def followed(self) -> Bundle | None:
        """With the names that its files have now; None where one is changed, or gone."""
        gone = [file for file in self.files if not file.is_in(self.folder)]
        if not gone:
            return self
        there = dict(_files_in(self.folder))
        found = {file: there.get(file.stamp.inode) for file in gone}
        if any(now is None or now.name == was.name or not was.is_renamed(now.stamp) for was, now in found.items()):
            return None
        return self._replace(files=tuple(found.get(file) or file for file in self.files))

    def pack(self) -> bytes:
        parts = [_HEAD.pack(_MAGIC, self.identity, len(self.files))]
        for file in self.files:
            name = os.fsencode(file.name)
            parts += [_FILE.pack(*file.stamp, len(name)), name]
        body = b"".join(parts)
        return body + _CRC.pack(crc32(body))

    def write(self) -> None:
        """Put it into its folder, which is made. Who may not read the files cannot read it either. Raises OSError."""
        assert self.place is not None
        fs, first = osfile.fs, osfile.fs.stat(Path(self.folder, self.files[0].name))
        with suppress(FileExistsError):
            fs.mkdir(self.place, 0o700)
        with osfile.Descriptor(fs, self.place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) as fd:
            fs.share(fd, first)
        temporary = self.place / temporary_name(BUNDLED)
        with osfile.Descriptor(fs, temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd:
            fs.share(fd, first)
            fs.write(fd, self.pack(), 0)
        fs.rename(temporary, self.place / BUNDLED)  # not durably: what a power failure takes is made anew


def unpack(data: bytes, folder: str, place: Path) -> Bundle | None:
    """What is told there; None where the bytes are not what was written."""
    body = data[: -_CRC.size]
    if len(data) < _HEAD.size + _CRC.size or _CRC.pack(crc32(body)) != data[-_CRC.size :]:
        return None
    magic, identity, count = _HEAD.unpack_from(body)
    if magic != _MAGIC:
        return None
    files, at = list[BundledFile](), _HEAD.size
    for _ in range(count):
        *stamp, length = _FILE.unpack_from(body, at)
        at += _FILE.size + length
        files.append(BundledFile(os.fsdecode(body[at - length : at]), Stamp(*stamp)))
    return Bundle(folder, place, identity, tuple(files))


def _stamp_at(path: str) -> Stamp | None:
    try:
        found = osfile.fs.stat(path)
    except OSError:
        return None
    return Stamp.of(found) if stat.S_ISREG(found.st_mode) else None


def _files_in(folder: str) -> Iterator[tuple[int, BundledFile]]:
    """The files of a folder by their inodes."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False) and (stamp := _stamp_at(entry.path)) is not None:
                yield stamp.inode, BundledFile(entry.name, stamp)
