"""Spans that tasks write themselves are byte for byte those of the local engine after a merge, wherever it is cut."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from index_cases import spans_of
from range_cases import Here, build_by_spans, build_locally, damage, files_of, gathered, merged_files
from test_spark_partials import ALL, BLOCK, FEW, SPAN, _fits_bipf, batch_offsets, limits, log_of, records
from thoroughness import tries

from jitdb import JITDB, Log
from jitdb.common.paths import TIMESTAMPS
from jitdb.engine.building import scan as scan_module
from jitdb.errors import IndexWarning
from jitdb.log.any_log import open_any
from jitdb.log.io.filenames import SPANS
from jitdb.operators import equal, gt
from jitdb.spark_ext import counting
from jitdb.spark_ext.building import cutting
from jitdb.spark_ext.building.cutting import Count, Counted, Edge, chunks, counts, pieces, uncounted
from jitdb.spark_ext.building.scanning import Begin
from jitdb.spark_ext.errors import CopyDiffers, LogChanged


@contextmanager
def chunks_of(size: int) -> Iterator[None]:
    """With chunks of so few bytes that a test can have some."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (cutting, counting):
            patch.setattr(module, "PIECE", size)
        patch.setattr(cutting, "_COUNTED", 3 * size)
        yield


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(scan_module, "CHUNK_BYTES", 4 * BLOCK)
    with spans_of(SPAN), chunks_of(2 * BLOCK):
        yield


def spans_in(folder: Path) -> list[Path]:
    return sorted((folder / SPANS).glob("*")) if (folder / SPANS).exists() else []


@settings(max_examples=tries(20, 500), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_log_in_pieces_of_any_size(data: st.DataObject) -> None:
    draw = data.draw
    few = draw(st.sampled_from([2, 4, 1000]), "few values")
    most, most_bytes = draw(st.sampled_from([5, 1000]), "values"), draw(st.sampled_from([40, 1 << 20]), "their bytes")
    codec = draw(st.sampled_from(["msgpack", "bipf"]))
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        chunks_of(draw(st.integers(1, 9), "blocks of a chunk") * BLOCK),
    ):
        limits(patch, few, most, most_bytes)
        base = Path(folder)
        with Log(base / "x.log", codec=codec, block_size=BLOCK) as log:
            for step in range(draw(st.integers(1, 3), "steps")):
                some = draw(records, "records") * draw(st.integers(1, 9), "times")
                log.append_many([one for one in some if codec == "msgpack" or _fits_bipf(one)])
                log.flush()
                for number, offset in enumerate(batch_offsets(log)):
                    if number % 11 == 3 and draw(st.booleans(), "deleted"):
                        log.delete(offset)
                        log.flush()
                asked = ALL if step else draw(st.sampled_from([ALL, ALL[:1], ALL[4:7]]), "asked")
                if draw(st.booleans(), "built by the local engine"):
                    build_locally(log, base / "a", asked)
                else:
                    size, at_once = draw(st.integers(1, 40 * BLOCK), "size"), draw(st.sampled_from([0, 1 << 30]))
                    build_by_spans(log, base / "a", asked, size, at_once)
                build_locally(log, base / "b", asked)
            build_by_spans(log, base / "a", ALL, draw(st.integers(1, 40 * BLOCK), "last size"), 0)
            assert gathered(base / "a") == merged_files(log, base / "b", ALL)


