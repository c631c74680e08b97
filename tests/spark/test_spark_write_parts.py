"""Writing without Spark: attempts, parts that are not what was written, and crashes while one log replaces another."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from thoroughness import tries

from jitdb import Log
from jitdb.errors import LogError, LogLocked, LogWarning, QueryError
from jitdb.log.io import osfile

pytest.importorskip("pyarrow")

from jitdb.log.codecs import get_codec
from jitdb.spark_ext.errors import SparkError
from jitdb.spark_ext.options import WriteOptions
from jitdb.spark_ext.writing import job as writing
from jitdb.spark_ext.writing.encoding import Encoded, RowEncoder, Target, Written, write_partition
from jitdb.spark_ext.writing.job import begin, clean_up, commit, kept_by


def rows(first: int, count: int) -> list[dict[str, int]]:
    return [{"n": number} for number in range(first, first + count)]


def numbers(path: Path) -> list[int]:
    with Log(path) as log:
        assert log.verify().ok
        return [record.value["n"] for record in log.stream()]


def job(
    path: Path, *, overwrite: bool = False, parts: int = 3, codec: str | None = None
) -> tuple[Target, list[Written]]:
    target = begin(str(path), f"{parts}", codec, 256, overwrite)
    return target, [write_partition(target, number, "0", rows(100 * number, 20)) for number in range(parts)]


def in_order(parts: int) -> list[int]:
    return [n for number in range(parts) for n in range(100 * number, 100 * number + 20)]


@pytest.mark.parametrize("codec", ["msgpack", "bipf"])
def test_parts_in_order_and_one_attempt_of_each(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "x.log"
    target, parts = job(path, codec=codec)
    write_partition(target, 1, "1", rows(5000, 7))  # came second
    empty = write_partition(target, 3, "0", [])
    assert commit(target, [empty, *reversed(parts)]) == 60
    assert numbers(path) == in_order(3)
    target = begin(str(path), "more", None, None, False)
    commit(target, [write_partition(target, 0, "0", rows(7, 3))])
    assert numbers(path) == [*in_order(3), 7, 8, 9]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.log", "x.log.jitdb"]


@pytest.mark.parametrize("block_size", [1, 15, (16 << 20) + 1, 1 << 30])
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_block_size_that_no_log_can_have(tmp_path: Path, block_size: int, overwrite: bool) -> None:
    with pytest.raises(LogError, match=rf"block_size {block_size} is outside 16 bytes to 16,777,216"):
        begin(str(tmp_path / "x.log"), "job", None, block_size, overwrite)
    assert list(tmp_path.iterdir()) == []


def test_no_place_for_the_files_of_a_job(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for missing, why in (("no/such", "No such file"), ("file", "Not a directory")):
        path = tmp_path / missing / "x.log"
        with pytest.raises(SparkError, match=rf"x\.log\.spark-job: .*cannot be made \({why}.*{missing} must be there"):
            begin(str(path), "job", None, None, False)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_path_of_this_machine_and_a_uri() -> None:
    for text in ("/a/x.log", "file:/a/x.log", "file:///a/x.log"):
        assert WriteOptions.of({"path": text}).path == "/a/x.log"
    for text in ("file://host/a/x.log", "hdfs://host/a/x.log", "s3a://bucket/x.log"):
        with pytest.raises(QueryError, match=f"{text}: a log is read and written at a path"):
            WriteOptions.of({"path": text})


def test_a_part_that_fails_leaves_no_file(tmp_path: Path) -> None:
    target = begin(str(tmp_path / "x.log"), "job", None, 256, False)

    def some() -> Any:
        yield {"n": 1}
        raise RuntimeError("the plug was pulled")

    with pytest.raises(RuntimeError, match="plug"):
        write_partition(target, 0, "0", some())
    with pytest.raises(SparkError, match="row 1 of its partition"):
        write_partition(target, 0, "1", [{"n": 1}, {"n": {1, 2}}])
    with pytest.raises(SparkError, match="hold 252 at most"):
        write_partition(target, 0, "2", [{"n": "x" * 300}])
    assert list(Path(target.folder).iterdir()) == []
    clean_up(target)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A write that is cut short says nothing; the next one fails."""
    target = begin(str(tmp_path / "x.log"), "job", None, 256, False)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(SparkError, match=r"x\.log\.spark-job/part-000000-0: .*too large"):
            write_partition(target, 0, "0", rows(0, 500))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(Path(target.folder).glob("part*"))


