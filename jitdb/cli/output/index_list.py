"""The indexes of a log, a line each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jitdb.cli.output.output import show
from jitdb.common.words import counted, size_in_words

if TYPE_CHECKING:
    from jitdb.engine.showing.listing import IndexInfo


def show_indexes(rows: Iterable[IndexInfo], with_files: bool) -> None:
    """Print them."""
    number = 0
    for number, row in enumerate(rows, 1):  # noqa: B007
        use = f" ({row.use})" if row.use else ""
        state = row.state + (f": {row.reason}" if row.reason else "")
        told = f"{counted(row.records, 'record', 'records')}, {size_in_words(row.bytes)}, {state}"
        if with_files:
            show(f"{row.name}{use}")
            show(f"  {row.file}: {told}")
        else:
            show(f"{row.name}{use}: {told}")
    if not number:
        show("no indexes yet: the first question makes them")
