"""What is known of somebody else's file, and what a look at it tells: is it still that file, and what became of it?

Processes tell each other by the file `lines`, under the lock of `lines-lock` (docs/json-lines.md). Where they lie,
places.py says. Little-endian:

    0   "JLINES2\\n"
    8   identity           16 bytes: the file's name to indexes and cursors
    24  token              8 bytes: another one each time that the file may have been edited
    32  device, inode      u64, u64
    48  size               u64, bytes
    56  mtime, ctime       i64, i64, nanoseconds
    72  end                u64: just past the newline of the last line, which need not be written yet (files/file.py); 0
                           as long as nobody has decompressed the file
    80  head, tail         u32, u32: CRC-32 of the first and the last 64 KiB (or all, if there is less) before `end`
    88  length             u16, of the name
    90  name               that the file had in its folder when this was written
        CRC-32 of all before

"JLINES1\\n", with the CRC at 88, is what was written beside the file (`NAME.jitdb/`) before.

A look costs a call of stat where nothing changed, and the two CRCs where the file has grown.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.common.digests import blake2b
from jitdb.common.zlib import crc32
from jitdb.log.io import osfile
from jitdb.log.io.filenames import LINES, LINES_LOCK
from jitdb.log.lines.files.file import LineFile
from jitdb.log.lines.files.stamp import Stamp

_MAGIC: Final = b"JLINES2\n"
_BEFORE: Final = b"JLINES1\n"
_FORM: Final = struct.Struct("<8s16s8sQQQqqQII")
_LENGTH: Final = struct.Struct("<H")
_CRC: Final = struct.Struct("<I")
_PATIENCE: Final = 2.0  # seconds to wait for another process, which needs a millisecond
_PAUSE: Final = 0.002
_WRITE: Final = 0.005  # seconds that a write may take; mostly a microsecond

NO_TOKEN: Final = bytes(8)  # of a file that was never edited since it was first seen


class Verdict(IntEnum):
    """What became of a file; the worst is last."""

    SAME = 0
    GROWN = 1
    DOUBTFUL = 2  # all its blocks must be compared with their checksums
    ANOTHER = 3  # what was indexed is void


class Known(NamedTuple):
    """See the head of this file. `name` is empty where nobody wrote it down."""

    identity: bytes
    token: bytes
    stamp: Stamp
    end: int
    head: int
    tail: int
    name: str = ""

    @classmethod
    def fresh(cls, stamp: Stamp, file: LineFile) -> Known:
        """Of a file that is seen for the first time: a new name, and no lines yet.

        An object, which never changes, has the same name on all machines.
        """
        name = blake2b(struct.pack("<QQQqq", *stamp), digest_size=16).digest() if file.is_object else os.urandom(16)
        return cls(name, NO_TOKEN, stamp, 0, 0, 0)

    def pack(self) -> bytes:
        name = os.fsencode(self.name)
        body = _FORM.pack(_MAGIC, self.identity, self.token, *self.stamp, self.end, self.head, self.tail)
        body += _LENGTH.pack(len(name)) + name
        return body + _CRC.pack(crc32(body))

    @classmethod
    def unpack(cls, data: bytes) -> Known | None:
        """None where the bytes are not what was written."""
        size = _FORM.size
        if data.startswith(_MAGIC) and len(data) >= size + _LENGTH.size:
            size += _LENGTH.size + _LENGTH.unpack_from(data, size)[0]
        elif not data.startswith(_BEFORE):
            return None
        if len(data) < size + _CRC.size or crc32(data[:size]) != _CRC.unpack_from(data, size)[0]:
            return None
        _, identity, token, device, inode, length, mtime, ctime, end, head, tail = _FORM.unpack_from(data)
        name = os.fsdecode(data[_FORM.size + _LENGTH.size : size])
        return cls(identity, token, Stamp(device, inode, length, mtime, ctime), end, head, tail, name)

    def judge(self, file: LineFile, stamp: Stamp, *, is_settled: bool) -> Verdict:
        """What became of the file, whose stamp is this now. `is_settled`: an unchanged stamp proves it unchanged.

        Raises OSError.
        """
        if file.is_object:
            return Verdict.SAME if stamp == self.stamp else Verdict.ANOTHER
        if stamp == self.stamp and is_settled:
            return Verdict.SAME
        if not self.end and not stamp.is_of(self.stamp):
            return Verdict.ANOTHER  # nothing proves that it is a copy
        guarded = file.guarded(self.end, self.stamp.size)
        if file.crcs(guarded) != (self.head, self.tail):
            return Verdict.ANOTHER
        if stamp == self.stamp:
            return Verdict.SAME
        if stamp.is_of(self.stamp) and (stamp.size > self.stamp.size or _is_growing(file, stamp, self.stamp)):
            return Verdict.GROWN
        return Verdict.DOUBTFUL

    def seen(self, file: LineFile, stamp: Stamp, end: int) -> Known:
        """The same as it is now."""
        if file.is_object:  # whose stamp is enough
            return self._replace(stamp=stamp, end=end)
        before, guarded = file.guarded(self.end, self.stamp.size), file.guarded(end, stamp.size)
        head, tail = (self.head, self.tail) if guarded == before and self.end else file.crcs(guarded) or (0, 0)
        return self._replace(stamp=stamp, end=end, head=head, tail=tail)


def _is_growing(file: LineFile, stamp: Stamp, before: Stamp) -> bool:
    """Whether the stamp is of the middle of a write: the system notes its time first, and then the new size."""
    if stamp.size != before.size or stamp.mtime == before.mtime or stamp.is_settled():
        return False
    late = time.monotonic() + _WRITE
    while (now := file.stamp()) == stamp and time.monotonic() < late:
        time.sleep(_WRITE / 10)
    return now.is_of(stamp) and now.size > stamp.size


def stored_in(folder: Path) -> Known | None:
    """What `lines` in this folder says; None where it is missing or damaged."""
    with suppress(OSError):
        data = osfile.fs.read_if_there(folder / LINES)
        return None if data is None else Known.unpack(data)
    return None


def write_known(folder: Path, known: Known) -> None:
    """In place: under the lock readers see all or nothing. Not durably: after a power failure it is made anew.

    What a longer name left behind its CRC is no part of it.
    """
    with osfile.Descriptor(osfile.fs, folder / LINES, os.O_WRONLY | os.O_CREAT) as fd:
        osfile.fs.write(fd, known.pack(), 0)


@contextmanager
def locked(folder: Path, *, make: bool = True, like: os.stat_result | None = None) -> Iterator[None]:
    """Hold the lock of the folder. Raises OSError.

    make: it, if it is not there
    like: whose owner and permissions it gets, and all that is made in it; None: as the names above it say
    """
    late = time.monotonic() + _PATIENCE
    while True:
        with ExitStack() as held:
            if not make and not folder.is_dir():
                raise FileNotFoundError(f"{folder} is not there")
            if _is_taken(folder, held, late, like):
                yield
                return
        if time.monotonic() > late:
            raise TimeoutError(f"{folder} is moved again and again")


def _is_taken(folder: Path, held: ExitStack, late: float, like: os.stat_result | None) -> bool:
    """Take the lock of the folder; False where that was moved or removed meanwhile. Raises OSError."""
    osfile.fs.make_folders(folder)
    try:
        if like is not None:
            _share(folder, like)
        lock = held.enter_context(osfile.Descriptor(osfile.fs, folder / LINES_LOCK, os.O_RDWR | os.O_CREAT))
        while not osfile.fs.lock(lock):
            if time.monotonic() > late:
                raise TimeoutError(f"{folder / LINES_LOCK} is held by another process")
            time.sleep(_PAUSE)
        return osfile.fs.is_at(folder / LINES_LOCK, lock)
    except FileNotFoundError:
        return False


def _share(folder: Path, like: os.stat_result) -> None:
    """First the file from which all others in the folder have their permissions (log_beside), then the folder."""
    fs = osfile.fs
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    found = fs.find(folder / LINES)
    if found is not None and _permissions(found) == (like.st_uid, like.st_gid, like.st_mode & 0o666 | 0o600):
        return
    with suppress(PermissionError):  # they are another user's, who lets us write
        with osfile.Descriptor(fs, folder / LINES, os.O_RDWR | os.O_CREAT, 0o600) as fd:
            fs.share(fd, like)
        with osfile.Descriptor(fs, folder, flags) as fd:
            fs.share(fd, like)


def _permissions(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_uid, found.st_gid, found.st_mode & 0o7777