@pytest.mark.parametrize("damage", ["flipped", "short", "gone"])
def test_a_part_that_is_not_what_was_written(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "x.log"
    commit(*job(path))
    target, parts = job(path, parts=2)
    file = Path(target.folder) / parts[1].name
    data = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(data[:-1] if damage == "short" else data[:50] + bytes([data[50] ^ 1]) + data[51:])
    with pytest.raises(SparkError, match="does not see" if damage == "gone" else "expected"):
        commit(target, parts)
    assert numbers(path) == in_order(3)
    assert not Path(target.folder).exists()


class Failing(osfile.FileSystem):
    """The disk fails at one of the calls that change something, and at all after it."""

    SYNCS = ("fsync", "fdatasync", "sync_folder")
    CHANGES = ("write", "write_file", "replace_file", "rename", "unlink", "truncate", *SYNCS)

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at
        for name in self.CHANGES:
            setattr(self, name, self._guarded(getattr(super(), name)))

    def _guarded(self, change: Any) -> Any:
        def call(*args: Any, **given: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.EIO, "the disk is gone")
            return change(*args, **given)

        return call


@pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")
@pytest.mark.parametrize("overwrite", [True, False])
def test_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool) -> None:
    """Whatever call fails, the log is the old one or the new one, whole."""
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda fd: None)  # nothing waits for the disk
    real = osfile.fs
    new = in_order(8) if overwrite else in_order(3) + in_order(8)
    found = set()
    for at in range(0, 1000, tries(3, 1)):
        path = tmp_path / f"{at}.log"
        commit(*job(path))
        target, parts = job(path, overwrite=overwrite, parts=8)
        monkeypatch.setattr(osfile, "fs", Failing(at))
        try:
            commit(target, parts)
            done = True
        except (LogError, OSError):
            done = False
        finally:
            monkeypatch.setattr(osfile, "fs", real)
        seen = numbers(path)
        assert seen in (in_order(3), new), at
        found.add(len(seen))
        if done:
            assert seen == new
            break
    assert found == {60, len(new)}
    assert at > 10


# --- two jobs, one log -----------------------------------------------------------------------------------------------


def test_two_jobs_that_make_one_log(tmp_path: Path) -> None:
    """Both began when there was no log: the second is put behind the first."""
    path = tmp_path / "x.log"
    first = job(path, parts=2)
    second = job(path, parts=3)
    commit(*first)
    commit(*second)
    assert numbers(path) == in_order(2) + in_order(3)


def test_a_job_that_commits_while_another_fills_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.log"
    target, parts = job(path, parts=2)
    batches = writing._batches

    def slow(*args: Any) -> Iterator[list[bytes]]:
        monkeypatch.undo()
        commit(*job(path, parts=3))
        yield from batches(*args)

    monkeypatch.setattr(writing, "_batches", slow)
    commit(target, parts)
    assert numbers(path) == in_order(3) + in_order(2)


@pytest.mark.parametrize("overwrite", [True, False])
def test_two_jobs_that_commit_at_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool) -> None:
    """The second waits for the log's lock: its work is done, and would be lost."""
    path = tmp_path / "x.log"
    commit(*job(path))
    first, second = job(path, parts=2), job(path, parts=4, overwrite=overwrite)
    packing, waiting = threading.Event(), threading.Event()
    append_whole, sleep = Log.append_whole, writing.time.sleep

    def slow(log: Log, *args: Any) -> Any:
        monkeypatch.setattr(Log, "append_whole", append_whole)
        packing.set()
        assert waiting.wait(30)
        return append_whole(log, *args)

    monkeypatch.setattr(Log, "append_whole", slow)
    monkeypatch.setattr(writing.time, "sleep", lambda seconds: (waiting.set(), sleep(seconds)))
    with ThreadPoolExecutor(2) as pool:
        ahead = pool.submit(commit, *first)
        assert packing.wait(30)
        behind = pool.submit(commit, *second)
        assert (ahead.result(), behind.result()) == (40, 80)
    assert numbers(path) == (in_order(4) if overwrite else in_order(3) + in_order(2) + in_order(4))


def test_a_writer_that_is_no_job_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.log"
    commit(*job(path))
    monkeypatch.setattr(writing, "_PATIENCE", 1000.0)
    with Log(path), pytest.raises(LogLocked):
        commit(*job(path))
    monkeypatch.setattr(writing, "_PATIENCE", 0.0)
    begin(str(path), "other", None, None, False)
    with Log(path), pytest.raises(LogLocked):
        commit(*job(path))
    assert numbers(path) == in_order(3)


