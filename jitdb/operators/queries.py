"""A query: a question with methods. Each gives another query, or asks.

posts = db.query(field("value.content.type") == "post").descending()
posts.count(), posts.page(10), [post for post in posts]
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from jitdb.common.arguments import whole_number
from jitdb.common.immutable import Immutable
from jitdb.common.words import shown
from jitdb.display.shown import Shown
from jitdb.errors import QueryError, library
from jitdb.operators.nodes.compare import Bound, declared_time
from jitdb.operators.nodes.field_ref import PathLike
from jitdb.operators.nodes.instants import instant_at
from jitdb.operators.nodes.operation import And, Everything, Operation, combine
from jitdb.operators.nodes.selection import SelectField, SortField, selection, sort_keys
from jitdb.operators.question import Context, Dedup, Explained, Live, Page, Question
from jitdb.operators.running.aio import Aio
from jitdb.operators.running.answer import answer, answer_async, answerable
from jitdb.operators.running.iterate import AsyncResults, Results
from jitdb.operators.summaries.asking import Summaries
from jitdb.operators.summaries.groups import By, paths_by
from jitdb.operators.tabular import Tabular, arrays_of, pandas_of
from jitdb.operators.text.taken import operation_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.display.parts import Display
    from jitdb.operators.passages import Passages
    from jitdb.operators.summaries.summary import Summary
    from jitdb.operators.tabular import Arrow

#: Fields, or a pyarrow.Schema; None: which they are is told by the records.
Columns: TypeAlias = "str | Sequence[SelectField] | Any | None"


class Query(Immutable, Tabular, Summaries, Shown):
    """A question that is not asked yet. Go through it (`for`, `async for`), `await` it, or call one of its methods.

    where, since, until, descending, sort_by, sort_by_arrival, dedup, select, start_from, batch, as_offsets,
    as_raw, as_of, debug: another query, which says that too
    count, all, offsets, first, page, pages, context, live, explain: ask
    to_arrow, to_pandas, to_polars, to_numpy, to_record_batches: ask for columns
    value_counts, group_count, count_distinct, share, histogram, timeline, stats, stats_by, patterns, facets,
        difference: ask of all records together (Summaries)
    aio: all of these for async programs, to be awaited
    """

    __slots__ = __match_args__ = ("question",)

    question: Question

    def where(self, *operations: str | Operation | None) -> Query:
        """Only the records of which all `operations` are true: `where("status >= 500")`, or `field("status") >= 500`.
        None, or nothing, leaves all records in.
        """
        given = [operation_of(each, "where() takes operations") for each in operations if each is not None]
        if not given:
            return self
        if not isinstance(self.question.operation, Everything):
            given.insert(0, self.question.operation)
        return self._with(operation=given[0] if len(given) == 1 else combine(And, tuple(given)))

    def since(self, time: Bound) -> Query:
        """Only the records whose declared time is this one or later: text (RFC 3339; or as --since takes it, "2h" ago,
        "14:00" today), a datetime, or a number.
        """
        return self.where(declared_time >= _instant(time))

    def until(self, time: Bound) -> Query:
        """Only the records whose declared time is before this one."""
        return self.where(declared_time < _instant(time))

    def descending(self) -> Query:
        """Newest first; without it, oldest first. Records sorted by fields come in reverse."""
        return self._with(descending=True)

    def sort_by(self, *fields: SortField) -> Query:
        """Sort by these fields, the first of them first: `"size"`, or `"-size"` for the greatest first. Among equals
        the older record comes first.

        Numbers come before times as text, then other text, false, true, bytes, and all else. Records that have nothing
        there, null or NaN come last in either direction.
        """
        return self._with(sort_by=sort_keys("sort_by()", fields))

    def dedup(self, by: By, last: bool = False) -> Query:
        """Only the first record of each value of a field, or of each group of values of several in a list, in the order
        that this query has without descending(); last: the last one. Records without one of the fields are left out.

        db.query().dedup("user", last=True), db.query().sort_by("-ms").dedup("url")
        """
        if not isinstance(last, bool):
            raise QueryError(f"last is True, for the last record of each value, or False, not {shown(last)}")
        paths = paths_by("dedup", by)
        if not paths:
            raise QueryError("dedup() takes the field whose values shall differ", remedy="say dedup('user')")
        return self._with(dedup=Dedup(paths, last))

    def sort_by_arrival(self) -> Query:
        """In the order of the log, not by the time that records declare."""
        return self._with(sort_by="arrival")

    def select(self, *fields: SelectField) -> Query:
        """Give a dict of these fields instead of each record, such as "size" or "user.name"; the rest is not decoded.

        A field that a record lacks is not in its dict. Whole numbers are integers.
        """
        return self._with(select=selection("select()", fields))

    def start_from(self, skip: int) -> Query:
        """Leave out the first `skip` records of the answer."""
        return self._with(start_from=whole_number("start_from(n) takes the number of records to skip", skip))

    def paginate(self, size: int) -> Query:
        """Give lists of `size` records, or a Page where the answer comes at once."""
        return self._with(limit=_page_size(size))

    def batch(self, size: int) -> Query:
        """Read `size` records at a time, and give them one by one."""
        return self._with(batch=whole_number("batch(n) takes the number of records to read at a time", size, 1))

    def as_offsets(self) -> Query:
        """Give the offsets of the records instead of the records."""
        return self._with(as_offsets=True)

    def as_raw(self) -> Query:
        """Give the text of each record as it stands in its file (bytes, all its lines) instead of the record.

        Raises LogError for logs whose records are no text.
        """
        return self._with(as_raw=True)

    def as_of(self, place: int | str) -> Query:
        """Ask the log as it was when it ended with the record at this offset (-1: empty), or at this cursor of a live
        query. What was deleted since is left out.
        """
        if not (type(place) is str and place):
            taken = "an offset, as log.append() and log.since give it, or the cursor of a live query"
            place = whole_number(f"as_of(place) takes {taken}", place, -1)
        return self._with(as_of=place)

    def debug(self) -> Query:
        """Log the query, and the size and time of its answers, to the logger `jitdb` at level DEBUG."""
        return self._with(debugging=True)

    def live(self, old: bool = False, after: str | None = None) -> Query:
        """Never end: give new records as they come, in the order of the log. Only for loops.

        old:   begin with the records that are there
        after: begin behind this `cursor` of such a loop; `old` then means nothing
        """
        if not isinstance(old, bool):
            raise QueryError(f"old is True, for the records that are there too, or False, not {shown(old)}")
        if after is not None and (not isinstance(after, str) or not after):
            raise QueryError(f"after is a cursor, the text that an iterator of a live query gives, not {shown(after)}")
        return self._with(live=Live(old, after))

    def count(self) -> int:
        """How many records there are after the first `start_from`; never negative."""
        return int(self._answer("count()", counting=True, batch=None))

    def all(self) -> list[Any]:
        """All records, or their offsets."""
        return list(self._answer("all()"))

    def offsets(self) -> list[int]:
        """The offsets of all records."""
        return list(self._answer("offsets()", as_offsets=True))

    def first(self) -> Any | None:
        """The first record, or its offset; None where there is none."""
        return next(iter(self.page(1).data), None)

    def page(self, size: int) -> Page:
        """At most `size` records, and where they stand in the whole answer."""
        page: Page = self._answer("page()", limit=_page_size(size), batch=None)
        return page

    def pages(self, size: int) -> Iterator[Page]:
        """The answer as it stands when the first page is asked for, page by page."""
        question = answerable(self.question.changed(limit=_page_size(size), batch=None, counting=False), "pages()")
        return iter(question.database.pages(question).read, None)

    def context(
        self,
        before: int = 0,
        after: int = 0,
        *,
        same: PathLike | None = None,
        among: str | Operation | None = None,
        limit: int | None = None,
    ) -> Passages:
        """The records with so many before and after each, in passages: what overlaps or touches is one. For a loop, or
        `async for`.

        same:  only records that have in this field what the answer has
        among: only records of which this is true
        limit: of answers, which are those that are marked (Seen.is_match)
        """
        size = None if limit is None else _page_size(limit)
        around = Context.around(before, after, same, among)
        question = answerable(self.question.changed(context=around, limit=size, batch=None).checked(), "context()")
        return question.database.context(question)

    def set(self) -> Any:
        """The records as a value that stands for them (operators/sets.py): combined with others by `&`, `|`, `-`, `^`,
        kept by a name in `db.sets`, and asked about again, as an operation. No record is read.
        """
        question = answerable(self.question, "set()")
        if question.is_one or question.context is not None:
            raise QueryError("a set is one of records", remedy="leave count() and context() out")
        return question.database.record_set(question)

    # --- columns -----------------------------------------------------------------------------------------------------

    def to_arrow(self, columns: Columns = None, *, limit: int | None = None, times: bool = True) -> Any:
        """The records as a pyarrow.Table; each field is found where it stands, and nothing else is decoded.

        columns: fields, such as "size" or "user.name", or a pyarrow.Schema of them, which says their types too; without
                 any, what was selected, else all fields that the records have, which are gone through once more for it
        limit:   at most so many records
        times:   whether fields whose values all are times become timestamps (ns, UTC)

        Without a schema the values tell the types: whole numbers int64, else double, text string; of several kinds, or
        maps, all of them become JSON text. Raises QueryError where a value is none of its schema's.
        """
        return self._arrow(columns, limit, times).table()

    def to_pandas(self, columns: Columns = None, *, limit: int | None = None, times: bool = True) -> Any:
        """The same as a pandas.DataFrame. Whole numbers stay whole: where some are missing, as pandas' Int64."""
        return pandas_of(self.to_arrow(columns, limit=limit, times=times))

    def to_polars(self, columns: Columns = None, *, limit: int | None = None, times: bool = True) -> Any:
        """The same as a polars.DataFrame."""
        polars = library("polars")
        return polars.from_arrow(self.to_arrow(columns, limit=limit, times=times))

    def to_record_batches(self, columns: Columns = None, *, limit: int | None = None, times: bool = True) -> Any:
        """The same as a pyarrow.RecordBatchReader, some thousand records at a time: for more than fits into memory.

        What is larger than 64 MB is gone through twice, for the types. It is as of the moment of the call.
        """
        return self._arrow(columns, limit, times).reader()

    def to_numpy(
        self, *fields: SelectField, seqs: bool = False, offsets: bool = False, limit: int | None = None
    ) -> dict[str, NDArray[Any]]:
        """Numbers and times as arrays, by the names of their fields; NaN or NaT where a record has none.

        seqs, offsets: also those of the records, under these names; of them alone no record is read

        Raises QueryError for a field that holds other things, or whole numbers that no double is beside nothing.
        """
        places = [name for name, wanted in (("seqs", seqs), ("offsets", offsets)) if wanted]
        if not fields and not places:
            raise QueryError("to_numpy() takes the fields that are wanted: none was given")
        query = Query(self.question.changed(select=() if not fields else selection("to_numpy()", fields)))
        taken = [name for name, _ in query.question.select or () if name in places]
        if taken:
            raise QueryError(f"a field is called {taken[0]}, too", remedy="ask for one after the other")
        return dict(arrays_of(query._arrow(limit=limit, places=places).table()))

    def _arrow(
        self, columns: Columns = None, limit: int | None = None, times: bool = True, places: Sequence[str] = ()
    ) -> Arrow:
        question, schema = self._tabled(columns, limit)
        return question.database.arrow(question, schema=schema, times=times, places=places)

    def _tabled(self, columns: Columns, limit: int | None) -> tuple[Question, Any]:
        """The question for these columns, and the schema if they are one."""
        question = answerable(self.question, "a table")
        if question.is_one or question.as_offsets or question.as_raw or question.context is not None:
            told = "leave count(), as_offsets(), as_raw() and context() out"
            raise QueryError("a table is made of records", remedy=told)
        if limit is not None:
            question = question.changed(limit=_page_size(limit), batch=None)
        if columns is None:
            return question, None
        schema: Any = columns if hasattr(columns, "pandas_metadata") else None
        named: Any = columns if schema is None else schema.names
        select = selection("columns", [named] if isinstance(named, str) else named)
        if schema is not None and len(select) != len(schema):
            raise QueryError("the schema has two columns of one name")
        return question.changed(select=select), schema

    def explain(self) -> Explained:
        """How the database would answer: which indexes, which of them are up to date."""
        return self.question.database.explain(self.question)

    @property
    def aio(self) -> Aio:
        """The same query for async programs: `await query.aio.count()`, and so on for every word."""
        return Aio(self)

    def __iter__(self) -> Results:
        """Go through the records; pages are read when they are asked for."""
        return Results(self.question)

    def __aiter__(self) -> AsyncResults:
        return AsyncResults(self.question)

    def __await__(self) -> Generator[Any, None, Any]:
        return answer_async(answerable(self.question, "await")).__await__()

    def __repr__(self) -> str:
        return repr(self.question)

    def _display(self) -> Display:
        from jitdb.display.parts import Code, Display

        look = getattr(self.question.db, "first_look", None)
        return Display("Query", "not asked yet", [Code(repr(self))]) if look is None else look(self.question)

    def _not_asked(self, *_: object) -> NoReturn:
        raise QueryError("a query is not its answer", remedy="ask it with .count(), .page(n), .all() or in a loop")

    __int__ = __float__ = __getitem__ = _not_asked

    def _with(self, **settings: Any) -> Query:
        return type(self)(self.question.changed(**settings).checked())

    def _summarized(self, asked: Summary[Any], where: str | Operation | None) -> Any:
        return self.where(where)._answer(f"{asked.name}()", batch=None, summary=asked)

    def _answer(self, method: str, **settings: Any) -> Any:
        question = self.question.changed(**{"limit": None, "counting": False, "summary": None, **settings}).checked()
        return answer(answerable(question, method))


def _instant(time: Bound) -> Bound:
    return instant_at(time) if isinstance(time, str) else time


def _page_size(size: int) -> int:
    return whole_number("paginate(n) takes the number of records in a page", size, 1)
