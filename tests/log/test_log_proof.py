"""What is known of a block after other programs changed the log's file, and what compaction makes of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from jitdb.errors import LogCorrupt
from jitdb.log import Log
from jitdb.log.sidecar import checksums
from jitdb.log.sidecar.checksums import FLAGS, Entry, decode_entries, encode_entries, outdated

BLOCK = 512


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.log"
    with Log(path, codec="msgpack", block_size=BLOCK) as log:
        log.append_many([{"number": number, "text": "x" * 20} for number in range(200)])
    return path


def offsets_of(path: Path) -> list[int]:
    with Log(path, read_only=True) as log:
        return [record.offset for record in log.stream(raw=True)]


def write(path: Path, at: int, data: bytes) -> None:
    """As another program, which changes the file's time."""
    stamp = path.stat().st_mtime_ns
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)
    os.utime(path, ns=(stamp, stamp + 10**10))


def zero(path: Path, offset: int) -> None:
    """Delete a record as JavaScript does."""
    with open(path, "rb") as file:
        file.seek(offset)
        length = int.from_bytes(file.read(2), "little")
    write(path, offset + 2, bytes(length))


def test_a_changed_time_leaves_the_proof(path: Path) -> None:
    write(path, 0, path.read_bytes()[:1])
    for read_only in (True, False):
        with Log(path, read_only=read_only) as log:
            report = log.verify()
            assert (report.ok, report.unverified, report.proven) == (True, 0, report.blocks - 1)
            assert log.stats().proven_blocks == report.proven


@pytest.mark.parametrize("read_only", [True, False])
def test_once_the_time_changed_a_checksum_does_not_tell_damage_from_a_change(path: Path, read_only: bool) -> None:
    """The codec does: it refuses the record."""
    offsets = offsets_of(path)
    write(path, 700, bytes([path.read_bytes()[700] ^ 4]))
    with Log(path, read_only=read_only) as log:
        assert log.verify().damaged_blocks == [1]
        assert {record.offset for record in log.stream(raw=True)} == set(offsets)
    with Log(path) as log:
        (action,) = log.repair().actions
        assert (action.block, action.restored, len(action.lost)) == (1, False, 1)
    with Log(path, read_only=True) as log:
        assert [record.offset for record in log.stream()] == [each for each in offsets if each not in action.lost]


def test_a_foreign_deletion_is_no_damage(path: Path) -> None:
    offsets = offsets_of(path)
    gone = next(offset for offset in offsets if offset >= BLOCK)
    zero(path, gone)
    for read_only in (True, False, False):
        with Log(path, read_only=read_only) as log:
            report = log.verify()
            assert (report.ok, report.unverified, report.proven) == (True, 1, report.blocks - 2)
            assert [record.offset for record in log.stream()] == [each for each in offsets if each != gone]
            assert log.stats().proven_blocks == report.proven
            assert "proven by checksums" in str(report)
            log.get(offsets[offsets.index(gone) + 1])


def test_compaction_keeps_what_is_proven_and_marks_the_rest(path: Path) -> None:
    offsets = offsets_of(path)
    gone = next(offset for offset in offsets if offset >= 5 * BLOCK)
    zero(path, gone)
    with Log(path) as log:
        log.compact()
        report = log.verify()
        assert report.ok
        assert 1 <= report.unverified <= 2  # its other records stand in so many new blocks
        assert report.proven == report.blocks - 1 - report.unverified
    stamp = path.stat().st_mtime_ns
    write(path, 5 * BLOCK + 9, b"\x55")  # what becomes of it from now on is noticed
    os.utime(path, ns=(stamp, stamp))
    with Log(path) as log:
        assert log.verify().damaged_blocks == [5]


@pytest.mark.parametrize("how", ["record", "padding"])
@pytest.mark.parametrize("sidecar", ["none", "changed"])
def test_compaction_never_seals_damage(path: Path, how: str, sidecar: str) -> None:
    offsets = offsets_of(path)
    number = next(number for number, offset in enumerate(offsets) if offset >= 3 * BLOCK)
    zero(path, offsets[number + 1])
    if sidecar == "none":
        shutil.rmtree(f"{path}.jitdb")
    at = offsets[number] + 2 if how == "record" else 4 * BLOCK - 1
    write(path, at, b"\xc1")
    before = path.read_bytes()
    with Log(path, codec="msgpack", block_size=BLOCK) as log:
        with pytest.raises(LogCorrupt, match="block 3 is damaged"):
            log.compact()
        assert path.read_bytes() == before
        assert log.verify().damaged_blocks == [3]
        log.repair()
        log.compact()
        assert log.verify().ok


