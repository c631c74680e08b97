"""What the indexes of a log say of fields and values that an answer lacks, without a scan; and how values were read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.paths import ANY, format_path
from jitdb.common.times import AUTO, NUMBER, ZONES, ZONES_ELSEWHERE, as_text, time_of, unit_and_zone, zone_behind
from jitdb.common.values import UNDEFINED, value_at, values_at
from jitdb.common.words import shown
from jitdb.indexes.kinds.columns import SOME, seen_by, some_lacking, tells_lacking
from jitdb.indexes.kinds.content import is_void
from jitdb.indexes.kinds.kernels import seen
from jitdb.indexes.segment import BITMAPS, DICTIONARY, NUMBERS, SET
from jitdb.indexes.spec import IndexSpec, values_spec

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.engine.catalog.catalog import Catalog
    from jitdb.engine.hinting.dialects import Elsewhere
    from jitdb.engine.hinting.knowledge import Lack, Unlike
    from jitdb.engine.manager import IndexManager
    from jitdb.indexes.segment import Segment
    from jitdb.log.source import LogSource
    from jitdb.operators.nodes.operation import Operation

_DAY: Final = r"\d{4}[-/]\d\d[-/]\d\d"
_DAY_FIRST: Final = r"(?:1[3-9]|[23]\d)/\d\d?/\d{4},? \d\d?:.*[AaPp][Mm]\b"
_CLOCK: Final = r"\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
_OF_UTC: Final = ("UTC", "GMT", "Etc/UTC", "Etc/GMT")
_ZONE: Final = r"(?:A[CEW][SD]T|[CEW]ES?T|[CEMP][SD]T|[BIJKS]ST|NZ[SD]T|MSK|HKT|SGT|SAST|BRT|ART)\b"
AS_UTC: Final = "without a zone are read as UTC"  # which a remark says of times
AT_MIDNIGHT: Final = "holds days alone: records are at midnight"  # which a remark says of a field
SIZED: Final = "by their size"  # which a remark says of units of numbers
UNTIMED: Final = "are records without a time in"  # which a remark says of a field
_SAMPLE: Final = 200  # records that are looked at for a value that is no time, or for one that lacks a time
_NONE: Final = (UNDEFINED, None)


class LogEvidence:
    """Of one log.

    is_quick: nothing is read to see whether a field is called otherwise behind the first records: a warning on each
              new question would cost more than the answer
    """

    def __init__(self, manager: IndexManager, *, is_quick: bool = False) -> None:
        self._manager, self._is_quick = manager, is_quick
        self._sampled: dict[int, list[Any]] = {}
        self._unlike: Unlike | None = None

    def lack(self, path: Path) -> Lack:
        manager = self._manager

        def look() -> Lack:
            found = [index for index in manager.catalog.opened() if index.spec.paths == (path,) and index.segments]
            about = [index for index in found if index.kind != SET]  # a function's set says nothing of the field
            if not about:
                return None
            if not all(is_void(segment) for index in about for segment in index.segments):
                return ""
            return "a number or a time in" if all(index.kind == NUMBERS for index in about) else "the field"

        return manager.look(look)

    def has(self, leaf: Operation) -> bool:
        manager = self._manager
        if self._is_stale(leaf):
            return False
        return manager.ask(leaf, False, None, lambda end: manager.evaluator.has_match(leaf, end))

    def remarks(self, operation: Operation) -> list[str]:
        manager = self._manager
        return manager.look(lambda: remarks_of(manager, operation, False))

    def unordered(self) -> str | None:
        manager = self._manager

        def look() -> str | None:
            from jitdb.indexes.kinds.numbers import load_extremes

            spec = manager.core.column("timestamp")
            segments = manager.catalog.get(spec).segments
            if not segments or any(load_extremes(segment)[1].max() > -inf for segment in segments):
                return "" if segments else None
            return _no_time_at_all(manager.log, _names(spec.paths), ", so this is the order of arrival")

        return manager.look(look)

    def seen_in(self, path: Path) -> int:
        catalog = self._manager.catalog

        def look() -> int:
            bits = 0
            for index in catalog.opened():
                if index.spec.paths == (path,) and index.spec.form == "column":
                    bits |= _bits(catalog, index.spec)
            return bits

        return self._manager.look(look)

    def spellings(self, leaf: Operation, among: Callable[[Operation], Operation] | None = None) -> list[Operation]:
        from jitdb.engine.answering.spellings import held_inside, spelled_otherwise

        manager, bitmap = self._manager, leaf.bitmap

        def look() -> list[tuple[Operation, Operation]]:
            found = [index for index in manager.catalog.opened() if bitmap is not None and index.spec == bitmap[0]]
            found = [index for index in found if index.kind == BITMAPS]
            spelled = [(each, each) for index in found for each in spelled_otherwise(leaf, index.segments)]
            return [*spelled, *(pair for index in found for pair in held_inside(leaf, index.segments))]

        return [other for known, other in manager.look(look) if self.has(known if among is None else among(known))]

    def values(self, path: Path) -> list[Any]:
        from jitdb.engine.answering.spellings import few_values

        catalog, spec = self._manager.catalog, values_spec(path)

        def look() -> list[Any]:
            found = (index for index in catalog.opened() if index.spec == spec and index.kind == DICTIONARY)
            return [value for index in found for value in few_values(index.segments)]

        return self._manager.look(look)

    def elsewhere(self, operation: Operation, paths: Sequence[Path]) -> Elsewhere:
        from jitdb.engine.hinting.dialects import called_in, is_called_so
        from jitdb.engine.hinting.knowledge import SAMPLE
        from jitdb.engine.roles import first_of, has_other_names

        asked = [path for path in dict.fromkeys(paths) if is_called_so(path) or not (self._is_quick or ANY in path)]
        first = first_of(self._manager.log) if asked else []
        found = called_in(asked, first)
        for path in () if self._is_quick else asked:  # it may be renamed behind the first records
            if path not in found:
                lacking = self._lacking(path)
                if (lacking is None and is_called_so(path)) or (lacking and not has_other_names(path)):
                    lacking = [*(lacking or ()), *self.sample(SAMPLE)]
                found |= called_in([path], [*first, *lacking] if lacking else [])
        return {path: {found[path]: []} for path in asked if path in found}

    def _lacking(self, path: Path) -> list[Any] | None:
        """A few records that lack the field, or have no level in it, which an index tells, and the last record; None
        where no index tells it.
        """
        from jitdb.operators.nodes.levels import CompareLevel
        from jitdb.operators.nodes.operation import Not

        manager = self._manager

        def look() -> list[int] | None:
            about = (index for index in manager.catalog.opened() if index.spec.paths == (path,))
            told = (each.segments for each in about if not each.spec.is_owned and tells_lacking(each.segments))
            segments = next(told, None)
            return None if segments is None else some_lacking(segments, SOME)

        if (seqs := manager.look(look)) is not None:
            return self._records(seqs)
        unknown = Not(CompareLevel(path, "gte", "trace"))
        return None if self._is_stale(unknown) else self._some_of(unknown)

    def _is_stale(self, operation: Operation) -> bool:
        """Whether only a scan could tell where it is true."""
        manager = self._manager
        return manager.look(lambda: manager.plan(operation, False).stale(manager.log.durable_end))

    def _some_of(self, operation: Operation) -> list[Any]:
        """The first and the last few records that it is true of."""
        from jitdb.indexes.kinds.roaring import members_of

        manager = self._manager

        def look(end: int) -> list[int]:
            seqs = members_of(manager.evaluator.matches(operation, end))
            return [*seqs[:SOME].tolist(), *seqs[SOME:][-SOME:].tolist()]

        return self._records(manager.ask(operation, False, None, look))

    def _records(self, seqs: Sequence[int]) -> list[Any]:
        import numpy as np

        from jitdb.operators.nodes.operation import EVERYTHING

        manager, wanted = self._manager, np.array(seqs, np.uint32)
        places = manager.ask(EVERYTHING, False, None, lambda _: manager.records.offsets_of(wanted))
        return [manager.log.codec.decode(each) for each in manager.log.get_many_raw(places) if each]

    def unleveled(self, operation: Operation) -> list[str]:
        return []

    def numbered(self, operation: Operation, path: Path) -> list[str]:
        return []

    def unlike(self, operation: Operation, path: Path) -> Iterator[Unlike]:
        from jitdb.engine.hinting.knowledge import SAMPLE, Unlike
        from jitdb.log.lines.framing import LineFraming
        from jitdb.log.lines.unlike import has_own, unlike_in

        log = self._manager.log
        if not isinstance(log.framing, LineFraming) or log.framing.row is None or not has_own(log.framing.row, path[0]):
            return
        if self._unlike is None:
            lines, records = unlike_in(log, log.framing, SAMPLE)
            self._unlike = Unlike(log.framing.row.title, lines, list(map(log.codec.decode, records)))
        yield self._unlike

    def asked(self, operation: Operation, count: int) -> list[Any]:
        return self.sample(count)

    @property
    def convert(self) -> str:
        from jitdb.log.lines.detection import converted

        return converted(self._manager.log.path)

    def sample(self, count: int) -> list[Any]:
        from jitdb.log.reading.sampling import sample

        if count not in self._sampled:  # the notes on one answer look at it again and again
            self._sampled[count] = list(sample(self._manager.log, count))
        return self._sampled[count]


# --- how values were read --------------------------------------------------------------------------------------------

_UNITS: Final = {
    seen.SECONDS: "seconds", seen.MILLISECONDS: "milliseconds", seen.MICROSECONDS: "microseconds",
    seen.NANOSECONDS: "nanoseconds",
}  # fmt: skip


def remarks_of(manager: IndexManager, operation: Operation, ordered: bool, is_full: bool = True) -> list[str]:
    """A line for each remark on the columns that answer the question, as far as they are built.

    is_full: False: only remarks on what may make the answer unexpected
    """
    core = manager.core
    found = ((leaf.need(core), leaf.compared) for leaf in operation.leaves())
    ranges = [(need.spec, compared[1]) for need, compared in found if need is not None and compared is not None]
    specs = dict.fromkeys((spec for spec, _ in ranges), False) | {spec: True for spec, of_times in ranges if of_times}
    if ordered:
        specs.setdefault(core.column("timestamp"), False)
    lines = (_of_column(manager, spec, as_time, is_full) for spec, as_time in specs.items())
    return list(dict.fromkeys(chain.from_iterable(lines)))  # a range of any element asks two columns of one field


def _names(paths: Iterable[Path]) -> str:
    """Fields, in words."""
    return " or ".join(f"`{format_path(path)}`" for path in paths)


def no_numbers(paths: Iterable[Path]) -> str:
    return f"some values of {_names(paths)} are no numbers: `<` and `>` leave these out"


def _bits(catalog: Catalog, spec: IndexSpec) -> int:
    bits = 0
    for segment in catalog.get(spec).segments:
        bits |= seen_by(segment)
    return bits


def _of_column(manager: IndexManager, spec: IndexSpec, as_time: bool, is_full: bool) -> Iterator[str]:
    """`as_time`: the field is compared with a time. The unit of numbers, and the zone of text, does not matter to the
    order among them.
    """
    name, bits = _names(spec.paths), _bits(manager.catalog, spec)
    if spec.form == "column":
        if bits & seen.OTHERS:
            yield no_numbers(spec.paths)
        return
    if bits & seen.OTHERS:
        yield f"{_no_times(manager.log, spec, name)}: comparisons leave them out, and they sort first"
    if as_time and (clock := _clock_beside(manager.log, spec)):
        yield f"{name} {AT_MIDNIGHT}, as the time of day in {clock} is no part of it"
    if untimed := _on_untimed(manager, spec, name, as_time):
        yield untimed
    if manager.log.time_doubt:
        yield f"times of {name} {manager.log.time_doubt}"
    if bits & seen.TEXTS:
        yield from _on_zones(manager.log, spec, name, bits, as_time, is_full)
    units = [unit for bit, unit in _UNITS.items() if bits & bit]
    if unit_and_zone(spec.name)[0] == AUTO and units and (len(units) > 1 or (as_time and is_full)):
        yield f"numbers of {name} are read as {' and '.join(units)}, {SIZED}"


def _on_untimed(manager: IndexManager, spec: IndexSpec, name: str, as_time: bool) -> str:
    """The line about records that have nothing where the time is looked for; empty where none or all have nothing. To
    an order it matters only where they have a time elsewhere, which a few of them show.
    """
    from jitdb.engine.hinting.dialects import in_place_of
    from jitdb.indexes.kinds.numbers import load_extremes
    from jitdb.log.reading.sampling import sample

    segments = manager.catalog.get(spec).segments
    extremes = list(map(load_extremes, segments))
    lacking_one = next((each for each, (low, _) in zip(segments, extremes, strict=True) if low.min() == -inf), None)
    if lacking_one is None:
        return ""
    if all(high.max() == -inf for _, high in extremes):
        is_found = manager.core.named is None and spec == manager.core.column("timestamp")
        return _no_time_at_all(manager.log, name) if as_time and is_found else ""
    if not as_time and in_place_of(spec.paths[0], _few_untimed(manager, spec, lacking_one)) is None:
        return ""
    records = list(sample(manager.log, _SAMPLE))
    lacking = [record for record in records if _has_nothing(record, spec.paths)]
    looked_at = f", {len(lacking):,} of {len(records):,} looked at" if lacking else ""
    lacking = lacking or _few_untimed(manager, spec, lacking_one)  # the sample is of other places
    if not lacking:  # each has a value that is no time
        return ""
    other = in_place_of(spec.paths[0], lacking)
    sparse = manager.log.sparse_time
    instead = f"; these have one in `{format_path(other)}`" if other is not None else ""
    instead += f"; {sparse[1]}" if sparse is not None and sparse[0] in spec.paths else ""
    return f"{'left out' if as_time else 'not placed by time'} {UNTIMED} {name}{looked_at}{instead}"


def _no_time_at_all(log: LogSource, name: str, result: str = "") -> str:
    """That no record has a time where it was looked for, with a field that holds times by another name.

    result: what that means for the answer
    """
    from jitdb.log.reading.sampling import sample
    from jitdb.operators.summaries.fields import fields_in

    known = fields_in(sample(log, _SAMPLE))
    texts = ((path, value) for path, value in known.items() if isinstance(value, str) and ANY not in path)
    held = next((format_path(path) for path, value in texts if time_of(value) is not None), None)
    meant = "" if held is None else f"; `{held}` holds times: pass timestamp={held!r}"
    return f"no record has a time under {name}{result}{meant}" if known else ""


def _few_untimed(manager: IndexManager, spec: IndexSpec, segment: Segment) -> list[Any]:
    """The first few records of the segment that the column has no time of, without those that have a value there."""
    from jitdb.indexes.kinds.numbers import load_numbers

    hi, _ = load_numbers(segment)
    seqs = segment.first_seq + (hi != hi).nonzero()[0][:SOME].astype("uint32")
    raw = manager.log.get_many_raw(manager.records.offsets_of(seqs))
    found = (manager.log.codec.decode(each) for each in raw if each)
    return [record for record in found if _has_nothing(record, spec.paths)]


def _has_nothing(record: Any, paths: Iterable[Path]) -> bool:
    return all(value_at(record, path) in _NONE for path in paths)


def _on_zones(log: LogSource, spec: IndexSpec, name: str, bits: int, as_time: bool, is_full: bool) -> Iterator[str]:
    """How zones by their names are read. Where one is not, the order is wrong, too."""
    zone, is_read = _zone_behind(log, spec.paths)
    if is_read and as_time and (other := ZONES_ELSEWHERE.get(zone)):
        yield f"{zone} behind times of {name} is read as {_offset(zone)}, not as in {other}"
    not_read = "" if is_read else zone
    said = unit_and_zone(spec.name)[1]
    if bits & seen.ZONELESS and said:
        if as_time and is_full:
            yield f"times of {name} without a zone are read as those of {said}"
    elif bits & seen.ZONELESS and (as_time or not_read):
        behind = f", though {not_read} stands behind them" if not_read else ""
        yield f"times of {name} {AS_UTC}{behind}"


def _offset(zone: str) -> str:
    """How far a zone is ahead of UTC, as times have it."""
    return f"{'-' if ZONES[zone] < 0 else '+'}{as_text(abs(ZONES[zone]) * 10**9)[11:16]}"


def _clock_beside(log: LogSource, spec: IndexSpec) -> str:
    """The field of the time of day beside one that holds days alone, by the first records; empty where none is."""
    from jitdb.engine.roles import first_of

    for path in spec.paths if len(spec.paths) == 1 else ():
        keys = dict.fromkeys(key for record in first_of(log) for key in record if str(key).lower() == "time")
        beside = (*path[:-1], "time") if len(path) > 1 else (next(iter(keys), "time"),)
        pairs = [(value_at(record, path), value_at(record, beside)) for record in first_of(log)]
        if pairs and path != beside and all(_spells(_DAY, day) and _spells(_CLOCK, clock) for day, clock in pairs):
            return f"`{format_path(beside)}`"
    return ""


def _zone_behind(log: LogSource, paths: Sequence[Path]) -> tuple[str, bool]:
    """The name of a zone behind most times of these fields, in the first records, or of another one than UTC beside
    them; empty where none is. And whether times are read by it.
    """
    from jitdb.engine.roles import first_of

    records = first_of(log)
    beside = [zone[0] for record in records if (zone := re.match(_ZONE, str(record.get("text", ""))))]
    beside = beside or [zone for record in records if (zone := record.get("timezone", "UTC")) not in _OF_UTC]
    values = (value_at(record, path) for record in records for path in paths)
    found = beside or [name for value in values if isinstance(value, str) and (name := zone_behind(value))]
    most = found[0] if 2 * len(found) > len(records) else ""
    return most, not beside and most in ZONES


def _spells(pattern: str, value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _no_times(log: LogSource, spec: IndexSpec, name: str) -> str:
    """That values are no times, with the first such value of a sample."""
    from jitdb.log.reading.sampling import sample

    unit = AUTO if spec.name == NUMBER else spec.name
    values = (value for record in sample(log, _SAMPLE) for path in spec.paths for value in values_at(record, path))
    other = next((value for value in values if value is not None and time_of(value, unit) is None), None)
    which = f"some values of {name}" if other is None else f"values of {name} such as {shown(other)}"
    is_day_first = isinstance(other, str) and re.match(_DAY_FIRST, other) is not None
    return f"{which} are no times" + (", as with AM or PM the month is read as first" if is_day_first else "")
