"""Each kind of log holds to what is expected of its step (jitdb.testing.sources): ours, a sample, and two made here."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jitdb import JITDB, Log
from jitdb.engine.checking.check_indexes import SampledLog
from jitdb.errors import LogError
from jitdb.log import LogSource
from jitdb.log.blocks.block_format import pack
from jitdb.log.codecs import Codec, get_codec
from jitdb.log.reading.extent import Watcher
from jitdb.testing.sources import (
    GrowingSourceTests,
    LogSourceTests,
    MaintainedSourceTests,
    Records,
    ScanSourceTests,
)

BLOCK = 64
VALUES = [b"%d:" % number + b"x" * (number % 17) for number in range(40)]
DELETED = (0, 7, 8, 39)
KEPT: Records = [None if number in DELETED else value for number, value in enumerate(VALUES)]


def make_log(path: Path) -> Path:
    with Log(path, codec="raw", block_size=BLOCK) as log:
        offsets = log.append_many(VALUES)
        for number in DELETED:
            log.delete(offsets[number])
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_log(tmp_path / "a.log")


@pytest.fixture
def records() -> Records:
    return KEPT


class TestLog(MaintainedSourceTests):
    @pytest.fixture
    def records(self) -> Records:
        return KEPT

    @pytest.fixture
    def source(self, path: Path) -> Iterator[Log]:
        with Log(path) as log:
            yield log


class TestReader(GrowingSourceTests):
    """A log that another process writes: here, the same process by another object."""

    @pytest.fixture
    def records(self) -> Records:
        return KEPT

    @pytest.fixture
    def source(self, path: Path) -> Iterator[Log]:
        with Log(path, read_only=True) as log:
            yield log

    def append(self, source: LogSource, record: bytes) -> None:
        with Log(source.path) as log:
            log.append(record)


class TestSampledLog(ScanSourceTests):
    @pytest.fixture(params=[[0], [1, 3], [0, 2, 8], range(9)])
    def blocks(self, request: pytest.FixtureRequest) -> list[int]:
        return list(request.param)

    @pytest.fixture
    def records(self, path: Path, blocks: list[int]) -> Records:
        with Log(path, read_only=True) as log:
            return [
                None if deleted else data[start : start + length].tobytes()
                for _, offsets, lengths, dead, starts, data, _ in log.stream_batches()
                for offset, length, deleted, start in zip(offsets, lengths, dead, starts, strict=True)
                if offset // BLOCK in blocks
            ]

    @pytest.fixture
    def source(self, path: Path, blocks: list[int]) -> Iterator[SampledLog]:
        with Log(path, read_only=True) as log:
            assert -(-log.durable_end // BLOCK) == 9
            yield SampledLog(log, blocks)


class Lines(LogSource):
    """A text file that somebody else appends to, read where it lies: each line is a record.

    Its blocks are made when they are read. Block n has the lines that begin in the bytes from n * WINDOW on, framed.
    """

    WINDOW = 32
    LONGEST = 40  # bytes of a line

    def __init__(self, path: Path) -> None:
        self._path = path
        self._starts: list[int] = []  # of the lines
        self._text = b""
        self._watcher = Watcher(self, looks=True)
        self.refresh()

    @property
    def path(self) -> Path:
        return self._path

    @property
    def codec(self) -> Codec:
        return get_codec("raw")

    @property
    def block_size(self) -> int:
        return 3 * self.WINDOW + self.LONGEST + 4

    @property
    def identity(self) -> bytes:
        return blake2b(str(self._path).encode(), digest_size=16).digest()

    @property
    def generation(self) -> int:
        return 1

    @property
    def identity_is_stored(self) -> bool:
        return False

    @property
    def durable_end(self) -> int:
        last = max(0, len(self._text) - 1) // self.WINDOW
        while last and not self._framed(last):
            last -= 1
        return last * self.block_size + len(self._framed(last))

    def read_blocks(self, start: int, stop: int, buffer: Any) -> int:
        size = max(0, min(stop, self.durable_end) - start)
        blocks = range(start // self.block_size, -(-(start + size) // self.block_size))
        data = b"".join(self._framed(block).ljust(self.block_size, b"\0") for block in blocks)[:size]
        np.frombuffer(buffer, np.uint8)[:size] = np.frombuffer(data, np.uint8)
        return size

    def _framed(self, block: int) -> bytes:
        begin = block * self.WINDOW
        first, stop = (bisect_right(self._starts, at - 1) for at in (begin, begin + self.WINDOW))
        lines = [self._text[at : self._text.index(b"\n", at)] for at in self._starts[first:stop]]
        return pack(lines, list(map(len, lines)), self.block_size)

    def watch(self, callback: Any) -> Any:
        return self._watcher.watch(callback)

    def refresh(self) -> bool:
        text = self._path.read_bytes()
        text = text[: text.rfind(b"\n") + 1]
        before, self._text = self._text, text
        self._starts = [at for at in range(len(text)) if (at == 0 or text[at - 1] == 10) and text[at] != 10]
        return len(text) != len(before)


class TestAnotherKind(GrowingSourceTests):
    """A kind of log that the engine never saw is one class."""

    @pytest.fixture
    def records(self) -> Records:
        return list(VALUES)

    @pytest.fixture
    def source(self, tmp_path: Path) -> Lines:
        path = tmp_path / "lines.txt"
        path.write_bytes(b"".join(value + b"\n" for value in VALUES) + b"not yet who")
        return Lines(path)

    def append(self, source: LogSource, record: bytes) -> None:
        text = source.path.read_bytes()
        source.path.write_bytes(text[: text.rfind(b"\n") + 1] + record + b"\n")

    def test_what_it_cannot_do_is_told(self, source: Lines, tmp_path: Path) -> None:
        db = JITDB(source, tmp_path / "indexes")
        with pytest.raises(LogError, match="this kind of log cannot be compacted"):
            db.compact()
        with pytest.raises(LogError, match="this kind of log cannot be repaired"):
            db.repair()
        report = db.verify()
        assert report.ok
        assert report.log.notes == ("this kind of log cannot be verified",)


class Plain(LogSource):
    """As little as a log can be: one block, which it holds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data = pack([value for value in VALUES if value], list(map(len, VALUES)), 1 << 12)

    path = property(lambda self: self._path)
    codec = property(lambda self: get_codec("raw"))
    block_size = property(lambda self: 1 << 12)
    durable_end = property(lambda self: len(self._data))
    identity = property(lambda self: bytes(range(16)))
    generation = property(lambda self: 3)
    identity_is_stored = property(lambda self: True)

    def read_blocks(self, start: int, stop: int, buffer: Any) -> int:
        part = self._data[start:stop]
        np.frombuffer(buffer, np.uint8)[: len(part)] = np.frombuffer(part, np.uint8)
        return len(part)


class TestTheLeast(LogSourceTests):
    @pytest.fixture
    def records(self) -> Records:
        return list(VALUES)

    @pytest.fixture
    def source(self, tmp_path: Path) -> Plain:
        return Plain(tmp_path / "nothing.log")
