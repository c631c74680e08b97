"""What a display is made of: plain data, which text.py and html.py say each in their way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from jitdb.common.paths import Path
from jitdb.display.sheet import Code as Code
from jitdb.display.sheet import Sheet


class Facts(NamedTuple):
    """What is known, each with its name; a value is text, or a cell of its own kind (Spark, State, Code)."""

    pairs: Sequence[tuple[str, Any]]


class Records(NamedTuple):
    """Records, a row each.

    columns: those that are shown, by name; empty: chosen by what the records hold
    by_name: the records are rows of these columns (Query.select)
    """

    records: Sequence[Any]
    columns: Mapping[str, Path]
    by_name: bool = False


class Chart(NamedTuple):
    """Counts side by side, of one kind or of several, one upon the other. Where there is only text, tables have bars.

    labels: of each place, from left to right
    series: a name and a count for each place
    """

    labels: Sequence[str]
    series: Sequence[tuple[str, Sequence[int]]]


class Note(NamedTuple):
    """A sentence below what it is about."""

    text: str


class Folded(NamedTuple):
    """What is seen on demand, in a notebook; there is no hiding in text."""

    summary: str
    sheet: Sheet


Part: TypeAlias = "Facts | Sheet | Records | Chart | Note | Code | Folded"


class Display(NamedTuple):
    """A value as a person sees it.

    title: what it is called
    about: what it is, in a few words
    """

    title: str
    about: str
    parts: Sequence[Part]
