"""Records as a table for people: which fields are worth a column, and how a value looks in a cell.

Worth a column is what many of the records have, short, not always the same, telling by its name.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.paths import TIMESTAMPS, Path, format_path
from jitdb.common.times import SMALLER, as_text, time_of_number
from jitdb.common.values import UNDEFINED, value_at

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_COLUMNS: Final = 5  # in 80 characters
_MOST: Final = 12
_DEPTH: Final = 5  # keys in a path
_DEEPEST: Final = 8  # the same of all fields
_SAMPLE: Final = 200  # records looked at

_WIDEST: Final = 60  # characters of a column whose width is ours to choose
_OPAQUE: Final = 16  # of one that holds keys and hashes: their beginnings tell them apart
_NARROWEST: Final = 12  # of the last column, which takes what is left
_GAP: Final = 3  # blanks between columns
_LEAST: Final = 4  # characters of a column that is shown
_TELLING_APART: Final = 10  # the same, if its values are longer
_ANSWER: Final = ">"  # before what was asked for, among what stands around it
_BETWEEN: Final = "--"  # passages, as grep has it

# Last keys of fields that people look for first.
_TELLING: Final = {
    "timestamp": 9, "time": 9, "date": 9, "ts": 8, "type": 8, "kind": 7, "level": 8, "status": 7, "name": 7,
    "author": 6, "user": 6, "text": 6, "message": 6, "msg": 6, "title": 6, "sequence": 5, "id": 4, "path": 5,
}  # fmt: skip
_SURELY_TIME: Final = 1e9  # smaller numbers in a field called so may be anything
TIMES: Final = frozenset({"timestamp", "time", "date", "ts"})


def console() -> Console:
    """Standard output, in color where it is a terminal. A reader who has had enough raises BrokenPipeError."""
    from rich.console import Console

    class Quiet(Console):
        def on_broken_pipe(self) -> None:  # which would end the process with exit code 1
            raise BrokenPipeError

    return Quiet(file=sys.stdout, highlight=False)


def columns_in(width: int) -> int:
    """How many columns a table of `width` characters has.

    >>> columns_in(80), columns_in(120), columns_in(300)
    (5, 7, 12)
    """
    return max(_COLUMNS, min(_COLUMNS + (width - 80) // 20, _MOST))


def choose_columns(records: Sequence[Any], most: int = _COLUMNS) -> list[Path]:
    """The paths of at most `most` fields: times first, then as they stand in the records, texts last.

    Fields that half of the records lack are chosen only where others do not fill the table.

    >>> choose_columns([{"id": 1, "text": "hello", "time": 5}, {"id": 2, "time": 6}])
    [('time',), ('id',), ('text',)]
    >>> choose_columns([17, "text"])
    [('',)]
    """
    sample = records[:_SAMPLE]
    seen: dict[Path, list[str]] = {}
    for record in sample:
        for path, value in _leaves(record):
            seen.setdefault(path, []).append(str(value))
    scores = {path: _score(path, texts, len(sample)) for path, texts in seen.items()}
    best = sorted(scores, key=lambda path: (2 * len(seen[path]) <= len(sample), -scores[path], len(path)))
    chosen: list[Path] = []
    for path in best:
        # Of timestamp and value.timestamp one is enough.
        if len(chosen) < most and scores[path] > 0 and _word(path) not in map(_word, chosen):
            chosen.append(path)
    order = list(seen)
    chosen = sorted(chosen or best[:most], key=order.index)
    return sorted(chosen, key=lambda path: (_word(path) not in TIMES, _is_prose(seen[path]))) or [("",)]


def _word(path: Path) -> str:
    """What the last key of a path says: of `["log.level"]` and `log.level` the same."""
    return str(path[-1]).lower().rpartition(".")[2].removeprefix("@")


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Paths and values of the text, numbers and booleans in maps within maps."""
    if isinstance(value, dict):
        if len(path) < _DEPTH:
            for key, item in value.items():
                if isinstance(key, str):
                    yield from _leaves(item, (*path, key))
    elif not path:
        yield ("",), value
    elif isinstance(value, (str, int, float, bool)):
        yield path, value


