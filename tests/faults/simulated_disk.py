"""A disk in memory that can lose power: what processes see, and what would be left of it.

Two states lie side by side: the *volatile* one, which processes read and write (the page cache, the folders in
memory), and the *durable* one, which is what has certainly reached the disk. `Disk.crash()` gives the disk as it could
look after a power failure: the durable state, and of what was pending any part that a journaling file system may
have written by then, in the order that suits it. The model, on purpose no kinder than ext4, XFS or btrfs promise:

contents   The disk writes sectors of 512 bytes, each whole or not at all. A sector that was written since the file's
           last fsync holds any one of the versions it had since then, or the old one; each sector for itself.
sizes      Changes of one file's size (truncations, and writes past the end) reach the disk in their order; how many of
           them is open. Sectors within the size that were not written are zero: no file shows what was another's,
           or what a truncation took. A sector's newer version may be there though a truncation that only cuts into it
           is not; a sector that was cut off whole is another one afterwards.
times      The modification time is any that the file had since its last fsync.
names      What is created, renamed or unlinked in one folder reaches the disk in its order; how much of it is open. A
           rename happens wholly or not at all, between two folders too. An fsync of a file says nothing of its name,
           that of a folder nothing of the contents of the files in it, or of the folder's own name.
fsync      makes durable what was pending when it was called. One that fails has written any of the pending sectors and
           forgets the rest: they count as clean, a later fsync that succeeds does not write them, and reading them
           gives the new bytes or, when they were evicted meanwhile, the old ones.
fdatasync  the same, but that the modification time may stay any that the file had since its last fsync.

A process that is killed takes nothing with it but its locks and open files.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from random import Random
from typing import Final

SECTOR: Final = 512
TICK: Final = 4_000_000  # nanoseconds: the steps in which modification times move, as in Linux
STEP: Final = 300_000  # nanoseconds that each change takes


class File:
    """A file's bytes. `disk` is what is durable, `data` what processes see."""

    def __init__(self, number: int, now: int) -> None:
        self.number = number
        self.mode = 0o644  # who may open it: every change is durable at once
        self.data = bytearray()
        self.disk = bytearray()
        self.time = self.disk_time = now
        self.times: list[int] = []  # since the last fsync
        self.sizes: list[int] = []  # changes since then
        self.sectors: dict[int, list[tuple[int, bytes]]] = {}  # versions since then: sizes changed by then, bytes
        self.holders: dict[object, bool] = {}  # who locked it, and whether shared
        self.bytes_held: dict[int, object] = {}

    def write(self, data: bytes, offset: int, now: int) -> None:
        end = offset + len(data)
        if end > len(self.data):
            self._resize(end)
        self.data[offset:end] = data
        self._changed(offset, end, now)

    def truncate(self, size: int, now: int) -> None:
        cut = size < len(self.data)
        self._resize(size)
        self._changed(size, size + (1 if cut and size % SECTOR else 0), now)

    def _resize(self, size: int) -> None:
        if size != len(self.data):
            self.sizes.append(size)
        _fit(self.data, size)

    def _changed(self, start: int, end: int, now: int) -> None:
        for number in range(start // SECTOR, -(-end // SECTOR)):
            version = bytes(self.data[number * SECTOR : (number + 1) * SECTOR])
            self.sectors.setdefault(number, []).append((len(self.sizes), version))
        self.time = now // TICK * TICK
        self.times.append(self.time)

    def sync(self) -> None:
        self._settle(self.sectors)

    def sync_badly(self, rng: Random) -> None:
        """An fsync that fails: some sectors are written, the others are forgotten, some of them evicted."""
        written, lost = [], []
        for number in self.sectors:
            (written if rng.random() < 0.5 else lost).append(number)
        self._settle(written)
        for number in lost:
            place = slice(number * SECTOR, (number + 1) * SECTOR)
            if rng.random() < 0.5:
                self.data[place] = self.disk[place]

    def _settle(self, sectors: Iterable[int]) -> None:
        for size in self.sizes:
            _fit(self.disk, size)
        for number in sectors:
            place = slice(number * SECTOR, (number + 1) * SECTOR)
            self.disk[place] = self.data[place]
        self.disk_time = self.time
        self.sizes, self.times, self.sectors = [], [], {}

    def lose(self, sectors: Iterable[int]) -> None:
        """Of what is pending, these sectors are lost, all else was written."""
        self._settle(self.sectors.keys() - set(sectors))
        self.data = bytearray(self.disk)

    def survive(self, rng: Random, keep: float) -> File:
        """The file after a power failure; `keep` is how likely each pending sector was written."""
        left = File(self.number, rng.choice([self.disk_time, *self.times]))
        changes = rng.choice([0, len(self.sizes), rng.randint(0, len(self.sizes))])
        content = bytearray(self.disk)
        for size in self.sizes[:changes]:
            _fit(content, size)
        for number, versions in self.sectors.items():
            if rng.random() < keep:
                before, version = versions[-1] if rng.random() < 0.7 else rng.choice(versions)
                self._put(content, number, before, version, changes)
        left.data, left.disk = content, bytearray(content)
        return left

    def _put(self, content: bytearray, number: int, before: int, version: bytes, changes: int) -> None:
        """Put a version of a sector, which it had after `before` changes of the size, among those that were kept."""
        start = number * SECTOR
        if any(size <= start for size in self.sizes[changes:before]):
            return  # the sector it was written to is a free one, for all that the disk knows
        end = min([start + SECTOR, len(content), *self.sizes[before:changes]])
        if end > start:
            piece = version[: end - start]
            content[start : start + SECTOR] = piece + bytes(min(SECTOR, len(content) - start) - len(piece))


def _fit(data: bytearray, size: int) -> None:
    if size < len(data):
        del data[size:]
    else:
        data.extend(bytes(size - len(data)))


class Folder:
    """A folder's names: `disk` those that are durable."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.mode = 0o755
        self.names: dict[str, File | Folder] = {}
        self.disk: dict[str, File | Folder] = {}
        self.holders: dict[object, bool] = {}
        self.bytes_held: dict[int, object] = {}
        self.time = 0


@dataclass
class Change:
    """Names that changed together: (folder, name, what it means now, or None)."""

    parts: list[tuple[Folder, str, File | Folder | None]]
    folders: list[Folder] = field(init=False)

    def __post_init__(self) -> None:
        self.folders = [folder for folder, _, _ in self.parts]

    def apply(self, durable: bool) -> None:
        for folder, name, node in self.parts:
            names = folder.disk if durable else folder.names
            if node is None:
                names.pop(name, None)
            else:
                names[name] = node


class Disk:
    """A file system: its folders and files by path. Errors are those of the operating system."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = Random(seed)
        self.now = 1_700_000_000_000_000_000
        self.root = Folder(1)
        self.pending: list[Change] = []
        self._numbers = 1

    # Looking up

    def find(self, path: str | os.PathLike[str]) -> File | Folder:
        node: File | Folder = self.root
        for part in PurePath(path).parts[1:]:
            if isinstance(node, File):
                raise _error(errno.ENOTDIR, path)
            if part not in node.names:
                raise _error(errno.ENOENT, path)
            node = node.names[part]
        return node

    def folder_of(self, path: str | os.PathLike[str]) -> Folder:
        node = self.find(Path(path).parent)
        if isinstance(node, File):
            raise _error(errno.ENOTDIR, path)
        return node

    def exists(self, path: str | os.PathLike[str]) -> bool:
        try:
            self.find(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    # Changing

    def tick(self) -> int:
        self.now += STEP
        return self.now

    def create(self, path: str | os.PathLike[str]) -> File:
        file = File(self._number(), self.tick() // TICK * TICK)
        self._change([(self.folder_of(path), PurePath(path).name, file)])
        return file

    def mkdir(self, path: str | os.PathLike[str]) -> None:
        folder = self.folder_of(path)
        if PurePath(path).name in folder.names:
            raise _error(errno.EEXIST, path)
        self._change([(folder, PurePath(path).name, Folder(self._number()))])

    def unlink(self, path: str | os.PathLike[str]) -> None:
        if isinstance(self.find(path), Folder):
            raise _error(errno.EISDIR, path)
        self._change([(self.folder_of(path), PurePath(path).name, None)])

    def rename(self, source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
        node, old, new = self.find(source), self.folder_of(source), self.folder_of(target)
        if isinstance(new.names.get(PurePath(target).name), Folder) or isinstance(node, Folder):
            raise _error(errno.EISDIR, target)
        if new.names.get(PurePath(target).name) is not node:
            self._change([(new, PurePath(target).name, node), (old, PurePath(source).name, None)])

    def _change(self, parts: list[tuple[Folder, str, File | Folder | None]]) -> None:
        change = Change(parts)
        change.apply(durable=False)
        self.pending.append(change)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    # Durability

    def sync(self, node: File | Folder) -> None:
        if isinstance(node, File):
            node.sync()
            return
        wanted = [node]  # a change between two folders takes what came before it in both along
        while True:
            last = max((at for at, change in enumerate(self.pending) if _meet(change, wanted)), default=-1)
            more = [f for c in self.pending[: last + 1] if _meet(c, wanted) for f in c.folders if f not in wanted]
            if not more:
                break
            wanted += more
        for change in [change for change in self.pending if _meet(change, wanted)]:
            change.apply(durable=True)
            self.pending.remove(change)

    def sync_all(self) -> None:
        """As after a long while without a failure."""
        for change in self.pending:
            change.apply(durable=True)
        self.pending = []
        for file in self.files().values():
            file.sync()

    def files(self, folder: Folder | None = None, path: str = "") -> dict[str, File]:
        """All files that have a name now."""
        found: dict[str, File] = {}
        for name, node in (folder or self.root).names.items():
            if isinstance(node, File):
                found[f"{path}/{name}"] = node
            else:
                found |= self.files(node, f"{path}/{name}")
        return found

    def crash(self, rng: Random) -> Disk:
        """The disk as it could be found after a power failure now."""
        left = Disk(rng.getrandbits(32))
        left.now, left._numbers = self.now + 10_000_000_000, self._numbers
        names: dict[Folder, dict[str, File | Folder]] = {}
        luck = {folder: rng.choice([0, 1 << 30, rng.randint(0, 4)]) for c in self.pending for folder in c.folders}
        kept: list[Change] = []
        for change in self.pending:
            if all(luck[folder] > 0 for folder in change.folders):
                kept.append(change)
                for folder in change.folders:
                    luck[folder] -= 1
            else:
                luck.update(dict.fromkeys(change.folders, 0))
        survivors: dict[File | Folder, File | Folder] = {}
        keep = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0, rng.random()])

        def names_of(folder: Folder) -> dict[str, File | Folder]:
            if folder not in names:
                names[folder] = dict(folder.disk)
            return names[folder]

        for change in kept:
            for folder, name, node in change.parts:
                if node is None:
                    names_of(folder).pop(name, None)
                else:
                    names_of(folder)[name] = node

        def survive(node: File | Folder) -> File | Folder:
            if node not in survivors:
                survivors[node] = node.survive(rng, keep) if isinstance(node, File) else Folder(node.number)
                survivors[node].mode = node.mode
                if isinstance(node, Folder):
                    copy = survivors[node]
                    assert isinstance(copy, Folder)
                    copy.names = {name: survive(child) for name, child in sorted(names_of(node).items())}
                    copy.disk = dict(copy.names)
            return survivors[node]

        root = survive(self.root)
        assert isinstance(root, Folder)
        left.root = root
        return left

    def torn(self, path: str, lost: Iterable[int], *, others_kept: bool) -> Disk:
        """The disk after a power failure that took these sectors of one file, and all or nothing of the other files."""
        left = deepcopy(self)
        for name, file in left.files().items():
            file.lose(lost if name == path else [] if others_kept else list(file.sectors))
        left.sync_all()
        return left


def _meet(change: Change, folders: list[Folder]) -> bool:
    return any(folder in folders for folder in change.folders)


def _error(code: int, path: str | os.PathLike[str]) -> OSError:
    return OSError(code, os.strerror(code), os.fspath(path))
