"""Times that say no zone, read as those of one: what datetime and zoneinfo say, across all changes of clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import tries

from jitdb.common.times import time_of_text
from jitdb.common.values import split_number, value_key
from jitdb.common.zones import changes_of
from jitdb.errors import QueryError
from jitdb.indexes.kinds.casting import smallest_numbers
from jitdb.log.codecs.fields.located import FieldValues
from jitdb.operators.summaries.arithmetic.calendar import zone_named

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Clocks that were set by half an hour, by a day, in Ramadan, before the summer of the year ends, twice a summer; none.
ZONES = [
    "Europe/Berlin", "Europe/London", "Europe/Dublin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia",
    "Africa/Casablanca", "Africa/Cairo", "America/Sao_Paulo", "Antarctica/Troll", "Asia/Gaza", "Asia/Kathmandu",
    "Asia/Kolkata", "UTC",
]  # fmt: skip
zones = st.sampled_from(ZONES) | st.sampled_from(sorted(available_timezones()))
moments = st.datetimes(datetime(1680, 1, 1), datetime(2261, 1, 1)) | st.datetimes(
    datetime(1915, 1, 1), datetime(2105, 1, 1)
)


def by_datetime(when: datetime, zone: str) -> int:
    """Nanoseconds since 1970; `fold` is 0."""
    ahead = ZoneInfo(zone).utcoffset(when)
    assert ahead is not None
    return (when.replace(tzinfo=UTC) - ahead - EPOCH) // timedelta(microseconds=1) * 1000


def by_kernel(texts: list[str], unit: str) -> list[tuple[float, int]]:
    hi, lo = np.empty(len(texts)), np.empty(len(texts), np.int16)
    smallest_numbers([FieldValues.of_keys([value_key(text) for text in texts])], hi, lo, unit)
    return list(zip(hi.tolist(), lo.tolist(), strict=True))


@settings(max_examples=tries(150, 20_000), deadline=None)
@given(zones, st.lists(moments, min_size=1, max_size=20), st.data())
def test_times_are_what_datetime_says(zone: str, whens: list[datetime], data: st.DataObject) -> None:
    begins = changes_of(zone).begins
    near = st.builds(
        lambda begin, seconds: datetime(1970, 1, 1) + timedelta(seconds=begin + seconds),
        st.sampled_from(list(begins)), st.integers(-7300, 7300) | st.integers(-1, 1),
    )  # fmt: skip
    whens = [*whens, *(when for when in data.draw(st.lists(near, max_size=20)) if when.year < 2262)]
    expected = [by_datetime(when, zone) for when in whens]
    texts = [when.isoformat(" ") for when in whens]
    assert [time_of_text(text, zone) for text in texts] == expected
    assert by_kernel(texts, f"auto {zone}") == list(map(split_number, expected))
    assert [time_of_text(f"{text}Z", zone) for text in texts] == [by_datetime(when, "UTC") for when in whens]


@settings(max_examples=tries(100, 5000), deadline=None)
@given(zones, st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)).map(lambda when: when.replace(microsecond=0)))
def test_years_that_are_far(zone: str, when: datetime) -> None:
    shown = round((when - datetime(1970, 1, 1)).total_seconds())
    assert changes_of(zone).ahead(shown) == round((ZoneInfo(zone).utcoffset(when) or timedelta()).total_seconds())


def test_hours_that_come_twice_and_hours_that_do_not_come() -> None:
    twice, never = "2026-10-25 02:30:00", "2026-03-29 02:30:00"
    for text, in_utc in ((twice, "2026-10-25 00:30:00Z"), (never, "2026-03-29 01:30:00Z")):
        assert time_of_text(text, "Europe/Berlin") == time_of_text(in_utc)


@pytest.mark.parametrize(
    "text", ["{}Z", "{}+00:00", "{} UTC", "{} GMT", "{}+03:00", "{} MSK", "{} CEST"], ids=lambda text: text[2:]
)
def test_a_zone_of_its_own_counts(text: str) -> None:
    told = text.format("2026-07-01 12:00:00")
    assert time_of_text(told, "America/New_York") == time_of_text(told)
    assert by_kernel([told], "auto America/New_York") == by_kernel([told], "auto")


@pytest.mark.parametrize(
    "text",
    [
        "2026/07/01 12:00", "01/Jul/2026:12:00:00", "Jul  1 2026 12:00:00", "7/1/2026 12:00:00 PM",
        "Wed Jul  1 12:00:00 2026", "20260701T120000", "2026-07-01 12:00:00 IST", "Wed Jul  1 12:00:00 IST 2026",
    ],
)  # fmt: skip
def test_each_form_without_a_zone(text: str) -> None:
    """The name of a zone that is not known is none."""
    assert time_of_text(text, "Asia/Kolkata") == time_of_text("2026-07-01T06:30:00Z")
    assert by_kernel([text], "auto Asia/Kolkata") == by_kernel(["2026-07-01T06:30:00Z"], "auto")


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for said, name in (("Asia/Tokyo", "Asia/Tokyo"), ("+0530", "+05:30"), ("-03", "-03:00")):
        assert zone_named(said) == name == zone_named(name)
    for said in (":Europe/Paris", "/usr/share/zoneinfo/Europe/Paris", "Europe/Paris"):
        monkeypatch.setenv("TZ", said)
        assert zone_named("local") == "Europe/Paris"
    monkeypatch.setenv("TZ", "")
    assert zone_named("local") == "UTC"
    monkeypatch.setenv("TZ", "XYZ-1")
    with pytest.raises(QueryError, match="has no name, but is set as 'XYZ-1'"):
        zone_named("local")
    for said in ("Europe/Berln", "+24:00", "+5", "", "../etc", 5, None):
        with pytest.raises(QueryError, match="there is no zone of time called"):
            zone_named(said)
