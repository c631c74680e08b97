"""`pack`: the very text in frames that are read each for itself; nothing is lost, whatever happens."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from compressed_cases import KINDS, lines, one_frame, one_member
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jitdb
from jitdb.cli import main
from jitdb.errors import InvalidArgument, LogCorrupt, LogError, NotALog
from jitdb.log.io import osfile
from jitdb.log.lines import packer
from jitdb.log.lines.files.decompressing import Stored
from jitdb.log.lines.files.zstd_file import find_frames
from jitdb.log.lines.packer import pack, packed_name

TEXT = lines(3000)


def unpacked(path: Path) -> list[bytes]:
    """The text of each frame, found by walking and by the table, which must agree."""
    data = path.read_bytes()
    with osfile.Descriptor(osfile.fs, path, os.O_RDONLY):
        stored = Stored(osfile.Descriptor(osfile.fs, path, os.O_RDONLY), path, len(data))
        by_table = list(find_frames(stored, 0))
        stored.stop -= 1  # no table that fits is at the end then
        walked = [frame for frame in find_frames(stored, 0) if frame.is_finished]
    assert [frame[:2] for frame in by_table] == [frame[:2] for frame in walked]
    made = [zstandard.ZstdDecompressor().decompress(data[f.begin : f.stop], 1 << 24) for f in by_table]
    assert [len(text) for text in made] == [frame.text for frame in by_table]
    return made


@pytest.mark.parametrize("kind", [bytes, *KINDS], ids=lambda kind: kind.__name__)
def test_the_same_text(tmp_path: Path, kind: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packer, "FRAME", 5000)
    source, target = tmp_path / "a", tmp_path / "b.zst"
    source.write_bytes(kind(TEXT))
    done = pack(source, target)
    assert (done.text, done.after) == (len(TEXT), target.stat().st_size)
    frames = unpacked(target)
    assert b"".join(frames) == TEXT
    assert len(frames) == done.frames > 60
    assert all(frame.endswith(b"\n") and len(frame) <= 5000 for frame in frames)
    assert source.read_bytes() == kind(TEXT)
    with jitdb.open(source, "memory", progress=False) as one, jitdb.open(target, "memory", progress=False) as other:
        assert list(one.all(as_offsets=True)) == list(other.all(as_offsets=True))
        assert list(one.all()) == list(other.all())


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from([0, 1, 9, 60, 300, 1500, 4000]), max_size=30), st.booleans())
def test_any_lines(tmp_path_factory: pytest.TempPathFactory, sizes: list[int], ends: bool) -> None:
    """Also those that are longer than a frame, and than what is read at once."""
    tmp_path = tmp_path_factory.mktemp("packed")
    text = b'{"a": 1}\n' + b"\n".join(b" " * size for size in sizes) + b"\n" * ends
    (tmp_path / "a").write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        for name, size in (("FRAME", 200), ("_PIECE", 333)):
            patch.setattr(packer, name, size)
        pack(tmp_path / "a", tmp_path / "b")
    data = (tmp_path / "b").read_bytes()
    assert zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read() == text
    with jitdb.open(tmp_path / "b", "memory", progress=False) as db:
        assert db.log.durable_end == text.rfind(b"\n") + 1


@pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd's own tool is not there")
def test_another_tool_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_bytes(TEXT)
    pack(tmp_path / "a.ndjson", tmp_path / "a.zst")
    assert subprocess.run(["zstd", "-dc", tmp_path / "a.zst"], capture_output=True, check=True).stdout == TEXT


def test_what_is_kept_and_what_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "a.ndjson", tmp_path / "a.ndjson.zst"
    source.write_bytes(TEXT)
    os.chmod(source, 0o640)
    assert main(["pack", str(source)]) == 0
    assert "a.ndjson.zst: 2 frames of" in capsys.readouterr().out
    assert source.exists()
    assert target.stat().st_mode & 0o777 == 0o640
    assert target.stat().st_mtime_ns == source.stat().st_mtime_ns
    before = target.read_bytes()
    assert main(["pack", str(source), "--level", "9"]) == 1
    assert target.read_bytes() == before
    assert main(["pack", str(source), "--level", "9", "--force", "--remove", "-q"]) == 0
    assert target.read_bytes() != before
    assert not source.exists()
    target.write_bytes(one_frame(TEXT))
    assert main(["pack", str(target)]) == 1
    assert main(["pack", str(target), "--remove"]) == 0
    assert b"".join(unpacked(target)) == TEXT
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.ndjson.zst"]
    assert packed_name(tmp_path / "x.jsonl.gz") == tmp_path / "x.jsonl.zst"


@pytest.mark.filterwarnings("ignore:.*end of the compressed file is missing:jitdb.errors.LogWarning")
@pytest.mark.parametrize(
    ("data", "error"),
    [
        (one_member(TEXT)[:-3], LogCorrupt),
        (one_frame(TEXT)[:-3], LogCorrupt),
        (one_member(TEXT)[:-3] + b"abc", LogCorrupt),
        (b"a,b\0\n", NotALog),
    ],
)
def test_what_has_no_end_or_is_damaged(tmp_path: Path, data: bytes, error: type[LogError]) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises((error, LogError)):
        pack(tmp_path / "a", tmp_path / "b")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == data


@pytest.mark.parametrize("kind", ["grown", "replaced", "removed"])
def test_a_source_that_changes_meanwhile(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "a"
    source.write_bytes(TEXT)

    def change(done: int, total: int) -> None:
        if kind == "grown":
            with source.open("ab") as out:
                out.write(lines(1))
            return
        source.unlink(missing_ok=True)
        if kind == "replaced":
            source.write_bytes(TEXT)

    with pytest.raises((LogError, FileNotFoundError)):
        pack(source, tmp_path / "b", remove=True, told=change)
    assert not (tmp_path / "b").exists()
    assert source.exists() == (kind != "removed")


@pytest.mark.parametrize("name", ["write", "fsync", "rename", "share"])
def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """At any step: what was there is there."""
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(TEXT)
    target.write_bytes(one_frame(b"{}\n"))

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(osfile.FileSystem, name, fail)
    with pytest.raises(OSError, match="No space"):
        pack(source, target, replace=True, remove=True)
    monkeypatch.undo()
    assert source.read_bytes() == TEXT
    assert target.read_bytes() == one_frame(b"{}\n")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "b"]


def test_what_was_not_written_as_it_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that forgets: it is found before anything is replaced."""
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(TEXT)
    write = osfile.FileSystem.write

    def forgetful(fs: osfile.FileSystem, fd: int, data: bytes, offset: int) -> None:
        write(fs, fd, bytes(len(data)) if 0 < offset < 150_000 else data, offset)

    monkeypatch.setattr(osfile.FileSystem, "write", forgetful)
    with pytest.raises(LogError):
        pack(source, target, remove=True)
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_nothing_is_replaced_unasked(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(TEXT)
    (tmp_path / "b").write_bytes(b"mine")
    with pytest.raises(InvalidArgument):
        pack(tmp_path / "a", tmp_path / "b", remove=True)
    assert (tmp_path / "b").read_bytes() == b"mine"
    assert json.loads((tmp_path / "a").read_bytes().splitlines()[7])["n"] == 7


def test_a_line_that_no_frame_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on in the next one, so that each can be decompressed as a whole."""
    for name, size in (("FRAME", 200), ("_PIECE", 333), ("LONGEST", 1000)):
        monkeypatch.setattr(packer, name, size)
    text = b'{"a": 1}\n' + b" " * 3000 + b"1\n" + b'{"a": 2}\n' * 50
    (tmp_path / "a").write_bytes(text)
    pack(tmp_path / "a", tmp_path / "b")
    frames = unpacked(tmp_path / "b")
    assert b"".join(frames) == text
    assert [len(frame) for frame in frames[:4]] == [9, 1000, 1000, 1000]
    assert max(map(len, frames)) == 1000
