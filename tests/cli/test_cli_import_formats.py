"""Imports of CSV, TSV, JSON arrays, Parquet and Arrow: records, how formats are told, and what is said of bad files."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import records_of, write
from hypothesis import given, settings
from hypothesis import strategies as st
from json_cases import Into

from jitdb.cli import main
from jitdb.cli.input import csv_input, sources
from jitdb.cli.input.csv_input import delimiter_of
from jitdb.cli.input.importing import batches
from jitdb.cli.input.input_batches import RowOptions
from jitdb.cli.input.sources import Source

PEOPLE = 'name,age,ok,zip,note\nada,36,true,01234,"two\nlines"\n"grace, h",,FALSE,9,\n\nx,1.5,true,1,z\n'
FOUND = [
    {"name": "ada", "age": 36, "ok": True, "zip": "01234", "note": "two\nlines"},
    {"name": "grace, h", "ok": False, "zip": "9"},
    {"name": "x", "age": 1.5, "ok": True, "zip": "1", "note": "z"},
]
MESSAGES = [{"n": 1, "items": [{"sku": "x"}]}, {"n": 2.5, "text": "é\n"}, {"n": None}]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def imported(name: str, *options: str) -> list[Any]:
    assert main(["import", name, "out.log", "--quiet", *options]) == 0
    return records_of(Path("out.log"))


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("people.csv", PEOPLE, ()),
        ("people.CSV", "\ufeff" + PEOPLE.replace("\n", "\r\n").replace("two\r\n", "two\n"), ()),
        ("people", PEOPLE, ()),
        ("people.txt", PEOPLE, ("--format", "csv")),
        ("people.csv.gz", PEOPLE, ()),
        ("people.csv", PEOPLE.replace(",", ";").replace("grace;", "grace,"), ()),
        ("people.csv", PEOPLE.replace(",", "!").replace("grace!", "grace,"), ("--delimiter", "!")),
        ("people.tsv", PEOPLE.replace(",", "\t").replace("grace\t", "grace,"), ()),
        ("people.csv", PEOPLE.split("\n", 1)[1], ("--columns", "name,age,ok,zip,note")),
    ],
)
def test_rows_of_csv(folder: Path, name: str, text: str, options: tuple[str, ...]) -> None:
    data = text.encode()
    write(folder, gzip.compress(data) if name.endswith(".gz") else data, name)
    assert imported(name, *options) == FOUND


def test_all_text(folder: Path) -> None:
    write(folder, b"a,b\n1,\ntrue,x\n", "x.csv")
    assert imported("x.csv", "--all-text") == [{"a": "1", "b": ""}, {"a": "true", "b": "x"}]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["0", "-5", "1.50", "1e3", "-0"], [0, -5, 1.5, 1000.0, 0]),
        (["9007199254740993", "18446744073709551615"], [2**53 + 1, 2**64 - 1]),
        (["18446744073709551616", "1"], ["18446744073709551616", "1"]),
        (["007", "1"], ["007", "1"]),
        (["1_000", "2"], ["1_000", "2"]),
        (["1e999", "1"], ["1e999", "1"]),
        (["NaN", "1"], ["NaN", "1"]),
        ([" 1", "2"], [" 1", "2"]),
        (["\u0661", "2"], ["\u0661", "2"]),
        (["True", "FALSE"], [True, False]),
        (["true", "1"], ["true", "1"]),
        (['"a""b"', "c"], ['a"b', "c"]),
        (['"1\n2"', "3"], ["1\n2", "3"]),
        (["2015-12-01", "2016-01-01"], ["2015-12-01", "2016-01-01"]),
    ],
)
def test_what_a_column_holds(folder: Path, values: list[str], found: list[Any]) -> None:
    write(folder, "".join(f"{value},z\n" for value in ["k", *values]).encode(), "x.csv")
    held = [record["k"] for record in imported("x.csv")]
    assert held == found
    assert list(map(type, held)) == list(map(type, found))


def test_values_that_do_not_fit_stay_text_and_are_told_of(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_input, "SAMPLE", 2)
    write(folder, b"a,my age\n1,1\n2,2\n3,n/a\n,4\nx,-\n", "x.csv")
    assert main(["import", "x.csv", "out.log"]) == 0
    assert records_of(folder / "out.log")[2:] == [{"a": 3, "my age": "n/a"}, {"my age": 4}, {"a": "x", "my age": "-"}]
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("jitdb: x.csv: 1 value of a no numbers, the first in line 6: kept as text")
    assert said[1].startswith('jitdb: x.csv: 2 values of ["my age"] no numbers, the first in line 4')


fields = st.text('ab,;"\n\r 1.é', max_size=4)


def plainly(text: str) -> list[dict[str, str]]:
    """What the standard library finds, all text."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.tuples(fields, fields), max_size=8), read=st.sampled_from([200, 1 << 20]))
