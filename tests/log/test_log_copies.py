"""Copies of a log: the recipes of docs/reliability.md, and what becomes of files that are of different moments."""

from __future__ import annotations

import os
import random
import shutil
import warnings
from pathlib import Path

import pytest
from engine_helpers import check, messages, oracle_of
from thoroughness import combined

from jitdb import JITDB, Log
from jitdb.errors import IndexWarning, JitdbWarning, LogWarning, QuestionWarning
from jitdb.log.io import filenames
from jitdb.operators import equal, everything

pytestmark = pytest.mark.slow

POSTS = equal("type", "post")
FILES = (
    None,
    filenames.META,
    filenames.COMMIT,
    filenames.CHECKSUMS,
    filenames.DELETIONS,
    filenames.INDEXES,
)  # None: the log itself


def ask(path: Path, *, read_only: bool) -> list[str]:
    """Open the log, hold every answer against its file; the warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", JitdbWarning)
        warnings.simplefilter("ignore", QuestionWarning)  # some copies have no record that matches
        with Log(path, read_only=read_only) as log:
            oracle = oracle_of(log)
            check(JITDB(log), oracle, [everything(), equal("value.content.type", "post"), POSTS])
            live = [offset for seq, offset in enumerate(oracle.offsets) if seq not in oracle.deleted]
            assert [record.offset for record in log.stream()] == live
            assert log.stats().records == len(live)
    return [str(each.message) for each in told]


class Life:
    """A log that a writer goes on writing to."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.log = Log(path, codec="bipf", block_size=1024, flush_interval=3600)
        self._chance = chance
        self._written = 0
        self.go_on()

    def go_on(self) -> None:
        log, chance = self.log, self._chance
        count = chance.randrange(1, 20)
        log.append_many(messages(count, first=self._written))
        self._written += count
        log.flush()
        live = [record.offset for record in log.stream()]
        for offset in chance.sample(live, min(len(live) - 1, chance.randrange(6))):
            log.delete(offset)
        log.flush()
        if chance.random() < 0.15:
            log.compact()
        if chance.random() < 0.5:
            JITDB(log).prepare(equal("value.content.type", "post"), everything())


def copy_one(log: Path, target: Path, name: str | None, *, times: bool) -> None:
    copy = shutil.copy2 if times else shutil.copy
    side = target / f"{log.name}.jitdb"
    side.mkdir(parents=True, exist_ok=True)
    source = log if name is None else log.with_name(side.name) / name
    if source.is_dir():
        shutil.copytree(source, side / name if name else side, copy_function=copy)
    elif source.exists():
        copy(source, target / log.name if name is None else side / str(name))


@pytest.mark.parametrize(("seed", "times"), combined(2, range(6), [True, False]))
def test_files_copied_one_after_the_other_while_a_writer_goes_on(tmp_path: Path, seed: int, times: bool) -> None:
    """Never a wrong answer: exact at once, or damage that is told, and exact once it is repaired."""
    chance = random.Random(seed)
    life = Life(tmp_path / "a.log", chance)
    with life.log:
        for round_ in range(4):
            target = tmp_path / f"copy-{round_}"
            order = chance.sample(FILES, len(FILES))
            for name in order:
                copy_one(tmp_path / "a.log", target, name, times=times)
                if chance.random() < 0.6:
                    life.go_on()
            copied = target / "a.log"
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", JitdbWarning)
                    with Log(copied, read_only=True) as log:
                        sound = log.verify().ok
                    if not sound:
                        with Log(copied) as log:
                            log.repair()
                ask(copied, read_only=True)
                ask(copied, read_only=False)
                assert ask(copied, read_only=True) == []
            except BaseException as error:
                raise AssertionError(f"seed {seed}, round {round_}, order {order}") from error


