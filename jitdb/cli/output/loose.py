"""The notes on what is a record and looks otherwise: lines of text that are read as no record of their own, or as a
record each, and a file that is one record with an array of them.

Apart from other notes, which answers of fresh indexes need not load.
"""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections import defaultdict
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from jitdb.cli.failures import note
from jitdb.common.words import counted, shown
from jitdb.errors import JitdbError

if TYPE_CHECKING:
    from jitdb.log.any_log import AnyLog
    from jitdb.log.lines.line_log import LineLog
    from jitdb.log.source import LogSource
    from jitdb.logset.logset import AnyDatabase, LogSet
    from jitdb.operators import Operation

_LOOSE: Final = 50  # a note is due where one of so many first lines is loose

_DOCUMENTS: Final = 10  # files of a folder that are looked at, and bytes of each
_OF_DOCUMENT: Final = 1 << 20
_LOOKED_AT: Final = 1 << 20  # bytes at each end of a file
_NAMED: Final = 3  # of them


def note_what_is_loose(db: AnyDatabase, options: Namespace, *, is_empty: bool = False) -> None:
    """The same notes on the log that was asked; of several, the note on files that are one record."""
    from jitdb.engine.database import JITDB

    if isinstance(db, JITDB):
        note_loose(db.log, options, is_empty=is_empty)
    elif not options.quiet and not options.each and not options.log_format:
        _note_documents(db, options)
        texts = options.operation.leaves() if options.operation is not None else ()
        if any(leaf.op in ("anywhere", "contains", "like") for leaf in texts):
            _note_loose_logs(db, options)


def _note_loose_logs(logs: LogSet, options: Namespace) -> None:
    """Note the first of some logs in which lines begin no record, though they look like it."""
    from jitdb.log.lines.line_log import LineLog

    for member in logs.members[:: -(-len(logs.members) // _DOCUMENTS) or 1]:
        with suppress(JitdbError, OSError), logs.using(member.path) as db:
            if isinstance(db.log, LineLog) and (told := _loose_in(db.log)):
                note(options, f"in {member.path} {told}")
                return


def _loose_in(log: LineLog) -> str:
    """That lines belong to the record before them, though they look like no part of one, in words."""
    from jitdb.log.lines.unlike import loose_lines

    seen = loose_lines(log.path, log.framing.form)
    found = next((each for each in seen if each.loose * _LOOSE >= each.lines and each.loose), None)
    if found is None:
        return ""
    lines = f"{found.loose:,} of the {found.which} {found.lines:,} lines, such as {shown(found.example)}"
    belongs = "begin no record: each belongs to the record before it"
    return f"{lines}, {belongs}; --log-format plain makes a record of each line"


def _note_documents(logs: LogSet, options: Namespace) -> None:
    """Note which of the first files called .json are one record with an array of others."""
    from jitdb.log.lines.files.opening import head_of
    from jitdb.log.lines.formats.batches import array_inside
    from jitdb.log.lines.line_log import LineLog
    from jitdb.log.objects.door import location_of
    from jitdb.log.objects.urls import is_url

    found = defaultdict[str, list[str]](list)
    paths = [member.path for member in logs.members if member.path.endswith(".json") and not is_url(member.path)]
    for path in paths[:_DOCUMENTS]:
        with suppress(JitdbError, OSError):
            if array := array_inside(partial(head_of, location_of(path)), on_one_line=True, most=_OF_DOCUMENT):
                with logs.using(path) as db:
                    if isinstance(db.log, LineLog) and _is_json(db.log):
                        found[array].append(path)
    for array, files in found.items():
        more = f" and {counted(len(files) - _NAMED, 'other', 'others')}" if len(files) > _NAMED else ""
        which = ", ".join(files[:_NAMED]) + more + (" are one record each" if len(files) > 1 else " is one record")
        note(options, f"{which}; asked alone with --each '{array}', each element of this array is one")


def _is_json(log: LineLog) -> bool:
    """Whether its lines are records as they stand."""
    return log.framing.form.row is None and not log.framing.form.each


def note_loose(log: AnyLog | LogSource | None, options: Namespace, *, is_empty: bool = False) -> None:
    """Note that lines which look like no part of a record belong to the one before; or that entries of several lines
    are a record a line; or that the file is one record.

    is_empty: no record has the field that was asked for; that elements of an array do, another note says. Text that is
              looked for may stand before the JSON of a line
    """
    from jitdb.log.lines.files.opening import head_of
    from jitdb.log.lines.formats.batches import array_inside
    from jitdb.log.lines.line_log import LineLog
    from jitdb.log.lines.unlike import entries_of_lines

    if options.quiet or not isinstance(log, LineLog):
        return
    with suppress(JitdbError, OSError):  # it was rotated away: the answer stands
        if pattern := entries_of_lines(log.path, log.framing.form):
            told = "entries seem to have several lines, and each line is a record of plain text"
            note(
                options,
                f"{told}; to read an entry as one, its other lines as `trace`: --log-format {shlex.quote(pattern)}",
            )
        if _is_json(log) and not is_empty and (array := array_inside(partial(head_of, log.path), on_one_line=True)):
            note(options, f"the file is one record; --each '{array}' makes one of each element of this array")
        texts = options.operation.leaves() if is_empty and options.operation is not None else ()
        if log.framing.form.allow_prefix and any(leaf.op in ("anywhere", "contains", "like") for leaf in texts):
            note(options, "the text before the JSON of a line is no part of the record: `jitdb query --text` shows it")
        if told := _loose_in(log):
            note(options, told)


def note_apart(db: AnyDatabase, operation: Operation, options: Namespace) -> None:
    """Note that lines hold a text which no field of their records does: it stands in two of them, or between them."""
    from jitdb.engine.database import JITDB
    from jitdb.log.lines.files.opening import head_of, tail_of
    from jitdb.log.lines.line_log import LineLog
    from jitdb.operators.nodes.anywhere import Anywhere, anywhere

    log = db.log if isinstance(db, JITDB) else None
    row = log.framing.form.row if isinstance(log, LineLog) else None
    if options.quiet or log is None or row is None or row.is_json or row.name == "plain":
        return
    texts = dict.fromkeys(leaf.value for leaf in operation.leaves() if isinstance(leaf, Anywhere))
    with suppress(JitdbError, OSError):
        ends = [head_of(log.path, _LOOKED_AT), tail_of(log.path, _LOOKED_AT, 0)] if texts else []
        for text in texts:
            if any(text.encode() in end for end in ends) and not db.count(anywhere(text)):
                what = f"lines hold {shown(text)} in no field, but across two of them or between"
                note(options, f"{what}: --log-format plain makes one text of each line, and finds it there")
