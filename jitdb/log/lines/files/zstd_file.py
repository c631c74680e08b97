"""The text of a zstd file (RFC 8878), frame by frame. Short frames are decompressed whole, and kept for a while.

A long frame can only be decompressed from its beginning on. `jitdb pack` makes a file of many short ones.

Where frames are is found by their headers and those of their blocks, without decompressing. A file that ends with a
seek table (the zstd seekable format: a frame that other readers skip) says so itself:

    0   0x184D2A5E          u32, little-endian, as all numbers
    4   size                u32: bytes behind this
    8   the table           a row a frame: bytes in the file, and of text: u32, u32, and u32 a checksum, if there is one
    …   count               u32: how many rows there are
    …   descriptor          u8: 0x80 where rows have checksums
    …   0x8F92EAB1          u32
"""

from __future__ import annotations

import shlex
import struct
import threading
import warnings
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from jitdb.common import zstd
from jitdb.common.forking import fork_safe
from jitdb.errors import LogWarning, free_name
from jitdb.log.lines.files.compressed_file import CompressedFile
from jitdb.log.lines.files.decompressing import PIECE, PIECES, Run, Stored, View, head_of

LONG: Final = 8 << 20  # bytes of text; frames of more are not decompressed as a whole
PATIENCE: Final = 256 << 20  # bytes decompressed for records, after which a warning says why they take so long

_READ: Final = 1 << 17  # bytes of the file read at a time

MAGIC: Final = b"\x28\xb5\x2f\xfd"
SKIPPED: Final = 0x184D2A50  # the first of the sixteen magic numbers of frames that are no text
SEEK_TABLE: Final = 0x184D2A5E
SEEKABLE: Final = 0x8F92EAB1
HAS_SUMS: Final = 0x80
TABLE_HEAD: Final = struct.Struct("<II")
TABLE_ROW: Final = struct.Struct("<II")
TABLE_END: Final = struct.Struct("<IBI")

_LARGEST_BLOCK: Final = 1 << 17  # bytes of text
_LONGEST_HEADER: Final = 18
_SUM: Final = 4  # bytes of a frame's checksum
_WORD: Final = struct.Struct("<I")


class Frame(NamedTuple):
    """One frame.

    stop: just past it; of one that is not finished, just past its last block that is
    text: bytes of text, if the frame says so; -1 where it does not
    most: bytes of text, at most
    """

    begin: int
    stop: int
    text: int
    most: int
    is_finished: bool = True


class _Header(NamedTuple):
    size: int  # of the header
    text: int  # -1: it does not say
    has_sum: bool
    dictionary: int


def find_frames(stored: Stored, begin: int) -> Iterator[Frame]:
    """The frames from this byte on; those that hold no text may be left out. Raises LogCorrupt, OSError."""
    at = begin
    if begin == 0 and (table := _seek_table(stored)):
        for size, text in table:
            if text:
                yield Frame(at, at + size, text, text)
            at += size
    while at < stored.stop:
        head = stored.read(_LONGEST_HEADER, at)
        if head[:4] == MAGIC[: len(head)]:
            frame = _walked(stored, at, head)
            yield frame
            at = frame.stop if frame.is_finished else stored.stop
        elif (skipped := _skipped(head)) is not None:
            at += skipped
        else:
            said = f"a zstd frame should begin at byte {at:,}, where something else does"
            raise stored.corrupt(said, at)


def _skipped(head: bytes) -> int | None:
    """The size of a frame that holds no text; None of what is none."""
    if len(head) < 4:
        return len(head) if _WORD.pack(SKIPPED)[1 : len(head)] == head[1:] else None
    (magic,) = _WORD.unpack_from(head)
    if magic & ~15 != SKIPPED:
        return None
    return TABLE_HEAD.size + _WORD.unpack_from(head, 4)[0] if len(head) >= TABLE_HEAD.size else len(head)


def _header(head: bytes) -> _Header | None:
    """What a frame's header says; None where it is cut off."""
    if len(head) < 6:
        return None
    descriptor = head[4]
    is_single = descriptor & 0x20
    at = 5 if is_single else 6
    size = (0, 1, 2, 4)[descriptor & 3]
    dictionary = int.from_bytes(head[at : at + size], "little")
    at += size
    flag = descriptor >> 6
    size = (1 if is_single else 0, 2, 4, 8)[flag]
    text = int.from_bytes(head[at : at + size], "little") + (256 if flag == 1 else 0) if size else -1
    return None if len(head) < at + size else _Header(at + size, text, bool(descriptor & 4), dictionary)


