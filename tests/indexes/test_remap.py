"""Indexes of a log that was compacted since: byte for byte those that a scan of the compacted log gives."""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import manager_of
from hypothesis import given
from hypothesis import strategies as st
from index_cases import opened, spans_of
from pyroaring import BitMap64
from thoroughness import combined, tries

from jitdb import JITDB, Log
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds import bitmaps as limits
from jitdb.indexes.kinds.offsets import load_offsets
from jitdb.indexes.kinds.prefixes import hashes_of_bitmaps
from jitdb.indexes.kinds.remap import Renumbering, remap
from jitdb.indexes.segment import BITMAPS, PREFIX_MAP, PREFIXES
from jitdb.indexes.spec import OFFSETS, IndexSpec
from jitdb.log.sidecar.deletions import DeletionReader
from jitdb.log.sidecar.removals import Removals, new_seq
from jitdb.operators import absent, and_, equal, gt, includes, predicate, starts_with
from jitdb.operators.nodes.operation import Operation

pytestmark = pytest.mark.slow

SPAN = 64


def is_odd(value: Any) -> bool:
    return isinstance(value, int) and value % 2 == 1


#: All forms of indexes, all kinds of segments.
ALL: tuple[Operation, ...] = (
    equal("kind", "a"),
    equal("object", [1]),
    equal("text", "text 5"),
    equal("kind", "a", index_all=True),
    equal("text", "text 5", prefix=32, prefix_offset=3),
    equal("text", "text 5", use_map=True),
    starts_with("text", "text 1"),
    includes("tags", 3),
    includes("names", "name 3"),
    includes("tags", 3, prefix=32),
    predicate("n", is_odd),
    gt(5, "n"),
    gt(5, "large"),
    absent("kind"),
)


def record(number: int) -> dict[str, Any]:
    out: dict[str, Any] = {"n": number, "text": f"text {number}", "kind": "abcde"[number % 5], "timestamp": number / 4}
    if number % 3 == 0:
        out["large"] = 2**60 + number
        del out["kind"]
    if number % 4 == 0:
        out["tags"] = [number % 7, number % 5, "all"]
        out["names"] = [f"name {number}", f"name {number // 2}"]
    if number % 50 == 49:
        out["kind"] = f"rare {number}"
    if number % 6 == 1:
        out["object"] = [number % 2] if number % 4 == 1 else {"a": number % 3}
    out["filler"] = "x" * (number * 7 % 90)
    return out


@pytest.fixture(autouse=True)
def _small_spans() -> Iterator[None]:
    with spans_of(SPAN):
        yield


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path / "x.log", codec="msgpack", block_size=1024, flush_interval=3600) as log:
        yield log


def write(log: Log, count: int, first: int = 0) -> list[int]:
    offsets = list(map(int, log.append_many([record(number) for number in range(first, first + count)])))
    log.flush()
    return offsets


def live(log: Log) -> list[int]:
    return [each.offset for each in log.stream()]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.index"))}


def built_anew(log: Log, folder: Path) -> dict[str, bytes]:
    """The index files that a scan of the log gives, merged."""
    shutil.rmtree(folder, ignore_errors=True)
    db = JITDB(log, folder, timestamp="timestamp", sequence="n")
    db.prepare(*ALL)
    there = log.sidecar / "indexes"
    for index in opened(db):
        index.merge()
        old = Index(index.spec, index.log, there / index.spec.file_name())
        if index.kind == BITMAPS and old.load() and old.kind in (PREFIXES, PREFIX_MAP):  # hashes stay hashes
            index.replace([hashes_of_bitmaps(segment, index.spec.elements) for segment in index.segments])
    return files_of(folder)


def remapped(log: Log) -> dict[str, bytes]:
    """The index files beside the log, brought over to its present generation."""
    db = JITDB(log, timestamp="timestamp", sequence="n")
    manager_of(db).remap()
    return files_of(log.sidecar / "indexes")


def prepared(log: Log) -> JITDB:
    db = JITDB(log, timestamp="timestamp", sequence="n")
    db.prepare(*ALL)
    return db


SHAPES = {
    "none": lambda offsets, chooser: [],
    "the first": lambda offsets, chooser: offsets[:1],
    "the last": lambda offsets, chooser: offsets[-1:],
    "a span": lambda offsets, chooser: offsets[64:128],
    "more than a span": lambda offsets, chooser: offsets[30:200],
    "all but one": lambda offsets, chooser: offsets[:77] + offsets[78:],
    "every second": lambda offsets, chooser: offsets[::2],
    "some": lambda offsets, chooser: sorted(chooser.sample(offsets, 90)),
    "most": lambda offsets, chooser: sorted(chooser.sample(offsets, 280)),
}


@pytest.mark.parametrize(("shape", "count"), combined(2, SHAPES, [300, 320]))
def test_remapped_indexes_are_those_of_a_fresh_scan(log: Log, tmp_path: Path, shape: str, count: int) -> None:
    offsets = write(log, count)
    prepared(log)
    for offset in SHAPES[shape](offsets, random.Random(count)):
        log.delete(offset)
    log.flush()
    log.compact()
    assert remapped(log) == built_anew(log, tmp_path / "fresh")


