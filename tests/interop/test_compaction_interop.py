"""Compactions that async-append-only-log began and did not finish: whatever it has written by then, nothing is lost."""

from __future__ import annotations

import base64
import itertools
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import CompactionUnfinished, LogCorrupt, LogLocked, LogWarning
from jitdb.log.blocks.packing import is_zero, walk_block
from jitdb.log.codecs import get_codec
from jitdb.log.io import osfile
from jitdb.log.sidecar import meta
from jitdb.operators import gte

SCRIPT = Path(__file__).parent / "compaction.js"
BLOCK = 1024
RunNode = Callable[..., bytes]


# Logs to compact


def sized(*sizes: int) -> Callable[[random.Random, int], int]:
    return lambda chance, number: chance.choice(sizes)


#: Of each: how many records, their sizes, and whether one is deleted.
KINDS: dict[str, tuple[int, Callable[[random.Random, int], int], Callable[[random.Random, int], bool]]] = {
    "few holes": (120, sized(20, 50, 90, 140), lambda chance, number: chance.random() < 0.08),
    "many holes": (300, sized(20, 50, 90, 140), lambda chance, number: chance.random() < 0.85),
    "large records": (60, sized(30, 60, 700, 990), lambda chance, number: chance.random() < 0.2),
    "a hole at the end": (40, sized(60, 90), lambda chance, number: number == 38),
    "the first blocks": (90, sized(60, 90), lambda chance, number: number < 30),
    "the last blocks": (90, sized(60, 90), lambda chance, number: number >= 60),
    "no hole": (40, sized(60, 90), lambda chance, number: False),
    "one block": (8, sized(60, 90), lambda chance, number: number in (0, 3)),
    "a long one": (500, sized(20, 50, 90, 140), lambda chance, number: chance.random() < 0.08),
    "equal sizes": (200, sized(40), lambda chance, number: chance.random() < 0.2),
}


def make(path: Path, kind: str, *, equal: bool = False, seed: int = 1) -> list[bytes]:
    """A log of JavaScript's (it has no sidecar); gives its live records."""
    count, size, deleted = KINDS[kind]
    chance = random.Random(f"{kind} {seed}")
    encode = get_codec("bipf").encode
    records = [encode({"n": 0 if equal else n, "t": "x" * size(chance, n)}) for n in range(count)]
    gone = [number for number in range(count) if deleted(chance, number)]
    with Log(path, codec="raw", block_size=BLOCK) as log:
        offsets = log.append_many(records)
        for number in gone:
            log.delete(offsets[number])
    shutil.rmtree(log.sidecar)
    return [record for number, record in enumerate(records) if number not in gone]


def live(data: bytes) -> list[bytes]:
    """The records in the bytes of a log, read plainly."""
    found = []
    for begin in range(0, len(data), BLOCK):
        walk = walk_block(data[begin : begin + BLOCK], BLOCK, BLOCK)
        assert not walk.fault
        starts = [begin + at + 2 for at in walk.positions]
        found += [data[at : at + length] for at, length in zip(starts, walk.lengths, strict=True)]
    return [record for record in found if not is_zero(record)]


def state_of(path: Path) -> Path:
    """The file that says how far a compaction has come."""
    return path.with_name(path.name + ".compaction")


class Disk:
    """The bytes of log and state as the module's writes change them, one after the other."""

    def __init__(self, log: bytes) -> None:
        self.log, self.state = log, b""
        self.has_state = False

    def apply(self, write: dict[str, Any], size: int | None = None) -> None:
        """Make one of its writes; or only its first bytes, up to this size."""
        if "size" in write:
            if write["state"]:
                self.has_state, self.state = False, b""
            else:
                self.log = self.log[: write["size"]]
            return
        data = base64.b64decode(write["data"])[:size]
        old = self.state if write["state"] else self.log
        new = old[: write["at"]] + data + old[write["at"] + len(data) :]
        if write["state"]:
            self.has_state, self.state = True, new
        else:
            self.log = new

    def put(self, path: Path) -> Path:
        """As files."""
        path.write_bytes(self.log)
        if self.has_state:
            state_of(path).write_bytes(self.state)
        return path


def traced(run_node: RunNode, path: Path, ahead: int) -> list[dict[str, Any]]:
    """What the module writes while it compacts this log to its end."""
    return [json.loads(line) for line in run_node(SCRIPT, b"", "trace", path, str(BLOCK), str(ahead)).splitlines()]


