"""Many files that are scanned, and asked, as one log: a bundle. Its text is that of its files, one behind the other.

It lies in `.jitdb/NAME/` in a folder above its files (NAME being its identity, hex), with its indexes in `indexes/`,
and says in `members` which files they are, little-endian:

    0   "JBUNDL3\\n"
    8   identity   16 bytes: its name to indexes
    24  kind       u32: bytes of the text behind `files`, JSON: what all its files have in common (Kind)
    28  files      u32; behind the kind, of each: device, inode, size (u64 each), mtime, ctime (i64 each, nanoseconds),
                   bytes of text (u64), CRC-32 of its first and last 4 KiB (u32), the compression (u8: 0 none, 1 gzip,
                   2 zstd), bytes of the newline that its text lacks (u8), bytes of its name (u16)
        the names, one behind the other: paths from that folder on. Without a name: the file is not what it was
        CRC-32 of all before

It grows: files are written behind the last one, so that indexes go on as those of any log that grew. A file that was
changed, removed or replaced leaves its stretch of the text without records: nobody asks for them. What it is now is
another file. Files keep their places when they are renamed.

A bundle whose kind has no form has no text: its files were looked at, and are asked one by one as long as they are what
they were.
"""

from __future__ import annotations

import json
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from jitdb.common.formats import COMPRESSIONS
from jitdb.common.paths import Path as FieldPath
from jitdb.common.zlib import crc32
from jitdb.errors import InvalidArgument
from jitdb.log.io import osfile
from jitdb.log.io.filenames import BUNDLED, temporary_name
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.lines.form import LineForm
from jitdb.log.objects.door import fs_of
from jitdb.log.objects.urls import is_url

ENDS: Final = 4096  # bytes at the beginning and at the end of a file that tell it from another

_MAGIC: Final = b"JBUNDL3\n"
_HEAD: Final = struct.Struct("<8s16sII")
_FILE: Final = struct.Struct("<QQQqqQIBBH")
_CRC: Final = struct.Struct("<I")
_COMPRESSIONS: Final = ("", *COMPRESSIONS)


class Kind(NamedTuple):
    """What all files of a bundle have in common.

    access: owner, group and mode
    form:   how their lines become records; None: the files are asked one by one
    time:   the fields of the time that their first records have; None where these do not tell
    month:  in which they were changed last, as 202611, where their times lack the year; else 0
    """

    access: tuple[int, int, int]
    form: LineForm | None = None
    time: tuple[FieldPath, ...] | None = None
    month: int = 0

    @classmethod
    def unpack(cls, text: bytes) -> Kind | None:
        """None where it is none that was packed."""
        try:
            access, form, time, month = json.loads(text)
            if form is not None:
                form = LineForm(bool(form[0]), tuple(form[1]), str(form[2]), str(form[3]), bool(form[4]))
                _ = form.row
            paths = None if time is None else tuple(tuple(path) for path in time)
            uid, gid, mode = map(int, access)
            return cls((uid, gid, mode), form, paths, int(month))
        except (ValueError, TypeError, LookupError, RecursionError, InvalidArgument):
            return None

    def pack(self) -> bytes:
        return json.dumps(self).encode()


class BundledFile(NamedTuple):
    """One of them, as it was when it was looked at.

    name:        its path from the bundle's folder on; empty: it is not that any more
    size:        bytes of its text, with the newline that it may lack
    ends:        CRC-32 of its first and last bytes; 0 of a compressed one
    lacking:     bytes of that newline
    """

    name: str
    stamp: Stamp
    size: int = 0
    ends: int = 0
    compression: str = ""
    lacking: int = 0

    def is_in(self, folder: str) -> bool:
        """Whether it still is that file, under that name."""
        return bool(self.name) and self.now_in(folder) == self.stamp

    def now_in(self, folder: str) -> Stamp | None:
        """The stamp of the file that has its name now. Of an object that nobody listed or read since, its own."""
        path = os.path.join(folder, self.name)
        if not is_url(path):
            return lstamp(path)
        from jitdb.log.objects.files import FILES

        if not FILES.is_told(path):
            return self.stamp
        return lstamp(path)

    def is_beginning_of(self, path: str, there: Stamp) -> bool:
        """Whether the file at this path, of this stamp, is it with another name or more lines."""
        if self.is_renamed(there):
            return True
        if self.stamp[:2] != there[:2] or self.stamp.size >= there.size or self.compression:
            return False
        with suppress(OSError), osfile.Descriptor(osfile.fs, path, os.O_RDONLY | os.O_NOFOLLOW) as fd:
            return ends_crc(osfile.fs.read(fd, self.stamp.size, 0)) == self.ends
        return False

    def is_renamed(self, there: Stamp) -> bool:
        """Whether it is the file of this stamp, which has another name: to rename a file changes its ctime alone."""
        return self.stamp[:4] == there[:4]


