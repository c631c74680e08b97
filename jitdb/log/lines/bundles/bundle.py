"""Small files of one folder that are scanned, and counted, as one log: a bundle.

It lies in `.jitdb/NAME/` in the folder of its files (NAME being its identity, hex), with its indexes in `indexes/`, and
says in `members` which files they are, little-endian:

    0   "JBUNDL2\\n"
    8   identity   16 bytes: its name to indexes
    24  is_timed   u32: 1 where the first records of all files have their time in the same fields, 2 where these do not
                   tell, 0 where nobody looked
    28  files      u32; of each: device, inode, size (u64 each), mtime, ctime (i64 each, nanoseconds), CRC-32 of its
                   first and last 4 KiB (u32), bytes of its name (u16), name
        CRC-32 of all before

It is good as long as all these files are what they were. They may have other names in the folder by now.

A file goes into a bundle if it is small, seems to be JSON Lines to its end, and has no indexes of its own. One that was
changed since is asked on its own, and so gets some: a file that grows is in a bundle once, for as long as it does not.
The process that finds a bundle void removes it under the folder's lock, and puts the other files into a new one.
"""

from __future__ import annotations

import os
import pwd
import stat
import struct
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from jitdb.common.paths import Path as FieldPath
from jitdb.common.zlib import crc32
from jitdb.log.io import osfile
from jitdb.log.io.filenames import BUNDLED, is_bundle_name, temporary_name
from jitdb.log.lines.detection import form_of
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.lines.keeping.known import locked

SMALL: Final = 4 << 20  # bytes of a file whose scan takes no longer than what Python does about it
LEAST: Final = 8  # files of a bundle: fewer are asked one by one
LARGEST: Final = 128 << 20  # bytes of a bundle, about: to scan so many takes some 60 ms, once one of its files changed

_FIRST: Final = 4096  # bytes that show the format of lines; so many at the end, too, tell a file from another
_MOST: Final = 1024  # files of a bundle: each is looked at whenever it is asked
_MAGIC: Final = b"JBUNDL2\n"
_HEAD: Final = struct.Struct("<8s16sII")
_FILE: Final = struct.Struct("<QQQqqIH")
_CRC: Final = struct.Struct("<I")
_TIMED: Final = (None, True, False)


#: The fields of the time of a bundle of one file, which begins with these bytes; None: these do not tell.
TimeOf: TypeAlias = "Callable[[Bundle, bytes], tuple[FieldPath, ...] | None]"


class BundledFile(NamedTuple):
    """One of them, as it was when it was looked at: all of it is lines, the last of which has its newline.

    ends: CRC-32 of its first and last bytes
    """

    name: str
    stamp: Stamp
    ends: int = 0

    def is_in(self, folder: str) -> bool:
        """Whether it still is that file, under that name."""
        return _stamp_at(os.path.join(folder, self.name)) == self.stamp

    def is_beginning_of(self, path: str, there: Stamp) -> bool:
        """Whether the file at this path, of this stamp, is it with another name or more lines."""
        if self.is_renamed(there):
            return True
        if self.stamp[:2] != there[:2] or self.stamp.size >= there.size:
            return False
        with suppress(OSError), osfile.Descriptor(osfile.fs, path, os.O_RDONLY | os.O_NOFOLLOW) as fd:
            return _ends(fd, self.stamp.size)[1] == self.ends
        return False

    def is_renamed(self, there: Stamp) -> bool:
        """Whether it is the file of this stamp, which has another name: to rename a file changes its ctime alone."""
        return self.stamp[:4] == there[:4]


