"""Logs as tables of Spark: types, SQL, questions, retries, copies that differ, and the fault of filter push-down."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import POSTS, QUESTIONS, make_log, oracle_of

from jitdb import JITDB, Log
from jitdb.operators import and_, equal, field, gte

pytest.importorskip("pyspark")

from jitdb.spark_ext import explain_log, jitdb_errors, read_log, register
from jitdb.spark_ext.errors import LogChanged

RECORDS = 900
BLOCK = 2048


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of messages, some deleted."""
    path = tmp_path_factory.mktemp("read") / "messages.log"
    offsets = make_log(path, RECORDS, block_size=BLOCK)
    with Log(path) as log:
        for seq in range(5, RECORDS, 77):
            log.delete(offsets[seq])
    return path


@pytest.fixture(scope="module")
def oracle(path: Path) -> Any:
    with Log(path, read_only=True) as log:
        return oracle_of(log)


COLUMNS = {"author": "value.author", "type": "value.content.type", "n": ("value.sequence", "int")}


def expected(oracle: Any, where: Any) -> list[tuple[Any, ...]]:
    rows = []
    for seq in oracle.matches(where):
        record = oracle.records[seq]
        value = record["value"]
        fields = (value["author"], value["content"]["type"], value["sequence"])
        rows.append((seq, oracle.offsets[seq], oracle.smallest_number(record), *fields))
    return rows


@pytest.mark.parametrize("indexes", ["none", "build"])
def test_rows_are_those_of_the_oracle(spark: Any, path: Path, oracle: Any, indexes: str) -> None:
    for where in QUESTIONS[:8:2] if indexes == "none" else QUESTIONS:
        if "predicate" in repr(where):
            continue
        frame = read_log(spark, str(path), COLUMNS, where, indexes=indexes, partition_bytes=40 * BLOCK)
        rows = sorted(map(tuple, frame.collect()))
        assert rows == expected(oracle, where), where


def test_a_whole_log_in_order(spark: Any, path: Path, oracle: Any) -> None:
    frame = read_log(spark, str(path), ["key"], partition_bytes=12 * BLOCK)
    assert [field.dataType.simpleString() for field in frame.schema] == ["bigint", "bigint", "double", "string"]
    live = [seq for seq in range(RECORDS) if seq not in oracle.deleted]
    assert [(row.seq, row.key) for row in frame.collect()] == [(seq, oracle.records[seq]["key"]) for seq in live]
    assert frame.rdd.getNumPartitions() > 3


def test_inferred_columns(spark: Any, path: Path, oracle: Any) -> None:
    register(spark)
    frame = spark.read.format("jitdb").load(str(path))
    assert frame.schema.simpleString() == (
        "struct<seq:bigint,offset:bigint,timestamp:double,key:string,value.author:string,value.sequence:bigint,"
        "value.timestamp:bigint,value.content.type:string,value.content.text:string,value.content.root:string,"
        "value.content.tags:array<string>,timestamp_:double>"
    )
    for row in frame.collect():
        record = oracle.records[row.seq]
        content = record["value"]["content"]
        assert (row["value.author"], row["value.content.tags"]) == (record["value"]["author"], content.get("tags"))
        assert (row.timestamp_, row["value.content.root"]) == (record["timestamp"], content.get("root"))


def test_a_schema_of_structs_arrays_maps_and_variants(spark: Any, path: Path, oracle: Any) -> None:
    schema = (
        "seq INT, value STRUCT<author: STRING, content: STRUCT<tags: ARRAY<STRING>, root: STRING>>, "
        "`value.content` MAP<STRING, STRING>, contents MAP<STRING, VARIANT>, "
        "timestamp TIMESTAMP, whole VARIANT, raw BINARY"
    )
    columns = {"whole": "*", "raw": "*", "contents": "value.content"}
    frame = read_log(spark, str(path), columns, POSTS, schema=schema)
    frame.createOrReplaceTempView("read_messages")
    rows = spark.sql(
        "SELECT seq, value.author, value.content.tags, `value.content` AS content, unix_millis(timestamp) AS at, "
        "whole:value.content.text::string AS text, contents['tags']::array<string> AS tags_too, raw "
        "FROM read_messages ORDER BY seq"
    ).collect()
    assert [row.seq for row in rows] == oracle.matches(POSTS)
    with Log(path, read_only=True) as log:
        for row in rows:
            record = oracle.records[row.seq]
            content = record["value"]["content"]
            assert (row.author, row.tags, row.text) == (record["value"]["author"], content.get("tags"), content["text"])
            assert row.content == {
                key: item if isinstance(item, str) else json.dumps(item, separators=(",", ":"))
                for key, item in content.items()
            }
            assert row["at"] == int(oracle.smallest_number(record))
            assert row.tags_too == content.get("tags")
            assert bytes(row.raw) == log.get_raw(oracle.offsets[row.seq])


