"""Golden bytes: what is on disk stays what it is (docs/format-log.md)."""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path

import pytest
from pyroaring import BitMap64

from jitdb.errors import LogCorrupt, LogError, NotALog
from jitdb.log import Log
from jitdb.log.io import filenames
from jitdb.log.opening import swap
from jitdb.log.sidecar import checksums, deletions, journal, meta, removals
from jitdb.log.sidecar.deletions import Deletion

IDENTITY = bytes(range(16))


def test_meta() -> None:
    body = (
        b"JITDBLOG"
        + (1).to_bytes(4, "little")
        + (512).to_bytes(4, "little")
        + IDENTITY
        + (1).to_bytes(4, "little")
        + b"msgpack".ljust(36, b"\0")
    )
    golden = body + zlib.crc32(body).to_bytes(4, "little")
    log = meta.Meta(512, "msgpack", IDENTITY, 1)
    assert meta.encode(log) == golden
    assert len(golden) == meta.SIZE == 76
    assert meta.decode(golden, Path("meta")) == log


@pytest.mark.parametrize("at", range(0, 76, 5))
def test_damaged_meta(at: int) -> None:
    data = bytearray(meta.encode(meta.Meta(512, "raw", IDENTITY, 1)))
    data[at] ^= 0x40
    with pytest.raises((LogCorrupt, NotALog)):
        meta.decode(bytes(data), Path("meta"))
    with pytest.raises(LogCorrupt):
        meta.decode(bytes(data[:-1]), Path("meta"))


def test_meta_of_the_future() -> None:
    data = bytearray(meta.encode(meta.Meta(512, "raw", IDENTITY, 1)))
    data[8] = 2
    longer = bytes(data[:-4]) + b"more"
    with pytest.raises(NotALog, match="upgrade"):
        meta.decode(longer + zlib.crc32(longer).to_bytes(4, "little"), Path("meta"))


def test_names_of_codecs_that_are_too_long() -> None:
    with pytest.raises(LogError, match="36"):
        meta.encode(meta.Meta(512, "x" * 37, IDENTITY, 1))


def test_entry_of_the_journal() -> None:
    entry = journal.Entry(
        start=10, end=522, stamp=0, change=b"\1\2\3\4\5\6\7\x08", data_crc=0xAABBCCDD,
        last_record_size=8, last_record_crc=0x11223344, first_chain=0x55667788, tail_chain=0x99AABBCC,
        generation=3, kind=journal.DATA,
    )  # fmt: skip
    body = bytes.fromhex(
        "0a00000000000000 0a02000000000000 0000000000000000 0102030405060708"
        "ddccbbaa 08000000 44332211 88776655 ccbbaa99 03000000 02000000"
    )
    golden = body + zlib.crc32(body).to_bytes(4, "little")
    assert journal.encode(entry) == golden
    assert len(golden) == journal.ENTRY_SIZE == 64
    assert journal.decode(golden) == entry
    assert journal.decode(golden[:-1]) is None
    assert journal.decode(golden[:-1] + b"\0") is None
    assert journal.decode(bytes(64)) is None
    assert (journal.OPENED, journal.DATA, journal.SYNCED, journal.CLOSED) == (1, 2, 3, 4)


def test_checksums() -> None:
    head = bytes.fromhex("4a49544442535 54d 0807060504030201 02000000".replace(" ", ""))
    assert checksums.encode_head(2, b"\x08\7\6\5\4\3\2\1") == head + zlib.crc32(head).to_bytes(4, "little")
    check = zlib.crc32((7).to_bytes(8, "little") + (2).to_bytes(4, "little") + (0xCAFE).to_bytes(4, "little"))
    assert checksums.encode_entries([checksums.Entry(0xCAFE)], 2, 7) == (0xCAFE).to_bytes(4, "little") + check.to_bytes(
        4, "little"
    )
    assert (checksums.HEAD_SIZE, checksums.ENTRY_SIZE) == (24, 8)


def test_deletions() -> None:
    head = b"JITDBDEL" + (5).to_bytes(4, "little")
    assert deletions.encode_head(5) == head + zlib.crc32(head).to_bytes(4, "little")
    body = (2**33 + 1).to_bytes(8, "little") + (300).to_bytes(4, "little")
    assert deletions.encode_entry(Deletion(2**33 + 1, 300)) == body + zlib.crc32(body).to_bytes(4, "little")
    body = b"\xff" * 8 + bytes(4)
    assert body + zlib.crc32(body).to_bytes(4, "little") == deletions.MARK
    assert (deletions.HEAD_SIZE, deletions.ENTRY_SIZE) == (16, 16)


def test_names() -> None:
    assert filenames.sidecar_path(Path("/x/ssb.log")) == Path("/x/ssb.log.jitdb")
    names = (
        filenames.META,
        filenames.COMMIT,
        filenames.CHECKSUMS,
        filenames.DELETIONS,
        filenames.LOCK,
        filenames.INDEXES,
    )
    assert names == ("meta", "commit", "checksums", "deletions", "lock", "indexes")
    assert filenames.torn_name(65536, 1) == "torn-65536-1"


