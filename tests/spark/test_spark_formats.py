"""Formats of lines as tables of Spark: records of several lines are those of the local engine, however they are cut."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from range_cases import build_by_ranges, cut, files_of, merged_files
from reading_cases import table_rows

import jitdb
from jitdb.errors import MalformedWarning
from jitdb.log.lines import line_log
from jitdb.log.lines.form import LineForm
from jitdb.log.lines.line_log import LineLog
from jitdb.operators import equal, field
from jitdb.operators.text.expression import parse_expression
from jitdb.spark_ext.data_source import explain_log
from jitdb.spark_ext.errors import SparkError
from jitdb.spark_ext.reading import line_reader, partitions

pytestmark = pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")

NAMES = ["cri", "docker", "logfmt", "combined", "csv"]
TRACE = ["Traceback (most recent call last):", '  File "a.py", line 1', "ValueError: no", "", "Caused by: x", "A: b"]
WHERE = [None, 'level == "error"', "n > 60", "present(trace)", '"ValueError" in trace', "n == 77", 'stream == "stderr"']


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and pieces so small that records cross them."""
    monkeypatch.setattr(line_log, "BLOCK", 512)
    monkeypatch.setattr(line_reader, "PIECE", 1024)
    monkeypatch.setattr(partitions, "PIECE", 1024)


def text(rng: random.Random, name: str, count: int) -> bytes:
    """Lines of a format, with stack traces, parts of two streams among each other, and lines that do not fit."""
    found = b"n,level,text\n" if name == "csv" else b""
    for n in range(count):
        level = rng.choice(["error", "info"])
        if name == "logfmt":
            texts = [f'level={level} n={n} msg="{"x" * rng.choice([0, 9, 700])}"']
        elif name == "csv":
            texts = [f'{n},{level},"{"x" * rng.choice([0, 9, 700])}"']
        elif name == "combined":
            texts = [f'::1 - - [20/Nov/2026:14:03:11 +0100] "GET /{n} HTTP/1.1" {200 + n} 5 "-" "{level}"']
        else:
            texts = [json.dumps({"level": level, "n": n, "text": "x" * rng.choice([0, 9, 700])})]
        if name != "csv" and rng.random() < 0.4:
            texts += rng.choices(TRACE, k=rng.choice([1, 2, 3, 40]))
        for line in texts:
            found += b"".join(lines_of(rng, name, line))
    return found


def lines_of(rng: random.Random, name: str, line: str) -> list[bytes]:
    if name not in ("cri", "docker"):
        return [line.encode() + b"\n"]
    stream, at = rng.choice(["stdout"] * 4 + ["stderr"]), rng.randrange(len(line) + 1)
    parts = [line[:at], line[at:]] if rng.random() < 0.3 else [line]
    time = "2026-11-20T00:00:07.553591789Z"
    if name == "cri":
        return [
            f"{time} {stream} {'F' if number == len(parts) - 1 else 'P'} {part}\n".encode()
            for number, part in enumerate(parts)
        ]
    return [
        json.dumps({"log": part + "\n" * (number == len(parts) - 1), "stream": stream, "time": time}).encode() + b"\n"
        for number, part in enumerate(parts)
    ]


def local(path: Path, name: str, where: Any) -> list[Any]:
    """What the local engine says, in the order of the file: offset, record."""
    question = None if where is None else parse_expression(where)
    with jitdb.open(path, "memory", format=name, progress=False) as db:
        offsets = db.all(question, as_offsets=True, sort_by="arrival")
        return list(zip(offsets, db.all(question, sort_by="arrival"), strict=True))


def still(path: Path, data: bytes) -> None:
    """A file that nobody writes any more."""
    path.write_bytes(data)
    os.utime(path, (1.79e9, 1.79e9))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("indexes", ["none", "build"])
