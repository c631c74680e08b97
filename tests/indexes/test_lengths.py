"""Lengths of time in texts: of whole columns by the kernel, one by one by length_of_text, and by the oracle."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import seconds_in
from thoroughness import tries

from jitdb.common.paths import CASTS
from jitdb.common.values import NUMBER, UNDEFINED, value_key
from jitdb.indexes.kinds.casting import inside
from jitdb.log.codecs.fields.located import FieldValues

numbers = st.one_of(
    st.integers(0, 10**6).map(str), st.integers(0, 10**25).map(str), st.floats(0, 1e9).map("{:.9f}".format),
    st.from_regex(r"[0-9]{1,20}\.[0-9]{1,25}", fullmatch=True), st.sampled_from(["", ".5", "1.", "00", "1.2.3", "1e3"]),
)  # fmt: skip
units = st.sampled_from(
    ["ns", "us", "µs", "μs", "ms", "s", "m", "min", "h", "d", "w", "", "mi", "sec", "S", "\u00c2", "µ", "mm"]
)
parts = st.builds(
    "{}{}{}{}".format, numbers, st.sampled_from(["", "", " ", "  "]), units, st.sampled_from(["", "", " "])
)
some = st.integers(0, 99).map(str) | st.integers(0, 60).map("{:02}".format) | st.integers(0, 10**10).map(str)
fractions = st.sampled_from(["", ".5", ",25", ".", ".0000000019", ".12.3", ".x"])
by_clock = st.builds(
    "{}{}:{}:{}{}".format, st.sampled_from(["", "", "1.", "106751.", ".", "1 "]), some, some, some, fractions
)
of_iso = st.builds(
    "{}{}{}".format,
    st.sampled_from(["P", "P", "PT", "", "p"]),
    st.lists(st.builds("{}{}".format, some, st.sampled_from("WDHMSY")), max_size=3).map("".join),
    st.sampled_from(["", "T", "T5M", "T1H2M", "T7S", "T1.5S", "T1.S", "T1,25S", "T1.5M", "T2M1H", "TT1S"]),
)
texts = st.builds(
    "{}{}".format,
    st.sampled_from(["", "", "-", "+", "--"]),
    st.lists(parts, min_size=1, max_size=4).map("".join) | by_clock | of_iso,
)


def column(items: list[Any]) -> list[Any]:
    found = inside(FieldValues.of_keys([value_key(item) for item in items]), (CASTS["duration"],))
    return [float(found.number[at]) if found.kind[at] == NUMBER else None for at in range(len(items))]


@settings(max_examples=tries(150, 50_000), deadline=None)
@given(st.lists(texts, min_size=1, max_size=20))
@example(["9223372036854775807ns", "9223372036854775808ns", "-9223372036854775807ns", "15250w", "15251w", "0.1s", "-"])
@example(["2562047:47:16.854775807", "2562047:47:16.854775808", "PT9223372036.854775807S", "PT1.S", "-00:00:00"])
@example(
    ["999999999999999999.9ns", "9223372036.854775807s", "106751d23h", "106752d", "1h1m1s1ms1us1ns", "5ms\n", "5 ms 3"]
)
def test_kernel_and_python_agree(items: list[str]) -> None:
    each = [CASTS["duration"].read(item) for item in items]
    expected = [seconds_in(item) for item in items]
    assert [None if value is UNDEFINED else value for value in each] == expected
    assert column(items) == expected


def test_lengths_by_a_clock_and_of_iso() -> None:
    texts = ["00:00:01.5", "-1.02:03:04", "PT1.5S", "-P1DT2H3M4S", "P2W", "26:00:00", "PT", "P1Y", "1:30", "00:60:00"]
    assert column(texts) == [1.5, -93784.0, 1.5, -93784.0, 1209600.0, 93600.0, None, None, None, None]


def test_only_text_is_a_length() -> None:
    assert column([5, 5.0, None, True, ["5ms"], {"a": "5ms"}, b"5ms", "5ms"]) == [None] * 7 + [0.005]
