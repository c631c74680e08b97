"""Summaries of one log: bring the indexes up to date that a summary needs, and count under the lock.

The values of a field are counted from the bitmaps that questions left behind, else from its dictionary. Which of them
serves may change while indexes are built; then it is looked at again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np
from pyroaring import BitMap

from jitdb.common.paths import Path, format_path
from jitdb.common.times import NUMBER
from jitdb.common.values import number_of, split_number, value_at
from jitdb.engine.answering.apart import are_many, ranked_apart
from jitdb.engine.answering.coded import (
    BitmapCodes,
    Coded,
    ConstantCodes,
    ranked_groups,
    ranked_values,
)
from jitdb.engine.answering.coded_column import CodedColumn
from jitdb.engine.answering.marking import marked
from jitdb.engine.answering.members import Members
from jitdb.engine.answering.placing import leading, places_by_code, placing, values_in
from jitdb.engine.answering.spread import cells_in, numbers_in
from jitdb.engine.answering.stepping import counted_in_runs, runs_of_steps
from jitdb.engine.plan import serving_spec
from jitdb.errors import QueryError
from jitdb.indexes.kinds.columns import ALL_WHOLE, HAS_RESTS, number_range
from jitdb.indexes.kinds.numbers import load_numbers
from jitdb.indexes.spec import IndexSpec, Requirement
from jitdb.operators.nodes.operation import Or, combine
from jitdb.operators.summaries.arithmetic.calendar import Window
from jitdb.operators.summaries.arithmetic.cells import Cells, Taken, cells_of_one
from jitdb.operators.summaries.arithmetic.numbers import Numbers, joined
from jitdb.operators.summaries.summary import DECLARED_TIME, Opposed, Ranked, Summary, ValuesIn, View

if TYPE_CHECKING:
    import threading

    from numpy.typing import NDArray

    from jitdb.engine.manager import IndexManager
    from jitdb.engine.plan import Needs
    from jitdb.indexes.segment import Segment
    from jitdb.log.source import LogSource
    from jitdb.operators.question import Question

T = TypeVar("T")

MOST_OF_SEVERAL: Final = 1 << 21  # values in each of several logs, all of which are in memory: a gigabyte, about


class LogView(NamedTuple):
    """The View (operators/summaries/summary.py) of one log. Guarded by the engine's lock; raises IndexDamaged.

    members:  the records that are asked about
    known:    fields that all records have, with their values: those of a log's path
    is_whole: this log is all that is asked
    meeting:  the records that meet the summary's condition, among others, too
    coded_ones: fields whose values were asked for already
    """

    manager: IndexManager
    members: Members
    known: Mapping[Any, Any]  # by the first steps of their paths
    is_whole: bool
    meeting: BitMap
    coded_ones: dict[Path, Coded]

    @property
    def held(self) -> LogView:
        return self._replace(members=Members(self.matches & self.meeting))

    @property
    def matches(self) -> BitMap:
        return self.members.records

    @property
    def beside(self) -> LogView:
        return self._replace(members=Members(self.meeting))

    def values(self, path: Path, most: int) -> Sequence[bytes] | None:
        if self._many(path) is not None:
            return None
        coded = self.coded(path)
        return coded.keys if len(coded) <= most + 1 else None

    def ranked(self, paths: Sequence[Path], limit: int | None) -> Ranked:
        many = self._many(paths[0]) if limit is not None and len(paths) == 1 else None
        if many is not None and limit is not None:
            found = ranked_apart(many, self.members, limit)
            if self.is_whole and found is not None:
                return found
            if found is not None and found.distinct > MOST_OF_SEVERAL:
                raise _too_many(paths[0], found.distinct, self.manager.log)
        limit = limit if self.is_whole else None
        columns = list(map(self.coded, paths))
        if len(columns) == 1:
            (coded,) = columns
            return ranked_values(coded, coded.counts(self.members), len(self.matches), limit)
        return ranked_groups(columns, [column.codes(self.members) for column in columns], limit)

    def leading(self, path: Path, column: Path, weighed_by: str, limit: int, ascending: bool) -> Ranked | None:
        coded = self.coded(path)
        if not isinstance(coded, CodedColumn):
            return None
        parts = (part._kept(path, coded, column, self.members.are_few) for part in self.parts())
        return leading(coded, parts, weighed_by, limit, ascending)

    def _kept(self, path: Path, coded: Coded, column: Path, keeps: bool) -> tuple[NDArray[np.uint32], Numbers]:
        """The codes of a field of each record, and the numbers of a column, which are kept for the next pass."""
        codes, numbers = coded.codes(self.members), joined(list(self.numbers(column)))
        if keeps:
            self.members.kept |= {("codes", path): codes, ("numbers", column): numbers}
        return codes, numbers

    def placing(self, paths: Sequence[Path], values: Ranked) -> Callable[[View], NDArray[np.int64]]:
        if len(paths) != 1:
            found = placing(list(map(self.coded, paths)), values)
            return lambda part: found(part.members)  # type: ignore[attr-defined]  # a part of this view

        column = self.coded(paths[0])
        places = places_by_code(column, values)

        def of(part: View) -> NDArray[np.int64]:
            assert isinstance(part, LogView)
            codes = part.members.kept.get(("codes", paths[0]))
            return column.mapped(part.members, places) if codes is None else places[codes]

        return of

    def parts(self) -> Iterator[LogView]:
        return (self._replace(members=part) for part in self.members.parts())

    def in_steps(
        self,
        paths: Sequence[Path],
        values: Ranked,
        width: int,
        shared: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.int64]],
    ) -> tuple[list[tuple[int, NDArray[np.int64]]], LogView]:
        if len(paths) > 1:
            return [], self
        runs = runs_of_steps(self.manager.catalog.get(self.manager.core.column(DECLARED_TIME)).segments, shared)
        coded = self.coded(paths[0]) if paths else None
        places = None if coded is None else places_by_code(coded, values)
        found = counted_in_runs(runs, self.members, coded, places, width)
        return found, self._replace(members=Members(self.matches - runs.records))

    def values_in(self, path: Path, groups_of: Callable[[View], NDArray[np.int64]]) -> ValuesIn:
        parts = ((part.members, groups_of(part)) for part in self.parts())
        found = values_in(self.coded(path), parts, has_keys=not self.is_whole)
        if found.keys is not None and len(found.keys) > MOST_OF_SEVERAL:
            raise _too_many(path, len(found.keys), self.manager.log)
        return found

    def _many(self, path: Path) -> Sequence[Segment] | None:
        """The values of the field, where too many of them have no number yet to number them all at once."""
        if path[0] in self.known:
            return None
        spec = serving_spec(self.manager.catalog, path)
        index = self.manager.catalog.get(spec)
        is_here = spec.form == "dictionary" and are_many(self.manager.coded.unnumbered(index))
        return index.segments if is_here else None

    def coded(self, path: Path) -> Coded:
        """The field's values as numbers."""
        if path not in self.coded_ones:
            self.coded_ones[path] = self._coded(path)
        return self.coded_ones[path]

    def _coded(self, path: Path) -> Coded:
        if path[0] in self.known:
            return ConstantCodes(value_at(dict(self.known), path))
        catalog = self.manager.catalog
        spec = serving_spec(catalog, path)
        index = catalog.get(spec)
        return (
            self.manager.coded.get(index) if spec.form == "dictionary" else BitmapCodes(index.segments, spec.is_owned)
        )

    def numbers(self, column: str | Path) -> Iterator[Numbers]:
        kept = self.members.kept.get(("numbers", column))
        if kept is not None:
            yield kept
        elif column[0] not in self.known or column == DECLARED_TIME:
            index = self.manager.catalog.get(self.manager.core.column(column))
            for segment, places in self.members.places_in(index.segments):
                hi, lo = load_numbers(segment)
                yield Numbers(hi[places], None if lo is None else lo[places])
        else:
            yield Numbers(np.full(len(self.matches), self._known_number(column)), None)

    def extent(self, path: Path) -> tuple[int, int] | None:
        if path[0] in self.known:
            return None
        ranges = [each for segment in self._columns(path) if (each := number_range(segment))[0] <= each[1]]
        low, high = min((low for low, *_ in ranges), default=1.0), max((high for _, high, _ in ranges), default=0.0)
        are_whole = all(flags & ALL_WHOLE and not flags & HAS_RESTS for *_, flags in ranges)
        return (int(low), int(high)) if are_whole and low <= high and max(-low, high) < 1 << 53 else None

    def cells(self, path: Path) -> Cells:
        if path[0] in self.known:
            return cells_of_one(self._known_number(path), len(self.matches))
        return cells_in(self._columns(path), self.members)

    def numbers_in(self, path: Path, cells: Cells) -> list[Taken]:
        if path[0] in self.known:
            number = self._known_number(path)
            return [Taken(Numbers(np.array([number]), None), np.array([len(self.matches)]))] if number == number else []
        return numbers_in(self._columns(path), self.members, cells)

    def opposed(self, path: Path, held: LogView, least: int) -> Opposed:
        coded = self.coded(path)
        here, every = coded.counts(held.members), coded.counts(self.members)
        codes = np.flatnonzero(here >= least if least else every)
        keys = [coded.key(code) for code in codes.tolist()]
        return Opposed(keys, here[codes], (every - here)[codes], int(np.count_nonzero(here[1:])))

    def marked(self, findings: Sequence[tuple[Path, Any]]) -> NDArray[np.int64]:
        def numbers(members: Members, path: Path) -> Iterator[Numbers]:
            return self._replace(members=members).numbers(path)

        return marked(findings, self.matches, self.members.parts(), self.meeting, self.coded, numbers)

    def _columns(self, path: Path) -> Sequence[Segment]:
        return self.manager.catalog.get(self.manager.core.column(path)).segments

    def _known_number(self, column: str | Path) -> float:
        value = number_of(value_at(dict(self.known), tuple(column)))
        return math.nan if value is None else split_number(value)[0]


