"""Index files of one copy of a log beside another copy, which has records of the same lengths in the same places."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from engine_helpers import check, oracle_of

from jitdb import JITDB, Log
from jitdb.engine.catalog.copies import LastRecords
from jitdb.errors import IndexWarning, LogCorrupt, LogWriteFailed
from jitdb.log.io import osfile
from jitdb.log.sidecar.deletions import MARK
from jitdb.operators import and_, equal, gt, includes, not_, predicate
from jitdb.operators.nodes.operation import Operation

pytestmark = pytest.mark.slow


def is_large(value: object) -> bool:
    return isinstance(value, int) and value > 500


QUESTIONS: tuple[Operation, ...] = (
    equal("type", "post"),
    not_(equal("type", "post")),
    equal("key", "%0007", prefix=32),
    equal("root", "%0003", use_map=True),
    includes("tags", "b"),
    predicate("number", is_large),
    and_(gt(400, "number"), equal("type", "vote")),
)


def record(number: int, salt: int) -> dict[str, object]:
    """Whatever the salt is, it takes the same bytes."""
    mixed = number * 7919 + salt * 104729
    return {
        "key": f"%{mixed % 10000:04d}",
        "type": "post" if mixed % 3 else "vote",
        "root": f"%{mixed % 5:04d}",
        "tags": ["a", "b" if mixed % 2 else "c"],
        "number": mixed % 1000,
        "timestamp": 1000 + mixed % 997,
    }


def grow(path: Path, first: int, count: int, salt: int) -> None:
    with Log(path, codec="bipf", block_size=1024) as log:
        log.append_many([record(number, salt) for number in range(first, first + count)])


def index(path: Path) -> None:
    with Log(path, read_only=True) as log:
        JITDB(log).prepare(*QUESTIONS)


def ask(path: Path) -> list[str]:
    """Every way of asking is held against the log's file; the warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with Log(path, read_only=True) as log:
            db = JITDB(log)
            check(db, oracle_of(log), QUESTIONS)
            db.prepare()  # what pages need too
    return [str(each.message) for each in told if issubclass(each.category, IndexWarning)]


def folder_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.jitdb") / "indexes"


def copy(path: Path, target: Path) -> Path:
    target.mkdir()
    shutil.copy2(path, target)
    shutil.copytree(folder_of(path).parent, target / folder_of(path).parent.name)
    return target / path.name


@pytest.fixture
def copies(tmp_path: Path) -> tuple[Path, Path]:
    """Two logs that were one for 40 records; the indexes of the second one."""
    (tmp_path / "a").mkdir()
    first = tmp_path / "a" / "x.log"
    grow(first, 0, 40, 0)
    index(first)
    second = copy(first, tmp_path / "b")
    for salt, path in enumerate((first, second)):
        grow(path, 40, 60, salt)
        index(path)
    with Log(first, read_only=True) as log, Log(second, read_only=True) as other:
        assert (log.identity, log.generation, log.durable_end) == (other.identity, other.generation, other.durable_end)
    return first, second


def names(path: Path) -> list[str]:
    return sorted(each.name for each in folder_of(path).glob("*.index"))


def built_anew(told: list[str]) -> bool:
    return len(told) == 1 and "of another copy of it" in told[0] and "built anew" in told[0]


def test_all_index_files_of_the_other_copy(copies: tuple[Path, Path]) -> None:
    first, second = copies
    for name in names(second):
        shutil.copy2(folder_of(second) / name, folder_of(first))
    assert built_anew(ask(first))
    assert ask(first) == []
    assert sound(first)


@pytest.mark.parametrize("number", range(9))
def test_one_index_file_of_the_other_copy(copies: tuple[Path, Path], number: int) -> None:
    first, second = copies
    assert len(names(second)) == 9
    name = names(second)[number]
    shutil.copy2(folder_of(second) / name, folder_of(first))
    with Log(first, read_only=True) as log:
        checks = {each.file: each for each in JITDB(log).verify().indexes}
    assert {file for file, each in checks.items() if each.state != "sound"} == {name}
    assert "of another copy" in checks[name].message
    assert built_anew(ask(first))
    assert ask(first) == []
    assert sound(first)


def sound(path: Path) -> bool:
    with Log(path, read_only=True) as log:
        return JITDB(log).verify().ok


def test_an_index_file_of_the_other_copy_put_there_while_it_is_in_use(copies: tuple[Path, Path]) -> None:
    first, second = copies
    with Log(first) as log:
        db = JITDB(log)
        check(db, oracle_of(log), QUESTIONS)
        for name in names(second):
            shutil.copy2(folder_of(second) / name, folder_of(first) / "new")
            (folder_of(first) / "new").rename(folder_of(first) / name)
        log.append_many([record(number, 0) for number in range(100, 130)])
        log.flush()
        with pytest.warns(IndexWarning, match="of another copy of it"):
            check(db, oracle_of(log), QUESTIONS)
    assert ask(first) == []