@pytest.mark.parametrize("proven", [True, False], ids=["checksums", "no checksums"])
@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_damaged_blocks_anywhere(cut: int, proven: bool, tmp_path: Path) -> None:
    with log_of(tmp_path / "x.log", 400) as log:
        for base in "ab":
            build_locally(log, tmp_path / base, ALL[:2])  # an index that was built before they broke
        log.append_many([{"k": f"key {number % 7}", "n": number} for number in range(300)])
        log.flush()
        blocks = log.durable_end // BLOCK
    clean = (tmp_path / "x.log").read_bytes()
    if not proven:  # then only a length that leads out of its block tells
        (tmp_path / "x.log.jitdb" / "checksums").unlink()

    def alike(files: dict[str, bytes]) -> dict[str, bytes]:
        """Where nothing is proven, a part may know less of a block in which it found no record."""
        return {name: data for name, data in files.items() if proven or ".deleted-" not in name}

    every = list(range(4, blocks - 3, 3))
    for damaged, byte in (([0, 1, 2], 0xFF), ([blocks - 2, blocks - 1], 0), (every, 0xFF), (every, 0)):
        data = bytearray(clean)
        for block in damaged:
            data[block * BLOCK : block * BLOCK + 2] = bytes([byte, byte])
        damage(tmp_path / "x.log", data)
        name = f"{len(damaged)} {byte}"
        for base in ("a", "b"):
            shutil.copytree(tmp_path / base, tmp_path / f"{base} {name}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Log(tmp_path / "x.log", read_only=True) as log:
                for mine, locals_ in (("a", "b"), ("c", "d")):  # c and d begin with nothing
                    build_by_spans(log, tmp_path / f"{mine} {name}", FEW, cut * BLOCK, 0)
                    ours = gathered(tmp_path / f"{mine} {name}")
                    assert alike(ours) == alike(merged_files(log, tmp_path / f"{locals_} {name}", FEW)), name


LINES = [b'{"k": "key %d", "n": %d}' % (number % 7, number) for number in range(333)]


@pytest.mark.parametrize("size", [1, 100, 1500, 1 << 20])
@pytest.mark.parametrize(
    "lines",
    [LINES, [*LINES[:50], b"", b"no json", b"{", *LINES[50:], b'"' + b"x" * 3000 + b'"', *LINES]],
    ids=["clean", "hostile"],
)
@pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")
def test_lines(lines: list[bytes], size: int, tmp_path: Path) -> None:
    (tmp_path / "x.ndjson").write_bytes(b"\n".join(lines) + b"\n")
    asked = [equal("k", "key 3"), gt(3, "n")]
    with open_any(tmp_path / "x.ndjson", read_only=True) as log:
        build_by_spans(log, tmp_path / "a", asked, size, 0)
        db = JITDB(log, tmp_path / "b", timestamp=TIMESTAMPS)
        db.prepare(*asked)
        expected = db.count(*asked[:1]), db.count(*asked[1:])
        db = JITDB(log, tmp_path / "a", timestamp=TIMESTAMPS)
        assert db.explain(asked[0])["scan_bytes"] == 0
        assert (db.count(*asked[:1]), db.count(*asked[1:])) == expected
        assert gathered(tmp_path / "a") == gathered(tmp_path / "b")


ASKED = [*FEW, equal("k", "key 6")]


def asked_of(folder: Path, log: Log) -> list[int]:
    """Some answers, from indexes alone."""
    db = JITDB(log, folder, timestamp=TIMESTAMPS)
    assert [db.explain(each)["scan_bytes"] for each in ASKED] == [0] * len(ASKED)
    return [db.count(each) for each in ASKED]


def test_what_lies_apart_answers_as_what_does_not(tmp_path: Path) -> None:
    with log_of(tmp_path / "x.log", 500) as log:
        cluster = build_by_spans(log, tmp_path / "a", FEW, 1 << 20, 0)
        build_by_spans(log, tmp_path / "b", FEW, 1 << 20)
        assert {work for work, _, _ in cluster.done} == {"indexing"}
        assert len(spans_in(tmp_path / "a")) == 8 * len(files_of(tmp_path / "a"))
        assert spans_in(tmp_path / "b") == []
        assert files_of(tmp_path / "b") == merged_files(log, tmp_path / "c", FEW)
        assert asked_of(tmp_path / "a", log) == asked_of(tmp_path / "b", log)


def test_a_span_is_one_task_and_nothing_is_joined(tmp_path: Path) -> None:
    with log_of(tmp_path / "x.log", 500) as log:
        span = log.durable_end * SPAN // 500 * 2
        works = [work for work, _, _ in build_by_spans(log, tmp_path / "a", FEW, span, 0).done]
        assert (works.count("indexing"), works.count("joining the indexes of")) == (8, 0)
        works = [work for work, _, _ in build_by_spans(log, tmp_path / "b", FEW, span // 8, 0).done]
        assert works.count("indexing") > 16
        assert works.count("joining the indexes of") > 8
        assert files_of(tmp_path / "a") == files_of(tmp_path / "b")  # the names of spans tell what is in them


def test_it_grows_after_a_cluster_built_it(tmp_path: Path) -> None:
    with log_of(tmp_path / "x.log", 300) as log:

        def build(count: int) -> None:
            if count:
                log.append_many([{"k": f"new {number}", "n": number, "timestamp": 3} for number in range(count)])
                log.flush()
            for base, at_once in (("a", 0), ("b", 1 << 30)):
                build_by_spans(log, tmp_path / base, FEW, 1 << 20, at_once)

        build(0)
        before = spans_in(tmp_path / "a")
        log.append_many([{"k": f"new {number}", "n": number} for number in range(30)])
        log.flush()
        for base in "ab":
            build_locally(log, tmp_path / base, FEW)
        assert set(spans_in(tmp_path / "a")) < set(before)  # the last span was taken in by what follows it
        build(100)
        build(1)
        assert gathered(tmp_path / "a") == files_of(tmp_path / "b")


@pytest.mark.filterwarnings("error::jitdb.errors.IndexWarning")
def test_a_compaction_takes_spans_over(tmp_path: Path) -> None:
    with log_of(tmp_path / "x.log", 300) as log:
        for base, at_once in (("a", 0), ("b", 1 << 30)):
            build_by_spans(log, tmp_path / base, FEW, 1 << 20, at_once)
        for offset in batch_offsets(log)[::3]:
            log.delete(offset)
        log.compact()
        found = []
        for base in "ab":
            db = JITDB(log, tmp_path / base, timestamp=TIMESTAMPS)
            found.append([(db.count(each), db.explain(each)["scan_bytes"]) for each in ASKED])
        assert found[0] == found[1]
        assert gathered(tmp_path / "a") == gathered(tmp_path / "b")


@pytest.mark.parametrize("how", ["gone", "damaged", "cut short"])
def test_a_span_that_cannot_be_read(how: str, tmp_path: Path) -> None:
    with log_of(tmp_path / "x.log", 300) as log:
        build_by_spans(log, tmp_path / "a", FEW, 1 << 20, 0)
        for path in sorted((tmp_path / "a" / SPANS).glob("k.auto*")):
            raw = path.read_bytes()
            path.unlink()
            if how != "gone":
                path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1] if how == "damaged" else []))
        db = JITDB(log, tmp_path / "a", timestamp=TIMESTAMPS)
        with pytest.warns(IndexWarning, match="rebuilt"):
            found = [db.count(each) for each in ASKED]
        db = JITDB(log, tmp_path / "a", timestamp=TIMESTAMPS)
        report = db.verify()
        assert {each.state for each in report.indexes} == {"sound"}
        merged_files(log, tmp_path / "b", FEW)
        assert found == asked_of(tmp_path / "b", log)


