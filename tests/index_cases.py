"""What the tests of indexes share: values as a scan locates them, small spans, index files and their contents."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
from engine_helpers import stored_indexes
from hypothesis import strategies as st
from kernel_cases import scan
from numpy.typing import NDArray
from pyroaring import BitMap

from jitdb import JITDB
from jitdb.indexes.files.file import LogName
from jitdb.indexes.files.index import Index
from jitdb.indexes.hashing import P1, P2
from jitdb.indexes.kinds.bitmaps import Bitmaps, GroupedBitmaps, dictionary_of, load_bitmap
from jitdb.indexes.kinds.dictionary import DictionaryColumn, codes_of, dictionary_values
from jitdb.indexes.kinds.numbers import Numbers, load_extremes, load_numbers
from jitdb.indexes.kinds.offsets import Offsets, load_offsets
from jitdb.indexes.kinds.prefixes import Prefixes, PrefixMap, prefixes_of, records_present
from jitdb.indexes.kinds.roaring import members_of
from jitdb.indexes.kinds.set import Set, records_in_sets
from jitdb.indexes.numbering import key_at
from jitdb.indexes.segment import (
    BITMAPS,
    DICTIONARY,
    LAYOUTS,
    NUMBERS,
    OFFSETS,
    PREFIX_MAP,
    PREFIXES,
    SET,
    SPAN,
    Run,
    Segment,
)
from jitdb.log.codecs import get_codec
from jitdb.log.codecs.fields.located import FieldValues

MSGPACK = get_codec("msgpack")
LOG = LogName(bytes(range(16)), 3)
MISSING = object()


def values_of(items: Sequence[Any]) -> FieldValues:
    """These values as the field `v` of msgpack records; MISSING where a record lacks it."""
    records = [MSGPACK.encode({} if item is MISSING else {"v": item}) for item in items]
    return scan(MSGPACK, records, [("v",)])[0][0] if records else scan(MSGPACK, [b"\x80"], [("v",)])[0][0]


numbers = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from(
        [edge + near for edge in (0, 2**53, -(2**53), 2**63, 2**64 - 2, -(2**63) + 1) for near in (-1, 0, 1)]
    ),
    st.floats(),
    st.sampled_from([0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), 2.0**53, 2.0**63]),
)
texts = st.text(max_size=12) | st.sampled_from(["", "a", "post", "about", "p" * 8, "p" * 16, "p" * 17])
scalars = st.one_of(st.none(), st.booleans(), numbers, texts, st.binary(max_size=20))
items = st.one_of(
    scalars,
    scalars,
    st.lists(scalars, max_size=3),
    st.dictionaries(texts, scalars, max_size=3),
    st.just(MISSING),
)


@contextlib.contextmanager
def spans_of(records: int) -> Iterator[None]:
    """With spans of so few records that a test can fill some."""
    for name in (
        "engine.building.scan",
        "engine.catalog.carry",
        "indexes.kinds.set_builders",
        *(f"indexes.kinds.{layout.content.partition(':')[0]}" for layout in LAYOUTS.values()),
    ):  # what is loaded later would keep such spans for good
        importlib.import_module(f"jitdb.{name}")
    with contextlib.ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.startswith("jitdb.") and "SPAN" in vars(module):
                stack.enter_context(mock.patch.object(module, "SPAN", records))
        yield


def contents(segments: Sequence[Segment]) -> list[tuple[Any, ...]]:
    """All that segments say, in absolute seqs, however they are cut: equal for equal indexes. Reads every blob."""
    out: list[tuple[Any, ...]] = []
    for segment in segments:
        kind, first = segment.kind, segment.first_seq
        if kind == BITMAPS:
            keys = dictionary_of(segment)
            for number in range(len(keys)):
                found = load_bitmap(segment, number)
                assert len(found) == keys.cardinalities[number]
                out += [("bitmap", keys[number], seq) for seq in found]
        elif kind == SET:
            out += [("set", seq) for seq in records_in_sets([segment])]
        elif kind == OFFSETS:
            out += [("offset", first + i, offset) for i, offset in enumerate(load_offsets(segment).tolist())]
        elif kind == NUMBERS:
            hi, lo = load_numbers(segment)
            load_extremes(segment)  # of zones, which are where the segment is cut
            rests = [0] * len(hi) if lo is None else lo.tolist()
            out += [("number", first + i, repr(h), rests[i]) for i, h in enumerate(hi.tolist())]
        elif kind == DICTIONARY:
            keys, codes = dictionary_values(segment), codes_of(segment).tolist()
            out += [("coded", first + i, key_at(keys, code - 1) if code else b"") for i, code in enumerate(codes)]
        else:
            assert kind in (PREFIXES, PREFIX_MAP)
            prefixes, seqs = prefixes_of(segment)
            assert {*seqs.tolist()} == {*records_present(segment)}
            out += [("pair", *pair) for pair in zip(prefixes.tolist(), seqs.tolist(), strict=True)]
    return sorted(out)


def opened(db: JITDB) -> list[Index]:
    """The indexes of a database, as its files have them."""
    assert db.folder is not None
    return stored_indexes(db.folder)


def reread(index: Index) -> Index:
    """The index as another process finds it."""
    again = Index(index.spec, LOG, index.path)
    again.load()
    return again


P1_INVERSE, P2_INVERSE = pow(P1, -1, 2**64), pow(P2, -1, 2**64)


def before_last_word(wanted: int, length: int) -> int:
    """The state of hash_key right after the multiplication of its last word, if the hash is `wanted`."""
    h = wanted ^ (wanted >> 32)
    h = (h * P2_INVERSE % 2**64) ^ length
    return h ^ (h >> 29) ^ (h >> 58)


def colliding_payload(kind: int, payload: bytes, wanted: int) -> bytes:
    """The payload with its last eight bytes, which are a whole word, such that its hash is `wanted`."""
    assert len(payload) % 8 == 0
    h = (kind + 1) * P1 % 2**64
    for start in range(0, len(payload) - 8, 8):
        h = (h ^ int.from_bytes(payload[start : start + 8], "little")) * P1 % 2**64
        h ^= h >> 29
    last = before_last_word(wanted, len(payload)) * P1_INVERSE % 2**64 ^ h
    return payload[:-8] + last.to_bytes(8, "little")


def make_bitmaps(keys: Sequence[bytes], sets: Sequence[BitMap], run: Run) -> Segment:
    """A BITMAPS segment of sorted, distinct keys and their sets; members count from the span's start, below too."""
    return Bitmaps(keys, sets, run[0] % SPAN, run[1]).segment(run)


