"""Logs that async-append-only-log compacts: half compacted they are refused, compacted they are other logs."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import CompactionUnfinished
from jitdb.operators import gte

SCRIPT = Path(__file__).parent / "compaction.js"
BLOCK = 1024
RunNode = Callable[..., bytes]


class Half(NamedTuple):
    path: Path
    records: list[bytes]
    reader: JITDB  # that opened it before


@pytest.fixture
def half(tmp_path: Path, node_modules: Path) -> Iterator[Half]:
    """A log of ours, with indexes, whose compaction in JavaScript was killed."""
    path = tmp_path / "half.log"
    with Log(path, codec="bipf", block_size=BLOCK) as log:
        offsets = log.append_many({"n": n, "t": "x" * (n * 37 % 140)} for n in range(600))
        for offset in offsets[3:400:5]:
            log.delete(offset)
        log.flush()
        with JITDB(log) as db:
            assert db.count(gte(0, ("n",))) == 520
            records = [record.value for record in log.stream(raw=True)]
    with jitdb.open(path, read_only=True) as reader:
        kill_while_it_compacts(path)
        yield Half(path, records, reader)


def kill_while_it_compacts(path: Path) -> None:
    """SIGKILL, as soon as it says how far it came; where it was done by then, with another copy."""
    whole = shutil.copy(path, path.with_name("whole"))
    for _ in range(20):
        with subprocess.Popen(
            ["node", str(SCRIPT), "run", str(path), str(BLOCK)], cwd=SCRIPT.parent, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            while not state_of(path).exists() and process.poll() is None:
                time.sleep(0.0001)
            process.send_signal(signal.SIGKILL)
        if state_of(path).exists():
            return
        path.write_bytes(Path(whole).read_bytes())
    pytest.fail("no kill came while it compacted")


def state_of(path: Path) -> Path:
    """The file that says how far a compaction has come."""
    return path.with_name(path.name + ".compaction")


def test_half_compacted_it_is_refused_and_not_changed(half: Half) -> None:
    before = half.path.read_bytes(), state_of(half.path).read_bytes()
    for ask in (
        half.reader.refresh,
        lambda: jitdb.open(half.path, read_only=True),
        lambda: jitdb.open(half.path),
        lambda: Log(half.path, codec="bipf", block_size=BLOCK),
    ):
        with pytest.raises(CompactionUnfinished, match="open the log once in JavaScript, which finishes it"):
            ask()
    assert (half.path.read_bytes(), state_of(half.path).read_bytes()) == before


def test_without_its_sidecar_it_is_refused_too(half: Half) -> None:
    shutil.rmtree(half.path.with_name(half.path.name + ".jitdb"))
    with pytest.raises(CompactionUnfinished):
        Log(half.path)


def test_finished_in_javascript_it_is_another_log(half: Half, run_node: RunNode) -> None:
    """Indexes, cursors and the journal of deletions speak of other offsets."""
    identity = half.reader.log.identity
    run_node(SCRIPT, b"", "resume", str(BLOCK), half.path)
    assert not state_of(half.path).exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert half.reader.refresh()
        for db in (half.reader, jitdb.open(half.path)):
            assert db.log.identity != identity
            found = [db.log.codec.encode(value) for value in db.all(sort_by="arrival")]
            assert set(found) <= set(half.records)  # resuming, async-append-only-log may lose some
            assert db.count(gte(0, ("n",))) == len(found) > 400
            db.close()


def test_compacted_in_javascript_with_the_end_where_it_was(tmp_path: Path, run_node: RunNode) -> None:
    """A record stands where another was deleted; nothing of the log's last block tells so."""
    path = tmp_path / "log"
    with Log(path, codec="bipf", block_size=BLOCK) as log:
        offsets = log.append_many({"n": n, "t": "x" * size} for n, size in enumerate((700, 90, 90, 970, 970)))
        log.delete(offsets[1])
        log.flush()
        assert JITDB(log).count(gte(0, ("n",))) == 4
        identity, since = log.identity, log.since
    run_node(SCRIPT, b"", "run", path, str(BLOCK))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        db = jitdb.open(path, read_only=True)
        with db:
            assert db.log.since == since
            assert db.log.identity != identity
            assert [record["n"] for record in db.all(sort_by="arrival")] == [0, 2, 3, 4]
            assert db.count(gte(0, ("n",))) == 4
