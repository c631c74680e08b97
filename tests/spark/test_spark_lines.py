"""JSON Lines as tables of Spark: the rows are those of the local engine, whoever answers, however they are cut."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from range_cases import build_by_ranges, cut, files_of, merged_files
from reading_cases import table_rows
from thoroughness import tries

import jitdb
from jitdb.errors import MalformedWarning, NotALog
from jitdb.log.lines import line_log
from jitdb.log.lines.form import LineForm
from jitdb.log.lines.line_log import LineLog
from jitdb.operators import absent, and_, equal, field, starts_with
from jitdb.operators.text.expression import parse_expression
from jitdb.spark_ext.building.prebuild import prebuild
from jitdb.spark_ext.data_source import JitdbDataSource, explain_log
from jitdb.spark_ext.errors import CopyDiffers, LogChanged, RecordMismatch, SparkError
from jitdb.spark_ext.options import as_options
from jitdb.spark_ext.reading import line_reader, partitions

pytestmark = pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")

WHERE = [
    None, equal("level", "error"), field("n") > 60, absent("level"), starts_with("text", "t1"),
    and_(equal("level", "info"), field("n") < 90), equal("text", "t7"), equal("n", -1),
]  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and pieces so small that lines cross them."""
    monkeypatch.setattr(line_log, "BLOCK", 512)
    monkeypatch.setattr(line_reader, "PIECE", 1024)
    monkeypatch.setattr(partitions, "PIECE", 1024)


def lines(rng: random.Random, count: int, prefix: bool) -> bytes:
    found = []
    for n in range(count):
        value = {"level": rng.choice(["error", "info"]), "n": n, "text": f"t{n}" + "x" * rng.choice([0, 0, 9, 700])}
        if rng.random() < 0.1:
            del value["level"]
        line = json.dumps(value)
        found.append(f"2026 pod {{x}} F {line}" if prefix and rng.random() < 0.8 else line)
        found += rng.choices(["", "  ", '{"broken', "\ufefftrace {}x", "[1]" if prefix else "no"], k=rng.randrange(3))
    return "\n".join(found).encode() + b"\n"


def local(path: Path, where: Any, **options: Any) -> list[Any]:
    """What the local engine says, in the order of the file: offset, record."""
    with jitdb.open(path, "memory", progress=False, **options) as db:
        offsets = db.all(where, as_offsets=True, sort_by="arrival")
        return list(zip(offsets, db.all(where, sort_by="arrival"), strict=True))


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("indexes", ["none", "build"])
@pytest.mark.parametrize("seed", range(tries(1, 20)))
@pytest.mark.parametrize("end", [b'{"unfinished', b'{"level": "error", "n": 120}'])
def test_rows_are_those_of_the_local_engine(tmp_path: Path, indexes: str, prefix: bool, seed: int, end: bytes) -> None:
    rng = random.Random(seed)
    path = tmp_path / "a.ndjson"
    mark = b"" if prefix else b"\xef\xbb\xbf"
    path.write_bytes(mark + lines(rng, 60, prefix) + end)
    by_offset = {}
    at = 0
    for number, line in enumerate(path.read_bytes().split(b"\n")):
        by_offset.update(dict.fromkeys(range(at, at + len(line) + 1), number))
        at += len(line) + 1
    for where in WHERE:
        expected = local(path, where, allow_prefix=prefix)
        for size in (600, 4096, 1 << 20):
            rows = table_rows(
                path, columns={"n": ("n", "long"), "level": ("level", "string")}, where=where, indexes=indexes,
                partition_bytes=size, allow_prefix=prefix,
            )  # fmt: skip
            assert [(row["offset"], row["n"], row["level"]) for row in rows] == [
                (offset, record.get("n"), record.get("level")) for offset, record in expected
            ], (where, size)
            assert [row["seq"] for row in rows] == [by_offset[row["offset"]] for row in rows]
    assert (path.parent / ".jitdb").exists() == (indexes == "build")


def test_with_indexes_few_bytes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps({"n": n, "text": "x" * 200}) + "\n" for n in range(500)))
    plan = explain_log(path, where=field("n") == 250, columns=["n"], indexes="build")
    assert (plan.answered, plan.matches, plan.blocks_read) == ("indexes", 1, 1)
    assert plan.bytes_read < 1024