@pytest.mark.parametrize("grown", [0, 10, 60, 90])
def test_index_files_newer_than_a_restored_log(tmp_path: Path, grown: int) -> None:
    """A log and its sidecar of before, restored under indexes of after, goes on otherwise."""
    (tmp_path / "a").mkdir()
    first = tmp_path / "a" / "x.log"
    grow(first, 0, 40, 0)
    index(first)
    backup = copy(first, tmp_path / "b")
    grow(first, 40, 60, 0)
    index(first)
    shutil.rmtree(folder_of(backup))
    shutil.copytree(folder_of(first), folder_of(backup))
    if grown:
        grow(backup, 40, grown, 1)
    assert built_anew(ask(backup))
    assert ask(backup) == []
    assert sound(backup)


def test_index_files_of_the_other_copy_from_before_a_compaction(copies: tuple[Path, Path]) -> None:
    """They are not taken over."""
    first, second = copies
    with Log(first) as log:
        log.delete([each.offset for each in log.stream()][50])
        log.flush()
        log.compact()
    for name in names(first):
        (folder_of(first) / name).unlink()
    for name in names(second):
        shutil.copy2(folder_of(second) / name, folder_of(first))
    assert ask(first) != []
    assert ask(first) == []
    assert sound(first)


def padded(number: int, size: int) -> dict[str, object]:
    return {**record(number, 0), "pad": "x" * size}


def compact_among_the_indexes_of(other: Path, path: Path, gone: int) -> None:
    """Without the record at `gone`; then the answers are those of the log all the same."""
    with Log(path) as log:
        log.delete(gone)
        log.flush()
        log.compact()
    shutil.rmtree(folder_of(path))
    shutil.copytree(folder_of(other), folder_of(path))
    with warnings.catch_warnings(), Log(path, read_only=True) as log:
        warnings.simplefilter("ignore")
        assert JITDB(log).all(as_offsets=True, sort_by="arrival") == [each.offset for each in log.stream()]


def test_offsets_of_the_other_copy_that_end_with_a_deleted_record(tmp_path: Path) -> None:
    """No CRC tells whose they are; where the last one stands does, if what was removed had another length there."""
    paths = [tmp_path / name / "x.log" for name in "ab"]
    for path in paths:
        path.parent.mkdir()
    grow(paths[0], 0, 5, 0)
    paths[1].parent.rmdir()
    copy(paths[0], paths[1].parent)
    for path, sizes in zip(paths, ((9, 30), (30, 9)), strict=True):
        with Log(path) as log:
            offsets = log.append_many(
                [*(padded(5 + at, size) for at, size in enumerate(sizes)), *map(padded, [7, 8], [1, 1])]
            )
            log.delete(offsets[-1])
            log.flush()
            JITDB(log).count()
    compact_among_the_indexes_of(paths[1], paths[0], offsets[0])


def test_offsets_of_the_other_copy_that_end_where_this_one_does(tmp_path: Path) -> None:
    """What was removed had the same length there; the last record is another one."""
    paths = [tmp_path / name / "x.log" for name in "ab"]
    paths[0].parent.mkdir()
    grow(paths[0], 0, 5, 0)
    copy(paths[0], paths[1].parent)
    for path, sizes, last in zip(paths, ((9, 30), (30, 9)), "xy", strict=True):
        with Log(path) as log:
            offsets = log.append_many([padded(5 + at, size) for at, size in enumerate((1, *sizes))] + [{"pad": last}])
            log.flush()
            JITDB(log).count()
    compact_among_the_indexes_of(paths[1], paths[0], offsets[0])


def test_a_deleted_last_record_does_not_hide_that_it_is_of_another_copy(copies: tuple[Path, Path]) -> None:
    """The last one of an earlier segment tells."""
    first, second = copies
    for salt, path in enumerate(copies):
        grow(path, 100, 10, salt)
        index(path)
    with Log(first) as log:
        log.delete(log.since)
    for name in names(second):
        shutil.copy2(folder_of(second) / name, folder_of(first))
    assert built_anew(ask(first))
    assert ask(first) == []


def test_an_index_of_when_a_block_was_damaged_is_not_taken_over(tmp_path: Path) -> None:
    """It counted fewer records, and no CRC of its last one, which was deleted, tells; that of offsets is newer."""
    path = tmp_path / "x.log"
    grow(path, 0, 60, 0)
    with Log(path) as log:
        offsets = [each.offset for each in log.stream()]
        log.delete(offsets[-1])
    stamp, data = path.stat().st_mtime_ns, path.read_bytes()

    def put(content: bytes) -> None:
        path.write_bytes(content)
        os.utime(path, ns=(stamp, stamp))

    put(data[: offsets[3] + 1] + b"\xff" + data[offsets[3] + 2 :])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        index(path)
    put(data)
    (stale,) = folder_of(path).glob("offsets.*")
    stale.unlink()
    with Log(path, read_only=True) as log:
        JITDB(log, tmp_path / "apart").count()
    for each in (tmp_path / "apart").glob("offsets.*"):
        shutil.copy2(each, folder_of(path))
    with Log(path) as log:
        log.delete(offsets[30])
        log.flush()
        log.compact()
    ask(path)
    assert ask(path) == []