def leaf_fields(records: Iterable[Any]) -> dict[str, Path]:
    """The fields of these records that hold no maps, by name, in the order in which they come.

    >>> leaf_fields([{"a": 1, "b": {"c": [2]}}, {"b": {"d": {}}}])
    {'a': ('a',), 'b.c': ('b', 'c'), 'b.d': ('b', 'd')}
    """
    found = dict.fromkeys(path for record in records for path in _fields_of(record, ()))
    return {format_path(path): path for path in found}


def _fields_of(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict) and len(path) < _DEEPEST and (value or not path):
        for key, item in value.items():
            if isinstance(key, str):
                yield from _fields_of(item, (*path, key))
    elif path:
        yield path


def _is_prose(texts: list[str]) -> bool:
    return 2 * sum(" " in text for text in texts) > len(texts) and _length(texts) > 24


def _length(texts: list[str]) -> float:
    return sum(map(len, texts)) / len(texts)


def _score(path: Path, texts: list[str], sample: int) -> float:
    presence = len(texts) / sample
    opaque = _length(texts) > 24 and not _is_prose(texts)
    same = len(set(texts)) == 1 and sample > 3
    score = 4 * presence + _TELLING.get(_word(path), 0) - 0.5 * len(path)
    return score - 4 * opaque - 6 * same - 6 * (presence < 0.2)


def print_table(
    records: Sequence[Any],
    paths: dict[str, Path],
    timestamps: Sequence[str] | None = None,
    marks: Marks | None = None,
    *,
    by_name: bool = False,
    first: Sequence[Path] = (),
) -> list[str]:
    """Print the records, a row each. `paths` are the columns by name; chosen by what the records hold when empty.

    by_name: the records are rows of these columns (Query.select)
    first:   fields that are columns in any case

    Gives the names of the columns, or of fields of the records, that it leaves out.
    """
    if not records:
        return []
    screen = console()
    columns = paths
    if not columns:
        chosen = choose_columns(records, columns_in(screen.width))
        several = dict.fromkeys([*first, *chosen])  # the last ones give way
        columns = {format_path(path): path for path in islice(several, max(len(chosen), len(first)))}
    times = _times(columns, timestamps)
    values = _values(records[:_SAMPLE], columns, by_name)
    texts = {name: [cell(value, name in times) for value in held] for name, held in values.items()}
    kept = fitting(texts, screen.width - (len(_BETWEEN) + _GAP if marks else 0))
    shown = {name: columns[name] for name in kept}
    screen.print(make_table(records, shown, screen.width, timestamps, marks, by_name=by_name))
    others = paths or leaf_fields(records)
    return [name for name in others if name not in shown]


def fitting(texts: dict[str, list[str]], width: int) -> list[str]:
    """The columns, from the first on, that have room for what tells their values apart; one at least.

    >>> fitting({"a": ["1234567"], "b": ["a long text"], "c": ["1"]}, 24)
    ['a', 'b']
    """
    ends = accumulate(_floor(cells) + _GAP for cells in texts.values())
    most = sum(end <= width + _GAP for end in ends)
    return list(texts)[: max(1, most)]


def _floor(cells: Sequence[str]) -> int:
    """Characters that a column does not go below as long as others can be made narrower."""
    return max(_LEAST, min(max(map(len, cells)), _TELLING_APART))


def left_out(names: Sequence[str], width: int) -> str:
    """What to say of columns that a table leaves out, in one line; empty where there are none.

    >>> left_out(["size", "user.name", "message"], 34)
    'not shown: size and 2 more'
    """
    if not names:
        return ""
    for count in range(len(names), 0, -1):
        more = f" and {len(names) - count:,} more" if count < len(names) else ""
        said = f"not shown: {', '.join(map(printable, names[:count]))}{more}"
        if len(said) <= width:
            return said
    return f"not shown: {len(names):,} fields"


class Marks(NamedTuple):
    """Which rows are answers, among what stands around them, and which begin another passage."""

    answers: Sequence[bool]
    begins: Collection[int]


