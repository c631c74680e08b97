"""What checking candidates reads of the log: never more than a scan would, and explain() tells it beforehand."""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import oracle_of

from jitdb import JITDB, Log
from jitdb.errors import DamageWarning, IndexWarning, QueryCancelled
from jitdb.log.io import osfile
from jitdb.operators import and_, equal, includes, not_, starts_with
from jitdb.operators.nodes.operation import Operation

pytestmark = pytest.mark.slow

COUNT = 12_000
SHARES = (1, 10, 50, 100)  # percent of the records that are candidates; half of them match


class CountingFiles(osfile.FileSystem):
    """The real files; `taken` has how many bytes were read of each."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()

    def pread(self, fd: int, size: int, offset: int) -> bytes:  # type: ignore[override]
        data = os.pread(fd, size, offset)
        self.taken[os.readlink(f"/proc/self/fd/{fd}")] += len(data)
        return data

    def preadv(self, fd: int, buffer: memoryview, offset: int) -> int:
        count = super().preadv(fd, buffer, offset)
        self.taken[os.readlink(f"/proc/self/fd/{fd}")] += count
        return count


def field(share: int) -> str:
    return f"share{share}"


def record(number: int, rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"timestamp": number, "text": "x" * rng.randrange(200), "tags": ["same one", "other"]}
    for share in SHARES:
        if rng.random() * 100 < share:
            found[field(share)] = f"same {rng.randrange(2)}"
        else:
            found[field(share)] = f"another {number}"
    return found


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("confirm") / "log"
    rng = random.Random(7)
    with Log(path, codec="bipf", block_size=4096) as log:
        log.append_many([record(number, rng) for number in range(COUNT)])
    with Log(path) as log:
        JITDB(log).prepare(*(asked(share) for share in SHARES), *(starting(share) for share in SHARES))
    return path


def asked(share: int) -> Operation:
    return equal(field(share), "same 1", prefix=32)


def starting(share: int) -> Operation:
    return starts_with(field(share), "same 1")


def right(log: Log, question: Operation) -> int:
    """How many records match."""
    return len(oracle_of(log).matches(question))


def whole_blocks(log: Log) -> int:
    """Bytes of the blocks that the log has: what a scan reads, to the end of the last one."""
    return -(-log.durable_end // log.block_size) * log.block_size


@pytest.fixture
def path(written: Path, tmp_path: Path) -> Path:
    shutil.copytree(written.parent, tmp_path / "copy", copy_function=shutil.copy2)
    return tmp_path / "copy" / "log"


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> CountingFiles:
    files = CountingFiles()
    monkeypatch.setattr(osfile, "fs", files)
    return files


@pytest.mark.parametrize("ask", [asked, starting])
@pytest.mark.parametrize("share", SHARES)
def test_checking_candidates_reads_no_more_than_a_scan(path: Path, files: CountingFiles, ask: Any, share: int) -> None:
    with Log(path) as log:
        db, question = JITDB(log), ask(share)
        told = db.explain(question)
        assert told["scan_bytes"] == 0
        assert told["candidates"] == sum(each.value[field(share)].startswith("same") for each in log.stream())
        files.taken.clear()
        found = db.count(question)
        assert found == right(log, question)
        read = files.taken[str(path)]
        assert 0 < read <= told["confirm_bytes"] <= whole_blocks(log)
        if share == 1:
            assert told["confirm_bytes"] < log.durable_end / 2
        assert db.explain(question)["confirm_bytes"] == db.explain(question)["candidates"] == 0
        files.taken.clear()
        assert db.count(question) == found
        assert files.taken[str(path)] == 0


@pytest.mark.parametrize("share", SHARES)
def test_candidates_in_known_blocks_are_read_alone(path: Path, files: CountingFiles, share: int) -> None:
    with Log(path) as log:
        db = JITDB(log)
        db.count(asked(share))
        files.taken.clear()
        question = equal(field(share), "same 0", prefix=32)
        most = db.explain(question)["confirm_bytes"]
        assert db.count(question) == right(log, question)
        read = files.taken[str(path)]
        assert read <= most <= whole_blocks(log)
        if share == 1:
            assert read < most / 2


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("flushed", [True, False])
def test_deleted_candidates(path: Path, files: CountingFiles, share: int, flushed: bool) -> None:
    with Log(path, flush_interval=3600) as log:
        db = JITDB(log)
        matching = [each.offset for each in log.stream() if each.value[field(share)] == "same 1"]
        for offset in matching[::3]:
            log.delete(offset)
        if flushed:
            log.flush()
        db.prepare(asked(share))  # which looks if its index files are this log's
        files.taken.clear()
        assert db.count(asked(share)) == len(matching) - len(matching[::3])
        assert files.taken[str(path)] <= whole_blocks(log)


@pytest.mark.parametrize("share", SHARES)
def test_damaged_blocks(path: Path, share: int) -> None:
    with Log(path) as log:
        places = [each.offset for each in log.stream() if each.value[field(share)] == "same 1"]
    half = len(places) // 2
    blocks = {offset // 4096 for offset in (*places[:2], *places[half : half + 2], places[-3])}
    stat = path.stat()
    with open(path, "r+b") as file:
        for block in blocks:
            file.seek(block * 4096 + 1000)
            file.write(b"damaged")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with Log(path) as log:
        db = JITDB(log)
        question = asked(share)
        with pytest.warns(DamageWarning):
            whole = db.all(question, as_offsets=True)
        assert not {offset // 4096 for offset in whole} & blocks
        kept = [offset for offset in places if offset // 4096 not in blocks]
        assert sorted(whole) == kept
        assert db.count(question) == len(kept)


@pytest.mark.parametrize("share", SHARES)
def test_what_is_cancelled_is_asked_again(path: Path, share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitdb.engine.answering.candidate_filter.BATCH", 40)
    with Log(path) as log:
        db, question, cancel = JITDB(log), asked(share), threading.Event()
        read, calls = log.get_many_raw, 0

        def get_many_raw(offsets: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 2:
                cancel.set()
            return read(offsets)

        log.get_many_raw = get_many_raw  # type: ignore[method-assign]
        monkeypatch.setattr("jitdb.engine.answering.evaluate.CONFIRMED_AT_ONCE", 0)
        with pytest.raises(QueryCancelled):
            db.count(question, cancel=cancel)
        assert calls == 2
        assert db.count(question) == right(log, question)


def test_batches_end_where_blocks_do(path: Path, files: CountingFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few are read at a time, no block is read twice, unless it has more candidates than those."""
    monkeypatch.setattr("jitdb.engine.answering.candidate_filter.BATCH", 100)
    with Log(path) as log:
        db = JITDB(log)
        db.prepare(asked(100))
        files.taken.clear()
        assert db.count(asked(100)) == right(log, asked(100))
        assert files.taken[str(path)] <= whole_blocks(log)


