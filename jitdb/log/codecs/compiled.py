"""The locator of a format that has kernels: they find all fields in the records' own bytes, and decode nothing.

The paths of one scan are a trie of flat arrays, so that a kernel walks a record once for all of them. Node 0 is the
record itself. Nodes stand in preorder, so a node's subtree is the run `[node, subtree_end[node])`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from jitdb.common.paths import Keys
from jitdb.log.codecs.fields.automaton_kernels import LAST_SEEN
from jitdb.log.codecs.fields.constants import LIVE, MAX_NESTING
from jitdb.log.codecs.fields.located import FieldValues, Locator, RecordBatch, Rows, known_encoding

if TYPE_CHECKING:
    from numpy.typing import NDArray


Kernel: TypeAlias = Callable[..., Any]


class Trie(NamedTuple):
    """Flat arrays, one entry a node (all int32, except `keys`).

    first_child, next_sibling: a node number, or -1
    key_start, key_length:     the node's key as a slice of `keys` (uint8, UTF-8)
    field:                     the number of the path that ends here, or -1
    subtree_end:               one past the last node below this one
    """

    first_child: NDArray[np.int32]
    next_sibling: NDArray[np.int32]
    key_start: NDArray[np.int32]
    key_length: NDArray[np.int32]
    field: NDArray[np.int32]
    subtree_end: NDArray[np.int32]
    keys: NDArray[np.uint8]


def build_trie(paths: Sequence[Keys]) -> Trie:
    """The trie of distinct, not empty paths; field `i` is `paths[i]`.

    >>> trie = build_trie([("a", "b"), ("a",)])
    >>> trie.field.tolist(), trie.key_length.tolist()
    ([-1, 1, 0], [0, 1, 1])
    """
    tree: dict[str, dict] = {}  # type: ignore[type-arg]
    for path in paths:
        level = tree
        for key in path:
            level = level.setdefault(key, {})
    numbers = {path: number for number, path in enumerate(paths)}
    rows: list[list[int]] = []  # first child, next sibling, key start, key length, field, subtree end
    keys = bytearray()

    def add(key: str, below: dict, path: Keys) -> int:  # type: ignore[type-arg]
        raw = key.encode()
        row = [-1, -1, len(keys), len(raw), numbers.get(path, -1), 0]
        node = len(rows)
        rows.append(row)
        keys.extend(raw)
        previous = -1
        for child_key, child_below in below.items():
            child = add(child_key, child_below, (*path, child_key))
            if previous < 0:
                row[0] = child
            else:
                rows[previous][1] = child
            previous = child
        row[5] = len(rows)
        return node

    add("", tree, ())
    columns = np.array(rows, np.int32).T
    key_bytes = np.frombuffer(bytes(keys) or b"\0", np.uint8)
    first_child, next_sibling, key_start, key_length, field, subtree_end = map(np.ascontiguousarray, columns)
    return Trie(first_child, next_sibling, key_start, key_length, field, subtree_end, key_bytes)


class CompiledLocator(Locator):
    """Finds the fields of records of a format, by its kernels: what calls `locate`, and what calls `values`."""

    def __init__(self, encoding: int, kernels: tuple[Kernel, Kernel], paths: Sequence[Keys]) -> None:
        """encoding: of arrays and maps. Raises CodecError where there is none of that number."""
        self._encoding = known_encoding(encoding)
        self._locate, self._values_at = kernels
        self._trie = build_trie(paths)
        self._scratch = np.zeros(LAST_SEEN + len(self._trie.field), np.int64)
        self._rows = Rows.empty(len(paths), 0)

    def fields(self, records: RecordBatch) -> tuple[list[FieldValues], int]:
        if not len(self._rows.kind):
            return [], 0
        self._rows = self._rows.with_room(len(records))
        rows = self._rows.fitted(len(records))
        buffer, verdicts = records.buffer, np.empty(len(records), np.uint8)
        malformed = self._locate(
            buffer, records.starts, records.lengths, records.states, *self._trie, *rows, self._scratch, verdicts
        )
        return [FieldValues(self._encoding, buffer, *row) for row in zip(*rows, strict=True)], malformed

    def values_at(self, records: RecordBatch, positions: NDArray[np.int64]) -> FieldValues:
        rows, _ = self._at(records, np.where(records.states == LIVE, positions, -1))
        return FieldValues(self._encoding, records.buffer, *(array[0] for array in rows))

    def invalid(self, records: RecordBatch) -> NDArray[np.int64]:
        _, ends = self._at(records, np.zeros(len(records), np.int64))
        return np.flatnonzero((records.states == LIVE) & (ends != records.starts + records.lengths))

    def _at(self, records: RecordBatch, positions: NDArray[np.int64]) -> tuple[Rows, NDArray[np.int64]]:
        """What lies at a position in each record, and where it ends; -1 where it cannot be decoded."""
        rows, ends = Rows.empty(1, len(records)), np.empty(len(records), np.int64)
        stack = np.empty(MAX_NESTING + 1, np.int64)
        self._values_at(records.buffer, records.starts, records.lengths, positions, *rows, ends, stack)
        return rows, ends
