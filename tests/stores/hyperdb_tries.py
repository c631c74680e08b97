"""Tries as another program would write them, and what a new entry's is to hold: slow, and of dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jitdb.stores.hyperdb.format.path import END, path_digits
from jitdb.stores.hyperdb.format.trie import Pointer, Trie
from jitdb.stores.hyperdb.tries.node import Node
from jitdb.stores.varint import varint

MANY = 256  # pointers in one place, of one digit, from which on the newest of each feed are enough


def encode_trie(trie: Trie, numbers: Sequence[int] | Mapping[int, int] | None = None) -> bytes:
    """The bytes of a trie; numbers: of each feed here, its number in the writer's order."""
    out = bytearray()
    for place in sorted(trie):
        out += varint(place) + varint(sum(1 << digit for digit in trie[place]))
        for _, pointers in sorted(trie[place].items()):
            for more, (feed, seq) in enumerate(pointers, 1 - len(pointers)):
                out += varint((feed if numbers is None else numbers[feed]) << 1 | (more < 0)) + varint(seq)
    return bytes(out)


def trie_of(node: Node) -> Trie:
    """Its pointers; none, where nobody can decode them."""
    try:
        return node.trie
    except Exception:
        return {}


def grown_trie(key: str, heads: Sequence[Node], nodes: Mapping[Pointer, Node | None]) -> Trie:
    """The trie of a new entry, from the heads; nodes: of all entries, None where nobody can read one."""
    path = path_digits(key)
    found: dict[tuple[int, int], list[Pointer]] = {}
    begun = {head.pointer: 0 for head in heads}
    todo = [(head, 0, len(path)) for head in heads]

    def point(place: int, digit: int, pointer: Pointer) -> None:
        pointers = found.setdefault((place, digit), [])
        if pointer not in pointers:
            pointers.append(pointer)

    while todo:
        head, begin, end = todo.pop()
        trie = trie_of(head)
        for place in range(begin, end):
            ours, theirs, bucket = path[place], head.path[place], trie.get(place, {})
            for digit, pointers in bucket.items():
                if digit == ours != END:
                    continue
                for pointer in pointers:
                    node = nodes.get(pointer)
                    is_one = len(pointers) == 1 and digit != END and pointer in nodes
                    belongs = node is not None and node.path.startswith(path[:place] + bytes([digit]))
                    if is_one or (belongs and node is not None and node.key != key):
                        point(place, digit, pointer)
            if ours != theirs or (ours == END and head.key != key):
                point(place, theirs, head.pointer)
                for pointer in bucket.get(ours, ()):
                    before, node = begun.get(pointer, len(path)), nodes.get(pointer)
                    if before > place + 1 and node is not None and node.path.startswith(path[: place + 1]):
                        begun[pointer] = place + 1
                        todo.append((node, place + 1, before))
                break
    trie: Trie = {}
    for (place, digit), pointers in found.items():
        some = pointers
        if len(pointers) > MANY and digit != END:
            some = [max(each for each in pointers if each.feed == feed) for feed in {each.feed for each in pointers}]
        trie.setdefault(place, {})[digit] = some
    return trie