def test_sql_alone(spark: Any, path: Path, oracle: Any) -> None:
    register(spark)
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW posts USING jitdb OPTIONS (path '{path}', "
        f"""columns 'value.author, value.content.text', where 'value.content.type == "post"')"""
    )
    found = spark.sql("SELECT `value.author` AS author, count(*) AS posts FROM posts GROUP BY author").collect()
    authors = [oracle.records[seq]["value"]["author"] for seq in oracle.matches(POSTS)]
    assert {row.author: row.posts for row in found} == {author: authors.count(author) for author in authors}


def test_a_table_of_the_catalog(spark: Any, path: Path) -> None:
    """Spark keeps its options, and does not tell them when it is read: it is refused, or says why it cannot be read."""
    register(spark)
    with pytest.raises(Exception, match=r"QueryError: Spark tells no source in Python .* CREATE TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE kept USING jitdb OPTIONS (path '{path}', columns 'key')")
    spark.sql(f"CREATE TABLE kept (key STRING) USING jitdb OPTIONS (path '{path}')")
    try:
        with pytest.raises(Exception, match=r"path of the log is missing; .* CREATE TEMPORARY VIEW"):
            spark.table("kept").count()
    finally:
        spark.sql("DROP TABLE kept")


def test_two_questions_are_two_answers(spark: Any, path: Path, oracle: Any) -> None:
    """Each load() has its own question: the reader that Spark keeps for one is not asked another."""
    posts = read_log(spark, str(path), COLUMNS, POSTS)
    votes = read_log(spark, str(path), COLUMNS, 'value.content.type == "vote"')
    counts = [posts.count(), votes.count(), posts.filter("author = '@3'").count(), posts.count()]
    mine = len(oracle.matches(and_(POSTS, equal("value.author", "@3"))))
    all_posts = len(oracle.matches(POSTS))
    assert counts == [all_posts, len(oracle.matches(equal("value.content.type", "vote"))), mine, all_posts]


def test_blocks_without_answers_are_not_read(spark: Any, path: Path, oracle: Any) -> None:
    where = field("key") == "%000400"
    plan = explain_log(str(path), COLUMNS, where, indexes="none")
    assert (plan.answered, plan.blocks_skipped, plan.matches) == ("tasks", 0, None)
    plan = explain_log(str(path), COLUMNS, where, indexes="build")
    assert (plan.answered, plan.blocks_read, plan.matches, plan.tasks) == ("indexes", 1, 1, 1)
    assert plan.blocks_skipped == plan.blocks - 1 > 50
    assert "1 of" in str(plan)
    assert plan.as_dict()["blocks_skipped"] == plan.blocks_skipped
    assert [row.seq for row in read_log(spark, str(path), COLUMNS, where).collect()] == [400]
    assert read_log(spark, str(path), COLUMNS, field("key") == "none", indexes="build").collect() == []


def copy_of(path: Path, folder: Path) -> Path:
    """The same log elsewhere, with its sidecar; its time too, by which the sidecar knows it."""
    copy = folder / "copy.log"
    shutil.copy2(path, copy)
    shutil.copytree(f"{path}.jitdb", f"{copy}.jitdb")
    return copy


def damage(path: Path, position: int) -> None:
    """Flip a bit, as a disk does: the file's time stays."""
    stat = path.stat()
    data = bytearray(path.read_bytes())
    data[position] ^= 4
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_an_empty_log(spark: Any, tmp_path: Path) -> None:
    Log(tmp_path / "empty.log").close()
    frame = read_log(spark, str(tmp_path / "empty.log"))
    assert frame.columns == ["seq", "offset", "timestamp", "record"]
    assert frame.collect() == []


def test_a_log_that_grew(spark: Any, tmp_path: Path) -> None:
    """Indexes that are behind are not used; the rows are those of the log as it is."""
    path = tmp_path / "growing.log"
    make_log(path, 100, codec="msgpack")
    with Log(path) as log:
        JITDB(log).count(POSTS)
        log.append_many([{"value": {"content": {"type": "post"}}}] * 50)
    with Log(path, read_only=True) as log:
        oracle = oracle_of(log)
    for indexes in ("auto", "build", "none"):
        rows = read_log(spark, str(path), where=POSTS, indexes=indexes).collect()
        assert [row.seq for row in rows] == oracle.matches(POSTS)
    assert read_log(spark, str(path), where=gte(149, "sequence")).count() == 0


def test_a_log_that_was_compacted(spark: Any, tmp_path: Path) -> None:
    """A table from before says to load it anew, whatever it is asked; who does has all rows."""
    path = tmp_path / "x.log"
    offsets = make_log(path, 300, block_size=BLOCK)
    before, late = (read_log(spark, path, {"n": ("value.sequence", "int")}) for _ in range(2))
    late.schema  # noqa: B018
    assert before.count() == 300
    with Log(path) as log:
        log.delete(offsets[7])
        log.compact()
    for _ in range(2):
        with pytest.raises(LogChanged, match=r"compacted since the job was planned .* load it anew"), jitdb_errors():
            before.collect()
    assert late.count() == 299  # it was not planned before
    assert read_log(spark, path, {"n": ("value.sequence", "int")}).count() == 299


