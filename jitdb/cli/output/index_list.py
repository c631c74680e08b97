"""The indexes of a log, a line each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jitdb.common.words import counted, size_in_words
from jitdb.display.cells import printable

if TYPE_CHECKING:
    from jitdb.engine.showing.listing import IndexInfo


def show_indexes(rows: Iterable[IndexInfo], with_files: bool) -> None:
    """Print them."""
    number = 0
    for number, row in enumerate(rows, 1):  # noqa: B007
        use = f" ({row.use})" if row.use else ""
        state = row.state + (f": {row.reason}" if row.reason else "")
        told = f"{counted(row.records, 'record', 'records')}, {size_in_words(row.bytes)}, {state}"
        file = f"\n  {printable(row.file)}" if with_files else ""
        print(f"{printable(row.name)}{use}{file}: {printable(told)}")
    if not number:
        print("no indexes yet: the first question makes them")
