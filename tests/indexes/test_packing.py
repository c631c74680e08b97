"""Packed columns give back each number as it was, and take no more bytes than their range needs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitdb.common.values import split_number
from jitdb.indexes.kinds.packing import DECIMAL, META_SIZE, NONE, WHOLE, Packing, packed

NAN = math.nan
wholes = st.one_of(st.integers(-300, 300), st.integers(-(2**63), 2**63), st.integers(0, 2**40).map(lambda n: n * 10**6))
decimals = st.one_of(
    st.integers(-(10**6), 10**6).map(lambda n: n / 100), st.floats(width=64), st.sampled_from([-0.0, 0.0])
)


def columns(numbers: list[int | float | None]) -> tuple[np.ndarray, np.ndarray | None]:
    pairs = [(NAN, 0) if number is None else split_number(number) for number in numbers]
    rests = np.array([rest for _, rest in pairs], np.int16)
    return np.array([hi for hi, _ in pairs], np.float64), rests if rests.any() else None


def how_of(numbers: list[int | float | None]) -> tuple[int, int, bool, int, int]:
    hi, lo = columns(numbers)
    whole = bool(np.isfinite(hi[hi == hi]).all() and (np.floor(hi) == hi)[hi == hi].all())
    packing, codes = packed(hi, lo, whole)
    assert packing.is_known
    assert Packing.of(packing.pack()) == packing
    assert len(packing.pack()) == META_SIZE
    assert codes.nbytes == packing.width * len(hi)
    if packing != NONE:
        found_hi, found_lo = packing.unpacked(codes.tobytes(), len(hi), lo is not None)
        assert np.array_equal(found_hi, hi, equal_nan=True)
        assert not np.signbit(found_hi[found_hi == 0]).any()
        assert not np.signbit(hi[hi == 0]).any()
        assert (found_lo is None) == (lo is None)
        assert lo is None or (found_lo == lo).all()
    return packing


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.lists(st.none() | wholes, max_size=30), st.lists(st.none() | decimals | wholes, max_size=30)))
def test_each_number_comes_back(numbers: list[int | float | None]) -> None:
    how_of(numbers)


@pytest.mark.parametrize(
    ("numbers", "packing"),
    [
        ([2013] * 4, (WHOLE, 0, False, 1, 2013)),
        ([None] * 4, (WHOLE, 0, True, 1, 0)),
        ([], (WHOLE, 0, True, 1, 0)),
        ([7, None], (WHOLE, 1, True, 1, 7)),
        ([-40, 215], (WHOLE, 1, False, 1, -40)),
        ([-40, 215, None], (WHOLE, 2, True, 1, -40)),
        ([0, 65_535], (WHOLE, 2, False, 1, 0)),
        ([0, 65_535, None], (WHOLE, 4, True, 1, 0)),
        ([0, 66_000], (WHOLE, 1, False, 1000, 0)),
        ([10**18 + 10**6 * n for n in (0, 5, 10**8)], (WHOLE, 4, False, 10**6, 10**18)),
        ([0, 2**32 - 1], (WHOLE, 4, False, 1, 0)),
        ([0, 2**32 - 1, None], NONE),
        ([0, 2**32 + 1], NONE),
        ([0.5, 12.25], (DECIMAL, 2, False, 100, 50)),
        ([0.1, 0.2, None], (DECIMAL, 1, True, 10, 1)),
        ([1 / 3], NONE), ([math.inf, 1.5], NONE), ([2**62], NONE), ([-(2**63)], NONE), ([0.5, 2**53 + 1], NONE),
    ],
)  # fmt: skip
def test_how_columns_are_packed(numbers: list[int | float | None], packing: tuple[int, ...]) -> None:
    assert how_of(numbers) == tuple(packing)


def test_minus_zero_is_not_zero() -> None:
    hi = np.array([-0.0, 1.0])
    assert packed(hi, None, True)[0] == NONE


def test_pairs_that_are_no_split_of_a_number_stay_pairs() -> None:
    assert packed(np.array([216.0]), np.array([4], np.int16), True)[0] == NONE


@pytest.mark.parametrize("changed", [{"how": 3}, {"width": 3}, {"step": 0}, {"how": 0}])
def test_what_nobody_writes_is_not_known(changed: dict[str, int]) -> None:
    assert not Packing(WHOLE, 1, False, 1, 5)._replace(**changed).is_known