@pytest.mark.parametrize("seed", range(tries(4, 60)))
def test_several_compactions_and_appends(log: Log, tmp_path: Path, seed: int) -> None:
    """Indexes that stand at different generations, and reach differently far."""
    chooser = random.Random(seed)
    number = 0
    for turn in range(5):
        count = chooser.choice([1, 40, 64, 130])
        write(log, count, number)
        number += count
        if turn % 2 == seed % 2:
            JITDB(log, timestamp="timestamp", sequence="n").prepare(*chooser.sample(ALL, 5))
        there = live(log)
        for offset in chooser.sample(there, len(there) // chooser.choice([2, 5, 50])):
            log.delete(offset)
        log.flush()
        if chooser.random() < 0.8:
            log.compact()
    db = prepared(log)
    for index in opened(db):
        index.merge()
    assert files_of(log.sidecar / "indexes") == built_anew(log, tmp_path / "fresh")


def test_indexes_that_reach_less_far_than_the_log(log: Log, tmp_path: Path) -> None:
    """Each reaches as far as it did; the rest is scanned."""
    write(log, 100)
    JITDB(log, timestamp="timestamp", sequence="n").prepare(*ALL[:6])
    write(log, 150, 100)
    JITDB(log, timestamp="timestamp", sequence="n").prepare()  # only what all questions need
    offsets = live(log)
    for offset in offsets[:40] + offsets[98:103]:
        log.delete(offset)
    log.flush()
    log.compact()
    remapped(log)
    db = JITDB(log, timestamp="timestamp", sequence="n")
    assert {index.end_seq for index in opened(db)} == {100 - 42, 250 - 45}
    db.prepare(*ALL)
    for index in opened(db):
        index.merge()
    found, anew = files_of(log.sidecar / "indexes"), built_anew(log, tmp_path / "fresh")
    del anew[IndexSpec("prefix", (("text",),), prefix_offset=0).file_name()]  # the bitmaps serve, which reach further
    assert found == anew


def test_hashes_stay_hashes(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And bitmaps become hashes where a scan would have chosen these for the records that are left."""
    few = 20
    monkeypatch.setattr(limits, "FEW_VALUES", few)
    monkeypatch.setattr(limits, "RECORDS_A_VALUE", 4)
    values = [f"v{number % 60}" for number in range(300)]  # 60 values of 300 records: bitmaps
    many = [f"w{number % 130}" for number in range(300)]  # 130 of 300: hashes
    log.append_many([{"v": v, "w": w, "e": [v], "f": [w]} for v, w in zip(values, many, strict=True)])
    log.flush()
    questions = (equal("v", "v1"), equal("w", "w1"), includes("e", "v1"), includes("f", "w1"))

    def kinds(db: JITDB) -> list[int]:
        found = {index.spec.file_name().split(".")[0]: index.kind for index in opened(db)}
        return [found[name] for name in "vwef"]

    db = JITDB(log)
    db.prepare(*questions)
    assert kinds(db) == [BITMAPS, PREFIXES, BITMAPS, PREFIX_MAP]
    for offset in live(log)[130:]:
        log.delete(offset)
    log.flush()
    log.compact()
    db = JITDB(log)
    assert [db.count(question) for question in questions] == [3, 1, 3, 1]
    assert kinds(db) == [PREFIXES, PREFIXES, PREFIX_MAP, PREFIX_MAP]  # 60 values of 130 records are many now
    for offset in live(log)[10:]:
        log.delete(offset)
    log.flush()
    log.compact()
    db = JITDB(log)
    assert [db.count(question) for question in questions] == [1, 1, 1, 1]
    assert kinds(db) == [PREFIXES, PREFIXES, PREFIX_MAP, PREFIX_MAP]
    fresh = JITDB(log, tmp_path / "fresh")
    assert [fresh.count(question) for question in questions] == [1, 1, 1, 1]
    assert kinds(fresh) == [BITMAPS] * 4


def test_bitmaps_written_with_and_without_kernels(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    import jitdb.indexes.kinds.bitmaps as module
    import jitdb.indexes.kinds.kernels.roaring  # noqa: F401

    offsets = write(log, 500)
    db = prepared(log)
    old = {index.spec: list(index.segments) for index in opened(db)}
    runs = [(0, 64, 0, 1), (64, 36, 1, 2)]
    removed = BitMap64(range(100, 500))
    renumbering = Renumbering([Removals(2, log.identity, len(offsets), removed, b"")])
    for spec, segments in old.items():
        if segments[0].kind == BITMAPS:
            found = []
            for name in ("jitdb.indexes.kinds.kernels.roaring", "nowhere"):
                monkeypatch.setattr(module, "_KERNELS", name)
                made = remap(segments, renumbering, runs, spec)
                found.append([b"".join(map(bytes, segment.parts())) for segment in made])
            assert found[0] == found[1]


@given(st.lists(st.sets(st.integers(0, 60)), min_size=1, max_size=4))
def test_renumbering_is_what_removing_from_a_list_does(removals: list[set[int]]) -> None:
    records = list(range(61))
    left, removals = list(records), []
    for generation, places in enumerate(removals, 2):
        places = {place for place in places if place < len(left)}
        removals.append(Removals(generation, b"", len(left), BitMap64(sorted(places)), b""))
        left = [seq for place, seq in enumerate(left) if place not in places]
    renumbering = Renumbering(removals)
    assert [renumbering.old(seq) for seq in range(len(left))] == left
    assert [renumbering.new(seq) for seq in records] == [new_seq(removals, seq) for seq in records]
    for first, stop in ((0, 61), (13, 14), (20, 55)):
        wanted = [left.index(seq) if seq in left else -1 for seq in records[first:stop]]
        assert renumbering.of_range(first, stop).tolist() == wanted


# --- what cannot be taken over ----------------------------------------------------------------------------------------


def compacted(log: Log) -> None:
    offsets = write(log, 300)
    prepared(log)
    for offset in offsets[::3]:
        log.delete(offset)
    log.flush()
    log.compact()


def test_without_the_history_indexes_are_built(log: Log, tmp_path: Path) -> None:
    compacted(log)
    (log.sidecar / "moved-2").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        db = prepared(log)
        assert db.count() == 200
    for index in opened(db):
        index.merge()
    assert files_of(log.sidecar / "indexes") == built_anew(log, tmp_path / "fresh")


def test_without_offsets_all_are_built(log: Log, tmp_path: Path) -> None:
    compacted(log)
    (log.sidecar / "indexes" / OFFSETS.file_name()).unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        db = prepared(log)
        assert db.count() == 200
    for index in opened(db):
        index.merge()
    assert files_of(log.sidecar / "indexes") == built_anew(log, tmp_path / "fresh")


def test_a_damaged_index_of_an_older_generation_is_built(log: Log, tmp_path: Path) -> None:
    compacted(log)
    for path in (log.sidecar / "indexes").glob("*.index"):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    with pytest.warns(match="is rebuilt"):
        db = prepared(log)
    assert db.count(and_(ALL[0], ALL[11])) == len([n for n in range(6, 300) if n % 3 and record(n).get("kind") == "a"])
    for index in opened(db):
        index.merge()
    assert files_of(log.sidecar / "indexes") == built_anew(log, tmp_path / "fresh")


def test_a_reader_of_the_old_generation_leaves_newer_files_alone(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = write(log, 300)
    prepared(log)
    with Log(log.path, read_only=True) as reader:
        old = JITDB(reader, timestamp="timestamp", sequence="n")
        for offset in offsets[::3]:
            log.delete(offset)
        log.flush()
        log.compact()
        after = remapped(log)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with monkeypatch.context() as patch:  # the moment before it notices
                patch.setattr(DeletionReader, "look", lambda self, path: self.poll())
                assert old.count(ALL[2]) == old.count(ALL[4]) == 1  # asked for the first time: kept in memory
                old.prepare(*ALL)
                old.reindex(0)
                old.prepare(*ALL)
                assert files_of(log.sidecar / "indexes") == after
                assert all(each["records"] == 300 for asked in ALL for each in old.explain(asked)["indexes"])
            assert old.count() == 200
            assert reader.generation == log.generation
            scanned = old.status
            old.prepare(*ALL)
            assert old.status == scanned  # what the writer took over is there for the reader
        assert files_of(log.sidecar / "indexes") == after


def test_a_killed_remap_is_gone_on_with(log: Log, tmp_path: Path) -> None:
    """Some files are of the new generation, some are of the old one."""
    compacted(log)
    folder = log.sidecar / "indexes"
    shutil.copytree(folder, tmp_path / "old")
    remapped(log)
    for path in sorted(folder.glob("*.index"))[::2]:
        shutil.copy(tmp_path / "old" / path.name, path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert remapped(log) == built_anew(log, tmp_path / "fresh")


def test_lengths_come_from_blocks_and_neighbours(log: Log) -> None:
    """Also the last record of an index that ends in the middle of a block."""
    write(log, 20)
    db = prepared(log)
    (index,) = [index for index in opened(db) if index.spec == OFFSETS]
    assert isinstance(index, Index)
    write(log, 200, 20)
    log.delete(live(log)[3])
    log.flush()
    log.compact()
    again = JITDB(log, timestamp="timestamp", sequence="n")
    manager_of(again).remap()
    again.explain()
    (index,) = [index for index in opened(again) if index.spec == OFFSETS]
    assert index.end_seq == 19
    assert load_offsets(index.segments[0]).tolist() == live(log)[:19]
    assert index.end_offset == live(log)[19] or index.end_offset // 1024 != live(log)[19] // 1024
