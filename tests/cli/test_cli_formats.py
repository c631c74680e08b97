"""Answers as CSV, TSV, JSON, Arrow and Parquet: what other programs read of them is what the records hold."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import make_log

import jitdb
from jitdb.cli import main
from jitdb.cli.output.separated import separated_lines
from jitdb.display.columns import fitting, left_out
from jitdb.engine.reading import field_batches

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

RECORDS: list[Any] = [
    {"n": 1, "name": "one", "ok": True, "x": 1.5, "user": {"name": "ada", "age": 30}, "tags": ["a", "b"], "big": 2**63},
    {"n": 2, "name": 'say "hi",\nplease', "ok": False, "x": 2, "tags": [], "mixed": 5,
     "items": [{"sku": "s1"}, {"sku": "s2"}]},
    {"n": 3, "name": None, "x": None, "user": {"name": "grüße"}, "mixed": "text", "big": 2**64 - 1, "raw": b"\x00\xff"},
    {"n": -4, "user": {"name": ""}, "mixed": {"a": [1]}, "tags": ["c", None], "big": 1},
]  # fmt: skip


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return make_log(tmp_path / "x.log", RECORDS, codec="msgpack")


def asked(capfdbinary: pytest.CaptureFixture[bytes], *arguments: str, told: str = "") -> bytes:
    assert main(arguments) == 0
    said = capfdbinary.readouterr()
    assert said.err.decode() == told
    return said.out


QUERY = ("query", "x.log", "--arrival")


def test_half_a_pair_of_surrogates_is_shown_as_what_it_is_not() -> None:
    """Bytes of a damaged record may decode to one; a byte that is no UTF-8, of a file's name, is written as it is."""
    assert (
        separated_lines([["a\ud800b\udfff"], ["\udc80"]], "csv", escaping=False)
        == b"a\xef\xbf\xbdb\xef\xbf\xbd\n\x80\n"
    )