def test_rows_are_those_of_the_local_engine(tmp_path: Path, name: str, indexes: str) -> None:
    path = tmp_path / "a.log"
    still(path, text(random.Random(name), name, 40))
    columns = {"n": ("n", "long"), "level": ("level", "string"), "trace": ("trace", "string")}
    with LineLog(path, folder="memory", form=LineForm(format=name)) as log:
        number_of = {record.offset: record.seq for record in log.stream()}
    for where in [*WHERE, "status > 299"]:
        expected = local(path, name, where)
        for size in (600, 4096, 1 << 20):
            rows = table_rows(
                path, columns=columns, where=where, indexes=indexes, partition_bytes=size, log_format=name
            )
            assert [(row["offset"], row["n"], row["level"], row["trace"]) for row in rows] == [
                (offset, record.get("n"), record.get("level"), record.get("trace")) for offset, record in expected
            ], (where, size)
            assert [row["seq"] for row in rows] == [number_of[row["offset"]] for row in rows]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [512, 5000])
def test_ranges_build_what_one_scan_builds(tmp_path: Path, name: str, size: int) -> None:
    rng = random.Random(size)
    path = tmp_path / "a.log"
    questions = [equal("level", "x"), equal("trace", "x"), field("n") > 0, field("status") > 0]

    def compare(data: bytes) -> None:
        still(path, data)
        with LineLog(path, form=LineForm(format=name)) as log:
            build_by_ranges(log, tmp_path / "there", questions, lambda work: work.ranges(cut(work, size)))
            assert files_of(tmp_path / "there") == merged_files(log, tmp_path / "here", questions)

    last = text(random.Random(3), name, 1)  # a line that fits
    first = text(rng, name, 90) + last
    compare(first)
    compare(first + text(rng, name, 60) + last)


def test_in_a_cluster(spark: Any, tmp_path: Path) -> None:
    """The same through Spark itself; and prebuilt indexes answer as the local engine does."""
    from jitdb.spark_ext import prebuild, register

    register(spark)
    for name in NAMES:
        path = tmp_path / f"{name}.log"
        still(path, text(random.Random(8), name, 200))
        told = prebuild(
            spark, path, fields=["level", "trace"], indexes=["n", "status"], range_bytes=4096, log_format=name
        )
        assert told.tasks > 3
        for where in ('level == "error"', "n > 150 or status > 350", '"ValueError" in trace'):
            expected = [offset for offset, _ in local(path, name, where)]
            options = {"columns": "n", "logFormat": name, "where": where}
            table = spark.read.format("jitdb").options(**options).load(str(path))
            assert sorted(row["offset"] for row in table.select("offset").collect()) == expected, (name, where)
            with jitdb.open(path, format=name, progress=False) as db:
                assert db.all(parse_expression(where), as_offsets=True, sort_by="arrival") == expected
        assert explain_log(path, where='level == "error"', columns=["n"], log_format=name).answered == "indexes"
    rows = spark.read.format("jitdb").load(str(tmp_path / "cri.log"))
    assert {"level", "n", "text", "trace", "stream", "time"} <= {*rows.columns}


def test_batches_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    still(path, b'{"Records": [{"n": 1}, {"n": 2}]}\n' * 20)
    with pytest.raises(SparkError, match=r"its lines are batches .* jitdb export .* > records.ndjson"):
        explain_log(path)
    with pytest.raises(SparkError, match="its lines are batches"):
        table_rows(path, columns={"n": ("n", "long")}, indexes="none")


def test_lines_that_are_none_of_their_format(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    line = '192.0.2.7 - ada [20/Nov/2026:14:02:11 +0000] "GET / HTTP/1.1" 200 512 "-" "Mozilla/5.0"\n'
    path.write_text(line * 3 + "half a li\n" + line)
    with pytest.warns(MalformedWarning, match="a line cannot be read as nginx and Apache, combined"):
        rows = table_rows(path, columns=["status"])
    assert len(rows) == 4
