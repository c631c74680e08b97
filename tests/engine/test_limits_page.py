"""docs/limits.md: its figures are those of the code."""

from __future__ import annotations

from doc_blocks import ROOT

from jitdb import errors
from jitdb.common import memory
from jitdb.engine.records import MAX_RECORDS
from jitdb.indexes.kinds import dictionary
from jitdb.log.blocks.block_format import DEFAULT_BLOCK_SIZE, MAX_BLOCK_SIZE
from jitdb.log.codecs.fields.constants import MAX_NESTING as DEEPEST_VALUE
from jitdb.log.lines.line_walkers import LONGEST
from jitdb.logset import open_logs
from jitdb.operators.nodes.operation import MAX_NESTING
from jitdb.operators.summaries.arithmetic import calendar
from jitdb.operators.text.expression import MAX_LENGTH

ROWS = {
    cells[1].strip(): cells[2:4]
    for cells in (line.split("|") for line in (ROOT / "docs" / "limits.md").read_text().splitlines())
    if len(cells) == 5
}


def test_figures() -> None:
    for row, figures in {
        "records of one log": (MAX_RECORDS,),
        "logs of a set": (open_logs._MOST,),
        "a record of jitdb's own logs": (DEFAULT_BLOCK_SIZE, MAX_BLOCK_SIZE),
        "a line of JSON Lines": (LONGEST,),
        "lists and maps within each other": (DEEPEST_VALUE,),
        "operations within each other": (MAX_NESTING,),
        "an expression": (MAX_LENGTH,),
        "the distinct values of a field that is counted, sorted or searched by value": (dictionary.MOST_BYTES,),
        "bins of a histogram or a timeline": (calendar.MOST,),
    }.items():
        for figure in figures:
            assert f"{figure:,}" in ROWS[row][0], row
    assert f"{memory.DEFAULT >> 20} MiB" in (ROOT / "docs" / "limits.md").read_text()


def test_errors_have_these_names() -> None:
    for _, what in ROWS.values():
        if what.strip().startswith("`"):
            assert issubclass(getattr(errors, what.split("`")[1]), errors.JitdbError)
