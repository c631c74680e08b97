"""Streams over folders and files of lines: each line ever written comes once, whatever rotates, over restarts."""

from __future__ import annotations

import gzip
import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import rotations

from jitdb import Log
from jitdb.errors import QueryError

pytest.importorskip("pyspark")

from jitdb.spark_ext import register
from jitdb.spark_ext.columns import typed
from jitdb.spark_ext.data_source import JitdbDataSource
from jitdb.spark_ext.errors import LogChanged
from jitdb.spark_ext.options import ReadOptions, as_options
from jitdb.spark_ext.reading.schema import layout_of, table_schema
from jitdb.spark_ext.streaming import files_stream, text_share
from jitdb.spark_ext.streaming.files_stream import FilesStream
from jitdb.spark_ext.streaming.places import FilesPlace
from jitdb.spark_ext.streaming.reader import read_share
from jitdb.spark_ext.streaming.stream import Limit

pytestmark = pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")


def lines(numbers: Any, **more: Any) -> str:
    return "".join(json.dumps({"n": number, **more}) + "\n" for number in numbers)


class Case:
    """A stream without Spark, that is ended and begun anew; places go through a checkpoint's JSON."""

    def __init__(self, path: Path, **options: Any) -> None:
        given = {"path": str(path), "columns": "n", **{key: str(value) for key, value in options.items()}}
        self.options = ReadOptions.of(given)
        columns = self.options.columns or []
        schema = table_schema(typed(columns, [{"n": 1, "day": 1, "file": "a"}], self.options.core))
        self.layout = layout_of(schema, columns, self.options.fields.timestamp)
        self.stream = FilesStream(self.options)
        self.place = kept(self.stream.first())
        self.rows: list[dict[str, Any]] = []

    def restart(self) -> None:
        self.stream.close()
        self.stream = FilesStream(self.options)

    def plan(self, limit: Limit = Limit()) -> FilesPlace:  # noqa: B008
        return kept(self.stream.next(self.place, limit))

    def batch(self, start: FilesPlace, end: FilesPlace) -> list[dict[str, Any]]:
        found = []
        for parts in self.stream.partitions(start, end, slow=False):
            for part in parts:
                for batch in read_share(part, self.layout, self.options):
                    found += batch.to_pylist()
        return found

    def step(self, limit: Limit = Limit()) -> int:  # noqa: B008
        """One batch; gives how many rows it had."""
        end = self.plan(limit)
        if end == self.place:
            return 0
        found = self.batch(self.place, end)
        self.rows += found
        self.place = end
        return len(found)

    def drain(self, limit: Limit = Limit()) -> None:  # noqa: B008
        while self.step(limit):
            pass

    @property
    def numbers(self) -> list[int]:
        return sorted(row["n"] for row in self.rows)


def kept(place: FilesPlace) -> FilesPlace:
    return FilesPlace.of_offset(json.loads(json.dumps(place.as_offset())))


