"""Tables of logs that are damaged, or compacted while they are read, without Spark; and schemas that do not fit."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from range_cases import damage
from reading_cases import BLOCK, table_rows

from jitdb import JITDB, Log
from jitdb.errors import LogCorrupt, LogWarning, QueryError
from jitdb.log.io import filenames
from jitdb.operators import equal, gte

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StructField, StructType

from jitdb.spark_ext.data_source import JitdbDataSource
from jitdb.spark_ext.errors import LogChanged, RecordMismatch
from jitdb.spark_ext.file_range import Snapshot
from jitdb.spark_ext.options import as_options
from jitdb.spark_ext.reading import partitions, planning
from jitdb.spark_ext.streaming.stream import Limit

RECORDS = 100


def made(path: Path) -> list[int]:
    with Log(path, block_size=BLOCK) as log:
        return log.append_many([{"n": n, "k": n % 7, "text": "x" * 28} for n in range(RECORDS)])


def flip(path: Path, position: int, mask: int) -> None:
    """As a disk does: the file's time stays."""
    data = bytearray(path.read_bytes())
    data[position] ^= mask
    damage(path, data)


@pytest.fixture
def damaged(tmp_path: Path) -> Callable[[bool], tuple[Path, list[int]]]:
    """A log whose block 3 is damaged, in the length of a record; indexed before that, or not. And what was in it."""

    def make(indexed: bool) -> tuple[Path, list[int]]:
        path = tmp_path / "x.log"
        offsets = made(path)
        lost = [number for number, offset in enumerate(offsets) if offset // BLOCK == 3]
        if indexed:
            with Log(path, read_only=True) as log:
                JITDB(log).prepare(equal(["k"], 3))
        flip(path, offsets[lost[1]] + 1, 0x80)
        return path, lost

    return make


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("indexes", ["auto", "build", "none"])
@pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")
def test_a_damaged_block_is_an_error_whoever_finds_it(damaged: Any, indexed: bool, indexes: str) -> None:
    with pytest.raises(LogCorrupt, match="block 3 "):
        table_rows(damaged(indexed)[0], columns=["n"], where=gte(0, ["n"]), indexes=indexes)


@pytest.mark.parametrize(
    ("where", "asked"),
    [(None, range(RECORDS)), (equal(["k"], 3), range(3, RECORDS, 7)), (gte(60, ["n"]), range(60, RECORDS))],
)
@pytest.mark.parametrize("partition_bytes", [1, 1 << 20])
def test_a_damaged_block_moves_no_seqs(damaged: Any, where: Any, asked: range, partition_bytes: int) -> None:
    """The index of offsets was built before: it knows how many records the block held."""
    path, lost = damaged(True)
    with pytest.warns(LogWarning, match="block 3 "):
        rows = table_rows(
            path, columns=["n", "k"], where=where, corruptBlocks="skip", partition_bytes=partition_bytes, indexes="auto"
        )
    assert [(row["seq"], row["n"]) for row in rows] == [(n, n) for n in asked if n not in lost]


# --- damage in a log that has no checksums ---------------------------------------------------------------------------


def without_checksums(path: Path, damaged: Callable[[Path, list[int]], object] = lambda path, offsets: None) -> Path:
    """A log as JavaScript makes it: blocks of 64 KiB in a file, and nothing beside it."""
    with Log(path) as log:
        offsets = log.append_many([{"n": n, "k": n % 7, "text": "x" * 4000} for n in range(RECORDS)])
    shutil.rmtree(filenames.sidecar_path(path))
    damaged(path, offsets)
    return path


def lengthened(path: Path, offset: int, length: int) -> None:
    """The record there says that it has another length."""
    data = bytearray(path.read_bytes())
    struct.pack_into("<H", data, offset, length)
    damage(path, data)


#: The record whose length is damaged: in the middle of a block, the first of one, the first of the last one.
BROKEN = {"in a block": 40, "at a block's begin": 48}


@pytest.mark.parametrize(
    ("where", "asked"),
    [(gte(0, ["n"]), range(RECORDS)), (equal(["n"], 3), [3])],
    ids=["answers in it", "answers elsewhere"],
)
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
@pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")
def test_a_length_that_leads_out_is_an_error_whoever_answers(
    tmp_path: Path, where: Any, asked: Sequence[int], broken: int
) -> None:
    """Also where indexes were made without the records behind it, by this process or by another one."""
    path = without_checksums(tmp_path / "x.log", lambda path, offsets: lengthened(path, offsets[broken], 0xFFFF))
    block = broken // 16
    for indexes in ("none", "auto", "build", "build", "auto"):
        with pytest.raises(LogCorrupt, match=f"block {block} is damaged"):
            table_rows(path, columns=["n"], where=where, indexes=indexes)
    rows = table_rows(path, columns=["n"], where=where, indexes="auto", corruptBlocks="skip")
    lost = range(broken, 16 * block + 16)
    assert [row["n"] for row in rows] == [n for n in asked if n not in lost]


@pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")
def test_a_last_block_without_any_record_that_can_be_found(tmp_path: Path) -> None:
    """No index covers it, so none says that it is damaged."""
    path = tmp_path / "x.log"
    offsets = made(path)
    first = next(offset for offset in offsets if offset // BLOCK == offsets[-1] // BLOCK)
    lengthened(path, first, 0xFFFF)
    for indexes in ("none", "build", "auto"):
        with pytest.raises(LogCorrupt, match=f"block {offsets[-1] // BLOCK} .*is damaged"):
            table_rows(path, columns=["n"], where=equal(["n"], 3), indexes=indexes)


@pytest.mark.parametrize("where", [None, gte(20, ["n"])])
@pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")
def test_a_length_that_stays_within_its_block_moves_no_rows(tmp_path: Path, where: Any) -> None:
    """Another number of records is found there than was indexed, so all behind them would have wrong seqs."""
    path = without_checksums(tmp_path / "x.log")
    with Log(path, read_only=True) as log:
        JITDB(log).prepare(gte(0, ["n"]))
        offset = next(record.offset for record in log.stream() if record.value["n"] == 40)
        length = len(log.get_raw(offset))
    lengthened(path, offset, length + 2 + length)  # over the record behind it, which is as long
    for partition_bytes in (1, 1 << 20):
        options = {"columns": ["n"], "where": where, "indexes": "auto", "partition_bytes": partition_bytes}
        with pytest.raises(LogCorrupt, match=r"damaged, or was repaired: expected .* records, which were indexed"):
            table_rows(path, **options)
        rows = table_rows(path, corruptBlocks="skip", **options)
        lost = range(32, 48)
        assert [(row["seq"], row["n"]) for row in rows] == [
            (n, n) for n in range(0 if where is None else 20, RECORDS) if n not in lost
        ]


# --- compacted meanwhile ---------------------------------------------------------------------------------------------


def compact(path: Path, offsets: list[int], gone: range, more: int = 0) -> None:
    with Log(path) as log:
        for n in gone:
            log.delete(offsets[n])
        log.compact()
        log.append_many([{"n": n, "k": n % 7} for n in range(RECORDS, RECORDS + more)])


@pytest.mark.parametrize("indexes", ["none", "build"])
@pytest.mark.parametrize("more", [0, 900])
@pytest.mark.parametrize("where", [None, gte(20, ["n"])])
@pytest.mark.parametrize("moment", ["opened", "looked", "shared"])
def test_a_compaction_while_a_read_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indexes: str, more: int, where: Any, moment: str
) -> None:
    path = tmp_path / "x.log"
    offsets = made(path)

    def now() -> None:
        monkeypatch.undo()
        compact(path, offsets, range(60), more)

    of, share = Snapshot.of, planning.Share.partition
    if moment == "opened":
        monkeypatch.setattr(Snapshot, "of", lambda *args: (now(), of(*args))[1])
    elif moment == "looked":
        monkeypatch.setattr(Snapshot, "of", lambda *args: (of(*args), now())[0])
    else:
        monkeypatch.setattr(planning.Share, "partition", lambda *args: (share(*args), now())[0])
    rows = table_rows(path, columns=["n"], where=where, indexes=indexes)
    assert [row["n"] for row in rows] == list(range(60, RECORDS + more))
    assert [row["seq"] for row in rows] == list(range(RECORDS + more - 60))


def test_a_log_that_never_holds_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.log"
    made(path)
    monkeypatch.setattr(planning, "TRIES", 3)

    def shorter(*args: Any) -> None:
        raise EOFError

    monkeypatch.setattr(Snapshot, "of", shorter)
    with pytest.raises(LogChanged, match="again and again"):
        table_rows(path, columns=["n"])


def test_a_compaction_while_a_batch_is_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from test_spark_stream_places import rows, stream_of

    path = tmp_path / "x.log"
    offsets = made(path)
    stream = stream_of(path)
    start = stream.next(stream.first(), Limit(30))
    end = stream.next(start, Limit(40))
    of = Snapshot.of

    def first_compacted(*args: Any) -> Any:
        monkeypatch.undo()
        compact(path, offsets, range(35))
        return of(*args)

    monkeypatch.setattr(Snapshot, "of", first_compacted)
    assert [row["n"] for row in rows(stream, start, end)] == list(range(35, 70))
    stream.close()


@pytest.mark.parametrize("where", [None, gte(0, ["n"])])
def test_a_compaction_while_a_task_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any) -> None:
    """What the task has open is the old file; a block of it that changed cannot be looked up in the new one."""
    monkeypatch.setattr(partitions, "PIECE", BLOCK)
    path = tmp_path / "x.log"
    offsets = made(path)
    source = JitdbDataSource(options={**as_options(None, ["n"], where, {"indexes": "none"}), "path": str(path)})
    reader = source.reader(source.schema())
    (partition,) = reader.partitions()
    batches = iter(reader.read(partition))
    got = next(batches).to_pylist()
    compact(path, offsets, range(55, 58), 30)
    with pytest.raises(LogChanged, match=r"compacted since .* load it anew"):
        got.extend(row for batch in batches for row in batch.to_pylist())
    assert [row["n"] for row in got] == list(range(len(got)))


