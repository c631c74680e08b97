"""Sets of records are sets: what a plain set of Python says of the same records, through all that happens to a log."""

from __future__ import annotations

import json
import operator
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from thoroughness import tries

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import LogCorrupt, QueryError, SetNotFound
from jitdb.log.sidecar import sets
from jitdb.operators import and_, count, equal, field, from_db, gt, not_, or_, query, to_json, to_set, where

SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "&": operator.and_, "|": operator.or_, "-": operator.sub, "^": operator.xor,
}  # fmt: skip

NAMES = st.sampled_from("abc")


class SetsOfALog(RuleBasedStateMachine):
    """Names for sets, of which a model holds the numbers of the records."""

    @initialize(data=st.integers(0, 40))
    def begin(self, data: int) -> None:
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "log"
        self.next = 0
        self.there: dict[int, int] = {}  # colour, by number
        self.model: dict[str, set[int]] = {}
        self.values: dict[str, Any] = {}
        self.log = Log(self.path, block_size=1024)
        self.db = JITDB(self.log)
        self.append(data)

    @rule(count=st.integers(1, 30))
    def append(self, count: int) -> None:
        records = [{"n": self.next + at, "colour": (self.next + at) * 7 % 5} for at in range(count)]
        self.log.append_many(records)
        self.log.flush()
        self.there |= {record["n"]: record["colour"] for record in records}
        self.next += count

    @rule(colour=st.integers(0, 4), above=st.integers(0, 60))
    def delete(self, colour: int, above: int) -> None:
        self.db.delete(equal("colour", colour) & gt(above, "n"))
        self.there = {n: found for n, found in self.there.items() if not (found == colour and n > above)}

    @rule()
    def compact(self) -> None:
        self.db.compact()

    @rule()
    def open_again(self) -> None:
        self.db.close()
        self.log = Log(self.path)
        self.db = JITDB(self.log)
        self.values = {name: self.db.sets[name] for name in self.model}

    @rule(name=NAMES, colour=st.integers(0, 4), above=st.integers(0, 60))
    def find(self, name: str, colour: int, above: int) -> None:
        asked = self.db.query(equal("colour", colour) | gt(above, "n"))
        self.keep(name, asked.set(), {n for n, found in self.there.items() if found == colour or n > above})

    @rule(
        name=NAMES,
        one=st.sampled_from("abc"),
        two=st.sampled_from("abc"),
        sign=st.sampled_from("&|-^"),
    )
    def combine(self, name: str, one: str, two: str, sign: str) -> None:
        if one in self.model and two in self.model:
            combine = SIGNS[sign]
            live = self.there.keys()
            self.keep(
                name,
                combine(self.values[one], self.values[two]),
                combine(self.model[one] & live, self.model[two] & live),
            )

    def keep(self, name: str, value: Any, wanted: set[int]) -> None:
        self.values[name], self.model[name] = value, wanted
        self.db.sets[name] = value

    @invariant()
    def sets_are_what_the_model_says(self) -> None:
        if not hasattr(self, "model"):
            return
        live = self.there.keys()
        model = {name: wanted & live for name, wanted in self.model.items()}
        assert sorted(self.model) == list(self.db.sets)
        places = {record.offset: record.value["n"] for record in self.log.stream()}
        for name, wanted in model.items():
            for value in (self.values[name], self.db.sets[name]):
                assert len(value) == len(wanted)
                assert [places[offset] for offset in value] == sorted(wanted)
                assert self.db.count(value) == len(wanted)
            value = self.values[name]
            assert [offset for offset in places if offset in value] == list(value)
            red = {n for n in wanted if self.there[n] == 1}
            assert {record["n"] for record in self.db.query(value & equal("colour", 1))} == red
            assert {record["n"] for record in self.db.query(~value)} == live - wanted
        for one in model:
            for two in model:
                left, right, a, b = self.values[one], self.values[two], model[one], model[two]
                assert ((left == right), (left <= right), (left < right)) == ((a == b), (a <= b), (a < b))
                assert ((left >= right), (left > right)) == ((a >= b), (a > b))
                assert left.isdisjoint(right) == a.isdisjoint(b)
                assert left.jaccard(right) == (len(a & b) / len(a | b) if a | b else 1.0)

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self.db.close()
            self.folder.cleanup()


TestSetsOfALog = SetsOfALog.TestCase
TestSetsOfALog.settings = settings(max_examples=tries(12, 300), stateful_step_count=12, deadline=None)


@pytest.fixture
def db(tmp_path: Path) -> Any:
    with Log(tmp_path / "log") as log:
        log.append_many([{"n": n, "colour": n % 3} for n in range(100)])
        log.flush()
        yield JITDB(log)