def test_many_files_are_one_table(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = random.Random(3)
    expected = []
    for date in ("2026-11-21", "2026-11-22"):
        for name in "abc":
            path = tmp_path / f"date={date}" / f"{name}.ndjson"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(lines(rng, 20, False))
            expected += [record["n"] for _, record in local(path, equal("level", "error"))] if name != "c" else []
    for place in (f"{tmp_path}/*/[ab].ndjson",):
        rows = table_rows(place, columns=["n"], where=equal("level", "error"))  # type: ignore[arg-type]
        assert [row["n"] for row in rows] == expected
    assert len(table_rows(tmp_path, columns=["n"])) == 120
    elsewhere = tmp_path_factory.mktemp("indexes")
    days = table_rows(
        tmp_path, columns=["n"], where='n >= 0 and date == "2026-11-22"', indexes="build", index_folder=elsewhere
    )
    assert not list(tmp_path.rglob("*.jitdb"))
    assert len(list(elsewhere.iterdir())) == 3
    assert len(days) == 60
    plan = explain_log(tmp_path, where='date == "2026-11-22" and n > 17', columns=["n"], indexes="build")
    assert (plan.matches, plan.tasks, plan.answered) == (6, 1, "indexes")
    with pytest.raises(NotALog, match="no file is there"):
        table_rows(tmp_path / "*.none", columns=["n"])


def test_what_paths_say_are_columns(tmp_path: Path) -> None:
    """As fields of a set of logs: of the path and its folders, whatever the records say; and told by where."""
    expected = []
    for hour in ("00", "7"):
        for name in "ab":
            path = tmp_path / f"date=2026-11-21/hour={hour}/{name}.ndjson"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps({"n": n, "date": 5}) + "\n" for n in range(3)))
            expected += [(n, str(path), "2026-11-21", hour) for n in range(3)]
    columns = ["n", "_path", "date", "hour"]
    rows = table_rows(tmp_path, columns=columns)
    assert [tuple(row[name] for name in columns) for row in rows] == expected
    path = expected[6][1]
    for where in (f'_path == "{path}"', starts_with("_path", path), and_(equal("hour", 7), starts_with("_path", path))):
        assert [row["_path"] for row in table_rows(tmp_path, columns=columns, where=where)] == [path] * 3, where
    with jitdb.open_many(tmp_path) as logs:
        by_set = logs.query(field("hour") == 7).select(*columns).all()
    hours = {**dict.fromkeys(columns, "string"), "hour": "int", "n": "long", "date": "timestamp"}
    found = table_rows(tmp_path, columns={name: (name, hours[name]) for name in columns}, where="hour == 7")
    assert [(row["n"], row["_path"], row["hour"]) for row in found] == [
        (each["n"], each["_path"], each["hour"]) for each in by_set
    ]
    assert {row["date"].isoformat() for row in found} == {"2026-11-21T00:00:00+00:00"}
    assert list(table_rows(tmp_path, core="")[0]) == ["n", "date", "hour"]  # found by looking
    with pytest.raises(RecordMismatch, match="offset 0 does not fit the column 'hour'"):
        table_rows(tmp_path, columns={"hour": ("hour", "boolean")})
    assert [row["hour"] for row in table_rows(tmp_path, columns={"hour": ("hour", "int")}, mode="PERMISSIVE")][5:7] == [
        None,
        7,
    ]


def test_logs_that_cannot_match_are_not_opened(tmp_path: Path) -> None:
    for date in ("2026-11-21", "2026-11-22"):
        (tmp_path / f"date={date}").mkdir()
        (tmp_path / f"date={date}" / "a.ndjson").write_text('{"n": 1}\n')
    (tmp_path / "date=2026-11-21" / "a.ndjson").write_bytes(bytes(99))  # it would be an error
    kept = tmp_path / "date=2026-11-22" / "a.ndjson"
    for where in ('date == "2026-11-22"', f'_path == "{kept}"', 'date > "2026-11-21T12:00Z" and n < 2'):
        assert [row["_path"] for row in table_rows(tmp_path, columns=["_path", "n"], where=where)] == [str(kept)]
    with pytest.raises(NotALog):
        table_rows(tmp_path, columns=["n"], where="n == 1")


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text('{"n": 1}\nbad\n{"n": 2}\nworse\n')
    with pytest.warns(
        MalformedWarning, match="2 lines cannot be read as JSON, left out of all answers: the first at byte 9"
    ):
        assert [row["n"] for row in table_rows(path, columns=["n"])] == [1, 2]
    path.write_text('x {"n": 1}\n')
    for named in ({}, {"allow_prefix": True}):
        assert [row["n"] for row in table_rows(path, columns=["n"], **named)] == [1]


def reader_of(path: Path, **options: Any) -> Any:
    source = JitdbDataSource(options={**as_options(None, ["n"], None, options), "path": str(path)})
    return source.reader(source.schema())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("edited", (LogChanged, CopyDiffers)),
        ("truncated", (CopyDiffers, LogChanged)),
        ("replaced", CopyDiffers),
        ("gone", CopyDiffers),
        ("grown", None),
    ],
)
def test_a_file_that_changes_behind_the_plan(tmp_path: Path, change: str, error: Any) -> None:
    path = tmp_path / "a.ndjson"
    text = "".join(json.dumps({"n": n}) + "\n" for n in range(300))
    path.write_text(text)
    os.utime(path, (1, 1))
    reader = reader_of(path, partition_bytes=1024)
    first, *others = reader.partitions()
    found = [row["n"] for batch in reader.read(first) for row in batch.to_pylist()]
    if change == "edited":
        with path.open("r+") as file:
            file.seek(1500)
            file.write("9")
    elif change == "truncated":
        os.truncate(path, 1600)
    elif change == "replaced":
        path.unlink()
        path.write_text(text.replace("n", "m"))
    elif change == "gone":
        path.unlink()
    else:
        with path.open("a") as file:
            file.write('{"n": 300}\n')
    if error is None:
        found += [row["n"] for other in others for batch in reader.read(other) for row in batch.to_pylist()]
        assert found == list(range(300))
        return
    with pytest.raises(error):
        [list(reader.read(other)) for other in others]


