"""The reference's own bytes and answers: tests/data/vectors/hyperdb, or $JITDB_VECTORS/hyperdb."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hyperdb_tries import encode_trie

from jitdb.stores.hyperdb import HyperDB
from jitdb.stores.hyperdb.errors import NotWritable
from jitdb.stores.hyperdb.format.entry import HEADER, decode_entry, decode_header, encode_entry
from jitdb.stores.hyperdb.format.path import normalized, path_digits, segment_digits, segments_of
from jitdb.stores.hyperdb.format.trie import Pointer, decode_trie
from jitdb.stores.hyperdb.graph import FEEDS_MOST
from jitdb.stores.hyperdb.tries.node import Node

VECTORS = Path(os.environ.get("JITDB_VECTORS") or Path(__file__).parent.parent / "data" / "vectors") / "hyperdb"


def cases(kind: str, part: str) -> list[Any]:
    """The cases of all files of a kind, named."""
    found = []
    for path in sorted(VECTORS.glob(f"{kind}*.json")):
        for number, case in enumerate(json.loads(path.read_text())[part]):
            name = case.get("name") or case.get("title") or case.get("key") or str(number)
            found.append(pytest.param(case, id=f"{path.stem}-{name}-{number}"))
    assert found, f"there are no {kind}*.json in {VECTORS}"
    return found


@pytest.mark.parametrize("case", [*cases("path-hashes", "keys"), *cases("path-hashes", "edge")])
def test_paths(case: dict[str, Any]) -> None:
    key = normalized(case["key"])
    assert key == case["stored_key"]
    assert segments_of(key) == case["segments"]
    assert "".join(map(str, path_digits(key))) == case["path"]
    for segment, digest in zip(case["segments"], case["siphash"], strict=True):
        digits = [(byte >> shift) & 3 for byte in bytes.fromhex(digest) for shift in (0, 2, 4, 6)]
        assert list(segment_digits(segment)) == digits


@pytest.mark.parametrize("case", cases("trie-encodings", "tries"))
def test_tries(case: dict[str, Any]) -> None:
    trie = {
        int(place): {int(digit): [Pointer(*pointer) for pointer in pointers] for digit, pointers in bucket.items()}
        for place, bucket in case["trie"].items()
    }
    assert encode_trie(trie, case["encode_map"]).hex() == case["hex"]
    assert decode_trie(bytes.fromhex(case["hex"]), case["decode_map"]) == trie


def as_sets(record: bytes) -> Any:
    """An entry, with the pointers of each digit as a set: their order is nobody's."""
    entry = decode_entry(record)
    trie = {
        place: {digit: set(pointers) for digit, pointers in bucket.items()}
        for place, bucket in decode_trie(entry.trie, range(FEEDS_MOST)).items()
    }
    return entry._replace(trie=b""), trie, len(entry.trie)