def _too_many(path: Path, distinct: int, log: LogSource) -> QueryError:
    return QueryError(
        f"`{format_path(path)}` has {distinct:,} values in this log, and of several logs at most "
        f"{MOST_OF_SEVERAL:,} of each are counted together",
        path=log.path,
        remedy="ask one log at a time, or count fewer records: add a condition, or a time",
    )


def summarized(manager: IndexManager, question: Question, cancel: threading.Event | None) -> Any:
    """The answer of one log, as of one moment. Raises QueryError, QueryCancelled, LogError."""
    summary = question.summary
    assert summary is not None

    window = manager.core.times.window(question.operation) if summary.has_steps else Window()

    def work(view: LogView) -> tuple[Any, Any]:
        settled = summary.settled([summary.survey(view)] if summary.surveys else [], window)
        return summary.count(view, settled), settled

    counts, settled = viewed(manager, question, summary, work, {}, True, cancel)
    return summary.result([counts], settled)  # without the lock, for there may be a row for each of many values


def viewed(
    manager: IndexManager,
    question: Question,
    summary: Summary[Any],
    work: Callable[[LogView], T],
    known: Mapping[str, Any],
    is_whole: bool,
    cancel: threading.Event | None,
) -> T:
    """The result of `work` on the matching records, with all indexes of the summary up to date."""
    paths = [path for path in summary.values_of if path[0] not in known]
    condition = None if summary.condition is None else summary.condition.narrowed(known) if known else summary.condition
    asked = question.operation if condition is None else combine(Or, (question.operation, condition))

    def serving() -> list[IndexSpec]:
        return [serving_spec(manager.catalog, path) for path in paths]

    def needed() -> list[IndexSpec]:
        columns, core = summary.columns, manager.core
        if DECLARED_TIME in columns and core.unit == NUMBER:
            raise QueryError("the declared time is a number here, of which there is no timeline", remedy="histogram()")
        return [core.column(column) for column in columns if column == DECLARED_TIME or column[0] not in known]

    def look(end: int) -> tuple[T] | None:
        if numbers != needed() or chosen != serving():
            return None
        until = manager.records.horizon(question.as_of, end)
        matches = manager.evaluator.matches(question.operation, until)
        meeting = matches if condition is None else manager.evaluator.matches(condition, until)
        return (work(LogView(manager, Members(matches), known, is_whole, meeting, {})),)

    while True:
        chosen, numbers = manager.look(serving), needed()
        also: Needs = tuple(map(Requirement, (*chosen, *numbers)))
        found = manager.ask(asked, summary.sorted_by, cancel, look, also)
        if found is not None:
            return found[0]