def test_sets_are_operations(db: JITDB) -> None:
    red = db.query(equal("colour", 1)).set()
    assert query(from_db(db), where(equal("colour", 1)), to_set()) == red
    assert db.query(red).count() == db.query().where(red).count() == 33
    assert db.query(and_(red, gt(50, "n"))).count() == 16
    assert db.query(or_(equal("n", 0), red)).count() == 34
    assert db.query(not_(red)).count() == 67
    assert db.query(red).select("n").descending().page(2).data == [{"n": 97}, {"n": 94}]
    assert db.value_counts("colour", red)[0].count == 33
    assert db.query().start_from(90).sort_by_arrival().set() == db.query(gt(89, "n")).set()
    assert len(query(from_db(db), where(red), to_set())) == 33
    assert db.query(field("n") < 30).as_of(db.log.since).set() <= db.query().set()
    assert (red & db.query(gt(50, "n")).set()).jaccard(red) == 16 / 33
    assert list(db.record_set(red, limit=3)) == db.query(red).offsets()[:3]


def test_what_is_no_set_of_this_log_is_refused(db: JITDB, tmp_path: Path) -> None:
    red = db.query(equal("colour", 1)).set()
    with Log(tmp_path / "other") as log:
        log.append_many([{"n": 1}])
        log.flush()
        other = JITDB(log)
        for ask in (
            lambda: other.count(red),
            lambda: other.sets.update(red=red),
            lambda: len(other.query().set() & red),
        ):
            with pytest.raises(QueryError, match="of another log"):
                ask()
    with pytest.raises(QueryError, match="has no JSON form"):
        to_json(red)
    with pytest.raises(QueryError, match="combined with another one"):
        red - equal("colour", 1)
    with pytest.raises(QueryError, match="neither true nor false"):
        bool(red)
    with pytest.raises(TypeError):
        hash(red)
    with pytest.raises(QueryError, match="a set is one of records"):
        query(from_db(db), count(), to_set())
    assert "x" not in red
    assert -1 not in red
    assert 2**70 not in red


def test_a_set_travels(db: JITDB) -> None:
    red = db.query(equal("colour", 1)).set()
    assert db.count(pickle.loads(pickle.dumps(red))) == 33


def test_names(db: JITDB) -> None:
    red = db.query(equal("colour", 1)).set()
    names = ["a", "../b", "grün/ü", ".", "x" * 200, "A b\n"]
    for name in names:
        db.sets[name] = red
    assert list(db.sets) == sorted(names)
    assert all(db.sets[name] == red for name in names)
    assert len(db.sets) == len(names)
    assert {path.parent for path in db.log.path.parent.rglob("*.set")} == {db.log.sidecar / "sets"}
    del db.sets["../b"]
    assert "../b" not in db.sets
    assert db.sets.get("../b") is None
    with pytest.raises(SetNotFound, match="there are"):
        db.sets["../b"]
    with pytest.raises(SetNotFound):
        del db.sets["../b"]
    for wrong in ("", "y" * 300, 3):
        with pytest.raises(QueryError, match="the name of a set"):
            db.sets[wrong] = red  # type: ignore[index]
    with pytest.raises(QueryError, match="what is kept"):
        db.sets["c"] = equal("colour", 1)  # type: ignore[assignment]
    assert db.verify().ok
    assert not any("sets" in str(left) for left in db.log.verify().leftovers)


def test_names_of_a_database_in_memory(db: JITDB) -> None:
    other = JITDB(db.log, "memory")
    other.sets["red"] = other.query(equal("colour", 1)).set()
    assert (list(other.sets), len(other.sets["red"]), list(db.sets)) == (["red"], 33, [])
    del other.sets["red"]
    with pytest.raises(SetNotFound):
        del other.sets["red"]


def test_damage_is_told(db: JITDB) -> None:
    db.sets["red"] = red = db.query(equal("colour", 1)).set()
    path = db.log.sidecar / "sets" / "red.set"
    good = path.read_bytes()
    for bit in random.Random(2).sample(range(8 * len(good)), 40):
        data = bytearray(good)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with pytest.raises(LogCorrupt, match="make it again"):
            db.sets["red"]
    for bad in (b"", good[:30], good[:-5], bytes(len(good)), good + b"x"):
        path.write_bytes(bad)
        with pytest.raises(LogCorrupt, match="make it again"):
            db.sets["red"]
    path.write_bytes(sets.FRAME.pack(9, 1, b"x" * 16, b""))
    with pytest.raises(LogCorrupt, match="does not know"):
        db.sets["red"]
    db.compact()  # leaves it as it is
    db.sets["red"] = red
    assert db.sets["red"] == red


