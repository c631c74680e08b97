"""Files of the sidecar that somebody made up: all checksums hold, and what they say cannot be."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from jitdb.errors import LogCorrupt, LogWarning
from jitdb.log import Log
from jitdb.log.io import filenames, osfile
from jitdb.log.sidecar import deletions, framing, journal, meta, removals

pytestmark = pytest.mark.slow

RECORDS = [{"number": number} for number in range(40)]


def sealed(body: bytes) -> bytes:
    return body + struct.pack("<I", crc32(body))


@dataclass
class Made:
    """A closed log, compacted once, and its sidecar."""

    path: Path

    @property
    def sidecar(self) -> Path:
        return filenames.sidecar_path(self.path)

    def change(self, name: str, field: int, value: bytes, begin: int = 0, size: int = 0) -> None:
        """Set a field of the part of the file [begin, begin + size), which ends with its CRC."""
        data = bytearray((self.sidecar / name).read_bytes())
        end = begin + size if size else len(data)
        data[begin + field : begin + field + len(value)] = value
        data[begin:end] = sealed(bytes(data[begin : end - 4]))
        (self.sidecar / name).write_bytes(data)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    with Log(tmp_path / "a.log", codec="msgpack", block_size=512) as log:
        offsets = log.append_many(RECORDS)
        log.delete(offsets[3])
        log.compact()
        log.delete(log.since)
    return Made(tmp_path / "a.log")


def values(log: Log) -> list[Any]:
    return [record.value for record in log.stream()]


LEFT = [*RECORDS[:3], *RECORDS[4:-1]]

META: dict[str, tuple[int, bytes]] = {
    "a codec that is no UTF-8": (36, b"msg\xff"),
    "a codec of no name": (36, bytes(36)),
    "a block size of 7": (12, struct.pack("<I", 7)),
    "a block size of 4 GiB": (12, b"\xff" * 4),
    "generation 0": (32, bytes(4)),
    "the last generation": (32, b"\xff" * 4),
}


@pytest.mark.parametrize("name", META)
def test_a_meta_that_nobody_writes_is_a_damaged_one(name: str, made: Made) -> None:
    made.change(filenames.META, *META[name])
    with pytest.raises(LogCorrupt, match="meta: damaged"):
        meta.read(osfile.fs, made.sidecar / filenames.META)
    with pytest.warns(LogWarning, match="new identity"):
        log = Log(made.path)
    with log:
        assert values(log) == LEFT
        log.compact()  # and so the next generation is written
    with Log(made.path, read_only=True) as log:
        assert values(log) == LEFT


ENTRY: dict[str, tuple[int, bytes]] = {
    "an end that no file has": (8, b"\xff" * 8),
    "an unknown kind": (56, struct.pack("<I", 5)),
    "generation 0": (52, bytes(4)),
    "the last generation": (52, b"\xff" * 4),
}


@pytest.mark.parametrize("name", ENTRY)
def test_an_entry_that_nobody_writes_is_a_damaged_one(name: str, made: Made) -> None:
    path = made.sidecar / filenames.COMMIT
    before = journal.decode_all(path.read_bytes())
    path.write_bytes(path.read_bytes() + path.read_bytes()[-64:])
    made.change(filenames.COMMIT, *ENTRY[name], begin=path.stat().st_size - 64, size=64)
    assert journal.decode_all(path.read_bytes()) == before
    reader = journal.JournalReader(osfile.fs, path, 2)
    reader.poll()
    assert reader.last_generation == 2
    reader.close()
    with Log(made.path) as log:
        assert values(log) == LEFT


def test_a_deletion_of_more_bytes_than_there_are_zeroes_nothing(made: Made) -> None:
    path = made.sidecar / filenames.DELETIONS
    for offset in (0, 1, 300, 2**63 - 1, 2**64 - 2):
        path.write_bytes(path.read_bytes() + deletions.encode_entry(deletions.Deletion(offset, 2**32 - 1)))
    before = made.path.read_bytes()
    with pytest.warns(LogWarning, match="as expected, but are not known to be those that were written"), Log(made.path):
        pass
    assert made.path.read_bytes() == before


MOVED: dict[str, Callable[[bytes], bytes]] = {
    "a set that is none": lambda data: data[:56] + b"\xff" * 8 + data[64:],
    "fewer records than were removed": lambda data: data[:32] + struct.pack("<Q", 2) + data[40:],
    "more records than have room": lambda data: data[:32] + struct.pack("<Q", 1 << 32) + data[40:],
    "a set longer than the file": lambda data: data[:40] + struct.pack("<Q", 1 << 62) + data[48:],
}


@pytest.mark.parametrize("name", MOVED)
def test_a_compaction_that_nobody_made_is_not_known(name: str, made: Made) -> None:
    path = made.sidecar / filenames.moved_name(2)
    assert removals.read(osfile.fs, path) is not None
    path.write_bytes(sealed(MOVED[name](path.read_bytes()[:-4])))
    with pytest.raises(LogCorrupt):
        removals.decode(path.read_bytes(), path)
    assert removals.read(osfile.fs, path) is None


def test_no_more_room_is_made_than_there_are_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 1000)
    fd = osfile.fs.open(tmp_path / "file", 0)
    try:
        assert osfile.fs.read(fd, 1 << 46, 10) == b"x" * 990  # 64 TiB, of which no machine has room
        assert osfile.fs.read(fd, 1 << 46, 2000) == b""
    finally:
        osfile.fs.close(fd)


@pytest.mark.parametrize("name", [filenames.COMMIT, filenames.DELETIONS])
def test_a_journal_that_somebody_made_large_with_zeros(name: str, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 64 MB is looked through at the speed of reading it: no entry of zeros is read one by one."""
    with open(made.sidecar / name, "r+b") as file:
        file.truncate(64 << 20)
    tried: list[bytes] = []
    sealed = framing.is_sealed
    monkeypatch.setattr(framing, "is_sealed", lambda data: tried.append(data) or sealed(data))
    with Log(made.path, read_only=True) as log:
        assert values(log) == LEFT
    assert len(tried) < 80