def test_verify_reads_what_lies_apart(tmp_path: Path) -> None:
    with log_of(tmp_path / "x.log", 300) as log:
        build_by_spans(log, tmp_path / "a", FEW, 1 << 20, 0)
        path = spans_in(tmp_path / "a")[3]
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        db = JITDB(log, tmp_path / "a", timestamp=TIMESTAMPS)
        states = [each.state for each in db.verify().indexes]
        assert states.count("damaged") == 1


@pytest.mark.parametrize("at", ["indexing", "counting the records of"])
def test_a_driver_or_a_worker_that_is_lost_leaves_nothing_that_is_believed(at: str, tmp_path: Path) -> None:
    class Lost(BaseException):
        """The process is gone: nothing is tidied up."""

    class Losing(Here):
        def run(self, work: str, function: Any, items: Any) -> list[Any]:
            if work == at:
                super().run(work, function, list(items)[:-1])
                raise Lost
            return super().run(work, function, items)

    with log_of(tmp_path / "x.log", 500) as log, pytest.MonkeyPatch.context() as patch:
        patch.setattr("range_cases.Here", Losing)
        patch.setattr("jitdb.spark_ext.building.sharing.SharedBuild.close", lambda self: None)
        with pytest.raises(Lost):
            build_by_spans(log, tmp_path / "a", FEW, 4 * BLOCK, 0)
        patch.undo()
        assert files_of(tmp_path / "a") == {}
        assert bool(spans_in(tmp_path / "a")) == (at == "indexing")
        build_locally(log, tmp_path / "a", FEW)  # which knows nothing of it, and tidies up
        assert spans_in(tmp_path / "a") == []
        assert gathered(tmp_path / "a") == merged_files(log, tmp_path / "b", FEW)


def test_records_other_than_were_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting.Counted, "edge", lambda self, seq: Edge(self.places[1], self.places[1]))
    with log_of(tmp_path / "x.log", 500) as log, pytest.raises(LogChanged, match="other records than were counted"):
        build_by_spans(log, tmp_path / "a", FEW, 4 * BLOCK, 0)
    assert files_of(tmp_path / "a") == {}
    assert spans_in(tmp_path / "a") == []


def test_a_worker_without_the_folder(tmp_path: Path) -> None:
    class Elsewhere(Here):
        def run(self, work: str, function: Any, items: Any) -> list[Any]:
            shutil.rmtree(tmp_path / "a" / SPANS)
            return super().run(work, function, items)

    with log_of(tmp_path / "x.log", 50) as log, pytest.MonkeyPatch.context() as patch:
        patch.setattr("range_cases.Here", Elsewhere)
        with pytest.raises(CopyDiffers, match="must lie on storage that all machines share"):
            build_by_spans(log, tmp_path / "a", FEW, 4 * BLOCK, 0)


