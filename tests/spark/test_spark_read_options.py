"""ReadOptions on their way from Python to Spark's text and back: what was meant arrives, and what is wrong is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_helpers import make_log
from reading_cases import table_rows

from jitdb.errors import QueryError
from jitdb.operators import equal, gte

pytest.importorskip("pyspark")

from jitdb.spark_ext import prebuild
from jitdb.spark_ext.options import ReadOptions, WriteOptions, as_options


def there_and_back(**options: Any) -> ReadOptions:
    return ReadOptions.of({**as_options(None, None, None, options), "path": "x.log"})


def test_none_is_not_given() -> None:
    names = ["index_folder", "codec", "block_size", "timestamp", "sequence", "mode", "core", "partition_bytes", "cores"]
    assert as_options(None, None, None, dict.fromkeys(names)) == {}
    assert there_and_back(**dict.fromkeys(names)) == there_and_back()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("when", (("when",),)),
        ("when, value.at", (("when",), ("value", "at"))),
        (["when", "value.at"], (("when",), ("value", "at"))),
        ([("a.b",)], (("a.b",),)),
        ([("a,b", "["), "c"], (("a,b", "["), ("c",))),
        ('["when", ["a.b", "c"]]', (("when",), ("a.b", "c"))),
        ([], ()),
    ],
)
def test_timestamp_fields(given: Any, expected: Any) -> None:
    assert there_and_back(timestamp=given).fields.timestamp == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("value.seq", ("value", "seq")),
        (("value", "seq"), ("value", "seq")),
        (["a.b", ""], ("a.b", "")),
        ('[["a.b"]]', ("a.b",)),
    ],
)
def test_the_sequence_field(given: Any, expected: Any) -> None:
    assert there_and_back(sequence=given).fields.sequence == (expected,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sequence": "a,b"}, "sequence is one path, not 2"),
        ({"sequence": '["value", "seq"]'}, "sequence is one path, not 2"),
        ({"timestamp": "[1"}, "timestamp is no JSON"),
        ({"timestamp": "[1]"}, "a field path is a string or a tuple of keys"),
        ({"timestamp": ""}, "needs at least one key"),
    ],
)
def test_fields_that_are_none(options: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        there_and_back(**options)


def test_other_options() -> None:
    found = there_and_back(core=("seq", "offset"), partition_bytes=1_000, mode="PERMISSIVE", index_folder=Path("here"))
    assert (found.core, found.partition_bytes, found.permissive) == (("seq", "offset"), 1000, True)
    assert found.index_folder == str(Path.cwd() / "here")  # Spark's processes stand elsewhere


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("65536", 1 << 16),
        ("64k", 1 << 16),
        ("64KB", 1 << 16),
        ("64m", 64 << 20),
        ("64MB", 64 << 20),
        (" 64 mb ", 64 << 20),
        ("1g", 1 << 30),
        ("2TB", 2 << 40),
        ("1b", 1),
    ],
)
def test_sizes_as_spark_takes_them(text: str, expected: int) -> None:
    names = {"partition_bytes": "partitionBytes", "max_bytes": "maxBytesPerBatch", "block_size": "blockSize"}
    for name, option in names.items():
        assert getattr(ReadOptions.of({"path": "x.log", option: text}), name) == expected
    assert WriteOptions.of({"path": "x.log", "blockSize": text}).block_size == expected


@pytest.mark.parametrize("text", ["", "0", "0m", "-1", "64x", "64mib", "1.5g", "m", "64 m b k"])
def test_sizes_that_are_none(text: str) -> None:
    for option in ("partitionBytes", "maxBytesPerBatch", "blockSize"):
        with pytest.raises(QueryError, match=f"the option {option.lower()} is a size, .* 64MB, .*, not '{text}'"):
            ReadOptions.of({"path": "x.log", option: text})
    with pytest.raises(QueryError, match="range_bytes is a size"):
        prebuild(None, "x.log", range_bytes=text)  # type: ignore[arg-type]  # nothing asks for the session before


def test_indexes_are_built_where_they_belong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_log(tmp_path / "x.log", 30)
    options: dict[str, Any] = {
        "index_folder": None,
        "timestamp": [("value", "timestamp")],
        "sequence": ("value", "sequence"),
    }
    rows = table_rows(tmp_path / "x.log", where=gte(0, "sequence"), indexes="build", **options)
    assert len(rows) == 30
    assert len(table_rows(tmp_path / "x.log", where=equal("key", "%000004"), indexes="build", **options)) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.log", "x.log.jitdb"]
