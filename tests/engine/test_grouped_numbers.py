"""Stats of many groups at once are those of each group by itself, and exact."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitdb.operators.summaries.numbers import Numbers, described, described_each

WHOLE = st.integers(-50, 50) | st.sampled_from([2**26, -(2**26), 2**27, 2**52, 2**53])
ANY = WHOLE | st.sampled_from([0.5, 1e300, -1e-300, math.inf, -math.inf, -0.0])
SHARES = [0.0, 0.1, 0.25, 1 / 3, 0.5, 0.99, 1.0]


def numbers_of(values: list[float]) -> Numbers:
    return Numbers(np.array(values, np.float64), None)


@settings(max_examples=80, deadline=None)
@given(
    groups=st.lists(st.lists(WHOLE, max_size=9) | st.lists(ANY, max_size=5) | st.just([3, 1, 2] * 70), max_size=6),
    shares=st.lists(st.sampled_from(SHARES), max_size=3),
)
def test_each_group_is_described_as_by_itself(groups: list[list[float]], shares: list[float]) -> None:
    found = list(described_each([numbers_of(group) for group in groups], shares))
    assert len(found) == len(groups)
    for group, one in zip(groups, found, strict=True):
        alone = described(numbers_of(group), shares)
        assert repr(one._replace(stddev=None)) == repr(alone._replace(stddev=None))  # types, and NaN, too
        if len(group) < 2 or not all(map(math.isfinite, group)):
            assert repr(one.stddev) == repr(alone.stddev)
            continue
        assert one.stddev == pytest.approx(alone.stddev, rel=1e-9, abs=1e-12 * max(map(abs, group)))


@settings(max_examples=80, deadline=None)
@given(groups=st.lists(st.lists(st.integers(-(2**24), 2**24), min_size=2, max_size=90), min_size=1, max_size=4))
def test_deviations_of_whole_numbers_are_rounded_once(groups: list[list[int]]) -> None:
    for group, one in zip(
        groups, described_each([numbers_of(list(map(float, group))) for group in groups], []), strict=True
    ):
        mean = Fraction(sum(group), len(group))
        variance = sum((value - mean) ** 2 for value in group) / (len(group) - 1)
        if len(group) * max(map(abs, group)) ** 2 < 2**53:
            assert one.stddev == math.sqrt(variance)


def test_rests_of_large_integers() -> None:
    large = Numbers(np.array([2.0**53, 1.0]), np.array([1, 0], np.int16))
    (one, other) = described_each([large, numbers_of([1.0, 2.0])], [1.0])
    assert (one.max, one.sum, one.quantiles) == (2**53 + 1, 2**53 + 2, ((1.0, 2**53 + 1),))
    assert other.sum == 3