def test_records_of_one_codec_never_get_into_a_log_of_another(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    target, parts = job(path, codec="bipf")
    commit(*job(path, codec="msgpack", parts=2))
    with pytest.raises(SparkError, match="expected msgpack records, got bipf"):
        commit(target, parts)
    assert numbers(path) == in_order(2)
    assert not Path(target.folder).exists()


def test_an_overwrite_keeps_who_may_read_the_log(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    commit(*job(path))
    path.chmod(0o600)
    commit(*job(path, overwrite=True, parts=2))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert numbers(path) == in_order(2)


def test_a_folder_that_stays_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records are in the log: who was told that the job failed would write them again."""
    path = tmp_path / "x.log"
    target, parts = job(path)
    monkeypatch.setattr(shutil, "rmtree", lambda *args, **options: None)
    with pytest.warns(LogWarning, match="can be removed"):
        assert commit(target, parts) == 60
    assert numbers(path) == in_order(3)


# --- what a driver left that died ------------------------------------------------------------------------------------


def left_by(process: subprocess.Popen[bytes], path: Path, name: str) -> Path:
    """The folder of a job that this process keeps alive."""
    folder = path.with_name(f"{path.name}.spark-{name}")
    folder.mkdir()
    kept_by(str(folder), process.pid)
    (folder / "part-000000-0").write_bytes(b"rows")
    return folder


def test_what_a_dead_driver_left_goes_with_the_next_job(tmp_path: Path) -> None:
    path = tmp_path / "x[1].log"
    with subprocess.Popen(["sleep", "600"]) as alive, subprocess.Popen(["sleep", "600"]) as dead:
        stays = left_by(alive, path, "alive")
        both = left_by(dead, path, "both")
        kept_by(str(both), alive.pid)  # the driver died, who commits goes on
        goes = left_by(dead, path, "dead")
        torn = left_by(dead, path, "torn")
        with (torn / "kept-by").open("a") as file:
            file.write('{"place"')
        unknown = tmp_path / f"{path.name}.spark-unknown"
        unknown.mkdir()
        other = left_by(dead, tmp_path / "x1.log", "other")
        elsewhere = left_by(dead, path, "elsewhere")
        said = json.loads((elsewhere / "kept-by").read_text())
        (elsewhere / "kept-by").write_text(json.dumps({**said, "place": "another machine"}))
        reused = left_by(alive, path, "reused")
        said = json.loads((reused / "kept-by").read_text())
        (reused / "kept-by").write_text(json.dumps({**said, "start": said["start"] - 1}))
        dead.kill()
        dead.wait()
        commit(*job(path))
        assert not goes.exists()
        assert not reused.exists()
        assert all(folder.exists() for folder in (stays, both, torn, unknown, other, elsewhere))
        alive.kill()
    assert numbers(path) == in_order(3)


def test_a_job_whose_driver_dies_while_it_commits_is_kept_by_who_commits(tmp_path: Path) -> None:
    target, parts = job(tmp_path / "x.log")
    with subprocess.Popen(["sleep", "600"]) as driver:
        kept_by(target.folder, driver.pid)
        driver.kill()
    check = writing._check

    def while_it_commits(*args: Any) -> None:
        begin(target.path, "next", None, None, False)
        check(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "_check", lambda *args: (patch.undo(), while_it_commits(*args)))
        assert commit(target, parts) == 60


def test_dates_that_python_cannot_hold() -> None:
    import pyarrow as pa

    for kind, value in [
        (pa.date32(), 4_000_000),
        (pa.list_(pa.timestamp("us")), [400_000 * 10**12]),
    ]:
        numbers_of = pa.list_(pa.int64()) if pa.types.is_list(kind) else pa.int32()
        batch = pa.record_batch({"when": pa.array([value], numbers_of).cast(kind)})
        encoder = RowEncoder(batch.schema, False)
        for rows_of in (encoder.values, lambda some, made=encoder: made.rows(some, get_codec("msgpack"))):
            with pytest.raises(SparkError, match="column 'when' holds a date"):
                list(rows_of(batch))


def test_rows_that_wait_to_be_appended_are_as_open_as_the_log(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with Log(path) as log:
        log.append({"text": "secret"})
    path.chmod(0o600)
    target = begin(str(path), "1", None, None, False)
    assert stat.S_IMODE(Path(target.folder).stat().st_mode) == 0o700


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_many_rows_at_once_are_what_each_is_alone(tmp_path: Path, codec: str) -> None:
    import pyarrow as pa

    texts = ["", "a", 'q"uote', "new\nline", "é, \u2028", "1", "null", ",", None, "\x00\x1f\\"]
    micros = [0, 1_500_000, -1_000, 1, -1, 1 << 52, None, 999, 1_000, 10**15]
    batch = pa.RecordBatch.from_pydict(
        {
            "text": texts,
            "b": [True, False, None] * 3 + [True],
            "i": pa.array([0, -1, 2**63 - 1, -(2**63), None, 1, 2, 3, 4, 5], pa.int64()),
            "small": pa.array([None] * 10, pa.int8()),
            "d": [0.1, 1.0, -0.0, 1e300, 5e-324, None, float("inf"), float("-inf"), 2.5, 1e16],
            "f": pa.array([0.1, 1, 2, 3, 4, 5, 6, 7, 8, None], pa.float32()),
            "t": pa.array(micros, pa.timestamp("us", "UTC")),
            "s": pa.array([each and each // 1_000_000 for each in micros], pa.timestamp("s")),
            "day": pa.array([0, -1, 20_000, None, -719_162, 2_932_896, 1, 2, 3, 4], pa.int32()).cast(pa.date32()),
            "a.b": range(10),
        }
    )
    for some in (batch, batch.slice(3, 4), batch.slice(8, 1), batch.slice(2, 0)):
        target = begin(str(tmp_path / "x.log"), "1", codec, 4096, True)
        encoder = RowEncoder(batch.schema, False)
        found = list(encoder.rows(some, target.find_codec()))
        assert all(isinstance(each, Encoded) for each in found)
        commit(target, [write_partition(target, 0, "0", found)])
        with Log(tmp_path / "x.log", read_only=True) as log:
            records = [record.value for record in log.stream()]
        assert records == list(encoder.values(some))


def test_rows_that_are_not_flat_are_encoded_one_by_one(tmp_path: Path) -> None:
    import pyarrow as pa

    target = begin(str(tmp_path / "x.log"), "1", "json", 256, True)
    batch = pa.RecordBatch.from_pydict({"a": [[1], None], "b": ["x", "y"]})
    found = list(RowEncoder(batch.schema, False).rows(batch, target.find_codec()))
    assert found == [{"a": [1], "b": "x"}, {"b": "y"}]
    clean_up(target)
    flat = pa.RecordBatch.from_pydict({"b": ["x", "y" * 300]})
    for codec, size in (("json", 308), ("msgpack", 306)):
        target = begin(str(tmp_path / "x.log"), "1", codec, 256, True)
        with pytest.raises(SparkError, match=f"row 1 of its partition is a record of {size} bytes"):
            write_partition(target, 0, "0", RowEncoder(flat.schema, False).rows(flat, target.find_codec()))
        clean_up(target)


def test_a_job_that_dies_while_its_folder_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next job removes the rest, for what says whose it was goes last."""
    for dies_at in range(1, 30):
        target = begin(str(tmp_path / "x.log"), str(dies_at), None, None, False)
        with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
            kept_by(target.folder, process.pid)
        for number in range(8):
            Path(target.folder, f"part-{number}").write_bytes(b"x")
        Path(target.folder, "scratch.log.jitdb").mkdir()
        Path(target.folder, "scratch.log.jitdb", "commit").write_bytes(b"x")
        left = dies_at

        def dying(call: Any) -> Any:
            def counted(*arguments: Any, **named: Any) -> Any:
                nonlocal left
                left -= 1
                if not left:
                    raise KeyboardInterrupt
                return call(*arguments, **named)

            return counted

        with monkeypatch.context() as patched:
            for name in ("unlink", "rmdir"):
                patched.setattr(os, name, dying(getattr(os, name)))
            try:
                clean_up(target)
            except KeyboardInterrupt:
                assert Path(target.folder).is_dir()
            else:
                break
        os.utime(target.folder, (0, 0))
        writing.remove_leftovers(target.path, time.time())
        assert not Path(target.folder).exists(), dies_at
    assert not Path(target.folder).exists()
    assert dies_at == 13  # after eight parts, a file and its folder, what goes last, and the folder
