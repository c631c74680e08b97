"""The text of a zstd file: frame by frame. Those that are not long are decompressed whole, and kept for a while.

A long frame can only be decompressed from its beginning on. `jitdb pack` makes a file of many short ones.
"""

from __future__ import annotations

import shlex
import threading
import warnings
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from jitdb.common.forking import fork_safe
from jitdb.errors import LogWarning, free_name
from jitdb.log.lines.compressed.frames import Frame, find_frames
from jitdb.log.lines.compressed.pieces import PIECES
from jitdb.log.lines.compressed.runs import PIECE, Run, head_of
from jitdb.log.lines.compressed.stored import Stored, View, library
from jitdb.log.lines.compressed.text import Text

LONG: Final = 8 << 20  # bytes of text; frames of more are not decompressed as a whole

_WINDOW: Final = 1 << 27  # bytes that a frame may make us hold, as zstd's own tool has it
_READ: Final = 1 << 17  # bytes of the file read at a time
PATIENCE: Final = 256 << 20  # bytes decompressed for records, after which it is told why they take so long


class ZstdText(Text):
    """See Text."""

    def __init__(self, stored: Stored) -> None:
        super().__init__(stored)
        self._begins, self._stops = array("Q"), array("Q")  # of the frames that are finished, in the file
        self._texts = array("Q", [0])  # where each begins in the text, and where the last one ends
        self._long: dict[int, _LongFrame] = {}  # by their numbers among the frames

    def grew(self) -> None:
        if self.unfinished is not None:
            self._forget_last()
        for frame in find_frames(self.stored, self._stops[-1] if self._stops else 0):
            self.unfinished = None if frame.is_finished else frame.begin
            self._add(frame)

    def _forget_last(self) -> None:
        number = len(self._begins) - 1
        PIECES.drop(self._long.pop(number).number)
        self.unfinished = None
        for each in (self._begins, self._stops, self._texts):
            each.pop()

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
        return head_of((_FrameStream(self.stored, frame) for frame in find_frames(self.stored, 0)), size)

    def guess(self) -> int | None:
        """The end of a long frame at the end of the file, which says how long its text is, if that ends with a line."""
        last = self._long.get(len(self._begins) - 1)
        return None if last is None or last.is_read else self._texts[-1]

    def finish(self) -> int:
        for number in range(len(self._begins) - 1, -1, -1):
            long = self._long.get(number)
            if long is not None:
                long.to_end()
                end = long.lines_end
            else:
                end = self._short(number).rfind(b"\n") + 1
            if end:
                return self._texts[number] + end
        return 0

    def part(self, offset: int, size: int, is_random: bool) -> bytes:
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
            data = self.stored.read(stop - begin, begin)
            text: bytes = _decompressor(self.stored).decompress(data, LONG if size < 0 else max(size, 1))
        if size not in (-1, len(text)):
            said = f"the zstd frame at byte {begin:,} holds {len(text):,} bytes of text, and should {size:,}"
            raise self.stored.corrupt(said, begin)
        return text

    def close(self) -> None:
        super().close()
        for long in self._long.values():
            PIECES.drop(long.number)


class _LongFrame:
    """A frame that is decompressed in order. Positions count from its beginning.

    lines_end: just past its last newline, once it was decompressed to its end
    """

    def __init__(self, stored: Stored, frame: Frame) -> None:
        self._stored, self._frame = stored, frame
        self._lock = fork_safe(threading.Lock())
        self._text: int | None = None
        self._for_records = 0  # bytes that were decompressed for single records
        self.number = PIECES.new_text()
        self.lines_end = 0
        self._run: Run[_FrameStream] | None = None

    @property
    def is_read(self) -> bool:
        """Whether somebody came to its end."""
        return self._text is not None

    def to_end(self) -> int:
        """Decompress what is left of it; how much text it has."""
        with self._lock:
            if self._text is None:
                run = self._run or self._begun()
                run.to_end()
                self._text, self.lines_end = run.stream.position, run.stream.lines_end
                self._run = None
            return self._text

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
            run = self._begun()
        if is_random:
            self._tell((number - run.number) * PIECE)
        return run.piece(number)

    def _begun(self) -> Run[_FrameStream]:
        self._run = run = Run(_FrameStream(self._stored, self._frame), self.number)
        return run

    def _tell(self, more: int) -> None:
        """Tell, once, why single records take so long."""
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


class _FrameStream:
    """See runs.Stream; positions count from the frame's beginning."""

    def __init__(self, stored: Stored, frame: Frame) -> None:
        self._stored, self._frame = stored, frame
        self.position = self.lines_end = 0
        self._reader = _decompressor(stored).stream_reader(View(stored, frame.begin, frame.stop), read_size=_READ)

    def read(self, most: int) -> bytes:
        """See Stream. Raises LogCorrupt, OSError."""
        with _errors(self._stored, self._frame.begin):
            text: bytes = self._reader.read(most)
        newline = text.rfind(b"\n")
        self.lines_end = self.lines_end if newline < 0 else self.position + newline + 1
        self.position += len(text)
        return text


def _decompressor(stored: Stored) -> Any:
    """Not safe for threads. Raises LogError."""
    return library("zstd", stored.path).ZstdDecompressor(max_window_size=_WINDOW)


@contextmanager
def _errors(stored: Stored, begin: int) -> Iterator[None]:
    """What is wrong with a frame, as an error of ours."""
    try:
        yield
    except MemoryError as error:
        raise stored.corrupt(f"the zstd frame at byte {begin:,} takes too much memory", begin) from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise stored.corrupt(f"the zstd frame at byte {begin:,} cannot be decompressed ({error})", begin) from error
