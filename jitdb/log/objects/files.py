"""Objects of a store as files that are only read: the other door beside the one to the disk.

An object never changes; another one may take its name. So what was read of one stays true, and each request names the
very object that it means (If-Match): one that was replaced is noticed, and never mixed with what was read before.

What is read comes in parts of 256 KiB, which are kept for a while. What will be read next is asked for ahead, many
parts at the same time, since a store answers late, but in parallel.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from jitdb.common import memory
from jitdb.common.digests import blake2b
from jitdb.common.forking import begins_anew, fork_safe
from jitdb.errors import library
from jitdb.log.io.osfile import FileSystem
from jitdb.log.objects.stores import ObjectChanged, as_os_error, changed, store_of
from jitdb.log.objects.urls import AT_ONCE, ObjectUrl

if TYPE_CHECKING:
    from obstore import ObjectMeta

PART: Final = 1 << 18  # bytes that are kept, or let go, together
_FIRST: Final = 1 << 16  # bytes that are read with the first look: most looks want to know how an object begins
_AHEAD: Final = 32 << 20  # bytes that are asked for before they are read
_KEPT: Final = 64 << 20  # bytes of parts that are kept, about, where memory has room for them
_THREADS: Final = 64  # requests at the same time
_HEADS: Final = 64  # objects whose first bytes are kept
_LOOKS: Final = 1 << 12  # looks that are remembered
_YOUNG: Final = 1.0  # seconds in which a look need not be repeated
_BITS: Final = 60  # of what stands for an object in its status: a time of a file with so many lies in the past


@dataclass(frozen=True)
class Found:
    """An object, as a store told of it.

    tag: tells it from all other objects of this name; empty where the store has none
    """

    url: ObjectUrl
    size: int
    modified: datetime
    tag: str

    @classmethod
    def of(cls, url: ObjectUrl, said: ObjectMeta) -> Found:
        tag = said.get("e_tag") or said.get("version") or ""
        return cls(url, said["size"], said["last_modified"], "" if tag.startswith("W/") else tag)

    @cached_property
    def status(self) -> os.stat_result:
        """As stat says it of a file: the inode is of this object alone, not of others of its name."""
        modified = int(self.modified.timestamp() * 1_000_000_000)
        inode = _number(f"{self.url}\0{self.tag}\0{self.size}\0{modified}")
        fields = (stat.S_IFREG | 0o400, inode, _number_of_root(self.url.root), 1, os.geteuid(), os.getegid(), self.size)
        seconds = modified // 1_000_000_000
        times = {"st_atime_ns": modified, "st_mtime_ns": modified, "st_ctime_ns": modified}
        return os.stat_result((*fields, seconds, seconds, seconds), times)

    @property
    def conditions(self) -> dict[str, Any]:
        """Of a request that means this object, and no other of its name."""
        return {"if_match": self.tag} if self.tag else {"if_unmodified_since": self.modified}


def _number(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> (64 - _BITS)


_number_of_root = lru_cache(maxsize=64)(_number)

_Part = tuple[int, int]  # an inode, and the number of a part


class Parts:
    """The parts of objects that were read last, and those that were asked for ahead. Safe for threads.

    What was asked for ahead stays until it is read, since all who read share the room: else what one asks for would
    push out what another one is about to read. Where it fills the room, no more is asked for ahead; what nobody read
    while four times the room was read goes.
    """

    def __init__(self) -> None:
        begins_anew(self)
        self.begin_anew()

    def begin_anew(self) -> None:
        """See forking.BeginsAnew."""
        self._lock = fork_safe(threading.Lock())
        self._held: OrderedDict[_Part, Future[bytes]] = OrderedDict()
        self._ahead: OrderedDict[_Part, tuple[Future[bytes], int]] = OrderedDict()  # and how many were read before
        self._read = 0
        self._heads: OrderedDict[int, bytes] = OrderedDict()
        self._pool: ThreadPoolExecutor | None = None

    def wanted(self, found: Found, inode: int, numbers: Sequence[int]) -> list[Future[bytes]]:
        """These parts of an object, those that nobody asked for yet in as few requests as can go side by side."""
        with self._lock:
            for number in numbers:
                if (asked := self._ahead.pop((inode, number), None)) is not None:
                    self._held[inode, number] = asked[0]
            self._held |= self._asked(found, inode, [each for each in numbers if (inode, each) not in self._held])
            for number in numbers:
                self._held.move_to_end((inode, number))
            self._read += len(numbers)
            while len(self._held) > max(_most_parts() - len(self._ahead), 2 * len(numbers)):
                self._held.popitem(last=False)
            return [self._held[inode, number] for number in numbers]

    def ahead(self, found: Found, inode: int, numbers: Sequence[int]) -> None:
        """Ask for those of these parts that nobody asked for yet, as far as there is room."""
        with self._lock:
            most = _most_parts()
            while self._ahead and next(iter(self._ahead.values()))[1] < self._read - 4 * most:
                self._ahead.popitem(last=False)
            missing = [each for each in numbers if (inode, each) not in self._held and (inode, each) not in self._ahead]
            asked = self._asked(found, inode, missing[: max(0, most - len(self._ahead))])
            self._ahead |= {part: (data, self._read) for part, data in asked.items()}

    def _asked(self, found: Found, inode: int, numbers: Sequence[int]) -> dict[_Part, Future[bytes]]:
        pool = self._pool = self._pool or ThreadPoolExecutor(_THREADS, "jitdb-objects")
        parts = {(inode, number): Future[bytes]() for number in numbers}
        for begin, count in _runs(numbers):
            whole = pool.submit(_fetch, found, begin * PART, min((begin + count) * PART, found.size))
            for number in range(begin, begin + count):
                whole.add_done_callback(partial(_pass_on, part=parts[inode, number], at=(number - begin) * PART))
        return parts

    def put_head(self, inode: int, data: bytes) -> None:
        """The first bytes of an object."""
        with self._lock:
            self._heads[inode] = data
            while len(self._heads) > _HEADS:
                self._heads.popitem(last=False)

    def head(self, inode: int) -> bytes:
        return self._heads.get(inode, b"")

    def drop(self, inode: int, number: int) -> None:
        with self._lock:
            self._held.pop((inode, number), None)
            self._ahead.pop((inode, number), None)


def _most_parts() -> int:
    return memory.work(_KEPT) // PART


def _runs(numbers: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Numbers that follow each other, as (first, how many), of at most one request each."""
    most, at = AT_ONCE // PART, 0
    while at < len(numbers):
        count = 1
        while count < most and at + count < len(numbers) and numbers[at + count] == numbers[at] + count:
            count += 1
        yield numbers[at], count
        at += count