def test_deletions_of_a_generation_that_nobody_reaches(made: Made) -> None:
    made.change(filenames.DELETIONS, 8, b"\xff" * 4, size=deletions.HEAD_SIZE)
    with pytest.warns(LogWarning):
        log = Log(made.path)
    with log:
        assert values(log) == LEFT
        log.append({"number": 99})
        log.flush()
    with Log(made.path, read_only=True) as log:
        assert values(log) == [*LEFT, {"number": 99}]


def test_an_entry_of_the_last_generation(made: Made) -> None:
    """The log counts as another one, which must be of a later generation: the process that found it goes on."""
    path = made.sidecar / filenames.COMMIT
    path.write_bytes(path.read_bytes() + path.read_bytes()[-64:])
    last = struct.pack("<I", meta.LAST_GENERATION)
    made.change(filenames.COMMIT, 52, last, begin=path.stat().st_size - 64, size=64)
    with pytest.warns(LogWarning, match="counts as a new log"):
        log = Log(made.path)
    with log:
        offset = log.append({"number": 99})
        log.flush()
        log.delete(offset)
        log.compact()
        assert log.repair().before.ok
        assert values(log) == LEFT


def test_deletions_of_records_that_no_file_has(made: Made) -> None:
    path = made.sidecar / filenames.DELETIONS
    for offset in (2**63, 2**64 - 2):
        path.write_bytes(path.read_bytes() + deletions.encode_entry(deletions.Deletion(offset, 5)))
    before = path.read_bytes()[deletions.HEAD_SIZE :]
    assert [each.offset for each in deletions.decode_all(before) if each is not None and each.offset >= 2**63] == [
        deletions.APPLIED
    ] * sum(before[at : at + 8] == b"\xff" * 8 for at in range(0, len(before), deletions.ENTRY_SIZE))
    with Log(made.path, read_only=True) as log:
        assert log.deleting() == []
        assert values(log) == LEFT