def make_table(
    records: Sequence[Any],
    columns: dict[str, Path],
    width: int,
    timestamps: Sequence[str] | None = None,
    marks: Marks | None = None,
    *,
    by_name: bool = False,
) -> Table:
    """The same as a rich table of at most `width` characters; columns beyond that are made narrower."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    times = _times(columns, timestamps)
    values = _values(records, columns, by_name)
    texts = {name: [cell(value, name in times) for value in held] for name, held in values.items()}
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    if marks is not None:
        width -= len(_BETWEEN) + _GAP
        table.add_column("", width=len(_BETWEEN))
    for name, characters in zip(columns, _widths(texts, width), strict=True):
        right = name not in times and all(value is UNDEFINED or _is_number(value) for value in values[name])
        table.add_column(
            Text(_head(name)),
            justify="right" if right else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=characters,
        )
    for number, row in enumerate(zip(*texts.values(), strict=True)):
        if marks is None:
            table.add_row(*map(Text, row))
            continue
        if number in marks.begins:
            table.add_row(_BETWEEN)
        is_answer = marks.answers[number]
        table.add_row(_ANSWER if is_answer else "", *map(Text, row), style="bold" if is_answer else None)
    return table


def _times(columns: dict[str, Path], timestamps: Sequence[str] | None) -> set[str]:
    """The columns whose numbers may be times."""
    return {name for name, path in columns.items() if name in (timestamps or TIMESTAMPS) or _word(path) in TIMES}


def _values(records: Sequence[Any], columns: dict[str, Path], by_name: bool) -> dict[str, list[Any]]:
    return {name: [_at(record, (name,) if by_name else path) for record in records] for name, path in columns.items()}


def _head(name: str) -> str:
    """A column's name, a key a line."""
    return re.sub(r"\.(?![^\[]*\])", ".\n", printable(name))


def _widths(texts: dict[str, list[str]], width: int) -> list[int]:
    """Characters of each column. The last one takes what is left, if it wants it."""
    heads = [max(map(len, _head(name).split("\n"))) for name in texts]
    wanted = []
    for cells, head in zip(texts.values(), heads, strict=True):
        longest = max(map(len, cells))
        opaque = longest > 24 and not any(" " in text for text in cells)
        wanted.append(max(head, min(longest, _OPAQUE if opaque else _WIDEST)))
    gaps = _GAP * (len(wanted) - 1)
    left = width - gaps - sum(wanted[:-1])
    wanted[-1] = max(min(heads[-1], _NARROWEST), min(max(longest, heads[-1]), left))
    floors = list(map(_floor, texts.values()))
    while sum(wanted) + gaps > width:
        over = [number for number, (want, floor) in enumerate(zip(wanted, floors, strict=True)) if want > floor]
        if not over:
            if max(floors) <= _LEAST:
                break
            floors = [_LEAST] * len(floors)
            continue
        wanted[max(over, key=wanted.__getitem__)] -= 1
    return wanted


def _at(record: Any, path: Path) -> Any:
    """The field's value. A record that is no map has one column, the empty path."""
    return record if path == ("",) and not isinstance(record, dict) else value_at(record, path)


def cell(value: Any, is_time: bool = False) -> str:
    """A value in one line, control characters made visible, so that no record can paint on the terminal.

    >>> cell("two\\nlines"), cell(True), cell(1700000000000, True)
    ('two lines', 'true', '2023-11-14 22:13:20.000')
    """
    if value is UNDEFINED:
        return ""
    if isinstance(value, str):
        return printable(" ".join(value[: 4 * _WIDEST].split()))
    if is_time and _is_number(value):
        shown = _moment(value)
        if shown:
            return shown
    if isinstance(value, (bool, type(None), int, float)):
        return json.dumps(value)
    from jitdb.cli.output.jsonl import line_of

    return printable(line_of(value)[: 8 * _WIDEST].decode(errors="replace").rstrip("\n"))


def printable(text: str) -> str:
    """The text with what does not print written as an escape.

    >>> printable("a\\x1b[2J")
    'a\\\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _moment(value: float) -> str:
    """A number that can only be a time, as UTC to the second or millisecond; else the empty text."""
    time = time_of_number(value) if value >= _SURELY_TIME else None
    if not isinstance(time, int):
        return ""
    if value < SMALLER["s"]:
        return as_text(time // 10**9 * 10**9)[:-1].replace("T", " ")
    day, clock = as_text(time // 10**6 * 10**6)[:-1].split("T")
    whole, _, rest = clock.partition(".")
    return f"{day} {whole}.{rest:0<3}"