# --- where it is cut -------------------------------------------------------------------------------------------------


def test_chunks_are_counted_once() -> None:
    for begins in ([0], [0, 700], [513, 700], [513, 5000]):
        places = chunks(begins, 5000, BLOCK)
        assert places[0] == min(begins)
        assert {begin for begin in begins if begin < 5000} <= {*places}
        assert all(place % BLOCK == 0 or place in begins for place in places)
        for size in (1, 2000, 1 << 20):
            asked = counts(places, 5000, size)
            assert [place for each in asked for place in each.places] == places
            assert [each.stop for each in asked] == [*(each.places[0] for each in asked[1:]), 5000]
    assert counts([0, 10], 20, 5) == [Count((0, 10), 20)]


def test_edges() -> None:
    counted = Counted([0, 100, 200, 300], [0, 10, 10, 25])
    assert counted.edge(0) == Edge(0, 0)
    assert counted.edge(1) == Edge(0, 100, 1)
    assert counted.edge(10) == Edge(0, 100, 10)
    assert counted.edge(11) == Edge(200, 300, 1)
    assert counted.edge(25) == Edge(200, 300, 15)


def test_pieces_cover_everything_once() -> None:
    counted = Counted([*range(0, 5001, 100)], [*range(0, 251, 5)])
    for begins in ([Begin(0, 0)], [Begin(0, 0), Begin(35, 700)], [Begin(0, 0), Begin(35, 700), Begin(34, 700)]):
        for size in (1, 300, 1 << 20):
            made = pieces(counted, begins, size)
            assert made[0].begin == Edge(0, 0)
            assert made[-1].end == Edge(5000, 5000)
            assert sum(each.records for each in made) == 250
            for number, begin in enumerate(begins):
                mine = [each for each in made if number in each.targets]
                assert mine[0].begin == Edge(begin.offset, begin.offset)
                assert all(left.end == right.begin for left, right in pairwise(mine))
            ends = {each.first_seq + each.records for each in made}
            assert {64, 128, 192} <= ends
            if size > 5000 and len(begins) == 1:
                assert ends == {64, 128, 192, 250}


def test_a_log_without_records_is_one_piece() -> None:
    (only,) = pieces(Counted([0, 5000], [0, 0]), [Begin(0, 0)], 100)
    assert (only.begin, only.end, only.records) == (Edge(0, 0), Edge(5000, 5000), 0)
    assert [each.targets for each in uncounted([Begin(0, 0), Begin(3, 70)], 90)] == [(0,), (0, 1)]


def test_the_entry_of_a_span_byte_by_byte(tmp_path: Path) -> None:
    """The example of docs/format-index.md."""
    with Log(tmp_path / "x.log", codec="msgpack", block_size=BLOCK) as log:
        log.append_many([{"type": "post"}] * SPAN)
        log.flush()
        build_by_spans(log, tmp_path / "a", [equal("type", "post")], 1 << 20, 0)
        (file,) = (tmp_path / "a").glob("type.*.index")
        (span,) = (tmp_path / "a" / SPANS).glob("type.*")
    raw, apart = file.read_bytes(), span.read_bytes()
    head = int.from_bytes(raw[8:12], "little") + 16
    assert raw[:head] == apart[:head]
    lead = len(raw) - head - 20
    assert raw[head : head + 4] == b"JREF"
    assert raw[head + 4 : head + 60] == apart[head + 4 : head + 60]
    assert raw[head + 64 : head + lead] == apart[head + 64 : head + lead]
    assert int.from_bytes(raw[-20:-12], "little") == head + lead
    assert span.name == f"{file.stem}.0-{raw[-12:-4].hex()}.span"
    assert json.loads(raw[12 : head - 4])["index"] == {"paths": [["type"]]}


def test_values_on_both_sides_of_the_end_of_a_span_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task's range may cross it: twice as many values would be too many for bitmaps."""
    limits(monkeypatch, 2, 5, 1 << 20)
    with Log(tmp_path / "x.log", codec="msgpack", block_size=BLOCK) as log:
        for names in ("ab", "abcd"):
            log.append_many([{"k": names[number % len(names)]} for number in range(SPAN * 3 // 4)])
            log.flush()
            if names == "ab":
                build_locally(log, tmp_path / "a", ALL[:1])
                build_locally(log, tmp_path / "b", ALL[:1])
        build_by_spans(log, tmp_path / "a", ALL[:1], 40 * BLOCK, 0)
        assert gathered(tmp_path / "a") == merged_files(log, tmp_path / "b", ALL[:1])
