"""Records as a table on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from jitdb.common.paths import Path
from jitdb.display.columns import choose_columns, column_name, columns_in, leaf_fields
from jitdb.display.record_table import Marks, make_table

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
    table, shown = make_table(records, columns, screen.width, timestamps, marks, by_name=by_name)
    screen.print(table)
    return [name for name in paths or leaf_fields(records) if name not in shown]
