"""Index files against a plain list of segments: appended to, merged, rewritten, torn, damaged, foreign, shared."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from index_cases import (
    LOG,
    contents,
    reread,
    spans_of,
)
from index_file_cases import SMALL_SPAN, SPEC, built, each_kind, made, pieces, truth
from thoroughness import tries

from jitdb.errors import IndexDamaged, IndexForeign
from jitdb.indexes.files import index as index_module
from jitdb.indexes.files.file import LogName, head_of
from jitdb.indexes.files.index import Index
from jitdb.indexes.segment import BITMAPS, DICTIONARY, NUMBERS, OFFSETS, PREFIX_MAP, PREFIXES, SET, Segment
from jitdb.indexes.spec import IndexSpec
from jitdb.log.io import osfile

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_spans")]

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
TestDictionaryFile = machine(DICTIONARY)


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
