"""Compressed JSON Lines as tables of Spark: the rows are those of their text, whatever the file says of its end."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from range_cases import build_by_ranges, cut, files_of, merged_files
from reading_cases import table_rows

import jitdb
from jitdb.errors import LogCorrupt
from jitdb.log.lines import line_log
from jitdb.log.lines.line_log import LineLog
from jitdb.operators import equal, field
from jitdb.spark_ext.building import driver
from jitdb.spark_ext.data_source import JitdbDataSource, explain_log
from jitdb.spark_ext.errors import CopyDiffers, LogChanged
from jitdb.spark_ext.options import as_options
from jitdb.spark_ext.reading import line_reader, partitions

COLUMNS = {"n": ("n", "long"), "level": ("level", "string")}
WHERE: list[Any] = [None, equal("level", "error"), field("n") > 170, equal("n", -1)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and pieces so small that lines cross them."""
    monkeypatch.setattr(line_log, "BLOCK", 512)
    monkeypatch.setattr(line_reader, "PIECE", 1024)
    monkeypatch.setattr(partitions, "PIECE", 1024)


def records(seed: int, count: int = 200) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {"n": n, "level": rng.choice(["error", "info"]), "text": rng.randbytes(rng.choice([9, 400])).hex()}
        for n in range(count)
    ]


def text_of(found: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in found)


def _members(text: bytes) -> bytes:
    """Of gzip: what the last one says of its length is not the text's."""
    return gzip.compress(text[:3000]) + gzip.compress(text[3000:])


def _frames(text: bytes) -> bytes:
    return b"".join(zstandard.compress(text[at : at + 5000]) for at in range(0, len(text), 5000))


def _without_size(text: bytes) -> bytes:
    made = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return made.compress(text) + made.flush()


KINDS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "members": _members,
    "zstd": zstandard.compress,
    "frames": _frames,
    "without size": _without_size,
}
NAMES = {"gzip": "a.ndjson.gz", "members": "a.ndjson.gz"}


def written(folder: Path, kind: str, text: bytes) -> Path:
    path = folder / NAMES.get(kind, "a.ndjson.zst")
    path.write_bytes(KINDS[kind](text))
    os.utime(path, (1, 1))
    return path


def matches(where: Any, record: dict[str, Any]) -> bool:
    number = WHERE.index(where)
    return [True, record["level"] == "error", record["n"] > 170, False][number]


@pytest.mark.parametrize("indexes", ["none", "build"])
@pytest.mark.parametrize("rest", [b"", b'{"n": 7'])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_text(tmp_path: Path, kind: str, rest: bytes, indexes: str) -> None:
    found = records(1)
    text = text_of(found)
    path = written(tmp_path, kind, text + rest)
    offsets, at = [], 0
    for line in text.splitlines(keepends=True):
        offsets.append(at)
        at += len(line)
    for where in WHERE:
        rows = table_rows(path, columns=COLUMNS, where=where, indexes=indexes, partition_bytes=600)
        assert [(row["seq"], row["offset"], row["n"], row["level"]) for row in rows] == [
            (n, offsets[n], n, each["level"]) for n, each in enumerate(found) if matches(where, each)
        ], where
        plan = explain_log(path, where=where, columns=COLUMNS, indexes=indexes)
        assert plan.tasks == bool(rows) if plan.answered == "indexes" else plan.tasks == 1
    assert Path(path).with_name(".jitdb").exists() == (indexes == "build")


def test_a_file_that_claims_less_than_it_has(tmp_path: Path) -> None:
    """Its end says the length of the last member, which is not the text's."""
    text = text_of([{"n": n} for n in range(900)])
    half = len(text) // 2 - 3  # within a line
    path = tmp_path / "a.ndjson.gz"
    path.write_bytes(gzip.compress(text[:half]) + gzip.compress(text[half:]))
    with LineLog(path, folder="memory") as log:
        assert log.durable_end == len(text)
    for where in (None, field("n") >= 0):
        assert [row["n"] for row in table_rows(path, columns={"n": ("n", "int")}, where=where)] == list(range(900))


def test_one_folder_of_all_kinds(tmp_path: Path) -> None:
    for number, kind in enumerate(KINDS):
        (tmp_path / f"kind={number}").mkdir()
        written(tmp_path / f"kind={number}", kind, text_of(records(number)))
    (tmp_path / "kind=9").mkdir()
    (tmp_path / "kind=9" / "a.ndjson").write_bytes(text_of(records(9)))
    expected = [
        (number, each["n"], each["text"])
        for number in (*range(len(KINDS)), 9)
        for each in records(number)
        if each["level"] == "error"
    ]
    for indexes in ("none", "build", "auto"):
        rows = table_rows(tmp_path, columns=["kind", "n", "text"], where=equal("level", "error"), indexes=indexes)  # type: ignore[arg-type]
        assert [(row["kind"], row["n"], row["text"]) for row in rows] == expected


