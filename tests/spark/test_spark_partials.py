"""Ranges scanned by themselves, placed and merged, are byte for byte what the local engine writes after a merge."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import range_cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from index_cases import scalars, spans_of
from range_cases import CORE, build_by_ranges, build_locally, damage, files_of, merged_files
from thoroughness import tries

from jitdb import Log
from jitdb.engine.building import scan as scan_module
from jitdb.errors import IndexDamaged, IndexWarning, LogWarning
from jitdb.indexes.kinds import bitmaps as index_limits
from jitdb.indexes.kinds import set_builders
from jitdb.operators import absent, contains, equal, gt, includes, lt, predicate, starts_with
from jitdb.spark_ext.building import joining, scanning
from jitdb.spark_ext.building.driver import Driver
from jitdb.spark_ext.building.scanning import Keys, Range, RangeHead, cut_ranges
from jitdb.spark_ext.errors import LogChanged

BLOCK = 512
SPAN = 64

ALL = [
    equal("k", "x"),
    equal("k", "x", prefix=32),
    equal("k", "x", prefix=32, use_map=True),
    equal("k", "x", prefix=32, prefix_offset=2),
    equal("k", "x", index_all=True),
    includes("tags", "x"),
    includes("tags", "x", prefix=32),
    includes("tags", "x", pluck="a"),
    absent("value.deep"),
    starts_with("k", "key"),
    predicate("k", lambda value: isinstance(value, str) and value > "key 2", name="late"),
    gt(3, "n"),
    equal(lambda record, start: 1, "x", index_type="seek"),
    equal("k[]", "x"),
    equal("k[].a", "x", prefix=32),
    equal("k[0]", "x"),
    starts_with("k[]", "x"),
    gt(1, "k[]"),
    lt(1, "k[]"),
    absent("k[1][]"),
    contains("k[]", "x"),
]

#: An index of each kind.
FEW = [ALL[0], ALL[2], ALL[5], ALL[11]]


def limits(patch: pytest.MonkeyPatch, few: int, most: int, most_bytes: int) -> None:
    """Other limits for the values that get bitmaps."""
    for module in (set_builders, index_limits, joining, scanning):
        patch.setattr(module, "FEW_VALUES", few)
    for module in (index_limits, set_builders):
        patch.setattr(module, "MAX_VALUES", most)
        patch.setattr(module, "MAX_VALUE_BYTES", most_bytes)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(scan_module, "CHUNK_BYTES", 4 * BLOCK)
    with spans_of(SPAN):
        yield


records = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "k": scalars | st.sampled_from(["key 1", "key 2", "key 3"]) | st.lists(st.integers(0, 3), max_size=2),
            "tags": st.lists(scalars | st.fixed_dictionaries({"a": st.integers(0, 9)}), max_size=3) | st.integers(0, 3),
            "n": st.integers(-5, 5) | st.floats(),
            "timestamp": st.integers(0, 1000) | st.just(-0.0) | st.just(0),
            "value": st.fixed_dictionaries({}, optional={"sequence": st.integers(0, 2**63), "deep": st.booleans()}),
        },
    ),
    max_size=40,
)


def cuts(work: Any, at: list[int]) -> list[Range]:
    """Ranges that end at these blocks, and where an index begins."""
    begins = [begin.offset for begin in work.begins]
    if not begins:
        return []
    first = min(begins)
    edges = {begin for begin in begins if begin < work.end} | {each * BLOCK for each in at} | {work.end}
    edges = {edge for edge in edges if first <= edge <= work.end} | {first}
    ordered = sorted(edges)
    return [
        Range(number, start, stop, tuple(each for each, begin in enumerate(begins) if begin <= start))
        for number, (start, stop) in enumerate(pairwise(ordered))
    ]


@settings(max_examples=tries(20, 500), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_log_cut_anywhere(data: st.DataObject) -> None:
    draw = data.draw
    few = draw(st.sampled_from([2, 4, 1000]), "few values")
    most, most_bytes = draw(st.sampled_from([5, 1000]), "values"), draw(st.sampled_from([40, 1 << 20]), "their bytes")
    codec = draw(st.sampled_from(["msgpack", "bipf"]))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        limits(patch, few, most, most_bytes)
        base = Path(folder)
        with Log(base / "x.log", codec=codec, block_size=BLOCK) as log:
            # An index file may know the first part of the log; and only some of the indexes may.
            for step in range(draw(st.integers(1, 3), "steps")):
                some = draw(records, "records") * draw(st.integers(1, 9), "times")
                log.append_many([one for one in some if codec == "msgpack" or _fits_bipf(one)])
                log.flush()
                for number, offset in enumerate(batch_offsets(log)):
                    if number % 11 == 3 and draw(st.booleans(), "deleted"):
                        _delete(log, offset)
                asked = ALL if step else draw(st.sampled_from([ALL, ALL[:1], ALL[4:7]]), "asked")
                if draw(st.booleans(), "built by the local engine"):
                    build_locally(log, base / "a", asked)
                    build_locally(log, base / "b", asked)
                else:
                    at = draw(st.lists(st.integers(0, 40), max_size=6), "cuts")
                    build_by_ranges(log, base / "a", asked, lambda work, at=at: cuts(work, at))
                    build_locally(log, base / "b", asked)
            build_by_ranges(log, base / "a", ALL, lambda work: cuts(work, [3, 4, 9]))
            ours = merged_files(log, base / "a", ALL)
            assert ours == merged_files(log, base / "b", ALL)


def _fits_bipf(record: dict[str, Any]) -> bool:
    from jitdb.errors import EncodeError
    from jitdb.log.codecs import get_codec

    try:
        get_codec("bipf").encode(record)
    except EncodeError:
        return False
    return True


def batch_offsets(log: Log) -> list[int]:
    return [record.offset for record in log.stream()]


def _delete(log: Log, offset: int) -> None:
    log.delete(offset)
    log.flush()


def log_of(path: Path, count: int) -> Log:
    log = Log(path, codec="msgpack", block_size=BLOCK)
    log.append_many(
        [{"k": f"key {number % 7}", "tags": [number % 3, "x"], "n": number, "timestamp": 1} for number in range(count)]
    )
    log.flush()
    return log


def test_files_are_canonical_at_once(tmp_path: Path) -> None:
    with log_of(tmp_path / "x.log", 500) as log:
        build_by_ranges(log, tmp_path / "a", ALL, 3 * BLOCK)
        assert files_of(tmp_path / "a") == merged_files(log, tmp_path / "b", ALL)
        assert build_by_ranges(log, tmp_path / "a", ALL, 3 * BLOCK) == []


@pytest.mark.parametrize("few", [3, 100])
def test_only_what_is_new_is_scanned(few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, few, 1000, 1 << 20)
    with log_of(tmp_path / "x.log", 300) as log:
        build_by_ranges(log, tmp_path / "a", ALL[:3], 4 * BLOCK)
        build_locally(log, tmp_path / "b", ALL[:3])
        before = log.durable_end
        log.append_many([{"k": f"new {number}", "n": number} for number in range(100)])
        log.flush()
        partials = build_by_ranges(log, tmp_path / "a", ALL[:3], 4 * BLOCK)
        assert min(each.start for each in partials) == before
        assert files_of(tmp_path / "a") == merged_files(log, tmp_path / "b", ALL[:3])
        # An index that is there and others that are not: each range for those that lack it.
        build_by_ranges(log, tmp_path / "a", ALL, 4 * BLOCK)
        assert files_of(tmp_path / "a") == merged_files(log, tmp_path / "b", ALL)


def test_a_damaged_block_costs_what_it_costs_locally(tmp_path: Path) -> None:
    with log_of(tmp_path / "x.log", 400) as log:
        end = log.durable_end
    data = bytearray((tmp_path / "x.log").read_bytes())
    data[3 * BLOCK : 3 * BLOCK + 2] = b"\xff\xff"
    data[5 * BLOCK + 100] ^= 1
    damage(tmp_path / "x.log", data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        with Log(tmp_path / "x.log", read_only=True) as log:
            assert log.durable_end == end
            partials = build_by_ranges(log, tmp_path / "a", ALL, 4 * BLOCK)
            assert files_of(tmp_path / "a") == merged_files(log, tmp_path / "b", ALL)
    corrupt = {block for each in partials for block in each.head.corrupt}
    assert corrupt == {3, 5}


@pytest.mark.parametrize("proven", [True, False], ids=["checksums", "no checksums"])
@pytest.mark.parametrize("cut", [1, 7])
def test_damaged_blocks_anywhere(cut: int, proven: bool, tmp_path: Path) -> None:
    with log_of(tmp_path / "x.log", 400) as log:
        build_locally(log, tmp_path / "a", ALL[:2])  # an index that was built before they broke
        build_locally(log, tmp_path / "b", ALL[:2])
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
                    build_by_ranges(log, tmp_path / f"{mine} {name}", FEW, cut * BLOCK)
                    ours = files_of(tmp_path / f"{mine} {name}")
                    assert alike(ours) == alike(merged_files(log, tmp_path / f"{locals_} {name}", FEW)), name


def test_ranges_cover_everything_once() -> None:
    for begins in ([0], [0, 0, 700], [513, 700], [2000], [2000, 2100]):
        for size in (1, BLOCK, 3 * BLOCK, 1 << 20):
            ranges = cut_ranges(begins, 5000, BLOCK, size)
            for number, begin in enumerate(begins):
                mine = [part for part in ranges if number in part.targets]
                assert mine[0].start == begin
                assert mine[-1].stop == 5000
                assert all(left.stop == right.start for left, right in pairwise(mine))
            assert [part.number for part in ranges] == list(range(len(ranges)))
            assert all(part.start % BLOCK == 0 or part.start in begins for part in ranges)
    assert cut_ranges([5000, 5000], 5000, BLOCK, 100) == []
    assert cut_ranges([], 5000, BLOCK, 100) == []


def head(number: int, records: int, end: int, keys: dict[int, Keys] | None = None) -> RangeHead:
    return RangeHead(number, records, end, 0, (), {}, {}, keys or {}, 0)


def test_a_range_without_records_moves_nothing() -> None:
    heads = [head(0, 5, 90), head(1, 0, 100), head(2, 3, 290)]
    found = joining.places(heads, joining.Begin(0, 0))
    assert [found[number] for number in range(3)] == [(0, 0), (5, 90), (5, 90)]


def test_an_index_that_counts_other_records_does_not_fit() -> None:
    begins = [joining.Begin(0, 0), joining.Begin(5, 100), joining.Begin(6, 100)]
    wrong = joining.misfits(begins, {0: 0, 100: 5})
    assert [number for number, _ in wrong] == [2]
    assert wrong[0][1].startswith("6 records are indexed up to byte 100, where the log has 5 of them now")


def test_many_containers_are_never_surely_few() -> None:
    few = index_limits.FEW_VALUES
    for containers, is_sure in ((few, True), (few + 1, False)):
        heads = [head(0, 1 << 20, 90, {3: Keys(few + 100, containers, 5000)})]
        assert joining.surely_bitmaps(3, heads, set(), 1 << 20) is is_sure


@pytest.mark.parametrize("broken", ["a", "abc", "abcdefgh", "offsets"])
@pytest.mark.parametrize("at", [-1, 200], ids=["the last byte", "the first segment"])
def test_damaged_indexes_take_one_more_scan_together(
    broken: str, at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = "abcdefgh"
    operations = [equal(field, 1) for field in fields]
    with Log(tmp_path / "x.log", codec="msgpack", block_size=BLOCK) as log:
        log.append_many([{field: number % (5 + ord(field) % 9) for field in fields} for number in range(400)])
        log.flush()
        build_by_ranges(log, tmp_path / "a", operations, 4 * BLOCK)
        log.append_many([dict.fromkeys(fields, number % 5) for number in range(100)])
        log.flush()
        names = [broken] if broken in ("offsets",) else [f"{field}.auto" for field in broken]
        for file in (tmp_path / "a").glob("*.index"):
            if file.name.startswith(tuple(names)):
                raw = bytearray(file.read_bytes())
                raw[at] ^= 1
                file.write_bytes(raw)
        builds = []
        build = range_cases._build
        monkeypatch.setattr(range_cases, "_build", lambda *args: (builds.append(args), build(*args))[1])
        with pytest.warns(IndexWarning) as told:
            build_by_ranges(log, tmp_path / "a", operations, 4 * BLOCK)
        assert {name for name in names for each in told if name in str(each.message)} == set(names)
        assert len(builds) <= 2
        assert files_of(tmp_path / "a") == merged_files(log, tmp_path / "b", operations)


@pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")
def test_an_index_of_offsets_is_found_damaged_when_a_damaged_block_is_noted_in_it(tmp_path: Path) -> None:
    with log_of(tmp_path / "x.log", 400) as log:
        build_locally(log, tmp_path / "a", ALL[:1])
    data = bytearray((tmp_path / "x.log").read_bytes())
    data[3 * BLOCK : 3 * BLOCK + 2] = b"\xff\xff"
    damage(tmp_path / "x.log", data)
    (file,) = (tmp_path / "a").glob("offsets*")
    file.write_bytes(file.read_bytes()[:-1] + b"\xff")
    with Log(tmp_path / "x.log", read_only=True) as log:
        with pytest.warns(IndexWarning, match="offsets"):
            build_by_ranges(log, tmp_path / "a", ALL[:2], 4 * BLOCK)
        assert files_of(tmp_path / "a")[file.name] == merged_files(log, tmp_path / "b", ALL[:2])[file.name]


def test_a_segment_that_was_damaged_on_its_way_is_no_index_of_ours(tmp_path: Path) -> None:
    def segments() -> Iterator[Any]:
        raise IndexDamaged("damaged", path="a segment sent")
        yield

    with log_of(tmp_path / "x.log", 100) as log, Driver(log, tmp_path / "a", [], CORE) as work:
        with pytest.raises(IndexDamaged, match="a segment sent"):
            work.write(segments())
        assert files_of(tmp_path / "a") == {}


def test_a_log_compacted_before_anything_is_written(tmp_path: Path) -> None:
    with log_of(tmp_path / "x.log", 400) as log:
        log.delete(next(iter(log.stream())).offset)
    with Log(tmp_path / "x.log", read_only=True) as log, Driver(log, tmp_path / "a", [], CORE) as work:
        with Log(tmp_path / "x.log") as writer:
            writer.compact()
        with pytest.raises(LogChanged, match="compacted, truncated or replaced while it was scanned"):
            work.write([])
        assert files_of(tmp_path / "a") == {}