def _walked(stored: Stored, begin: int, head: bytes) -> Frame:
    header = _header(head)
    if header is None:
        return Frame(begin, begin, -1, 0, False)
    if header.dictionary:
        raise stored.corrupt(f"the zstd frame at byte {begin:,} needs dictionary {header.dictionary}", begin)
    at, most = begin + header.size, 0
    while True:
        word = stored.read(3, at)
        if len(word) < 3:
            return Frame(begin, at, -1, most, False)
        block = int.from_bytes(word, "little")
        kind, size = block >> 1 & 3, block >> 3
        if kind == 3:
            raise stored.corrupt(f"the zstd frame at byte {begin:,} has no block at byte {at:,}, as it should", at)
        stop = at + 3 + (1 if kind == 1 else size)
        if stop > stored.stop:
            return Frame(begin, at, -1, most, False)
        at, most = stop, most + (_LARGEST_BLOCK if kind == 2 else size)
        if block & 1:
            break
    at += _SUM if header.has_sum else 0
    if at > stored.stop:
        return Frame(begin, at - _SUM, -1, most, False)
    return Frame(begin, at, header.text, most if header.text < 0 else header.text)


def _seek_table(stored: Stored) -> Iterator[tuple[int, int]] | None:
    """The bytes of each frame, stored and of text, as the end of the file has them; None where no table fits."""
    at = stored.stop - TABLE_END.size
    if at < TABLE_HEAD.size:
        return None
    count, descriptor, magic = TABLE_END.unpack(stored.read(TABLE_END.size, at))
    row = struct.Struct("<II4x") if descriptor & HAS_SUMS else TABLE_ROW
    begin = at - count * row.size - TABLE_HEAD.size
    if magic != SEEKABLE or begin < 0:
        return None
    if TABLE_HEAD.unpack(stored.read(TABLE_HEAD.size, begin)) != (SEEK_TABLE, stored.stop - begin - TABLE_HEAD.size):
        return None
    table = stored.read(count * row.size, begin + TABLE_HEAD.size)
    return row.iter_unpack(table) if sum(size for size, _ in row.iter_unpack(table)) == begin else None


class ZstdFile(CompressedFile):
    """See CompressedFile."""

    compression = "zstd"

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._begins, self._stops = array("Q"), array("Q")  # of the frames that are finished, in the file
        self._texts = array("Q", [0])  # where each begins in the text, and where the last one ends
        self._long: dict[int, _LongFrame] = {}  # by their numbers among the frames

    def _grew(self) -> None:
        if self.unfinished is not None:  # the last frame is decompressed anew
            PIECES.drop(self._long.pop(len(self._begins) - 1).number)
            self.unfinished = None
            for each in (self._begins, self._stops, self._texts):
                each.pop()
        for frame in find_frames(self.stored, self._stops[-1] if self._stops else 0):
            self.unfinished = None if frame.is_finished else frame.begin
            self._add(frame)

    def _add(self, frame: Frame) -> None:
        number, text = len(self._begins), frame.text
        if frame.most > LONG or not frame.is_finished:
            self._long[number] = _LongFrame(self.stored, frame)
            text = text if text >= 0 else self._long[number].to_end()
        elif text < 0:
            text = len(self._decompressed(frame.begin, frame.stop, -1))
        self._begins.append(frame.begin)
        self._stops.append(frame.stop)
        self._texts.append(self._texts[-1] + text)

    def head(self, size: int) -> bytes:
        self.stored.stop = self.stamp().size
        return head_of((FrameRun(self.stored, 0, frame) for frame in find_frames(self.stored, 0)), size)

    def _guess(self) -> int | None:
        """The end of a long frame at the end of the file, which says how long its text is, if that ends with a line."""
        last = self._long.get(len(self._begins) - 1)
        return None if last is None or last.text is not None else self._texts[-1]

    def _finish(self) -> tuple[int, int]:
        for number in range(len(self._begins) - 1, -1, -1):
            long = self._long.get(number)
            if long is not None:
                long.to_end()
                end = long.lines_end
            else:
                end = self._short(number).rfind(b"\n") + 1
            if end:
                return self._texts[number] + end, self._texts[-1]
        return 0, self._texts[-1]

    def _part(self, offset: int, size: int, is_random: bool) -> bytes:
        if offset >= self._texts[-1]:
            return b""
        number = bisect_right(self._texts, offset) - 1
        inside = offset - self._texts[number]
        long = self._long.get(number)
        if long is None:
            return self._short(number)[inside : inside + size]
        found = long.read(inside, size, is_random)
        if not found:
            raise self.stored.corrupt("its text is shorter than it says", self._begins[number])
        return found

    def _short(self, number: int) -> bytes:
        text = PIECES.get((self.number, number))
        if text is None:
            size = self._texts[number + 1] - self._texts[number]
            text = self._decompressed(self._begins[number], self._stops[number], size)
            PIECES.put((self.number, number), text)
        return text

    def _decompressed(self, begin: int, stop: int, size: int) -> bytes:
        """The text of a frame that is not long; `size`: how much it must be, -1 where that is not known."""
        with _errors(self.stored, begin):
            text = zstd.decompressed(self.stored.read(stop - begin, begin), LONG if size < 0 else size)
        if size not in (-1, len(text)):
            said = f"the zstd frame at byte {begin:,} holds {len(text):,} bytes of text, and should {size:,}"
            raise self.stored.corrupt(said, begin)
        return text

    def _forget(self) -> None:
        super()._forget()
        for long in self._long.values():
            PIECES.drop(long.number)


