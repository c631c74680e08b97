"""The tries of new entries, grown by a kernel, beside those of a plain program: of honest feeds and of any others."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hyperdb_tries import MANY, encode_trie, grown_trie
from thoroughness import tries

from jitdb.stores.hyperdb.format.path import END, path_digits
from jitdb.stores.hyperdb.format.trie import Pointer, Trie, decode_trie
from jitdb.stores.hyperdb.tries import growing
from jitdb.stores.hyperdb.tries.growing import Growing
from jitdb.stores.hyperdb.tries.node import Node

COLLIDING = ("idgcmnmna", "mpomeiehc")
KEYS = ["", "a", "a/", "/a", "a/b", "a/c", "b", "b/a", *COLLIDING, "/" + COLLIDING[0], *(f"{x}/c" for x in COLLIDING)]


class World:
    """Feeds of nodes, each of which numbers the feeds in an order of its own."""

    def __init__(self, random: Random, feeds: int) -> None:
        self.random = random
        self.lengths = [1] * feeds
        self.orders = [tuple(random.sample(range(feeds), feeds)) for _ in range(feeds)]
        self.nodes: dict[Pointer, Node | None] = {}
        self.reads = 0
        self.growing = Growing(self.read)

    def read(self, pointer: Pointer) -> Node | None:
        self.reads += 1
        return self.nodes[pointer]

    def write(self, feed: int, key: str, data: bytes) -> Node:
        """Another entry of a feed, which knows all others."""
        pointer = Pointer(feed, self.lengths[feed])
        self.lengths[feed] += 1
        node = Node(key, None, False, pointer, tuple(self.lengths), data, self.orders[feed])
        self.nodes[pointer] = node
        return node

    def numbers(self, feed: int) -> dict[int, int]:
        return {each: place for place, each in enumerate(self.orders[feed])}

    def check(self, key: str, heads: list[Node], feed: int) -> bytes:
        """The trie of a new entry, which must be that of the plain program."""
        data = self.growing.trie(key, path_digits(key), heads, self.lengths, self.orders[feed])
        expected = grown_trie(key, heads, self.nodes)
        assert as_sets(decode_trie(data, self.orders[feed])) == as_sets(expected)
        assert len(data) == len(encode_trie(expected, self.numbers(feed)))
        return data

    def any_trie(self, feed: int) -> bytes:
        """One that points anywhere, or no trie at all."""
        random = self.random
        pointers = [Pointer(each, seq) for each, length in enumerate(self.lengths) for seq in range(length + 2)]
        pointers += [Pointer(feed, 2**60), Pointer(feed, 2**64 - 1)]
        trie: Trie = {
            place: {digit: random.choices(pointers, k=random.choice((1, 1, 2, 5))) for digit in digits}
            for place in random.sample([*range(70), 2**62, 2**64 - 1], random.randrange(40))
            if (digits := random.sample(range(5), random.randrange(1, 5)))
        }
        data = encode_trie(trie, self.numbers(feed))
        return data if random.random() < 0.9 else random.choice([data[:-1], data + b"\x01", data * 2, b"\xff" * 12])


def as_sets(trie: Trie) -> dict[int, dict[int, set[Pointer]]]:
    return {place: {digit: set(some) for digit, some in bucket.items()} for place, bucket in trie.items()}


@pytest.mark.parametrize("seed", range(tries(3, 200)))
def test_honest_writers(seed: int) -> None:
    """Each of whom knows some of the others' newest entries: these, and its own, are the heads."""
    random = Random(seed)
    world = World(random, 1 + seed % 3)
    newest: dict[int, Node] = {}
    for number in range(60):
        feed = random.randrange(len(world.lengths))
        key = random.choice([*KEYS, f"{random.randrange(9)}/{random.randrange(40)}"])
        heads = [node for each, node in newest.items() if each == feed or random.random() < 0.7]
        world.growing.begin(Pointer(feed, world.lengths[feed]))
        newest[feed] = world.write(feed, key, world.check(key, heads, feed))
        if number % 3:
            world.growing.add(newest[feed])


@pytest.mark.parametrize("seed", range(tries(6, 500)))
def test_liars(seed: int) -> None:
    """Pointers that lead anywhere, tries that are none, and entries that nobody can read."""
    random = Random(seed)
    world = World(random, 1 + seed % 3)
    for _ in range(40):
        feed = random.randrange(len(world.lengths))
        world.write(feed, random.choice(KEYS), world.any_trie(feed))
    some = [node for node in world.nodes.values() if node is not None]
    heads = random.sample(some, min(len(some), 3))
    for pointer in random.sample(sorted(world.nodes), 5):
        if world.nodes[pointer] not in heads:
            world.nodes[pointer] = None
    for key in KEYS:
        world.check(key, heads, 0)
    assert world.reads <= len(world.nodes)  # each node is looked at once, and kept


def test_pointers_by_the_hundred() -> None:
    """The newest of each feed are taken over; of keys that collide, all."""
    world = World(Random(0), 2)
    for number in range(2 * MANY):
        for feed in range(2):
            world.write(feed, f"x/{number}", b"")
    (place, digit) = next(
        (place, digit) for place, digit in enumerate(path_digits("x")) if digit != path_digits("y")[place]
    )
    head = world.write(0, "y/z", encode_trie({place: {digit: list(world.nodes)}}, world.numbers(0)))
    found = decode_trie(world.check("y", [head], 1), world.orders[1])
    assert sorted(found[place][digit]) == [Pointer(0, 2 * MANY), Pointer(1, 2 * MANY)]

    folders = ["/".join(COLLIDING[number >> bit & 1] for bit in range(9)) for number in range(2 * MANY)]
    same = [world.write(1, folder, b"").pointer for folder in folders]
    head = world.write(
        0, folders[0] + "/x", encode_trie({len(path_digits(folders[0])) - 1: {END: same}}, world.numbers(0))
    )
    (bucket,) = decode_trie(world.check(folders[0], [head], 0), world.orders[0]).values()
    assert len(bucket[END]) == len(folders) - 1


def test_what_was_not_written_is_forgotten() -> None:
    world = World(Random(1), 1)
    world.growing.begin(Pointer(0, 1))
    lost = Node("a/lost", None, False, Pointer(0, 1), (2,), b"", (0,))
    world.growing.add(lost)
    world.growing.begin(Pointer(0, 1))
    head = world.write(0, "a", b"")
    world.check("a/b", [head], 0)
    assert world.reads == 0


def test_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The older half of what is kept is forgotten when that has grown too large, and read again."""
    monkeypatch.setattr(growing, "_MOST", 20_000)
    world = World(Random(2), 1)
    heads: list[Node] = []
    for number in range(600):
        world.growing.begin(Pointer(0, world.lengths[0]))
        key = f"{number % 7}/{number}"
        heads = [world.write(0, key, world.check(key, heads, 0))]
        world.growing.add(heads[0])
        assert world.growing._size < 30_000
    assert world.reads
    assert np.count_nonzero(world.growing._slots >= 0) == world.growing._count
