"""Processes that are killed while they write and replicate: what is left is sound, and it goes on from there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from hyperdb_writers import meet, writers

from jitdb import Log
from jitdb.stores.hyperdb import HyperDB
from jitdb.stores.hyperdb.errors import FeedDamaged
from jitdb.stores.hyperdb.feed import Feed
from jitdb.stores.hyperdb.signing.keys import is_signed
from jitdb.stores.hyperdb.signing.merkle import Tree

BATCH = 30  # entries, some more than a block of these databases holds

WRITER = """
import sys
from jitdb.stores.hyperdb import HyperDB
with HyperDB(sys.argv[1], create=True, block_size=4096) as db:
    begin = len(db.local)
    print("open", flush=True)
    for number in range(begin, begin + 100_000):
        db.put(f"put/{number}", b"x" * (number % 50))
        if number % 3 == 0:
            db.batch((f"batch/{number}/{each}", b"y" * (number % 200)) for each in range(%d))
        if number % 10 == 0:
            db.flush()
            print(len(db.local), flush=True)
""".replace("%d", str(BATCH))

REPLICATOR = """
import sys
from jitdb.stores.hyperdb import HyperDB
with HyperDB(sys.argv[1]) as source, HyperDB(sys.argv[2], source.key) as copy:
    print("open", flush=True)
    for number in range(100_000):
        begin = len(source.local)
        source.batch((f"batch/{begin}/{each}", b"y" * 100) for each in range(%d))
        copy.put(f"copy/{len(copy.local)}", b"z")
        source.replicate(copy)
        print(len(source.local), flush=True)