def test_any_rows(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], read: int) -> None:
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([("x", "y"), *rows * 8])
    path = tmp_path_factory.mktemp("rows") / "x.csv"
    path.write_bytes(stream.getvalue().encode())
    into: Any = Into("msgpack")
    with pytest.MonkeyPatch.context() as patch, Source(str(path)) as source:
        patch.setattr(sources, "READ", read)
        found = list(batches(source, "csv", RowOptions("csv", ",", all_text=True), 1, print, into))
    assert [record for batch in found for record in batch.values] == plainly(stream.getvalue())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(
    records=st.lists(json_values, max_size=6),
    indent=st.sampled_from([None, 1]),
    is_array=st.booleans(),
    read=st.sampled_from([1, 5, 1 << 20]),
)
def test_any_json(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any], indent: int | None, is_array: bool, read: int
) -> None:
    if not is_array and records[:1] and isinstance(records[0], list):
        return  # it would be the array
    text = json.dumps(records, indent=indent) if is_array else "\n".join(json.dumps(each, indent=1) for each in records)
    path = tmp_path_factory.mktemp("array") / "x.json"
    path.write_text(f" {text}\n")
    into: Any = Into("msgpack")
    with pytest.MonkeyPatch.context() as patch, Source(str(path)) as source:
        patch.setattr(sources, "READ", read)
        found = list(batches(source, "json", RowOptions(), 1, print, into))
    assert [record for batch in found for record in batch.values] == records
    assert found[-1].last == len(records)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.json", json.dumps(MESSAGES)),
        ("x.json", json.dumps(MESSAGES, indent=2) + "\n"),
        ("x", json.dumps(MESSAGES, indent=2)),
        ("x.json", "\n".join(json.dumps(each, indent=2) for each in MESSAGES)),
        ("x.json", "\n".join(map(json.dumps, MESSAGES))),
        ("x", "\n".join(map(json.dumps, MESSAGES))),
        ("x.json.gz", json.dumps(MESSAGES)),
    ],
)
def test_json_of_all_kinds(folder: Path, name: str, text: str) -> None:
    write(folder, gzip.compress(text.encode()) if name.endswith(".gz") else text.encode(), name)
    assert imported(name) == MESSAGES