class Bundle(NamedTuple):
    """See the head of this file.

    folder: of the files
    place:  the bundle's own folder; None where it is kept in memory
    is_timed: the first records of all files have their time in the same fields; None: nobody looked
    """

    folder: str
    place: Path | None
    identity: bytes
    files: tuple[BundledFile, ...]
    is_timed: bool | None = None

    @property
    def path(self) -> str:
        """The path that stands for it as a log."""
        return os.path.join(self.folder, self.identity.hex())

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.stamp.size for file in self.files)

    @property
    def is_sorted(self) -> bool:
        """Whether the files lie in it by their names."""
        return all(one.name < other.name for one, other in pairwise(self.files))

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
        there = _files_in(self.folder)
        found = dict[BundledFile, BundledFile]()
        for file in gone:
            name, stamp = there.get(file.stamp.inode, (file.name, file.stamp))
            if name == file.name or not file.is_renamed(stamp):
                return None
            found[file] = BundledFile(name, stamp, file.ends)
        return self._replace(files=tuple(found.get(file, file) for file in self.files))

    def grown(self) -> Iterator[tuple[BundledFile, str | None]]:
        """The files, each with its name of now; None for one that is gone, or has not just got more lines."""
        there = _files_in(self.folder)
        for file in self.files:
            name, stamp = there.get(file.stamp.inode, ("", None))
            is_it = stamp is not None and file.is_beginning_of(os.path.join(self.folder, name), stamp)
            yield file, name if is_it else None

    def pack(self) -> bytes:
        parts = [_HEAD.pack(_MAGIC, self.identity, _TIMED.index(self.is_timed), len(self.files))]
        for file in self.files:
            name = os.fsencode(file.name)
            parts += [_FILE.pack(*file.stamp, file.ends, len(name)), name]
        body = b"".join(parts)
        return body + _CRC.pack(crc32(body))

    def write(self) -> None:
        """Write it into a new folder, with the permissions of the files. Raises OSError."""
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
    """The bundle in these bytes; None where they are damaged."""
    body = data[: -_CRC.size]
    if len(data) < _HEAD.size + _CRC.size or _CRC.pack(crc32(body)) != data[-_CRC.size :]:
        return None
    magic, identity, is_timed, count = _HEAD.unpack_from(body)
    if magic != _MAGIC:
        return None
    files, at = list[BundledFile](), _HEAD.size
    while at + _FILE.size <= len(body):
        *stamp, ends, length = _FILE.unpack_from(body, at)
        at += _FILE.size + length
        files.append(BundledFile(os.fsdecode(body[at - length : at]), Stamp(*stamp), ends))
    names = {file.name for file in files}
    is_whole = is_timed < len(_TIMED) and at == len(body) and 0 < count == len(names) == len(files)
    if not is_whole or any(not name or "/" in name or "\0" in name for name in names):
        return None
    return Bundle(folder, place, identity, tuple(files), _TIMED[is_timed])


def _stamp_at(path: str) -> Stamp | None:
    try:
        found = osfile.fs.lstat(path)  # what a link leads to is in no bundle
    except OSError:
        return None
    return Stamp.of(found) if stat.S_ISREG(found.st_mode) else None


def _files_in(folder: str) -> dict[int, tuple[str, Stamp]]:
    """The files of a folder by their inodes."""
    found = dict[int, tuple[str, Stamp]]()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False) and (stamp := _stamp_at(entry.path)) is not None:
                found[stamp.inode] = entry.name, stamp
    return found


def _ends(fd: int, size: int) -> tuple[bytes, int]:
    """The first bytes of an open file that had this size, and the CRC-32 of these and its last."""
    head = osfile.fs.read(fd, min(_FIRST, size), 0)
    tail = osfile.fs.read(fd, min(_FIRST, size), max(size - _FIRST, 0))
    return head, crc32(head + tail)


class _Candidate(NamedTuple):
    """access and time are the same of all files of one bundle.

    access: owner, group and mode
    time:   the fields of the time that its first records have; None where these do not tell
    """

    access: tuple[int, int, int]
    time: tuple[FieldPath, ...] | None
    file: BundledFile

    @property
    def kind(self) -> Hashable:
        return self.access, self.time


def find_bundles(
    folder: str,
    store: Path | None,
    names: Collection[str],
    has_own: Callable[[str], bool],
    changed: set[str],
    time_of: TimeOf | None,
) -> list[Bundle]:
    """The bundles of the files in this folder: those that are good, and new ones of these names.

    store:   the folder of bundles; None where they are in memory
    has_own: whether the file of this name has indexes of its own
    changed: names of files that are to be asked on their own; those that were changed since they were in a bundle are
             put there
    time_of: tells which files have their time in the same fields; None: nobody needs to know
    """
    stored = [] if store is None else list(_stored(folder, store))
    good = [bundle for _, bundle in stored if bundle is not None and bundle.is_current()]
    held = {file.name for bundle in good for file in bundle.files}
    wanted = [name for name in names if name not in held and name not in changed and not has_own(name)]
    if len(good) == len(stored) and len(wanted) < LEAST:
        return good
    # Before the lock is taken: to look at many files takes longer than others wait for it.
    found = [candidate for name in wanted if (candidate := _candidate(folder, name, time_of)) is not None]
    if store is None:
        return _formed(folder, None, found, time_of)
    try:
        with locked(store):
            good = list(_kept(folder, store, changed))
            held = {file.name for bundle in good for file in bundle.files} | changed
            return good + _formed(folder, store, [each for each in found if each.file.name not in held], time_of)
    except OSError:
        return good


def remove(bundle: Bundle) -> None:
    """Remove it. Its files are asked one by one until another bundle is made of them."""
    if bundle.place is not None:
        with suppress(OSError), locked(bundle.place.parent):
            osfile.fs.remove(bundle.place)