def test_new_files_and_growing_ones(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    (logs / "day=1").mkdir(parents=True)
    (logs / "day=1" / "a.ndjson").write_text(lines(range(5)))
    case = Case(logs, columns="n,day")
    assert case.step() == 5
    assert case.rows[0] == {"seq": 0, "offset": 0, "timestamp": None, "n": 0, "day": 1}
    with (logs / "day=1" / "a.ndjson").open("a") as file:
        file.write(lines([5, 6]) + '{"n": 7')
    (logs / "b.ndjson.gz").write_bytes(gzip.compress(lines(range(10, 14)).encode()))
    (logs / "empty.ndjson").touch()
    assert case.step() == 6
    case.restart()
    assert case.step() == 0
    with (logs / "day=1" / "a.ndjson").open("a") as file:
        file.write("7}\n")
    (logs / "empty.ndjson").write_text(lines([20]))
    assert case.step() == 2
    by_number = {row["n"]: row["seq"] for row in case.rows}
    assert by_number == {**{n: n for n in range(7)}, 77: 7, **{n: n - 10 for n in range(10, 14)}, 20: 0}


def test_limits_hold_and_every_file_has_its_turn(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.ndjson").write_text(lines(range(100), file=name))
    case = Case(tmp_path, columns="n,file")
    sizes = []
    while size := case.step(Limit(30)):
        sizes.append(size)
        case.stream.first()  # as Spark does
        case.restart() if len(sizes) == 3 else None
    assert max(sizes) == 30
    assert sum(sizes) == 300
    assert {row["file"] for row in case.rows[:90]} == {"a", "b", "c"}
    assert Counter((row["file"], row["n"]) for row in case.rows) == Counter((f, n) for f in "abc" for n in range(100))
    assert all(row["seq"] == row["n"] for row in case.rows)
    case = Case(tmp_path)
    most = max(len(line) for line in lines(range(100), file="a").splitlines()) + 1
    while case.step(Limit(None, 10 * most)):
        pass
    assert case.numbers == sorted(list(range(100)) * 3)


def test_one_file_by_its_name_and_its_rotation(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text(lines(range(3)))
    case = Case(path)
    case.drain()
    with path.open("a") as file:
        file.write(lines([3]))
    path.rename(tmp_path / "app.log.1")
    path.write_text(lines([4]))
    case.restart()
    case.drain()
    assert case.numbers == [0, 1, 2, 3, 4]


def test_a_batch_is_read_again_from_where_its_texts_lie_now(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text(lines(range(1000)))
    case = Case(tmp_path)
    end = case.plan(Limit(600))
    path.rename(tmp_path / "app.log.1")
    path.write_text(lines(range(1000, 1010)))
    (tmp_path / "app.log.2.gz").write_bytes(gzip.compress((tmp_path / "app.log.1").read_bytes()))
    (tmp_path / "app.log.1").unlink()
    case.restart()
    again = case.batch(case.place, end)
    assert [row["n"] for row in again] == [row["seq"] for row in again] == list(range(600))
    case.place = end
    case.rows = again
    case.drain()
    assert case.numbers == list(range(1010))


def test_latest_begins_at_the_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text(lines(range(3)))
    case = Case(tmp_path, startingOffset="latest")
    assert case.step() == 0
    with path.open("a") as file:
        file.write(lines([3]))
    (tmp_path / "b.ndjson").write_text(lines([9]))
    end = case.plan()
    case.restart()
    # Spark asks a stream that has no checkpoint yet anew where it begins, and by now the end is elsewhere.
    place = kept(case.stream.first())
    assert sorted((row["n"], row["seq"]) for row in case.batch(place, end)) == [(3, 3), (9, 0)]


def test_a_cursor_of_a_live_question_says_where_to_begin(tmp_path: Path) -> None:
    import jitdb

    path = tmp_path / "a.ndjson"
    path.write_text(lines(range(3)))
    with jitdb.open_many(tmp_path, "memory") as logs:
        live = logs.live(old=True)
        assert len(next(live.batches()) if hasattr(live, "batches") else list(zip(range(3), live, strict=False))) == 3
        cursor = live.cursor
        live.close()
    with path.open("a") as file:
        file.write(lines([3]))
    case = Case(tmp_path, startingOffset=cursor)
    case.drain()
    assert case.rows == [{"seq": 3, "offset": 27, "timestamp": None, "n": 3}]


def test_logs_of_jitdb_in_the_folder(tmp_path: Path) -> None:
    with Log(tmp_path / "x.log", block_size=1024) as log:
        log.append_many([{"n": number} for number in range(100)])
        log.flush()
        (tmp_path / "y.ndjson").write_text(lines(range(100, 110)))
        case = Case(tmp_path)
        case.drain(Limit(60))
        assert case.numbers == list(range(110))
        for record in list(log.stream(limit=20)):
            log.delete(record.offset)
        log.compact()
        log.append_many([{"n": 110}])
        log.flush()
        case.restart()
        case.drain()
        assert case.numbers == list(range(111))


def test_a_question(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=2").mkdir()
    (tmp_path / "day=1" / "a.ndjson").write_text(lines(range(50)))
    (tmp_path / "day=2" / "a.ndjson").write_text(lines(range(50, 100)))
    case = Case(tmp_path, where="day == 2 and n < 60")
    case.drain(Limit(7))
    assert case.numbers == list(range(50, 60))


def test_what_is_in_no_file_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_share, "_LOOKS", 2)
    monkeypatch.setattr(files_stream, "_AT_START", 0.1)
    path = tmp_path / "app.log"
    for options in ({}, {"failOnDataLoss": "false"}):
        path.write_text(lines(range(500)))
        case = Case(tmp_path, **options)
        end = case.plan()
        path.unlink()
        path.write_text(lines([1000]))
        case.restart()
        if options:
            assert case.batch(case.place, end) == []
            case.place = end
            case.drain()
            assert case.numbers == [1000]
        else:
            with pytest.raises(LogChanged, match=r"app\.log: .* bytes from byte 0 on.*failOnDataLoss"):
                case.batch(case.place, end)
            case.place = end
            with pytest.raises(LogChanged, match="it was removed, or another file has its name"):
                case.plan()
        path.unlink()


def test_a_rotated_file_that_is_removed_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_stream, "_AT_START", 0.1)
    for name, begin in (("app.log.1", 0), ("app.log", 500)):
        (tmp_path / name).write_text(lines(range(begin, begin + 500)))
    case = Case(tmp_path)
    case.drain()
    (tmp_path / "app.log").rename(tmp_path / "app.log.1")
    (tmp_path / "app.log").write_text(lines([1000]))
    case.restart()
    case.drain()
    assert case.numbers == list(range(1001))


def test_objects_and_batches_of_records_are_refused(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="does not grow"):
        FilesStream(ReadOptions.of({"path": "s3://bucket/logs/**"}))
    with pytest.raises(QueryError, match="of another kind of stream"):
        FilesPlace.of_offset({"identity": "00", "generation": 1, "seq": 0, "offset": 0})


def test_the_offset_of_many_files_is_small(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / f"part-{number:05}.ndjson").write_text(lines([number]) * 3)
    case = Case(tmp_path)
    case.drain()
    assert len(case.rows) == 1500
    assert len(json.dumps(case.place.as_offset())) < 60 * 500
    begin = time.process_time()
    case.restart()
    assert case.step() == 0
    assert time.process_time() - begin < 5  # not the square of 500


@pytest.mark.parametrize("seed", range(6))
def test_random_rotations_between_batches(tmp_path: Path, seed: int) -> None:
    """Against all lines ever written."""
    rng = random.Random(seed)
    writer = rotations.Writer(tmp_path / "app.log", rng)
    case = Case(tmp_path)
    ways: list[Callable[[], None]] = [
        lambda: rotations.renamed(writer), lambda: rotations.renamed(writer, packs=2), lambda: rotations.dated(writer),
        lambda: rotations.copied(writer),
    ]  # fmt: skip
    way = rng.choice(ways)
    for _ in range(25):
        for _ in range(rng.randrange(30)):
            writer.write()
        if rng.random() < 0.3:
            way()
        if rng.random() < 0.3:
            case.restart()
        if rng.random() < 0.7:
            end = case.plan(Limit(rng.choice([None, 7, 40])))
            if rng.random() < 0.3:
                way()
                case.restart()
            case.rows += case.batch(case.place, end)
            case.place = end
    case.drain()
    late = time.monotonic() + 30
    while not set(range(writer.count)) - writer.gap <= set(case.numbers) and time.monotonic() < late:
        time.sleep(0.2)
        case.drain()
    found = Counter(case.numbers)
    assert max(found.values()) == 1
    assert set(range(writer.count)) - writer.gap <= set(found) <= set(range(writer.count))


# --- in Spark --------------------------------------------------------------------------------------------------------


class Query:
    def __init__(self, spark: Any, path: Path, folder: Path) -> None:
        register(spark)
        self.spark, self.path, self.folder = spark, path, folder

    def started(self, *, every: str | None = None, **options: Any) -> Any:
        stream = self.spark.readStream.format("jitdb")
        for name, value in as_options(None, {"n": ("n", "long")}, None, options).items():
            stream = stream.option(name, value)
        return (
            stream.load(str(self.path))
            .writeStream.format("parquet")
            .option("path", str(self.folder / "out"))
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(**({"processingTime": every} if every else {"availableNow": True}))
            .start()
        )

    def run(self, **options: Any) -> list[int]:
        query = self.started(**options)
        try:
            assert query.awaitTermination(120)
        finally:
            query.stop()
        return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]

    def numbers(self) -> list[int]:
        return sorted(row.n for row in self.spark.read.parquet(str(self.folder / "out")).collect())


def test_a_folder_in_spark_over_restarts(spark: Any, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.ndjson").write_text(lines(range(100)))
    (logs / "b.ndjson").write_text(lines(range(100, 150)))
    query = Query(spark, logs, tmp_path)
    assert query.run(max_records_per_batch=60) == [60, 60, 30]
    (logs / "a.ndjson").rename(logs / "a.ndjson.1")
    (logs / "a.ndjson").write_text(lines(range(150, 160)))
    with (logs / "b.ndjson").open("a") as file:
        file.write(lines(range(160, 170)))
    assert query.run() == [20]
    # As if the driver had died after it planned the batch.
    last = max(int(file.name) for file in (tmp_path / "checkpoint" / "commits").glob("[0-9]*"))
    (tmp_path / "checkpoint" / "commits" / str(last)).unlink()
    (tmp_path / "checkpoint" / "commits" / f".{last}.crc").unlink(missing_ok=True)
    for file in (tmp_path / "out" / "_spark_metadata").glob(f"*{last}*"):
        file.unlink()
    (logs / "a.ndjson").rename(logs / "a.ndjson.2")
    (logs / "a.ndjson").write_text(lines([170]))
    assert query.run() == [20, 1]
    assert query.numbers() == list(range(171))


@pytest.fixture
def written(tmp_path: Path) -> Iterator[rotations.Writer]:
    """A program that writes and rotates all the time, by new names."""
    logs = tmp_path / "logs"
    logs.mkdir()
    writer = rotations.Writer(logs / "app.log", random.Random(7))
    writer.write()
    ended = threading.Event()

    def work() -> None:
        begin = time.monotonic()
        while not ended.is_set():
            for _ in range(20):
                writer.write()
            time.sleep(0.02)
            if time.monotonic() - begin > 1:
                rotations.renamed(writer, packs=3)
                begin = time.monotonic()

    thread = threading.Thread(target=work)
    thread.start()
    yield writer
    ended.set()
    thread.join()


def test_rotation_while_the_stream_runs_and_restarts(spark: Any, tmp_path: Path, written: rotations.Writer) -> None:
    query = Query(spark, tmp_path / "logs", tmp_path)
    for number in range(4):
        running = query.started(every="0 seconds", **({"max_records_per_batch": 400} if number % 2 else {}))
        time.sleep(4)
        assert running.exception() is None
        running.stop()
    assert written.file is not None
    end = written.count
    query.run()
    found = Counter(query.numbers())
    assert max(found.values()) == 1
    assert set(range(end)) <= set(found)


def test_a_stream_of_lines_by_the_data_source(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text(lines([1]))
    source = JitdbDataSource(options={**as_options(None, ["n"], None, {}), "path": str(path)})
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    (part,) = reader.partitions(start, end)
    assert [row["n"] for batch in reader.read(part) for row in batch.to_pylist()] == [1]
    assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end
    reader.stop()
    assert os.listdir(tmp_path) == ["a.ndjson"]