def test_repair_sets_damage_aside(db: JITDB) -> None:
    db.sets["red"] = db.sets["blue"] = red = db.query(equal("colour", 1)).set()
    folder = db.log.sidecar / "sets"
    good = (folder / "red.set").read_bytes()
    (folder / "blue.set").write_bytes(good[:-9])
    told = [(finding.what, Path(finding.file).name) for finding in db.log.verify().findings]
    assert told == [("set", "blue.set")]
    assert [action.restored for action in db.repair().actions] == [False]
    assert db.log.verify().ok
    assert (folder / "red.set").read_bytes() == good
    assert (folder / "blue.set.damaged").read_bytes() == good[:-9]
    assert db.sets["red"] == red
    assert list(db.sets) == ["red"]


def test_the_bytes_of_a_file(db: JITDB) -> None:
    """docs/sets.md has them."""
    import zlib

    from pyroaring import BitMap

    db.sets["few"] = db.query(field("n").isin([3, 5])).set()
    data = (db.log.sidecar / "sets" / "few.set").read_bytes()
    assert data[:8] == b"JITDBSET"
    assert int.from_bytes(data[8:12], "little") == 1
    assert int.from_bytes(data[12:16], "little") == db.log.generation
    assert data[16:32] == db.log.identity
    assert list(BitMap.deserialize(data[32:-4])) == [3, 5]
    assert int.from_bytes(data[-4:], "little") == zlib.crc32(data[:-4])


def test_lines_in_place_and_another_process(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    path.write_text("".join(json.dumps({"n": n}) + "\n" for n in range(50)))
    with jitdb.open(path) as db:
        db.sets["big"] = found = db.query(gt(20, "n")).set()
        with open(path, "a") as file:
            file.write('{"n": 99}\n')
        db.refresh()
        assert (len(found), db.count(gt(20, "n"))) == (29, 30)
    with jitdb.open(path) as db:
        assert [record["n"] for record in db.query(db.sets["big"])] == list(range(21, 50))
    path.write_text('{"n": 1}\n')
    with jitdb.open(path) as db, pytest.raises(QueryError, match="of another log"):
        len(db.sets["big"])


def test_sets_of_several_logs(tmp_path: Path) -> None:
    for at in range(4):
        (tmp_path / f"{at}.ndjson").write_text(
            "".join(json.dumps({"n": n, "colour": n % 3, "timestamp": 10**12 + n}) + "\n" for n in range(at, 120, 4))
        )
    with jitdb.open_many(tmp_path) as logs:

        def numbers(found: Any) -> set[int]:
            return {record["n"] for record in logs.query(found)}

        red, big = logs.query(equal("colour", 1)).set(), logs.query(gt(80, "n")).set()
        one = logs.query(equal("_path", str(tmp_path / "1.ndjson"))).set()
        model = {id(found): numbers(found) for found in (red, big, one)}
        assert model[id(red)] == set(range(1, 120, 3))
        for left in (red, big, one):
            for right in (red, big, one):
                a, b = model[id(left)], model[id(right)]
                for combine in SIGNS.values():
                    assert numbers(combine(left, right)) == combine(a, b)
                    assert len(combine(left, right)) == len(combine(a, b))
                assert (left == right, left <= right, left < right) == (a == b, a <= b, a < b)
                assert left.jaccard(right) == len(a & b) / len(a | b)
        assert numbers(red & gt(50, "n")) == {n for n in range(51, 120) if n % 3 == 1}
        assert numbers(~red) == {n for n in range(120) if n % 3 != 1}
        assert logs.count(red) == len(red) == 40
        places = logs.query(equal("colour", 1)).offsets()
        assert set(red) == set(places)
        assert places[0] in red
        assert ("elsewhere", 0) not in red
        assert numbers(logs.query(equal("colour", 1)).descending().start_from(3).set()) == set(range(1, 112, 3))
        logs.sets["red"], logs.sets["one"], logs.sets["none"] = red, one, red - red
        assert list(logs.sets) == ["none", "one", "red"]
        with pytest.raises(QueryError, match="what is kept"):
            logs.sets["x"] = equal("colour", 1)  # type: ignore[assignment]
    with jitdb.open_many(tmp_path) as logs:
        assert len(logs.sets["red"]) == 40
        assert len(logs.sets["none"]) == 0
        assert logs.sets["one"] <= logs.query().set()
        logs.sets["red"] = logs.sets["one"]
        assert logs.sets["red"] == logs.sets["one"]
        del logs.sets["red"]
        with pytest.raises(SetNotFound):
            logs.sets["red"]
        with pytest.raises(SetNotFound):
            del logs.sets["red"]
        assert len(logs.sets) == 2
    with jitdb.open(tmp_path / "1.ndjson") as db:
        assert len(db.sets["one"]) == 30