class FrameRun(Run):
    """See Run; positions count from the frame's beginning."""

    def __init__(self, stored: Stored, text: int, frame: Frame) -> None:
        super().__init__(text)
        self._stored, self._frame = stored, frame
        self._view, self._stream = View(stored, frame.begin, frame.stop), zstd.decompressor()

    def decompressed(self, most: int) -> bytes:
        with _errors(self._stored, self._frame.begin):
            while not self._stream.eof:
                needed = self._stream.needs_input
                data = self._view.read(_READ) if needed else b""
                text = self._stream.decompress(data, most)
                if text or (needed and not data):
                    return text
        return b""


class _LongFrame:
    """A frame that is decompressed in order. Positions count from its beginning.

    text, lines_end: bytes of text, and just past its last newline, once it was decompressed to its end
    """

    def __init__(self, stored: Stored, frame: Frame) -> None:
        self._stored, self._frame = stored, frame
        self._lock = fork_safe(threading.Lock())
        self._for_records = 0  # bytes that were decompressed for single records
        self._run: FrameRun | None = None
        self.number = PIECES.new_text()
        self.text: int | None = None
        self.lines_end = 0

    def to_end(self) -> int:
        """Decompress what is left of it; how much text it has."""
        with self._lock:
            if self.text is None:
                run = self._run or FrameRun(self._stored, self.number, self._frame)
                run.to_end()
                self.text, self.lines_end, self._run = run.position, run.lines_end, None
            return self.text

    def read(self, offset: int, size: int, is_random: bool) -> bytes:
        """At most `size` bytes, of one piece."""
        number, inside = divmod(offset, PIECE)
        piece = PIECES.get((self.number, number))
        if piece is None or len(piece) <= inside:
            with self._lock:
                piece = PIECES.get((self.number, number))
                if piece is None or len(piece) <= inside:
                    piece = self._piece(number, is_random)
        return piece[inside : inside + size]

    def _piece(self, number: int, is_random: bool) -> bytes:
        run = self._run
        if run is None or run.number > number:
            self._run = run = FrameRun(self._stored, self.number, self._frame)
        if is_random:
            self._tell((number - run.number) * PIECE)
        return run.piece(number)

    def _tell(self, more: int) -> None:
        """Warn, once, of what makes single records slow."""
        is_told, self._for_records = self._for_records > PATIENCE, self._for_records + more
        if self._for_records > PATIENCE and not is_told:
            path = self._stored.path
            target = free_name(str(path).removesuffix(".zst"), ".zst")
            command = f"jitdb pack {shlex.quote(str(path))} -o {shlex.quote(target)}"
            warnings.warn(
                LogWarning(
                    f"each record is decompressed from byte {self._frame.begin:,} on, where a zstd frame begins that "
                    f"is {self._frame.stop - self._frame.begin:,} bytes long",
                    path=path,
                    remedy=f"make a file of many short frames: {command}",
                ),
                stacklevel=2,
            )


@contextmanager
def _errors(stored: Stored, begin: int) -> Iterator[None]:
    """What is wrong with a frame, as an error of ours."""
    try:
        yield
    except MemoryError as error:
        raise stored.corrupt(f"the zstd frame at byte {begin:,} takes too much memory", begin) from error
    except zstd.ZstdError as error:
        raise stored.corrupt(f"the zstd frame at byte {begin:,} cannot be decompressed ({error})", begin) from error


FILE: Final = ZstdFile
