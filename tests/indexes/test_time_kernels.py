"""Times of whole columns by the kernel, as jitdb/common/times.py defines them; and what that says, by datetime."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgpack import ExtType, Timestamp
from thoroughness import tries

from jitdb.common.times import UNITS, as_text, time_of, time_of_number, time_of_text
from jitdb.common.values import UNDEFINED, split_number, value_key
from jitdb.indexes.kinds.casting import smallest_numbers
from jitdb.indexes.kinds.kernels import seen
from jitdb.log.codecs.fields.located import FieldValues

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EXAMPLES = tries(100, 20_000)
READINGS = [*UNITS[:5], "auto Europe/Berlin", "ms America/St_Johns", "auto -03:30"]


def two(number: int) -> str:
    return f"{number:02}"


dates = st.builds(
    "{0:04}{3}{1}{3}{2}".format,
    st.integers(0, 9999) | st.integers(1675, 2265),
    st.integers(0, 13).map(two),
    st.integers(0, 32).map(two),
    st.sampled_from("----/."),
)
clocks = st.builds("{}{}:{}".format, st.sampled_from("Tt _x"), st.integers(0, 24).map(two), st.integers(0, 60).map(two))
seconds = st.just("") | st.integers(0, 61).map(lambda number: f":{number:02}")
fractions = st.just("") | st.builds("{}{}".format, st.sampled_from(".,"), st.text("0123456789", max_size=12))
zones = st.sampled_from(
    [
        "",
        "Z",
        "z",
        " Z",
        "UTC",
        " GMT",
        "+01:00",
        "-0130",
        " +05",
        "+5",
        "+24:00",
        "+00:60",
        "-00:00",
        " ",
        "+01:",
        "X",
        " GMT+0100",
        "utc-01:30",
        " GMT+",
        " GMT +01",
        " CET",
        " MSK",
        " CEST",
        " NST",
        " IST",
        " NZDT",
        "CET",
        " cet",
        " AB",
    ]
)
texts = dates | st.builds("".join, st.tuples(dates, clocks, seconds, fractions, zones))
names = st.sampled_from(
    ["Jan", "feb", "MAR", "Apr", "may", "Jun", "Jul", "Aug", "Sep", "oct", "Nov", "Dec", "Okt", "Nö"]
)
weekdays = st.sampled_from(["", "", "Tue, ", "sun, ", "Tue,", "Tue ", "Foo, ", "é, "])
days = st.integers(0, 32).map(str) | st.integers(0, 32).map(two)
years = st.integers(0, 9999).map("{:04}".format) | st.sampled_from(["2015", "15", "02015"])
hours = st.builds("{}:{}".format, st.integers(0, 24).map(two), st.integers(0, 60).map(two))
named = st.builds(
    "{0}{1}{5}{2}{6}{3}{7}{4}".format, weekdays, days, names, years,
    st.builds("".join, st.tuples(hours, seconds, fractions, zones)),
    st.sampled_from("///- "), st.sampled_from("///- "), st.sampled_from("::  "),
)  # fmt: skip
behind = st.sampled_from(
    ["", "", " UTC", " gmt", "  UTC", " CET", "UTC", " +0100", "-01:30", " -05", " +", " +2400", "  +0100"]
)
of_c = st.builds(
    "{} {}{}{} {}{} {}".format, st.sampled_from(["Tue", "sun", "Foo"]), names, st.sampled_from([" ", "  ", ""]), days,
    st.builds("".join, st.tuples(hours, seconds, fractions)),
    st.sampled_from(["", "", " UTC", " gmt", " CET", " IST", " cet", " Z"]),
    st.builds("".join, st.tuples(years, behind)),
)  # fmt: skip
month_first = st.builds(
    "{}{}{} {}{}{}".format, names, st.sampled_from([" ", "  ", "", "   "]), days, years,
    st.sampled_from([" ", " ", ":", ""]), st.builds("".join, st.tuples(hours, seconds, fractions, zones)),
)  # fmt: skip
of_twelve = st.builds(
    "{}:{}{}{}".format, st.integers(0, 24).map(str) | st.integers(0, 14).map(two), st.integers(0, 60).map(two),
    st.builds("".join, st.tuples(seconds, fractions)),
    st.sampled_from(["", " AM", " PM", " pm", "\u202fPM", "\u202f", " PMT", "PM", " P", " am ", " AM+01:00", " PMZ"]),
)  # fmt: skip
of_halves = st.builds(
    "{}{}{}{}{}{}".format,
    st.builds("{}/{}/".format, st.integers(0, 13).map(str) | st.integers(0, 13).map(two), days)
    | st.builds("{}{}{}{}".format, names, st.sampled_from([" ", "  "]), days, st.sampled_from([", ", ",", " "])),
    years, st.sampled_from([" ", ", ", "", ",", " @ ", " @", ", @ "]), of_twelve, st.sampled_from(["", "", " UTC"]),
    zones,
)  # fmt: skip
basic = st.builds(
    "{:04}{}{}{}{}{}{}{}{}".format, st.integers(0, 9999), st.integers(0, 13).map(two), st.integers(0, 32).map(two),
    st.sampled_from("Tt -x"), st.integers(0, 24).map(two), st.integers(0, 60).map(two),
    st.integers(0, 61).map(two) | st.just(""), fractions, zones,
)  # fmt: skip
with_colons = st.builds(
    "{:04}{}{}{}{}{}{}{}{}{}{}".format, st.integers(0, 9999), st.integers(0, 13).map(two), st.integers(0, 32).map(two),
    st.sampled_from("T  -x"), st.integers(0, 24).map(two), st.sampled_from(":::."), st.integers(0, 60).map(two),
    st.sampled_from(":::."), st.integers(0, 61).map(two) | st.just(""), fractions, zones,
)  # fmt: skip
of_javascript = st.builds(
    "{} {} {} {}{}{}{}".format, st.sampled_from(["Tue", "sun", "Foo"]), names, days, years,
    st.sampled_from([" ", " ", "  ", ""]), st.builds("".join, st.tuples(hours, seconds, fractions, zones)),
    st.sampled_from(["", "", " (Central European Standard Time)", " ()", "(CET)", " (é", " CET)", " ((CET)", " (a))"]),
)  # fmt: skip
dotted = st.builds(
    "{}.{}.{}{}{}{}".format, days, st.integers(0, 13).map(str) | st.integers(0, 13).map(two), years,
    st.sampled_from(["", " ", " ", ", ", "  ", "T"]), st.just("") | of_twelve, zones,
)  # fmt: skip
of_db2 = st.builds(
    "{}{}{}.{}.{}{}{}".format, dates, st.sampled_from("--- T"), st.integers(0, 24).map(two),
    st.integers(0, 60).map(two), st.integers(0, 61).map(two), fractions,
    st.sampled_from(["", "", "+000", "+060", "-330", "+99", "-1440", "Z", "+06x", "-"]),
)  # fmt: skip
erlang = st.builds(
    "{}{}{}{}{}{}{}".format, days, st.sampled_from("--/ "), names, st.sampled_from("--/ "), years,
    st.sampled_from(["::", ":", " ", ":::", ": "]), st.builds("".join, st.tuples(hours, seconds, fractions, zones)),
)  # fmt: skip
texts |= named | of_c | month_first | of_halves | basic | dotted | of_db2 | erlang | with_colons | of_javascript
texts |= st.builds("[{}{}".format, texts, st.sampled_from(["]", "]", "", "]]"]))
texts |= st.sampled_from(["1700000000", "-1", "1.7e9", "1700000000123", "007", "1795132803724838"])
dated = st.builds(
    lambda date, *clock: int(f"{date}{clock[0]:02}{clock[1]:02}{clock[2]:02}"),
    st.dates(date(1969, 12, 30), date(2200, 1, 2)).map("{:%Y%m%d}".format)
    | st.sampled_from(["19691231", "20150229", "20160229", "20151301", "20150100", "22000101", "10000101"]),
    st.integers(0, 24), st.integers(0, 60), st.integers(0, 61),
)  # fmt: skip
numbers = (
    st.integers(-(2**63), 2**64 - 1)
    | dated
    | st.builds(float, dated)
    | st.builds(lambda number, part: number + part / 1024, dated, st.integers(0, 1023))
    | st.builds(lambda number, millis: 1000 * number + millis, dated, st.integers(0, 999))
    | st.floats()
    | st.floats(1e9, 2e9)
    | st.floats(1e12, 2e12)
    | st.sampled_from([1e11, 1e14, 1e17, 9223372036, -9223372037, 2**63 - 1, 2**63, -(2**63), 9223372036854.0])
)
stamps = st.builds(Timestamp, st.integers(-(2**40), 2**40), st.integers(0, 10**9 - 1)) | st.builds(
    Timestamp, st.integers(0, 2**32 - 1), st.just(0)
)
others = st.sampled_from(
    [None, UNDEFINED, True, "soon", [1], {"a": 1}, b"2015-12-01", ExtType(5, b"abcd"), "2015-12-0é"]
)
longs = st.sampled_from([{"$numberLong": "1700000000123"}, {"$numberLong": 5}, {"$numberLong": "x"}, {"x": 1}, {}])
maps = st.fixed_dictionaries({"$date": texts | numbers | stamps | longs | st.none()}, optional={"a": st.just(1)})
of_net = st.builds(
    "{}{}{}{}".format, st.sampled_from(["/Date(", "/Date(", "/date("]), st.integers(-(10**16), 10**16),
    st.sampled_from(["", "", "+0100", "-0800", "+01", "x"]), st.sampled_from([")/", ")/", ")", ")/ "]),
)  # fmt: skip
parts = st.integers(-(2**34), 2**34) | st.sampled_from(
    [1_700_000_000, 1.5, 2.0, "5", None, True, 10**9, -1, math.inf, "1700000000"]
)
instants = (
    st.fixed_dictionaries({"epochSecond": parts}, optional={"nanoOfSecond": parts, "$date": st.just(5), "nanos": parts})
    | st.fixed_dictionaries({"seconds": parts}, optional={"nanos": parts, "epochSecond": parts})
    | st.fixed_dictionaries({"_seconds": parts}, optional={"_nanoseconds": parts, "seconds": parts})
)
values = texts | numbers | stamps | maps | of_net | instants | others


def column(items: list[Any], unit: str) -> tuple[list[tuple[float, int] | None], int]:
    """What the kernel finds of each, and what it saw."""
    hi, lo = np.empty(len(items)), np.empty(len(items), np.int16)
    bits = smallest_numbers([FieldValues.of_keys([value_key(item) for item in items])], hi, lo, unit)
    pairs = zip(hi.tolist(), lo.tolist(), strict=True)
    return [None if math.isnan(high) else (high, low) for high, low in pairs], bits


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(values, min_size=1, max_size=40), st.sampled_from(READINGS))
def test_the_kernel_reads_what_times_are(items: list[Any], unit: str) -> None:
    times = [None if item is UNDEFINED else time_of(item, unit) for item in items]
    found, bits = column(items, unit)
    assert found == [None if time is None else split_number(time) for time in times]
    none = [item for item, time in zip(items, times, strict=True) if time is None and item == item]
    assert bool(bits & seen.OTHERS) == any(item is not None and item is not UNDEFINED for item in none)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)),
    st.integers(-23 * 60 - 59, 23 * 60 + 59),
    st.sampled_from(["auto", "milliseconds", "microseconds", "seconds"]),
)
@example(datetime(1970, 1, 1), 0, "auto")
def test_text_is_what_datetime_reads(when: datetime, offset: int, timespec: str) -> None:
    text = when.replace(tzinfo=timezone(timedelta(minutes=offset))).isoformat(timespec=timespec)
    since = datetime.fromisoformat(text) - EPOCH
    exact = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    found = time_of_text(text)
    if -(2**63) + 10**9 < exact < 2**63 - 10**9:
        assert found == exact
        assert time_of_text(as_text(exact)) == exact
    else:
        assert found == float(exact // 10**9) * 10**9
        assert time_of_text(as_text(found)) == found


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.tuples(*(st.integers(low, high) for low, high in ((0, 32), (0, 13), (1, 9999), (0, 24), (0, 60), (0, 59)))),
    st.integers(0, 999_999),
)
def test_dates_with_dots_and_those_of_db2_and_erlang_are_what_strptime_reads(
    parts: tuple[int, ...], micro: int
) -> None:
    day, month, year, hour, minute, second = parts
    clock = f"{hour:02}:{minute:02}:{second:02}"
    name = datetime(2000, month or 12, 1).strftime("%b") if month < 13 else "Okt"
    for text, form in (
        (f"{day:02}.{month:02}.{year:04}", "%d.%m.%Y"),
        (f"{day}.{month}.{year:04} {clock}", "%d.%m.%Y %H:%M:%S"),
        (f"{day:02}.{month:02}.{year:04}, {clock}.{micro:06}", "%d.%m.%Y, %H:%M:%S.%f"),
        (f"{day}-{name}-{year:04}::{clock}", "%d-%b-%Y::%H:%M:%S"),
        (f"{year:04}-{month:02}-{day:02}-{clock.replace(':', '.')}.{micro:06}", "%Y-%m-%d-%H.%M.%S.%f"),
    ):
        try:
            since = datetime.strptime(text, form).replace(tzinfo=UTC) - EPOCH
        except ValueError:
            assert (time_of_text(text), column([text], "auto")[0]) == (None, [None])
            continue
        whole = since.days * 86_400 + since.seconds
        exact = whole * 10**9 + since.microseconds * 1000
        expected = exact if -(2**63) + 10**9 < exact < 2**63 - 10**9 else float(whole) * 10**9
        assert time_of_text(text) == expected
        assert column([text], "auto")[0] == [split_number(expected)]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2015-12-01", "2015-12-01T00:00:00Z"),
        ("2015-12-01 10:30", "2015-12-01T10:30:00Z"),
        ("2015-12-01t10:30:00,5z", "2015-12-01T10:30:00.5Z"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
        ("2015-12-01T01:00:00+02:00", "2015-11-30T23:00:00Z"),
        ("2015-12-01T01:00:00.0000000019Z", "2015-12-01T01:00:00.000000001Z"),
        ("2000-02-29", "2000-02-29T00:00:00Z"),
        ("2015/12/01 10:30:00", "2015-12-01T10:30:00Z"),
        ("01/Dec/2015:10:30:00 +0100", "2015-12-01T09:30:00Z"),
        ("1/Dec/2015:10:30", "2015-12-01T10:30:00Z"),
        ("06/Feb/2009:12:14:14.655", "2009-02-06T12:14:14.655Z"),
        ("Tue, 01 Dec 2015 10:30:00 GMT", "2015-12-01T10:30:00Z"),
        ("1 Dec 2015 10:30 -0130", "2015-12-01T12:00:00Z"),
        ("01-DEC-2015 10:30:00.5", "2015-12-01T10:30:00.5Z"),
        ("Tue Dec  1 10:30:00 2015", "2015-12-01T10:30:00Z"),
        ("Tue Dec 01 10:30:00.25 UTC 2015", "2015-12-01T10:30:00.25Z"),
        ("Tue Dec  1 10:30:00 2015 UTC", "2015-12-01T10:30:00Z"),
        ("01/Dec/2015 10:30:00", "2015-12-01T10:30:00Z"),
        ("Dec  1 2015 10:30:00.5 +0100", "2015-12-01T09:30:00.5Z"),
        ("Dec 01 2015 10:30:00", "2015-12-01T10:30:00Z"),
        ("2015-12-01 10:30:00.5 CET", "2015-12-01T09:30:00.5Z"),
        ("2015-12-01 10:30 NST", "2015-12-01T14:00:00Z"),
        ("01 Dec 2015 10:30:00 EST", "2015-12-01T15:30:00Z"),
        ("Tue Dec  1 10:30:00 CET 2015", "2015-12-01T09:30:00Z"),
        ("2015-12-01 10:30:00 IST", "2015-12-01T10:30:00Z"),
        ("Dec 1, 2015 2:30:00,123 PM UTC", "2015-12-01T14:30:00.123Z"),
        ("Dec 1, 2015, 12:30:00\u202fAM", "2015-12-01T00:30:00Z"),
        ("Dec 1 2015 1:30", "2015-12-01T01:30:00Z"),
        ("12/1/2015 2:30:00 PM", "2015-12-01T14:30:00Z"),
        ("1/2/2015, 12:30 pm", "2015-01-02T12:30:00Z"),
        ("1.12.2015 8:30", "2015-12-01T08:30:00Z"),
        ("01.12.2015 10:30:00,5 CET", "2015-12-01T09:30:00.5Z"),
        ("01.12.2015, 2:30:00 PM", "2015-12-01T14:30:00Z"),
        ("01.12.2015", "2015-12-01T00:00:00Z"),
        ("1-Dec-2015::10:30:00.5 +0100", "2015-12-01T09:30:00.5Z"),
        ("2015-12-01-10.30.00.169516+000", "2015-12-01T10:30:00.169516Z"),
        ("2015-12-01-10.30.00.169516-330", "2015-12-01T16:00:00.169516Z"),
        ("2015-12-01-10.30.00", "2015-12-01T10:30:00Z"),
        ("20151201T103000", "2015-12-01T10:30:00Z"),
        ("20151201T103000,123+0100", "2015-12-01T09:30:00.123Z"),
        ("20151201 103000", "2015-12-01T10:30:00Z"),
        ("20151201 10:30:00.5 CET", "2015-12-01T09:30:00.5Z"),
        ("20151201T10:30:00Z", "2015-12-01T10:30:00Z"),
        ("2015-12-01 10:30:00 GMT+01:00", "2015-12-01T09:30:00Z"),
        ("Tue Dec 01 2015 10:30:00 GMT+0100 (Central European Standard Time)", "2015-12-01T09:30:00Z"),
        ("Tue Dec 01 2015 10:30:00 GMT-0330", "2015-12-01T14:00:00Z"),
        ("Tue Dec 1 2015 10:30:00", "2015-12-01T10:30:00Z"),
        ("Dec 1, 2015 @ 10:30:00.000", "2015-12-01T10:30:00Z"),
        ("Tue Dec 1 10:30:00 2015 -0500", "2015-12-01T15:30:00Z"),
        ("Tue Dec  1 10:30:00.5 2015 +05:30", "2015-12-01T05:00:00.5Z"),
        ("2015.12.01 10:30:00", "2015-12-01T10:30:00Z"),
        ("2015.12.01T10:30:00.5+01:00", "2015-12-01T09:30:00.5Z"),
        ("2015-12-01_10:30:00", "2015-12-01T10:30:00Z"),
        ("2015-12-01 10.30.00.123", "2015-12-01T10:30:00.123Z"),
        ("20151201-103000.123", "2015-12-01T10:30:00.123Z"),
        ("20151201-10:30:00.123", "2015-12-01T10:30:00.123Z"),
        ("[2015-12-01 10:30:00]", "2015-12-01T10:30:00Z"),
        ("[01/Dec/2015:10:30:00 +0100]", "2015-12-01T09:30:00Z"),
    ],
)
def test_ways_to_write_a_time(text: str, same: str) -> None:
    time = time_of_text(text)
    assert time is not None
    assert as_text(time) == same
    assert column([text], "auto")[0] == [split_number(time)]


@pytest.mark.parametrize(
    "text",
    [
        "1900-02-29",
        "2015-04-31",
        "2015-13-01",
        "2015-00-01",
        "2015-12-01T24:00",
        "2015-12-01T",
        "15-12-01",
        "2015-12/01",
        "29/Feb/2015:00:00:00",
        "1/Dec-2015:10:30:00",
        "Foo, 1 Dec 2015 10:30:00",
        "Nov 20 14:03:11",
        "Tue Dec  1 10:30:00 Cet 2015",
        "12/1/2015 14:30:00",
        "13/1/2015 2:30:00 PM",
        "12/1/2015 14:30:00 PM",
        "Dec 1, 2015 0:30:00 AM",
        "1.12.2015",
        "13.13.2015",
        "12.1.15 10:30:00",
        "01.12.2015T10:30:00",
        "1 Dec 2015::10:30:00",
        "2015-12-01-10.30",
        "2015/12/01-10.30.00",
        "2015-12-01-10.30.00+01:00",
        "20151201T1030",
        "20151201 10:3000",
        "20151201 1030:00",
        "20151301 10:30:00",
        "Tue Dec 01 2015 10:30:00 GMT+0100 (a) b",
        "12/1/2015 @ 2:30:00 PM",
        "1 Dec 2015:10:30:00",
        "Dec  1 2015:10:30:00",
        "Dec  1 15 10:30:00",
        "Feb 30 2015 10:30:00",
        "Tue Dec  1 10:30:00 2015 CET",
        "Tue Dec  1 10:30:00 CET 2015 +0100",
        "Tue Dec  1 10:30:00 2015 +01000",
        "Tue Dec  1 10:30:00 2015 ",
        "2015.12.01",
        "2015.12.01.10",
        "[2015-12-01]",
        "[2015-12-01 10:30:00",
        "[[2015-12-01 10:30:00]]",
        "2015-12-01__10:30:00",
        "2015/12/01 10.30.00",
        "20151201-1030",
    ],
)
def test_text_that_is_no_time(text: str) -> None:
    assert time_of_text(text) is None
    assert column([text], "auto")[0] == [None]


@pytest.mark.parametrize(
    "value",
    [
        {"epochSecond": 1_700_000_000, "nanoOfSecond": 5},
        {"seconds": 1_700_000_000, "nanos": 5},
        {"seconds": "1700000000", "nanos": 5},
        {"_seconds": 1_700_000_000, "_nanoseconds": 5},
    ],
)
def test_seconds_and_nanoseconds_in_a_map(value: dict[str, Any]) -> None:
    assert time_of(value) == 17 * 10**17 + 5
    assert column([value], "auto") == ([split_number(17 * 10**17 + 5)], 0)


def test_a_date_of_mongodb() -> None:
    for value in ("2023-11-14T22:13:20Z", 1_700_000_000_000, {"$numberLong": "1700000000000"}):
        for unit in UNITS[:5]:
            assert time_of({"$date": value}, unit) == 17 * 10**17
            assert column([{"$date": value}], unit)[0] == [split_number(17 * 10**17)]
    found, bits = column([{"$date": 5}, 7, {"a": 1}, {"$date": None}], "s")
    assert found == [split_number(5 * 10**6), split_number(7 * 10**9), None, None]
    assert bits & seen.OTHERS


@pytest.mark.parametrize(
    ("number", "same"),
    [
        (20261120070000, "2026-11-20T07:00:00Z"),
        (20261120070000.0, "2026-11-20T07:00:00Z"),
        (20261120070000.25, "2026-11-20T07:00:00.25Z"),
        ("20261120070000", "2026-11-20T07:00:00Z"),
        (20261120070000123, "2026-11-20T07:00:00.123Z"),
        (19700101000000, "1970-01-01T00:00:00Z"),
        (21991231235959, "2199-12-31T23:59:59Z"),
    ],
)
def test_numbers_whose_digits_are_a_date(number: int | float | str, same: str) -> None:
    time = time_of(number)
    assert time is not None
    assert as_text(time) == same
    assert column([number], "auto") == ([split_number(time)], seen.TEXTS | seen.ZONELESS)
    assert time_of(number, "auto +01:00") == time - 3600 * 10**9
    assert column([number], "auto +01:00")[0] == [split_number(time - 3600 * 10**9)]
    assert column([number], "ms")[1] == seen.MILLISECONDS


@pytest.mark.parametrize("number", [20261320070000, 20260229000000, 20261120240000, 22000101000000, 19691231235959])
def test_numbers_of_as_many_digits_that_are_no_date(number: int) -> None:
    assert time_of(number) == float(number) * 1e6
    assert column([number], "auto") == ([split_number(float(number) * 1e6)], seen.MILLISECONDS)


def test_what_a_scan_saw() -> None:
    assert column(["2015-12-01T00:00:00Z"], "auto")[1] == seen.TEXTS
    assert column(["2015-12-01"], "auto")[1] == seen.TEXTS | seen.ZONELESS
    sizes = [
        (1.7e9, seen.SECONDS),
        (1.7e12, seen.MILLISECONDS),
        (1.7e15, seen.MICROSECONDS),
        (17 * 10**17, seen.NANOSECONDS),
    ]
    for number, bit in sizes:
        assert column([number], "auto") == ([split_number(17 * 10**17)], bit)
    assert column([1_700_000_000, None, UNDEFINED], "ms")[1] == seen.MILLISECONDS
    assert column(["x", {}], "auto") == ([None, None], seen.OTHERS)


def test_numbers_of_one_unit_keep_their_order() -> None:
    ascending = sorted([-1e300, -5, 0, 0.5, 1e9, 1e11, 1e14, 1e17, 1e19, 1e300, math.inf, -math.inf])
    for unit in UNITS[1:5]:
        times = [time_of_number(number, unit) for number in ascending]
        assert times == sorted(times)  # type: ignore[type-var]
