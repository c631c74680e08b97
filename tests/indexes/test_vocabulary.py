"""Keys are numbered by first occurrence, found again, and forgotten, as by a plain dict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import EXAMPLES

from jitdb.common.values import value_key
from jitdb.indexes.kinds.dictionary import KeyHeap
from jitdb.indexes.vocabulary import Vocabulary

texts = st.text("aä", max_size=20) | st.integers() | st.none() | st.booleans() | st.lists(st.integers(0, 2), max_size=3)
keys_of_one = st.lists(texts.map(value_key), max_size=30, unique=True)


def numbered(known: dict[bytes, int], keys: Sequence[bytes]) -> list[int]:
    return [known.setdefault(key, len(known) + 1) for key in keys]


@settings(max_examples=6 * EXAMPLES, deadline=None)
@given(st.lists(keys_of_one, max_size=6), keys_of_one, st.integers(0, 60))
def test_as_a_dict_does(parts: list[list[bytes]], asked: list[bytes], kept: int) -> None:
    known: dict[bytes, int] = {}
    found = Vocabulary()
    for part in parts:
        assert found.find(KeyHeap.of(part)).tolist() == [known.get(key, 0) for key in part]
        assert found.number(KeyHeap.of(part)).tolist() == numbered(known, part)
    before = found.keys
    assert [before.key(at) for at in range(len(found))] == list(known)
    assert found.find(KeyHeap.of(asked)).tolist() == [known.get(key, 0) for key in asked]
    found.cut(kept)
    known = dict(list(known.items())[:kept])
    assert len(found) == len(known)
    assert found.number(KeyHeap.of(asked)).tolist() == numbered(known, asked)
    assert [found.keys.key(at) for at in range(len(found))] == list(known)
    assert [before.key(at) for at in range(kept) if at < len(before.ends)] == list(known)[: min(kept, len(before.ends))]


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(keys_of_one, st.data())
def test_parts_of_keys(keys: list[bytes], data: st.DataObject) -> None:
    heap = KeyHeap.of(keys)
    begin = data.draw(st.integers(0, len(keys)))
    end = data.draw(st.integers(begin, len(keys)))
    some = heap.between(begin, end)
    assert [some.key(at) for at in range(end - begin)] == keys[begin:end]
    chosen = data.draw(st.lists(st.integers(0, max(0, len(keys) - 1)), max_size=9)) if keys else []
    found = heap.chosen(np.array(chosen, np.int64))
    assert [found.key(at) for at in range(len(chosen))] == [keys[at] for at in chosen]
    added = Vocabulary()
    added.add(some)
    assert added.find(heap).tolist() == [at - begin + 1 if begin <= at < end else 0 for at in range(len(keys))]


def test_hashes_that_are_all_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys decide, not hashes."""
    from jitdb.indexes import vocabulary_kernels

    real = vocabulary_kernels.hash_keys

    def alike(*arguments: object) -> None:
        real(*arguments)  # type: ignore[arg-type]
        arguments[-1][:] &= np.uint64(0xFFFFFFFF)  # type: ignore[index]

    monkeypatch.setattr(vocabulary_kernels, "hash_keys", alike)
    found, known = Vocabulary(), dict[bytes, int]()
    for begin in (0, 30, 10):
        part = [value_key(f"value {number}") for number in range(begin, begin + 50)]
        assert found.number(KeyHeap.of(part)).tolist() == numbered(known, part)


def test_many() -> None:
    found, known = Vocabulary(), dict[bytes, int]()
    for begin in range(0, 40_000, 9_000):
        part = [value_key(f"{number * 7919 % 30_011:x}") for number in range(begin, begin + 10_000)]
        part = list(dict.fromkeys(part))
        assert found.number(KeyHeap.of(part)).tolist() == numbered(known, part)
    assert len(found) == len(known)
