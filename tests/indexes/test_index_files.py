"""Index files against a plain list of segments: appended to, merged, rewritten, torn, damaged, foreign, shared."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from index_cases import (
    LOG,
    contents,
    make_bitmaps,
    make_numbers,
    make_offsets,
    make_prefix_map,
    make_prefixes,
    make_set,
    reread,
    spans_of,
)
from thoroughness import tries

from jitdb.common.values import value_key
from jitdb.errors import IndexDamaged, IndexForeign
from jitdb.indexes.files import index as index_module
from jitdb.indexes.files.file import LogName, head_of
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds.numbers import range_of
from jitdb.indexes.kinds.roaring import bitmap_of
from jitdb.indexes.segment import BITMAPS, NUMBERS, OFFSETS, PREFIX_MAP, PREFIXES, SET, Segment
from jitdb.indexes.spec import IndexSpec
from jitdb.log.io import osfile

pytestmark = pytest.mark.slow

SPEC = IndexSpec("auto", (("value", "type"),))
KINDS = [BITMAPS, SET, PREFIXES, PREFIX_MAP, NUMBERS, OFFSETS]
SMALL_SPAN = 64


def made(kind: int, first: int, count: int, span: int = SMALL_SPAN) -> Segment:
    """A segment of these records whose contents follow from their seqs alone."""
    run = (first, count, 100 * first, 100 * (first + count))
    seqs = np.arange(first, first + count)
    relative = (seqs % span).astype(np.uint32)
    if kind == OFFSETS:
        return make_offsets(seqs * 100 + 2, run)
    if kind == NUMBERS:
        hi = np.where(seqs % 5 == 0, math.nan, seqs * 1.5)
        lo = np.where((seqs % 11 == 1) & (seqs % 5 > 0), seqs % 7, 0).astype(np.int16)
        return make_numbers(hi, lo, range_of(hi, lo), run)
    if kind == SET:
        return make_set(bitmap_of(relative[(seqs % 3 == 0) | (seqs % 64 < 20)]), run)
    if kind == BITMAPS:
        names = sorted({value_key(int(seq) // 10 % 4) for seq in seqs} | {value_key("odd") for seq in seqs if seq % 2})
        groups = {name: [] for name in names}  # type: ignore[var-annotated]
        for seq, place in zip(seqs.tolist(), relative.tolist(), strict=True):
            groups[value_key(seq // 10 % 4)].append(place)
            if seq % 2:
                groups[value_key("odd")].append(place)
        return make_bitmaps(names, [bitmap_of(np.array(groups[name], np.uint32)) for name in names], run)
    prefixes = np.where(seqs % 4 == 0, 0, seqs * 2654435761 % 97).astype(np.uint32)
    there = seqs % 4 != 0
    if kind == PREFIXES:
        return make_prefixes(bitmap_of(relative[there]), prefixes, -1, run)
    return make_prefix_map(prefixes[there], relative[there], -1, run)


def pieces(total: int, sizes: Sequence[int], span: int = SMALL_SPAN, start: int = 0) -> list[tuple[int, int]]:
    """first, count of runs of these sizes (over and over) up to `total`, none across a span."""
    out, at, turn = [], start, 0
    while at < total:
        count = min(sizes[turn % len(sizes)], span - at % span, total - at)
        out.append((at, count))
        at += count
        turn += 1
    return out


def built(path: Path | None, kind: int, total: int, sizes: Sequence[int]) -> Index:
    index = Index(SPEC, LOG, path)
    for first, count in pieces(total, sizes):
        index.append(made(kind, first, count))
    return index


def truth(kind: int, total: int) -> list[tuple[Any, ...]]:
    return contents([made(kind, first, count) for first, count in pieces(total, [SMALL_SPAN])])


each_kind = pytest.mark.parametrize(
    "kind", KINDS, ids=["bitmaps", "set", "prefixes", "prefix map", "numbers", "offsets"]
)


@pytest.fixture(autouse=True)
def _small_spans(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(index_module.KINDS, SPEC.form, tuple(KINDS))  # one spec for segments of any kind
    with spans_of(SMALL_SPAN):
        yield


# --- canonical form --------------------------------------------------------------------------------------------------


@each_kind
def test_merged_files_do_not_show_how_they_were_cut(kind: int, tmp_path: Path) -> None:
    files = []
    for number, sizes in enumerate([[64], [1], [7, 1, 30], [63, 2], [5]]):
        index = built(tmp_path / f"{number}.index", kind, 150, sizes)
        assert contents(index.segments) == truth(kind, 150)
        index.merge()
        assert len(index.segments) == 3
        assert contents(index.segments) == truth(kind, 150)
        files.append((tmp_path / f"{number}.index").read_bytes())
    assert files == files[:1] * len(files)


@each_kind
def test_segments_stay_few(kind: int, tmp_path: Path) -> None:
    index = Index(SPEC, LOG, tmp_path / "x.index")
    for first, count in pieces(64 * 4 + 63, [1]):
        index.append(made(kind, first, count))
        full = (first + count) // 64
        assert len(index.segments) <= full + 2 * index_module.FAN_IN
        head = head_of(osfile.fs, tmp_path / "x.index")
        assert head is not None
        assert (tmp_path / "x.index").stat().st_size <= 2 * index.size + (1 << 16) + len(head.encode())
    assert contents(reread(index).segments) == truth(kind, 64 * 4 + 63)


# --- a model ---------------------------------------------------------------------------------------------------------


class FileMachine(RuleBasedStateMachine):
    """An index, whatever is done with it, says what one segment a span would."""

    kind = BITMAPS

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.spans = spans_of(SMALL_SPAN)
        self.spans.__enter__()
        self.index = Index(SPEC, LOG, self.folder / "folder" / "x.index")
        self.end = 0  # records that were appended
        self.ahead = 0  # records that another process appended after these

    def teardown(self) -> None:
        self.spans.__exit__(None, None, None)
        shutil.rmtree(self.folder)

    @property
    def path(self) -> Path:
        assert self.index.path is not None
        return self.index.path

    @rule(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=12))
    def append(self, sizes: list[int]) -> None:
        for first, count in pieces(self.end + sum(sizes), sizes, start=self.end):
            self.index.append(made(self.kind, first, count))
        self.end += sum(sizes)
        self.ahead = 0

    @rule()
    def merge(self) -> None:
        self.index.merge()
        self.ahead = 0

    @rule()
    def rewrite(self) -> None:
        self.index.rewrite()
        self.ahead = 0

    @rule()
    def reopen(self) -> None:
        self.index = reread(self.index)
        self.end, self.ahead = self.end + self.ahead, 0

    @rule(data=st.data())
    def tear(self, data: st.DataObject) -> None:
        if not self.path.exists():
            return
        os.truncate(self.path, data.draw(st.integers(0, self.path.stat().st_size)))
        self.index = reread(self.index)
        assert self.index.end_seq <= self.end + self.ahead
        self.end, self.ahead = self.index.end_seq, 0

    @rule(zeros=st.integers(1, 300))
    def zeros_at_the_end(self, zeros: int) -> None:
        if (
            self.end and self.path.stat().st_size == self.index._size
        ):  # zeros behind half a blob would be a damaged blob
            with open(self.path, "ab") as file:
                file.write(bytes(zeros))
            self.reopen()

    @rule()
    def another_process_appends(self) -> None:
        other = reread(self.index)
        if other.end_seq == self.end:
            other.append(made(self.kind, self.end, 1))
            self.ahead = 1

    @rule()
    def the_folder_is_removed(self) -> None:
        if self.path.exists():
            shutil.rmtree(self.path.parent)
            self.append([1])

    @invariant()
    def says_what_is_true(self) -> None:
        assert (self.index.end_seq, self.index.end_offset) == (self.end, 100 * self.end)
        assert contents(self.index.segments) == truth(self.kind, self.end)

    @invariant()
    def the_file_says_so_too(self) -> None:
        again = reread(self.index)
        assert again.end_seq == self.end + self.ahead
        assert contents(again.segments) == truth(self.kind, again.end_seq)


def machine(kind: int) -> type:
    name = f"FileMachine{kind}"
    case = type(name, (FileMachine,), {"kind": kind}).TestCase  # type: ignore[attr-defined]
    case.settings = settings(max_examples=tries(10, 200), stateful_step_count=12, deadline=None)
    return case  # type: ignore[no-any-return]


TestBitmapFile, TestSetFile, TestPrefixesFile = machine(BITMAPS), machine(SET), machine(PREFIXES)
TestPrefixMapFile, TestNumbersFile, TestOffsetsFile = machine(PREFIX_MAP), machine(NUMBERS), machine(OFFSETS)


# --- bytes that are not what was written -----------------------------------------------------------------------------


@each_kind
def test_every_truncation_is_an_earlier_state_of_the_index(kind: int, tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    index = built(path, kind, 100, [9, 30])
    data = path.read_bytes()
    ends = {0}
    for size in {*range(0, len(data), tries(3, 1)), len(data)}:
        path.write_bytes(data[:size])
        again = reread(index)
        ends.add(again.end_seq)
        assert contents(again.segments) == truth(kind, again.end_seq)
    assert {0, 9, 39, 100} <= ends


@each_kind
def test_every_turned_bit_is_found_or_harmless(kind: int, tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    index = built(path, kind, 12, [5, 7])
    data = path.read_bytes()
    for position in range(0, len(data), tries(3, 1)):
        for bit in range(8):
            turned = bytearray(data)
            turned[position] ^= 1 << bit
            path.write_bytes(turned)
            try:
                again = reread(index)
                held = contents(again.segments)
            except IndexDamaged:
                continue  # in the file's head, or in a blob
            # A segment's length that points past the end looks torn, all else is told of.
            assert again.end_seq < 12
            assert again.damage is not None or again._seen > again._size
            assert held == truth(kind, again.end_seq)


def test_what_was_torn_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    index = built(path, OFFSETS, 100, [9, 30])
    whole = path.read_bytes()
    for size in (0, 5, 100, len(whole) - 1):
        path.write_bytes(whole[:size])
        again = reread(index)
        again.append(made(OFFSETS, again.end_seq, 64 - again.end_seq % 64))
        assert contents(reread(again).segments) == truth(OFFSETS, again.end_seq)


@pytest.mark.parametrize(
    ("segment", "message"),
    [
        (made(OFFSETS, 30, 5), "begins at record 30"),
        (made(OFFSETS, 5, 5), "begins at record 5"),
        (made(NUMBERS, 20, 5), "of kind 4"),
        (made(OFFSETS, 20, 5).changed(first_offset=2001), "byte 2001"),
    ],
    ids=["gap", "overlap", "kind", "offset"],
)
def test_a_segment_that_does_not_follow_ends_the_index(segment: Segment, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    index = built(path, OFFSETS, 20, [10])
    with open(path, "ab") as file:
        file.writelines(segment.parts())
    again = reread(index)
    assert message in str(again.damage)
    assert contents(again.segments) == truth(OFFSETS, again.end_seq)
    again.append(made(OFFSETS, again.end_seq, 21))
    assert contents(reread(again).segments) == contents(again.segments) == truth(OFFSETS, again.end_seq)


@pytest.mark.parametrize("junk", [b"\x01", b"JSEG", bytes(63) + b"\x01", b"JSEG\x05\x01" + bytes(100), b"\xff" * 2000])
def test_junk_at_the_end_is_written_over(junk: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    index = built(path, OFFSETS, 20, [10])
    whole = path.read_bytes()
    path.write_bytes(whole + junk)
    again = reread(index)
    assert (again.damage is None) == (len(junk) < 64)
    again.append(made(OFFSETS, 20, 1))
    assert contents(reread(again).segments) == truth(OFFSETS, 21)
    assert reread(again).damage is None
    assert path.read_bytes().startswith(whole + b"JSEG")


# --- whose file it is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "log"),
    [
        (SPEC, LogName(bytes(16), LOG.generation)),
        (SPEC, LogName(LOG.identity, LOG.generation + 1)),
        (SPEC._replace(prefix_offset=0), LOG),
        (SPEC._replace(elements=True), LOG),
        (IndexSpec("bitmap", SPEC.paths), LOG),
    ],
    ids=["identity", "generation", "prefix offset", "elements", "form"],
)
def test_the_index_of_another_log_or_spec_is_refused(spec: IndexSpec, log: LogName, tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    Index(spec, log, path).append(made(BITMAPS, 0, 5))
    with pytest.raises(IndexForeign, match="belongs to") as caught:
        Index(SPEC, LOG, path).load()
    is_other_generation = (spec, log.identity) == (SPEC, LOG.identity)
    assert caught.value.generation == (log.generation if is_other_generation else None)


@pytest.mark.parametrize("data", [b"not an index file at all", bytes(500), b"JITDBIX1" + b"\xff" * 100, b"\0"])
def test_other_files_are_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    path.write_bytes(data)
    with pytest.raises(IndexDamaged, match="not that of an index file"):
        Index(SPEC, LOG, path).load()


def test_the_head_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    built(path, BITMAPS, 5, [5])
    data = path.read_bytes()
    text = json.dumps(
        {
            "generation": 3,
            "index": {"form": "auto", "paths": [["value", "type"]]},
            "log": "000102030405060708090a0b0c0d0e0f",
        },
        separators=(",", ":"),
    ).replace('"form":"auto",', "")  # defaults are left out
    raw = b"JITDBIX1" + len(text).to_bytes(4, "little") + text.encode()
    assert data.startswith(raw + crc32(raw).to_bytes(4, "little") + b"JSEG")


def test_no_file_is_no_index(tmp_path: Path) -> None:
    assert not Index(SPEC, LOG, tmp_path / "nowhere" / "x.index").load()
    assert not Index(SPEC, LOG, None).load()


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


def test_an_index_in_memory(tmp_path: Path) -> None:
    for kind in KINDS:
        index = built(None, kind, 200, [9, 30])
        index.merge()
        assert contents(index.segments) == truth(kind, 200)
    assert os.listdir(tmp_path) == []


# --- generations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", ["rewrite", "append", "merge", "replace"])
def test_the_file_of_a_newer_generation_is_not_replaced(write: str, tmp_path: Path) -> None:
    """By a process that has not looked at the log since it was compacted; it goes on in memory."""
    path = tmp_path / "x.index"
    old = built(path, OFFSETS, 20, [10])
    newer = Index(SPEC, LogName(LOG.identity, LOG.generation + 1), path)
    newer.replace([made(OFFSETS, 0, 7)])
    data = path.read_bytes()
    arguments: dict[str, list[Any]] = {"append": [made(OFFSETS, 20, 5)], "replace": [[made(OFFSETS, 0, 3)]]}
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
