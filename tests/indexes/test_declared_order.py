"""The declared order against sorted(): records without a number first, then by number, then by seq."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_cases import LOG, numbers
from pyroaring import BitMap
from test_columns import column as column_of
from thoroughness import tries

from jitdb.engine.answering import order
from jitdb.engine.answering.order import Numbers as NumbersColumn
from jitdb.engine.answering.order import Order
from jitdb.indexes import segment
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds import numbers as number_kind
from jitdb.indexes.spec import IndexSpec

Numbers = Sequence[int | float | None]


def index_of(values: Numbers, cuts: Sequence[int] = (), path: Path | None = None) -> Index:
    """A column of these numbers in segments cut at these seqs."""
    index = Index(IndexSpec("column", (("t",),)), LOG, path)
    bounds = [0, *cuts, len(values)]
    index.segments = [column_of(values[start:stop], start) for start, stop in pairwise(bounds) if start < stop]
    return index


def declared(values: Numbers, members: Sequence[int], wanted: int, descending: bool) -> list[int]:
    def key(seq: int) -> tuple[int, Any, int]:
        value = values[seq]
        return (0, 0, seq) if value is None or value != value else (1, value, seq)

    return sorted(members, key=key, reverse=descending)[:wanted]


def declared_order(index: Index) -> Order:
    return Order([(NumbersColumn(index, 1), False)], is_declared=True)


def first(index: Index, members: Sequence[int], wanted: int, descending: bool) -> list[int]:
    return declared_order(index).first(BitMap(members), wanted, descending).tolist()


@pytest.fixture
def _short_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (order, number_kind, segment):
        monkeypatch.setattr(module, "ZONE", 4)
    monkeypatch.setattr(order, "FEW", 8)
    monkeypatch.setattr(order, "_FIRST_ZONES", 2)


few_numbers = st.one_of(st.none(), st.integers(0, 3), st.sampled_from([0.5, math.inf, -math.inf, math.nan]))
columns = st.one_of(
    st.lists(few_numbers, min_size=1, max_size=60),
    st.lists(st.integers(0, 2), min_size=20, max_size=80),
    st.lists(numbers | st.none(), min_size=1, max_size=60),
    st.lists(st.integers(2**63 - 3, 2**63 + 3) | st.none(), min_size=1, max_size=60),
    st.lists(st.integers(0, 100), min_size=1, max_size=60).map(sorted),
    st.lists(st.integers(2**53, 2**53 + 4) | st.just(2**53 + 0.0), min_size=1, max_size=60).map(sorted),
)


@pytest.mark.usefixtures("_short_zones")
@settings(max_examples=tries(100, 1000), deadline=None)
@given(st.data(), columns, st.booleans())
def test_the_first_of_any_column(data: st.DataObject, values: Numbers, descending: bool) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(values) - 1)), max_size=3)))
    members = sorted(data.draw(st.sets(st.integers(0, len(values) - 1), max_size=len(values))))
    index = index_of(values, cuts)
    for wanted in {0, 1, 2, 3, len(members) // 4, len(members), len(members) + 5}:
        assert first(index, members, wanted, descending) == declared(values, members, wanted, descending)


@pytest.mark.usefixtures("_short_zones")
@pytest.mark.parametrize("descending", [False, True])
def test_every_wanted_size_over_many_segments(descending: bool) -> None:
    values: list[int | float | None] = [(number * 7919) % 101 for number in range(200)]
    values[17] = values[150] = None
    values[60:80] = [50] * 20
    index = index_of(values, [30, 31, 77, 128, 190])
    everything = range(200)
    for wanted in range(202):
        assert first(index, everything, wanted, descending) == declared(values, everything, wanted, descending)


@pytest.mark.usefixtures("_short_zones")
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "value",
    [None, math.nan, 5, math.inf, -math.inf, 2**63 + 1, 0.5],
    ids=["none", "nan", "5", "inf", "-inf", "u64", "half"],
)
def test_ties_go_by_seq(value: int | float | None, descending: bool) -> None:
    values = [value] * 100
    assert first(index_of(values, [33]), range(100), 7, descending) == declared(values, range(100), 7, descending)


@pytest.mark.usefixtures("_short_zones")
@pytest.mark.parametrize("descending", [False, True])
def test_of_many_that_tie_few_are_looked_at(descending: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0
    ours = order.numbers_at

    def counted(segments: Any, seqs: Any, *more: Any) -> Any:
        nonlocal looked_at
        looked_at += len(seqs)
        return ours(segments, seqs, *more)

    monkeypatch.setattr(order, "numbers_at", counted)
    values = [3 if number % 3 == 0 else 4 for number in range(400)]
    assert first(index_of(values, [100, 300]), range(400), 5, descending) == declared(values, range(400), 5, descending)
    assert looked_at <= 60


@pytest.mark.usefixtures("_short_zones")
def test_ties_in_a_zone_just_ahead_of_those_that_are_known() -> None:
    values = [2] * 36 + [1, 2, 2, 2, 0, 1, 1, 2]
    assert first(index_of(values), range(44), 2, False) == [40, 36]
    values = [9, 5, 5, 1, 5, 1, 1, 1] + [1] * 36
    assert first(index_of(values), range(44), 2, True) == [0, 4]


@pytest.mark.usefixtures("_short_zones")
@pytest.mark.parametrize("descending", [False, True])
def test_rests_decide_where_doubles_are_equal(descending: bool) -> None:
    values = [2**63 + (number * 37) % 64 for number in range(64)]
    assert len({float(value) for value in values}) == 1
    for wanted in (1, 5, 15, 64):
        got = first(index_of(values, [20, 40]), range(64), wanted, descending)
        assert got == declared(values, range(64), wanted, descending)


@pytest.mark.usefixtures("_short_zones")
@pytest.mark.parametrize("descending", [False, True])
def test_records_without_a_number_and_the_infinities(descending: bool) -> None:
    values: list[int | float | None] = [1, -math.inf, None, math.inf, 2, None, -math.inf, math.nan, math.inf, 0] * 10
    for wanted in range(0, 101, 3):
        got = first(index_of(values, [45]), range(100), wanted, descending)
        assert got == declared(values, range(100), wanted, descending)


@pytest.mark.usefixtures("_short_zones")
def test_an_order_that_grows_with_its_column() -> None:
    values: list[int | float | None] = []
    index = index_of([])
    ordered = declared_order(index)
    for step in range(30):
        more = [(len(values) * 31 + i * 17) % 50 + (0.5 if step == 12 else 0) for i in range(step % 5 + 1)]
        if step == 20:
            more.append(2**63 + 1)
        index.append(column_of(more, len(values)))
        values += more
        for descending in (False, True):
            members = BitMap(range(len(values)))
            for wanted in (1, 3, len(values) // 5):
                got = ordered.first(members, wanted, descending).tolist()
                assert got == declared(values, range(len(values)), wanted, descending)


@pytest.mark.parametrize("descending", [False, True])
def test_zones_of_their_true_size(descending: bool) -> None:
    generator = np.random.default_rng(1)
    values = (np.arange(50_000) * 10 + generator.integers(0, 500_000, 50_000)).tolist()
    index = index_of(values, [20_000, 20_001, 45_000])
    members = np.flatnonzero(generator.random(50_000) < 0.5).tolist()
    for wanted in (1, 10, 1000, 5000):
        assert first(index, members, wanted, descending) == declared(values, members, wanted, descending)


def test_nothing_is_first_of_nothing() -> None:
    assert first(index_of([]), [], 5, False) == []
    assert first(index_of([1, 2]), [], 5, True) == []