def test_an_edit_while_a_task_reads(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps({"n": n}) + "\n" for n in range(300)))
    os.utime(path, (1, 1))
    reader = reader_of(path)
    (partition,) = reader.partitions()
    batches = iter(reader.read(partition))
    next(batches)
    with path.open("r+") as file:
        file.write('{"m"')
    with pytest.raises((LogChanged, jitdb.errors.LogSuperseded)):
        list(batches)


@pytest.mark.parametrize(("kind", "remedy"), [("parquet", r"spark\.read\.parquet"), ("arrow", "jitdb import x.arrow")])
def test_a_parquet_or_arrow_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, remedy: str
) -> None:
    """Tables and prebuilt indexes of Spark are of logs: of a Parquet file only the driver would have the rows."""
    pytest.importorskip("pyarrow")
    from column_cases import flights, write

    monkeypatch.chdir(tmp_path)
    path = write(flights(100), tmp_path / f"x.{kind}")
    said = rf"x\.{kind}: it is an? {kind.title()} file, which Spark does not ask by jitdb; .*{remedy}"
    for ask in (
        lambda: explain_log(path),
        lambda: explain_log(path, ["id"], where=parse_expression("status == 500")),
        lambda: table_rows(path, columns={"id": ("id", "long")}, indexes="none"),
        lambda: prebuild(lambda: pytest.fail("no session is needed"), path, fields="status"),
    ):
        with pytest.raises(SparkError, match=said):
            ask()
    assert [each.name for each in tmp_path.iterdir()] == [path.name], "nothing was read or kept"


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("size", [512, 5000])
def test_ranges_build_what_one_scan_builds(tmp_path: Path, size: int, prefix: bool) -> None:
    rng = random.Random(size)
    path = tmp_path / "a.ndjson"
    questions = [equal("level", "x"), equal("text", "x"), field("n") > 0]
    form = LineForm(prefix)

    def compare(records: int) -> None:
        with LineLog(path, form=form) as log:
            partials = build_by_ranges(log, tmp_path / "there", questions, lambda work: work.ranges(cut(work, size)))
            assert sum(partial.head.records for partial in partials) == records
            assert files_of(tmp_path / "there") == merged_files(log, tmp_path / "here", questions)

    path.write_bytes(lines(rng, 90, prefix) + b'{"n": -2}\n')
    before = path.read_bytes().count(b"\n")
    compare(before)
    with path.open("ab") as file:
        file.write(lines(rng, 60, prefix) + b'{"n": -3}\n{"un')
    compare(path.read_bytes().count(b"\n") - before)


def test_in_a_cluster(spark: Any, tmp_path: Path) -> None:
    """The same through Spark itself; and prebuilt indexes are those that the local engine builds."""
    from jitdb.spark_ext import prebuild, register

    register(spark)
    rng = random.Random(8)
    path = tmp_path / "a.ndjson"
    path.write_bytes(lines(rng, 300, True))
    told = prebuild(spark, path, fields=["level", "text"], indexes=["n"], range_bytes=4096, allow_prefix=True)
    assert told.tasks > 3
    table = spark.read.format("jitdb").option("columns", "n").option("allowPrefix", "true")
    for where in ('level == "error"', "n > 200"):
        expected = [record["n"] for _, record in local(path, parse_expression(where), allow_prefix=True)]
        found = table.option("where", where).load(str(path))
        assert sorted(row["n"] for row in found.collect()) == sorted(expected)
    plan = explain_log(path, where='level == "error"', columns=["n"], allow_prefix=True)
    assert plan.answered == "indexes"
    copy = tmp_path / "b.ndjson"
    copy.write_bytes(path.read_bytes())
    with jitdb.open(copy, allow_prefix=True, progress=False) as db:
        db.prepare(equal("level", "x"), equal("text", "x"), field("n") > 0)
    with path.open("ab") as file:
        file.write(lines(rng, 100, True))
    again = prebuild(spark, path, fields=["level", "text"], indexes=["n"], range_bytes=4096, allow_prefix=True)
    assert 0 < again.scanned < path.stat().st_size / 2
    with jitdb.open(path, allow_prefix=True, progress=False) as db:
        assert db.explain(equal("level", "error"))["scan_bytes"] == 0
        assert db.verify().ok
