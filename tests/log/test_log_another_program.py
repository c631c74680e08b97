"""What another program wrote to a log, and what is made of it when it is opened."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from recovery_cases import BLOCK, open_log, values

from jitdb.errors import LogWarning, LogWriteFailed, RecordDeleted
from jitdb.log import Log

pytestmark = pytest.mark.filterwarnings("error")


class TestAnotherProgram:
    """It knows nothing of the sidecar."""

    def grow(self, path: Path, data: bytes) -> None:
        """Append as async-append-only-log does: the block is written again, whole."""
        content = path.read_bytes()
        end = len(content.rstrip(b"\0"))
        path.write_bytes(content[:end] + data + bytes(-(end + len(data)) % BLOCK))

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        with open_log(tmp_path / "a.log") as log:
            log.append_many([b"%03d" % number + b"x" * 40 for number in range(5)])
        return tmp_path / "a.log"

    @pytest.mark.parametrize("read_only", [True, False])
    def test_appended(self, path: Path, read_only: bool) -> None:
        with open_log(path, read_only=True) as log:
            identity, token, since = log.identity, log.foreign_change_token(), log.since
        self.grow(path, b"\5\0hello\5\0world")
        later = set()
        for _ in range(3):
            with open_log(path, read_only=read_only) as log:
                assert values(log)[5:] == [b"hello", b"world"]
                assert log.since == since + 45 + 7
                assert log.identity == identity
                later.add(log.foreign_change_token())
        assert len(later) == 1
        assert later != {token}
        with open_log(path) as log:
            log.append(b"!")
        with open_log(path, read_only=True) as log:
            assert values(log)[5:] == [b"hello", b"world", b"!"]
            assert {log.foreign_change_token()} == later

    @pytest.mark.parametrize("read_only", [True, False])
    def test_appended_a_block_within_the_clocks_tick(self, path: Path, read_only: bool) -> None:
        """The file's time is what it was; its size is not."""
        time = path.stat().st_mtime_ns
        with open(path, "ab") as file:
            file.write(b"\5\0hello".ljust(BLOCK, b"\0"))
        os.utime(path, ns=(time, time))
        with open_log(path, read_only=read_only) as log:
            assert values(log)[5:] == [b"hello"]

    def test_appended_and_cut_short(self, path: Path) -> None:
        self.grow(path, b"\5\0hello\x40\0wor")
        content = path.read_bytes()
        path.write_bytes(content[: len(content.rstrip(b"\0"))])
        with open_log(path, read_only=True) as log:
            assert values(log)[5:] == [b"hello"]
        with pytest.warns(LogWarning, match="torn-"):
            log = open_log(path)
        with log:
            assert values(log)[5:] == [b"hello"]
            assert path.stat().st_size == BLOCK

    def test_appended_what_the_codec_refuses(self, tmp_path: Path) -> None:
        path = tmp_path / "m.log"
        with Log(path, codec="msgpack", block_size=BLOCK) as log:
            log.append({"a": 1})
        self.grow(path, b"\2\0\x81\xa1" + b"\3\0abc")
        with Log(path, read_only=True) as log:
            assert [record.value for record in log.stream()] == [{"a": 1}]
        with pytest.warns(LogWarning, match="torn-"):
            log = Log(path)
        with log:
            log.append({"b": 2})
        with Log(path) as log:
            assert [record.value for record in log.stream()] == [{"a": 1}, {"b": 2}]

    @pytest.mark.parametrize("read_only", [True, False])
    def test_touched_a_log_of_ours_that_ends_with_what_the_codec_refuses(self, tmp_path: Path, read_only: bool) -> None:
        """What was acknowledged counts, whatever it is."""
        path = tmp_path / "m.log"
        with Log(path, codec="msgpack", block_size=BLOCK) as log:
            log.append({"a": 1})
            log.append_encoded(np.full(2, 0xC1, np.uint8), np.array([2]))
            log.flush()
            end = log.durable_end
        os.utime(path, ns=(0, 1_900_000_000_000_000_000))
        with Log(path, read_only=read_only) as log:
            assert log.durable_end == end
            assert log.get_raw(log.since) == b"\xc1\xc1"

    def test_deleted(self, path: Path) -> None:
        with open_log(path) as log:
            log.append_many([b"y" * 40] * 30)
            token, identity = log.foreign_change_token(), log.identity
        content = bytearray(path.read_bytes())
        content[45 + 2 : 90] = bytes(43)
        path.write_bytes(content)
        for read_only in (True, False):
            with open_log(path, read_only=read_only) as log:
                assert log.identity == identity
                assert log.foreign_change_token() != token
                with pytest.raises(RecordDeleted):
                    log.get(45)
                assert log.get(0)
                assert len(values(log)) == 34

    def test_deleted_the_newest_record(self, path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[4 * 45 + 2 : 5 * 45] = bytes(43)
        path.write_bytes(content)
        with open_log(path) as log:
            assert log.generation == 1
            assert len(values(log)) == 4
            assert log.append(b"next") == 5 * 45

    @pytest.mark.parametrize("kind", ["truncated", "emptied", "replaced", "compacted"])
    @pytest.mark.parametrize("first", [True, False])
    def test_made_another_log(self, tmp_path: Path, kind: str, first: bool) -> None:
        path = tmp_path / "a.log"
        with open_log(path) as log:
            log.append_many([b"%03d" % number + b"x" * 40 for number in range(50)])
            log.delete(45)
            identity = log.identity
        content = path.read_bytes()
        if kind == "truncated":
            path.write_bytes(content[: 2 * BLOCK])
            left = [f"{number:03}" for number in range(22) if number != 1]
        elif kind == "emptied":
            path.write_bytes(b"")
            left = []
        elif kind == "replaced":
            with Log(tmp_path / "b.log", codec="raw", block_size=BLOCK) as other:
                other.append_many([b"%03d" % number + b"z" * 41 for number in range(60)])
            os.replace(tmp_path / "b.log", path)
            left = [f"{number:03}" for number in range(60)]
        else:
            with Log(tmp_path / "b.log", codec="raw", block_size=BLOCK) as other:
                other.append_many([b"%03d" % number + b"x" * 40 for number in range(50) if number != 1])
            path.write_bytes((tmp_path / "b.log").read_bytes())
            left = [f"{number:03}" for number in range(50) if number != 1]
        with pytest.warns(LogWarning, match="counts as a new log"):
            log = open_log(path, read_only=first)
        with log:
            assert [value[:3].decode() for value in values(log)] == left
            assert log.identity != identity
            assert log.generation == 2
            assert log.deletions()[1].tolist() == []
            fresh = log.identity
        with open_log(path) as log:
            assert (log.identity, log.generation) == (fresh, 2)
            log.append(b"more")
        with open_log(path, read_only=True) as log:
            assert (log.identity, log.generation) == (fresh, 2)
            assert len(values(log)) == len(left) + 1

    def test_compacted_records_of_equal_length_and_then_grown(self, tmp_path: Path) -> None:
        """The chains of lengths are what they were; the witness is another."""
        path = tmp_path / "a.log"
        with open_log(path) as log:
            log.append_many([b"%03d" % number for number in range(50)])
        records = [b"\3\0%03d" % number for number in range(51) if number != 7]
        path.write_bytes(b"".join(records).ljust(BLOCK, b"\0"))
        with pytest.warns(LogWarning, match="counts as a new log"):
            log = open_log(path)
        log.close()

    def test_wrote_while_we_did(self, path: Path) -> None:
        log = open_log(path, flush_interval=60)
        log.append(b"ours")
        log.flush()
        self.grow(path, b"\6\0theirs")
        log.append(b"lost")
        for call in (log.flush, lambda: log.append(b"refused"), log.flush, log.close):
            with pytest.raises(LogWriteFailed, match="another program wrote"):
                call()
        assert log.closed
        with pytest.warns(LogWarning, match="torn-"):
            log = open_log(path)
        with log:
            assert values(log)[-1] == b"ours"

    def test_deleted_while_we_wrote(self, path: Path) -> None:
        with open_log(path, flush_interval=60) as log:
            log.append(b"ours")
            log.flush()
            token = log.foreign_change_token()
            with open(path, "r+b") as file:
                file.seek(45 + 2)
                file.write(bytes(43))
            log.append(b"more")
            log.flush()
            assert log.foreign_change_token() != token
            later = log.foreign_change_token()
        with open_log(path, read_only=True) as log:
            assert log.foreign_change_token() == later
            assert values(log)[-2:] == [b"ours", b"more"]
