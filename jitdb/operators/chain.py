"""The JavaScript module's way to ask: `query(...)` takes words in any order, and a consumer at its end asks.

A word is a method of Query: `descending()` is `Query.descending`. Conditions of several `where` are and-ed; of any
other word that is said twice the last counts, so that a query can be piped further and changed:

    posts = query(from_db(db), where(equal("value.content.type", "post")))
    newest = query(posts, descending(), paginate(10), to_result())
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, TypeAlias, TypeVar, cast, overload

from jitdb.common.arguments import function
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.equal import absent, equal, includes
from jitdb.operators.nodes.field_ref import FieldLike, PathLike, as_path
from jitdb.operators.nodes.literals import function_name
from jitdb.operators.nodes.operation import And, Everything, Operation, combine
from jitdb.operators.nodes.predicate import predicate
from jitdb.operators.queries import Columns, Query
from jitdb.operators.question import Database, Question
from jitdb.operators.running.answer import answer, answer_async, answerable
from jitdb.operators.running.iterate import AsyncResults, Results
from jitdb.operators.tasks.deferred import Deferred

if TYPE_CHECKING:
    from jitdb.operators.summaries.summary import Summary

P = ParamSpec("P")
R = TypeVar("R")


class Consumer(Generic[R]):
    """What ends a query: `consume` asks, and gives what `query(...)` then gives."""

    __slots__ = ("_name", "consume")

    def __init__(self, name: str, consume: Callable[[Question], R]) -> None:
        self._name = name
        self.consume = consume

    def __repr__(self) -> str:
        return self._name


class Word(Query):
    """A part of a query that says one thing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return ", ".join(self.question.words()) or "where()"

    def _summarized(self, asked: Summary[Any], where: str | Operation | None) -> Any:
        return Word(self.where(where).question.changed(summary=asked))


_EMPTY: Final = Word(Question())

Part: TypeAlias = Query | Deferred


def from_db(db: Database) -> Query:
    """Ask this database.

    >>> from jitdb.operators import count, query, to_result
    >>> query(from_db(db), count(), to_result())
    5
    """
    if not hasattr(db, "paginate"):
        raise QueryError(
            f"from_db() takes an open database, as jitdb.open(path) gives it, not {shown(db)} ({type(db).__name__})"
        )
    return Word(Question(db=db))


def count() -> Query:
    """How many records there are, instead of the records.

    >>> from jitdb.operators import from_db, query, to_result
    >>> query(from_db(db), count(), to_result())
    5
    """
    return Word(Question(counting=True))


def _word(method: Callable[Concatenate[Query, P], object]) -> Callable[P, Query]:
    """What this method of a query says, as a word."""

    @wraps(method)
    def word(*arguments: P.args, **options: P.kwargs) -> Query:
        said: Any = method(_EMPTY, *arguments, **options)
        return cast(Query, said)

    return word


where, since, until = _word(Query.where), _word(Query.since), _word(Query.until)
descending, sort_by, sort_by_arrival = _word(Query.descending), _word(Query.sort_by), _word(Query.sort_by_arrival)
start_from, paginate, batch = _word(Query.start_from), _word(Query.paginate), _word(Query.batch)
select, as_offsets, as_raw = _word(Query.select), _word(Query.as_offsets), _word(Query.as_raw)
as_of = _word(Query.as_of)
dedup, live, debug = _word(Query.dedup), _word(Query.live), _word(Query.debug)
value_counts, group_count, histogram = _word(Query.value_counts), _word(Query.group_count), _word(Query.histogram)
timeline, stats, stats_by = _word(Query.timeline), _word(Query.stats), _word(Query.stats_by)
count_distinct, share = _word(Query.count_distinct), _word(Query.share)
facets, difference, patterns = _word(Query.facets), _word(Query.difference), _word(Query.patterns)


@overload
def query(*parts: *tuple[*tuple[Part, ...], Consumer[R]]) -> R: ...
@overload
def query(*parts: Part) -> Query: ...
def query(*parts: Any) -> Any:  # type: ignore[misc]  # that it takes what the first overload does, mypy does not see
    """Put the parts together: a Query, or, with a consumer among them, what the consumer gives.

    For a type checker the consumer stands last.

    >>> from jitdb.operators import equal, from_db, paginate, to_result, where
    >>> query(from_db(db), where(equal("value.content.type", "post")), paginate(2), to_result()).total
    3
    >>> query(where(equal("value.content.type", "post")), paginate(2))
    query(where(equal('value.content.type', 'post')), paginate(2))
    """
    settings: dict[str, Any] = {}
    conditions: list[Operation] = []
    consumer: Consumer[Any] | None = None
    for part in parts:
        if isinstance(part, Query):
            settings |= vars(part.question)
            operation = settings.pop("operation", None)
            if operation is not None and (type(part) is Word or not isinstance(operation, Everything)):
                conditions.append(operation)
        elif isinstance(part, Consumer):
            if consumer is not None:
                raise QueryError(f"a query has one consumer, and here are two: {consumer!r} and {part!r}")
            consumer = part
        elif isinstance(part, Deferred):
            conditions.append(part)
        else:
            raise QueryError(_not_a_part(part))
    if conditions:
        settings["operation"] = conditions[0] if len(conditions) == 1 else combine(And, tuple(conditions))
    question = Question(**settings).checked()
    return Query(question) if consumer is None else consumer.consume(question)