def test_explain_tells_of_each_part(path: Path) -> None:
    with Log(path) as log:
        db, one, all_of_them = JITDB(log), asked(1), asked(100)
        few, many = db.explain(one), db.explain(all_of_them)
        assert many["candidates"] == COUNT
        assert many["confirm_bytes"] == whole_blocks(log)
        both = db.explain(and_(one, not_(all_of_them)))
        assert both["confirm_bytes"] == few["confirm_bytes"] + many["confirm_bytes"]
        assert both["candidates"] == few["candidates"] + many["candidates"]
        end = log.durable_end
        log.append_many([{field(1): "same 1"}] * 1000)
        log.flush()
        grown = log.durable_end - end
        again = db.explain(one)
        assert (again["scan_bytes"], again["confirm_bytes"]) == (grown, few["confirm_bytes"] + grown)
        assert again["candidates"] == few["candidates"]
        db.count(one)
        log.append_many([{field(1): "same 1"}] * 10)
        log.flush()
        db.prepare(one)
        last = db.explain(one)
        assert last["candidates"] == 10
        assert last["confirm_bytes"] <= 4096  # what was read is remembered


def test_explain_of_what_has_no_candidates(path: Path) -> None:
    with Log(path) as log:
        db = JITDB(log)
        new = equal("tags", "new", prefix=32)
        assert db.explain(new)["confirm_bytes"] == db.explain(new)["scan_bytes"] == log.durable_end
        for question in (None, includes("tags", "other"), equal("timestamp", 3), new):
            db.count(question)
            assert db.explain(question)["confirm_bytes"] == 0


def test_explain_drops_a_damaged_index_of_prefixes(path: Path) -> None:
    for file in (path.parent / "log.jitdb" / "indexes").glob("share*.index"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    with Log(path) as log:
        db = JITDB(log)
        with pytest.warns(IndexWarning, match="rebuilt"):
            told = db.explain(asked(100))
        assert told["scan_bytes"] == told["confirm_bytes"] == log.durable_end
        assert db.count(asked(100)) == right(log, asked(100))
