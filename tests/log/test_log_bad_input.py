"""Files that are no logs, or not in the way they are opened: a clear error, and the file as it was."""

from __future__ import annotations

import errno
import json
import os
import random
import warnings
from pathlib import Path
from typing import Any

import msgpack
import pytest

from jitdb.errors import CodecError, LogError, LogReadOnly, LogWarning, NotALog
from jitdb.log import Log
from jitdb.log.codecs import Codec
from jitdb.log.io import osfile

pytestmark = pytest.mark.slow

RECORDS = [msgpack.packb({"number": number, "text": "x" * (number % 200)}) for number in range(400)]


def write_blocks(path: Path, block_size: int, records: list[bytes] = RECORDS) -> Path:
    """A log without a sidecar."""
    with Log(path, codec="raw", block_size=block_size) as log:
        log.append_many(records)
    for each in (path.parent / f"{path.name}.jitdb").iterdir():
        each.unlink()
    (path.parent / f"{path.name}.jitdb").rmdir()
    return path


def refused(path: Path, match: str, **options: Any) -> NotALog:
    """Opening it raises NotALog either way, changes nothing, and leaves nothing beside it."""
    before = path.read_bytes()
    names = sorted(os.listdir(path.parent))
    for read_only in (False, True):
        with pytest.raises(NotALog, match=match) as caught:
            Log(path, read_only=read_only, **options)
        assert caught.value.path == os.path.realpath(path)
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == names
    return caught.value


@pytest.mark.parametrize("size", [1, 100, 4096, 65535, 65536, 65537, 200_000, 3 * 65536])
def test_random_bytes(tmp_path: Path, size: int) -> None:
    for seed in range(10):
        path = tmp_path / "random.bin"
        path.write_bytes(random.Random(seed).randbytes(size))
        for options in (
            {},
            {"codec": "raw"},
            {"codec": "bipf"},
            {"block_size": 65536},
            {"codec": "raw", "block_size": 512},
        ):
            refused(path, "no log of jitdb|is a text file|JSON text", **options)