def test_a_repair_says_for_ever_what_it_could_not_prove(path: Path) -> None:
    (Path(f"{path}.jitdb") / "checksums").write_bytes(b"")
    with Log(path) as log:
        assert log.repair().unproven
    with Log(path, read_only=True) as log:
        report = log.verify()
        assert (report.ok, report.proven) == (True, 0)


@pytest.mark.parametrize("flags", FLAGS)
def test_a_flipped_bit_of_an_entry(flags: int) -> None:
    data = encode_entries([Entry(0x89ABCDEF, flags)], 3, 7)
    assert decode_entries(bytes(56) + data, 0, 3)[7] == (0x89ABCDEF, flags)
    for bit in range(64):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert decode_entries(bytes(flipped), 7, 3) == [None]
        assert outdated(bytes(56) + flipped, 3) == bytes(64)


def test_entries_of_before_and_damaged_ones() -> None:
    entries = bytearray(encode_entries([Entry(5), None, None, Entry(6, checksums.UNPROVEN)], 3))
    entries[16:24] = b"12345678"
    assert decode_entries(outdated(bytes(entries), 3), 0, 3) == [(5, 1), None, None, (6, 3)]


@pytest.mark.parametrize("reopened", [False, True])
def test_records_of_others_in_the_last_block_are_not_proven_when_it_is_sealed(path: Path, reopened: bool) -> None:
    before = len(path.read_bytes()) // BLOCK
    shutil.rmtree(f"{path}.jitdb")
    more = [{"number": number, "text": "y" * 20} for number in range(60)]
    if reopened:
        with Log(path, block_size=BLOCK):
            pass
    with Log(path, block_size=BLOCK) as log:
        log.append_many(more)
    with Log(path, read_only=True) as log:
        report = log.verify()
        assert (report.ok, report.unverified) == (True, before)
        assert report.proven == report.blocks - 1 - before > 0


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("gone", [3, -1])
def test_compaction_leaves_a_sound_log_proven(path: Path, gone: int, reopened: bool) -> None:
    """The last block of before has no checksum, but its writer knows the CRC of what he wrote."""
    offsets = offsets_of(path)
    with Log(path) as log:
        for _ in range(3):
            log.delete(offsets[gone])
            log.compact()
            if reopened:
                log.close()
                log = Log(path)
            log.append_many([{"number": number, "text": "y" * 20} for number in range(60)])  # seals the block
            log.flush()
            offsets = offsets_of(path)
            assert log.verify().unverified == 0
        report = log.verify()
        assert (report.ok, report.proven) == (True, report.blocks - 1)
        log.close()


def test_compaction_does_not_copy_what_is_damaged_in_the_last_block(path: Path) -> None:
    """A record that the codec accepts is not what was written for that."""
    offsets = offsets_of(path)
    with Log(path) as log:
        log.delete(offsets[3])
        log.flush()
        before = path.stat()
        with open(path, "r+b") as file:
            file.seek(offsets[-1] + 2 + 20)
            assert file.read(1) == b"x"
            file.seek(-1, os.SEEK_CUR)
            file.write(b"z")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(LogCorrupt, match=f"block {offsets[-1] // BLOCK} is damaged"):
            log.compact()
        log.append({"number": 200})


def test_compaction_proves_nothing_that_others_wrote_in_the_last_block(path: Path) -> None:
    """Its writer knows what CRC it has, and not whether that is what was written."""
    offsets = offsets_of(path)
    end = len(path.read_bytes().rstrip(b"\0"))
    write(path, end, b"\x04\x00\x81\xa1a\x01")
    with Log(path) as log:
        assert log.stats().records == 201
        log.delete(offsets[3])
        log.compact()
        log.append_many([{"number": number, "text": "y" * 20} for number in range(60)])
        log.flush()
        assert log.verify().unverified in (1, 2)  # the records of that block stand in so many by now