def test_arrays_a_line_are_records(folder: Path) -> None:
    write(folder, b'[{"a":1}]\n[{"a":2}]\n', "x.json")
    assert imported("x.json") == [[{"a": 1}], [{"a": 2}]]


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.arrows", "piped"])
def test_tables(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table(
        {
            "n": [1, None, 2**63 - 1],
            "at": pa.array([0, 1_500_000_001, None], pa.timestamp("ns", "UTC")),
            "local": pa.array([0, 1000, 2000], pa.timestamp("ms")),
            "day": [datetime.date(2020, 1, 1)] * 3,
            "price": [Decimal("1.50"), Decimal("2.00"), None],
            "in": [{"x": datetime.datetime(2020, 1, 1), "y": None}] * 3,
            "map": pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
            "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
            "bytes": [b"x", None, b""],
        }
    )
    if name in ("x.parquet", "piped"):
        parquet.write_table(table, name)
    else:
        make = pa.ipc.new_file if name == "x.arrow" else pa.ipc.new_stream
        with pa.OSFile(name, "wb") as file, make(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    if name == "piped":
        with open(name, "rb") as file:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(file.read()))))
        found = imported("-")
    else:
        found = imported(name)
    shared = {"day": "2020-01-01", "in": {"x": "2020-01-01T00:00:00"}, "map": {"k": 1}}
    assert found == [
        {"n": 1, "at": "1970-01-01T00:00:00Z", "bytes": b"x"}
        | {"local": "1970-01-01T00:00:00", "price": 1.5, "kind": "a"}
        | shared,
        {"at": "1970-01-01T00:00:01.500000001Z", "local": "1970-01-01T00:00:01", "price": 2, "kind": "b"} | shared,
        {"n": 2**63 - 1, "local": "1970-01-01T00:00:02", "kind": "a", "bytes": b""} | shared,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("x.csv", b"a,b\n1,2\n3\n4,5\n", "x.csv, line 3: 1 field, where 2 are named"),
        ("x.csv", b'a,b\n1,2\n3,"x"y\n4,5\n', "x.csv, line 3: not CSV: ',' expected after '\"'"),
        ("x.csv", b"a,b\n1,2\n3,caf\xe9\n4,5\n", "x.csv, line 3: not UTF-8: byte 0xe9 in column 6"),
    ],
)
def test_bad_rows_are_named_skipped_or_mended(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, words: str
) -> None:
    write(folder, data, name)
    assert main(["import", name, "out.log"]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert "1 record was imported, x.csv up to line 2" in said
    assert f"jitdb import --append --from-line 3 {name} out.log" in said
    assert main(["import", "--append", "--from-line", "3", "--skip-bad", name, "out.log"]) == 1
    assert f"skipped {words}" in capsys.readouterr().err
    assert records_of(folder / "out.log") == [{"a": 1, "b": 2}, {"a": 4, "b": 5}]


@pytest.mark.parametrize(
    ("name", "data", "words", "kept"),
    [
        ("x.csv", b"a,a\n1,2\n", "two columns are called 'a'", 0),
        ("x.csv", b'a,b\n1,2\n3,"x\n', "line 3: not CSV: unexpected end of data", 1),
        ("x.json", b'[\n{"a": 1},\n{"a": 2}\n{"a": 3}\n]', "line 4, behind record 2: not JSON: a comma or", 2),
        ("x.json", b'[\n{"a": 1},\n{"a": nul}]', "line 3, behind record 1: not JSON: Expecting value", 1),
        ("x.json", b'[\n{"a": 1},\n{"a": "', "line 3, behind record 1: not JSON: Unterminated string", 1),
        ("x.json", b'[\n{"a": 1}', "the array has no end: is the file cut off?", 1),
        ("x.json", b'[\n{"a": 1}]\n[2]', "something stands behind the array", 1),
        ("x.json", b'[\n{"a": 1},\n"\xff"]', "byte 0xff is no UTF-8", 0),
        ("x.parquet", b"PAR1 nonsense", "this cannot be read as parquet", 0),
        ("x.arrow", b"ARROW1 nonsense", "this cannot be read as arrow", 0),
    ],
)
def test_what_cannot_be_read_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, words: str, kept: int
) -> None:
    if name in ("x.parquet", "x.arrow"):
        pytest.importorskip("pyarrow")
    write(folder, data, name)
    assert main(["import", name, "out.log"]) == 1
    assert words in capsys.readouterr().err
    assert len(records_of(folder / "out.log") if kept else []) == kept


def test_records_that_the_log_cannot_hold_are_counted_as_such(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, b'[{"n": 1}, {"n": 99999999999999999999}, {"n": 3}]', "x.json")
    assert main(["import", "x.json", "out.log"]) == 1
    assert "x.json, record 2: n: an integer of 67 bits" in (said := capsys.readouterr().err)
    assert "x.json up to record 1; they stay" in said
    assert main(["import", "--append", "--from-line", "2", "--skip-bad", "x.json", "out.log"]) == 1
    assert "1 record was skipped" in capsys.readouterr().err
    assert records_of(folder / "out.log") == [{"n": 1}, {"n": 3}]


def test_a_guess_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, b"time,level\n1,info\n", "x")
    assert main(["import", "x", "out.log"]) == 0
    assert capsys.readouterr().err == "jitdb: x is taken for CSV; --format says otherwise\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--delimiter", "ab"),
        ("--columns", "a,a"),
        ("--columns", "a,b", "--format", "json"),
        ("--follow", "--format", "csv"),
    ],
)
def test_options_that_do_not_go_together(folder: Path, arguments: tuple[str, ...]) -> None:
    assert main(["import", "-", "out.log", *arguments]) == 2


def test_delimiters_are_found() -> None:
    assert [delimiter_of(line) for line in ("a,b", "a;b,c;d", "a\tb", '"a,b,c"|d', "a")] == [",", ";", "\t", "|", ","]


@pytest.mark.parametrize("name", ["x.ndjson", "x.csv", "x.json"])
def test_large_records_are_no_obstacle(folder: Path, name: str) -> None:
    rows = [{"n": number, "text": "x" * size} for number, size in enumerate([1, 70_000, 5, 300_000, 7])]
    text = {
        "x.ndjson": "".join(json.dumps(row) + "\n" for row in rows),
        "x.csv": "n,text\n" + "".join(f"{row['n']},{row['text']}\n" for row in rows),
        "x.json": json.dumps(rows),
    }[name]
    write(folder, text.encode(), name)
    assert imported(name) == rows
