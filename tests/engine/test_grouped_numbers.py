"""Stats of many groups at once are exact, however their numbers are split, and quantiles are those of sorted lists."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitdb
from jitdb.common.values import split_number
from jitdb.engine.answering.summarizing import LogView
from jitdb.operators.summaries.arithmetic import quantiles as module
from jitdb.operators.summaries.arithmetic import summary_kernels
from jitdb.operators.summaries.arithmetic.described import number_of
from jitdb.operators.summaries.arithmetic.numbers import Moments, Numbers
from jitdb.operators.summaries.arithmetic.ordered import Tally
from jitdb.operators.summaries.arithmetic.quantiles import Measured, measured, merged

WHOLE = st.integers(-50, 50) | st.sampled_from([2**26, -(2**26), 2**31 - 1, 2**31, -(2**31), 2**52, 2**53])
RESTS = st.integers(-(2**63), 2**64 - 1) | st.sampled_from([2**53 + 1, -(2**53) - 1, 2**64 - 1])
ANY = WHOLE | st.floats(allow_nan=False) | st.sampled_from([0.5, 1e300, -1e-300, 5e-324, -0.0])
FINITE = WHOLE | st.floats(allow_nan=False, allow_infinity=False, width=64)
SHARES = [0.0, 0.1, 0.25, 1 / 3, 0.5, 0.99, 1.0]
GROUPS = 4


def numbers_of(values: list[Any]) -> Numbers:
    pairs = [split_number(value) for value in values]
    lo = np.array([lo for _, lo in pairs], np.int16)
    return Numbers(np.array([hi for hi, _ in pairs], np.float64), lo if lo.any() else None)


class Records:
    """A number and a group (-1 and -2: none) for each record, given in pieces."""

    def __init__(self, records: list[tuple[int, Any]], size: int) -> None:
        self.records, self._size = records, size

    def stream(self) -> Iterator[tuple[Numbers, Any]]:
        for begin in range(0, len(self.records), self._size):
            some = self.records[begin : begin + self._size]
            yield numbers_of([value for _, value in some]), np.array([group for group, _ in some], np.int64)

    def moments(self) -> Moments:
        found = Moments(GROUPS)
        for numbers, groups in self.stream():
            found.add(numbers, groups)
        return found

    def of(self, group: int) -> list[Any]:
        return [value for own, value in self.records if own == group and value == value]


def records_of(values: Any, **of: int) -> Any:
    return st.lists(st.tuples(st.integers(-2, GROUPS - 1), values), **of)


def check_moments(found: Moments, group: int, values: list[Any]) -> None:
    (one,) = found.described(group, group + 1)
    assert one.count == len(values)
    if not values:
        assert one[1:] == (None,) * 5
        return
    assert (one.min, one.max) == (min(values), max(values))
    if not all(map(math.isfinite, values)):
        total = float(min(values)) + float(max(values))
        assert repr((one.sum, one.mean)) == repr((total, total))
        return
    exact, count = sum(map(Fraction, values)), len(values)
    is_whole = all(Fraction(value).denominator == 1 for value in values)
    assert repr(one.sum) == repr(int(exact) if is_whole else rounded(exact))
    assert one.mean == rounded(exact / count)
    if count == 1:
        assert one.stddev is None
        return
    variance = sum((Fraction(value) - exact / count) ** 2 for value in values) / (count - 1)
    assert one.stddev == math.sqrt(rounded(variance))


def rounded(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def check_quantiles(found: Measured, group: int, values: list[Any], shares: list[float]) -> None:
    ordered = sorted(values)
    expected = [ordered[max(0, math.ceil(Fraction(repr(share)) * len(values)) - 1)] for share in shares if values]
    assert found.values(group, group + 1) == [expected]


@settings(max_examples=150, deadline=None)
@given(
    records=records_of(WHOLE, max_size=60) | records_of(ANY, max_size=30) | records_of(RESTS | FINITE, max_size=30)
    | records_of(st.just(math.nan) | WHOLE, max_size=9),
    size=st.integers(1, 40),
    shares=st.lists(st.sampled_from(SHARES), max_size=3),
    cells=st.sampled_from([0, 1, 1 << 12]),
    numbers=st.sampled_from([1, 5, 1 << 10]),
    bits=st.sampled_from([2, 5, 16]),
)  # fmt: skip
def test_each_group_is_exact(
    records: list[Any], size: int, shares: list[float], cells: int, numbers: int, bits: int
) -> None:  # fmt: skip
    made = Records(records, size)
    moments = made.moments()
    for group in range(GROUPS):
        check_moments(moments, group, made.of(group))
    for name in ("count", "min", "max", "sum", "mean", "stddev", "span"):
        expected = [getattr(each, name) for each in moments.described(0, GROUPS)]
        found = [None if weight != weight else weight for weight in moments.weights(name)]
        assert found == [None if weight != weight else weight for weight in expected]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CELLS", cells)
        patch.setattr(module, "_NUMBERS", numbers)
        patch.setattr(module, "_PART_BITS", bits)
        found = measured(made.stream, moments, shares, np.arange(GROUPS))
        for group in range(GROUPS):
            check_quantiles(found, group, made.of(group), shares)


@settings(max_examples=100, deadline=None)
@given(
    parts=st.lists(records_of(WHOLE | RESTS | FINITE, max_size=20), min_size=1, max_size=4),
    to=st.lists(st.permutations(range(GROUPS)), min_size=4, max_size=4) | st.just([[0, 0, 1, 2]] * 4),
    shares=st.lists(st.sampled_from(SHARES), max_size=3),
)
def test_parts_add_up(parts: list[Any], to: list[list[int]], shares: list[float]) -> None:
    made = [Records(records, 7) for records in parts]
    counted = [measured(one.stream, one.moments(), shares, None) for one in made]
    numbers = [np.array(numbers, np.int64) for numbers in to[: len(made)]]
    found = merged(counted, numbers, GROUPS, shares)
    for group in range(GROUPS):
        own = zip(made, numbers, strict=True)
        values = [
            value for one, of in own for number in np.flatnonzero(of == group).tolist() for value in one.of(number)
        ]
        check_moments(found.moments, group, values)
        check_quantiles(found, group, values, shares)


@settings(max_examples=100, deadline=None)
@given(
    parts=st.lists(records_of(st.just(math.nan) | st.integers(0, 40), max_size=20), min_size=1, max_size=3),
    least=st.sampled_from([0, -20, 2**31 - 20, -(2**40), 2**53 - 60]),
    shares=st.lists(st.sampled_from(SHARES), max_size=3),
)
def test_a_tally_tells_the_same(parts: list[Any], least: int, shares: list[float]) -> None:
    """Of whole numbers near each other, in one pass; of one log, and of several."""
    made = [Records([(group, value + least) for group, value in records], 7) for records in parts]
    found = []
    for one in made:
        tally = Tally.of((least, least + 40), GROUPS, 1)
        assert tally is not None
        for numbers, groups in one.stream():
            tally.add(numbers, groups)
        chosen = np.arange(GROUPS) if len(made) == 1 else None
        found.append(measured(one.stream, tally.moments(), shares, chosen, tally))
    whole = merged(found, [np.arange(GROUPS)] * len(made), GROUPS, shares)
    for group in range(GROUPS):
        values = [value for one in made for value in one.of(group)]
        check_moments(whole.moments, group, values)
        check_quantiles(whole, group, values, shares)


@pytest.mark.parametrize("value", [-1, 41, 0.5, math.inf, -math.inf, 2**60, 1e300])
def test_a_tally_of_other_numbers_is_not_right(value: float) -> None:
    """What an index says of its numbers may be wrong: nothing is written beyond the cells."""
    tally = Tally.of((0, 40), 2, 1)
    assert tally is not None
    tally.add(numbers_of([3, value, math.nan]), np.array([1, -1, 1]))
    assert tally.is_right
    tally.add(numbers_of([3, value, 5]), np.array([1, 1, 0]))
    assert not tally.is_right
    assert tally.moments().counts.tolist() == [1, 2]


@pytest.mark.parametrize("least", [0, -(2**21), 2**53 - 2**21])
def test_a_tally_of_four_billion_records(least: int) -> None:
    tally = Tally(least, 1 << 21, np.arange(1))
    tally._cells[[0, -1]] = 2**31, 2**31 - 1
    (found,) = tally.moments().described(0, 1)
    total = 2**31 * least + (2**31 - 1) * (least + 2**21 - 1)
    assert (found.count, found.min, found.max, found.sum) == (2**32 - 1, least, least + 2**21 - 1, total)
    mean = Fraction(total, 2**32 - 1)
    squares = 2**31 * (least - mean) ** 2 + (2**31 - 1) * (least + 2**21 - 1 - mean) ** 2
    assert found.stddev == math.sqrt(squares / (2**32 - 2))


def test_long_groups_are_sorted() -> None:
    values = [((n * 7919) % 1000) / 8 for n in range(3000)]
    made = Records([(n % 2 and n % 4, value) for n, value in enumerate(values)], 500)
    found = measured(made.stream, made.moments(), SHARES, np.arange(GROUPS))
    for group in range(GROUPS):
        check_quantiles(found, group, made.of(group), SHARES)


def test_carries_wait_as_long_as_digits_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary_kernels, "WAITING", 3)
    values = [2.0**31 - 1, -(2.0**31), 1.5, -0.1, 1e18, -1e-18] * 20
    moments = Moments(1)
    for value in values:
        moments.add(numbers_of([value, value]))
    check_moments(moments, 0, [value for value in values for _ in range(2)])


def test_rests_of_large_integers() -> None:
    made = Records([(0, 2**53 + 1), (0, 1), (1, -(2**63) + 1), (1, 2**64 - 1)], 2)
    found = measured(made.stream, made.moments(), [0.5, 1.0], np.arange(GROUPS))
    assert found.values(0, 2) == [[1, 2**53 + 1], [-(2**63) + 1, 2**64 - 1]]
    assert found.moments.described(0, 1)[0].sum == 2**53 + 2
    assert number_of(2.0**53, 1) == 2**53 + 1


@given(
    parts=st.lists(
        st.lists(st.tuples(st.integers(0, 39), st.sampled_from([math.nan, -math.inf, -1.5, 0.0, 2.0, 3.0, math.inf]))),
        max_size=6,
    ),
    which=st.integers(0, 2),
    sign=st.sampled_from([1, -1]),
    limit=st.integers(1, 12),
)
def test_the_codes_that_lead(parts: list[list[tuple[int, float]]], which: int, sign: int, limit: int) -> None:
    rows, numbers = np.zeros((40, 2)), defaultdict[int, list[float]](list)
    rows[:, 0] = np.nan if which else 0.0
    for part in parts:
        hi, of_each = np.array([number for _, number in part], float), np.array([code for code, _ in part], np.uint32)
        summary_kernels.add_weights(hi, of_each, which, rows)
        for code, number in part:
            numbers[code] += [] if math.isnan(number) else [number]
    weights = {
        code: float(len(held)) if which == 0 else (min, max)[which - 1](held)
        for code, held in numbers.items() if code and (held or which == 0)
    }  # fmt: skip
    codes = np.empty(40, np.uint32)
    size, there = summary_kernels.find_leading(rows, sign, np.empty(limit), codes)
    assert there == len(numbers.keys() - {0})
    if len(weights) < limit:
        assert size == -1
    else:
        last = sorted(sign * weight for weight in weights.values())[limit - 1]
        assert codes[:size].tolist() == sorted(code for code, weight in weights.items() if sign * weight <= last)


def test_an_index_that_is_wrong_about_its_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.ndjson").write_text("".join(f'{{"n": {n}, "g": "{n % 3}"}}\n' for n in range(300)))
    with jitdb.open(tmp_path / "a.ndjson", "memory", progress=False) as db:
        stats, by = db.stats("n"), db.stats_by("n", "g")
        assert (stats.sum, stats.quantile(0.5), by[0].stats.max) == (44_850, 149, 297)
        monkeypatch.setattr(LogView, "extent", lambda self, path: (0, 100))
        assert (db.stats("n"), db.stats_by("n", "g")) == (stats, by)