def states(before: bytes, writes: list[dict[str, Any]]) -> Iterator[Disk]:
    """After each of the writes, while there is a state."""
    for done in range(1, len(writes)):
        disk = Disk(before)
        for write in writes[:done]:
            disk.apply(write)
        yield disk


def finished(path: Path) -> bytes:
    """The log's bytes, once it was opened for writing here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        Log(path, codec="bipf", block_size=BLOCK).close()
    assert not state_of(path).exists()
    assert not [name for name in os.listdir(path.parent) if name.endswith(".tmp")]
    return path.read_bytes()


def is_ahead(writes: list[dict[str, Any]], done: int) -> bool:
    """Whether blocks are not written yet that the state counts as rewritten."""
    state = next((write for write in reversed(writes[:done]) if write["state"] and "data" in write), None)
    if state is None:
        return False
    truncate, block = struct.unpack_from("<2I", base64.b64decode(state["data"]), 8)
    block = block if truncate == 0xFFFFFFFF else truncate + 1
    return any(not write["state"] and "data" in write and write["at"] < block * BLOCK for write in writes[done:])


# Every state


@pytest.mark.parametrize("ahead", [0, 3])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "a long one"])
def test_a_state_is_finished_as_javascript_would(tmp_path: Path, run_node: RunNode, kind: str, ahead: int) -> None:
    path = tmp_path / "log"
    records = make(path, kind)
    before = path.read_bytes()
    writes = traced(run_node, path, ahead)
    after = path.read_bytes()
    assert live(after) == records
    cut = list(states(before, writes))
    for number, disk in enumerate(random.Random(kind).sample(cut, min(len(cut), 5))):
        got = finished(disk.put(tmp_path / f"{number}.log"))
        assert live(got) == records
        assert got == after


def test_javascript_resumes_to_the_same_bytes(tmp_path: Path, run_node: RunNode) -> None:
    """But from the states that are ahead of the log: from those it loses records, which we do not."""
    records = make(tmp_path / "log", "few holes")
    before = (tmp_path / "log").read_bytes()
    writes = traced(run_node, tmp_path / "log", 2)
    theirs, ours, ahead = [], [], []
    for done in range(1, len(writes), 3):
        disk = Disk(before)
        for write in writes[:done]:
            disk.apply(write)
        theirs.append(disk.put(tmp_path / f"{done}.js.log"))
        ours.append(disk.put(tmp_path / f"{done}.py.log"))
        ahead.append(is_ahead(writes, done))
    run_node(SCRIPT, b"", "resume", str(BLOCK), *theirs)
    assert True in ahead
    assert False in ahead
    for js, py, behind in zip(theirs, ours, ahead, strict=True):
        got = finished(py)
        assert live(got) == records
        assert (got == js.read_bytes()) == (not behind)


@pytest.mark.parametrize("kind", ["few holes", "many holes"])
def test_a_write_cut_short(tmp_path: Path, run_node: RunNode, kind: str) -> None:
    """Its last write is there in its first 512 bytes only; at the very first one, nothing has been moved."""
    path = tmp_path / "log"
    records = make(path, kind)
    before = path.read_bytes()
    tried = 0
    for _ in range(5):  # in how many writes it compacts differs from run to run
        path.write_bytes(before)
        writes = traced(run_node, path, 0)
        for done in range(len(writes)):
            if "size" in writes[done] or is_ahead(writes, done) or is_ahead(writes, done + 1):
                continue
            disk = Disk(before)
            for write in writes[:done]:
                disk.apply(write)
            disk.apply(writes[done], 512)
            tried += 1
            assert live(finished(disk.put(tmp_path / f"{tried}.log"))) == records
        if tried > 5:
            break
    assert tried > 5


@pytest.mark.parametrize("kind", ["few holes", "equal sizes"])
def test_equal_records_are_finished_or_refused(tmp_path: Path, run_node: RunNode, kind: str) -> None:
    """Which of them is a copy cannot always be told; then nothing is touched."""
    path = tmp_path / "log"
    records = make(path, kind, equal=True)
    before = path.read_bytes()
    writes = traced(run_node, path, 1)
    told = 0
    cut = list(states(before, writes))
    for number, disk in enumerate(random.Random(kind).sample(cut, min(len(cut), 8))):
        put = disk.put(tmp_path / f"{number}.log")
        try:
            got = finished(put)
        except LogCorrupt:
            assert (put.read_bytes(), state_of(put).read_bytes()) == (disk.log, disk.state)
        else:
            told += 1
            assert live(got) == records
    assert told


# Killed


def test_killed_in_the_middle(tmp_path: Path, node_modules: Path) -> None:
    """The real thing: SIGKILL while it compacts. Each time that it is resumed there, it may be killed again."""
    make(tmp_path / "master", "a long one")
    cut = 0
    for number in range(4):
        path = Path(shutil.copy(tmp_path / "master", tmp_path / f"{number}.log"))
        records = live(path.read_bytes())
        command = ["node", str(SCRIPT), "run", str(path), str(BLOCK)]
        with subprocess.Popen(command, cwd=SCRIPT.parent, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            deadline = time.monotonic() + 30
            while not state_of(path).exists() and process.poll() is None and time.monotonic() < deadline:
                pass
            time.sleep(0.008 * number)
            process.send_signal(signal.SIGKILL)
        if state_of(path).exists():
            cut += 1
            with pytest.raises(CompactionUnfinished):
                Log(path, read_only=True)
            with pytest.warns(LogWarning, match="a compaction that async-append-only-log began was finished"):
                Log(path, codec="bipf", block_size=BLOCK).close()
        assert live(path.read_bytes()) == records
    assert cut, "no kill came while it compacted"


# Readers, writers that die, and what is beside the log


class Half(NamedTuple):
    path: Path
    records: list[bytes]
    after: bytes  # its bytes when it is compacted
    reader: JITDB  # that opened it before


@pytest.fixture
def half(tmp_path: Path, run_node: RunNode) -> Iterator[Half]:
    """A log of ours, with indexes, that JavaScript has half compacted."""
    path = tmp_path / "half.log"
    with Log(path, codec="bipf", block_size=BLOCK) as log:
        offsets = log.append_many({"n": n, "t": "x" * (n * 37 % 140)} for n in range(150))
        for offset in offsets[3:100:5]:
            log.delete(offset)
        log.flush()
        db = JITDB(log)
        assert db.count(gte(0, ("n",))) == 130
        records = [record.value for record in log.stream(raw=True)]
    before = path.read_bytes()
    copy = Path(shutil.copy(path, tmp_path / "copy"))
    writes = traced(run_node, copy, 0)
    reader = jitdb.open(path, read_only=True)
    list(states(before, writes))[len(writes) // 2].put(path)
    yield Half(path, records, copy.read_bytes(), reader)
    reader.close()


def test_readers_are_told_what_to_do(half: Half) -> None:
    for ask in (half.reader.refresh, lambda: jitdb.open(half.path, read_only=True)):
        with pytest.raises(CompactionUnfinished, match="open the log once for writing, which finishes it"):
            ask()
    finished(half.path)
    assert half.reader.refresh()
    assert [half.reader.log.codec.encode(value) for value in half.reader.all(sort_by="arrival")] == half.records
    assert half.reader.count(gte(100, ("n",))) == 50


def test_it_is_another_log_afterwards(half: Half) -> None:
    """Also where its end is where it was: indexes, cursors and the journal of deletions speak of other offsets."""
    before = meta.read(osfile.fs, half.path.with_name(half.path.name + ".jitdb") / "meta")
    assert before is not None
    assert finished(half.path) == half.after
    with jitdb.open(half.path) as db:
        assert db.log.identity != before.identity
        assert db.log.generation > before.generation
        assert db.log.deletions()[0] == 0
        assert [record.value for record in db.log.stream(raw=True)] == half.records
        assert [db.log.codec.encode(value) for value in db.all(sort_by="arrival")] == half.records
        assert db.count(gte(0, ("n",))) == 130


def test_its_file_tells_the_size_of_blocks(half: Half) -> None:
    shutil.rmtree(half.path.with_name(half.path.name + ".jitdb"))
    with pytest.warns(LogWarning, match="was finished"):
        log = Log(half.path)
    with log:
        assert log.block_size == BLOCK
        assert [record.value for record in log.stream(raw=True)] == half.records


class Dies(BaseException):
    """The process is gone."""


class Mortal(osfile.FileSystem):
    """Dies at the n-th call that changes a file; a write is there in half."""

    def __init__(self, calls: int) -> None:
        self.calls = calls

    def _step(self) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise Dies

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        if self.calls == 0:
            super().pwrite(fd, data[: len(data) // 2], offset)
        self._step()
        return super().pwrite(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        self._step()
        super().truncate(fd, size)

    def rename(self, source: Path, target: Path) -> None:
        self._step()
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self._step()
        super().unlink(path)


def test_whoever_dies_in_it_leaves_what_either_finishes(
    half: Half, run_node: RunNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, after = half.path, half.after
    theirs = []
    for calls in itertools.count(4, 4):
        ours, js = path.with_name(f"{calls}.log"), path.with_name(f"{calls}.js.log")
        for source, target in ((path, ours), (state_of(path), state_of(ours))):
            shutil.copy(source, target)
        shutil.copytree(path.with_name(path.name + ".jitdb"), ours.with_name(ours.name + ".jitdb"))
        monkeypatch.setattr(osfile, "fs", Mortal(calls))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                Log(ours).close()
        except Dies:
            pass
        else:
            break
        finally:
            monkeypatch.setattr(osfile, "fs", osfile.FileSystem())
        if state_of(ours).exists():
            shutil.copy(ours, js)
            shutil.copy(state_of(ours), state_of(js))
            theirs.append(js)
        if state_of(ours).exists():
            assert finished(ours) == after
        else:
            assert ours.read_bytes() == after
    assert len(theirs) > 3
    run_node(SCRIPT, b"", "resume", str(BLOCK), *theirs)
    assert [js.read_bytes() == after for js in theirs] == [True] * len(theirs)


def test_not_while_javascript_compacts_it(half: Half) -> None:
    with open(state_of(half.path), "r+b"), pytest.raises(LogLocked, match="is compacting it"):
        Log(half.path)
    assert finished(half.path) == half.after


# Hostile


def spoiled(state: bytes, log: bytes) -> Iterator[bytes]:
    """What a file of this name may hold that does not belong to this log."""
    yield b"notes on compaction"
    yield bytes(len(state))
    yield state[:-1]
    yield state + b"x"
    yield b"\x02" + state[1:]
    for at in range(4, 20, 4):
        (number,) = struct.unpack_from("<I", state, at)
        for other in (0, 1, number + 1, number - 1, number + BLOCK, number * 2, 2**31, 2**32 - 1):
            if 0 <= other < 2**32 and other != number:
                yield state[:at] + struct.pack("<I", other) + state[at + 4 :]
    chance = random.Random(7)
    for _ in range(20):
        yield chance.randbytes(len(state))


def test_what_does_not_fit_the_log_destroys_nothing(half: Half) -> None:
    path = half.path
    before, state = path.read_bytes(), state_of(path).read_bytes()
    sidecar = path.with_name(path.name + ".jitdb")
    known = (sidecar / "meta").read_bytes()
    refused: list[LogCorrupt] = []
    for other in spoiled(state, before):
        state_of(path).write_bytes(other)
        try:
            got = finished(path)
        except LogCorrupt as error:
            refused.append(error)
            assert (path.read_bytes(), state_of(path).read_bytes()) == (before, other)
            assert (sidecar / "meta").read_bytes() == known
        else:  # it says another true thing
            assert live(got) == half.records
            path.write_bytes(before)
            (sidecar / "meta").write_bytes(known)
    assert len(refused) > 40
    assert {error.path for error in refused} == {str(state_of(path))}
    assert all("Nothing was changed" in str(error) for error in refused)
    state_of(path).write_bytes(state)
    assert finished(path) == half.after


def test_compacted_in_javascript_with_the_end_where_it_was(tmp_path: Path, run_node: RunNode) -> None:
    """A record stands where another was deleted; nothing of the log's last block tells so."""
    path = tmp_path / "log"
    with Log(path, codec="bipf", block_size=BLOCK) as log:
        offsets = log.append_many({"n": n, "t": "x" * size} for n, size in enumerate((700, 90, 90, 970, 970)))
        log.delete(offsets[1])
        log.flush()
        assert JITDB(log).count(gte(0, ("n",))) == 4
        identity, since = log.identity, log.since
    traced(run_node, path, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        db = jitdb.open(path, read_only=True)
        with db:
            assert db.log.since == since
            assert db.log.identity != identity
            assert [record["n"] for record in db.all(sort_by="arrival")] == [0, 2, 3, 4]
            assert db.count(gte(0, ("n",))) == 4
