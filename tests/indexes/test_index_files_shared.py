"""Index files that several processes write, that were interrupted, or that are of another generation."""

from __future__ import annotations

import gc
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from index_cases import (
    LOG,
    contents,
    reread,
    spans_of,
)
from index_file_cases import KINDS, SMALL_SPAN, SPEC, built, made, truth

from jitdb.errors import IndexDamaged, IndexForeign
from jitdb.indexes.files.file import LogName
from jitdb.indexes.files.index import Index
from jitdb.indexes.segment import BITMAPS, NUMBERS, OFFSETS, PREFIX_MAP, Segment
from jitdb.log.io import osfile

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_spans")]

# --- several at once -------------------------------------------------------------------------------------------------


def test_two_processes_that_build_the_same_index(tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    first, second = Index(SPEC, LOG, path), Index(SPEC, LOG, path)
    generator = random.Random(5)
    while first.end_seq < 300 or second.end_seq < 300:
        index = generator.choice([first, second])
        count = min(generator.randint(1, 20), SMALL_SPAN - index.end_seq % SMALL_SPAN)
        index.append(made(NUMBERS, index.end_seq, count))
        for one in (first, second):
            assert contents(one.segments) == truth(NUMBERS, one.end_seq)
        assert contents(reread(index).segments) == truth(NUMBERS, index.end_seq)
    assert sorted(os.listdir(tmp_path)) == ["x.index"]


def test_what_another_process_appended_is_not_written_over(tmp_path: Path) -> None:
    """Nor what it put in the file's place: who reads it goes on, where no lock keeps two from building."""
    for rewrites in (False, True):
        path = tmp_path / f"{rewrites}.index"
        mine = built(path, OFFSETS, 20, [10])
        other = Index(SPEC, LOG, path)
        assert other.load()
        other.append(made(OFFSETS, 20, 25))
        if rewrites:
            other.rewrite()
        reader = Index(SPEC, LOG, path)
        assert reader.load()
        mine.append(made(OFFSETS, 20, 5))
        reader.verify()
        assert reader.end_seq == 45
        again = Index(SPEC, LOG, path)
        assert again.load()
        assert (again.end_seq, again.damage) == (25, None)


@pytest.mark.parametrize("records", [30, 5], ids=["longer", "shorter"])
def test_catching_up_with_a_file_in_the_place_of_the_one_that_is_open(tmp_path: Path, records: int) -> None:
    path = tmp_path / "x.index"
    mine = built(path, OFFSETS, 20, [10])
    other = Index(SPEC, LOG, path)
    other.replace([made(OFFSETS, 0, records)])
    assert mine.catch_up()
    assert contents(mine.segments) == contents(other.segments)
    mine.verify()


def test_a_file_that_was_put_in_the_place_of_one_of_the_same_bytes(tmp_path: Path) -> None:
    """What is written is read from where it was written."""
    path = tmp_path / "x.index"
    with spans_of(SMALL_SPAN):
        mine = built(path, OFFSETS, 20, [10])
        shutil.copy2(path, tmp_path / "copy")
        (tmp_path / "copy").rename(path)
        mine.append(made(OFFSETS, 20, SMALL_SPAN - 20))
        mine.verify()


def test_what_another_process_has_built_already_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.index"
    first = built(path, OFFSETS, 20, [10])
    second = reread(first)
    first.append(made(OFFSETS, 20, 5))
    before = path.stat()
    second.append(made(OFFSETS, 20, 5))
    after = path.stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)
    second.append(made(OFFSETS, 25, 5))
    assert path.stat().st_ino == before.st_ino
    assert contents(second.segments) == contents(reread(second).segments) == truth(OFFSETS, 30)


def test_a_reader_goes_on_while_the_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    reader = reread(built(path, BITMAPS, 64, [20]))
    other = reread(reader)
    other.replace([made(BITMAPS, 0, 64)])
    path.unlink()
    assert contents(reader.segments) == truth(BITMAPS, 64)


