"""Compressed files that are not what was written, and made up ones: told by file and offset, in bounded memory."""

from __future__ import annotations

import io
import random
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from compressed_cases import KINDS, frames_anywhere, lines, many_members, members, one_frame, one_member, small
from homes import entry_of

import jitdb
from jitdb.errors import JitdbError, LogCorrupt, LogError
from jitdb.log.io import osfile
from jitdb.log.lines import line_log
from jitdb.log.lines.files import checkpoints
from jitdb.operators import field

TEXT = lines(4000)
SOME = lines(300)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    monkeypatch.setattr(line_log, "BLOCK", 1 << 10)


@pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_flipped_bits(tmp_path: Path, kind: Callable[[bytes], bytes]) -> None:
    """Either the answer of the text as it is then, or an error of ours; a checksum is never passed over."""
    data, some = kind(SOME), random.Random(1)
    path = tmp_path / "a.ndjson"
    for _ in range(12):
        at = some.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << some.randrange(8)]) + data[at + 1 :])
        try:
            with jitdb.open(path, "memory", progress=False) as db:
                found = [record["n"] for record in db.all(sort_by="arrival")]
        except LogError as error:
            is_right = error.path == str(path) and error.offset is not None and 0 <= error.offset <= len(data)
        else:
            is_right = found == list(range(300))[: len(found)]
        assert is_right


@pytest.mark.parametrize("kind", [members, one_frame, frames_anywhere], ids=lambda kind: kind.__name__)
def test_something_else_behind_it(tmp_path: Path, kind: Callable[[bytes], bytes]) -> None:
    data = kind(SOME)
    path = tmp_path / "a.ndjson"
    path.write_bytes(data + b"{}\n and so on")
    with pytest.raises(LogCorrupt) as raised, jitdb.open(path, "memory", progress=False) as db:
        db.count()
    assert raised.value.offset == len(data)


def test_a_damaged_frame_says_where_it_is(tmp_path: Path) -> None:
    frames = [one_frame(line) for line in SOME.splitlines(keepends=True)]
    begin = len(b"".join(frames[:200]))
    data = bytearray(b"".join(frames))
    data[begin + len(frames[200]) - 1] ^= 1
    path = tmp_path / "a.ndjson"
    path.write_bytes(data)
    with jitdb.open(path, "memory", progress=False) as db:
        with pytest.raises(LogCorrupt, match=f"the zstd frame at byte {begin:,}") as raised:
            db.count(field("n") == 1)
        assert (raised.value.offset, raised.value.path) == (begin, str(path))


def test_a_table_that_is_not_true(tmp_path: Path) -> None:
    """Of frames that hold other text than the seek table says: an error, never another answer."""
    from compressed_cases import with_seek_table

    data = bytearray(with_seek_table(SOME))
    data[-9 - 4] ^= 1  # how long the last frame's text is
    path = tmp_path / "a.ndjson"
    path.write_bytes(data)
    with pytest.raises(LogCorrupt), jitdb.open(path, "memory", progress=False) as db:
        db.count()


@pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")
def test_made_up_bytes(tmp_path: Path) -> None:
    """Whatever follows a magic number: an error of ours, or a file without lines."""
    some = random.Random(3)
    path = tmp_path / "a.ndjson"
    odd = list[JitdbError]()
    for number in range(300):
        magic = (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18")[number % 3]
        path.write_bytes(magic + some.randbytes(some.choice((0, 1, 4, 9, 40, 400))))
        try:
            with jitdb.open(path, "memory", progress=False) as db:
                assert db.count() == 0
        except JitdbError as error:
            odd.append(error)
    assert {error.path for error in odd} == {str(path)}


def bomb(kind: str, size: int) -> bytes:
    """So many bytes of one line that has no end."""
    if kind == "gzip":
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        parts = [packer.compress(bytes(1 << 20).replace(b"\0", b" ")) for _ in range(size >> 20)]
        return b"".join(parts) + packer.flush()
    if kind == "zstd":
        out = io.BytesIO()
        with zstandard.ZstdCompressor(level=1).stream_writer(out, closefd=False) as writer:
            for _ in range(size >> 20):
                writer.write(b" " * (1 << 20))
        return out.getvalue()
    block = (131072 << 3 | 2).to_bytes(3, "little") + b" "  # four bytes for 128 KiB, the most there is
    last = (131072 << 3 | 3).to_bytes(3, "little") + b" "
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * (size // 131072 - 1) + last


@pytest.mark.parametrize("kind", ["gzip", "zstd", "zstd blocks"])
def test_bombs_take_little_memory(tmp_path: Path, kind: str) -> None:
    """A thousand times and more as long as it is compressed: no line, no memory."""
    path = tmp_path / "a.ndjson"
    path.write_bytes((one_member if kind == "gzip" else one_frame)(SOME) + bomb(kind, 200 << 20))
    assert path.stat().st_size < 1 << 20
    with jitdb.open(path, "memory", progress=False) as db:
        db.count()
        tracemalloc.start()
        try:
            assert db.count(field("n") == 3) == 1
            assert db.log.refresh() is False
            assert tracemalloc.get_traced_memory()[1] < 110 << 20  # most of it the scan's
        finally:
            tracemalloc.stop()


def test_checkpoints_that_are_not_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever byte of them is another: the records are what they were."""
    path = tmp_path / "a.gz"
    path.write_bytes(one_member(TEXT))
    wanted = TEXT.rindex(b'{"n": 3500')
    line = TEXT[wanted : TEXT.index(b"\n", wanted)]

    def ask() -> None:
        with jitdb.open(path, progress=False) as db:
            assert db.count(field("n") == 3500) == 1
            assert db.log.get_many_raw([wanted]) == [line]

    ask()
    ask()
    kept = entry_of(path) / "checkpoints"
    good, some = kept.read_bytes(), random.Random(2)
    assert len(good) > 1000
    places = [*range(0, 52, 5), *(some.randrange(len(good)) for _ in range(10)), len(good) - 1]
    for at in places:
        kept.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        ask()
    for size in (0, 5, 52, len(good) // 2, len(good) - 1):
        kept.write_bytes(good[:size])
        ask()
    ask()
    assert kept.read_bytes() == good
    tail = kept.with_name("tail")
    data = tail.read_bytes()
    for at in range(0, len(data), len(data) // 9):
        tail.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        ask()


def test_checkpoints_of_another_file(tmp_path: Path) -> None:
    for name, first in (("a.gz", 0), ("b.gz", 9000)):
        (tmp_path / name).write_bytes(one_member(lines(4000, first)))
        for _ in range(2):
            with jitdb.open(tmp_path / name, progress=False) as db:
                offsets = list(db.all(sort_by="arrival", as_offsets=True))
                assert db.log.get_many_raw(offsets[2000:2002])  # the last ones are in the tail that is kept
    one, other = (entry_of(tmp_path / f"{name}.gz") / "checkpoints" for name in "ab")
    assert one.stat().st_size > 1000
    one.write_bytes(other.read_bytes())
    with jitdb.open(tmp_path / "a.gz", progress=False) as db:
        assert [record["n"] for record in db.query(field("n") > 3990).page(3).data]
        offsets = list(db.all(sort_by="arrival", as_offsets=True))
        assert b'"n": 2000' in (db.log.get_many_raw(offsets[2000:2001])[0] or b"")


@pytest.mark.parametrize("number", range(2))
def test_the_disk_fails_while_checkpoints_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Records are read all the same, and nothing half written is left."""
    path = tmp_path / "a.gz"
    path.write_bytes(one_member(TEXT))
    with jitdb.open(path, progress=False) as db:
        assert db.count(field("n") == 2) == 1
    calls = 0
    write = osfile.FileSystem.write

    def failing(fs: osfile.FileSystem, fd: int, data: bytes, offset: int) -> None:
        nonlocal calls
        calls += 1
        if calls > number:
            raise OSError(28, "No space left on device")
        write(fs, fd, data, offset)

    monkeypatch.setattr(checkpoints.osfile.FileSystem, "write", failing)
    wanted = TEXT.rindex(b'{"n": 3500')
    with jitdb.open(path, progress=False) as db:
        assert db.log.get_many_raw([wanted]) == [TEXT[wanted : TEXT.index(b"\n", wanted)]]
    monkeypatch.undo()
    assert not [each for each in entry_of(path).iterdir() if each.suffix == ".tmp"]


def test_many_members_need_no_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them is a place to begin."""
    monkeypatch.setattr(checkpoints.Checkpoints, "read", None)
    path = tmp_path / "a.gz"
    path.write_bytes(many_members(TEXT))
    with jitdb.open(path, progress=False) as db:
        offsets = list(db.all(sort_by="arrival", as_offsets=True))
        for number in (3999, 7, 2000):
            assert f'"n": {number},'.encode() in (db.log.get_many_raw([offsets[number]])[0] or b"")