def stored_bundles(folder: str, store: Path) -> list[Bundle]:
    """All that lie there, good or void."""
    return [bundle for _, bundle in _stored(folder, store) if bundle is not None]


def _stored(folder: str, store: Path) -> Iterator[tuple[Path, Bundle | None]]:
    with suppress(OSError):
        for name in sorted(osfile.fs.listdir(store)):
            place, data = store / name, None
            if not is_bundle_name(name):
                continue
            with suppress(OSError):
                data = osfile.fs.read_if_there(place / BUNDLED)
            bundle = None if data is None else unpack(data, folder, place)
            yield place, None if bundle is None or _shows_more(place / BUNDLED, bundle) else bundle


def _shows_more(listed: Path, bundle: Bundle) -> bool:
    """Whether others can read another user's list, but not all its files: indexes get the list's permissions."""
    fs = osfile.fs
    try:
        found = fs.lstat(listed)
        if found.st_uid in (0, os.geteuid()):
            return False
        return any(_shows(found, fs.lstat(os.path.join(bundle.folder, file.name))) for file in bundle.files)
    except OSError:
        return False  # a file is gone, and the bundle is void


def _shows(listed: os.stat_result, file: os.stat_result) -> bool:
    if file.st_mode & stat.S_IROTH:
        return False
    groups_file = file.st_gid if file.st_mode & stat.S_IRGRP else None
    if listed.st_mode & stat.S_IROTH or (listed.st_mode & stat.S_IRGRP and listed.st_gid != groups_file):
        return True
    return listed.st_uid != file.st_uid and groups_file not in _groups(listed.st_uid)


def _groups(user: int) -> list[int]:
    """Those that a user is in; none where nobody knows that."""
    with suppress(KeyError):
        known = pwd.getpwuid(user)
        return os.getgrouplist(known.pw_name, known.pw_gid)
    return []


def _kept(folder: str, store: Path, changed: set[str]) -> Iterator[Bundle]:
    """Those that are good; others are removed. The lock is held."""
    for place, bundle in _stored(folder, store):
        now = None if bundle is None else bundle.followed()
        if now is None:
            if bundle is not None:
                changed |= bundle.changed()
            osfile.fs.remove(place)
            continue
        if now != bundle:
            now.write()
        yield now


def _formed(folder: str, store: Path | None, found: Sequence[_Candidate], time_of: TimeOf | None) -> list[Bundle]:
    """New bundles of these files. Raises OSError."""
    made = []
    kinds = defaultdict[Hashable, list[_Candidate]](list)
    for candidate in found:
        kinds[candidate.kind].append(candidate)
    for alike in kinds.values():
        for files in _parts([candidate.file for candidate in alike]):
            identity = os.urandom(16)
            place = None if store is None else store / identity.hex()
            is_timed = None if time_of is None else alike[0].time is not None
            bundle = Bundle(folder, place, identity, tuple(files), is_timed)
            if store is not None:
                bundle.write()
            made.append(bundle)
    return made


def _parts(files: list[BundledFile]) -> Iterator[list[BundledFile]]:
    """Cut into parts of about one number of files, none larger than need be."""
    size = sum(file.stamp.size for file in files)
    count = max(-(-size // LARGEST), -(-len(files) // _MOST))
    for number in range(count):
        part = files[len(files) * number // count : len(files) * (number + 1) // count]
        if len(part) >= LEAST:
            yield part


def _candidate(folder: str, name: str, time_of: TimeOf | None) -> _Candidate | None:
    """The file, if it may be in a bundle."""
    fs = osfile.fs
    with suppress(OSError), osfile.Descriptor(fs, os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW) as fd:
        found = fs.fstat(fd)
        stamp = Stamp.of(found)
        is_small = 0 < stamp.size <= SMALL and stamp.is_settled()
        # Where the first line is JSON, it is an object then. Where it is not, the scan finds that out, and each file of
        # the bundle is opened on its own, which looks more closely.
        if not is_small or fs.read(fd, 1, stamp.size - 1) != b"\n":
            return None
        head, ends = _ends(fd, stamp.size)
        if _are_plain(head):
            access = found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)
            file = BundledFile(name, stamp, ends)
            time = None if time_of is None else time_of(Bundle(folder, None, b"", (file,)), head)
            return _Candidate(access, time, file)
    return None


def _are_plain(head: bytes) -> bool:
    """Whether lines that begin so are records as they stand, in no format that makes others of them."""
    form = form_of(head) if head.startswith(b"{") else None
    return form is not None and form.is_plain
