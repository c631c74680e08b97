"""JITDB.verify(): sound indexes are found sound, however they came about; wrong bytes and wrong contents are told."""

from __future__ import annotations

import math
import shutil
import struct
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from engine_helpers import POSTS, QUESTIONS, TYPE, expected, is_even, make_log, manager_of, messages, oracle_of
from index_cases import make_bitmaps, make_numbers, make_offsets, make_set
from pyroaring import BitMap
from thoroughness import tries

from jitdb import JITDB, Log
from jitdb.engine.checking.check_indexes import IndexVerification
from jitdb.engine.checking.report import IndexCheck, Report
from jitdb.errors import IndexWarning, LogWarning, QueryError
from jitdb.indexes.files.file import LogName
from jitdb.indexes.files.folder import index_files
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds.bitmaps import dictionary_of
from jitdb.indexes.kinds.columns import number_range
from jitdb.indexes.kinds.dictionary import DictionaryColumn
from jitdb.indexes.kinds.numbers import load_extremes, load_numbers
from jitdb.indexes.kinds.offsets import load_offsets
from jitdb.indexes.kinds.prefixes import Prefixes, PrefixMap, prefix_offset_of, prefixes_of
from jitdb.indexes.segment import (
    BITMAPS,
    DICTIONARY,
    NUMBERS,
    OFFSETS,
    PREFIX_MAP,
    PREFIXES,
    SET,
    Segment,
    make_segment,
)
from jitdb.indexes.spec import IndexSpec, Requirement
from jitdb.log.io import osfile
from jitdb.operators import equal, everything, predicate

pytestmark = pytest.mark.slow