@pytest.mark.parametrize("lines", [1, 10, 1000, 20_000])
def test_ndjson(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "events.ndjson"
    path.write_text(
        "".join(json.dumps({"number": number, "text": "é"}, ensure_ascii=False) + "\n" for number in range(lines))
    )
    for options in ({}, {"codec": "raw"}, {"codec": "bipf", "block_size": 65536}):
        refused(path, r"jitdb import \S*events\.ndjson \S*events\.log", **options)
    path.write_text(json.dumps([{"a": 1}]))
    refused(path, "jitdb import")


def test_text(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary,\n" * 20_000)
    refused(path, "text file")
    refused(path, "text file", codec="raw")


@pytest.mark.parametrize("made", [4096, 16384, 65536])
@pytest.mark.parametrize("given", [512, 4096, 32768, 65536, 1 << 17])
def test_wrong_block_size(tmp_path: Path, made: int, given: int) -> None:
    path = write_blocks(tmp_path / "a.log", made, RECORDS * 10)
    if made == given:
        with Log(path, block_size=given, read_only=True) as log:
            assert log.codec.name == "msgpack"
    else:
        error = refused(path, f"{given:,}", block_size=given)
        assert f"block_size={made}" in str(error)


def test_wrong_block_size_where_the_sidecar_knows(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", block_size=4096) as log:
        log.append({"a": 1})
    refused(tmp_path / "a.log", "4,096 bytes, not of 65,536", block_size=65536)


@pytest.mark.parametrize("block_size", [4096, 8192, 65536, 1 << 18, 1 << 20])
def test_block_sizes_are_found(tmp_path: Path, block_size: int) -> None:
    path = write_blocks(tmp_path / "a.log", block_size, RECORDS * 20)
    with Log(path, read_only=True) as log:
        assert (log.block_size, log.codec.name) == (block_size, "msgpack")
        assert sum(1 for _ in log.stream()) == 8000


def test_wrong_codec(tmp_path: Path) -> None:
    path = write_blocks(tmp_path / "a.log", 65536)
    refused(path, "not bipf.*codec='msgpack'", codec="bipf")
    with Log(path, codec="msgpack") as log:
        log.append({"more": 1})
    refused(path, "are msgpack, not bipf", codec="bipf")
    with Log(path, codec="raw", read_only=True) as log:
        assert log.get(0) == RECORDS[0]
    with Log(path) as log:
        assert log.codec.name == "msgpack"


def test_codec_that_cannot_be_told(tmp_path: Path) -> None:
    path = write_blocks(tmp_path / "a.log", 65536, [b"just bytes", b"and more of them"])
    refused(path, "pass codec=")
    with Log(path, codec="raw") as log:
        assert log.get(0) == b"just bytes"
    with Log(path) as log:
        assert log.codec.name == "raw"


def test_unknown_codec(tmp_path: Path) -> None:
    with pytest.raises(CodecError, match="there is no codec"):
        Log(tmp_path / "a.log", codec="yaml")
    assert os.listdir(tmp_path) == []


def test_a_codec_of_ones_own(tmp_path: Path) -> None:
    from jitdb.log.codecs import get_codec

    class Upper(type(get_codec("raw"))):  # type: ignore[misc]
        name = "upper"

        def encode(self, value: str) -> bytes:
            return value.upper().encode()

        def decode(self, record: Any) -> str:
            return bytes(record).decode()

    codec: Codec = Upper()
    with Log(tmp_path / "a.log", codec=codec) as log:
        log.append("hello")
    with Log(tmp_path / "a.log", codec=codec) as log:
        assert log.get(0) == "HELLO"
    with pytest.raises(CodecError, match="upper"):
        Log(tmp_path / "a.log")
    with Log(tmp_path / "a.log", codec="raw", read_only=True) as log:
        assert log.get(0) == b"HELLO"


def test_empty_log_changes_its_mind(tmp_path: Path) -> None:
    """Until there are records, codec and block size can be given anew."""
    path = tmp_path / "a.log"
    Log(path).close()
    with Log(path, codec="bipf", block_size=4096) as log:
        assert (log.codec.name, log.block_size) == ("bipf", 4096)
        log.append({"a": 1})
    with Log(path) as log:
        assert (log.codec.name, log.block_size) == ("bipf", 4096)
        assert log.get(0) == {"a": 1}


def test_another_program_fills_an_empty_log(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    Log(path, codec="bipf").close()
    content = write_blocks(tmp_path / "b.log", 4096).read_bytes()
    path.write_bytes(content)
    for read_only in (True, False):
        with Log(path, read_only=read_only) as log:
            assert (log.codec.name, log.block_size) == ("msgpack", 4096)
            assert sum(1 for _ in log.stream()) == 400


def test_a_reader_watches_an_empty_file_become_a_log(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.touch()
    with Log(path, read_only=True) as log:
        assert (log.since, list(log.stream())) == (-1, [])
        assert not log.refresh()
        path.write_bytes(write_blocks(tmp_path / "b.log", 4096).read_bytes())
        assert log.refresh()
        assert (log.codec.name, log.block_size) == ("msgpack", 4096)
        assert sum(1 for _ in log.stream()) == 400


def test_short_tail(tmp_path: Path) -> None:
    """A file whose size is no multiple of the block size: whole records are read, a writer repairs."""
    path = write_blocks(tmp_path / "a.log", 4096)
    content = path.read_bytes()
    with Log(path, read_only=True, block_size=4096) as log:
        offsets = [record.offset for record in log.stream()]
    at = offsets[-5]
    path.write_bytes(content[: at + 7])  # in the middle of the record, and of a block
    (tmp_path / "a.log.jitdb" / "meta").unlink()
    (tmp_path / "a.log.jitdb" / "commit").unlink()
    with Log(path, read_only=True, block_size=4096) as log:
        assert [record.offset for record in log.stream()] == offsets[:-5]
    with pytest.warns(LogWarning, match=f"torn-{at}-0"):
        log = Log(path)
    with log:
        assert [record.offset for record in log.stream()] == offsets[:-5]
        assert path.stat().st_size % 4096 == 0


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(NotALog, match="no such file"):
        Log(tmp_path / "a.log", read_only=True)
    with pytest.raises(NotALog, match=r"folder .* does not exist"):
        Log(tmp_path / "missing" / "a.log")
    assert os.listdir(tmp_path) == []


def test_a_folder(tmp_path: Path) -> None:
    for read_only in (True, False):
        with pytest.raises(NotALog, match="a folder"):
            Log(tmp_path, read_only=read_only)


def test_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotALog, match="not a regular file"):
        Log(tmp_path / "pipe")


def test_links_lead_to_one_log(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "link.log").symlink_to(tmp_path / "deep" / "a.log")
    with Log(tmp_path / "link.log") as log:
        assert log.path == (tmp_path / "deep" / "a.log").resolve()
        with pytest.raises(LogError, match="open for writing"):
            Log(tmp_path / "deep" / "a.log")


class ReadOnlyFolder(osfile.FileSystem):
    """As if mounted read-only."""

    def open(self, path: Any, flags: int, mode: int = 0o666) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return super().open(path, flags, mode)

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_blocks(tmp_path / "a.log", 4096)
    monkeypatch.setattr(osfile, "fs", ReadOnlyFolder())
    identities = set()
    for _ in range(2):
        with Log(path, read_only=True) as log:
            assert not log.identity_is_stored
            assert sum(1 for _ in log.stream()) == 400
            identities.add(log.identity)
            assert not log.refresh()
    assert len(identities) == 1
    assert os.listdir(tmp_path) == ["a.log"]
    with pytest.raises(LogReadOnly, match="read_only=True"):
        Log(path)


class Forbidden(osfile.FileSystem):
    def open(self, path: Any, flags: int, mode: int = 0o666) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_blocks(tmp_path / "a.log", 4096)
    monkeypatch.setattr(osfile, "fs", Forbidden())
    with pytest.raises(LogError, match="Permission denied"):
        Log(path, read_only=True)
    with pytest.raises(LogReadOnly, match="may not be written"):
        Log(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_no_permission_for_real(tmp_path: Path) -> None:
    path = write_blocks(tmp_path / "a.log", 4096)
    path.chmod(0o644)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        if str(folder) != "/":
            folder.chmod(0o755)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setuid(65534)
            with Log(path, read_only=True) as log:
                assert sum(1 for _ in log.stream()) == 400
                assert not log.identity_is_stored
            try:
                Log(path)
            except LogReadOnly:
                code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize("read_only", [True, False])
def test_a_torn_raw_log_opens_for_who_says_what_it_is(tmp_path: Path, read_only: bool) -> None:
    """Its only block is torn, and raw records cannot speak for it: codec and block size together do."""
    path = write_blocks(tmp_path / "log", 1024, [bytes([n]) * 20 for n in range(1, 9)])
    path.write_bytes(path.read_bytes()[:110] + b"\xff" * 30)
    refused(path, "this is binary, and no log of jitdb", codec="raw")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        log = Log(path, codec="raw", block_size=1024, read_only=read_only)
    with log:
        assert [record.value[:1] for record in log.stream()] == [bytes([n]) for n in range(1, 6)]


def test_text_is_no_torn_raw_log(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"GET /index.html HTTP/1.1\n" * 2000)
    refused(path, "this is a text file", codec="raw", block_size=65536)
