"""`jitdb fields`: which fields the records have, by a sample of them."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Final

from jitdb.cli.opening import asked
from jitdb.cli.options import GENERAL, READING, number
from jitdb.cli.output.sheet import show_sheet
from jitdb.cli.parser import Parser
from jitdb.display.sheet import Sheet

if TYPE_CHECKING:
    from jitdb.operators.summaries.fields import Fields

_EXAMPLES: Final = 30  # characters of them all

PARSER = Parser(
    "fields",
    "LOG [options]",
    "List the fields of the records: their paths, of what kind their values are, how many of the records have them, "
    "and examples. A sample of records from all over the log is looked at; nothing is indexed.",
    [
        ("fields events.log", "as a table"),
        ("fields events.log --all", "those too that few records have"),
        ("fields events.log --format json", "for programs"),
    ],
)
PARSER.take("log", "more_logs")
PARSER.add_argument("--sample", metavar="N", type=number(1), default=1000, help="look at N records (default: 1000)")
PARSER.add_argument("--all", action="store_true", help="look at all records, which takes longer")
PARSER.take("summary_format", "escape_formulas", *READING, *GENERAL)


def run(options: Namespace) -> int:
    """Print them."""
    with asked(options) as db:
        show_sheet(options, _sheet(db.fields(None if options.all else options.sample), options.format))
    return 0


def _sheet(found: Fields, form: str) -> Sheet:
    """Programs that read JSON get how many values are of which kind, and the examples as they are."""
    sheet = found.sheet()
    if form in ("table", "csv", "tsv"):
        return sheet
    rows = [
        [name, dict(field.kinds), share, list(field.examples)]
        for field, (name, _, share, _) in zip(found, sheet.rows, strict=True)
    ]
    return sheet._replace(rows=rows)
