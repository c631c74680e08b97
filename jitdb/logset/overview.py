"""What there is to see of a set of logs: the logs, how much is in them, and with which fields, by a sample."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.words import counted, size_in_words
from jitdb.display.parts import Display, Facts, Note, Part
from jitdb.display.sheet import Sheet
from jitdb.engine.showing.overview import field_sheet, moment, rounded
from jitdb.errors import JitdbError
from jitdb.log.reading.sampling import sample_raw

if TYPE_CHECKING:
    from jitdb.engine.showing.overview import Known
    from jitdb.logset.members.finding import Member, Where
    from jitdb.logset.members.open_logs import OpenLogs
    from jitdb.operators.summaries.names import FieldNames

_LOGS: Final = 10  # that are opened, from all over the set
_SAMPLE: Final = 100  # records
_LOOKED_AT: Final = 5  # records of a log, whose sizes tell how many there are


def overview(where: Sequence[Where], members: Sequence[Member], opened: OpenLogs, fields: FieldNames) -> Display:
    """What there is to see. Never raises what may be wrong with a log: that is said."""
    sizes = [_size(member) for member in members]
    chosen = members[:: max(-(-len(members) // _LOGS), 1)]
    rows: list[list[Any]] = []
    known: list[tuple[int, Known]] = []
    lengths: list[int] = []
    notes: list[Part] = []
    for member in chosen:
        told = None
        try:
            with opened.using(member) as db:
                told = db.known()
                lengths += map(len, islice(sample_raw(db.log, _LOOKED_AT), _LOOKED_AT))
        except (JitdbError, OSError) as error:
            notes.append(Note(f"{member.path} cannot be read: {error}"))
        if told is not None and told.reached:
            known.append((_size(member), told))
        rows.append([member.path, size_in_words(_size(member)), None if told is None else told.records or None])
    facts = [("logs", f"{len(members):,}"), ("size", size_in_words(sum(sizes)))]
    facts += _of_records(known, members, sum(sizes), lengths)
    left = len(members) - len(chosen)
    footer = f"and {counted(left, 'log', 'logs')} more" if left else ""
    parts: list[Part] = [Facts(facts), Sheet(["log", "size", "records"], rows, None, {}, footer)]
    try:
        sampled = fields(_SAMPLE)
        parts.extend([field_sheet(sampled)] if sampled.rows else [])
    except (JitdbError, OSError) as error:
        notes.append(Note(f"a sample of records cannot be read: {error}"))
    return Display("LogSet", ", ".join(map(str, where)), [*parts, *notes])


def _of_records(
    known: Sequence[tuple[int, Known]], members: Sequence[Member], size: int, lengths: Sequence[int]
) -> list[tuple[str, str]]:
    """How many records, and of which time, as far as the indexes of some logs tell; else by the lengths of some."""
    if not known:
        mean = sum(lengths) / len(lengths) + 1 if lengths else 0
        return [("records", f"about {rounded(size / mean)}, by the size of some")] if mean else []
    records, reached = sum(told.records for _, told in known), sum(told.reached for _, told in known)
    is_all = len(known) == len(members) and reached >= sum(held for held, _ in known)
    facts = [("records", f"{records:,}" if is_all else f"about {rounded(records * size / max(reached, 1))}")]
    spans = [told for _, told in known if told.low <= told.high and told.is_time]
    if spans:
        span = f"{moment(min(told.low for told in spans))} to {moment(max(told.high for told in spans))}"
        facts.append(("time", span if len(spans) == len(members) else f"{span}, of {len(spans):,} of them"))
    return facts


def _size(member: Member) -> int:
    try:
        return os.path.getsize(member.path)
    except OSError:
        return 0  # opening it says why
