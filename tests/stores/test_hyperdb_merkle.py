"""The tree of a feed against one that is computed whole, and against hypercore; and the heads that are kept of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitdb import Log
from jitdb.stores.hyperdb import HyperDB
from jitdb.stores.hyperdb.errors import FeedDamaged, HyperdbError
from jitdb.stores.hyperdb.signing.heads import CHUNK, CHUNK_BYTES, Heads, SignedHead
from jitdb.stores.hyperdb.signing.keys import KeyPair, is_signed
from jitdb.stores.hyperdb.signing.merkle import Tree

SECRET = bytes(range(32))
HYPERCORE = Path(__file__).parent.parent.parent / "benchmarks" / "js_hyperdb" / "node_modules"


def digest(*parts: bytes | int) -> bytes:
    return blake2b(
        b"".join(part.to_bytes(8, "big") if isinstance(part, int) else part for part in parts), digest_size=32
    ).digest()


def subtree(records: list[bytes]) -> bytes:
    """The hash of a whole tree over 2**n records."""
    size = sum(map(len, records))
    if len(records) == 1:
        return digest(b"\0", size, records[0])
    half = len(records) // 2
    return digest(b"\1", size, subtree(records[:half]), subtree(records[half:]))


def whole_head(records: list[bytes]) -> bytes:
    """The head, from the records alone, largest trees first."""
    parts: list[bytes | int] = [b"\2"]
    first = 0
    while first < len(records):
        count = 1
        while first + 2 * count <= len(records):
            count *= 2
        below = records[first : first + count]
        leaves = range(2 * first, 2 * (first + count), 2)
        parts += [subtree(below), (leaves[0] + leaves[-1]) // 2, sum(map(len, below))]
        first += count
    return digest(*parts)


@given(st.lists(st.binary(max_size=40), max_size=70), st.integers(0, 70))
def test_tree_grows_as_it_is_computed_whole(records: list[bytes], cut: int) -> None:
    tree = Tree()
    for count, record in enumerate(records, 1):
        tree.append(record)
        if count == cut:
            tree = Tree.of(tree.length, tree.roots())
        assert tree.head() == whole_head(records[:count])
    assert (tree.length, tree.size) == (len(records), sum(map(len, records)))


def test_copy_is_another_tree() -> None:
    tree = Tree()
    tree.extend([b"a", b"b", b"c"])
    copy, head = tree.copy(), tree.head()
    copy.append(b"d")
    assert tree.head() == head != copy.head() == whole_head([b"a", b"b", b"c", b"d"])


@pytest.mark.parametrize(("length", "roots"), [(3, b"x" * 40), (2, b"x" * 80), (1, b"x" * 39), (0, b"x")])
def test_roots_of_another_length_are_refused(length: int, roots: bytes) -> None:
    with pytest.raises(HyperdbError, match="roots"):
        Tree.of(length, roots)


SAMPLE = [b"record %d" % number * (number % 5 + 1) for number in range(40)]


def test_signature_is_the_one_that_hypercore_made() -> None:
    tree = Tree()
    tree.extend(SAMPLE)
    assert tree.head().hex() == "8cb1a1b14bf590d9b10eedf2640a4932849c1ce19d70ca027aaea71fa95aa5a6"
    assert KeyPair.of(SECRET).sign(tree.head()).hex() == (
        "f852fb7209c56b7ced80305f34342727e6c9bfabff8e5e7cec04b5d53d58fe85"
        "5447017f70014d12c8f13ae49d0829f3ed7a1f4f1be28ebaa08db3d2cd87950a"
    )


SCRIPT = """
const crypto = require('hypercore-crypto')
const tree = require('merkle-tree-stream/generator')
const input = JSON.parse(require('fs').readFileSync(0))
const pair = crypto.keyPair(Buffer.from(input.secret, 'hex'))
const merkle = tree({leaf: crypto.leaf, parent: crypto.parent})
const heads = input.records.map(record => {
  merkle.next(Buffer.from(record, 'hex'))
  const head = crypto.tree(merkle.roots)
  return [head.toString('hex'), crypto.sign(head, pair.secretKey).toString('hex')]
})
console.log(JSON.stringify({key: pair.publicKey.toString('hex'), heads}))
"""


def test_signatures_are_those_of_hypercore() -> None:
    if shutil.which("node") is None or not (HYPERCORE / "hypercore-crypto").exists():
        pytest.skip("needs node, and hypercore from npm")
    records = SAMPLE
    given = json.dumps({"secret": SECRET.hex(), "records": [record.hex() for record in records]})
    done = subprocess.run(
        ["node", "-e", SCRIPT],
        input=given.encode(),
        capture_output=True,
        check=True,
        timeout=60,
        env={"PATH": "/usr/bin:/usr/local/bin", "NODE_PATH": str(HYPERCORE)},
    )
    theirs, keys, tree = json.loads(done.stdout), KeyPair.of(SECRET), Tree()
    assert keys.public.hex() == theirs["key"]
    for record, (head, signature) in zip(records, theirs["heads"], strict=True):
        tree.append(record)
        assert (tree.head().hex(), keys.sign(tree.head()).hex()) == (head, signature)


# --- heads ---------------------------------------------------------------------------------------------------------


def heads_of(db: HyperDB) -> Path:
    return db.local.log.path.with_suffix(".heads")


def kept(path: Path) -> list[dict[str, object]]:
    with Log(path, read_only=True) as log:
        return [record.value for record in log.stream()]


def test_feed_is_signed_when_it_is_flushed_and_not_before(tmp_path: Path) -> None:
    with HyperDB(tmp_path, create=True) as db:
        lengths = [db.local.signed_length]
        for number in range(3):
            db.put(f"k{number}", b"v")
        lengths.append(db.local.signed_length)
        db.flush()
        db.flush()
        lengths.append(db.local.signed_length)
        db.put("last")
    assert lengths == [1, 1, 4]
    values = kept(heads_of(db))
    assert [value["length"] for value in values] == [1, 4, 5]
    with HyperDB(tmp_path) as db:
        records = list(db.local.records(0, 5))
        for value in values:
            length, signature = value["length"], value["signature"]
            assert isinstance(length, int)
            assert isinstance(signature, bytes)
            assert is_signed(whole_head(records[:length]), signature, db.key)


def test_heads_are_never_far_apart(tmp_path: Path) -> None:
    with HyperDB(tmp_path, create=True) as db:
        db.batch((f"k{number}", b"") for number in range(2 * CHUNK + 10))
        db.flush()
        for number in range(3):
            db.put(f"large{number}", bytes(CHUNK_BYTES * 3 // 5))
    values = kept(heads_of(db))
    assert [value["length"] for value in values] == [1, 1025, 2049, 2059, 2061, 2062]
    assert [value["length"] for value in values if "roots" in value] == [1025, 2049, 2061]


def test_opening_reads_few_records(tmp_path: Path) -> None:
    path, keys = tmp_path / "feed.heads", KeyPair.of(SECRET)
    records = [b"%d" % number for number in range(5000)]
    tree, heads = Tree(), Heads(path, keys.public)
    for length in range(500, 5001, 500):
        tree.extend(records[tree.length : length])
        heads.add([(SignedHead(length, keys.sign(tree.head())), tree)])
    heads.close()
    heads, read = Heads(path, keys.public), 0

    def reading(start: int, stop: int) -> object:
        nonlocal read
        read += stop - start
        return iter(records[start:stop])

    assert heads.tree(5000, reading).head() == whole_head(records)  # type: ignore[arg-type]
    assert 0 < read < 2 * CHUNK
    assert heads.tree(4711, reading).head() == whole_head(records[:4711])  # type: ignore[arg-type]
    records[3400] = b"another"
    with pytest.raises(FeedDamaged) as caught:
        heads.tree(4499, reading)  # type: ignore[arg-type]
    assert (caught.value.feed, caught.value.seq) == (keys.public, 3999)
    heads.close()


def test_unsigned_tail_is_signed_when_it_is_opened_next(tmp_path: Path) -> None:
    with HyperDB(tmp_path, create=True) as db:
        db.put("a", b"1")
    heads_of(db).unlink()
    shutil.rmtree(heads_of(db).with_name(heads_of(db).name + ".jitdb"))
    with HyperDB(tmp_path) as db:
        assert db.local.signed_length == 2


def test_lost_entries_are_fetched_before_others_take_their_place(tmp_path: Path) -> None:
    with HyperDB(tmp_path / "old", create=True) as db:
        db.put("a", b"1")
    shutil.copytree(tmp_path / "old", tmp_path / "older")
    with HyperDB(tmp_path / "old") as db, HyperDB(tmp_path / "copy", db.key) as copy:
        db.put("b", b"2")
        db.replicate(copy)
    for kept_heads in (tmp_path / "old" / "feeds").glob("*.heads*"):
        target = tmp_path / "older" / "feeds" / kept_heads.name
        shutil.copytree(kept_heads, target, dirs_exist_ok=True) if kept_heads.is_dir() else shutil.copy(
            kept_heads, target
        )
    with HyperDB(tmp_path / "older") as db, HyperDB(tmp_path / "copy") as copy:
        assert db.local.lost == 1
        with pytest.raises(FeedDamaged, match="replicate"):
            db.put("c", b"3")
        db.replicate(copy)
        assert db["b"] == b"2"
        db.put("c", b"3")
        db.replicate(copy)
        assert copy["c"] == b"3"
