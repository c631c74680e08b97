"""A query: a database, a question and how the answer shall come, as one immutable value.

`query(...)` takes its parts in any order. Conditions of several `where` are and-ed; any other part that is
said twice counts as said last, so that a query can be piped further and changed:

    posts = query(from_db(db), where(equal("value.content.type", "post")))
    newest = query(posts, descending(), paginate(10), to_result())
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, NoReturn

from jitdb.common.immutable import Immutable
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.database import AsOf, Database, SortBy
from jitdb.operators.nodes.deferred import Deferred, resolve
from jitdb.operators.nodes.operations import And, Everything, Operation, combine, describe_value, function_name
from jitdb.operators.nodes.tasks import Shape

EVERYTHING: Final = Everything()


class Part:
    """Anything that `query(...)` takes."""

    __slots__ = ()


class Setting(Part):
    """One attribute of the query, and the text that set it."""

    __slots__ = ("name", "shown", "value")

    def __init__(self, name: str, value: Any, shown: str) -> None:
        self.name = name
        self.value = value
        self.shown = shown

    def __repr__(self) -> str:
        return self.shown


class Condition(Part):
    """What `where` adds; None where it leaves all records in."""

    __slots__ = ("operation",)

    def __init__(self, operation: Operation | None) -> None:
        self.operation = operation

    def __repr__(self) -> str:
        return f"where({self.operation!r})"


class Consumer(Part):
    """The end of a query: it asks the database and hands over the answer."""

    __slots__ = ()

    def consume(self, query: Query) -> Any:
        """Ask."""
        raise NotImplementedError


class Live(NamedTuple):
    """Where a live query begins: behind the cursor `after`; else at the first record (`old`), or with what comes."""

    old: bool
    after: str | None


class Query(Part, Immutable):
    """A question that is not asked yet. Pipe it into another `query(...)`, look at it, or `explain()` it."""

    __slots__ = __match_args__ = (
        "operation", "db", "limit", "batch", "start_from", "descending", "sort_by", "as_offsets", "counting", "live",
        "as_of", "debugging",
    )  # fmt: skip

    operation: Operation
    db: Database | None
    limit: int | None
    batch: int | None
    start_from: int
    descending: bool
    sort_by: SortBy
    as_offsets: bool
    counting: bool
    live: Live | None
    as_of: AsOf
    debugging: bool

    def __init__(
        self,
        operation: Operation = EVERYTHING,
        db: Database | None = None,
        limit: int | None = None,
        batch: int | None = None,
        start_from: int = 0,
        descending: bool = False,
        sort_by: SortBy = "declared",
        as_offsets: bool = False,
        counting: bool = False,
        live: Live | None = None,
        as_of: AsOf = None,
        debugging: bool = False,
    ) -> None:
        self._keep(
            operation, db, limit, batch, start_from, descending, sort_by, as_offsets, counting, live, as_of, debugging
        )

    @property
    def database(self) -> Database:
        """The database to ask; QueryError when the query has none."""
        if self.db is None:
            raise QueryError("whom shall I ask? Add from_db(db) to the query")
        return self.db

    def explain(self) -> object:
        """How the database would answer: which indexes, which of them are up to date."""
        return self.database.explain(resolve(self.operation, self.database, None, self.shape))

    @property
    def shape(self) -> Shape:
        """How the answer shall come, as the tasks of deferred() see it."""
        return Shape(self.live, self.descending, self.limit, self.start_from, self.sort_by, self.as_of)

    def parts(self) -> list[str]:
        """The parts of the query as one would write them."""
        shown = [] if self.db is None else [f"from_db({self.db!r})"]
        shown += [] if isinstance(self.operation, Everything) else [f"where({self.operation.describe()})"]
        shown += [f"start_from({describe_value(self.start_from)})"] if self.start_from else []
        shown += ["descending()"] if self.descending else []
        shown += ["sort_by_arrival()"] if self.sort_by == "arrival" else []
        shown += ["as_offsets()"] if self.as_offsets else []
        shown += [] if self.limit is None else [f"paginate({describe_value(self.limit)})"]
        shown += [] if self.batch is None else [f"batch({describe_value(self.batch)})"]
        shown += ["count()"] if self.counting else []
        shown += [] if self.live is None else [_shown_live(self.live)]
        shown += [] if self.as_of is None else [f"as_of({describe_value(self.as_of)})"]
        shown += ["debug()"] if self.debugging else []
        return shown

    def __repr__(self) -> str:
        parts = self.parts()
        line = f"query({', '.join(parts)})"
        return line if len(line) <= 100 else "query(\n" + "".join(f"    {part},\n" for part in parts) + ")"

    def _repr_html_(self) -> str:
        import html  # here: only notebooks need it

        return f"<pre>{html.escape(repr(self))}</pre>"

    def __bool__(self) -> bool:  # else Python would ask for the length
        return True

    def _not_asked(self, *_: object) -> NoReturn:
        raise QueryError("this query has no consumer yet: add to_result(), or to_iter() for a loop")

    def _not_awaited(self) -> NoReturn:
        raise QueryError("this query has no consumer yet: add to_awaitable(), or to_async_iter() for an async loop")

    __iter__ = __len__ = __int__ = __float__ = __getitem__ = _not_asked
    __await__ = __aiter__ = _not_awaited


_SETTINGS: Final = Query.__match_args__[1:]  # but for the operation


def query(*parts: Part | Deferred) -> Any:
    """Put the parts together: a Query, or, with a consumer among them, what the consumer gives.

    >>> from jitdb.operators import equal, from_db, paginate, to_result, where
    >>> query(from_db(db), where(equal("value.content.type", "post")), paginate(2), to_result()).total
    3
    >>> query(where(equal("value.content.type", "post")), paginate(2))
    query(where(equal('value.content.type', 'post')), paginate(2))
    """
    settings: dict[str, Any] = {}
    conditions: list[Operation] = []
    consumer: Consumer | None = None
    part: Any
    for part in parts:
        kind = type(part)
        if kind is Setting:
            settings[part.name] = part.value
        elif kind is Condition:
            if part.operation is not None:
                conditions.append(part.operation)
        elif isinstance(part, Consumer):
            if consumer is not None:
                raise QueryError(f"a query has one consumer, and here are two: {consumer!r} and {part!r}")
            consumer = part
        elif isinstance(part, Query):
            _unfold(part, settings, conditions)
        elif isinstance(part, Deferred):
            conditions.append(part)
        else:
            raise QueryError(_not_a_part(part))
    if conditions:
        settings["operation"] = conditions[0] if len(conditions) == 1 else combine(And, tuple(conditions))
    made = Query(**settings)
    _check_together(made)
    return made if consumer is None else consumer.consume(made)


def _unfold(part: Query, settings: dict[str, Any], conditions: list[Operation]) -> None:
    """Say again what the query `part` says beyond the defaults."""
    for name in _SETTINGS:
        value = getattr(part, name)
        if value != getattr(_NOTHING_SAID, name):
            settings[name] = value
    if not isinstance(part.operation, Everything):
        conditions.append(part.operation)


def _check_together(made: Query) -> None:
    if made.limit is not None and made.batch is not None:
        raise QueryError("paginate() gives whole pages and batch() one record at a time: choose one of them")
    if made.counting and (made.limit is not None or made.batch is not None):
        way = "paginate" if made.limit is not None else "batch"
        raise QueryError(
            f"count() gives one number, so there is nothing to {way}; a page carries the number as `total`"
        )
    if made.live is not None:
        _check_live(made)


def _check_live(made: Query) -> None:
    if made.counting:
        raise QueryError("a live query never ends, so count() has no number to give: leave one of them out")
    if made.descending:
        raise QueryError(
            "live() goes on with what comes, so it cannot begin with the newest: leave descending() out, and ask for "
            "the newest that are there in a query of its own"
        )
    if made.start_from:
        raise QueryError(
            "live() counts no answers to skip: leave start_from() out; live(after=cursor) goes on behind a record"
        )
    if made.as_of is not None:
        raise QueryError(
            "as_of() is about an earlier state of the log, and live() about what comes: live(after=cursor) gives "
            "what came since"
        )


def _shown_live(live: Live) -> str:
    shown = ["old=True"] if live.old else []
    shown += [] if live.after is None else [f"after={live.after!r}"]
    return f"live({', '.join(shown)})"


def _not_a_part(thing: object) -> str:
    if isinstance(thing, Operation):
        return f"wrap the operation in where(...): where({shown(thing)})"
    if hasattr(thing, "paginate") and hasattr(thing, "pages"):
        return "wrap the database in from_db(...)"
    if isinstance(thing, str):
        return f"{shown(thing)} is no part of a query; an expression is read by where(parse_expression({shown(thing)}))"
    if callable(thing):
        name = function_name(thing)
        return f"{name} is a function: was it meant to be called, as in {name}(...)?"
    return (
        f"{shown(thing)} is no part of a query; parts are from_db(...), where(...), modifiers such as "
        "descending() and a consumer such as to_result()"
    )


_NOTHING_SAID: Final = Query()
