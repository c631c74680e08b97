"""A range of a log as the scan wants to see a log: read by a worker, who neither opens nor changes anything of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.log.codecs import Codec
from jitdb.log.io import osfile
from jitdb.log.source import ScanSource
from jitdb.spark_ext.errors import CopyDiffers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.errors import LogCorrupt
    from jitdb.log.log import Log

SHARED: Final = "the path must lie on storage that all machines share"  # what to do when a machine has no such log
_UNKNOWN: Final = -1  # the checksum of a block that has none: see ScanSource.checksums


@dataclass(frozen=True, slots=True)
class Shape:
    """What a worker must know of a log to read it."""

    path: str
    codec: Codec
    block_size: int


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What tells a log from an earlier copy of it, and from another: its end, and a digest of its first and last block.

    Only the bytes before the end count: a log that grows meanwhile is still the same.
    """

    end: int
    digest: str

    @staticmethod
    def of(path: str, end: int, block_size: int) -> Fingerprint:
        """That of the file at `path`, of which `end` bytes are looked at. Raises OSError; EOFError if it has fewer."""
        fs = osfile.fs
        with osfile.Descriptor(fs, path, os.O_RDONLY) as descriptor:
            return Fingerprint.by(lambda start, size: fs.read(descriptor, size, start), end, block_size)

    @staticmethod
    def by(read: Callable[[int, int], bytes], end: int, block_size: int) -> Fingerprint:
        """That of what `read` gives some bytes of: by where they start, and how many. Raises as `of` does."""
        last = (end - 1) // block_size * block_size if end else 0
        first_block = read(0, min(block_size, end))
        last_block = read(last, end - last)
        if len(last_block) < end - last:
            raise EOFError
        return Fingerprint(end, hashlib.blake2b(first_block + last_block, digest_size=12).hexdigest())

    def check(self, path: str, block_size: int, advice: str = SHARED) -> None:
        """Whether the file that this machine has at `path` is the same. Raises CopyDiffers."""
        host = os.uname().nodename
        try:
            found = Fingerprint.of(path, self.end, block_size)
        except OSError as error:
            raise _unreadable(path, error, advice) from error
        except EOFError:
            raise CopyDiffers(
                f"{host} has less than {self.end:,} bytes of it, an old copy", path=path, remedy=advice
            ) from None
        if found != self:
            raise CopyDiffers(
                f"{host} has another file there, expected digest {self.digest}, got {found.digest}",
                path=path,
                remedy=f"{advice}; if records were deleted or the log was compacted meanwhile, start the job again",
            )


def _unreadable(path: str, error: OSError, advice: str) -> CopyDiffers:
    """The error for a file that this machine cannot read, and another one can."""
    complaint = "has no such file" if isinstance(error, FileNotFoundError) else f"cannot read it ({error.strerror})"
    return CopyDiffers(f"{os.uname().nodename} {complaint}", path=path, remedy=advice)


class RangeSource(ScanSource):
    """The bytes before `stop` of a log. Closed when nobody needs it."""

    def __init__(self, shape: Shape, stop: int, first_block: int, sums: NDArray[np.int64] | None) -> None:
        """`sums` are the checksums of the blocks from `first_block` on, if there are any: see ScanSource.checksums."""
        self._path = Path(shape.path)
        self._block_size = shape.block_size
        self._codec = shape.codec
        self._stop = stop
        self._first = first_block
        self._sums = sums

    @property
    def path(self) -> Path:
        return self._path

    @property
    def block_size(self) -> int:
        return self._block_size

    @property
    def codec(self) -> Codec:
        return self._codec

    @property
    def durable_end(self) -> int:
        return self._stop

    def checksums(self, first: int, count: int) -> NDArray[np.int64]:
        out = np.full(count, _UNKNOWN, np.int64)
        if self._sums is not None:
            known = self._sums[max(0, first - self._first) : max(0, first - self._first + count)]
            out[: len(known)] = known
        return out


class SharedFile(RangeSource):
    """A range of a file that this machine can open."""

    def __init__(
        self, shape: Shape, stop: int, first_block: int, sums: NDArray[np.int64] | None, advice: str = SHARED
    ) -> None:
        """Raises CopyDiffers where this machine can open no such file."""
        super().__init__(shape, stop, first_block, sums)
        self._fs = osfile.fs
        try:
            self._file = osfile.Descriptor(self._fs, shape.path, os.O_RDONLY)
        except OSError as error:
            raise _unreadable(shape.path, error, advice) from error
        self._log: Log | None = None

    def read_blocks(self, start: int, stop: int, buffer: Any) -> int:
        size = min(stop, self.durable_end) - start
        return self._fs.read_into(self._file.number, memoryview(buffer)[:size], start) if size > 0 else 0

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        from jitdb.log import Log

        if self._log is None:
            self._log = Log(self.path, codec=self.codec, block_size=self.block_size, read_only=True)
        return self._log.second_look(block)

    def __del__(self) -> None:
        log: Log | None = getattr(self, "_log", None)
        if log is not None:
            log.close()


class Blocks(RangeSource):
    """Blocks that Spark has read, from `first_block` on."""

    def __init__(
        self, shape: Shape, stop: int, first_block: int, sums: NDArray[np.int64] | None, data: memoryview
    ) -> None:
        super().__init__(shape, stop, first_block, sums)
        self._data = data

    def read_blocks(self, start: int, stop: int, buffer: Any) -> int:
        begin = self._first * self.block_size
        found = self._data[start - begin : min(stop, self.durable_end) - begin]
        memoryview(buffer)[: len(found)] = found
        return len(found)

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        import zlib

        from jitdb.errors import LogCorrupt

        begin = (block - self._first) * self.block_size
        data = bytes(self._data[begin : begin + self.block_size])
        expected, got = int(self.checksums(block, 1)[0]), zlib.crc32(data)
        if expected in (_UNKNOWN, got):
            return data, None
        fault = LogCorrupt(
            f"block {block} is damaged: expected CRC {expected:08x}, got {got:08x}",
            path=self.path, offset=block * self.block_size, block=block, expected=expected, got=got,
        )  # fmt: skip
        return data, fault