def test_the_recipe_for_a_log_that_nobody_writes_to(tmp_path: Path) -> None:
    life = Life(tmp_path / "a.log", random.Random(1))
    life.go_on()
    identity = life.log.identity
    life.log.close()
    (tmp_path / "copy").mkdir()
    assert os.system(f"cp -a {tmp_path}/a.log {tmp_path}/a.log.jitdb {tmp_path}/copy") == 0
    for path in (tmp_path / "a.log", tmp_path / "copy" / "a.log"):
        assert ask(path, read_only=False) == []
        with Log(path, read_only=True) as log:
            assert log.identity == identity
            assert log.verify().unverified == 0
            assert log.verify().ok


def test_the_recipe_for_one_that_somebody_writes_to(tmp_path: Path) -> None:
    """In the process that writes, and does not while it copies."""
    life = Life(tmp_path / "a.log", random.Random(2))
    (tmp_path / "copy").mkdir()
    with life.log as log:
        log.append_many(messages(50, first=1000))
        log.flush()
        assert os.system(f"cp -a {tmp_path}/a.log {tmp_path}/a.log.jitdb {tmp_path}/copy") == 0
        live = [record.value for record in log.stream()]
        life.go_on()
    assert ask(tmp_path / "copy" / "a.log", read_only=False) == []
    with Log(tmp_path / "copy" / "a.log", read_only=True) as log:
        assert [record.value for record in log.stream()] == live


@pytest.mark.parametrize("proven", [True, False])
def test_one_of_two_copies_that_diverged_over_the_other(tmp_path: Path, proven: bool) -> None:
    """Both were compacted, and end alike: their indexes speak of other offsets, which reading tells."""
    first, second = tmp_path / "a.log", tmp_path / "copy" / "a.log"
    values = [{"type": "post" if n % 2 else "vote", "text": "x" * (n * 7 % 23), "n": n} for n in range(60)]
    with Log(first, codec="bipf", block_size=256) as log:
        offsets = log.append_many([*values, *[{"type": "end"}] * 40])
        log.flush()
    for name in (None, *(each.name for each in (tmp_path / "a.log.jitdb").iterdir())):
        copy_one(first, tmp_path / "copy", name, times=True)
    for path, gone in ((first, (1, 30)), (second, (24, 30))):
        with Log(path) as log:
            for number in gone:
                log.delete(int(offsets[number]))
            log.flush()
            log.compact()
            JITDB(log).prepare(POSTS)
    os.rename(second, first)
    if not proven:
        (tmp_path / "a.log.jitdb" / "checksums").unlink()
    with Log(first) as log, pytest.warns(IndexWarning, match="of another copy of it, are built anew"):
        assert len(JITDB(log).all(POSTS)) == 30
    assert ask(first, read_only=True) == ask(first, read_only=False) == []


@pytest.mark.parametrize("read_only", [True, False])
def test_without_meta_beside_a_journal_of_when_the_log_was_one_block(tmp_path: Path, read_only: bool) -> None:
    """Of the sizes with which the log ended where the journal says, only one has all blocks in order."""
    path = tmp_path / "a.log"
    with Log(path, codec="msgpack", block_size=512) as log:
        log.append_many([{"n": n, "text": "x" * (n % 7)} for n in range(9)])
    commit = (tmp_path / "a.log.jitdb" / filenames.COMMIT).read_bytes()
    with Log(path) as log:
        log.append_many([{"n": n, "text": "x" * (n % 7)} for n in range(9, 200)])
    (tmp_path / "a.log.jitdb" / filenames.COMMIT).write_bytes(commit)
    (tmp_path / "a.log.jitdb" / filenames.META).unlink()
    with Log(path, read_only=read_only) as log:
        assert log.block_size == 512
        assert [record.value["n"] for record in log.stream()] == list(range(200))