COUNT = 3000
DICTIONARY_NEED = Requirement(IndexSpec("dictionary", (("value", "content", "type"),)))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndexWarning)
        warnings.simplefilter("ignore", LogWarning)
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log whose indexes were built for all questions, in two parts, with deletions before, between and after."""
    path = tmp_path / "a.log"
    offsets = make_log(path, COUNT)
    with Log(path) as log, JITDB(log, progress=False) as db:
        log.delete(offsets[5])
        db.prepare(*QUESTIONS)
        manager_of(db).prepare([DICTIONARY_NEED], None)
        more = log.append_many(messages(500, COUNT))
        log.delete(offsets[6])
        log.flush()
        db.prepare(*QUESTIONS[: len(QUESTIONS) // 2])
        log.delete(int(more[3]))
        log.delete(offsets[7])
    return path


def verify(path: Path, sample: float | None = None, operations: tuple = QUESTIONS) -> Report:
    with JITDB(Log(path, read_only=True), progress=False) as db:
        return db.verify(sample, operations=operations)


def by_form(report: Report) -> dict[str, IndexCheck]:
    return {check.file: check for check in report.indexes}


@pytest.mark.parametrize("sample", [None, 1.0, 0.2, 500, 1])
def test_sound_indexes(path: Path, sample: float | None) -> None:
    report = verify(path, sample)
    assert report.ok, str(report)
    assert len(report.indexes) > 10
    assert {check.state for check in report.indexes} == {"sound"}
    assert {check.checked for check in report.indexes} == {"content" if sample is None else "sample"}
    assert {check.wrong for check in report.indexes} == {0}
    if sample is None or (isinstance(sample, float) and sample == 1.0):
        assert report.compared == COUNT + 500
    assert ("95 % confidence" in str(report)) == (sample is not None)
    assert report.to_json()["ok"] is True


def test_what_cannot_be_checked_without_its_function(path: Path) -> None:
    report = verify(path, operations=())
    assert report.ok
    (alone,) = [check for check in report.indexes if check.checked == "bytes"]
    assert alone.form == "predicate"
    assert "pass the operations" in alone.message


def test_a_predicate_that_changed(path: Path) -> None:
    other = predicate("value.sequence", lambda value: not is_even(value), name="is_even")
    report = verify(path, operations=(other,))
    assert [check.form for check in report.indexes if not check.ok] == ["predicate"]


def bent(segment: Segment) -> Segment:
    """The segment with one record that it tells something wrong of, every CRC right."""
    run, count = segment.run, segment.count
    if segment.kind == BITMAPS:
        keys = dictionary_of(segment)
        sets = [BitMap.deserialize(bytes(segment.blob(number))) for number in range(len(keys))]
        number = max(range(len(sets)), key=lambda at: len(sets[at]))
        sets[number].remove(sets[number][len(sets[number]) // 2])
        return make_bitmaps([keys[at] for at in range(len(keys))], sets, run)
    if segment.kind == SET:
        return make_set(BitMap.deserialize(bytes(segment.blob(0))) ^ BitMap([count // 2]), run)
    if segment.kind == NUMBERS:
        hi, lo = (None if part is None else part.copy() for part in load_numbers(segment))
        assert hi is not None
        hi[count // 2] += 1
        return make_numbers(hi, lo, run)
    if segment.kind == OFFSETS:
        offsets = load_offsets(segment).copy()
        offsets[count // 2] += 1
        return make_offsets(offsets, run)
    if segment.kind == DICTIONARY:
        column = DictionaryColumn.of(segment)
        column.codes[count // 2] = 0
        return DictionaryColumn.of_codes(column.values, column.codes, column.first).segment(run)
    assert segment.kind in (PREFIXES, PREFIX_MAP)
    prefixes, seqs = prefixes_of(segment)
    prefixes[len(prefixes) // 2] ^= 1
    members = seqs - np.uint32(segment.span_start)
    kind = Prefixes if segment.kind == PREFIXES else PrefixMap
    return kind(prefixes, members, segment.first_in_span, count, prefix_offset_of(segment)).segment(run)


def index_of(path: Path, file: Path) -> Index:
    head = dict(index_files(osfile.fs, file.parent))[file]
    assert head is not None
    with Log(path, read_only=True) as log:
        index = Index(head.spec, LogName(log.identity, log.generation), file)
    index.load()
    return index


def files_of(path: Path) -> list[Path]:
    return sorted((path.parent / f"{path.name}.jitdb" / "indexes").glob("*.index"))


@pytest.mark.parametrize("sample", [None, 1.0])
def test_one_wrong_record_in_each_index(path: Path, sample: float | None) -> None:
    kinds = set()
    for file in files_of(path):
        before = file.read_bytes()
        index = index_of(path, file)
        kinds.add(index.kind)
        index.replace([bent(index.segments[0]), *index.segments[1:]])
        report = verify(path, sample)
        bad = [check for check in report.indexes if not check.ok]
        assert file.name in {check.file for check in bad}, file.name
        if index.kind != OFFSETS:  # without true places, a sample cannot tell which records are meant
            assert [(check.state, check.wrong) for check in bad] == [("wrong", 1)], str(report)
        file.write_bytes(before)
    assert kinds == {BITMAPS, SET, NUMBERS, OFFSETS, PREFIXES, PREFIX_MAP, DICTIONARY}


@pytest.mark.parametrize("sample", [None, 1.0])
def test_a_column_that_says_less_of_its_numbers_than_there_is(path: Path, sample: float | None) -> None:
    for file in files_of(path):
        index = index_of(path, file)
        if index.kind == NUMBERS:
            before, (segment, *others) = file.read_bytes(), index.segments
            low, high, _ = number_range(segment)
            ranges = ((low + 1, high), (low, high - 1), (math.nan, math.nan))
            bent = [segment.changed(meta=struct.pack("<dd", *each) + segment.meta[16:]) for each in ranges]
            for zones in (np.add(load_extremes(segment), [[1], [0]]), load_extremes(segment) - [[0], [1]]):
                blobs = [segment.blob(number) for number in range(len(segment.table) - 1)]
                bent.append(make_segment(NUMBERS, segment.run, segment.meta, [*blobs, zones.tobytes()]))
            for wrong in bent:
                index.replace([wrong, *others])
                (bad,) = [check for check in verify(path, sample).indexes if not check.ok]
                assert (bad.file, bad.state) == (file.name, "wrong")
                assert "not within the bounds" in bad.message
            file.write_bytes(before)


def test_a_place_that_is_wrong_is_told_of_before_and_after_it_is_noticed(path: Path) -> None:
    """Who asks for offsets alone reads no record: the answer is wrong until some question comes upon the place."""
    (file,) = [each for each in files_of(path) if each.name.startswith("offsets.")]
    index = index_of(path, file)
    index.replace([bent(index.segments[0]), *index.segments[1:]])
    with JITDB(Log(path, read_only=True), progress=False) as db:
        right = expected(oracle_of(db.log), everything())  # type: ignore[arg-type]
        assert not db.verify().ok
        assert db.all(everything(), as_offsets=True) != right
        with pytest.warns(IndexWarning, match="What was answered before may be wrong"):
            db.all(everything())
        assert db.all(everything(), as_offsets=True) == right
        assert db.verify().ok


def test_every_flipped_bit_of_an_index_file(path: Path, tmp_path: Path) -> None:
    """Some bits of each file, alone in a folder, and more of its head."""
    alone = tmp_path / "alone"
    with Log(path, read_only=True) as log:
        for file in files_of(path):
            alone.mkdir()
            data = bytearray(file.read_bytes())
            step = max(tries(797, 97), len(data) // 8)
            for bit in sorted({*range(0, 8 * 64, tries(13, 5)), *range(0, 8 * len(data), step)}):
                data[bit // 8] ^= 1 << bit % 8
                (alone / file.name).write_bytes(data)
                (found,) = IndexVerification(log, alone, (), None, 1).run(lambda done, total: None)
                assert found.state == "damaged", (file.name, bit)
                data[bit // 8] ^= 1 << bit % 8
            shutil.rmtree(alone)


def test_indexes_of_another_log_are_no_damage(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.log"
    make_log(other, 50)
    with JITDB(Log(other, read_only=True), path.parent / "a.log.jitdb" / "indexes", progress=False) as db:
        report = db.verify()
    assert report.ok
    assert {check.state for check in report.indexes} == {"void"}


def test_after_a_compaction(path: Path) -> None:
    with Log(path) as log:
        log.compact()
    report = verify(path)
    assert report.ok
    assert {check.state for check in report.indexes} == {"void"}
    assert "is carried over" in report.indexes[0].message
    with JITDB(Log(path, read_only=True), progress=False) as db:
        db.prepare(*QUESTIONS)
        manager_of(db).prepare([DICTIONARY_NEED], None)
    report = verify(path)
    assert report.ok, str(report)
    assert {check.state for check in report.indexes} == {"sound"}


def test_hashes_against_bitmaps(tmp_path: Path) -> None:
    """An index that had to give up its bitmaps is compared with a new one that need not."""
    path = tmp_path / "a.log"
    with Log(path) as log:
        log.append_many([{"id": number % 300} for number in range(400)])
    with JITDB(Log(path), progress=False) as db:
        db.prepare(equal("id", 1))
        db.log.append_many([{"id": 1}] * 20_000)  # type: ignore[attr-defined]
        db.log.flush()  # type: ignore[attr-defined]
        db.prepare(equal("id", 1))
        report = db.verify()
    assert report.ok, str(report)
    assert any(check.form == "auto" for check in report.indexes)


def test_an_empty_log(tmp_path: Path) -> None:
    with JITDB(Log(tmp_path / "a.log"), progress=False) as db:
        assert db.verify().ok
        assert db.verify(sample=0.5).ok


@pytest.mark.parametrize("sample", [0, -1, 1.5, True, "all"])
def test_samples_that_mean_nothing(path: Path, sample: object) -> None:
    with JITDB(Log(path, read_only=True)) as db, pytest.raises(QueryError, match="sample is a part"):
        db.verify(sample=sample)  # type: ignore[arg-type]


class TestRepair:
    def test_indexes_are_built_again(self, path: Path) -> None:
        files = files_of(path)
        one, two, three = [file for file in files if ".deleted-" not in file.name and ".predicate-" not in file.name][
            :3
        ]
        one.write_bytes(one.read_bytes()[:-5] + b"wrong")
        index = index_of(path, two)
        index.replace([bent(index.segments[0]), *index.segments[1:]])
        three.write_bytes(b"no index at all")
        with JITDB(Log(path), progress=False) as db:
            report = db.repair(operations=QUESTIONS)
            assert sum("index " in str(each) for each in report.actions) == 3
            assert db.verify(operations=QUESTIONS).ok
            oracle = oracle_of(db.log)  # type: ignore[arg-type]
            for question in QUESTIONS:
                assert db.count(question) == len(oracle.matches(question))

    def test_a_damaged_block(self, path: Path) -> None:
        """What is indexed afterwards is what is in the log then."""
        data = bytearray(path.read_bytes())
        data[4096:4100] = b"\xff\xff\xff\xff"
        path.write_bytes(bytes(data))
        with JITDB(Log(path), progress=False) as db:
            assert db.count(POSTS)
            report = db.repair()
            assert report.lost or report.kept
            assert db.verify(operations=QUESTIONS).ok
            oracle = oracle_of(db.log)  # type: ignore[arg-type]
            assert db.count(equal(TYPE, "post")) == len(oracle.matches(POSTS))

    def test_nothing_to_repair(self, path: Path) -> None:
        with JITDB(Log(path), progress=False) as db:
            assert db.repair(operations=QUESTIONS).actions == ()


def test_reports_are_values(path: Path) -> None:
    report = verify(path)
    assert replace(report, seconds=0.0, log=replace(report.log, seconds=0.0)) != report
