"""Records as a table on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from jitdb.common.paths import Path
from jitdb.display.cells import cell
from jitdb.display.columns import GAP, SAMPLE, choose_columns, column_name, columns_in, fitting, leaf_fields
from jitdb.display.record_table import BETWEEN, Marks, make_table, times_of, values_of

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """Standard output, in color where it is a terminal. A reader who has had enough raises BrokenPipeError."""
    from rich.console import Console

    class Quiet(Console):
        def on_broken_pipe(self) -> None:  # which would end the process with exit code 1
            raise BrokenPipeError

    return Quiet(file=sys.stdout, highlight=False)


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
        chosen = choose_columns(records, columns_in(screen.width), screen.width)
        several = dict.fromkeys([*first, *chosen])  # the last ones give way
        columns = {column_name(path): path for path in islice(several, max(len(chosen), len(first)))}
    times = times_of(columns, timestamps)
    values = values_of(records[:SAMPLE], columns, by_name)
    texts = {name: [cell(value, name in times) for value in held] for name, held in values.items()}
    kept = fitting(texts, screen.width - (len(BETWEEN) + GAP if marks else 0))
    shown = {name: columns[name] for name in kept}
    screen.print(make_table(records, shown, screen.width, timestamps, marks, by_name=by_name))
    others = paths or leaf_fields(records)
    return [name for name in others if name not in shown]