""".replace("%d", str(BATCH))


def killed(script: str, seconds: float, *folders: Path, is_first: bool) -> int:
    """Run a script for so long after it has begun, or, if it is not the first time, has said a number; the last one."""
    child = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, folders)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"open\n", child.communicate()[1].decode()
    number = 0 if is_first else int(child.stdout.readline())
    time.sleep(seconds)
    child.kill()
    said, errors = child.communicate()
    assert b"Error" not in errors, errors.decode()
    numbers = said.split(b"\n")[:-1]
    return int(numbers[-1]) if numbers else number


def check_feed(feed: Feed) -> list[bytes]:
    """Its records, of which the newest head is."""
    records = list(feed.records(0, len(feed)))
    with Log(feed.log.path.with_suffix(".heads"), read_only=True) as log:
        heads = [record.value for record in log.stream()]
    tree, signed = Tree(), 0
    lengths = {head["length"]: head["signature"] for head in heads}
    for record in records:
        tree.append(record)
        if tree.length in lengths:
            assert is_signed(tree.head(), lengths[tree.length], feed.key)
            signed = tree.length
    assert signed == feed.signed_length
    return records


def check_batches(db: HyperDB) -> None:
    counts: dict[str, int] = {}
    for nodes in db.list("batch"):
        batch = nodes[0].key.split("/")[1]
        counts[batch] = counts.get(batch, 0) + 1
    assert set(counts.values()) <= {BATCH}


def test_killed_while_it_writes(tmp_path: Path) -> None:
    chance = Random(3)
    length = 0
    for turn in range(4):
        flushed = killed(WRITER, chance.uniform(0.01, 0.5), tmp_path / "db", is_first=not turn)
        with HyperDB(tmp_path / "db") as db:
            assert len(db.local) >= max(flushed, length)
            length = len(check_feed(db.local))
            assert db.local.signed_length == length
            check_batches(db)
    with HyperDB(tmp_path / "db") as db, HyperDB(tmp_path / "copy", db.key) as copy:
        db.replicate(copy)
        assert copy.version == db.version
        assert length > BATCH


def test_killed_while_it_replicates(tmp_path: Path) -> None:
    chance, count = Random(4), 0
    with HyperDB(tmp_path / "source", create=True) as db, HyperDB(tmp_path / "copy", db.key) as copy:
        db.authorize(copy.local.key)
        db.replicate(copy)
    for turn in range(4):
        seconds = chance.uniform(0.01, 0.5)
        killed(REPLICATOR, seconds, tmp_path / "source", tmp_path / "copy", is_first=not turn)
        with HyperDB(tmp_path / "source") as source, HyperDB(tmp_path / "copy") as copy:
            for key, ours in source.lengths().items():
                one, other = (next(check_feed(feed) for feed in db.feeds if feed.key == key) for db in (source, copy))
                shorter = min(len(one), len(other))
                assert one[:shorter] == other[:shorter]
                assert ours == len(one)
            check_batches(source)
            source.replicate(copy)
            assert source.version == copy.version
            assert len(source.list()) == len(copy.list())
            count = len(copy.list())
    assert count > BATCH


def test_what_an_entry_knows_is_on_the_disk_before_it(tmp_path: Path) -> None:
    """Else a crash leaves an entry of our own that waits for others, and a next one that knows less."""
    with writers(tmp_path, 2) as (one, other):
        other.put("theirs", b"1")
        one.replicate(other)
        one.put("ours", b"2")
        one.local.flush()
        assert one.feeds[1].log.durable_end > 0
        shutil.copytree(tmp_path / "0", tmp_path / "crashed")
    with HyperDB(tmp_path / "crashed") as db:
        assert (db["theirs"], db["ours"]) == (b"1", b"2")
        assert db.put("more").clock >= db.get("ours")[0].clock


def test_who_lost_the_feeds_of_others_writes_when_they_are_back(tmp_path: Path) -> None:
    """An entry whose clock went back is one that nobody takes."""
    with writers(tmp_path, 3) as (one, other, third):
        other.put("theirs", b"1")
        meet([one, other, third])
        one.put("ours", b"2")
        meet([one, other, third])
        one.close()
        for path in (tmp_path / "0").glob(f"feeds/{other.local.key.hex()}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        with HyperDB(tmp_path / "0") as again:
            with pytest.raises(FeedDamaged, match="others that are not here") as caught:
                again.put("more")
            assert caught.value.remedy is not None
            again.replicate(third)
            again.put("more", b"3")
            again.replicate(other)
            assert other["more"] == b"3"


@pytest.mark.parametrize("signed_at_once", [True, False])
@pytest.mark.parametrize("is_ours", [True, False])
def test_records_lost_in_the_middle_shift_no_others(is_ours: bool, signed_at_once: bool, tmp_path: Path) -> None:
    """A block is gone: those behind it would all have other numbers. Those before it count, till it is fetched anew."""
    folder = tmp_path / "copy"
    with HyperDB(tmp_path / "source", create=True) as source:
        with HyperDB(folder, source.key, block_size=4096) as copy:
            source.authorize(copy.local.key)
            writer = copy if is_ours else source
            source.replicate(copy)
            for number in range(20):
                writer.put(f"n{number}", bytes([number]) * 1000)
                if not signed_at_once:
                    writer.flush()
                    source.replicate(copy)
            source.replicate(copy)
            path, length = copy.feeds[is_ours].path, len(copy.feeds[is_ours])
        with path.open("r+b") as file:
            file.seek(8192)
            file.write(bytes(4096))
        with HyperDB(folder) as copy:
            damaged = next(feed for feed in copy.feeds if feed.path == path)
            assert 0 < len(damaged) < length - 10
            assert [error.seq for error in copy.damage()] == [len(damaged)]
            assert copy["n0"] == bytes(1000)
            for nodes in copy.list():
                assert nodes[0].value == bytes([int(nodes[0].key[1:])]) * 1000
            source.put("late", b"1")
            with pytest.raises(FeedDamaged, match="other numbers"):
                copy.replicate(source)
            if is_ours:
                with pytest.raises(FeedDamaged, match="other numbers"):
                    copy.put("more")
        for lost in (path, path.with_suffix(".log.jitdb")):
            lost.rename(tmp_path / lost.name)
        with HyperDB(folder) as copy:
            copy.replicate(source)
            copy.put("more", b"2")
            copy.replicate(source)
            assert copy.damage() == []
            assert [(db["more"], db["late"], len(db.list())) for db in (copy, source)] == [(b"2", b"1", 22)] * 2


@pytest.mark.parametrize("kept", [0, 1, 5])
def test_head_without_its_entries_is_one_that_comes_again(kept: int, tmp_path: Path) -> None:
    """A crash between the two: the head is there, the entries are not."""
    with HyperDB(tmp_path / "source", create=True) as source:
        for number in range(10):
            source.put(f"k{number}")
        source.flush()
        chunk = source.chunk(source.key, 0)
        assert chunk is not None
        records, head = chunk
        with HyperDB(tmp_path / "copy", source.key) as copy:
            with Log(copy.feeds[0].log.path.with_suffix(".heads"), codec="msgpack") as log:
                log.append({"length": head.length, "signature": head.signature})
            if kept:
                copy.feeds[0].append_encoded(records[:kept], [None, *(f"k{number}" for number in range(kept - 1))])
        with HyperDB(tmp_path / "copy") as copy:
            assert copy.lengths()[source.key] == kept
            assert copy.shared()[source.key] == 0
            source.replicate(copy)
            assert copy.version == source.version
            check_feed(copy.feeds[0])
        with HyperDB(tmp_path / "copy") as copy, HyperDB(tmp_path / "third", source.key) as third:
            copy.replicate(third)
            assert third.version == source.version
