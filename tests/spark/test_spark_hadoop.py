"""prebuild() of a log that Hadoop reads: by a file:// URI, and by SFTP from a server on loopback."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import QUESTIONS, check, make_log, messages, oracle_of
from range_cases import damage, files_of, merged_files

import jitdb
from jitdb import Log
from jitdb.errors import LogError, LogWarning
from jitdb.spark_ext import prebuild
from jitdb.spark_ext.building import hadoop
from jitdb.spark_ext.building import prebuild as prebuilding
from jitdb.spark_ext.building.hadoop import size_for
from jitdb.spark_ext.errors import SparkError

BLOCK = 4096
SMALL = 20 * BLOCK  # bytes of a task


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make_log(tmp_path / "x.log", 3000)
    return tmp_path / "x.log"


def expected(path: Path) -> dict[str, bytes]:
    with Log(path, read_only=True) as log:
        return merged_files(log, path.parent / f"local {len(list(path.parent.iterdir()))}", QUESTIONS)


@pytest.mark.parametrize("edge", [hadoop.EDGE, 3 * BLOCK], ids=["fetched whole", "fetched sparse"])
def test_the_same_files(spark: Any, path: Path, edge: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hadoop, "EDGE", edge)
    summary = prebuild(spark, path.as_uri(), operations=QUESTIONS, range_bytes=SMALL)
    assert summary.tasks == -(-path.stat().st_size // SMALL)
    assert summary.path == path.as_uri()
    folder = path.parent / "x.log.jitdb" / "indexes"
    assert files_of(folder) == expected(path)
    with Log(path) as log:
        log.append_many(messages(400, first=3000))
    assert prebuild(spark, path.as_uri(), operations=QUESTIONS).records == 400
    assert files_of(folder) == expected(path)
    assert prebuild(spark, path.as_uri(), operations=QUESTIONS).tasks == 0
    with jitdb.open(path) as db:
        assert db.explain(QUESTIONS[4])["scan_bytes"] == 0
        check(db, oracle_of(db.log), QUESTIONS[:6])


def test_only_what_a_prebuild_extends_is_fetched(spark: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prebuild(spark, os.fspath(path), operations=QUESTIONS)
    fetched: list[Path] = []
    fetch = hadoop.Remote.fetch
    monkeypatch.setattr(
        hadoop.Remote, "fetch", lambda remote, name, target: (fetch(remote, name, target), fetched.append(target))[0]
    )
    sizes: list[int] = []
    build = prebuilding._build
    monkeypatch.setattr(
        prebuilding, "_build", lambda *args: (sizes.extend(each.stat().st_size for each in fetched), build(*args))[1]
    )
    with Log(path) as log:
        log.append_many(messages(100, first=3000))
    assert prebuild(spark, path.as_uri(), fields=["value.author"]).records == 100
    indexes = path.parent / "x.log.jitdb" / "indexes"
    every = sum(each.stat().st_size for each in indexes.glob("*.index"))
    names = sorted(each.name.partition("_")[0].partition(".")[0] for each in fetched if each.suffix == ".index")
    assert names == ["deleted", "offsets", "timestamp", "value"]
    assert len(list(indexes.glob("*.index"))) > 2 * len(names)
    assert sum(sizes) < every / 2


def test_tasks_are_as_large_as_of_a_shared_path(spark: Any, tmp_path: Path) -> None:
    """Hadoop calls 32 MiB of this disk a block, which would be ten tasks; each task more costs merging."""
    size = 320 << 20
    with open(tmp_path / "x.log", "wb") as file:
        file.truncate(size)
    remote = hadoop.Remote(spark.sparkContext, (tmp_path / "x.log").as_uri())
    _, splits = remote.splits(1 << 16, None)
    assert len(splits) == size // size_for(size, spark.sparkContext.defaultParallelism) == 8
    assert splits == list(range(0, size, size // 8))
    assert len(remote.splits(1 << 16, 64 << 20)[1]) == 5


def test_a_log_without_a_sidecar_gets_one(spark: Any, path: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone" / "y.log"
    alone.parent.mkdir()
    alone.write_bytes(path.read_bytes())
    os.utime(alone, ns=(0, 1_700_000_000_123 * 1_000_000))  # as Hadoop knows it
    prebuild(spark, alone.as_uri(), fields=["value.author"], block_size=BLOCK)
    assert len(files_of(alone.parent / "y.log.jitdb" / "indexes")) == 4
    assert sorted(each.name for each in alone.parent.iterdir() if each.suffix != ".crc") == ["y.log", "y.log.jitdb"]
    with jitdb.open(alone) as db:
        assert db.explain(QUESTIONS[3])["scan_bytes"] == 0


def test_a_damaged_block(spark: Any, path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[33 * BLOCK + 200] ^= 4
    damage(path, data)
    with pytest.warns(LogWarning, match="block 33 is damaged"):
        summary = prebuild(spark, path.as_uri(), operations=QUESTIONS, range_bytes=SMALL)
    assert summary.damaged == (33,)
    with pytest.warns(LogWarning, match="block 33"):
        assert files_of(path.parent / "x.log.jitdb" / "indexes") == expected(path)


def test_what_cannot_be_read(spark: Any, path: Path) -> None:
    with pytest.raises(LogError, match="there is no such file"):
        prebuild(spark, path.as_uri() + "x", fields=["a"])
    with pytest.raises(SparkError, match=r'no-such://x/y\.log: cannot be reached .*No FileSystem for scheme "no-such"'):
        prebuild(spark, "no-such://x/y.log", fields=["a"])
    with open(path, "ab") as file:
        file.write(b"\0" * 100)
    with pytest.raises(SparkError, match="no whole number of blocks of 4,096"):
        prebuild(spark, path.as_uri(), fields=["a"])


class Server:
    """Serves a folder by SFTP on loopback, from a thread. To Hadoop it is a file system without locks, whose blocks
    are of 4 KiB, and whose rename takes the place of nothing.
    """

    def __init__(self, folder: Path) -> None:
        asyncssh = pytest.importorskip("asyncssh")
        server = self
        self.is_read_only = False

        class Login(asyncssh.SSHServer):
            def password_auth_supported(self) -> bool:
                return True

            def validate_password(self, username: str, password: str) -> bool:
                return (username, password) == ("ada", "secret")

        class Files(asyncssh.SFTPServer):
            def open(self, path: bytes, pflags: int, attrs: Any) -> Any:
                if server.is_read_only and pflags & asyncssh.FXF_WRITE:
                    raise asyncssh.SFTPPermissionDenied("you may read only")
                return super().open(path, pflags, attrs)

        async def listen() -> Any:
            key = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
            return await asyncssh.listen(
                "127.0.0.1", 0, server_factory=Login, server_host_keys=[key],
                sftp_factory=lambda channel: Files(channel, chroot=os.fsencode(folder)),
            )  # fmt: skip

        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._listener = asyncio.run_coroutine_threadsafe(listen(), self._loop).result(30)
        self.uri = f"sftp://ada:secret@127.0.0.1:{self._listener.get_port()}"

    def close(self) -> None:
        async def end() -> None:
            self._listener.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}  # Hadoop keeps its connections
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def server(spark: Any, tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    spark.sparkContext._jsc.hadoopConfiguration().set("fs.sftp.impl", "org.apache.hadoop.fs.sftp.SFTPFileSystem")
    yield made
    made.close()


def test_a_server_of_files(spark: Any, server: Server, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hadoop, "EDGE", 3 * BLOCK)
    uri = f"{server.uri}/x.log"
    assert prebuild(spark, uri, operations=QUESTIONS, range_bytes=3 * SMALL).tasks == 2
    folder = path.parent / "x.log.jitdb" / "indexes"
    assert files_of(folder) == expected(path)
    with Log(path) as log:
        log.append_many(messages(400, first=3000))
    summary = prebuild(spark, uri, operations=QUESTIONS)  # which replaces the files that are there
    assert (summary.records, summary.tasks) == (400, 1)
    assert files_of(folder) == expected(path)
    assert not [each.name for each in folder.iterdir() if each.suffix == ".tmp"]

    server.is_read_only = True
    with pytest.raises(SparkError, match=r"x\.log\.jitdb/indexes: cannot be written \(.*you may read only"):
        prebuild(spark, uri, fields=["a"])
    elsewhere = path.parent / "elsewhere"
    prebuild(spark, uri, operations=QUESTIONS, folder=elsewhere)
    assert files_of(elsewhere) == expected(path)

    with pytest.raises(LogError, match="there is no such file"):
        prebuild(spark, f"{server.uri}/y.log", fields=["a"])
    with pytest.raises(SparkError, match=r"x\.log: cannot be reached \(.*Auth fail"):
        prebuild(spark, uri.replace("secret", "guess"), fields=["a"])


def test_a_file_system_that_cannot_seek(spark: Any, path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=os.fspath(path.parent))) as web:
        threading.Thread(target=web.serve_forever).start()
        try:
            uri = f"http://127.0.0.1:{web.server_port}/x.log"
            with pytest.raises(SparkError, match=r"x\.log: cannot be read in parts, which each task must"):
                hadoop.Remote(spark.sparkContext, uri).read(0, 2)
            with pytest.raises(SparkError, match=r"x\.log.*: cannot be "):
                prebuild(spark, uri, fields=["a"])
        finally:
            web.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and tells nobody."""

    def log_message(self, format: str, *args: Any) -> None:
        del format, args