def make_grouped(keys: Sequence[bytes], members: NDArray[np.uint32], begins: NDArray[np.int64], run: Run) -> Segment:
    """The same from arrays, written by the kernels."""
    from jitdb.indexes.kinds.kernels import roaring as roaring_kernels

    assert roaring_kernels
    return GroupedBitmaps(keys, members, begins, run[0] % SPAN, run[1]).segment(run)


def make_prefixes(present: BitMap, prefixes: NDArray[np.uint32], offset: int, run: Run) -> Segment:
    first, members = run[0] % sys.modules["jitdb.indexes.segment"].SPAN, members_of(present)
    return Prefixes(prefixes[members - np.uint32(first)], members, first, run[1], offset).segment(run)


def make_prefix_map(prefixes: NDArray[np.uint32], members: NDArray[np.uint32], offset: int, run: Run) -> Segment:
    first = run[0] % sys.modules["jitdb.indexes.segment"].SPAN
    return PrefixMap(prefixes, members, first, run[1], offset).segment(run)


def make_numbers(hi: NDArray[np.float64], lo: NDArray[np.int16] | None, run: Run) -> Segment:
    return Numbers(hi, lo, run[0] % SPAN).segment(run)


def make_offsets(offsets: NDArray[np.int64], run: Run, damaged: Iterable[int] = ()) -> Segment:
    return Offsets(offsets, run[0] % SPAN, damaged).segment(run)


def make_dictionary(keys: Sequence[bytes], codes: Sequence[int], run: Run) -> Segment:
    """Of keys in any order; code n is that of key n - 1."""
    values = FieldValues.of_keys(keys)
    return DictionaryColumn.of_codes(values, np.array(codes, np.uint32), run[0] % SPAN).segment(run)


def make_set(members: BitMap, run: Run) -> Segment:
    return Set(members, run[0] % SPAN, run[1]).segment(run)
