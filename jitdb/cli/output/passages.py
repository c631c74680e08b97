"""Matches with the records around them (`jitdb query -C 3`): with marks, or as JSON lines with two more keys."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.failures import Failure, UsageError, note
from jitdb.cli.opening import is_many
from jitdb.cli.options import AROUND, number, option
from jitdb.cli.output.formats import chosen, settings_of, with_text
from jitdb.common.paths import Path
from jitdb.common.words import counted

if TYPE_CHECKING:
    from jitdb.display.parts import Marks
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators import Operation
    from jitdb.operators.passages import Seen

MATCH: Final = "_match"  # keys that are added to a JSON line: whether the record matches
PASSAGE: Final = "_passage"  # the number of its passage, from 1
_VALUE: Final = "_value"  # of a record that is no map

_AROUND: Final = 5  # records on either side of --around, unless said otherwise


CONTEXT: Final = (
    option("-A, --after N", "N later records after each match", type=number(0), group=AROUND),
    option("-B, --before N", "N earlier records before each match", type=number(0), group=AROUND),
    option("-C, --context N", "both", type=number(0), group=AROUND),
    option(
        "--around OFFSET",
        "the records around the one at this offset (see --offsets); EXPR says which of them, if given",
        type=number(0),
        group=AROUND,
    ),
    "same",
)


def wants_context(options: Namespace) -> bool:
    """Whether more than the matching records is asked for. Raises UsageError for options that exclude each other."""
    sides = (options.after, options.before, options.context)
    if options.around is None and sides == (None, None, None):
        if options.same:
            raise UsageError("query: --same is about what stands around a record", "say how many: -C 3, -B 3, -A 3")
        return False
    if options.offsets:
        raise UsageError("query: --offsets prints offsets only; leave -A, -B, -C and --around out")
    if options.around is not None and is_many(options):
        raise UsageError("--around is about one log, and these are several", "name one log")
    return True


def passages_of(
    db: AnyDatabase, operation: Operation | None, options: Namespace, limit: int | None
) -> Iterator[list[Seen]]:
    """The passages. Raises Failure where no record begins at --around."""
    usual = options.context
    if usual is None:
        usual = 0 if options.around is None or (options.before, options.after) != (None, None) else _AROUND
    before, after = (usual if side is None else side for side in (options.before, options.after))
    asked, among = operation, None
    if options.around is not None:
        from jitdb.operators import offsets

        asked, among = offsets([options.around]), operation
        if not db.count(asked, as_of=options.as_of):
            raise Failure(
                f"{options.log}: no record begins at offset {options.around:,}",
                "`jitdb query LOG EXPR --offsets` prints those of records",
            )
    settings = settings_of(options)
    settings["as_offsets"], settings["as_raw"] = options.text, options.raw
    found = db.context(asked, before, after, same=options.same, among=among, limit=limit, **settings)
    return _told_short(found, before or 0, after or 0, options) if is_many(options) else iter(found)


def _told_short(passages: Iterable[list[Seen]], before: int, after: int, options: Namespace) -> Iterator[list[Seen]]:
    """The passages; then a note where some have fewer records around their matches, as a file ends there."""
    short = 0
    for passage in passages:
        answers = [place for place, seen in enumerate(passage) if seen.is_match]
        short += answers[0] < before or len(passage) - 1 - answers[-1] < after
        yield passage
    if short and not options.same:
        ends = counted(short, "passage begins or ends", "passages begin or end")
        note(options, f"{ends} with a file: the records around a match are those of its own file")


def as_records(db: AnyDatabase, passage: Iterable[Seen], options: Namespace) -> Iterator[tuple[Any, bool]]:
    """The records of a passage, and whether each matches."""
    if not options.text:
        yield from ((seen.record, seen.is_match) for seen in passage)
        return
    for seen in passage:
        for record in with_text(db, [seen.record], labelled=bool(options.fields)):
            yield record, seen.is_match


def passage_lines(
    db: AnyDatabase, operation: Operation | None, options: Namespace, paths: dict[str, Path]
) -> Iterator[list[bytes]]:
    """The lines of each passage, of --raw with a line between two, as grep has it."""
    from jitdb.common.json_text import line_of

    for place, passage in enumerate(passages_of(db, operation, options, options.limit), 1):
        if options.raw:
            yield [*[b"--\n"] * (place > 1), *(seen.record + b"\n" for seen in passage)]
            continue
        lines = []
        for record, is_match in as_records(db, passage, options):
            shown = record if isinstance(record, dict) else {_VALUE: record}
            if paths:
                shown = chosen(record, paths)
            lines.append(line_of({**shown, MATCH: is_match, PASSAGE: place}))
        yield lines


def marked(db: AnyDatabase, operation: Operation | None, options: Namespace, limit: int) -> tuple[list[Any], Marks]:
    """At most so many matches with the records around them, and which of them match."""
    from jitdb.display.parts import Marks

    records: list[Any] = []
    answers: list[bool] = []
    begins: list[int] = []
    for place, passage in enumerate(passages_of(db, operation, options, limit)):
        if place:
            begins.append(len(records))
        for record, is_answer in as_records(db, passage, options):
            records.append(record)
            answers.append(is_answer)
    return records, Marks(answers, begins)