def same_entries(records: Iterator[bytes], expected: list[str]) -> None:
    found = list(records)
    assert found[0] == HEADER == bytes.fromhex(expected[0])
    assert decode_header(found[0]) == "hyperdb"
    assert len(found) == len(expected)
    for record, hexed in zip(found[1:], expected[1:], strict=True):
        assert as_sets(record) == as_sets(bytes.fromhex(hexed))
        assert encode_entry(decode_entry(record)) == record


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def raw(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def records_of(db: HyperDB, names: dict[bytes, bytes]) -> Iterator[bytes]:
    """The local feed, with other keys in the place of those that chance gave."""
    for seq in range(len(db.local)):
        record = db.local.record(seq)
        for ours, theirs in names.items():
            record = record.replace(ours, theirs)
        yield record


def apply(db: HyperDB, op: dict[str, Any]) -> list[Node]:
    if op["op"] == "batch":
        items = op["items"]
        return db.batch((key, raw(value[0]) if value else None, kind == "del") for kind, key, *value in items)
    if op["op"] == "del":
        return [db.delete(op["key"])]
    return [db.put(op["key"], raw(op["value"]))]


@pytest.mark.parametrize("lookup", ["index", "trie"])
@pytest.mark.parametrize("case", cases("single", "histories"))
def test_one_writer(case: dict[str, Any], lookup: Any, tmp_path: Path) -> None:
    checks = {check["after_op"]: check for check in case["checks"]}
    with HyperDB(tmp_path, create=True) as db:
        for number, op in enumerate(case["ops"], 1):
            nodes = apply(db, op)
            assert [node.seq for node in nodes] == (op["seqs"] if op["op"] == "batch" else [op["seq"]])
            check = checks.get(number)
            if check is None:
                continue
            assert [head.seq for head in db.heads()] == [check["head"]]
            for key, expected in check["gets"]:
                found = db.get(key, lookup=lookup)
                assert [[node.seq, text(node.value)] for node in found] == [each[:2] for each in expected]
            for each in check["lists"]:
                groups = db.list(each["prefix"], lookup=lookup)
                assert [[nodes[0].key, nodes[0].seq] for nodes in groups] == each["result"]
        for checkout in case["checkouts"]:
            past = db.checkout(checkout["version_seq"])
            for key, expected in checkout["gets"]:
                found = past.get(key, lookup=lookup)
                assert [[node.seq, text(node.value)] for node in found] == [each[:2] for each in expected]
        names = {db.key: bytes.fromhex(case["feed_key"])}
        same_entries(records_of(db, names), [case["header"], *(node["entry"] for node in case["nodes"])])


def as_dict(node: Node) -> dict[str, Any]:
    return {"key": node.key, "value": text(node.value), "seq": node.seq, "deleted": node.deleted}


def step(db: HyperDB, op: str, args: list[Any]) -> Any:
    if op == "put":
        options = {"if_not_exists": True} if len(args) > 2 and args[2].get("ifNotExists") else {}
        return as_dict(db.put(args[0], raw(args[1]), **options))
    if op == "del":
        return as_dict(db.delete(args[0]))
    if op == "batch":
        operations = [(each["key"], raw(each.get("value")), each["type"] == "del") for each in args[0]]
        return [as_dict(node) for node in db.batch(operations)]
    if op == "get":
        return [as_dict(node) for node in db.get(args[0])]
    if op == "list":
        options = args[1] if len(args) > 1 else {}
        return [[as_dict(node) for node in nodes] for nodes in db.list(args[0], **options)]
    if op == "history":
        return [as_dict(node) for node in db.history(reverse=bool(args and args[0].get("reverse")))]
    if op == "version":
        return db.version.hex()
    past = db.checkout(args[0])
    if op == "checkout_get":
        return [as_dict(node) for node in past.get(args[1])]
    with pytest.raises(NotWritable):
        past.put(args[1], raw(args[2]))
    return {"error": "Cannot put on a checkout"}


@pytest.mark.parametrize("case", [case for case in cases("edge", "cases") if "steps" in case.values[0]])
def test_edges(case: dict[str, Any], tmp_path: Path) -> None:
    with HyperDB(tmp_path, create=True) as db:
        theirs = decode_entry(bytes.fromhex(case["feed"][1])).feeds
        assert theirs is not None
        for each in case["steps"]:
            found = step(db, each["op"], each["args"])
            expected = each["result"]
            if each["op"] == "batch":
                expected = [{"value": None, **node} for node in expected]
            if each["op"] == "version":
                found = found.replace(db.key.hex(), theirs[0].hex())
            assert found == expected, each
        same_entries(records_of(db, {db.key: theirs[0]}), case["feed"])


@pytest.mark.parametrize("case", [case for case in cases("edge", "cases") if "watchers" in case.values[0]])
def test_watched(case: dict[str, Any], tmp_path: Path) -> None:
    with HyperDB(tmp_path, create=True) as db:
        seqs: dict[str, list[int]] = {prefix: [] for prefix in case["watchers"]}
        for prefix, found in seqs.items():
            db.watch(prefix, lambda node, found=found: found.append(node.seq - 1))  # type: ignore[misc]
        for op, key, *value in case["ops"]:
            apply(db, {"op": op, "key": key, "value": value[0] if value else None})
        assert seqs == case["watchers"]


def opened(writer: str, case: dict[str, Any], dbs: dict[str, HyperDB], folder: Path) -> HyperDB:
    """The database of a writer; all have copies of the first one's."""
    if writer not in dbs:
        first = case["writers"][0]
        key = None if writer == first else opened(first, case, dbs, folder).key
        dbs[writer] = HyperDB(folder / writer, key, create=True)
    return dbs[writer]


class Writers:
    """The databases of a scenario, and their writers' names in the place of numbers."""

    def __init__(self, case: dict[str, Any], folder: Path) -> None:
        self.dbs: dict[str, HyperDB] = {}
        for writer in case["writers"]:
            opened(writer, case, self.dbs, folder)
        self.names = {db.local.key: writer for writer, db in self.dbs.items()}

    def name(self, db: HyperDB, feed: int) -> str:
        return self.names[db.feeds[feed].key]

    def clock(self, db: HyperDB, node: Node) -> dict[str, int]:
        return {self.name(db, feed): length for feed, length in enumerate(node.clock) if length}

    def pairs(self, db: HyperDB, nodes: list[Node]) -> list[list[Any]]:
        return sorted([self.name(db, node.feed), node.seq] for node in nodes)

    def full(self, db: HyperDB, nodes: list[Node]) -> list[list[Any]]:
        found = [[self.name(db, node.feed), node.seq, text(node.value), node.deleted] for node in nodes]
        return sorted(found, key=lambda each: each[:2])

    def check(self, db: HyperDB, state: dict[str, Any]) -> None:
        for key, expected in {**state["gets"], **state.get("causal_gets", {})}.items():
            assert self.full(db, db.get(key)) == expected, key
        assert self.pairs(db, db.heads()) == state["heads"]
        groups = [[nodes[0].key, self.pairs(db, nodes)] for nodes in db.list()]
        assert groups == state.get("causal_list", state["list"])
        history = db.history()
        assert sorted(self.pairs(db, history)) == sorted(state["history"])
        for order in (history, db.history(reverse=True)[::-1]):
            assert all(not node.knows(later) for place, node in enumerate(order) for later in order[place:])
        assert {name: db.authorized(key) for key, name in self.names.items()} == state["authorized"]
        lengths = {self.names[feed.key]: len(feed) for feed in db.feeds}
        assert lengths == state["known"]


@pytest.mark.parametrize("case", cases("multi", "scenarios"))
def test_several_writers(case: dict[str, Any], tmp_path: Path) -> None:
    writers = Writers(case, tmp_path)
    for each in case["steps"]:
        if each["op"] == "replicate":
            left, right = (writers.dbs[name] for name in each["between"])
            left.replicate(right)
            continue
        db = writers.dbs[each["writer"]]
        if each["op"] == "check":
            writers.check(db, each["state"])
            continue
        if each["op"] == "authorize":
            nodes = [db.authorize(writers.dbs[each["authorizes"]].local.key)]
        else:
            nodes = apply(db, each)
        assert nodes[-1].seq == each["seq"]
        if "clock" in each:
            assert writers.clock(db, nodes[-1]) == {name: known for name, known in each["clock"].items() if known}
    for name, db in writers.dbs.items():
        theirs = {other.local.key: bytes.fromhex(case["feeds"][writer]["key"]) for writer, other in writers.dbs.items()}
        same_entries(records_of(db, theirs), case["feeds"][name]["entries"])
        db.close()