class Bundle(NamedTuple):
    """See the head of this file.

    folder: from which the names of the files lead
    place:  the bundle's own folder; None where it is kept in memory
    """

    folder: str
    place: Path | None
    identity: bytes
    kind: Kind
    files: tuple[BundledFile, ...] = ()

    @property
    def path(self) -> str:
        """The path that stands for it as a log."""
        return os.path.join(self.folder, self.identity.hex())

    @property
    def size(self) -> int:
        """Bytes of text, of all that are or were in it."""
        return sum(file.size for file in self.files)

    @property
    def live(self) -> int:
        """Bytes of text that count."""
        return sum(file.size for file in self.files if file.name)

    def begins(self) -> list[int]:
        """Where the text of each file begins, and where that of the last one ends."""
        return list(accumulate((file.size for file in self.files), initial=0))

    def path_of(self, file: BundledFile) -> str:
        return f"{self.folder}{file.name}" if self.folder.endswith("/") else f"{self.folder}/{file.name}"

    def paths(self) -> set[str]:
        """Of the files."""
        return {self.path_of(file) for file in self.files if file.name}

    def is_gone(self) -> bool:
        """Whether no file is what it was."""
        return not any(file.is_in(self.folder) for file in self.files)

    def is_changed(self) -> bool:
        """Whether some file is not what it was."""
        return not all(file.is_in(self.folder) for file in self.files)

    def grown(self) -> Iterator[tuple[BundledFile, str | None]]:
        """The files, each with its name of now; None for one that is gone, or has not just got more lines."""
        there = dict[str, dict[int, tuple[str, Stamp]]]()
        for file in self.files:
            top = os.path.dirname(file.name)
            if top not in there:
                there[top] = files_in(os.path.join(self.folder, top))
            name, stamp = there[top].get(file.stamp.inode, ("", None))
            name = os.path.join(top, name)
            is_it = file.name and stamp is not None and file.is_beginning_of(os.path.join(self.folder, name), stamp)
            yield file, name if is_it else None

    def pack(self) -> bytes:
        kind, names = self.kind.pack(), [os.fsencode(file.name) for file in self.files]
        parts = [_HEAD.pack(_MAGIC, self.identity, len(kind), len(names)), kind]
        for file, name in zip(self.files, names, strict=True):
            number = _COMPRESSIONS.index(file.compression)
            parts.append(_FILE.pack(*file.stamp, file.size, file.ends, number, file.lacking, len(name)))
        body = b"".join(parts + names)
        return body + _CRC.pack(crc32(body))

    def write(self) -> None:
        """Write it into its folder, with the permissions of the files. Raises OSError.

        Durably once it has indexes: these would say what other files do, written where its last ones were.
        """
        assert self.place is not None
        fs, temporary = osfile.fs, self.place / temporary_name(BUNDLED)
        is_first = not fs.exists(self.place / BUNDLED)
        path = self.path_of(next(file for file in self.files if file.name))
        first = fs_of(path).lstat(path)
        with suppress(FileExistsError):
            fs.mkdir(self.place, 0o700)
        if is_first:
            with osfile.Descriptor(fs, self.place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) as fd:
                fs.share(fd, first)
        with osfile.Descriptor(fs, temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd:
            fs.share(fd, first)
            fs.write(fd, self.pack(), 0)
            if not is_first:
                fs.fsync(fd)
        fs.rename(temporary, self.place / BUNDLED)
        if not is_first:
            fs.sync_folder(self.place)


def unpack(data: bytes, folder: str, place: Path) -> Bundle | None:
    """The bundle in these bytes; None where they are damaged."""
    body = data[: -_CRC.size]
    if len(data) < _HEAD.size + _CRC.size or _CRC.pack(crc32(body)) != data[-_CRC.size :]:
        return None
    magic, identity, size, count = _HEAD.unpack_from(body)
    names = _HEAD.size + size + count * _FILE.size
    kind = Kind.unpack(body[_HEAD.size : _HEAD.size + size]) if magic == _MAGIC and names <= len(body) else None
    if kind is None:
        return None
    rows = list(_FILE.iter_unpack(body[_HEAD.size + size : names]))
    ends = list(accumulate((row[-1] for row in rows), initial=names))
    files = [_file(row, os.fsdecode(body[begin:end])) for row, (begin, end) in zip(rows, pairwise(ends), strict=True)]
    found = tuple(file for file in files if file is not None)
    if ends[-1] != len(body) or len(found) != count or not any(file.name for file in found):
        return None
    return Bundle(folder, place, identity, kind, found)


def _file(row: tuple[Any, ...], name: str) -> BundledFile | None:
    *stamp, size, ends, compression, lacking, _ = row
    is_odd = "\0" in name or name.startswith("/") or any(part in ("..", ".") for part in name.split("/"))
    if is_odd or compression >= len(_COMPRESSIONS) or lacking > 2 or size >= 1 << 48:
        return None
    return BundledFile(name, Stamp(*stamp), size, ends, _COMPRESSIONS[compression], lacking)


def lstamp(path: str) -> Stamp | None:
    """That of the file at this path; None where there is none, or a link, whose file is in no bundle."""
    try:
        found = fs_of(path).lstat(path)
    except OSError:
        return None
    return Stamp.of(found) if stat.S_ISREG(found.st_mode) else None


def ends_crc(data: bytes) -> int:
    """The CRC-32 of the first and the last bytes of what a file held."""
    return crc32(data[:ENDS] + data[max(len(data) - ENDS, 0) :])


def files_in(folder: str) -> dict[int, tuple[str, Stamp]]:
    """The files of a folder by their inodes."""
    found = dict[int, tuple[str, Stamp]]()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False) and (stamp := lstamp(entry.path)) is not None:
                found[stamp.inode] = entry.name, stamp
    return found
