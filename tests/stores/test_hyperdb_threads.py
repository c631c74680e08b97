"""Readers and writers of one database in many threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from hyperdb_writers import writers

from jitdb.stores.hyperdb import HyperDB

ROUNDS = 60


def test_readers_see_whole_batches(tmp_path: Path) -> None:
    """Each batch gives two keys one value, one of them after another one; a list or a snapshot has both or neither."""
    done = Event()
    with writers(tmp_path, 2) as (db, other):

        def write() -> None:
            for number in range(ROUNDS):
                value = b"%d" % number
                db.batch([("a/1", b"never seen"), ("a/2", value), ("a/1", value)])

        def give_and_take() -> None:
            for number in range(ROUNDS // 10):
                other.put(f"b/{number}", b"")
                other.replicate(db)

        def read(ask: Callable[[], list[bytes | None]]) -> int:
            seen = 0
            while not done.is_set() or not seen:
                found = ask()
                assert len(found) in (0, 2), found
                assert len(set(found)) <= 1
                seen += bool(found)
            return seen

        def listed() -> list[bytes | None]:
            return [nodes[0].value for nodes in db.list("a")]

        def iterated() -> list[bytes | None]:
            return [nodes[0].value for nodes in db.iterator("a", lookup="trie")]

        def looked_up() -> list[bytes | None]:
            past = db.snapshot()
            return [node.value for key in ("a/1", "a/2") for node in past.get(key)]

        with ThreadPoolExecutor() as pool, db.watch("a/2") as watcher:
            readers = [pool.submit(read, ask) for ask in (listed, iterated, looked_up)]
            try:
                for each in [pool.submit(write), pool.submit(give_and_take)]:
                    each.result()
            finally:
                done.set()
            assert all(reader.result() for reader in readers)
            taken = [watcher.take(0) for _ in range(ROUNDS)]
        assert [node and node.value for node in taken] == [b"%d" % number for number in range(ROUNDS)]
        assert db["a/1"] == db["a/2"] == b"%d" % (ROUNDS - 1)
        assert len(db.list("b")) == ROUNDS // 10
    with HyperDB(tmp_path / "0") as db:
        assert len(db.history()) == 1 + 3 * ROUNDS + ROUNDS // 10
