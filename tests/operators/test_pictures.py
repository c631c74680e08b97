"""Pictures say what the counts say, whatever the values are; matplotlib is imported only for them."""

from __future__ import annotations

import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jitdb.errors import MissingLibrary
from jitdb.operators.summaries.histograms import Bin, Histogram
from jitdb.operators.summaries.timelines import TimeBin, Timeline
from jitdb.operators.summaries.value_counts import GroupCount, GroupCounts, ValueCount, ValueCounts

matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'jitdb[plot]'")
HOSTILE = ["$x_1$ broken $", "_hidden", "مرحبا", "<b>x</b>", "a" * 5000, "", None, {"a": 1}, "line\nline", "\x1b[2J"]
DAY = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_window() -> Any:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield
    pyplot.close("all")


def drawn(ax: Any) -> None:
    ax.figure.canvas.draw()


def test_a_bar_for_each_value_and_one_for_the_others() -> None:
    rows = tuple(ValueCount(value, 50 - number) for number, value in enumerate(HOSTILE))
    ax = ValueCounts(rows, 1000, 3, ("a$b$",), 99).plot()
    drawn(ax)
    counts = [row.count for row in rows]
    assert [bar.get_width() for bar in ax.patches] == [*counts, 1000 - 3 - sum(counts)]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[:2] == HOSTILE[:2]
    assert names[4] == "a" * 39 + "…"
    assert names[5:9] == ['""', "null", '{"a":1}', "line line"]
    assert names[-1] == "others"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("records", '["a$b$"]')
    assert ax.get_title(loc="left").startswith("1,000 records; 99 values")
    assert ax.yaxis_inverted()
    many = ValueCounts(tuple(ValueCount(number, 2) for number in range(100)), 200, 0, ("n",), 100).plot()
    assert len(many.patches) == 31
    assert many.patches[-1].get_width() == 140


def test_groups() -> None:
    ax = GroupCounts((GroupCount(("a", None), 3),), 3, 0, (("x",), ("y",)), 1).plot()
    drawn(ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a, null"]
    assert ax.get_ylabel() == "x, y"


def test_a_histogram_has_bins_as_wide_as_they_are() -> None:
    ax = Histogram((Bin(0.0, 10.0, 2), Bin(10.0, 100.0, 5)), 9, 2, ("n",), 0, 0).plot()
    drawn(ax)
    (steps,) = ax.patches
    values, edges, _ = steps.get_data()
    assert (list(values), list(edges)) == ([2, 5], [0, 10, 100])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("n", "records")


def test_a_timeline_is_stacked_by_value() -> None:
    from matplotlib import dates

    rows = tuple(TimeBin(DAY + timedelta(hours=hour), 3 * hour, (hour, 1)) for hour in range(1, 9))
    line = Timeline(rows, 99, 0, "1h", (("a$",),), HOSTILE[:2], "", ())
    ax = line.plot()
    drawn(ax)
    tops, bases = zip(*((list(part.get_data()[0]), part.get_data()[2]) for part in ax.patches), strict=True)
    assert tops == (
        [row.counts[0] for row in rows],
        [sum(row.counts) for row in rows],
        [row.count for row in rows],
    )
    assert list(bases[1]) == tops[0]
    assert dates.num2date(ax.patches[0].get_data()[1][0]) == rows[0].start
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [*HOSTILE[:2], "others"]
    plain = Timeline(tuple(row._replace(counts=()) for row in rows[:1]), 3, 0, "1h", (), (), "", ()).plot()
    drawn(plain)
    assert plain.get_legend() is None


def test_nothing_can_be_drawn_and_so_can_axes_of_ones_own() -> None:
    from matplotlib import pyplot

    _, (left, right) = pyplot.subplots(1, 2)
    assert ValueCounts((), 0, 0, ("a",), 0).plot(ax=left) is left
    assert Timeline((), 0, 0, "1h", (), (), "", ()).plot(right) is right
    drawn(Histogram((), 0, 0, ("a",), 0, 0).plot())
    drawn(left)


def test_without_matplotlib_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingLibrary, match=r"pip install 'jitdb\[plot\]'"):
        ValueCounts((), 0, 0, ("a",), 0).plot()


def test_it_is_imported_only_for_pictures() -> None:
    asked = (
        "import sys; from jitdb.operators.summaries.value_counts import *; "
        "ValueCounts((ValueCount(1, 1),), 1, 0, ('a',), 1)._repr_mimebundle_(); "
        "print([name for name in ('matplotlib', 'pandas', 'IPython') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
