"""The parts of a display: plain data, which text.py and html.py render."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from jitdb.common.paths import Path
from jitdb.display.sheet import Code as Code
from jitdb.display.sheet import Sheet


class Marks(NamedTuple):
    """Which rows match, among those around them, and which begin another passage."""

    answers: Sequence[bool]
    begins: Collection[int]


class Facts(NamedTuple):
    """Names and values; a value is text, or a special cell (Spark, State, Code)."""

    pairs: Sequence[tuple[str, Any]]


class Records(NamedTuple):
    """Records, a row each.

    columns: the columns by name; empty: chosen by what the records hold
    by_name: the records are rows of these columns (Query.select)
    first:   fields that are columns in any case
    times:   names of fields whose numbers may be times; None: those with usual names
    marks:   which rows match, among those around them
    """

    records: Sequence[Any]
    columns: Mapping[str, Path]
    by_name: bool = False
    first: Sequence[Path] = ()
    times: Sequence[str] | None = None
    marks: Marks | None = None


class Chart(NamedTuple):
    """A column chart of one or several series, stacked. In text, tables have bars instead.

    labels: of each place, from left to right
    series: a name and a count for each place
    """

    labels: Sequence[str]
    series: Sequence[tuple[str, Sequence[float]]]


class Note(NamedTuple):
    """A sentence below what it is about."""

    text: str


class Folded(NamedTuple):
    """A table that a notebook unfolds on demand; text shows it."""

    summary: str
    sheet: Sheet


Part: TypeAlias = "Facts | Sheet | Records | Chart | Note | Code | Folded"


class Display(NamedTuple):
    """A value as a person sees it: its title, what it is in a few words, and its parts."""

    title: str
    about: str
    parts: Sequence[Part]