@pytest.mark.parametrize("indexes", ["none", "build"])
@pytest.mark.parametrize("where", [None, gte(2, ["n"])])
def test_a_compaction_between_planning_and_a_task(tmp_path: Path, where: Any, indexes: str) -> None:
    """What was planned is of no log that there is; who loads it anew has all rows."""
    path = tmp_path / "x.log"
    offsets = made(path)
    options = {"indexes": indexes, "partitionBytes": str(BLOCK)}
    source = JitdbDataSource(options={**as_options(None, ["n"], where, options), "path": str(path)})
    reader = source.reader(source.schema())
    first, *others = reader.partitions()
    assert [row["n"] for batch in reader.read(first) for row in batch.to_pylist()]
    compact(path, offsets, range(30, 40), RECORDS)
    for partition in others:
        with pytest.raises(LogChanged, match=r"compacted since .*\(generation 1 then, 2 now\).* load it anew"):
            list(reader.read(partition))
    rows = table_rows(path, columns=["n"], where=where, **options)
    begin = 0 if where is None else 2
    assert [row["n"] for row in rows] == [*range(begin, 30), *range(40, 2 * RECORDS)]


@pytest.mark.parametrize("indexes", ["none", "build"])
def test_a_compaction_that_moves_no_byte_of_what_stays(tmp_path: Path, indexes: str) -> None:
    """The records of other blocks do not fit the room that is free now: they lie where they lay, with other seqs."""
    path = tmp_path / "x.log"
    with Log(path, block_size=BLOCK) as log:
        offsets = [log.append({"n": n, "text": "x" * (1 if n == 5 else BLOCK // 2)}) for n in range(40)]
    options = {"indexes": indexes, "corruptBlocks": "skip"}
    source = JitdbDataSource(options={**as_options(None, ["n"], gte(0, ["n"]), options), "path": str(path)})
    reader = source.reader(source.schema())
    partitions = reader.partitions()
    before = path.stat().st_size
    compact(path, offsets, range(5, 6))
    assert path.stat().st_size == before
    with pytest.raises(LogChanged, match="load it anew"):
        [list(reader.read(partition)) for partition in partitions]


# --- schemas ---------------------------------------------------------------------------------------------------------


def test_columns_of_records_with_many_keys(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    with Log(path) as log:
        log.append_many([{**{f"k{n}": n for n in range(70)}, "n": 1}, {"k3": 1.5, "n": 2}])
    rows = table_rows(path, columns=["n", "k3"])
    assert [(row["n"], row["k3"]) for row in rows] == [(1, 3.0), (2, 1.5)]


def test_keys_that_are_no_names(tmp_path: Path) -> None:
    with Log(tmp_path / "x.log") as log:
        log.append_many([{"é": 1, "\udce9": 2, "m": {"\udce9": 3, "": 4}, 5: 6}])
    (row,) = table_rows(tmp_path / "x.log")
    assert {name: row[name] for name in row if name not in ("seq", "offset", "timestamp")} == {"é": 1, "m.": 4}


def test_a_table_without_columns(tmp_path: Path) -> None:
    made(tmp_path / "x.log")
    with pytest.raises(QueryError, match="one column at least"):
        table_rows(tmp_path / "x.log", columns=[], core="")


def test_a_uri_is_no_path() -> None:
    with pytest.raises(QueryError, match=r"hdfs://head/x\.log: a log is read .* not at a URI"):
        JitdbDataSource(options={"path": "hdfs://head/x.log"}).schema()


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
def test_columns_that_are_not_null(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "x.log"
    with Log(path) as log:
        offsets = log.append_many([{"n": 1, "m": {"n": 1}}, {"n": 2}, {"m": {"a": 1}}])
    number = StructField("n", LongType(), nullable=False)
    with pytest.raises(RecordMismatch, match="'n', which is NOT NULL") as caught:
        table_rows(path, schema=StructType([number]), mode=mode)
    assert caught.value.offset == offsets[2]
    nested = StructType([StructField("m", StructType([number]))])
    with pytest.raises(RecordMismatch, match=r"'m\.n', which is NOT NULL"):
        table_rows(path, schema=nested, mode=mode)
    with Log(path) as log:
        log.delete(offsets[2])
    assert table_rows(path, schema=nested, mode=mode) == [{"m": {"n": 1}}, {"m": None}]


@pytest.mark.parametrize("where", [None, equal(["k"], 3)], ids=["all rows", "answers"])
@pytest.mark.parametrize("indexes", ["auto", "build"])
@pytest.mark.filterwarnings("ignore::jitdb.errors.IndexWarning")
def test_a_damaged_index_changes_no_row(tmp_path: Path, where: Any, indexes: str) -> None:
    """It is dropped, as the local engine does it: first each index alone, then all of them."""
    path = tmp_path / "x.log"
    offsets = made(path)
    with Log(path, read_only=True) as log:
        JITDB(log).prepare(equal(["k"], 3))
        folder = log.sidecar / "indexes"
    sound = {file: file.read_bytes() for file in folder.glob("*.index")}
    assert len(sound) == 4
    expected = [(n, offsets[n], n) for n in range(RECORDS) if where is None or n % 7 == 3]
    for chosen in [*([file] for file in sound), list(sound)]:
        for share in (0.1, 0.3, 0.5, 0.7, 0.9):
            for file, data in sound.items():
                wrong = bytearray(data)
                wrong[int(len(data) * share)] ^= 0xFF
                file.write_bytes(wrong if file in chosen else data)
            rows = table_rows(path, columns=["n"], where=where, indexes=indexes, partition_bytes=2 * BLOCK)
            assert [(row["seq"], row["offset"], row["n"]) for row in rows] == expected