@pytest.mark.parametrize("limit", [1 << 30, 9000])
@pytest.mark.parametrize("kind", KINDS)
def test_ranges_build_what_one_scan_builds(
    tmp_path: Path, kind: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_DECOMPRESSED", limit)
    questions = [equal("level", "x"), equal("text", "x"), field("n") > 0]
    path = written(tmp_path, kind, text_of(records(2)))

    def compare(made: int) -> None:
        with LineLog(path) as log:
            partials = build_by_ranges(
                log,
                tmp_path / "there",
                questions,
                lambda work: work.ranges(cut(work, 600)),  # type: ignore[arg-type]
            )
            assert (len(partials) == 1) == (limit > 9000)
            assert sum(partial.head.records for partial in partials) == made
            assert files_of(tmp_path / "there") == merged_files(log, tmp_path / "here", questions)  # type: ignore[arg-type]

    compare(200)
    with path.open("ab") as file:
        file.write(KINDS[kind](text_of(records(3, 50))))
    compare(50)


def reader_of(path: Path) -> Any:
    source = JitdbDataSource(options={**as_options(None, COLUMNS, None, {}), "path": str(path)})
    return source.reader(source.schema())


def rows_of(reader: Any) -> list[int]:
    return [row["n"] for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


@pytest.mark.parametrize("kind", ["gzip", "frames"])
@pytest.mark.parametrize(
    ("change", "error"),
    [("edited", (LogChanged, CopyDiffers)), ("truncated", (LogChanged, CopyDiffers)), ("replaced", CopyDiffers),
     ("gone", CopyDiffers), ("grown", None)],
)  # fmt: skip
def test_a_file_that_changes_behind_the_plan(tmp_path: Path, kind: str, change: str, error: Any) -> None:
    path = written(tmp_path, kind, text_of(records(4)))
    reader = reader_of(path)
    (part,) = reader.partitions()
    if change == "edited":
        data = path.read_bytes()
        path.write_bytes(data[:2000] + bytes([data[2000] ^ 1]) + data[2001:])
    elif change == "truncated":
        os.truncate(path, 900)
    elif change in ("replaced", "gone"):
        path.unlink()
        if change == "replaced":
            written(tmp_path, kind, text_of(records(5)))
    else:
        with path.open("ab") as file:
            file.write(KINDS[kind](text_of(records(5))))
    if error is None:
        assert [row["n"] for batch in reader.read(part) for row in batch.to_pylist()] == list(range(200))
        return
    with pytest.raises(error):
        list(reader.read(part))


@pytest.mark.parametrize("kind", ["gzip", "frames"])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind, text_of(records(6)))
    data = bytearray(path.read_bytes())
    place = len(data) // 2 if kind == "gzip" else data.index(zstandard.FRAME_HEADER, 4)
    data[place : place + 40] = bytes(40)
    path.write_bytes(data)
    with pytest.raises(LogCorrupt, match=path.name):
        rows_of(reader_of(path))


@pytest.mark.parametrize("kind", ["gzip", "frames"])
def test_a_file_without_its_end_gives_its_whole_lines(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind, text_of(records(7)))
    os.truncate(path, path.stat().st_size - 40)
    with (
        pytest.warns(jitdb.errors.LogWarning, match="end of the compressed file is missing"),
        jitdb.open(path, "memory", progress=False) as db,
    ):
        expected = [each["n"] for each in db.all(None, sort_by="arrival")]
    with pytest.warns(jitdb.errors.LogWarning, match="end of the compressed file is missing"):
        assert rows_of(reader_of(path)) == expected
    assert expected


def test_in_a_cluster(spark: Any, tmp_path: Path) -> None:
    """The same as Spark's own reader, and from indexes that the cluster built."""
    from jitdb.spark_ext import prebuild, register

    register(spark)
    written(tmp_path, "gzip", text_of(records(8)))
    (tmp_path / "b.ndjson").write_bytes(text_of(records(9)))
    for path in sorted(tmp_path.iterdir()):
        assert prebuild(spark, path, fields=["level"]).tasks == 1
    mine = spark.read.format("jitdb").option("columns", "n,level,text").option("core", "")
    theirs = spark.read.json([str(path) for path in tmp_path.iterdir() if path.is_file()])
    for where in ("level == 'error'", "n > 170"):
        expected = theirs.where(where.replace("==", "=")).select("n", "level", "text").collect()
        assert sorted(mine.option("where", where).load(str(tmp_path)).collect()) == sorted(expected)
    assert explain_log(tmp_path / "a.ndjson.gz", where="level == 'error'", columns=["n"]).answered == "indexes"