def test_a_task_that_fails_is_tried_again(spark: Any, path: Path, oracle: Any, tmp_path: Path) -> None:
    """Half way through its rows, the first time; the second attempt reads them all, and none comes twice."""
    copy = copy_of(path, tmp_path)
    frame = read_log(spark, str(copy), ["key"], partition_bytes=30 * BLOCK)

    def fails_once(rows: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for number, row in enumerate(rows):
            if number == 3 and context.attemptNumber() == 0 and context.partitionId() == 1:
                raise RuntimeError("fails once")
            yield (row.key, context.attemptNumber(), context.partitionId())

    found = frame.rdd.mapPartitions(fails_once).collect()
    assert [key for key, _, _ in found] == [
        oracle.records[seq]["key"] for seq in range(RECORDS) if seq not in oracle.deleted
    ]
    assert {partition for _, attempt, partition in found if attempt} == {1}


def test_a_log_that_was_away(spark: Any, path: Path, oracle: Any, tmp_path: Path) -> None:
    """The file is gone while a planned table is read, and the same table is read once it has come back."""
    copy = copy_of(path, tmp_path)
    frame = read_log(spark, str(copy), ["key"], partition_bytes=30 * BLOCK)
    frame.rdd.getNumPartitions()  # planned
    os.rename(copy, tmp_path / "hidden")
    with pytest.raises(Exception, match="has no such file"):
        frame.collect()
    os.rename(tmp_path / "hidden", copy)
    assert [row.key for row in frame.collect()] == [
        oracle.records[seq]["key"] for seq in range(RECORDS) if seq not in oracle.deleted
    ]


def test_an_old_copy_is_an_error(spark: Any, path: Path, tmp_path: Path) -> None:
    copy = copy_of(path, tmp_path)
    frame = read_log(spark, str(copy), ["key"])
    frame.rdd.getNumPartitions()
    size = copy.stat().st_size
    os.truncate(copy, size - BLOCK)
    with pytest.raises(Exception, match="an old copy"):
        frame.collect()
    shutil.copy(path, copy)
    with open(copy, "r+b") as file:
        file.seek(10)
        file.write(b"another")
    with pytest.raises(Exception, match="another file there"):
        frame.collect()


def test_a_damaged_block_is_named(spark: Any, path: Path, oracle: Any, tmp_path: Path) -> None:
    copy = copy_of(path, tmp_path)
    damage(copy, 7 * BLOCK + 100)
    with pytest.raises(Exception, match="block 7"):
        read_log(spark, str(copy), ["key"]).collect()
    rest = [
        seq
        for seq in range(RECORDS)
        if seq not in oracle.deleted and oracle.offsets[seq] // BLOCK != 7
    ]  # fmt: skip
    rows = read_log(spark, str(copy), ["key"], corruptBlocks="skip").collect()
    assert [row.seq for row in rows] == rest


def test_a_misfit_names_record_and_column(spark: Any, path: Path, oracle: Any) -> None:
    columns = {"root": ("value.content.root", "long")}
    with pytest.raises(Exception, match=r"the record at offset 0 does not fit the column 'root'"):
        read_log(spark, str(path), columns).collect()
    rows = read_log(spark, str(path), columns, mode="PERMISSIVE").collect()
    assert {row.root for row in rows} == {None}


def test_options_that_are_wrong(spark: Any, path: Path) -> None:
    for options, message in [
        ({"indices": "build"}, "there is no option 'indices'"),
        ({"indexes": "yes"}, "indexes is one of"),
        ({"where": "type = 1"}, "equality is written"),
        ({"columns": {"a": ("b", "text")}}, "no column can be of the type 'text'"),
        ({"columns": ["a", "A"]}, "two columns are called"),
        ({"mode": "dropmalformed"}, "mode is one of"),
        ({"partitionBytes": 0}, "a size, 1 byte or more"),
    ]:
        with pytest.raises(Exception, match=message):
            read_log(spark, str(path), **options).collect()
    with pytest.raises(Exception, match="cannot be of the type date"):
        read_log(spark, str(path), schema="key DATE").collect()
    with pytest.raises(Exception, match=r"(?i)no such file"):
        read_log(spark, str(path) + ".none").collect()


def test_sparks_kept_reader_answers_the_filter_of_before(spark: Any) -> None:
    """Why no filters are pushed down: Spark keeps one reader a load(), with the filters of the first question.

    When this fails, Spark was mended, and filters may be taken.
    """
    from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, InputPartition

    class Reader(DataSourceReader):
        wanted: Any = None

        def pushFilters(self, filters: Any) -> Any:  # noqa: N802
            for each in filters:
                if isinstance(each, EqualTo):
                    self.wanted = each.value
                else:
                    yield each

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(0)]

        def read(self, partition: Any) -> Iterator[tuple[int]]:
            return iter([(number,) for number in range(5) if self.wanted in (None, number)])

    class Five(DataSource):
        @classmethod
        def name(cls) -> str:
            return "five"

        def schema(self) -> str:
            return "a INT"

        def reader(self, schema: Any) -> Reader:
            return Reader()

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        spark.dataSource.register(Five)
        frame = spark.read.format("five").load()
        assert frame.filter("a = 1").count() == 1
        assert frame.count() == 1  # of 5
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