# --- interrupted -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["_take", "_write", "rewrite", "_at"])
def test_after_an_interrupted_append_the_file_is_written_anew(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.index"
    index = built(path, OFFSETS, 20, [10])
    original = getattr(Index, name)

    def interrupted(self: Index, *args: Any) -> Any:
        original(self, *args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Index, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            index.append(made(OFFSETS, 20, 5)) if name != "rewrite" else index.rewrite()
    end = index.end_seq
    index.append(made(OFFSETS, end, 7))
    assert contents(index.segments) == contents(reread(index).segments) == truth(OFFSETS, end + 7)


def test_a_failed_rewrite_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.index"
    index = built(path, OFFSETS, 20, [10])
    before = path.read_bytes()
    monkeypatch.setattr(
        osfile.fs, "rename", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")), raising=False
    )
    with pytest.raises(OSError, match="No space"):
        index.merge()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.index"]
    assert contents(index.segments) == truth(OFFSETS, 20)


@pytest.mark.parametrize("is_written", [True, False], ids=["written", "disk full"])
def test_each_segment_is_turned_into_another(
    is_written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    index = built(tmp_path / "x.index", BITMAPS, 200, [9, 30])
    most = 0

    def turned(segment: Segment) -> Segment:
        nonlocal most
        segments = [each for each in gc.get_objects() if isinstance(each, Segment) and each.kind == PREFIX_MAP]
        most = max(most, sum(each.blobs is not None for each in segments))
        return made(PREFIX_MAP, segment.first_seq, segment.count)

    if is_written:
        index.turn(turned)
        assert most <= 1, "those that were written are still in memory"
        assert contents(reread(index).segments) == truth(PREFIX_MAP, 200)
    else:
        monkeypatch.setattr(
            osfile.fs, "rename", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")), raising=False
        )
        with pytest.raises(OSError, match="No space"):
            index.turn(turned)
    assert index.kind == PREFIX_MAP
    assert contents(index.segments) == truth(PREFIX_MAP, 200)


def test_an_index_in_memory(tmp_path: Path) -> None:
    for kind in KINDS:
        index = built(None, kind, 200, [9, 30])
        index.merge()
        assert contents(index.segments) == truth(kind, 200)
    assert os.listdir(tmp_path) == []


# --- generations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", ["rewrite", "append", "merge", "replace", "turn"])
def test_the_file_of_a_newer_generation_is_not_replaced(write: str, tmp_path: Path) -> None:
    """By a process that has not looked at the log since it was compacted; it goes on in memory."""
    path = tmp_path / "x.index"
    old = built(path, OFFSETS, 20, [10])
    newer = Index(SPEC, LogName(LOG.identity, LOG.generation + 1), path)
    newer.replace([made(OFFSETS, 0, 7)])
    data = path.read_bytes()
    arguments: dict[str, list[Any]] = {
        "append": [made(OFFSETS, 20, 5)], "replace": [[made(OFFSETS, 0, 3)]], "turn": [lambda segment: segment],
    }  # fmt: skip
    with pytest.raises(IndexForeign) as caught:
        getattr(old, write)(*arguments.get(write, []))
    assert caught.value.generation == LOG.generation + 1
    assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["x.index"]


def test_a_newer_generation_or_another_log_may_replace_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    built(path, OFFSETS, 20, [10])
    for log in (LogName(LOG.identity, LOG.generation + 1), LogName(bytes(16), 1)):
        Index(SPEC, log, path).append(made(OFFSETS, 0, 7))
        again = Index(SPEC, log, path)
        assert again.load()
        assert again.end_seq == 7


@pytest.mark.parametrize("kind", [BITMAPS, OFFSETS], ids=["bitmaps", "offsets"])
def test_catching_up(kind: int, tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    first = built(path, kind, 20, [10])
    second = reread(first)
    assert not first.catch_up()
    second.append(made(kind, 20, 5))
    kept = first.segments[0]
    assert not first.catch_up()  # more of the same
    assert first.segments[0] is kept
    assert contents(first.segments) == truth(kind, 25)
    second.merge()
    assert first.catch_up()  # another file
    assert contents(first.segments) == truth(kind, 25)
    first.append(made(kind, 25, 9))
    assert not second.catch_up()
    assert contents(second.segments) == truth(kind, 34)
    second.replace([made(kind, 0, 10)])
    assert first.catch_up()  # it says less than before, and counts
    assert contents(first.segments) == truth(kind, 10)
    assert first.reached == first.end_offset == 1000
    path.unlink()
    assert not first.catch_up()
    first.append(made(kind, 10, 3))
    assert contents(reread(first).segments) == truth(kind, 13)
    with open(path, "ab") as file:
        file.write(b"junk" * 50)
    assert not first.catch_up()
    assert first.damage is not None
    first.append(made(kind, 13, 3))
    assert not first.catch_up()
    assert first.damage is None
    assert contents(reread(first).segments) == contents(first.segments) == truth(kind, 16)


def test_a_damaged_blob_is_found_by_verifying(tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    index = reread(built(path, BITMAPS, 100, [9, 30]))
    index.verify()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(IndexDamaged, match="blob"):
        index.verify()
