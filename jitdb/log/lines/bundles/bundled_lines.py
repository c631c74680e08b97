"""The lines of a bundle's files, one file after the other, as one log.

It never changes: where a file did, reading raises `Unbundled`, and the files are asked otherwise.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from jitdb.errors import InvalidOffset, LogError
from jitdb.log.codecs.json.codec import CODEC
from jitdb.log.io import osfile
from jitdb.log.lines.bundles.bundle import Bundle, remove
from jitdb.log.lines.fetching import records_of
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.lines.framing import LineFraming
from jitdb.log.lines.line_log import BLOCK
from jitdb.log.source import LogSource

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.log.codecs import Codec


class Unbundled(LogError):
    """The files are to be asked otherwise: one was changed.

    bundle: set where one holds lines that are no JSON: all are to be asked one by one, so that it warns of them
    """

    bundle: Bundle | None = None


class BundledLines(LogSource):
    """See the head of this file. Safe for threads; no file stays open."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._begins = list(accumulate((file.stamp.size for file in bundle.files), initial=0))
        self._framing = LineFraming()

    @property
    def path(self) -> Path:
        """The folder of the files."""
        return Path(self._bundle.folder)

    @property
    def codec(self) -> Codec:
        return CODEC

    @property
    def framing(self) -> LineFraming:
        return self._framing

    @property
    def block_size(self) -> int:
        return BLOCK

    @property
    def durable_end(self) -> int:
        return self._begins[-1]

    @property
    def identity(self) -> bytes:
        return self._bundle.identity

    @property
    def generation(self) -> int:
        return 0

    @property
    def identity_is_stored(self) -> bool:
        return self._bundle.place is not None

    @property
    def sidecar(self) -> Path:
        """The bundle's own folder."""
        assert self._bundle.place is not None
        return self._bundle.place

    def parts(self, names: Container[str]) -> list[tuple[int, int]]:
        """From which byte on, up to which, the lines of the files of these names are."""
        ends = zip(self._bundle.files, pairwise(self._begins), strict=True)
        return [part for file, part in ends if file.name in names]

    def each(self) -> Iterator[BundledLines]:
        """The lines of each file."""
        return (BundledLines(self._bundle._replace(files=(file,))) for file in self._bundle.files)

    def beginning(self) -> BundledLines:
        return next(self.each(), self)

    def read_blocks(self, start: int, stop: int, buffer: memoryview | npt.NDArray[np.uint8]) -> int:
        """See ScanSource; from any byte on. Raises Unbundled."""
        stop = min(stop, self.durable_end)
        view = (buffer if isinstance(buffer, memoryview) else buffer.data).cast("B")
        number = bisect_right(self._begins, start) - 1
        at = start
        while at < stop:
            until = min(stop, self._begins[number + 1])
            self._read(number, at - self._begins[number], view[at - start : until - start])
            at, number = until, number + 1
        return max(0, stop - start)

    def _read(self, number: int, offset: int, view: memoryview) -> None:
        """Fill the view from a file, and see that this still is what it was."""
        file, fs = self._bundle.files[number], osfile.fs
        try:
            with osfile.Descriptor(fs, os.path.join(self._bundle.folder, file.name), os.O_RDONLY | os.O_NOFOLLOW) as fd:
                there = fs.read_into(fd, view, offset)
                is_same = there == len(view) and Stamp.of(fs.fstat(fd)) == file.stamp
        except OSError:
            is_same = False
        if not is_same:
            raise Unbundled("it was changed since it was looked at", path=self.path / file.name)

    def _bytes(self, size: int, offset: int) -> bytes:
        data = bytearray(max(0, min(size, self.durable_end - offset)))
        self.read_blocks(offset, offset + len(data), memoryview(data))
        return bytes(data)

    def second_look(self, block: int) -> tuple[bytes, None]:
        """The bytes of a block. Nobody knows what they should be."""
        return self._bytes(BLOCK, block * BLOCK), None

    def get_many_raw(self, offsets: Sequence[int] | npt.NDArray[np.int64]) -> list[bytes | None]:
        """The lines that begin at these offsets, without their newlines; None for one that is no record.

        Raises InvalidOffset where no line begins, Unbundled.
        """
        try:
            return records_of(self._bytes, self.durable_end, offsets, self._framing, self.codec)
        except LookupError as error:
            at = int(error.args[0])
            raise InvalidOffset(f"no record begins at offset {at:,}", path=self.path, offset=at) from None

    def refuses_malformed(self) -> Unbundled:
        error = Unbundled("it has lines that are no JSON", path=self.path)
        error.bundle = self._bundle
        return error

    def doubt(self) -> None:
        """The next question makes another bundle, whose indexes it builds."""
        remove(self._bundle)

    def settled_stamp(self) -> bytes:
        """The bundle's identity: what is read here are its files as they were. Whether they still are, it tells."""
        return self._bundle.identity


class BeginningLines(BundledLines):
    """The lines of one file, whose first bytes are at hand."""

    def __init__(self, bundle: Bundle, head: bytes) -> None:
        super().__init__(bundle)
        self._head = head

    def beginning(self) -> BundledLines:
        return self

    def read_blocks(self, start: int, stop: int, buffer: memoryview | npt.NDArray[np.uint8]) -> int:
        stop = min(stop, self.durable_end)
        if stop > len(self._head):
            return super().read_blocks(start, stop, buffer)
        view = (buffer if isinstance(buffer, memoryview) else buffer.data).cast("B")
        view[: max(0, stop - start)] = self._head[start:stop]
        return max(0, stop - start)