def _of_path(make: Callable[Concatenate[FieldLike, P], Operation]) -> Callable[Concatenate[PathLike, P], Operation]:
    """The same with a path alone, as the JavaScript module has it; compiled here, and no longer slow."""

    @wraps(make)
    def of_path(path: PathLike, /, *arguments: P.args, **options: P.kwargs) -> Operation:
        return make(as_path(f"slow_{make.__name__}", path), *arguments, **options)

    return of_path


slow_equal = _of_path(equal)
slow_includes = _of_path(includes)
slow_absent = _of_path(absent)
slow_predicate = _of_path(predicate)


def to_result() -> Consumer[Any]:
    """The answer itself: an int after `count()`, a Page after `paginate(n)`, else a list.

    >>> from jitdb.operators import count, from_db, query
    >>> query(from_db(db), count(), to_result())
    5
    """
    return _in_one_piece("to_result()", answer)


def to_callback(callback: Callable[[Exception | None, Any], object]) -> Consumer[None]:
    """Call `callback(error, result)`, with one of the two None, before `query` returns None.

    What the callback itself raises comes out of `query`.

    >>> from jitdb.operators import count, from_db, query
    >>> query(from_db(db), count(), to_callback(lambda error, result: print(error, result)))
    None 5
    """
    function("to_callback() takes a function (error, result)", callback, 2)

    def call_back(question: Question) -> None:
        try:
            result = answer(question)
        except Exception as error:
            callback(error, None)
        else:
            callback(None, result)

    return _in_one_piece(f"to_callback({function_name(callback)})", call_back)


def to_awaitable() -> Consumer[Coroutine[Any, Any, Any]]:
    """A coroutine of what `to_result()` gives. The database works in a thread; cancelling stops it soon.

    >>> import asyncio
    >>> from jitdb.operators import count, from_db, query
    >>> asyncio.run(query(from_db(db), count(), to_awaitable()))
    5
    """
    return _in_one_piece("to_awaitable()", answer_async)


def to_iter() -> Consumer[Results]:
    """An iterator over the records, or after `paginate(n)` over lists of n. Pages are read when asked for.

    The answer is that of the moment of the first page, whatever happens to the log since. A loop that is
    left early should close the iterator (`with`, or `close()`); one that is thrown away closes itself.
    After `live()` it waits for more instead of ending (see Results).

    >>> from jitdb.operators import equal, from_db, query, where
    >>> with query(from_db(db), where(equal("value.content.type", "vote")), to_iter()) as votes:
    ...     [vote["value"]["sequence"] for vote in votes]
    [2]
    """
    return Consumer("to_iter()", Results)


def to_async_iter() -> Consumer[AsyncResults]:
    """An async iterator over the records, or after `paginate(n)` over lists of n.

    The database works in a thread, one page at a time, and only when the loop asks for more. Cancelling the
    task, or `aclose()`, makes a scan that is under way stop soon, and waits for nothing.
    After `live()` it waits for more instead of ending, and needs no thread for that (see AsyncResults).

    >>> import asyncio
    >>> from jitdb.operators import equal, from_db, paginate, query, where
    >>> async def sizes():
    ...     posts = where(equal("value.content.type", "post"))
    ...     async with query(from_db(db), posts, paginate(2), to_async_iter()) as pages:
    ...         return [len(page) async for page in pages]
    >>> asyncio.run(sizes())
    [2, 1]
    """
    return Consumer("to_async_iter()", AsyncResults)


def to_set() -> Consumer[Any]:
    """The records as a value that stands for them: as Query.set."""
    return Consumer("to_set()", lambda question: Query(question).set())


def to_arrow(columns: Columns = None, *, limit: int | None = None, times: bool = True) -> Consumer[Any]:
    """The records as a pyarrow.Table: as Query.to_arrow."""
    return Consumer("to_arrow()", lambda question: Query(question).to_arrow(columns, limit=limit, times=times))


def to_pandas(columns: Columns = None, *, limit: int | None = None, times: bool = True) -> Consumer[Any]:
    """The records as a pandas.DataFrame: as Query.to_pandas."""
    return Consumer("to_pandas()", lambda question: Query(question).to_pandas(columns, limit=limit, times=times))


def to_polars(columns: Columns = None, *, limit: int | None = None, times: bool = True) -> Consumer[Any]:
    """The records as a polars.DataFrame: as Query.to_polars."""
    return Consumer("to_polars()", lambda question: Query(question).to_polars(columns, limit=limit, times=times))


def _in_one_piece(name: str, ask: Callable[[Question], R]) -> Consumer[R]:
    return Consumer(name, lambda question: ask(answerable(question, name)))


def _not_a_part(thing: object) -> str:
    if isinstance(thing, Operation):
        return f"wrap the operation in where(...): where({shown(thing)})"
    if hasattr(thing, "paginate") and hasattr(thing, "pages"):
        return "wrap the database in from_db(...)"
    if isinstance(thing, str):
        return f"{shown(thing)} is no part of a query; an expression stands in where({shown(thing)})"
    if callable(thing):
        name = function_name(thing)
        return f"{name} is a function: was it meant to be called, as in {name}(...)?"
    return (
        f"{shown(thing)} is no part of a query; parts are from_db(...), where(...), modifiers such as "
        "descending() and a consumer such as to_result()"
    )
