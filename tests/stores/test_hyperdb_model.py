"""Random histories of one to four writers, against a plain model of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hyperdb_model import Found, Name, Replica, State
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from thoroughness import tries

from jitdb.stores.hyperdb import Checkout, HyperDB
from jitdb.stores.hyperdb.tries.node import Node

# Few segments, so that keys meet: two of them have the same hash, and "" is none at a key's ends.
segments = st.sampled_from(["a", "b", "mpomeiehc", "idgcmnmna", ""])
keys = st.lists(segments, max_size=3).map("/".join)
values = st.none() | st.binary(max_size=3)
writes = st.tuples(keys, values, st.sampled_from([False, False, True]))
writers = st.integers(0, 3)
steps = st.one_of(
    st.tuples(st.just("write"), writers, st.lists(writes, min_size=1, max_size=1)),
    st.tuples(st.just("write"), writers, st.lists(writes, max_size=4)),
    st.tuples(st.just("authorize"), writers, writers),
    st.tuples(st.just("replicate"), writers, writers),
    st.tuples(st.just("reopen"), writers, st.none()),
    st.tuples(st.just("remember"), writers, st.none()),
)
histories = st.lists(steps, max_size=30)
PHASES = [phase for phase in Phase if phase is not Phase.explain]  # which takes minutes here


def normalized(key: str) -> str:
    return key.removeprefix("/")


class World:
    """Databases of some writers, and the model of each; histories go on where a writer is missing by another one."""

    def __init__(self, count: int, folder: Path) -> None:
        self.folder, self.count = folder, count
        self.dbs: list[HyperDB] = []
        for number in range(count):
            self.dbs.append(HyperDB(folder / str(number), self.dbs[0].key if number else None, create=True))
        self.names = {db.local.key: number for number, db in enumerate(self.dbs)}
        self.models = [Replica(number) for number in range(count)]
        self.remembered: list[tuple[int, bytes, State]] = []

    def apply(self, op: str, writer: int, what: Any) -> None:
        writer %= self.count
        db, model = self.dbs[writer], self.models[writer]
        if op == "write":
            nodes = db.batch(what) if len(what) != 1 else [self.written(db, *what[0])]
            model.write([(normalized(key), value, deleted) for key, value, deleted in what])
            assert self.found(db, nodes) == [each.name for each in model.feeds[writer][-len(what) :][: len(what)]]
        elif op == "authorize":
            db.authorize(self.dbs[what % self.count].local.key)
            model.authorize(what % self.count)
        elif op == "replicate":
            db.replicate(self.dbs[what % self.count])
            model.replicate(self.models[what % self.count])
        elif op == "reopen":
            db.close()
            self.dbs[writer] = HyperDB(self.folder / str(writer))
        else:
            self.remembered.append((writer, db.version, model.state()))

    def written(self, db: HyperDB, key: str, value: bytes | None, deleted: bool) -> Node:
        return db.delete(key, value) if deleted else db.put(key, value)

    def found(self, db: HyperDB, nodes: Sequence[Node]) -> list[Name]:
        return sorted((self.names[db.feeds[node.feed].key], node.seq) for node in nodes)

    def groups(self, db: HyperDB, groups: Sequence[Sequence[Node]]) -> Found:
        return [(nodes[0].key, self.found(db, nodes)) for nodes in groups]

    def check(self, number: int) -> None:
        """All that a database says, now and of the past, is what its model says."""
        db, state = self.dbs[number], self.models[number].state()
        self.check_state(db, db, state)
        for key, other in self.names.items():
            assert db.authorized(key) == (other in self.models[number].authorized())
        self.check_history(db, state)
        for writer, version, past in self.remembered:
            if writer == number:
                self.check_state(db, db.checkout(version), past)
                self.check_diff(db, db.checkout(version), state, past)

    def check_state(self, db: HyperDB, seen: HyperDB | Checkout, state: State) -> None:
        assert self.found(db, seen.heads()) == state.heads()
        assert {name: entry.value for name, entry in state.entries.items()} == {
            (self.names[db.feeds[node.feed].key], node.seq): node.value for node in seen.history()
        }
        lookups = ("index", "trie") if len(self.dbs) == 1 else ("index",)
        for key in {entry.key for entry in state.entries.values()} | {"nowhere"}:
            for lookup, deletes in product(lookups, (False, True)):
                found = seen.get("/" + key, deletes=deletes, lookup=lookup)  # type: ignore[arg-type]
                assert self.found(db, found) == state.get(key, deletes), key
            assert [self.found(db, nodes) for nodes in seen.key_history("/" + key)] == state.key_history(key)
        for prefix, number in product(("", "a", "mpomeiehc", "idgcmnmna/a", "b/", "/a", "a//", "nowhere"), range(4)):
            gt, deletes, reverse = number > 1, number % 2 > 0, number in (1, 2)
            expected = state.list(prefix, gt, reverse, deletes)
            for lookup in lookups:
                groups = seen.list("/" + prefix, gt=gt, reverse=reverse, deletes=deletes, lookup=lookup)
                assert self.groups(db, groups) == expected
            folders = seen.list("/" + prefix, gt=gt, reverse=reverse, deletes=deletes, recursive=False)
            assert {tuple(self.found(db, nodes)) for nodes in folders} == set(state.folders(prefix, gt, deletes))
            assert len(folders) == len(state.folders(prefix, gt, deletes))

    def check_history(self, db: HyperDB, state: State) -> None:
        for reverse in (False, True):
            order = [self.found(db, [node])[0] for node in db.history(reverse=reverse)][:: -1 if reverse else 1]
            assert sorted(order) == sorted(state.entries)
            for place, name in enumerate(order):
                assert state.entries[name].knows & state.entries.keys() <= set(order[:place])

    def check_diff(self, db: HyperDB, checkout: Checkout, state: State, past: State) -> None:
        for prefix in ("", "a", "/a", "mpomeiehc"):
            found = db.diff(checkout, "/" + prefix)
            sides = {(each.key, tuple(self.found(db, each.left)), tuple(self.found(db, each.right))) for each in found}
            assert len(sides) == len(found)
            assert sides == state.diff(past, prefix)


@settings(max_examples=tries(15, 500), deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 4), histories)
def test_any_history(count: int, history: list[Any]) -> None:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        world = World(count, Path(folder))
        for db in world.dbs:
            stack.callback(db.close)
        for other in range(1, count):  # else most of a history would be nobody's business
            world.apply("authorize", 0, other)
            world.apply("replicate", other, 0)
        for op, writer, what in history:
            world.apply(op, writer, what)
        for number in range(count):
            world.check(number)
        for db in world.dbs:
            db.close()


@settings(max_examples=tries(10, 500), deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(st.lists(writes, max_size=40), st.integers(0, 40))
def test_any_history_of_one_writer(operations: list[Any], cut: int) -> None:
    """Where one batch ends and the next begins makes no difference, and the walk finds what the index does."""
    with TemporaryDirectory() as folder:
        world = World(1, Path(folder))
        for part in (operations[:cut], operations[cut:]):
            world.apply("write", 0, part)
            world.apply("remember", 0, None)
        world.check(0)
        world.dbs[0].close()
