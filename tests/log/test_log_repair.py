"""Log.repair(): what can be read is kept, what cannot is named, and all else is as it was."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from log_damage import Snapshot, every_flip, make_log
from thoroughness import tries

from jitdb.errors import LogCorrupt, LogReadOnly, LogWarning
from jitdb.log import Log
from jitdb.log.codecs import get_codec
from jitdb.log.io import osfile
from jitdb.log.maintenance.report import RepairReport
from jitdb.log.maintenance.salvage import DamagedBlock, is_sound, repair_block

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(osfile.FileSystem, "fsync", lambda self, fd: None)  # a hundred thousand of them take minutes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        yield


def repaired(path: Path) -> tuple[RepairReport, dict[int, Any], bytes]:
    """Repair, and see that it helped; the report, the records, the identity."""
    with Log(path) as log:
        report = log.repair()
        assert log.verify().ok
        assert log.repair().actions == ()
        found = {record.offset: record.value for record in log.stream()}
        offset = log.append(next(iter(found.values()))) if found else -1
        log.flush()
        assert offset < 0 or log.get(offset) == next(iter(found.values()))
        identity = log.identity
    with Log(path, read_only=True) as log:
        assert log.verify().ok
        assert log.identity == identity
    return report, found, identity


def flip_and_mend(shot: Snapshot, step: int = 1) -> int:
    """For each `step`-th bit of all files but `meta`; gives how many."""
    with Log(shot.log, read_only=True) as log:
        identity = log.identity
    shot.restore()
    count = 0
    for name, bit in every_flip(shot, step, ("a.log", "commit", "checksums", "deletions")):
        report, found, after = repaired(shot.log)
        damaged = report.before.damaged_blocks
        for offset in shot.records.keys() | found.keys():
            if found.get(offset) != shot.records.get(offset):
                assert offset in report.kept or offset not in found, (name, bit)
                assert offset // 256 in damaged, (name, bit)
        assert set(damaged) <= ({bit // 8 // 256} if name == "a.log" else set()), (name, bit)
        assert report.actions or report.notes or name in ("commit", "checksums"), (name, bit)  # opening wrote it anew
        assert report.new_identity == (after != identity), (name, bit)
        assert not report.new_identity or damaged or name == "deletions", (name, bit)
        count += 1
    return count


@pytest.mark.parametrize(
    ("codec", "step"), [("bipf", tries(313, 1)), ("msgpack", tries(421, 1)), ("raw", tries(509, 1))]
)
def test_every_flipped_bit_costs_its_block_at_most(tmp_path: Path, codec: str, step: int) -> None:
    assert flip_and_mend(make_log(tmp_path, codec), step) > 8000 // step


def wound(draw: Random, data: bytes) -> bytes:
    """Some damage that is more than a bit."""
    wounded = bytearray(data)
    size = draw.randint(1, min(len(data), draw.choice([3, 30, 200])))
    at, other = draw.randrange(len(data) - size + 1), draw.randrange(len(data) - size + 1)
    how = draw.randrange(4)
    if how == 0:
        wounded[at : at + size] = bytes(size)
    elif how == 1:
        wounded[at : at + size] = draw.randbytes(size)
    elif how == 2:
        wounded[at : at + size] = wounded[other : other + size]
    else:
        for _ in range(draw.randint(2, 4)):
            wounded[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(wounded)


def wound_and_mend(shot: Snapshot, seeds: range) -> tuple[int, int]:
    """Damage one file of the log for each seed, and repair it; how many records were to be saved, and were."""
    wanted = saved = 0
    for seed in seeds:
        draw = Random(seed)
        path = draw.choice([path for path in shot.files if path.name in ("a.log", "checksums", "deletions")])
        data = wound(draw, shot.files[path])
        if data != shot.files[path]:
            shot.damage(path, data)
            report, found, _ = repaired(shot.log)
            for offset, record in found.items():
                assert record == shot.records.get(offset) or offset in report.kept, (seed, path.name, offset)
            assert path.name == "a.log" or found == shot.records, seed
            wanted += len(shot.records)
            saved += sum(found.get(offset) == record for offset, record in shot.records.items())
        shot.restore()
    return wanted, saved


@pytest.mark.parametrize("codec", ["bipf", "msgpack", "raw"])
def test_what_is_not_listed_is_certain(tmp_path: Path, codec: str) -> None:
    wanted, saved = wound_and_mend(make_log(tmp_path, codec, records=40), range(tries(30, 1000)))
    assert saved > 0.9 * wanted


class TestBlocks:
    """By hand."""

    codec = get_codec("bipf")
    records = tuple(get_codec("bipf").encode({"n": number, "text": "abc" * number}) for number in range(1, 7))

    def block(self) -> tuple[bytes, list[int]]:
        data, at = b"", []
        for record in self.records:
            at.append(len(data))
            data += len(record).to_bytes(2, "little") + record
        return data.ljust(256, b"\0"), at

    def repair(self, data: bytes, used: int = 256) -> Any:
        image = repair_block(DamagedBlock(data, used, None), self.codec)
        assert is_sound(image.data, image.end if used < 256 else 256, self.codec)
        return image

    def test_a_wrong_length_costs_no_record(self) -> None:
        """Behind it the next chain is found, and what lies between is a record."""
        data, at = self.block()
        for wrong in (b"\xff\xff", b"\x01\x00", b"\x00\x00", b"\x30\x00"):
            image = self.repair(data[: at[2]] + wrong + data[at[2] + 2 :])
            assert (image.data, image.kept, image.lost) == (data, tuple(at), ())

    def test_a_wrong_length_and_a_wrong_record(self) -> None:
        data, at = self.block()
        image = self.repair(data[: at[2]] + b"\xff\xff\xff\xff\xff" + data[at[2] + 5 :])
        assert image.kept == (*at[:2], *at[3:])
        assert image.lost == (at[2],)
        assert image.data[at[3] :] == data[at[3] :]

    def test_a_record_that_is_refused(self) -> None:
        data, at = self.block()
        image = self.repair(data[: at[4] + 2] + b"\xff" + data[at[4] + 3 :])
        assert (image.kept, image.lost) == ((*at[:4], at[5]), (at[4],))

    def test_two_wrong_lengths(self) -> None:
        """What lies between them is lost: only chains that lead to the end are trusted."""
        data, at = self.block()
        image = self.repair(data[: at[1]] + b"\xff\xff" + data[at[1] + 2 : at[3]] + b"\xff\xff" + data[at[3] + 2 :])
        assert (image.kept, image.lost) == ((at[0], *at[4:]), (at[1],))

    def test_nothing_can_be_read(self) -> None:
        image = self.repair(b"\xff" * 250 + bytes(6))
        assert (image.kept, image.lost) == ((), (0,))

    def test_the_last_block_ends_where_it_did(self) -> None:
        data, at = self.block()
        used = len(data.rstrip(b"\0"))
        image = self.repair(data[: at[5]] + b"\x05\x00" + data[at[5] + 2 :], used)
        assert image.end == used
        assert image.lost == (at[5],)

    def test_raw_records_cannot_be_told(self) -> None:
        data, at = self.block()
        image = repair_block(DamagedBlock(data[: at[2]] + b"\xff\xff" + data[at[2] + 2 :], 256, None), get_codec("raw"))
        assert (image.kept, image.lost) == (tuple(at[:2]), (at[2],))


class TestTheLog:
    @pytest.fixture
    def shot(self, tmp_path: Path) -> Snapshot:
        return make_log(tmp_path, "msgpack", records=30)

    def hurt(self, shot: Snapshot, at: int, data: bytes) -> None:
        whole = bytearray(shot.files[shot.log])
        whole[at : at + len(data)] = data
        shot.damage(shot.log, bytes(whole))

    def test_the_damaged_bytes_are_kept(self, shot: Snapshot) -> None:
        self.hurt(shot, 256, b"\xff\xff\xff")
        damaged = shot.log.read_bytes()[256:512]
        report, _, _ = repaired(shot.log)
        (done,) = report.actions
        assert (shot.log.parent / done.copy).read_bytes() == damaged
        assert "damaged-1-0" in str(report)
        assert report.to_json()["new_identity"] is True

    def test_a_new_identity_only_where_records_may_be_others(self, shot: Snapshot) -> None:
        with Log(shot.log, read_only=True) as log:
            before = log.identity, log.generation
        shot.flip(shot.sidecar / "checksums", 8 * 26)
        assert repaired(shot.log)[2] == before[0]
        shot.restore()
        self.hurt(shot, 256, b"\xff\xff\xff")
        report, _, identity = repaired(shot.log)
        assert identity != before[0]
        assert report.new_identity
        with Log(shot.log, read_only=True) as log:
            assert log.generation == before[1] + 1

    def test_a_repaired_log_object_goes_on(self, shot: Snapshot) -> None:
        self.hurt(shot, 0, b"\xff\xff\xff")
        with Log(shot.log) as log, Log(shot.log, read_only=True) as reader:
            seen: list[int] = []
            log.on_since(seen.append)
            identity = reader.identity
            log.append({"n": "before"})
            log.repair()
            offset = log.append({"n": "after"})
            log.flush()
            assert log.get(offset) == {"n": "after"}
            assert seen[-1] == offset
            reader.refresh()
            assert reader.identity == log.identity != identity
            assert reader.get(offset) == {"n": "after"}

    def test_a_damaged_last_block_is_not_compacted_away(self, shot: Snapshot) -> None:
        at = max(shot.records) + 8
        self.hurt(shot, at, bytes([shot.files[shot.log][at] ^ 1]))
        with Log(shot.log) as log:
            with pytest.raises(LogCorrupt, match="repair the log first"):
                log.compact()
            log.repair()
            assert log.compact().removed == len(shot.deleted)
            assert [record.value for record in log.stream()][:-1] == list(shot.records.values())[:-1]

    def test_a_reader_cannot_repair(self, shot: Snapshot) -> None:
        with Log(shot.log, read_only=True) as log, pytest.raises(LogReadOnly):
            log.repair()

    def test_nothing_to_repair(self, shot: Snapshot) -> None:
        with Log(shot.log) as log:
            report = log.repair()
        assert (report.actions, report.new_identity) == ((), False)
        assert "nothing to repair" in str(report)

    @pytest.mark.parametrize("name", ["checksums", "deletions", "commit"])
    def test_a_file_that_is_gone(self, shot: Snapshot, name: str) -> None:
        (shot.sidecar / name).unlink()
        _, found, _ = repaired(shot.log)
        assert found == shot.records

    def test_a_sidecar_that_is_gone(self, shot: Snapshot) -> None:
        for path in shot.files:
            if path != shot.log:
                path.unlink()
        with Log(shot.log, codec="msgpack", block_size=256) as log:
            assert log.verify().ok
            assert {record.offset: record.value for record in log.stream()} == shot.records

    @pytest.mark.parametrize("records", [3, 30])
    @pytest.mark.parametrize("block_size", [256, 1000, 65536, 131072])
    def test_a_lost_meta(self, tmp_path: Path, records: int, block_size: int) -> None:
        """The journal knows the block size: nothing is taken for a torn end."""
        (tmp_path / "b").mkdir()
        shot = make_log(tmp_path / "b", "msgpack", block_size=block_size, records=records, deleted=(1,))
        for lost in (lambda path: path.write_bytes(b"?" * 76), Path.unlink):
            for read_only in (True, False):
                lost(shot.sidecar / "meta")
                with Log(shot.log, read_only=read_only) as log:
                    assert log.block_size == block_size
                    assert {record.offset: record.value for record in log.stream()} == shot.records
                    assert log.verify().ok
                shot.restore()


@pytest.mark.parametrize("codec", ["bipf", "msgpack"])
def test_a_flipped_bit_of_meta(tmp_path: Path, codec: str) -> None:
    """It is damaged, and warned of: the log gets another identity, and keeps its records."""
    shot = make_log(tmp_path, codec)
    for _, bit in every_flip(shot, tries(23, 1), ("meta",)):
        with pytest.warns(LogWarning, match="damaged"):
            log = Log(shot.log, read_only=bool(bit % 2))
        with log:
            assert {record.offset: record.value for record in log.stream()} == shot.records
            assert log.verify().ok


class TestAnotherProgramComesBetween:
    """A repair is cut short, another program appends to the log, and then the next writer comes."""

    def test_it_had_not_come_to_its_moment(self, tmp_path: Path) -> None:
        self.cut_short(tmp_path, moment=False)

    def test_it_had(self, tmp_path: Path) -> None:
        self.cut_short(tmp_path, moment=True)

    def cut_short(self, tmp_path: Path, *, moment: bool) -> None:
        shot = make_log(tmp_path, "msgpack", records=30)
        data = bytearray(shot.files[shot.log])
        data[256:259] = b"\xff\xff\xff"
        shot.damage(shot.log, bytes(data))
        record = get_codec("msgpack").encode({"n": "of another program"})

        class Killed(BaseException):
            pass

        class Stopping(osfile.FileSystem):
            def rename(self, path: Path, target: Path, /) -> None:
                if path.name == "next-log" and not moment:
                    raise Killed
                super().rename(path, target)
                if path.name == "next-log":
                    raise Killed

        was, osfile.fs = osfile.fs, Stopping()
        try:
            log = Log(shot.log)
            with pytest.raises(Killed):
                log.repair()
            log._opened.close()  # type: ignore[union-attr]
        finally:
            osfile.fs = was
        end = log.durable_end
        with shot.log.open("r+b") as file:
            assert end % 256 + len(record) + 4 < 256
            file.seek(end)
            file.write(len(record).to_bytes(2, "little") + record)
        os.utime(shot.log, ns=(0, shot.log.stat().st_mtime_ns + 10**9))
        for read_only in (True, False, True):
            with Log(shot.log, read_only=read_only) as again:
                assert again.get(end) == {"n": "of another program"}
                assert not list(again.sidecar.glob("torn-*"))
        report, found, _ = repaired(shot.log)
        assert found.pop(end) == {"n": "of another program"}
        assert bool(report.lost) != moment
        assert all(found[offset] == shot.records[offset] for offset in found.keys() & shot.records.keys())
        assert len(found) >= len(shot.records) - 3
