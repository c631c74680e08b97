"""Prebuilds, tables, streams and writes over Spark Connect, server and all in this process tree.

Run by test_spark_connect.py: python connect_script.py FOLDER
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import QUESTIONS, make_log, messages, oracle_of
from range_cases import damage, files_of, gathered, merged_files

import jitdb
from jitdb import Log
from jitdb.errors import LogCorrupt, QueryError
from jitdb.operators import equal, predicate
from jitdb.spark_ext import explain_log, jitdb_errors, prebuild, read_log
from jitdb.spark_ext.errors import CopyDiffers, SparkError
from jitdb.spark_ext.sessions import prepare_environment

BLOCK = 4096
POSTS = equal("value.content.type", "post")
TYPED = {"author": ("value.author", "string"), "n": ("value.sequence", "int")}


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession

    prepare_environment("local")
    builder = SparkSession.builder.remote("local[2]")
    for name, value in (
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
        ("spark.sql.shuffle.partitions", "2"),
        ("spark.python.unix.domain.socket.enabled", "true"),
    ):
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    path = folder / "x.log"
    make_log(path, 3000)
    try:
        for step in (prebuilds, tables, grows, streams, writes, faults):
            begin = time.perf_counter()
            step(spark, path)
            print(f"{step.__name__}: {time.perf_counter() - begin:.1f} s", flush=True)
        print("all is well")
    finally:
        spark.stop()


def prebuilds(spark: Any, path: Path) -> None:
    """The local engine's bytes; a worker that has no such file; no URIs."""
    from test_spark_prebuild import Substituting

    wanted = {3, 5}
    questions = [*QUESTIONS, predicate("value.sequence", lambda value: value % 7 in wanted, name="some")]
    questions.append(equal("value.content.text", "text 1"))
    summary = prebuild(spark, path, operations=questions, range_bytes=40 * BLOCK, merge_on_driver=0)
    assert summary.tasks == 3, summary
    with Log(path, read_only=True) as log:
        assert gathered(log.sidecar / "indexes") == merged_files(log, path.parent / "locally", questions)
    with pytest.raises(SparkError, match="no way to read a log by URI"):
        prebuild(spark, path.as_uri(), fields=["a"])
    other = path.parent / "y.log"
    make_log(other, 100)
    gone = predicate("value.author", Substituting(other, None), name="all")
    with pytest.raises(CopyDiffers, match="has no such file"):
        prebuild(spark, other, operations=[gone])


def tables(spark: Any, path: Path) -> None:
    """The records that the oracle gives, by index and by task; SQL; how a read is planned."""
    with jitdb.open(path, read_only=True) as db:
        oracle = oracle_of(db.log)
        posts = oracle.matches(POSTS)
        for indexes in ("auto", "none"):
            rows = read_log(spark, str(path), TYPED, POSTS, core="seq", indexes=indexes).collect()
            assert [row.seq for row in rows] == posts
            assert [row.n for row in rows] == [oracle.records[seq]["value"]["sequence"] for seq in posts]
    structured = "seq BIGINT, value STRUCT<author: STRING, sequence: INT>"
    row = read_log(spark, str(path), schema=structured).limit(1).collect()[0]
    assert (row.seq, row.value.author) == (0, oracle.records[0]["value"]["author"])
    spark.sql(f"CREATE TEMPORARY VIEW posts USING jitdb OPTIONS (path '{path}', columns 'value.author', core 'seq')")
    found = spark.sql("SELECT count(*), count(DISTINCT `value.author`) FROM posts").collect()[0]
    assert tuple(found) == (3000, len({record["value"]["author"] for record in oracle.records}))
    assert explain_log(str(path), where=POSTS).answered == "indexes"


def grows(spark: Any, path: Path) -> None:
    """A new load sees the log as it is, though the server keeps the plans of earlier ones. A new prebuild scans what
    is new.
    """
    assert read_log(spark, str(path), TYPED).count() == 3000
    with Log(path) as log:
        before = log.durable_end
        log.append_many(messages(400, first=3000))
    assert read_log(spark, str(path), TYPED).count() == 3400
    summary = prebuild(spark, path, operations=QUESTIONS)
    with Log(path, read_only=True) as log:
        assert (summary.records, summary.tasks, summary.scanned) == (400, 1, log.durable_end - before)
        wanted = merged_files(log, path.parent / "grown", QUESTIONS)
        found = files_of(log.sidecar / "indexes")
    assert {name: found[name] for name in wanted} == wanted


def streams(spark: Any, path: Path) -> None:
    """All there is, in batches, then end."""
    stream = spark.readStream.format("jitdb").option("columns", "value.author")
    writer = stream.option("maxRecordsPerBatch", 2000).load(str(path)).writeStream.format("memory").queryName("seen")
    writer.trigger(availableNow=True).start().awaitTermination()
    assert spark.table("seen").count() == 3400


def writes(spark: Any, path: Path) -> None:
    """The rows of the table, and those of another one after an overwrite."""
    new = path.parent / "new.log"
    for mode, wanted in (("append", 3400), ("overwrite", 10)):
        table = read_log(spark, str(path), TYPED, core="offset").limit(wanted)
        table.write.format("jitdb").mode(mode).save(str(new))
        with Log(new, read_only=True) as log:
            assert len(oracle_of(log).records) == wanted


def faults(spark: Any, path: Path) -> None:
    """Errors of the plan and of the tasks come to the client with their words."""
    from pyspark.errors import PySparkException

    def read(columns: Any = TYPED, **options: Any) -> Any:
        return read_log(spark, str(path), columns, **options).collect()

    with pytest.raises(QueryError, match=r"^there is no option 'sampel'"), jitdb_errors():
        read(sampel=3)
    with pytest.raises(PySparkException, match=r"RecordMismatch: .*does not fit the column 'author'"):
        read({"author": ("value.author", "int")})
    data = bytearray(path.read_bytes())
    data[33 * BLOCK + 200] ^= 4
    damage(path, data)
    with pytest.raises(LogCorrupt, match=r"block 33 .*expected CRC"), jitdb_errors():
        read()
    assert 3300 < len(read(corruptBlocks="skip")) < 3400


if __name__ == "__main__":
    main(Path(sys.argv[1]))
