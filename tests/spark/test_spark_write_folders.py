"""Tables of Spark as folders of logs: which rows come where, back as they were, and nothing half."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import jitdb
from jitdb import Log
from jitdb.errors import JitdbError, LogLocked, QueryError

pytest.importorskip("pyspark")

from jitdb.logset.member import fields_of
from jitdb.spark_ext import read_log, register
from jitdb.spark_ext.errors import SparkError
from jitdb.spark_ext.writing import job, partitioned
from jitdb.spark_ext.writing.encoding import Target
from jitdb.spark_ext.writing.job import begin, commit
from jitdb.spark_ext.writing.partitioned import COMMIT, LOG, folder_name, write_partitioned

ODD = ["api", "a/b", "50%", "x=y", "..", ".", "", None, "ü", "a.jitdb", "tab\t", "q'\"", "[1]", "{x}", "^", " a ", "~"]


def batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        rows, schema=pa.schema([("service", pa.string()), ("day", pa.int32()), ("n", pa.int64())])
    )


def rows(count: int, services: list[Any] = ODD, begin: int = 0) -> list[dict[str, Any]]:
    rng = random.Random(count)
    return [{"service": rng.choice(services), "day": rng.choice([1, 2, None]), "n": begin + n} for n in range(count)]


def written(target: Target, *parts: list[dict[str, Any]]) -> list[Any]:
    found = []
    for number, part in enumerate(parts):
        batches = [batch(part[low : low + 100]) for low in range(0, len(part), 100)]
        found += write_partitioned(target, number, "0", batches, False)
    return found


def put(root: Path, *parts: list[dict[str, Any]], overwrite: bool = False, codec: str | None = None) -> int:
    target = begin(str(root), os.urandom(4).hex(), codec, None, overwrite, ("service", "day"))
    return commit(target, written(target, *parts))


def back(root: Path) -> list[tuple[Any, Any, int]]:
    """All rows, as the local engine sees them."""
    found = []
    for path in root.glob(f"*/*/{LOG}"):
        fields = fields_of(str(path))
        with Log(path, read_only=True) as log:
            assert log.verify().ok
            found += [(fields["service"], fields["day"], record.value["n"]) for record in log.stream()]
    return found


def expected(*parts: list[dict[str, Any]]) -> Counter[Any]:
    """What is without a value, or empty text, is nothing in the name of a folder."""
    return Counter((row["service"] or None, row["day"], row["n"]) for part in parts for row in part)


def alone(root: Path) -> bool:
    return [each.name for each in root.parent.iterdir()] == [root.name]


def test_each_row_is_in_the_folder_of_its_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitioned, "_HELD", 2000)
    root, one, two, three = tmp_path / "t" / "out", rows(500), rows(300, begin=500), rows(90, begin=800)
    root.parent.mkdir()
    assert put(root, one, two) == 800
    assert Counter(back(root)) == expected(one, two)
    by_place: dict[Any, list[int]] = {}
    for service, day, n in back(root):
        by_place.setdefault((service, day), []).append(n)
    nulls = {key for key in by_place if key[0] is None}  # of two values, null and ""
    assert all(found == sorted(found) for key, found in by_place.items() if key not in nulls)
    assert put(root, three) == 90
    assert Counter(back(root)) == expected(one, two, three)
    assert put(root, one, overwrite=True) == 500
    assert Counter(back(root)) == expected(one)
    assert alone(root)
    with jitdb.open_many(root, "memory", progress=False) as logs:
        assert logs.query('service == "a/b" and day == 2').count() == expected(one).total() - sum(
            1 for row in one if (row["service"], row["day"]) != ("a/b", 2)
        )


@pytest.mark.parametrize("value", ODD)
def test_names_of_folders_lead_back_to_values(value: str | None) -> None:
    name = folder_name("a=b", value)
    assert "/" not in name
    assert fields_of(f"x/{name}/{LOG}")["a=b"] == (value or None)


def test_an_append_that_fails_leaves_nothing(tmp_path: Path) -> None:
    root, one = tmp_path / "t" / "out", rows(200, ["a", "b"])
    root.parent.mkdir()
    put(root, one)
    places = sorted(root.glob(f"*/*/{LOG}"))
    with Log(places[3]) as log:
        assert log.since >= 0
        with pytest.raises(LogLocked):
            put(root, rows(200, ["a", "b"], 1000))
    assert Counter(back(root)) == expected(one)
    assert alone(root)


def test_a_part_that_is_not_what_its_task_wrote(tmp_path: Path) -> None:
    root, one = tmp_path / "t" / "out", rows(200, ["a", "b"])
    root.parent.mkdir()
    put(root, one)
    target = begin(str(root), "0" * 8, None, None, False, ("service", "day"))
    parts = written(target, rows(100, ["a"], 1000))
    with open(os.path.join(target.folder, parts[-1].name), "r+b") as file:
        file.seek(parts[-1].start + 9)
        file.write(b"!")
    with pytest.raises(SparkError, match="CRC"):
        commit(target, parts)
    assert Counter(back(root)) == expected(one)
    assert alone(root)


@pytest.mark.parametrize("after", range(5))
def test_a_driver_that_dies_while_it_appends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """The next job does the rest, and each record is there once."""
    root, one, two = tmp_path / "t" / "out", rows(200, ["a", "b"]), rows(100, ["a", "b", "c"], 1000)
    root.parent.mkdir()
    put(root, one)
    target = begin(str(root), "0" * 8, None, None, False, ("service", "day"))
    parts = written(target, two)
    fill, calls = job._fill, []

    class Died(BaseException):
        pass

    def dying(target: Any, parts: Any) -> None:
        calls.append(1)
        if len(calls) > after:
            raise Died
        fill(target, parts)

    with monkeypatch.context() as patch:
        patch.setattr(job, "_fill", dying)
        patch.setattr(job, "clean_up", lambda target: None)
        patch.setattr(partitioned, "_take_back", lambda *of: None)
        patch.setattr(partitioned.os, "unlink", lambda path: None)  # the journal stays, as where nothing runs any more
        with pytest.raises(Died):
            commit(target, parts)
    assert os.path.exists(os.path.join(target.folder, COMMIT))
    kept = Path(target.folder, "kept-by")
    who = json.loads(kept.read_text().splitlines()[0])
    kept.write_text(json.dumps({**who, "pid": 2**22 + 1}))
    put(root, [])
    assert Counter(back(root)) == expected(one, two)
    assert alone(root)


def test_what_is_refused(tmp_path: Path) -> None:
    columns = batch([]).schema
    for by in (["nope"], ["service", "service"], ["service", "day", "n"]):
        with pytest.raises(QueryError, match="partitionBy"):
            partitioned.check_columns(columns, by)
    with pytest.raises(QueryError, match="cast it to string"):
        partitioned.check_columns(pa.schema([("x", pa.float64()), ("y", pa.int64())]), ["x"])
    with pytest.raises(SparkError, match="too long"):
        folder_name("x", "y" * 300)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "precious.txt").write_text("x")
    with pytest.raises(SparkError, match=r"precious\.txt is none of what writing by folders makes"):
        put(tmp_path / "t", rows(9, ["a"]), overwrite=True)
    assert (tmp_path / "t" / "precious.txt").exists()
    put(tmp_path / "u", rows(9, ["a"]))
    with pytest.raises(SparkError, match="expected bipf records, got msgpack"):
        put(tmp_path / "u", rows(9, ["a"]), codec="bipf")


def test_in_spark(spark: Any, tmp_path: Path) -> None:
    register(spark)
    frame = spark.range(0, 300, 1, 3).selectExpr(
        "id AS n", "concat('s/', id % 3) AS service", "date_add(date'2026-11-20', cast(id % 2 AS int)) AS day"
    )
    place = str(tmp_path / "out")
    writer = frame.write.format("jitdb").option("partitionBy", "service,day")
    writer.mode("append").save(place)
    table = read_log(spark, place, {"n": ("n", "long"), "service": ("service", "string"), "day": ("day", "string")})
    key = ["n", "service", "day"]
    assert {tuple(row[name] for name in key) for row in table.select(*key).collect()} == {
        (row.n, row.service, row.day.isoformat()) for row in frame.collect()
    }
    assert read_log(spark, place, ["n"], 'service == "s/1" and day == "2026-11-21"').count() == 50
    with pytest.raises(Exception, match="partition"):  # Spark does not hand it on
        frame.write.format("jitdb").partitionBy("service").mode("append").save(str(tmp_path / "other"))
    assert not issubclass(JitdbError, SparkError)
