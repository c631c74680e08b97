"""What there is to see of a set of logs: the logs, how much is in them, and with which fields, by a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.words import counted, size_in_words
from jitdb.display.parts import Display, Facts, Note, Part
from jitdb.display.sheet import Sheet
from jitdb.engine.showing.overview import field_sheet, rounded, span_of, time_range
from jitdb.errors import JitdbError
from jitdb.log.reading.sampling import sample_raw
from jitdb.logset.bundling import Together
from jitdb.operators.summaries.fields import fields_of

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.engine.declared_time import Times
    from jitdb.engine.showing.overview import Known
    from jitdb.logset.asking import Asking

_LOGS: Final = 10  # that are opened, from all over the set
_SAMPLE: Final = 100  # records
_LOOKED_AT: Final = 5  # records of a log, from whose sizes the number of records is estimated


class _Seen(NamedTuple):
    """What is seen of a log: how many records, exactly or about, and what its indexes know, if anything."""

    size: int  # of the file
    records: float
    is_exact: bool
    known: Known | None

    def __str__(self) -> str:
        return f"{self.records:,.0f}" if self.is_exact else f"about {rounded(self.records)}"


def overview(asking: Asking, sample: Callable[[int], list[Any]], times: Callable[[], Times]) -> Display:
    """What there is to see. Never raises: what is wrong with a log is a note."""
    members = asking.members
    size = sum(member.size for member in members)
    chosen = members[:: max(-(-len(members) // _LOGS), 1)]
    rows: list[list[Any]] = []
    seen: list[_Seen] = []
    notes: list[Part] = []
    for member in chosen:
        told = None
        try:
            with asking.using(member) as db:
                told = _seen(db, member.size)
        except (JitdbError, OSError) as error:
            notes.append(Note(f"{member.path} cannot be read: {error}"))
        if told is not None:
            seen.append(told)
        count = None if told is None else int(told.records) if told.is_exact else str(told)
        rows.append([member.path, size_in_words(member.size), count])
    facts = [("logs", f"{len(members):,}"), ("size", size_in_words(size))]
    if seen:
        records_known = _counted(asking)
        told_as = f"{records_known:,}" if records_known is not None else _records(seen, size, len(seen) == len(members))
        facts.append(("records", told_as))
    left = len(members) - len(chosen)
    footer = f"and {counted(left, 'log', 'logs')} more" if left else ""
    shown: list[Part] = [Sheet(["log", "size", "records"], rows, None, {}, footer)]
    try:
        records = sample(_SAMPLE)
        facts += _time(seen, len(members), records, times() if members else None)
        fields = fields_of(records)
        shown += [field_sheet(fields)] if fields.rows else []
    except (JitdbError, OSError) as error:
        notes.append(Note(f"a sample of records cannot be read: {error}"))
    return Display("LogSet", ", ".join(map(str, asking.where)), [Facts(facts), *shown, *notes])


def _seen(db: JITDB, size: int) -> _Seen:
    """By the indexes, as far as they reach; else by the lengths of some records. Raises LogError."""
    known, end = db.known(), db.log.durable_end
    if known is not None and (known.reached or not end):
        return _Seen(size, known.records * max(end, 1) / max(known.reached, 1), known.reached >= end, known)
    lengths = [len(record) for record in islice(sample_raw(db.log, _LOOKED_AT), _LOOKED_AT)]
    return _Seen(size, end * len(lengths) / (sum(lengths) + len(lengths)) if lengths else 0, not end, None)


def _counted(asking: Asking) -> int | None:
    """How many records all logs have, where most are in bundles, and indexes know it of all; else None."""
    parts, count = asking.bundled(), 0
    if len(parts) > _LOGS:
        return None
    try:
        for part in parts:
            with asking.using(part.member) as db:
                known = db.known()
                bundle = part.member.bundle if isinstance(part.member, Together) else None
                is_whole = bundle is None or part.member.logs == len(bundle.files)
                if known is None or known.reached < db.log.durable_end or not is_whole:
                    return None
                count += known.records
    except (JitdbError, OSError):
        return None
    return count


def _records(seen: Sequence[_Seen], size: int, is_all: bool) -> str:
    """How many records all logs have, estimated from the logs that were seen."""
    records, of = sum(each.records for each in seen), sum(each.size for each in seen)
    if is_all and all(each.is_exact for each in seen):
        return f"{records:,.0f}"
    by_size = "" if all(each.known for each in seen) else ", by the size of some"
    return f"about {rounded(records * size / max(of, 1))}{by_size}"


def _time(seen: Sequence[_Seen], logs: int, records: Sequence[Any], times: Times | None) -> list[tuple[str, str]]:
    """The first and the last time: from the indexes of some logs, else from a sample."""
    spans = [each.known for each in seen if each.known and each.known.low <= each.known.high and each.known.is_time]
    if spans:
        low, high = min(told.low for told in spans), max(told.high for told in spans)
        holding = [each for each in seen if each.records or not each.is_exact]
        source = "" if (len(spans), len(seen)) == (len(holding), logs) else f", of {len(spans):,} of them"
    elif times is not None and (found := time_range(records, times.paths, times.unit)) is not None:
        (low, high), source = found, ", in a sample"
    else:
        return []
    return [("time", span_of(low, high) + source)]