def test_a_small_log(tmp_path: Path) -> None:
    """The worked example of docs/format-log.md."""
    path = tmp_path / "a.log"
    with Log(path, codec="raw", block_size=32) as log:
        log.append_many([b"hello", b"world!", b"a record of 20 bytes"])
        log.flush()
        log.delete(7)
    block_0 = b"\x05\0hello" + b"\x06\0" + bytes(6) + bytes(17)
    block_1 = b"\x14\0a record of 20 bytes" + bytes(10)
    assert path.read_bytes() == block_0 + block_1
    side = tmp_path / "a.log.jitdb"
    assert (side / "checksums").read_bytes() == checksums.encode_head(1, bytes(8)) + checksums.encode_entries(
        [checksums.Entry(zlib.crc32(block_0))], 1
    )
    assert (side / "deletions").read_bytes() == deletions.encode_head(1) + deletions.encode_entry(
        Deletion(7, 6)
    ) + deletions.MARK
    raw = (side / "commit").read_bytes()
    entries = [journal.decode(raw[at : at + 64]) for at in range(0, len(raw), 128)]
    assert raw == b"".join(journal.written(entry) for entry in entries if entry)
    first = zlib.crc32(b"\x05\0\x06\0")
    last = zlib.crc32(b"\x14\0")
    data = b"\x05\0hello\x06\0world!" + bytes(17) + b"\x14\0a record of 20 bytes"
    assert [entry.kind for entry in entries if entry] == [1, 2, 3, 3, 4]
    assert entries[0] is not None
    assert entries[0][:2] == (0, 0)
    assert entries[1] == journal.Entry(
        0, 54, 0, bytes(8), zlib.crc32(data), 20, zlib.crc32(b"a record of 20 bytes"), first, last, 1, journal.DATA
    )
    gone = (side / "deletions").read_bytes()[deletions.HEAD_SIZE :]
    known = [entry.deletions for entry in entries[2:] if entry is not None]
    assert known == [(0, 0), (1, zlib.crc32(gone[:12])), (2, zlib.crc32(gone[:12] + gone[16:28]))]
    for entry in entries[2:]:
        assert entry is not None
        assert entry.stamp > 0
        assert entry._replace(stamp=0, kind=0) == entries[1]._replace(
            start=entry.start, data_crc=zlib.crc32(block_1[:22]), kind=0
        )
    assert sorted(each.name for each in side.iterdir()) == ["checksums", "commit", "deletions", "lock", "meta"]


def test_a_journal_stays_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MAX_SIZE", 20 * 64)
    path = tmp_path / "a.log"
    with Log(path, codec="raw") as log, Log(path, read_only=True) as reader:
        for number in range(50):
            log.append(b"%d" % number)
            log.flush()
            assert (tmp_path / "a.log.jitdb" / "commit").stat().st_size <= 24 * 64
            assert reader.refresh()
            assert reader.since == log.since
    shutil.rmtree(tmp_path)


def test_what_a_compaction_removed() -> None:
    """The worked example of docs/format-log.md."""
    history = removals.Removals(2, IDENTITY, 3, BitMap64([1]), (15).to_bytes(4, "little") + (22).to_bytes(4, "little"))
    data = removals.encode(history)
    text = (Path(__file__).parents[2] / "docs/format-log.md").read_text()
    shown = "\n".join(
        f"    {at:04x}  " + " ".join(f"{byte:02x}" for byte in data[at : at + 16]) for at in range(0, len(data), 16)
    )
    assert shown in text
    assert removals.decode(data, Path("moved-2")) == history


def test_damage_to_what_a_compaction_left() -> None:
    history = removals.Removals(2, IDENTITY, 3, BitMap64([1]), bytes(8))
    good = removals.encode(history)
    for at in range(len(good)):
        with pytest.raises(LogCorrupt):
            removals.decode(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :], Path("moved-2"))
        with pytest.raises(LogCorrupt):
            removals.decode(good[:at], Path("moved-2"))


def test_the_swap() -> None:
    entry = journal.Entry(54, 54, 7, bytes(8), 0, 20, 1, 2, 3, 2, journal.OPENED)
    following = swap.PendingSwap(meta.Meta(512, "raw", IDENTITY, 2), entry)
    data = swap.encode(following)
    body = b"JITDBNXT" + meta.encode(following.meta) + journal.encode(entry)
    assert data == body + zlib.crc32(body).to_bytes(4, "little")
    assert len(data) == swap.SIZE == 152
    assert swap.decode(data, Path("next")) == following
    for at in range(len(data)):
        assert swap.decode(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :], Path("next")) is None
        assert swap.decode(data[:at], Path("next")) is None
    other = swap.encode(following._replace(meta=following.meta._replace(generation=3)))
    assert swap.decode(other, Path("next")) is None