def test_without_meta_beside_such_a_journal_a_log_that_was_cut_off(tmp_path: Path) -> None:
    """That the file's whole size fits the journal, as the first block does not end before it, says nothing then."""
    path = tmp_path / "a.log"
    with Log(path, codec="msgpack", block_size=512) as log:
        log.append_many([{"n": n, "text": "x" * (n % 7)} for n in range(9)])
    commit = (tmp_path / "a.log.jitdb" / filenames.COMMIT).read_bytes()
    with Log(path) as log:
        log.append_many([{"n": n, "text": "x" * (n % 7)} for n in range(9, 200)])
    whole = path.read_bytes()
    for size in (2086, 1531, 3001):
        path.write_bytes(whole[:size])
        (tmp_path / "a.log.jitdb" / filenames.COMMIT).write_bytes(commit)
        (tmp_path / "a.log.jitdb" / filenames.META).unlink(missing_ok=True)
        with Log(path, read_only=True) as log:
            assert log.block_size == 512
            found = [record.value["n"] for record in log.stream()]
        assert found == list(range(len(found)))
        assert len(found) * 50 > size  # but for the last block, all of them


def test_word_for_the_next_writer_is_no_checksum_once_the_log_went_on(tmp_path: Path) -> None:
    """Nothing proves the last block of a file that came without its folder; the writer leaves word of that there."""
    path, sums = tmp_path / "a.log", tmp_path / "a.log.jitdb" / filenames.CHECKSUMS
    with Log(path, codec="msgpack", block_size=256) as log:
        log.append_many([{"n": n} for n in range(50)])
    shutil.rmtree(tmp_path / "a.log.jitdb")
    with Log(path) as log:
        log.append({"n": 50})
    before = sums.read_bytes()
    with Log(path) as log:
        log.append_many([{"n": n} for n in range(51, 200)])
    sums.write_bytes(before)
    assert ask(path, read_only=True) == ask(path, read_only=False) == []
    with Log(path, read_only=True) as log:
        assert [record.value["n"] for record in log.stream()] == list(range(200))


@pytest.mark.parametrize("first", ["reader", "writer"])
def test_an_empty_log_beside_the_deletions_of_later(tmp_path: Path, first: str) -> None:
    """What is deleted in a log of no records is nothing: the next records must not count as deleted."""
    path, side = tmp_path / "a.log", tmp_path / "a.log.jitdb"
    Log(path, codec="msgpack", block_size=256).close()
    shutil.copytree(side, tmp_path / "before")
    shutil.copy2(path, tmp_path / "empty")
    with Log(path) as log:
        for offset in log.append_many([{"n": n} for n in range(50)])[::7]:
            log.delete(offset)
    deletions = (side / filenames.DELETIONS).read_bytes()
    shutil.rmtree(side)
    (tmp_path / "before").rename(side)
    (tmp_path / "empty").rename(path)
    (side / filenames.DELETIONS).write_bytes(deletions)
    with pytest.warns(LogWarning, match="not the log that its sidecar tells of"):
        Log(path, read_only=first == "reader").close()
    with Log(path) as log:
        log.append_many([{"n": n} for n in range(50)])
        log.flush()
        assert JITDB(log).count() == 50
        assert log.verify().ok
    assert ask(path, read_only=True) == []


@pytest.mark.parametrize("first", [False, True])
def test_a_damaged_length_before_a_deleted_record_makes_it_no_other_log(tmp_path: Path, first: bool) -> None:
    """Where the deleted record stood cannot be looked at: that is damage, and no sign of another moment."""
    path = tmp_path / "a.log"
    with Log(path, codec="raw", block_size=256) as log:
        offsets = log.append_many([b"x" * 30] * 40)
        gone = next(offset for offset in offsets if offset >= 512) + 32 * (1 if first else 3)
        assert gone in offsets
        log.delete(gone)
        identity = log.identity
    with open(path, "r+b") as file:
        file.seek(512)
        file.write(b"\xff\x7f")
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**10))
    with Log(path, read_only=True) as log:
        assert log.identity == identity
        assert log.verify().damaged_blocks == [2]
