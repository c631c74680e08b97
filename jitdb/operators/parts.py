"""The parts of a query that say whom to ask, what, and in which order and portions the answer shall come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from jitdb.common.arguments import whole_number
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.describe import not_an_operation
from jitdb.operators.nodes.field_ref import PathLike, as_single_path
from jitdb.operators.nodes.operation import Operation, and_
from jitdb.operators.nodes.selection import SelectField, selection
from jitdb.operators.nodes.sorting import SortField, sort_keys
from jitdb.operators.question import Context, Database, Live, written
from jitdb.operators.summaries.histograms import HistogramAsked
from jitdb.operators.summaries.stats import StatsAsked, StatsByAsked
from jitdb.operators.summaries.summary import AUTO, BINS, QUANTILES, SERIES
from jitdb.operators.summaries.timelines import TimelineAsked
from jitdb.operators.summaries.value_counts import GroupsAsked, ValuesAsked


class Setting(NamedTuple):
    """One attribute of the question."""

    name: str
    value: Any

    def __repr__(self) -> str:
        return written(self.name, self.value)


def from_db(db: Database) -> Setting:
    """Ask this database.

    >>> from jitdb.operators import count, query, to_result
    >>> query(from_db(db), count(), to_result())
    5
    """
    if not hasattr(db, "paginate"):
        raise QueryError(
            f"from_db() takes an open database, as jitdb.open(path) gives it, not {shown(db)} ({type(db).__name__})"
        )
    return Setting("db", db)


def where(*operations: Operation | None) -> Setting:
    """Only the records of which all `operations` are true. Nothing, or None, leaves all records in.

    >>> from jitdb.operators import count, equal, from_db, query, to_result
    >>> query(from_db(db), where(equal("value.content.type", "post")), count(), to_result())
    3
    """
    for operation in operations:
        if operation is not None and not isinstance(operation, Operation):
            raise QueryError(f"where() takes operations, and {not_an_operation(operation)}")
    if len(operations) > 1:
        return Setting("operation", and_(*operations))
    return Setting("operation", operations[0] if operations else None)


def paginate(size: int) -> Setting:
    """Pages of `size` records: `to_result()` gives the first, the iterators a list for each.

    >>> from jitdb.operators import from_db, query, to_iter, to_result
    >>> page = query(from_db(db), paginate(2), to_result())
    >>> len(page.data), page.total, page.next_seq
    (2, 5, 2)
    >>> [len(records) for records in query(from_db(db), paginate(2), to_iter())]
    [2, 2, 1]
    """
    return Setting("limit", whole_number("paginate(n) takes the number of records in a page", size, 1))


def batch(size: int) -> Setting:
    """Read `size` records at a time, and let the iterators give them one by one.

    >>> from jitdb.operators import from_db, query, to_iter
    >>> sum(1 for record in query(from_db(db), batch(2), to_iter()))
    5
    """
    return Setting("batch", whole_number("batch(n) takes the number of records to read at a time", size, 1))


def start_from(skip: int) -> Setting:
    """Leave the first `skip` records of the answer out.

    >>> from jitdb.operators import count, from_db, query, to_result
    >>> query(from_db(db), start_from(3), count(), to_result())
    2
    """
    return Setting("start_from", whole_number("start_from(n) takes the number of records to skip", skip))


def descending() -> Setting:
    """Newest first. Without it, oldest first. Of records that are sorted by fields: the other way round.

    >>> from jitdb.operators import as_offsets, from_db, query, to_result
    >>> query(from_db(db), descending(), as_offsets(), to_result())
    [40, 30, 20, 10, 0]
    """
    return Setting("descending", True)


def sort_by_arrival() -> Setting:
    """In the order in which the records came into the log, not by the time they declare.

    >>> from jitdb.operators import from_db, query
    >>> query(descending(), sort_by_arrival())
    query(descending(), sort_by_arrival())
    """
    return Setting("sort_by", "arrival")


def sort_by(*fields: SortField) -> Setting:
    """By the values of these fields, the first of them first; `-` in front of a path, or of field(path): the greatest
    first. Of equal ones the older record comes first.

    Numbers come before times as text, these before other text, then false, true, bytes, and all else; records that
    have nothing there, null or NaN come last, either way round.

    >>> from jitdb.operators import as_offsets, from_db, query, to_result
    >>> query(from_db(db), sort_by("-value.content.text"), as_offsets(), to_result())
    [30, 0, 20, 10, 40]
    """
    return Setting("sort_by", sort_keys("sort_by()", fields))


def select(*fields: SelectField) -> Setting:
    """Of each record only these fields, in a dict by the names by which they are asked for; the rest is not decoded.

    A field that a record lacks is not in its dict. Numbers that are whole are integers.

    >>> from jitdb.operators import equal, from_db, query, to_result
    >>> query(from_db(db), where(equal("value.sequence", 1)), select("value.content.type", "timestamp"), to_result())
    [{'value.content.type': 'post', 'timestamp': 1}]
    """
    return Setting("select", selection("select()", fields))


def as_offsets() -> Setting:
    """The offsets of the records instead of the records.

    >>> from jitdb.operators import from_db, query, to_result
    >>> query(from_db(db), as_offsets(), to_result())
    [0, 10, 20, 30, 40]
    """
    return Setting("as_offsets", True)


def count() -> Setting:
    """How many records there are, instead of the records.

    >>> from jitdb.operators import from_db, query, to_result
    >>> query(from_db(db), count(), to_result())
    5
    """
    return Setting("counting", True)


def value_counts(path: PathLike, *, limit: int | None = None) -> Setting:
    """How many records have which value of a field, instead of the records: as Query.value_counts, also awaited.

    >>> from jitdb.operators import from_db, query
    >>> query(value_counts("value.content.type", limit=3))
    query(value_counts(path='value.content.type', limit=3))
    """
    return Setting("summary", ValuesAsked(path, limit))


def group_count(*paths: PathLike, limit: int | None = None) -> Setting:
    """How many records have which values of several fields together.

    >>> from jitdb.operators import query
    >>> query(group_count("level", "host", limit=2))
    query(group_count(paths=['level', 'host'], limit=2))
    """
    return Setting("summary", GroupsAsked(paths, limit))


def histogram(path: PathLike, *, bins: int | Sequence[float] = BINS) -> Setting:
    """How many records have numbers of which size.

    >>> from jitdb.operators import query
    >>> query(histogram("size", bins=4))
    query(histogram(path='size', bins=4))
    """
    return Setting("summary", HistogramAsked(path, bins))


def timeline(
    *, every: str | timedelta = AUTO, by: PathLike | None = None, limit: int = SERIES, tz: str | None = None
) -> Setting:
    """How many records are of which time.

    >>> from jitdb.operators import query
    >>> query(timeline(every="1h", by="level"))
    query(timeline(every='1h', by='level', limit=10))
    """
    return Setting("summary", TimelineAsked(every, by, limit, tz))


def stats(path: PathLike, *, quantiles: Sequence[float] = QUANTILES) -> Setting:
    """What the numbers of a field are like.

    >>> from jitdb.operators import query
    >>> query(stats("ms", quantiles=[0.5]))
    query(stats(path='ms', quantiles=(0.5,)))
    """
    return Setting("summary", StatsAsked(path, quantiles))


def stats_by(
    path: PathLike, by: PathLike, *, limit: int | None = None, quantiles: Sequence[float] = QUANTILES
) -> Setting:
    """The same for each value of another field.

    >>> from jitdb.operators import query
    >>> query(stats_by("ms", "service", limit=3, quantiles=[0.5]))
    query(stats_by(path='ms', by='service', limit=3, quantiles=(0.5,)))
    """
    return Setting("summary", StatsByAsked(path, by, limit, quantiles))


def live(old: bool = False, after: str | None = None) -> Setting:
    """Never end: give the records that come as well, in the order of the log. For `to_iter` and `to_async_iter`.

    It begins with what comes; with `old`, with all that are there; with `after`, the `cursor` of such an iterator,
    behind the record that the cursor stands behind (`old` says nothing then).

    >>> from jitdb.operators import from_db, query, to_iter
    >>> with query(from_db(db), live(old=True), to_iter()) as stream:
    ...     first, place = next(stream), stream.cursor
    >>> with query(from_db(db), live(after=place), to_iter()) as stream:
    ...     next(stream)["timestamp"]
    2
    """
    if not isinstance(old, bool):
        raise QueryError(f"old is True, for the records that are there too, or False, not {shown(old)}")
    if after is not None and (not isinstance(after, str) or not after):
        raise QueryError(f"after is a cursor, the text that an iterator of a live query gives, not {shown(after)}")
    return Setting("live", Live(old, after))


def as_of(place: int | str) -> Setting:
    """The log as it ended with the record at this offset (of -1: empty), or at the cursor of a live query.

    What was deleted since is not there any more.

    >>> from jitdb.operators import count, from_db, query, to_result
    >>> query(from_db(db), as_of(20), count(), to_result())
    3
    """
    if not (type(place) is str and place):
        taken = "an offset, as log.append() and log.since give it, or the cursor of a live query"
        place = whole_number(f"as_of(place) takes {taken}", place, -1)
    return Setting("as_of", place)


def context(
    before: int = 0, after: int = 0, *, same: PathLike | None = None, among: Operation | None = None
) -> Setting:
    """Each record with so many that are earlier and later.

    >>> context(1, 2, same="host")
    context(1, 2, same='host')
    """
    path = None if same is None else as_single_path("context", same)
    return Setting(
        "context",
        Context(
            whole_number("before is a number of records", before),
            whole_number("after is a number of records", after),
            path,
            among,
        ),
    )


def debug() -> Setting:
    """Write the query, and the size and time of its answers, to the logger `jitdb` at level DEBUG.

    >>> from jitdb.operators import count, from_db, query, to_result
    >>> query(from_db(db), count(), debug(), to_result())
    5
    """
    return Setting("debugging", True)