def _pass_on(whole: Future[bytes], part: Future[bytes], at: int) -> None:
    error = whole.exception()
    if error is not None:
        part.set_exception(error)
    else:
        part.set_result(whole.result()[at : at + PART])


def _fetch(found: Found, begin: int, stop: int) -> bytes:
    obstore = library("obstore")
    try:
        options = {**found.conditions, "range": (begin, stop)}
        data = bytes(obstore.get(store_of(found.url), found.url.key, options=options).bytes())
    except Exception as error:
        raise as_os_error(error, found.url) from None
    if len(data) != stop - begin:
        raise changed(found.url)
    return data


PARTS: Final = Parts()


class _Open:
    """An object that is read.

    is_gone: another one has its name by now, so no more of it can be read
    """

    def __init__(self, found: Found) -> None:
        self.found, self.status, self.is_gone = found, found.status, False
        self._next = 0  # the part behind the one that was read last

    def read_into(self, buffer: memoryview, offset: int) -> int:
        size = max(0, min(len(buffer), self.found.size - offset))
        if self.is_gone:
            raise changed(self.found.url)
        if not size:
            return 0
        inode, first, last = self.status.st_ino, offset // PART, (offset + size - 1) // PART
        head = PARTS.head(inode)
        if offset + size <= len(head):
            buffer[:size] = head[offset : offset + size]
            return size
        try:
            for number, asked in enumerate(PARTS.wanted(self.found, inode, range(first, last + 1)), first):
                part, begin = asked.result(), number * PART
                low, high = max(offset, begin), min(offset + size, begin + len(part))
                buffer[low - offset : high - offset] = memoryview(part)[low - begin : high - begin]
        except BaseException as error:
            for number in range(first, last + 1):  # it is asked for again, when it is read again
                PARTS.drop(inode, number)
            if isinstance(error, ObjectChanged | FileNotFoundError):
                self.is_gone = True
                FILES.forget(self.found.url)
            raise
        if first <= self._next <= last + 1 and last >= self._next:
            ahead = min(last + _AHEAD // PART, (self.found.size - 1) // PART)
            if ahead > last and offset:
                PARTS.ahead(self.found, inode, range(last + 1, ahead + 1))
        self._next = last + 1
        return size

    def ahead(self, begin: int, stop: int) -> None:
        PARTS.ahead(self.found, self.status.st_ino, range(begin // PART, -(-min(stop, self.found.size) // PART)))

    def expect(self, offsets: Iterable[int], size: int) -> None:
        """Ask for the parts where so many bytes lie from each of these on, as many as are kept until they are read."""
        last = (self.found.size - 1) // PART
        parts = {number for at in offsets for number in (at // PART, min((at + size) // PART, last))}
        if len(parts) > 1 and not self.is_gone:
            PARTS.ahead(self.found, self.status.st_ino, sorted(parts)[: _most_parts() // 2])


class ObjectFiles(FileSystem):
    """See the head of this file. A file's number is none of the system's. Safe for threads."""

    has_objects = True

    def __init__(self) -> None:
        self._numbers = itertools.count(1 << 40)
        self._open: dict[int, _Open] = {}
        self._looks: dict[str, tuple[float, Found]] = {}
        self._doubted: set[str] = set()  # which were read, and are not what they were
        self._told: dict[str, Found | None] = {}  # by listings and looks; it stands until a later one, or a fault

    # What a store told

    def found(self, url: ObjectUrl) -> Found:
        """Raises FileNotFoundError, PermissionError, ObjectError."""
        at, found = self._looks.get(url, (0.0, None))
        if found is not None and time.monotonic() - at < _YOUNG:
            return found
        self._doubted.discard(url)
        try:
            found = _look(url)
        except FileNotFoundError:
            self._told[url] = None
            raise
        self._told[url] = found
        if len(self._looks) > _LOOKS:
            self._looks.clear()
        self._looks[url] = time.monotonic(), found
        return found

    def told(self, begin: str, found: Sequence[Found]) -> None:
        """These are the objects now whose URLs begin so, as a listing showed."""
        for url in [url for url in self._told if url.startswith(begin)]:
            del self._told[url]
        self._told |= {each.url: each for each in found}
        now = time.monotonic()
        self._looks = {each.url: (now, each) for each in found}

    def known(self, url: ObjectUrl) -> Found:
        """What the last listing told of it; else what a look shows. Raises as found() does."""
        if url not in self._told:
            return self.found(url)
        found = self._told[url]
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such object", url)
        return found

    def is_told(self, url: str) -> bool:
        """Whether a listing or a look told what it is, or reading it showed that it is another one."""
        return url in self._told or url in self._doubted

    def ahead(self, url: str, begin: int, stop: int) -> None:
        """These bytes of an object will be read next. What is wrong with it, reading it says."""
        with suppress(OSError):
            _Open(self.known(_url(url))).ahead(begin, stop)

    def forget(self, url: ObjectUrl) -> None:
        """Look again when it is asked for: another object has its name."""
        self._looks.pop(url, None)
        self._told.pop(url, None)
        self._doubted.add(url)

    def has(self, number: int) -> bool:
        """Whether an open file of this number is an object."""
        return number in self._open

    # As files

    def open(self, path: str | os.PathLike[str], flags: int, mode: int, /) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, "an object is only read", os.fspath(path))
        number = next(self._numbers)
        self._open[number] = _Open(self.known(_url(path)))
        return number

    def close(self, fd: int, /) -> None:
        del self._open[fd]

    def pread(self, fd: int, size: int, offset: int, /) -> bytes:
        data = bytearray(max(0, min(size, self._open[fd].found.size - offset)))
        with memoryview(data) as view:
            done = self._open[fd].read_into(view, offset)
        return bytes(data[:done])

    def preadv(self, fd: int, buffer: memoryview, offset: int) -> int:
        return self._open[fd].read_into(buffer, offset)

    def expect(self, fd: int, offsets: Iterable[int], size: int) -> None:
        self._open[fd].expect(offsets, size)

    def fstat(self, fd: int, /) -> os.stat_result:
        """Of an object that was replaced while it was read, something else than before."""
        opened = self._open[fd]
        if not opened.is_gone:
            return opened.status
        return Found(opened.found.url, 0, datetime.fromtimestamp(0, UTC), "gone").status

    def stat(self, path: str | os.PathLike[str], /) -> os.stat_result:
        return self.found(_url(path)).status

    def lstat(self, path: str | os.PathLike[str], /) -> os.stat_result:
        """As the last listing told it."""
        told = self._told.get(os.fspath(path))
        return (told or self.known(_url(path))).status

    def refuse_links(self, path: str | os.PathLike[str]) -> None:
        """There are none."""


def _url(path: str | os.PathLike[str]) -> ObjectUrl:
    return path if isinstance(path, ObjectUrl) else ObjectUrl.of(os.fspath(path))


def _look(url: ObjectUrl) -> Found:
    obstore = library("obstore")
    try:
        if not url.key or url.key.endswith("/"):
            raise FileNotFoundError
        store = store_of(url)
        try:
            got = obstore.get(store, url.key, options={"range": (0, _FIRST)})
            found, data = Found.of(url, got.meta), bytes(got.bytes())
        except FileNotFoundError:
            raise
        except Exception as error:
            if "status code: 416" not in str(error):
                raise
            found, data = Found.of(url, obstore.head(store, url.key)), b""  # it is empty
    except OSError as error:
        raise (
            FileNotFoundError(errno.ENOENT, "there is no such object", url)
            if isinstance(error, FileNotFoundError)
            else error
        ) from None
    except Exception as error:
        raise as_os_error(error, url) from None
    PARTS.put_head(found.status.st_ino, data)
    return found


FILES: Final = ObjectFiles()
