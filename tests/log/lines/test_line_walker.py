"""Chunks of any size find the lines that splitting the file finds, each once, whatever is in them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from thoroughness import tries

from jitdb.errors import LogSuperseded
from jitdb.log.codecs.fields.constants import DELETED
from jitdb.log.lines import line_walkers
from jitdb.log.lines.form import MARK
from jitdb.log.lines.framing import LINES
from jitdb.log.lines.line_kernels import find_newline
from jitdb.log.lines.line_walkers import LineWalker

SIZE = 8  # bytes of a block


@pytest.fixture(autouse=True, params=["at once", "in little room"])
def _room(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk finds all lines, or few."""
    if request.param == "in little room":
        monkeypatch.setattr(line_walkers, "MOST", 3)


class Bytes:
    """A file of lines that lies in memory."""

    block_size = SIZE

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.durable_end = data.rfind(b"\n") + 1
        self.most = 0  # bytes read at once

    def read_blocks(self, start: int, stop: int, buffer: Any) -> int:
        found = self.data[start : min(stop, self.durable_end)]
        memoryview(buffer)[: len(found)] = found
        self.most = max(self.most, stop - start)
        return len(found)

    def second_look(self, block: int) -> tuple[bytes, None]:
        return self.data[block * SIZE : (block + 1) * SIZE], None


def split(data: bytes) -> list[tuple[int, bytes, bool]]:
    """Where each whole line begins, its bytes, and whether it is blank."""
    found, at = [], len(MARK) if data.startswith(MARK) else 0
    while (end := data.find(b"\n", at)) >= 0:
        found.append((at, data[at:end], not data[at:end].strip(b" \t\r")))
        at = end + 1
    return found


def walked(log: Bytes, most: int, start: int = 0) -> Iterator[tuple[int, bytes, bool]]:
    """What a scan of chunks of `most` bytes gives from the line that begins at `start` on."""
    walker = LineWalker(log, most, log.durable_end, LINES)
    first = start - start % SIZE
    for begin in range(first, log.durable_end, most):
        for count, *_ in walker.walks(begin, start):
            room = walker.room
            low = int(room.starts[:count].searchsorted(start - begin)) if begin < start else 0
            for at, length, state in zip(*(array[low:count].tolist() for array in room[:3]), strict=True):
                yield begin + at, walker.buffer[at : at + length].tobytes(), state == DELETED


TEXTS = [
    b"", b"\n", b"a", b"a\n", b"\n\n\n", MARK, MARK + b"\n", MARK + b"a\nb\n", b"a\r\n \t\r\nb\r\n", b"12345678\n" * 3,
    b"1234567\n" * 4, b"1234567\n\n1234567\n", b"x" * 100 + b"\n", b"a\n" + b"x" * 100 + b"\nb\n", b"a\nb", b"\0\n\0",
    b"a" + MARK + b"\n", b"\xff\n" * 9,
]  # fmt: skip


@pytest.mark.parametrize("data", TEXTS)
@pytest.mark.parametrize("most", [SIZE, 2 * SIZE, 128])
def test_all_lines_are_found_once(data: bytes, most: int) -> None:
    assert list(walked(Bytes(data), most)) == split(data)


def random_lines(rng: random.Random) -> bytes:
    alphabet = rng.choice([b"\nab", b"\n\n\r \t", b"\nabcdefghijklmnopqrstuvwxyz0123456789", bytes(range(256))])
    return bytes(rng.choice(alphabet) for _ in range(rng.randrange(200)))


def test_random_bytes_from_any_line_on() -> None:
    rng = random.Random(5)
    for _ in range(tries(60, 3000)):
        data = random_lines(rng)
        lines = split(data)
        for start in {0, *(at for at, _, _ in rng.sample(lines, min(3, len(lines))))}:
            most = SIZE * rng.randrange(1, 8)
            assert list(walked(Bytes(data), most, start)) == [line for line in lines if line[0] >= start or not start]


def test_newlines_are_found_wherever_they_are() -> None:
    for size in range(80):
        data = np.full(size, 11, np.uint8)
        assert find_newline(data, 0, size) == -1
        for at in range(size):
            data[at] = 10
            assert [find_newline(data, begin, size) for begin in (0, at, at + 1)] == [at, at, -1]
            assert find_newline(data, 0, at) == -1
            data[at] = 0x0B if at % 2 else 0x8A


def test_a_long_line_costs_its_own_memory_and_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_walkers, "MORE", 16)
    data = b"a\n" * 20 + b"x" * 10_000 + b"\n" + b"b\n" * 100
    log = Bytes(data)
    walker = LineWalker(log, 16, log.durable_end, LINES)
    usual, largest = len(walker.buffer), 0
    for begin in range(0, log.durable_end, 16):
        walker.walk(walker.read(begin, 0), np.empty(0, np.int64))
        largest = max(largest, len(walker.buffer))
    assert 10_000 < largest < 40_000
    assert len(walker.buffer) == usual


def test_a_file_that_lost_its_last_newline_is_told() -> None:
    log = Bytes(b"a\n" + b"x" * 50 + b"\n")
    walker = LineWalker(log, SIZE, log.durable_end, LINES)
    log.data = log.data.replace(b"x\n", b"xx")
    with pytest.raises(LogSuperseded):
        walker.read(0, 0)


@pytest.mark.parametrize("data", TEXTS)
def test_the_line_that_ends_at_a_byte(data: bytes) -> None:
    ends = {at + len(line) + 1: (at, line, blank) for at, line, blank in split(data)}
    for end in range(1, len(data) + 2):
        found = LINES.last_record(Bytes(data), end)
        if end in ends:
            at, line, blank = ends[end]
            assert found == (None if blank else line, at, False)
        else:
            assert found.offset == -1


def test_the_records_of_a_block() -> None:
    data = b"\xef\xbb\xbfa\n\nbcdefghijk\nl\n \nm\nno"
    found = [list(LINES.records(Bytes(data), block, 2 * SIZE)) for block in range(3)]
    assert found == [[(3, b"a")], [(17, b"l"), (21, b"m")], [(17, b"l"), (21, b"m")]]
