"""`jitdb fields`: which fields the records have, by a sample of them."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.opening import asked
from jitdb.cli.options import GENERAL, READING, number
from jitdb.cli.output.sheet import show_sheet
from jitdb.cli.parser import Parser
from jitdb.common.paths import format_path
from jitdb.common.words import counted
from jitdb.display.cells import cell
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
        ("fields events.log --format json", "for programs"),
    ],
)
PARSER.take("log", "more_logs")
PARSER.add_argument("--sample", metavar="N", type=number(1), default=1000, help="look at N records (default: 1000)")
PARSER.take("summary_format", *READING, *GENERAL)


def run(options: Namespace) -> int:
    """Print them."""
    with asked(options) as db:
        show_sheet(_sheet(db.fields(options.sample), options.format), options.format, options.quiet)
    return 0


def _sheet(found: Fields, form: str) -> Sheet:
    rows: list[list[Any]] = []
    for field in found:
        kinds: Any = dict(field.kinds)
        examples: Any = list(field.examples)
        if form in ("table", "csv", "tsv"):
            kinds = ", ".join(field.kinds)
            shown = [cell(value) for value in examples]
            examples = ", ".join(text if len(text) <= _EXAMPLES else text[: _EXAMPLES - 1] + "…" for text in shown)
        rows.append([format_path(field.path), kinds, field.count / found.total, examples])
    footer = f"{counted(found.total, 'record', 'records')} looked at"
    return Sheet(["field", "kinds", "share", "examples"], rows, None, {"total": found.total}, footer)
