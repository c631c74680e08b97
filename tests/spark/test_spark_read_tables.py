"""Tables of random logs, without Spark: every row is what decoding every record and asking the oracle gives."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import Oracle, field
from reading_cases import BLOCK, Misfit, assert_rows, cell, expected_rows, plain, same_cell, stored, table_rows
from thoroughness import tries

from jitdb import JITDB, Log
from jitdb.common.values import UNDEFINED
from jitdb.errors import DecodeError, LogWarning
from jitdb.log.codecs import get_codec
from jitdb.operators import absent, and_, equal, everything, gte, includes, lt, not_, offsets, or_, seqs, starts_with
from jitdb.operators.nodes.operation import Operation

pytest.importorskip("pyspark")

from jitdb.spark_ext.errors import RecordMismatch

KEYS = ["a", "b", "type", ""]
TEXTS = ["", "post", "posted", "%abcd", "%abce", "é" * 9]
NUMBERS = [0, 1, -1, 1.5, -0.0, 2**31, 2**40, 2**53, 1e300]
WIDE = [2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), float("inf"), float("-inf"), float("nan")]
SCALARS = [None, True, False, *TEXTS, b"", b"post", *NUMBERS]
WIDE_OF = {"msgpack": WIDE, "bipf": [], "json": WIDE[:-3]}
SCALARS_OF = {
    "msgpack": [*SCALARS, *WIDE],
    "bipf": [*SCALARS, UNDEFINED],
    "json": [value for value in SCALARS if not isinstance(value, bytes)] + WIDE_OF["json"],
}
PATHS = [
    ("a",), ("b",), ("type",), ("a", "b"), ("list",), ("value", "sequence"), ("none",),
    ("list", 0), ("list", 1, "a"), (0,),
]  # fmt: skip
MANY = [("list", None), ("list", None, "a"), ("a", None, None), (None, "b")]
TYPES = ["string", "long", "int", "double", "boolean", "binary", "array<string>", "array<long>", "array<array<double>>"]


def values(codec: str) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.sampled_from(SCALARS_OF[codec]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
        max_leaves=5,
    )


def records_of(codec: str) -> st.SearchStrategy[Any]:
    value = values(codec)
    numbers = st.sampled_from(NUMBERS + WIDE_OF[codec]) | st.integers(0, 20)
    known = {
        "a": value, "b": value, "type": st.sampled_from(TEXTS), "list": st.lists(value, max_size=3),
        "timestamp": numbers, "value": st.fixed_dictionaries({}, optional={"timestamp": numbers, "sequence": numbers}),
    }  # fmt: skip
    return st.fixed_dictionaries({}, optional=known) | value


def questions() -> st.SearchStrategy[Operation]:
    path = st.sampled_from(PATHS + MANY)
    leaf = st.one_of(
        st.builds(equal, path, st.sampled_from(SCALARS)),
        st.builds(equal, path, st.sampled_from(SCALARS), prefix=st.just(32)),
        st.builds(includes, path, st.sampled_from(SCALARS)),
        st.builds(absent, path),
        st.builds(starts_with, path, st.sampled_from(["p", "post", "%abc"])),
        st.builds(gte, st.integers(-1, 20), st.sampled_from(["timestamp", "sequence"])),
        st.builds(lt, st.integers(-1, 20), st.just(["value", "sequence"])),
        st.builds(gte, st.integers(-1, 20), st.sampled_from(MANY)),
        st.builds(seqs, st.lists(st.integers(0, 80), max_size=9)),
        st.builds(offsets, st.lists(st.integers(0, 3000), max_size=30)),
        st.just(everything()),
    )
    return st.recursive(
        leaf,
        lambda inner: st.builds(and_, inner, inner) | st.builds(or_, inner, inner) | st.builds(not_, inner),
        max_leaves=4,
    )


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Iterator[None]:
    """A part is read in many pieces."""
    from jitdb.spark_ext.reading import partitions

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "PIECE", 2 * BLOCK)
        yield


class Made:
    """A log of some records, some deleted."""

    def __init__(self, path: Path, codec: str, records: list[Any], deleted: set[int]) -> None:
        self.path = path
        with Log(path, codec=codec, block_size=BLOCK) as log:
            self.offsets = list(map(int, log.append_many(records)))
            log.flush()
            for seq in deleted:
                log.delete(self.offsets[seq])
        self.records = stored(codec, records)
        self.oracle = Oracle(self.records, self.offsets, deleted)


@settings(max_examples=tries(20, 500), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_random_tables(data: st.DataObject) -> None:
    draw = data.draw
    codec = draw(st.sampled_from(["msgpack", "bipf", "json"]))
    storable = records_of(codec).filter(lambda record: any(get_codec(codec).encode(record)))
    records = draw(st.lists(storable, max_size=20)) * draw(st.integers(1, 4))
    deleted = draw(st.sets(st.integers(0, len(records) - 1), max_size=5)) if records else set()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error", LogWarning)
        made = Made(Path(folder) / "x.log", codec, records, deleted)
        columns = {f"c{number}": (draw(st.sampled_from(PATHS)), draw(st.sampled_from(TYPES))) for number in range(4)}
        where = draw(st.none() | questions())
        if where is not None and draw(st.booleans(), "indexes there"):
            with Log(made.path, read_only=True) as log:
                JITDB(log).prepare(where)
        seqs = made.oracle.matches(everything() if where is None else where)
        options = {
            "columns": {**{name: (list(path), kind) for name, (path, kind) in columns.items()}, "all": "*"},
            "where": where,
            "partition_bytes": draw(st.sampled_from([1, 3 * BLOCK, 1 << 20])),
            "indexes": draw(st.sampled_from(["auto", "build", "none"])),
            "timestamp": "timestamp,value.timestamp",  # as the oracle has it; which one random records mean, none tells
        }
        permissive = table_rows(made.path, mode="PERMISSIVE", **options)
        assert [row["seq"] for row in permissive] == seqs
        assert [row["timestamp"] for row in permissive] == [time_of(made.oracle, seq) for seq in seqs]
        assert [json.loads(row["all"]) for row in permissive] == [plain(made.records[seq]) for seq in seqs]
        try:
            expected = list(expected_rows(made.records, seqs, made.offsets, columns))
        except Misfit:
            with pytest.raises(RecordMismatch) as caught:
                table_rows(made.path, **options)
            wrong = made.records[made.offsets.index(caught.value.offset)]
            path, kind = columns[caught.value.column]
            with pytest.raises(Misfit):
                cell(kind, field(wrong, path))
        else:
            assert_rows(permissive, expected)
            assert_rows(table_rows(made.path, **options), expected)


def time_of(oracle: Oracle, seq: int) -> float | None:
    time = oracle.smallest_number(oracle.records[seq])
    return None if time is None else float(time)


@pytest.mark.parametrize("codec", ["msgpack", "bipf", "json"])
@pytest.mark.parametrize("kind", TYPES)
def test_every_value_in_every_column(tmp_path: Path, codec: str, kind: str) -> None:
    scalars = SCALARS_OF[codec]
    found = [*scalars, scalars[:9], [[1, 2.5], ["x"]], {"a": 1}, [], {}]
    made = Made(tmp_path / "x.log", codec, [{"a": value} for value in found], set())
    rows = table_rows(made.path, columns={"c": (["a"], kind)}, mode="PERMISSIVE")
    assert len(rows) == len(found)
    for seq, row in enumerate(rows):
        value = field(made.records[seq], ["a"])
        try:
            expected = cell(kind, value)
        except Misfit:
            expected = None if kind in ("long", "int", "double", "boolean", "binary") else row["c"]
            assert kind.startswith("array") or row["c"] is None
        assert same_cell(expected, row["c"]), (value, row)


@pytest.mark.parametrize("indexes", ["none", "build"])
def test_positions_in_every_part(tmp_path: Path, indexes: str) -> None:
    made = Made(tmp_path / "x.log", "msgpack", [{"a": number, "text": "x" * 60} for number in range(100)], {50})
    wanted = list(range(3, 100, 7))
    for where in (seqs(wanted), offsets([made.offsets[seq] for seq in wanted]), not_(seqs(wanted))):
        rows = table_rows(made.path, columns=["a"], where=where, partition_bytes=BLOCK, indexes=indexes)
        assert [row["seq"] for row in rows] == [row["a"] for row in rows] == made.oracle.matches(where)


@pytest.mark.parametrize("codec", ["msgpack", "bipf"])
@pytest.mark.parametrize("indexes", ["none", "build"])
def test_blocks_beyond_64_kib(tmp_path: Path, codec: str, indexes: str) -> None:
    """Their records have lengths of four bytes, and may be longer than two could say."""
    path = tmp_path / "x.log"
    texts = ["x" * (200_000 if number % 40 == 0 else 5) for number in range(200)]
    with Log(path, codec=codec, block_size=1 << 19) as log:
        places = log.append_many([{"n": number, "text": text} for number, text in enumerate(texts)])
        log.flush()
        log.delete(places[50])
    for where, wanted in [
        (None, range(200)),
        (gte(100, ["n"]), range(100, 200)),
        (not_(seqs([3])), [number for number in range(200) if number != 3]),
        (offsets([places[80], places[81]]), [80, 81]),
    ]:
        for partition_bytes in (1, 1 << 30):
            rows = table_rows(
                path, columns=["n", "text"], where=where, indexes=indexes, partition_bytes=partition_bytes
            )
            assert [(row["seq"], row["offset"], row["n"], row["text"]) for row in rows] == [
                (number, places[number], number, texts[number]) for number in wanted if number != 50
            ]


def test_records_that_another_program_deleted(tmp_path: Path) -> None:
    made = Made(tmp_path / "x.log", "bipf", [{"a": number} for number in range(100)], set())
    data = bytearray(made.path.read_bytes())
    start = made.offsets[30] + 2
    data[start : start + len(get_codec("bipf").encode({"a": 30}))] = bytes(len(get_codec("bipf").encode({"a": 30})))
    made.path.write_bytes(data)
    for options in ({}, {"where": gte(0, ["a"])}, {"where": gte(0, ["a"]), "indexes": "build"}):
        assert [row["seq"] for row in table_rows(made.path, columns=["a"], **options)] == [*range(30), *range(31, 100)]


def test_records_that_cannot_be_decoded(tmp_path: Path) -> None:
    made = Made(tmp_path / "x.log", "msgpack", [{"a": number} for number in range(100)], set())
    data = bytearray(made.path.read_bytes())
    data[made.offsets[70] + 2] = 0xC1  # which msgpack never uses
    made.path.write_bytes(data)
    (made.path.with_name("x.log.jitdb") / "checksums").unlink()  # by which the block would be damaged
    columns = {"a": (["a"], "long"), "all": "*"}
    with pytest.raises(DecodeError, match=f"the record at offset {made.offsets[70]:,} cannot be decoded"):
        table_rows(made.path, columns=columns)
    rows = table_rows(made.path, columns=columns, mode="PERMISSIVE")
    assert [(row["a"], row["all"]) for row in rows[69:72]] == [(69, '{"a":69}'), (None, None), (71, '{"a":71}')]