@pytest.mark.parametrize(("form", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_separated(log: Path, capfdbinary: Any, form: str, delimiter: str) -> None:
    text = asked(capfdbinary, *QUERY, "--format", form).decode()
    rows = list(csv.DictReader(io.StringIO(text), delimiter=delimiter))
    assert list(rows[0]) == [
        "n", "name", "ok", "x", "user.name", "user.age", "tags", "big", "mixed", "items", "raw", "mixed.a"
    ]  # fmt: skip
    assert [row["n"] for row in rows] == ["1", "2", "3", "-4"]
    assert [row["name"] for row in rows] == ["one", 'say "hi",\nplease', "", ""]
    assert [row["ok"] for row in rows] == ["true", "false", "", ""]
    assert [row["x"] for row in rows] == ["1.5", "2", "", ""]
    assert [row["user.name"] for row in rows] == ["ada", "", "grüße", ""]
    assert [row["tags"] for row in rows] == ['["a","b"]', "[]", "", '["c",null]']
    assert [row["big"] for row in rows] == [str(2**63), "", str(2**64 - 1), "1"]
    assert [row["mixed"] for row in rows] == ["", "5", "text", '{"a":[1]}']
    assert [row["raw"] for row in rows] == ["", "", "AP8=", ""]


def test_json_is_one_array(log: Path, capfdbinary: Any) -> None:
    lines = asked(capfdbinary, *QUERY).splitlines()
    assert json.loads(asked(capfdbinary, *QUERY, "--format", "json")) == [json.loads(line) for line in lines]
    assert asked(capfdbinary, *QUERY, "n == 99", "--format", "json") == b"[]\n"
    assert json.loads(asked(capfdbinary, *QUERY, "--format", "json", "--fields", "n", "--limit", "2")) == [
        {"n": 1},
        {"n": 2},
    ]


def test_columns_of_arrow(log: Path, capfdbinary: Any) -> None:
    told = "jitdb: the column `mixed` is text, for it holds number, string and map\n"
    stream = asked(capfdbinary, *QUERY, "--format", "arrow", told=told)
    table = pa.ipc.open_stream(stream).read_all()
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {
        "n": "int64", "name": "string", "ok": "bool", "x": "double", "user.name": "string", "user.age": "int64",
        "tags": "list<item: string>", "big": "uint64", "mixed": "string", "items": "list<item: string>",
        "raw": "binary", "mixed.a": "list<item: int64>",
    }  # fmt: skip
    columns = table.to_pydict()
    assert columns["n"] == [1, 2, 3, -4]
    assert columns["x"] == [1.5, 2.0, None, None]
    assert columns["big"] == [2**63, None, 2**64 - 1, 1]
    assert columns["tags"] == [["a", "b"], [], None, ["c", None]]
    assert columns["mixed"] == [None, "5", "text", '{"a":[1]}']
    assert columns["raw"] == [None, None, b"\x00\xff", None]


def test_files_by_their_names(log: Path, capfdbinary: Any) -> None:
    fields = ("--fields", "n,user.name,items[].sku,tags[0]", "--sort", "-n", "--limit", "3")
    expected = [
        {"n": 3, "user.name": "grüße", "items[].sku": None, "tags[0]": None},
        {"n": 2, "user.name": None, "items[].sku": ["s1", "s2"], "tags[0]": None},
        {"n": 1, "user.name": "ada", "items[].sku": None, "tags[0]": "a"},
    ]
    for name in ("a.parquet", "a.arrow", "a.feather", "a.csv", "a.tsv.gz", "a.ndjson"):
        asked(capfdbinary, "query", "x.log", *fields, "--output", name)
    assert parquet.read_table("a.parquet").to_pylist() == expected
    for name in ("a.arrow", "a.feather"):
        assert pa.ipc.open_file(name).read_all().to_pylist() == expected
    assert Path("a.csv").read_text().splitlines()[:3] == [
        "n,user.name,items[].sku,tags[0]",
        "3,grüße,,",
        '2,,"[""s1"",""s2""]",',
    ]
    assert gzip.decompress(Path("a.tsv.gz").read_bytes()).startswith(b"n\tuser.name\t")
    assert json.loads(Path("a.ndjson").read_text().splitlines()[1]) == {"n": 2, "items[].sku": ["s1", "s2"]}


def test_export_in_formats(log: Path, capfdbinary: Any) -> None:
    asked(capfdbinary, "export", "x.log", "-o", "a.parquet", "--fields", "n")
    assert parquet.read_table("a.parquet").to_pylist() == [{"n": record["n"]} for record in RECORDS]
    assert asked(capfdbinary, "export", "x.log", "n > 1", "--fields", "n", "--format", "csv") == b"n\n2\n3\n"
    assert json.loads(asked(capfdbinary, "export", "x.log", "--format", "json", "--fields", "n"))[3] == {"n": -4}


def test_many_batches_and_sets(tmp_path: Path, capfdbinary: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value in the last batch decides on the type; logs of a set are merged."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(field_batches, "ROWS", 7)
    for day in (1, 2):
        Path(f"day={day}").mkdir()
        rows = [{"a": at * 2 + day, "b": [at]} for at in range(50)] + [{"a": 0.5, "late": day}]
        Path(f"day={day}/x.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked(capfdbinary, "query", "day=1/x.ndjson", "--sort", "a", "-o", "one.parquet", "-q")
    one = parquet.read_table("one.parquet")
    assert str(one.schema.field("a").type) == "double"
    assert one.to_pydict()["a"] == [0.5, *(2.0 * at + 1 for at in range(50))]
    asked(
        capfdbinary,
        "query",
        "day=*/x.ndjson",
        "--sort",
        "a",
        "-o",
        "all.parquet",
        "--fields",
        "a,b,day",
        "--limit",
        "60",
    )
    found = parquet.read_table("all.parquet").to_pylist()
    assert [row["a"] for row in found] == [0.5, 0.5, *map(float, range(1, 59))]
    assert [row["day"] for row in found[:4]] == [1, 2, 1, 2]
    assert [row["b"] for row in found[:4]] == [None, None, [0], [0]]
    asked(capfdbinary, "query", "day=1/x.ndjson", "--arrival", "-o", "told.csv")
    asked(capfdbinary, "export", "day=*/x.ndjson", "-o", "both.csv")
    for name, count in (("told.csv", 51), ("both.csv", 102)):
        lines = Path(name).read_text().splitlines()
        assert (lines[0], lines[-1], len(lines)) == ("a,b,late", f"0.5,,{count // 51}", count + 1)


def test_a_field_of_one_record_has_a_column(tmp_path: Path, capfdbinary: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows: list[Any] = [{"n": number} for number in range(9000)]
    rows[6543] = {"n": 6543, "err": {"created at": "x", "log.level": 1}}
    Path("x.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = ["n", "err.created at", "err.log.level"]
    for name in ("x.csv", "x.tsv", "x.parquet"):
        asked(capfdbinary, "export", "x.ndjson", "-o", name)
    assert Path("x.csv").read_text().splitlines()[0] == ",".join(names)
    assert Path("x.csv").read_text().splitlines()[6544] == "6543,x,1"
    assert Path("x.tsv").read_text().splitlines()[0] == "\t".join(names)
    table = parquet.read_table("x.parquet").slice(6543, 1).to_pylist()
    assert table == [{"n": 6543, "err.created at": "x", "err.log.level": 1}]
    some = asked(capfdbinary, "export", "x.ndjson", "n > 8000", "--format", "csv")
    assert some.startswith(b"n\n8001\n")


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_names_come_back_as_they_were(
    tmp_path: Path, capfdbinary: Any, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"time": "2026-10-01T00:00:00Z", "log.level": "x", "created at": "y", 'q"z': "1 a", "user.name": "ada"}
    Path("x.ndjson").write_text(json.dumps(row) + "\n")
    source = "x.ndjson"
    for number in range(2):
        asked(capfdbinary, "export", source, "-o", f"{number}.{form}")
        assert main(["import", f"{number}.{form}", f"{number}.log", "-q"]) == 0
        source = f"{number}.log"
        capfdbinary.readouterr()
    again = json.loads(asked(capfdbinary, "export", source))
    assert {**again, "time": row["time"]} == row


def test_two_keys_of_one_look_are_told_apart(tmp_path: Path, capfdbinary: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.ndjson").write_text('{"a.b": 1, "a": {"b": 2}, "c.d": 3}\n')
    csv = asked(capfdbinary, "export", "x.ndjson", "--format", "csv").decode()
    assert csv == '"[""a.b""]",a.b,c.d\n1,2,3\n'
    named = asked(capfdbinary, "query", "x.ndjson", "--arrival", "--fields", '["a.b"],["c.d"]')
    assert json.loads(named) == {"a.b": 1, "c.d": 3}


def test_what_does_not_go_together(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments, word in (
        (["--format", "csv", "-C", "1"], "do not go together"),
        (["--format", "csv", "--text"], "do not go together"),
        (["--format", "csv", "--offsets"], "leave --fields"),
        (["-o", "x.parquet.gz"], "compressed by itself"),
    ):
        assert main(["query", "x.log", *arguments]) == 2
        assert word in capsys.readouterr().err
    assert main(["export", "x.log", "--skip-bad", "--format", "csv"]) == 2
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["query", "x.log", "-o", "a.parquet"]) == 1
    assert "pip install 'jitdb[arrow]'" in capsys.readouterr().err
    assert not Path("a.parquet").exists()


def test_fields_that_nobody_has_are_told(log: Path, capfdbinary: Any) -> None:
    for form in ("csv", "parquet"):
        told = "jitdb: none of these records has the field `nam`; did you mean `name`?\n"
        asked(capfdbinary, *QUERY, "-o", "a", "--format", form, "--fields", "n,nam", told=told)


def test_batches_are_what_rows_are(log: Path) -> None:
    with jitdb.open(log) as db:
        names = ["n", "user.name", "items[].sku", "mixed"]
        batches = [
            (batch.rows(), batch.first(2).rows()) for batch in db.field_batches(sort_by="-n", select=names, limit=3)
        ]
        assert [len(rows) for rows, _ in batches] == [3, 1]
        assert [row for rows, _ in batches for row in rows] == db.all(sort_by="-n", select=names)
        assert batches[0][1] == batches[0][0][:2]


def test_a_table_says_what_it_leaves_out(log: Path, capfdbinary: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = asked(capfdbinary, *QUERY, "--format", "table").decode()
    assert "not shown: name, user.age, tags" in shown
    assert max(map(len, shown.splitlines())) <= 60
    names = ",".join(f"f{number}" for number in range(30))
    shown = asked(capfdbinary, *QUERY, "--format", "table", "--fields", f"n,{names}", "-q").decode()
    assert max(map(len, shown.splitlines())) <= 60
    sorted_by = asked(
        capfdbinary, "query", "x.log", "--sort", "-user.age", "--format", "table", "--limit", "1"
    ).decode()
    assert "age" in sorted_by.split("─")[0]


def test_columns_that_fit() -> None:
    floors = [10] * 6
    assert fitting(floors, 80) == 6
    assert fitting(floors, 23) == 2
    assert fitting(floors, 22) == fitting(floors, 1) == 1
    assert left_out(list("abc"), 10) == "not shown: 3 fields"


TIMED = [
    {"time": "2026-11-01T12:00:00Z", "ts": 1700000000000, "seen": "2026-11-01T12:00:00.123456789Z", "n": 1},
    {"time": "2026-11-01T12:00:01Z", "ts": 1700000001000, "seen": "2026-11-01T12:00:01.250Z", "n": 2.5},
    {"time": "2026-11-01T12:00:02Z", "seen": "2026-11-01T12:00:02Z", "text": "2026-11-01T12:00:02Z or later"},
]  # fmt: skip


@pytest.mark.parametrize("command", ["query", "export"])
@pytest.mark.parametrize("places", ["a.ndjson", "*.ndjson"])
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_the_same_table_as_in_python(ending: str, places: str, command: str, tmp_path: Path, run) -> None:
    """Times are timestamps, in the file as in to_arrow()."""
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(record) + "\n" for record in TIMED))
    name = f"x.{ending}"
    assert run(command, places, "-o", name).returncode == 0
    path = str(tmp_path / name)
    table = parquet.read_table(path) if ending == "parquet" else pa.ipc.open_file(path).read_all()
    with jitdb.open(tmp_path / "a.ndjson", "memory") as db:
        expected = db.query().to_arrow()
    assert table.equals(expected)
    assert str(table.schema.field("time").type) == "timestamp[ns, tz=UTC]"


@pytest.mark.parametrize("way", ["native", "python"])
def test_answers_are_the_same_from_a_table_of_them(
    way: str, tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exported as Parquet and imported again. Fractions come in thousands: 0, 3, 6 or 9 digits, as most write them."""
    monkeypatch.setattr("jitdb.common.kernels.WAY", way)
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(record) + "\n" for record in TIMED))
    run("query", "a.ndjson", "-o", "x.parquet")
    assert run("import", "x.parquet", "a.log").returncode == 0
    assert [json.loads(line) for line in run("export", "a.log").stdout.splitlines()] == TIMED
    for question in ('time == "2026-11-01T12:00:01Z"', 'seen > "2026-11-01T12:00:01Z"', "ts >= 1700000001000", "n > 1"):
        assert run("count", "a.log", question).stdout == run("count", "a.ndjson", question).stdout


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_text_is_no_formula_to_a_spreadsheet_where_that_is_asked_for(form: str, tmp_path: Path, run) -> None:
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\r=x", "\n=x", "＝1", "a=1", "'", "", "é"]  # noqa: RUF001
    make_log(tmp_path / "x.log", [{"=c": text, "n": -number, "raw": b"\xfb"} for number, text in enumerate(texts)])
    delimiter = {"csv": ",", "tsv": "\t"}[form]

    def read(*arguments: str) -> list[list[str]]:
        text = run(*arguments, "--format", form).stdout
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))

    escaped = [text if text in ("a=1", "'", "", "é") else f"'{text}" for text in texts]
    numbers = [str(-number) for number in range(len(texts))]
    for command in ("query", "export"):
        asked = (command, "x.log", *(["--arrival"] if command == "query" else []))
        expected = [["=c", "n", "raw"], *map(list, zip(texts, numbers, ["+w=="] * len(texts), strict=True))]
        assert read(*asked) == expected
        expected = [["'=c", "n", "raw"], *map(list, zip(escaped, numbers, ["'+w=="] * len(texts), strict=True))]
        assert read(*asked, "--escape-formulas") == expected
    assert {row[0] for row in read("values", "x.log", '["=c"]')[1:]} == set(texts)
    assert {row[0] for row in read("values", "x.log", '["=c"]', "--escape-formulas")[1:]} == set(escaped)
    assert {row[0] for row in read("values", "x.log", "n", "--escape-formulas")[1:]} == set(numbers)