def test_a_deleted_last_record_is_no_sign_of_another_copy(copies: tuple[Path, Path]) -> None:
    first, _ = copies
    with Log(first) as log:
        log.delete([each.offset for each in log.stream()][-1])
    assert ask(first) == []
    with Log(first) as log:
        log.compact()
    assert ask(first) == []
    assert sound(first)


class Dying(osfile.FileSystem):
    """Writes half of the zeros of a deleted record, and no more."""

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        if len(data) > 20 and not any(data):
            super().pwrite(fd, data[: len(data) // 2], offset)
            raise OSError(5, "the disk is gone")
        return super().pwrite(fd, data, offset)


def test_a_last_record_whose_deletion_was_cut_short_is_no_sign_either(
    copies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For who only reads: a writer would finish it."""
    first, _ = copies
    monkeypatch.setattr(osfile, "fs", Dying())
    log = Log(first)
    log.delete(log.since)
    for end in (log.flush, log.close):
        with pytest.raises(LogWriteFailed):
            end()
    with warnings.catch_warnings(), Log(first, read_only=True) as log:
        warnings.simplefilter("error")
        assert JITDB(log).count(QUESTIONS[0]) + JITDB(log).count(QUESTIONS[1]) == 99
        assert JITDB(log).explain(QUESTIONS[0])["scan_bytes"] == 0


class Deleting(Log):
    """A deletion ends, in another thread, right behind the call of this number that looks at the log."""

    left = 0

    def _flush_behind(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.flush()

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        found = super().second_look(block)
        self._flush_behind()
        return found

    def deletions(self, after: int = 0) -> tuple[int, npt.NDArray[np.int64]]:
        found = super().deletions(after)
        self._flush_behind()
        return found

    def deleting(self) -> list[int]:
        found = super().deleting()
        self._flush_behind()
        return found


@pytest.mark.parametrize("call", range(1, 6))
def test_a_last_record_that_is_being_deleted_fits_any_crc(tmp_path: Path, call: int) -> None:
    """It may have been half zero when it was read."""
    with Deleting(tmp_path / "x.log", codec="raw", flush_interval=3600) as log:
        log.append_many([b"one", b"two"])
        log.flush()
        assert not LastRecords(log).fits(7, log.durable_end)
        log.delete(log.since)
        log.left = call
        assert LastRecords(log).fits(7, log.durable_end)


@pytest.mark.parametrize("deleted", ["missing", "older"])
@pytest.mark.parametrize("last_too", [False, True])
def test_index_files_that_know_deletions_of_later(tmp_path: Path, deleted: str, last_too: bool) -> None:
    """A folder of indexes was copied file by file while records were deleted: that of the deleted ones came first."""
    (tmp_path / "a").mkdir()
    first = tmp_path / "a" / "x.log"
    grow(first, 0, 40, 0)
    backup = copy(first, tmp_path / "b")
    with Log(first) as log:
        JITDB(log).count()
        (before,) = folder_of(first).glob("*.deleted-*")
        older = before.read_bytes()
        offsets = [each.offset for each in log.stream()]
        for offset in (*offsets[:30:3], *(offsets[-1:] if last_too else ())):
            log.delete(offset)
        log.flush()
        check(JITDB(log), oracle_of(log), QUESTIONS)
    shutil.rmtree(folder_of(backup), ignore_errors=True)
    shutil.copytree(folder_of(first), folder_of(backup))
    (there,) = folder_of(backup).glob("*.deleted-*")
    if deleted == "missing":
        there.unlink()
    else:
        there.write_bytes(older)
    assert built_anew(ask(backup))
    assert ask(backup) == []
    assert sound(backup)
    assert ask(first) == []


def test_a_mark_that_the_power_took_costs_no_index(tmp_path: Path) -> None:
    """The deletion is durable, the mark behind it, that the zeros are, not yet."""
    path, left = tmp_path / "a.log", tmp_path / "left"
    grow(path, 0, 100, 1)
    index(path)
    left.mkdir()
    with Log(path) as log:
        log.delete(next(iter(log.stream())).offset)
        log.append(record(100, 1))
        log.flush()
        index(path)  # which notes what it knows of the journal
        shutil.copy2(path, left)
        shutil.copytree(path.with_name("a.log.jitdb"), left / "a.log.jitdb")
    journal = left / "a.log.jitdb" / "deletions"
    journal.write_bytes(journal.read_bytes()[: -len(MARK)])
    files = {file: file.read_bytes() for file in (left / "a.log.jitdb" / "indexes").iterdir()}
    assert ask(left / "a.log") == []
    assert {file: file.read_bytes() for file in (left / "a.log.jitdb" / "indexes").iterdir()} == files
