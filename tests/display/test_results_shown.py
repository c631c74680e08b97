"""What a person sees of results: the same in text and in HTML, nothing of a record as markup, nothing large whole."""

from __future__ import annotations

import string
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markup import Markup

from jitdb.display.cells import json_text
from jitdb.display.html import html_of, value_html
from jitdb.display.parts import Display, Records
from jitdb.display.text import text_of
from jitdb.engine.reading.paging import Page
from jitdb.operators.summaries.distinct import DistinctCount, DistinctCounts
from jitdb.operators.summaries.fields import fields_of
from jitdb.operators.summaries.histograms import Bin, Histogram
from jitdb.operators.summaries.stats import GroupStats, Stats, StatsBy
from jitdb.operators.summaries.timelines import TimeBin, Timeline
from jitdb.operators.summaries.value_counts import GroupCount, GroupCounts, ValueCount, ValueCounts

HOSTILE = [
    "<script>alert(1)</script>", "\x1b[2J\x00", "مرحبا <b>بالعالم</b>", "\u202eevil", "a" * 10_000_000, "", "x\ny",
    "&amp;", '"><img src=x onerror=alert(1)>', "</style></details></td>", None, True, 1.5, float("nan"), 10**5000,
    {"<k>": ["<v>"] * 1000}, [], {}, b"\xff<b>", {"a": "b" * 10_000_000},
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(string.printable, max_size=9), inner, max_size=4)
    ),
    max_leaves=8,
)
DAY = datetime(2026, 11, 20, tzinfo=UTC)


def results(value: Any) -> list[Any]:
    """One of each kind, of which this value is a part."""
    stats = Stats(("n",), 2, 3, 1, 9, 10, 5.0, 5.6, ((0.5, 1), (0.95, 9)))
    steps = tuple(TimeBin(DAY + timedelta(hours=hour), 3 * hour, (hour, hour)) for hour in range(30))
    return [
        ValueCounts((ValueCount(value, 3), ValueCount("b", 1)), 5, 1, ("a", "<p>"), 2),
        GroupCounts((GroupCount((value, 1), 3),), 5, 1, (("a",), ("b",)), 2),
        Histogram((Bin(0.0, 10.0, 2), Bin(10.0, 20.0, 0), Bin(20.0, 30.0, 5)), 9, 2, ("n",), 0, 0),
        Timeline(steps, 999, 0, "1h", (("a",),), (value, "b"), "", ()),
        Timeline(tuple(step._replace(counts=()) for step in steps), 999, 0, "1h", (), (), "", ()),
        stats,
        StatsBy((GroupStats(value, stats),), 3, 0, ("n",), (("a",),), 1, ""),
        fields_of([{"a": value, "b": 1}, {"b": 2}]),
        Page([{"a": value, "b": 1}, value, {"c": {"d": value}}], 9, 3, 0.2),
        Timeline(steps, 999, 0, "1h", (("a",), ("b",)), ((value, 1), ("b", None)), "1s", (3600.0,) * 30),
        StatsBy((GroupStats((value, 1), stats, DAY),), 3, 0, ("n",), (("time",), ("<p>",)), 1, "1h"),
        DistinctCounts(
            tuple(DistinctCount(value, 3, 2, step.start) for step in steps[:2]), 9, 3, ("a",), (("b",),), 1, "1h"
        ),
        DistinctCounts(tuple(DistinctCount(None, 3, 2, step.start) for step in steps), 99, 9, ("a",), (), 1, "1h"),
    ]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value)[:20] if value != 10**5000 else "10**5000")
def test_nothing_of_a_record_is_markup_or_acts_on_a_terminal(value: Any) -> None:
    for found in results(value):
        markup = Markup(found._repr_html_())
        assert "\u202e" not in markup.words
        text = str(found)
        assert all(char.isprintable() or char == "\n" for char in text + markup.words.replace("\n", ""))
        assert len(text) < 10_000
        assert len(found._repr_html_()) < 60_000
        assert found._repr_mimebundle_() == {"text/plain": text, "text/html": found._repr_html_()}


def test_large_values_cost_no_time() -> None:
    records = [
        {"a": "x" * 10_000_000, "b": {"c": ["y" * 10_000_000] * 50}, "d": [[0] * 1000] * 1000} for _ in range(20)
    ]
    page = Page(records, 20, 20, 1.0)
    begin = time.process_time()
    html, text = page._repr_html_(), str(page)
    assert time.process_time() - begin < 0.5
    assert len(html) < 100_000
    assert len(text) < 5_000
    assert "9,998,000 more characters" in html


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=4))
def test_any_value_can_be_shown(values: list[Any]) -> None:
    for records in (values, [{"a": value, "b": [value]} for value in values]):
        shown = Display("t", "", [Records(records, {})])
        assert len(Markup(html_of(shown)).rows) == len(records) + 1
        assert text_of(shown, 80)
    for value in values:
        Markup(value_html(value))
        whole = json_text(value, 10**6)
        assert json_text(value, 5) == whole[:5]


def test_a_table_of_counts() -> None:
    counts = ValueCounts((ValueCount("info", 3), ValueCount("error", 1)), 5, 1, ("level",), 2)
    assert str(counts).split("\n") == [
        "level  count   share",
        "info       3  60.0 %  ████████████████████████████████████████",
        "error      1  20.0 %  █████████████▍",
        "5 records; 2 values; 1 without `level`",
    ]
    assert repr(counts) == str(counts)
    markup = Markup(counts._repr_html_())
    assert markup.rows == [["level", "count", "share", ""], ["info", "3", "60.0 %", ""], ["error", "1", "20.0 %", ""]]
    assert "5 records; 2 values; 1 without `level`" in markup.words
    assert markup.elements.count("svg") == 2


def test_many_rows_are_not_all_shown() -> None:
    rows = tuple(ValueCount(number, 1) for number in range(1000))
    counts = ValueCounts(rows, 1000, 0, ("n",), 1000)
    assert "975 more rows not shown" in str(counts)
    assert len(Markup(counts._repr_html_()).rows) == 26


def test_a_timeline_has_a_chart_and_small_ones_for_each_value() -> None:
    by = results("w")[3]
    markup = Markup(by._repr_html_())
    assert markup.elements.count("title") == 29  # of 30 steps one is empty
    assert [row[0] for row in markup.rows] == ["a", "w", "b", "others"]
    assert "▁" in str(by)
    plain = Markup(results("w")[4]._repr_html_())
    assert plain.elements.count("details") == 1
    assert plain.rows[1][0] == "2026-11-20T00:00:00Z"


def test_a_page_shows_the_columns_that_tell_most_and_says_what_it_leaves_out() -> None:
    records = [{"id": number, "level": "info", "meta": {"deep": [number]}, "time": number} for number in range(30)]
    page = Page(records, 1234, 30, 1.23456)
    markup = Markup(page._repr_html_())
    assert markup.rows[0][:2] == ["time", "id"]
    assert len(markup.rows) == 11
    assert "30 of 1,234 answers, in 1.23 ms" in markup.words
    assert "not shown: meta.deep" in markup.words
    assert "the first 10 of 30 records; all are in .data" in markup.words
    assert 'meta: {"deep":[3]}' in markup.words  # each record is there as a whole, folded
    assert "the next page is that of start_from(30)" in str(page)
    assert Markup(Page([], 0, 0, 0.1)._repr_html_()).rows == []
    offsets = Markup(Page([0, 10, 20], 3, 3, 0.1)._repr_html_())
    assert [row[0] for row in offsets.rows] == ["", "0", "10", "20"]
