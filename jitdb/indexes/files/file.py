"""One index file as bytes: its head, and how it is read and written. All of it goes through the log's door to files.
What stands behind the head is read by segment_reader.py.

head = magic (8 bytes), length (u32), JSON, CRC of all before (u32)
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path as FilePath
from threading import RLock
from typing import Any, Final, NamedTuple

from jitdb.common.forking import fork_safe
from jitdb.common.zlib import crc32
from jitdb.errors import IndexDamaged, IndexForeign
from jitdb.indexes.spec import IndexSpec
from jitdb.log.io.osfile import Descriptor, FileSystem

MAGIC: Final = b"JITDBIX1"  # on disk: never change

OPEN_FILES: Final = 32  # index files that a process has open at once: half of what the strictest systems allow
_SMALL: Final = 1 << 16  # bytes: parts of less are written together, larger ones are not worth a copy
_LARGEST_HEAD: Final = 1 << 20  # bytes; it may be no index file at all


class LogName(NamedTuple):
    """The log that an index belongs to: 16 random bytes made with the log, and how often it was rewritten since.

    `content` names the bytes of a log that another program changed (log_content.py); empty if none did.
    """

    identity: bytes
    generation: int
    content: bytes = b""


class Head(NamedTuple):
    """The log and the index that a file is of."""

    log: LogName
    spec: IndexSpec

    def encode(self) -> bytes:
        head = {
            "log": self.log.identity.hex(),
            "generation": self.log.generation,
            "index": self.spec.descriptor(),
        }
        if self.log.content:
            head["content"] = self.log.content.hex()
        text = json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
        raw = MAGIC + len(text).to_bytes(4, "little") + text
        return raw + crc32(raw).to_bytes(4, "little")


class FileReader:
    """Reads (position, length) of one file, which stays readable when its name is given to another while it is open.

    `which` file it is (device, inode) and its `size` in bytes are those of when it was made. Of all readers in the
    process, the OPEN_FILES that were used last are open. One that finds another file under its name, or none, when it
    opens it again raises IndexDamaged: then the index is loaded anew. Safe for threads.
    """

    def __init__(self, fs: FileSystem, path: FilePath, file: Descriptor | None = None) -> None:
        """`file`: it is open already, and the reader's from now on."""
        self.path = path
        self.fs = fs
        file = file or Descriptor(fs, path, os.O_RDONLY)
        found = fs.fstat(file.number)
        self.which, self.size = (found.st_dev, found.st_ino), found.st_size
        with _lock:
            self._use(file)

    def __call__(self, position: int, length: int) -> bytes:
        with _lock:
            file = _open_files.pop(id(self), None) or self._open_again()
            self._use(file)
        return self.fs.read(file.number, length, position)  # it is closed when nobody holds it any more

    def close(self) -> None:
        """Until it is used again."""
        with _lock:
            _open_files.pop(id(self), None)

    __del__ = close

    def _use(self, file: Descriptor) -> None:
        _open_files[id(self)] = file
        while len(_open_files) > OPEN_FILES:
            _open_files.popitem(last=False)

    def _open_again(self) -> Descriptor:
        try:
            file = Descriptor(self.fs, self.path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise IndexDamaged("the file is gone", path=self.path) from error
        found = self.fs.fstat(file.number)
        if (found.st_dev, found.st_ino) != self.which:
            raise IndexDamaged("another file has its name", path=self.path)
        return file


_lock: Final = fork_safe(RLock())  # a reader may go, and close its file, wherever garbage is collected
_open_files: Final[OrderedDict[int, Descriptor]] = OrderedDict()  # by the reader's id; the one used last at the end


def read_head(read_at: FileReader, expected: Head, name: str) -> int:
    """Where the segments begin; 0 when the file ends inside the expected head.

    Raises IndexForeign for the head of another index, IndexDamaged for what is no head.
    """
    wanted = expected.encode()
    start = read_at(0, len(wanted))
    if start == wanted:
        return len(wanted)
    if wanted.startswith(start):
        return 0
    found = parse_head(read_at, name)
    generation, ours = found.log.generation, expected.log.generation
    if (found.spec, found.log.identity) != (expected.spec, expected.log.identity):
        raise IndexForeign("belongs to another log, or to this one before it was replaced", path=name)
    said = "was built before other bytes were put into the log, or taken back"
    if generation != ours:
        said = f"belongs to generation {generation} of the log, expected {ours}"
    raise IndexForeign(said, path=name, generation=generation)


def parse_head(read_at: FileReader, name: str) -> Head:
    """The head of an index file. Raises IndexDamaged."""
    start = read_at(0, 12)
    length = int.from_bytes(start[8:], "little")
    whole = read_at(0, 12 + min(length, _LARGEST_HEAD) + 4)
    if start[:8] != MAGIC or crc32(whole[:-4]) != int.from_bytes(whole[-4:], "little"):
        raise IndexDamaged("the head is not that of an index file", path=name, offset=0)
    try:
        head: dict[str, Any] = json.loads(whole[12:-4])
        content = bytes.fromhex(head.get("content", ""))
        log = LogName(bytes.fromhex(head["log"]), int(head["generation"]), content)
        return Head(log, IndexSpec.from_descriptor(head["index"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise IndexForeign("an index of a kind that this jitdb does not know", path=name) from error


def head_of(fs: FileSystem, path: FilePath) -> Head | None:
    """The head of the file; None if it cannot be read."""
    try:
        return parse_head(FileReader(fs, path), str(path))
    except (IndexDamaged, OSError):
        return None


def is_newer(head: Head, than: Head) -> bool:
    """Whether it is the same index for a newer generation of the same log."""
    same = (head.log.identity, head.spec) == (than.log.identity, than.spec)
    return same and head.log.generation > than.log.generation


def write_parts(fs: FileSystem, descriptor: int, parts: Iterable[bytes | memoryview], position: int) -> int:
    """Write one after the other from `position` on, small ones together; where they end."""
    waiting: list[bytes | memoryview] = []
    size = 0

    def write(data: bytes | memoryview) -> None:
        nonlocal position
        if len(data):
            fs.write(descriptor, data, position)
            position += len(data)

    for part in parts:
        if len(part) >= _SMALL or size >= _SMALL:
            write(b"".join(waiting))
            waiting, size = [], 0
        if len(part) >= _SMALL:
            write(part)
        else:
            waiting.append(part)
            size += len(part)
    write(b"".join(waiting))
    return position


def remove_file(fs: FileSystem, path: FilePath) -> None:
    """Remove it, if it is there. Raises OSError."""
    with suppress(FileNotFoundError, NotADirectoryError):
        fs.unlink(path)
