"""Streams without Spark: batches of any limits, over growth, deletions and compactions, give every record once."""

from __future__ import annotations

import errno
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from range_cases import damage
from thoroughness import tries

from jitdb import Log
from jitdb.engine.cursor import Cursor
from jitdb.errors import LogCorrupt, QueryError
from jitdb.log.io import osfile
from jitdb.log.opening import swap
from jitdb.spark_ext.errors import CopyDiffers, LogChanged, SparkError

pytest.importorskip("pyspark")

from jitdb.spark_ext.columns import typed
from jitdb.spark_ext.options import ReadOptions
from jitdb.spark_ext.reading.schema import Layout, layout_of, table_schema
from jitdb.spark_ext.streaming import stream as streaming
from jitdb.spark_ext.streaming.reader import read_share
from jitdb.spark_ext.streaming.stream import Limit, LogStream

BLOCK = 256


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Iterator[None]:
    """A part is read in many pieces."""
    from jitdb.spark_ext.reading import partitions

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "PIECE", 2 * BLOCK)
        yield


class Stream(LogStream):
    """One that tells its options, which tasks are given too."""

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self.options = options


def stream_of(path: Path, **options: Any) -> Stream:
    return Stream(ReadOptions.of({"path": str(path), "columns": "n", **{k: str(v) for k, v in options.items()}}))


def rows(stream: Stream, start: Cursor, end: Cursor) -> list[dict[str, Any]]:
    """What the tasks of a batch read; the places go through a checkpoint's JSON."""
    start, end = (LogStream.of_offset(json.loads(json.dumps(LogStream.as_offset(place)))) for place in (start, end))
    options = stream.options
    layout = layout_of_n(options)
    found: list[dict[str, Any]] = []
    for part in stream.parts(start, end, slow=False):
        for batch in read_share(part, layout, options):
            found += batch.to_pylist()
    return found


def layout_of_n(options: ReadOptions) -> Layout:
    return layout_of(table_schema(typed(options.columns or [], [{"n": 1}])), options.columns, options.fields.timestamp)


def drain(stream: LogStream, place: Cursor, limit: Limit, into: list[dict[str, Any]]) -> Cursor:
    """Batch after batch until nothing is left."""
    while True:
        end = stream.next(place, limit)
        if end == place:
            return place
        batch = rows(stream, place, end)
        if limit.records is not None:
            assert end.seq - stream.now(place).seq <= limit.records
        into += batch
        place = end


limits = st.builds(Limit, st.none() | st.integers(1, 30), st.none() | st.sampled_from([1, 40, 300, 2000]))


