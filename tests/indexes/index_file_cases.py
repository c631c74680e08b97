"""Index files of all kinds of segments, and what is in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_cases import (
    LOG,
    contents,
    make_bitmaps,
    make_dictionary,
    make_numbers,
    make_offsets,
    make_prefix_map,
    make_prefixes,
    make_set,
)

from jitdb.common.values import value_key
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds.roaring import bitmap_of
from jitdb.indexes.segment import BITMAPS, DICTIONARY, NUMBERS, OFFSETS, PREFIX_MAP, PREFIXES, SET, Segment
from jitdb.indexes.spec import IndexSpec

SPEC = IndexSpec("auto", (("value", "type"),))
KINDS = [BITMAPS, SET, PREFIXES, PREFIX_MAP, NUMBERS, OFFSETS, DICTIONARY]
SMALL_SPAN = 64


def made(kind: int, first: int, count: int, span: int = SMALL_SPAN) -> Segment:
    """A segment of these records whose contents follow from their seqs alone."""
    run = (first, count, 100 * first, 100 * (first + count))
    seqs = np.arange(first, first + count)
    relative = (seqs % span).astype(np.uint32)
    if kind == OFFSETS:
        return make_offsets(seqs * 100 + 2, run)
    if kind == NUMBERS:
        hi = np.where(seqs % 5 == 0, math.nan, seqs * 1.5)
        lo = np.where((seqs % 11 == 1) & (seqs % 5 > 0), seqs % 7, 0).astype(np.int16)
        return make_numbers(hi, lo, run)
    if kind == SET:
        return make_set(bitmap_of(relative[(seqs % 3 == 0) | (seqs % 64 < 20)]), run)
    if kind == BITMAPS:
        names = sorted({value_key(int(seq) // 10 % 4) for seq in seqs} | {value_key("odd") for seq in seqs if seq % 2})
        groups = {name: [] for name in names}  # type: ignore[var-annotated]
        for seq, place in zip(seqs.tolist(), relative.tolist(), strict=True):
            groups[value_key(seq // 10 % 4)].append(place)
            if seq % 2:
                groups[value_key("odd")].append(place)
        return make_bitmaps(names, [bitmap_of(np.array(groups[name], np.uint32)) for name in names], run)
    if kind == DICTIONARY:
        names = [value_key(value) for value in (*range(0, 30, 3), "text", None, [1, "a"])]
        return make_dictionary(names, (seqs // 3 % (len(names) + 1)).tolist(), run)
    prefixes = np.where(seqs % 4 == 0, 0, seqs * 2654435761 % 97).astype(np.uint32)
    there = seqs % 4 != 0
    if kind == PREFIXES:
        return make_prefixes(bitmap_of(relative[there]), prefixes, -1, run)
    return make_prefix_map(prefixes[there], relative[there], -1, run)


def pieces(total: int, sizes: Sequence[int], span: int = SMALL_SPAN, start: int = 0) -> list[tuple[int, int]]:
    """first, count of runs of these sizes (over and over) up to `total`, none across a span."""
    out, at, turn = [], start, 0
    while at < total:
        count = min(sizes[turn % len(sizes)], span - at % span, total - at)
        out.append((at, count))
        at += count
        turn += 1
    return out


def built(path: Path | None, kind: int, total: int, sizes: Sequence[int]) -> Index:
    index = Index(SPEC, LOG, path)
    for first, count in pieces(total, sizes):
        index.append(made(kind, first, count))
    return index


def truth(kind: int, total: int) -> list[tuple[Any, ...]]:
    return contents([made(kind, first, count) for first, count in pieces(total, [SMALL_SPAN])])


each_kind = pytest.mark.parametrize(
    "kind", KINDS, ids=["bitmaps", "set", "prefixes", "prefix map", "numbers", "offsets", "dictionary"]
)
