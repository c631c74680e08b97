"""Numbers that texts spell: of whole columns by the kernel, one by one by number_of_text, and by Python's own float."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import number_in
from thoroughness import tries

from jitdb.common.values import UNDEFINED, number_of, number_of_text, split_number, value_key
from jitdb.indexes.kinds.casting import smallest_numbers, with_numbers
from jitdb.indexes.kinds.kernels import seen
from jitdb.log.codecs.fields.located import FieldValues

EXAMPLES = tries(200, 30_000)

digits = st.text("0123456789", min_size=1, max_size=25)
signs = st.sampled_from(["", "", "", "-", "+", "--"])
points = st.just("") | digits.map(".{}".format) | st.just(".")
exponents = st.just("") | st.builds("{}{}{}".format, st.sampled_from("eE"), signs, st.integers(0, 400)) | st.just("e")
written = st.builds("{}{}{}{}".format, signs, digits, points, exponents)
numbers = st.integers(-(2**64), 2**65).map(str) | st.floats(allow_nan=False).map(repr)
others = st.text("0123456789+-.eE xé", max_size=8) | st.text(max_size=5)
texts = written | numbers | others
EDGES = [
    "", "-", "+", ".", "e", "-e5", "0", "-0", "+0", "00", "01", "-01", "0.0", "0e5", "0.", ".5", "1.", "1e", "1e+",
    "1e+5", "1E-5", "1e400", "-1e400", "1e-400", "5e-324", "2e-324", "1e308", "1.8e308", "1e99999999999999999999",
    "1e-99999999999999999999", "0e99999999999999999999", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616",
    "28446744073709551615", "99999999999999999999", "123456789012345678901234567890", "9" * 400, "0." + "0" * 400 + "1",
    "9007199254740993", "9007199254740993.0", "9007199254740993.00000000000000000000000001", "1" + "0" * 30,
    "4503599627370497.5", "4503599627370497.50000000000000000000000000000000001", "8.5e-320", "1_000", "0x1f", "1,5",
    " 1", "1 ", "1\n", "\uff11", "12ms", "NaN", "Infinity", "inf", "1e5.5", "1.2.3", "--1", "+-1", "1-", "502", "0.036",
]  # fmt: skip


def column(items: list[Any]) -> tuple[list[tuple[float, int] | None], int]:
    """What the kernel finds of each, and what it saw."""
    hi, lo = np.empty(len(items)), np.empty(len(items), np.int16)
    bits = smallest_numbers([FieldValues.of_keys([value_key(item) for item in items])], hi, lo)
    pairs = zip(hi.tolist(), lo.tolist(), strict=True)
    return [None if math.isnan(high) else (high, low) for high, low in pairs], bits


def by_hand(text: str) -> int | float | None:
    """By Python's own fractions: exact where it fits 64 bits, else the nearest double."""
    if re.fullmatch(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", text) is None:
        return None
    if re.fullmatch(r"[+-]?[0-9]+", text) and -(2**63) <= int(text) < 2**64:
        return int(text)
    mantissa, _, exponent = text.lower().partition("e")
    if abs(int(exponent or 0)) > 1000:
        nothing = not mantissa.strip("+-0.")
        size = 0.0 if nothing or exponent.startswith("-") else math.inf
    else:
        exact = Fraction(mantissa) * Fraction(10) ** int(exponent or 0)
        try:
            return float(exact)
        except OverflowError:
            size = math.inf
    return -size if text.startswith("-") else size


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(texts | st.floats() | st.sampled_from([None, UNDEFINED, True, [1], b"5"]), min_size=1, max_size=40))
@example(EDGES)
def test_the_kernel_reads_what_texts_spell(items: list[Any]) -> None:
    found, bits = column(items)
    expected = [number_of(item) for item in items]
    assert found == [None if number is None or number != number else split_number(number) for number in expected]
    assert bool(bits & seen.TEXTS) == any(isinstance(item, str) and number_in(item) is not None for item in items)
    left = [item for item, number in zip(items, expected, strict=True) if number is None]
    assert bool(bits & seen.OTHERS) == any(item is not None and item is not UNDEFINED for item in left)


@settings(max_examples=EXAMPLES, deadline=None)
@given(texts)
def test_one_text(text: str) -> None:
    found, expected = number_of_text(text), by_hand(text)
    assert found == expected == number_in(text)
    assert type(found) is type(expected)


@pytest.mark.parametrize("text", EDGES)
def test_edges(text: str) -> None:
    test_one_text.hypothesis.inner_test(text)  # type: ignore[attr-defined]


def test_what_spells_no_number_stays_as_it_is() -> None:
    values = FieldValues.of_keys([value_key(item) for item in ("a", "12ms", 5, None)])
    assert with_numbers(values) is values
    spelled = with_numbers(FieldValues.of_keys([value_key(item) for item in ("a", "12", 5, None)]))
    assert spelled.kind.tolist() == [5, 4, 4, 1]
    assert spelled.payload(0) == b"a"
