"""The notes on what is a record and looks otherwise: lines of text that are read as no record of their own, or as a
record each, and a file that is one record with an array of them.

Apart from other notes, which answers of fresh indexes need not load.
"""

from __future__ import annotations

import shlex
from argparse import Namespace
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from jitdb.cli.failures import note
from jitdb.common.words import shown
from jitdb.errors import JitdbError

if TYPE_CHECKING:
    from jitdb.log.any_log import AnyLog

_LOOSE: Final = 50  # a note is due where one of so many first lines is loose


def note_loose(log: AnyLog | None, options: Namespace, *, is_empty: bool = False) -> None:
    """Note that lines which look like no part of a record belong to the one before; or that entries of several lines
    are a record a line; or that the file is one record.

    is_empty: no record has the field that was asked for; that elements of an array do, another note says. Text that is
              looked for may stand before the JSON of a line
    """
    from jitdb.log.lines.detection import entries_of_lines, loose_lines
    from jitdb.log.lines.files.opening import head_of
    from jitdb.log.lines.formats.batches import array_inside
    from jitdb.log.lines.line_log import LineLog

    if options.quiet or not isinstance(log, LineLog):
        return
    with suppress(JitdbError, OSError):  # it was rotated away: the answer stands
        if pattern := entries_of_lines(log.path, log.framing.form):
            told = "entries seem to have several lines, and each line is a record of plain text"
            note(
                options,
                f"{told}; to read an entry as one, its other lines as `trace`: --log-format {shlex.quote(pattern)}",
            )
        is_json = log.framing.form.row is None and not log.framing.form.each
        if is_json and not is_empty and (array := array_inside(partial(head_of, log.path), on_one_line=True)):
            note(options, f"the file is one record; --each '{array}' makes one of each element of this array")
        texts = options.operation.leaves() if is_empty and options.operation is not None else ()
        if log.framing.form.allow_prefix and any(leaf.op in ("anywhere", "contains", "like") for leaf in texts):
            note(options, "the text before the JSON of a line is no part of the record: `jitdb query --text` shows it")
        found = loose_lines(log.path, log.framing.form)
        if found is not None and found.loose * _LOOSE >= found.lines and found.loose:
            which = f"{found.loose:,} of the first {found.lines:,} lines, such as {shown(found.first)}, begin no record"
            note(
                options,
                f"{which}: each belongs to the record before it; --log-format plain makes a record of each line",
            )