@settings(max_examples=tries(20, 500), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_record_once(data: st.DataObject) -> None:
    draw = data.draw
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.log"
        with Log(path, codec="msgpack", block_size=BLOCK) as log:
            stream = stream_of(path, partitionBytes=draw(st.sampled_from([1, 600, 1 << 20])))
            place = stream.first()
            written, gone, got = 0, set(), []
            for _ in range(draw(st.integers(1, 5), "rounds")):
                count = draw(st.integers(0, 40), "appended")
                numbers = range(written, written + count)
                log.append_many([{"n": number, "text": "x" * (number % 9)} for number in numbers])
                written += count
                log.flush()
                for record in list(log.stream()) if draw(st.booleans(), "some deleted") else []:
                    if record.value["n"] % 7 == 3:
                        log.delete(record.offset)
                        gone.add(record.value["n"])
                log.flush()
                if draw(st.booleans(), "compacted"):
                    log.compact()
                if draw(st.booleans(), "restarted"):
                    stream.close()
                    stream = stream_of(path)
                before = len(got)
                place = drain(stream, place, draw(limits), got)
                with Log(path, read_only=True) as reader:
                    there = {record.value["n"]: (record.seq, record.offset) for record in reader.stream()}
                for row in got[before:]:
                    assert (row["seq"], row["offset"]) == there[row["n"]]
            stream.close()
    numbers = [row["n"] for row in got]
    assert numbers == sorted(set(numbers))
    assert set(range(written)) - set(numbers) <= gone  # deleted before they were read


def test_a_batch_is_the_same_when_it_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    with Log(path, block_size=BLOCK) as log:
        log.append_many([{"n": number} for number in range(100)])
        log.flush()
        stream = stream_of(path)
        start = stream.next(stream.first(), Limit(30))
        end = stream.next(start, Limit(37))
        first = rows(stream, start, end)
        assert [row["n"] for row in first] == list(range(30, 67))
        log.append_many([{"n": number} for number in range(100, 150)])
        log.flush()
        stream.close()
        stream = stream_of(path)
        assert rows(stream, start, end) == first
        # Compacted in between: the same records, at the places that they have now.
        for record in list(log.stream(limit=20)):
            log.delete(record.offset)
        log.compact()
        assert [(row["n"], row["seq"]) for row in rows(stream, start, end)] == [(n, n - 20) for n in range(30, 67)]
        assert rows(stream, end, stream.next(end, Limit()))[0]["n"] == 67
        stream.close()


@pytest.mark.parametrize("where", ["", "n >= 0"])
@pytest.mark.parametrize("read_before", [0, 1, 3], ids=["planned", "one piece read", "three pieces read"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_compaction_before_or_while_a_task_reads(tmp_path: Path, where: str, read_before: int, times: int) -> None:
    """The task goes on in the log as it is then: each record once, whatever of the batch it had read."""
    path = tmp_path / "x.log"
    with Log(path, block_size=BLOCK) as log:
        log.append_many([{"n": number, "text": "x" * 9} for number in range(400)])
        log.flush()
        stream = stream_of(path, where=where, corruptBlocks="error")
        start = stream.next(stream.first(), Limit(30))
        end = stream.next(start, Limit(350))
        (part,) = stream.parts(start, end, slow=False)
        batches = read_share(part, layout_of_n(stream.options), stream.options)
        got = [row["n"] for _ in range(read_before) for row in next(batches).to_pylist()]
        gone: set[int] = set()
        for each in range(times):
            for record in list(log.stream()):
                if record.value["n"] % 5 == each:
                    log.delete(record.offset)
                    gone.add(record.value["n"])
            log.compact()
            got += [row["n"] for row in next(batches).to_pylist()]
        log.append_many([{"n": number} for number in range(400, 500)])
        log.flush()
        got += [row["n"] for batch in batches for row in batch.to_pylist()]
        stream.close()
    assert got == sorted(set(got))
    assert set(range(30, 380)) - gone <= set(got) <= set(range(30, 380))


def test_a_compaction_that_nobody_remembers_ends_a_task(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    with Log(path, block_size=BLOCK) as log:
        offsets = log.append_many([{"n": number} for number in range(100)])
        log.flush()
        stream = stream_of(path)
        (part,) = stream.parts(stream.first(), stream.next(stream.first(), Limit()), slow=False)
        log.delete(offsets[0])
        log.compact()
    (log.sidecar / "moved-2").unlink()
    with pytest.raises(LogChanged, match="new checkpoint"):
        list(read_share(part, layout_of_n(stream.options), stream.options))
    stream.close()
    path.rename(tmp_path / "y.log")
    with pytest.raises(CopyDiffers, match="has no such file"):  # not a compaction, but another machine
        list(read_share(part, layout_of_n(stream.options), stream.options))


def test_a_place_whose_records_nobody_counted_is_not_known_after_a_compaction(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    with Log(path, block_size=BLOCK) as log:
        offsets = log.append_many([{"n": number} for number in range(100)])
        log.flush()
        stream = stream_of(path)
        place = stream.latest()
        assert stream.now(place) == place
        log.delete(offsets[0])
        log.compact()
        stream.latest()
        with pytest.raises(LogChanged, match="not known any more which records went"):
            stream.now(place)
        stream.close()


@pytest.mark.parametrize("records", [1, 7, 30, 1000])
@pytest.mark.parametrize("size", [1, 100, 600, 1 << 20])
def test_both_limits_at_once(tmp_path: Path, records: int, size: int) -> None:
    """A batch ends before the record that goes beyond either of them; one record it has."""
    path = tmp_path / "x.log"
    with Log(path, block_size=BLOCK) as log:
        offsets = log.append_many([{"n": number, "text": "x" * (number * 7 % 90)} for number in range(120)])
        log.flush()
        lengths = [len(log.get_raw(offset)) + 2 for offset in offsets]  # each with its header
    ends = [offset + length for offset, length in zip(offsets, lengths, strict=True)]
    stream = stream_of(path)
    place, seq = stream.first(), 0
    while seq < 120:
        stop = seq + 1
        while stop < 120 and stop - seq < records and ends[stop] - place.offset <= size:
            stop += 1
        place = stream.next(place, Limit(records, size))
        assert (place.seq, place.offset) == (stop, ends[stop - 1])
        seq = stop
    assert stream.next(place, Limit(records, size)) == place
    stream.close()


@pytest.mark.parametrize("hand_back", ["maxRecordsPerBatch", "maxBytesPerBatch", "nothing"])
def test_spark_hands_one_limit_back(tmp_path: Path, hand_back: str) -> None:
    """The batch keeps both; but where Spark wants all there is, all there is."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

    from jitdb.spark_ext.streaming.reader import LogStreamReader

    path = tmp_path / "x.log"
    with Log(path, block_size=BLOCK) as log:
        offsets = log.append_many([{"n": number} for number in range(100)])
    for records, size, expected in [(10, 1 << 20, 10), (90, offsets[20] + 1, 20), (10, offsets[20] + 1, 10)]:
        limits = {"maxRecordsPerBatch": str(records), "maxBytesPerBatch": str(size)}
        options = ReadOptions.of({"path": str(path), "columns": "n", **limits})
        layout = layout_of(table_schema(typed(options.columns or [], [{"n": 1}])), options.columns, ())
        reader = LogStreamReader(options, layout)
        limit = {
            "maxRecordsPerBatch": ReadMaxRows(records), "maxBytesPerBatch": ReadMaxBytes(size),
            "nothing": ReadAllAvailable(),
        }[hand_back]  # fmt: skip
        end = reader.latestOffset(reader.initialOffset(), limit)
        assert end["seq"] == (100 if hand_back == "nothing" else expected)
        end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
        assert end["seq"] == expected
        reader.stop()


@pytest.mark.parametrize("corrupt_blocks", ["error", "skip"])
@pytest.mark.parametrize("within", [0, 1, 100])
@pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")
def test_a_batch_that_ends_in_a_damaged_block(tmp_path: Path, corrupt_blocks: str, within: int) -> None:
    """It gives no record of it, though it reads a part of it only: first a length is damaged, then a record."""
    path = tmp_path / "x.log"
    with Log(path, block_size=BLOCK) as log:
        offsets = log.append_many([{"n": number} for number in range(200)])
    sound = path.read_bytes()
    for block in range(1, offsets[-1] // BLOCK):
        data = bytearray(sound)
        data[block * BLOCK + within] ^= 4
        damage(path, data)
        lost = [number for number, offset in enumerate(offsets) if offset // BLOCK == block]
        seen: list[dict[str, Any]] = []
        stream = stream_of(path, corruptBlocks=corrupt_blocks)
        if corrupt_blocks == "error":
            with pytest.raises(LogCorrupt, match=f"block {block} "):
                drain(stream, stream.first(), Limit(7), seen)
            assert [row["n"] for row in seen] == list(range(len(seen)))
            assert lost[0] - 7 < len(seen) <= lost[0]
        else:
            drain(stream, stream.first(), Limit(7), seen)
            assert [row["n"] for row in seen] == [number for number in range(200) if number not in lost]
        stream.close()


def test_blocks_beyond_64_kib(tmp_path: Path) -> None:
    """Their records have lengths of four bytes."""
    path = tmp_path / "x.log"
    with Log(path, block_size=1 << 18) as log:
        offsets = log.append_many([{"n": n, "text": "x" * (100_000 if n % 9 == 0 else 5)} for n in range(100)])
        log.flush()
        log.delete(offsets[18])
        log.flush()
        stream = stream_of(path, partitionBytes=1 << 18)
        for limit in (Limit(), Limit(7), Limit(None, 150_000), Limit(30, 300_000)):
            got: list[dict[str, Any]] = []
            drain(stream, stream.first(), limit, got)
            assert [(row["seq"], row["n"], row["offset"]) for row in got] == [
                (n, n, offsets[n]) for n in range(100) if n != 18
            ]
        stream.close()


def test_the_end_at_the_start_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    with Log(path, block_size=BLOCK) as log:
        log.append_many([{"n": number} for number in range(50)])
        log.flush()
        stream = stream_of(path)
        stream.stop_here()
        log.append_many([{"n": number} for number in range(50, 90)])
        log.flush()
        got: list[dict[str, Any]] = []
        place = drain(stream, stream.first(), Limit(20), got)
        assert [row["n"] for row in got] == list(range(50))
        stream.stop_here()
        drain(stream, place, Limit(20), got)
        assert [row["n"] for row in got] == list(range(90))
        stream.close()


def test_where_a_stream_begins(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    with Log(path, block_size=BLOCK) as log:
        offsets = log.append_many([{"n": number} for number in range(40)])
        log.flush()
        cursor = f"{log.identity.hex()}.{log.generation}.-1.{offsets[25]}"
        known = cursor.replace("-1", "25")
        of_an_empty_log = f"{'0' * 32}.1.0.0"  # which gets its identity with its first record
        for where, first in [("earliest", 0), ("latest", 40), (known, 25), (of_an_empty_log, 0)]:
            stream = stream_of(path, startingOffset=where)
            place = stream.first()
            assert place.seq == first
            assert [row["n"] for row in rows(stream, place, stream.latest())] == list(range(first, 40))
            stream.close()
        stream = stream_of(path, startingOffset=known.replace(log.identity.hex(), "0" * 32))
        with pytest.raises(LogChanged, match="another log"):
            stream.first()
        stream.close()
        stream = stream_of(path, startingOffset="yesterday")
        with pytest.raises(QueryError, match="startingOffset"):
            stream.first()
        stream.close()


def test_another_log_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    with Log(path, block_size=BLOCK) as log:
        log.append_many([{"n": number} for number in range(40)])
    stream = stream_of(path)
    place = stream.next(stream.first(), Limit(10))
    stream.close()
    with Log(tmp_path / "y.log", block_size=BLOCK) as log:
        log.append_many([{"n": number} for number in range(90)])
    other = stream_of(tmp_path / "y.log")
    with pytest.raises(LogChanged, match="new checkpoint"):
        other.next(place, Limit())
    with pytest.raises(LogChanged, match="older copy"):
        other.next(other.first()._replace(offset=1 << 40), Limit())
    with pytest.raises(LogChanged, match="not known any more"):
        other.next(other.first()._replace(generation=0, offset=BLOCK), Limit())
    other.close()


def test_polls_without_news_walk_the_log_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark asks for the place that it has, which is of before the compaction until there is something to read."""
    path = tmp_path / "x.log"
    walks: list[int] = []
    place_of = streaming.place_of
    monkeypatch.setattr(streaming, "place_of", lambda log, seq: (walks.append(seq), place_of(log, seq))[1])
    with Log(path, block_size=BLOCK) as log:
        log.append_many([{"n": number} for number in range(100)])
        log.flush()
        stream = stream_of(path)
        end = stream.next(stream.first(), Limit())
        for gone in (1, 2):
            log.delete(next(iter(log.stream())).offset)
            log.compact()
            assert [stream.next(end, Limit()) for _ in range(5)] == [end] * 5
            assert walks == [100 - number for number in range(1, gone + 1)]
        log.append_many([{"n": number} for number in range(100, 200)])
        log.flush()
        found = stream.next(end, Limit())
        assert [row["n"] for row in rows(stream, end, found)] == list(range(100, 200))
        assert len(walks) == 2
        stream.close()


def test_a_stream_without_news_outlives_any_number_of_compactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place is told anew, as an empty batch, before nobody knows any more which records went."""
    for module in (swap, streaming):
        monkeypatch.setattr(module, "KEPT", 8)
    path = tmp_path / "x.log"
    with Log(path, block_size=BLOCK) as log:
        offsets = log.append_many([{"n": number} for number in range(200)])
        log.flush()
        stream = stream_of(path)
        places = [stream.next(stream.first(), Limit())]
        for _ in range(18):
            log.delete(offsets[0])
            log.compact()
            offsets = [record.offset for record in log.stream()]
            place = stream.next(places[-1], Limit())
            if place != places[-1]:
                assert rows(stream, places[-1], place) == []
                places.append(place)
        assert len(places) == 1 + 18 // 4
        log.append_many([{"n": number} for number in range(200, 230)])
        log.flush()
        stream.close()
        stream = stream_of(path)  # another driver, which knows the checkpoint alone
        assert [row["n"] for row in rows(stream, places[-1], stream.next(places[-1], Limit()))] == list(range(200, 230))
        stream.close()


@pytest.mark.parametrize("cores", [1, 2, 3, 5])
def test_no_more_tasks_than_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    monkeypatch.setattr("jitdb.spark_ext.reading.planning.SMALLEST", BLOCK)
    with Log(tmp_path / "x.log", block_size=BLOCK) as log:
        log.append_many([{"n": number} for number in range(500)])
    stream = stream_of(tmp_path / "x.log", cores=cores)
    for records in (0, 7, 100, 333):
        start = stream.next(stream.first(), Limit(records)) if records else stream.first()
        assert (cores + 1) // 2 <= len(stream.parts(start, stream.latest(), slow=False)) <= cores
        assert [row["n"] for row in rows(stream, start, stream.latest())] == list(range(records, 500))
    stream.close()


class Refusing(osfile.FileSystem):
    """A folder that we may not write to."""

    def replace_file(self, path: Any, data: bytes) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))


def test_a_log_whose_sidecar_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.log"
    with Log(path) as log:
        log.append({"n": 1})
    for file in sorted(log.sidecar.rglob("*"), reverse=True):
        file.unlink()
    log.sidecar.rmdir()
    monkeypatch.setattr(osfile, "fs", Refusing())
    with pytest.raises(SparkError, match="cannot be written"):
        stream_of(path)


def test_an_empty_log_of_another_program(tmp_path: Path) -> None:
    (tmp_path / "x.log").touch()
    with pytest.raises(SparkError, match="it is empty and another program made it"):
        stream_of(tmp_path / "x.log")


def test_a_checkpoint_of_something_else() -> None:
    with pytest.raises(QueryError, match="no place in a log"):
        LogStream.of_offset({"index": 3})
