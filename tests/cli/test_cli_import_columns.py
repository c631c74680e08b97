"""Rows of Parquet and Arrow by kernels are the records that Python's objects make."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import records_of, write
from hypothesis import example, given, settings
from hypothesis import strategies as st
from json_cases import Into

from jitdb.cli import main
from jitdb.cli.input.importing import batches
from jitdb.cli.input.input_batches import RowOptions
from jitdb.cli.input.sources import Source
from jitdb.common.values import value_key
from jitdb.log.codecs import get_codec
from jitdb.log.codecs.json.codec import JsonText
from jitdb.log.codecs.table_rows import values_of_rows

pa = pytest.importorskip("pyarrow")

JSON = get_codec("json")

BIG = st.sampled_from([0, 1, -1, 127, 128, -32, -33, 2**31 - 1, 2**31, -(2**31), 2**53, 2**53 + 1, 2**63 - 1, -(2**63)])
DOUBLES = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1.0, -5.0, 2.0**31, 1e300, 5e-324]))
KINDS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "i64": (pa.int64(), BIG),
    "i8": (pa.int8(), st.integers(-128, 127)),
    "u64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "u8": (pa.uint8(), st.integers(0, 255)),
    "f64": (pa.float64(), DOUBLES),
    "f32": (pa.float32(), st.floats(width=32)),
    "f16": (pa.float16(), st.sampled_from([0.0, 1.5])),
    "bool": (pa.bool_(), st.booleans()),
    "text": (pa.string(), st.one_of(st.text(max_size=5), st.text(min_size=30, max_size=40))),
    "large": (pa.large_string(), st.text(max_size=5)),
    "view": (pa.string_view(), st.text(max_size=20)),
    "bytes": (pa.binary(), st.binary(max_size=5)),
    "null": (pa.null(), st.none()),
    "s": (pa.timestamp("s", "Europe/Berlin"), st.integers(-62_135_596_800, 253_402_300_799)),
    "ms": (pa.timestamp("ms"), st.integers(-(10**15), 10**15)),
    "us": (pa.timestamp("us", "UTC"), st.integers(-(10**16), 10**16)),
    "ns": (pa.timestamp("ns"), st.integers(-(2**62), 2**62)),
    "day": (pa.date32(), st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))),
    "price": (pa.decimal128(9, 2), st.sampled_from([Decimal("1.50"), Decimal("-7.00")])),
    "list": (pa.list_(pa.int64()), st.lists(st.integers(0, 300), max_size=3)),
    "in": (pa.struct([("x", pa.int64())]), st.fixed_dictionaries({"x": st.none() | st.integers(0, 9)})),
    "kind": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "b"])),
}  # fmt: skip


def check(table: Any, path: Path, first: int, size: int) -> int:
    """The kernel's records say what the values say; gives how many are by the kernel."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=size)
    found = []
    count = 0
    for codec in ("json", "msgpack"):
        into: Any = Into(codec)
        with Source(str(path)) as source:
            some = list(batches(source, "arrow", RowOptions(), first, print, into))
        found.append([
            (number, value_key(JSON.decode(value) if isinstance(value, JsonText) else value))
            for batch in some for number, value in batch.singly()
        ])  # fmt: skip
        count += sum(isinstance(value, JsonText) for batch in some for _, value in batch.singly())
    assert found[0] == found[1]
    return count


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_columns(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5, unique=True))
    count = data.draw(st.integers(1, 9))
    columns = {}
    for kind in kinds:
        type_, values = KINDS[kind]
        column = data.draw(st.lists(st.none() | values, min_size=count, max_size=count))
        columns[kind] = pa.array(column, type_)
    skipped = data.draw(st.integers(0, count - 1))
    table = pa.table(columns).slice(skipped)
    path = tmp_path_factory.mktemp("table") / "x.arrow"
    check(table, path, data.draw(st.sampled_from([1, 1, 3])), data.draw(st.sampled_from([2, 100])))


INSTANTS = st.integers(-62_135_596_800, 253_402_300_799)


@settings(max_examples=50, deadline=None)
@given(seconds=st.lists(INSTANTS, min_size=1, max_size=50))
@example(seconds=[-62_135_596_800, 253_402_300_799, 951_782_400, 951_868_799, 951_868_800, 4_107_542_400, -1, 0])
def test_instants(tmp_path_factory: pytest.TempPathFactory, seconds: list[int]) -> None:
    path = tmp_path_factory.mktemp("instants") / "x.arrow"
    table = pa.table({"at": pa.array(seconds, pa.timestamp("s", "UTC"))})
    assert check(table, path, 1, 100) == len(seconds)
    told = [datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=each) for each in seconds]
    assert [row["at"] for row in values_of_rows(table.to_batches()[0])] == [f"{each.isoformat()}Z" for each in told]


def test_not_a_number_stays_one(tmp_path: Path) -> None:
    values = [1.5, float("nan"), float("inf"), float("-inf"), None, 2.0]
    assert check(pa.table({"a": [1, 2, 3, 4, 5, 6], "v": values}), tmp_path / "x.arrow", 1, 100) == 6


def test_what_is_left_to_values(tmp_path: Path) -> None:
    """Bytes, which JSON lacks, and a null alone, which is a blank line of CSV."""
    assert check(pa.table({"v": [b"x", b"y"]}), tmp_path / "x.arrow", 1, 100) == 0
    assert check(pa.table({"v": ["x", None, ""]}), tmp_path / "y.arrow", 1, 100) == 0


@pytest.mark.parametrize("codec", ["json", "msgpack", "bipf"])
def test_a_log_of_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], codec: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"n": number, "text": None if number % 3 else "é" * (number % 50)} for number in range(20_000)]
    rows[12_345]["text"] = "z" * 70_000
    stream = io.BytesIO()
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    write(tmp_path, stream.getvalue(), "x.arrows")
    assert main(["import", "x.arrows", "out.log", "--codec", codec]) == 0
    assert main(["import", "--append", "--from-line", "19999", "x.arrows", "out.log", "-q"]) == 0
    kept = [{name: value for name, value in row.items() if value is not None} for row in rows]
    assert records_of(Path("out.log")) == kept + kept[19_998:]
    assert "20,000 records were imported" in capsys.readouterr().out
