"""What the checksums of sealed blocks know survives crashes and deletions."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from jitdb.errors import LogCorrupt, LogWriteFailed
from jitdb.log import Log
from jitdb.log.io import filenames, osfile
from jitdb.log.io.osfile import FileSystem

WRITER = """
    import os, sys
    from jitdb.log import Log
    log = Log(sys.argv[1], codec="raw", block_size=512, flush_interval=3600)
    log.append_many([b"%05d" % n * 4 for n in range(200)])
    log.flush()
    log.append_many([b"%05d" % n * 4 for n in range(200, 300)])
    os.kill(os.getpid(), 9)
"""


def rot(path: Path, at: int) -> None:
    """A bit falls over; no program was there."""
    times = path.stat()
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 4]))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize("later", [False, True], ids=["at once", "changed by another program"])
def test_after_a_crash_blocks_are_still_verified(tmp_path: Path, later: bool) -> None:
    path = tmp_path / "a.log"
    subprocess.run([sys.executable, "-c", textwrap.dedent(WRITER), str(path)], check=False)
    if later:
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**10))
    with Log(path) as log:
        offsets = [record.offset for record in log.stream(raw=True)]
        assert len(offsets) >= 200
    rot(path, 512 + 9)
    with Log(path) as log:
        if later:  # what that program changed has no proof any more
            assert log.get_raw(512)
            assert "(1 were changed)" in str(log.verify())
            return
        with pytest.raises(LogCorrupt) as caught:
            log.get_raw(512)
        assert caught.value.block == 1


class Full(FileSystem):
    """The disk is full when checksums come, from then on when a word is said."""

    is_full = False

    def write(self, fd: int, data: bytes | bytearray | memoryview, offset: int) -> None:
        if self.is_full and os.readlink(f"/proc/self/fd/{fd}").endswith(filenames.CHECKSUMS):
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(fd, data, offset)


@pytest.mark.parametrize("before", [0, 1, 300], ids=lambda count: f"behind {count} records")
def test_blocks_whose_checksums_found_no_room_get_them_from_the_next_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    fs = Full()
    monkeypatch.setattr(osfile, "fs", fs)
    log = Log(tmp_path / "a.log", codec="raw", block_size=256, flush_interval=3600)
    log.append_many([b"%05d" % number for number in range(before)])
    log.flush()
    fs.is_full = True
    log.append_many([b"%05d" % number for number in range(before, before + 500)])
    for end in (log.flush, log.close):
        with pytest.raises(LogWriteFailed):
            end()
    with pytest.raises(LogWriteFailed):  # there is still no room
        Log(log.path)
    fs.is_full = False
    with Log(log.path) as log:
        assert [record.value for record in log.stream(raw=True)] == [b"%05d" % n for n in range(before + 500)]
        report = log.verify()
        assert (report.ok, report.unverified) == (True, 0), str(report)


def test_deleting_does_not_bless_a_damaged_block(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with Log(path, codec="raw", block_size=512) as log:
        offsets = log.append_many([b"%05d" % number * 4 for number in range(100)])
        log.flush()
        mine = [offset for offset in offsets if offset // 512 == 1]
        log.get_raw(mine[0])  # the block was verified; it rots afterwards
        rot(path, mine[3] + 5)
        log.delete(mine[0])
        log.flush()
    with Log(path) as log, pytest.raises(LogCorrupt):
        log.get_raw(mine[3])


def test_deleting_keeps_the_checksum_of_a_sound_block(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with Log(path, codec="raw", block_size=512) as log:
        offsets = log.append_many([b"%05d" % number * 4 for number in range(100)])
        mine = [offset for offset in offsets if offset // 512 == 1]
        for offset in mine[::2]:
            log.delete(offset)
    rot(path, mine[1] + 5)
    with Log(path) as log, pytest.raises(LogCorrupt):
        log.get_raw(mine[1])
