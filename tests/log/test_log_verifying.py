"""When a wrong checksum is believed: step by step, as a writer who deletes records and a reader may take turns."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitdb.errors import LogCorrupt
from jitdb.log import Log
from jitdb.log.reading.record_reader import Verifier
from jitdb.log.sidecar import deletions
from jitdb.log.sidecar.checksums import ENTRY_SIZE, HEAD_SIZE, Entry, encode_entries

BLOCK = 512


class Steps:
    """What a writer does to the files when it deletes a record, one step at a time."""

    def __init__(self, path: Path) -> None:
        with Log(path, codec="raw", block_size=BLOCK) as log:
            self.offsets = log.append_many([b"x" * 50] * 60)
            log.delete(self.offsets[50])
            log.flush()  # the journal of deletions is there
        self.path = path
        self.side = path.with_name(path.name + ".jitdb")
        self.stamp = path.stat().st_mtime_ns

    def announce(self, record: int) -> None:
        with open(self.side / "deletions", "ab") as file:
            file.write(deletions.encode_entry(deletions.Deletion(self.offsets[record], 50)))

    def zero(self, record: int, count: int = 50) -> None:
        with open(self.path, "r+b") as file:
            file.seek(self.offsets[record] + 2)
            file.write(bytes(count))
        os.utime(self.path, ns=(self.stamp, self.stamp))  # as far as it matters here, a writer is at work

    def seal(self) -> None:
        """The checksum of block 0, and the mark."""
        with open(self.side / "checksums", "r+b") as file:
            file.seek(HEAD_SIZE)
            file.write(encode_entries([Entry(zlib.crc32(self.path.read_bytes()[:BLOCK]))], 1))
            assert file.tell() == HEAD_SIZE + ENTRY_SIZE
        with open(self.side / "deletions", "ab") as file:
            file.write(deletions.MARK)


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    return Steps(tmp_path / "a.log")


def script(monkeypatch: pytest.MonkeyPatch, around: list[tuple[Callable[[], Any], Callable[[], Any]]]) -> list[int]:
    """Do these things before and after each look at the block; gives the looks so far."""
    look, looks = Verifier._look, []

    def scripted(self: Verifier, block: int) -> Any:
        before, after = around[len(looks)] if len(looks) < len(around) else (nothing, nothing)
        looks.append(block)
        before()
        found = look(self, block)
        after()
        return found

    monkeypatch.setattr(Verifier, "_look", scripted)
    monkeypatch.setattr(Verifier, "_is_foreign", lambda self: False)  # the writer is at work
    return looks


def nothing() -> None:
    """Nobody does anything."""


def test_one_deletion_after_the_other(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each look another one is under way, and done before the journal is read."""

    def begin(record: int) -> Callable[[], None]:
        return lambda: (steps.announce(record), steps.zero(record))[1]

    looks = script(monkeypatch, [(begin(1), steps.seal), (begin(2), steps.seal), (begin(3), steps.seal)])
    with Log(steps.path, read_only=True) as log:
        data, fault = log.second_look(0)
    assert fault is None
    assert data == steps.path.read_bytes()[:BLOCK]
    assert len(looks) == 4


def test_a_deletion_that_was_known_ends_behind_the_look(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    steps.announce(1)
    steps.zero(1, 20)

    def end() -> None:
        steps.zero(1)
        steps.seal()

    script(monkeypatch, [(nothing, nothing), (nothing, end)])
    with Log(steps.path, read_only=True) as log:
        assert log.second_look(0)[1] is None


def test_a_deletion_in_another_block_excuses_nothing(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    steps.zero(1, 20)
    elsewhere = next(number for number, offset in enumerate(steps.offsets) if offset >= BLOCK)
    script(monkeypatch, [(nothing, nothing), (nothing, lambda: steps.announce(elsewhere))])
    with Log(steps.path, read_only=True) as log:
        fault = log.second_look(0)[1]
        assert fault is not None
        assert (fault.block, fault.offset) == (0, 0)
        assert fault.got == zlib.crc32(steps.path.read_bytes()[:BLOCK]) != fault.expected
        with pytest.raises(LogCorrupt):
            log.get(0)


def test_checksums_of_many_blocks(steps: Steps) -> None:
    data = steps.path.read_bytes()
    sealed = len(data) // BLOCK - 1
    crcs = [zlib.crc32(data[at * BLOCK : (at + 1) * BLOCK]) for at in range(sealed)]
    with Log(steps.path, read_only=True) as log:
        assert log.checksums(0, sealed + 3).tolist() == [*crcs, -1, -1, -1]
        assert log.checksums(2, 3).tolist() == crcs[2:5]
        assert log.checksums(sealed, 0).tolist() == []


def test_the_last_block(steps: Steps) -> None:
    """It has no checksum, but the journal knows what it was when the log was closed."""
    with Log(steps.path) as log:
        log.append(b"y" * 50)
    stat = steps.path.stat()
    last = stat.st_size // BLOCK - 1
    with open(steps.path, "r+b") as file:
        file.seek(last * BLOCK)
        file.write(b"\xff\xff")
    os.utime(steps.path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with Log(steps.path, read_only=True) as log:
        assert log.checksums(last - 1, 2)[1] == -2
        fault = log.second_look(last)[1]
        assert fault is not None
        assert fault.block == last
