"""A question: an operation, the database to ask, and the settings of the answer, as one immutable value.

It is passed unchanged from the operators to the database and through it. The protocols here are what consumers call and
the engine implements. `cancel` is set, from any thread, when the asker has gone away: the database
then stops soon and raises QueryCancelled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, Self, TypeAlias, TypedDict

from jitdb.common.arguments import whole_number
from jitdb.common.immutable import Immutable
from jitdb.common.paths import Path
from jitdb.errors import QueryError
from jitdb.operators.nodes.field_ref import PathLike, as_single_path
from jitdb.operators.nodes.literals import describe_path, describe_value
from jitdb.operators.nodes.operation import EVERYTHING, Operation
from jitdb.operators.text.taken import operation_of

if TYPE_CHECKING:
    from jitdb.operators.nodes.selection import SelectField, Selection, SortField, SortKeys
    from jitdb.operators.passages import Passages
    from jitdb.operators.summaries.summary import Summary
    from jitdb.operators.tabular import Arrow

#: "declared": by the time that records declare; "arrival": as they came into the log; else a field or several
#: (nodes/selection.py), which one of those two names is in a list: ["arrival"].
SortBy: TypeAlias = "Literal['declared', 'arrival'] | SortField | list[SortField] | tuple[SortField, ...]"

#: An earlier state of the log: an offset, for the records up to the one there; or a cursor; None is now.
AsOf: TypeAlias = int | str | None

#: Records that are read at a time where neither paginate nor batch says: enough to make the cost of a page small beside
#: decoding it, few enough that the first record comes at once.
DEFAULT_BATCH: Final = 100


class Settings(TypedDict, total=False):
    """The settings of a question that methods of a database take as keywords."""

    start_from: int
    descending: bool
    as_offsets: bool
    as_raw: bool
    sort_by: SortBy
    as_of: AsOf
    select: Sequence[SelectField]


class Live(NamedTuple):
    """Where a live question begins: behind the cursor `after`; else at the first record (`old`), or with what comes."""

    old: bool = False
    after: str | None = None


class Context(NamedTuple):
    """The context that answers come in: so many records before and after each, by time or in the log.

    same:  only records with the same value in this field; where the answer lacks the field, records that lack it
    among: only records of which this is true
    """

    before: int
    after: int
    same: Path | None = None
    among: Operation | None = None

    @classmethod
    def around(
        cls, before: int = 0, after: int = 0, same: PathLike | None = None, among: str | Operation | None = None
    ) -> Context:
        """One with checked parts. Raises QueryError."""
        return cls(
            whole_number("before is a number of records", before),
            whole_number("after is a number of records", after),
            None if same is None else as_single_path("context", same),
            None if among is None else operation_of(among, "among is an operation"),
        )


class Dedup(NamedTuple):
    """Only the first record of each value of these fields is in the answer, in the question's order; or the last."""

    paths: tuple[Path, ...]
    last: bool = False


class Question(Immutable):
    """What is asked, and the settings of the answer. `vars()` has those that were given; the rest are as below."""

    __match_args__ = (
        "db", "operation", "start_from", "descending", "sort_by", "as_offsets", "as_raw", "limit", "batch", "counting",
        "live", "as_of", "dedup", "select", "context", "summary", "debugging",
    )  # fmt: skip

    db: Database | None = None
    operation: Operation = EVERYTHING
    start_from: int = 0
    descending: bool = False
    sort_by: Literal["declared", "arrival"] | SortKeys = "declared"
    as_offsets: bool = False
    as_raw: bool = False  # the bytes of each record as the file has them
    limit: int | None = None  # records in a page
    batch: int | None = None  # records to read at a time
    counting: bool = False
    live: Live | None = None
    as_of: AsOf = None
    dedup: Dedup | None = None
    select: Selection | None = None  # the fields that are given of each record; None: all of it
    context: Context | None = None
    summary: Summary[Any] | None = None  # what is asked of all records together
    debugging: bool = False

    def __init__(self, **said: Any) -> None:
        object.__setattr__(self, "__dict__", said)  # a question is made for each count: update() takes twice the time

    def changed(self, **parts: Any) -> Self:
        """Another one, of these parts and else of the same."""
        return type(self)(**{**self.__dict__, **parts})

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self.__dict__,)

    @property
    def database(self) -> Database:
        """The database to ask; QueryError when there is none."""
        if self.db is None:
            raise QueryError("this query has no database yet", remedy="add from_db(db) to the query")
        return self.db

    @property
    def is_one(self) -> bool:
        """Whether one value is the whole answer: a count, or a summary."""
        return self.counting or self.summary is not None

    @property
    def order(self) -> bool | SortKeys:
        """What decides the order of records, beside their places: the declared time (True), some fields, or nothing
        (False).
        """
        by = self.sort_by
        return by == "declared" if isinstance(by, str) else by

    @property
    def portion(self) -> int:
        """How many records are read at a time."""
        return self.limit or self.batch or DEFAULT_BATCH

    def words(self) -> list[str]:
        """The words of a chain that say it."""
        said = ((name, getattr(self, name)) for name in self.__match_args__)
        return [_word(name, value) for name, value in said if value != getattr(Question, name)]

    def __repr__(self) -> str:
        parts = self.words()
        line = f"query({', '.join(parts)})"
        return line if len(line) <= 100 else "query(\n" + "".join(f"    {part},\n" for part in parts) + ")"

    def checked(self) -> Self:
        """The question, if its settings go together; QueryError where they contradict each other."""
        if self.limit is not None and self.batch is not None:
            raise QueryError(
                "paginate() gives whole pages and batch() one record at a time", remedy="choose one of them"
            )
        if self.counting and (self.limit is not None or self.batch is not None):
            way = "paginate" if self.limit is not None else "batch"
            raise QueryError(
                f"count() gives one number, so there is nothing to {way}; a page carries the number as `total`"
            )
        if self.summary is not None:
            self._check_summary(self.summary)
        if self.select is not None and self.as_offsets:
            raise QueryError("as_offsets() gives where records lie, and select() what is in them", remedy="choose one")
        if self.as_raw and (self.select is not None or self.as_offsets):
            raise QueryError(
                "as_raw() gives the whole text of each record", remedy="leave select() and as_offsets() out"
            )
        if self.live is not None:
            if not isinstance(self.sort_by, str):
                raise QueryError("a live query gives records as they come: leave sort_by() out")
            for setting, why in _NOT_LIVE.items():
                if getattr(self, setting) not in (None, 0):
                    raise QueryError(why)
        return self

    def _check_summary(self, summary: Summary[Any]) -> None:
        if self.counting or self.limit is not None or self.batch is not None or self.start_from:
            raise QueryError(
                f"{summary.name}() is about all records that match: there are none to count, page or skip",
                remedy="leave count(), paginate(), batch() and start_from() out; limit= is of values",
            )


def _made(said: dict[str, Any]) -> Question:
    return Question(**said)


_NOT_LIVE: Final = {
    "counting": "a live query never ends, so count() has no number to give: leave one of them out",
    "descending": (
        "live() goes on with what comes, so it cannot begin with the newest: leave descending() out, and ask for "
        "the newest that are there in a query of its own"
    ),
    "start_from": (
        "live() counts no answers to skip: leave start_from() out; live(after=cursor) goes on behind a record"
    ),
    "dedup": "a live query never ends, so it cannot hold what came before: leave dedup() out",
    "summary": "a live query never ends, so there is nothing to sum up: leave one of them out",
    "as_of": (
        "as_of() is about an earlier state of the log, and live() about what comes: live(after=cursor) gives "
        "what came since"
    ),
}


_NAMES: Final = {
    "db": "from_db", "operation": "where", "limit": "paginate", "counting": "count", "debugging": "debug",
    "sort_by": "sort_by_arrival",
}  # fmt: skip


def _word(name: str, value: object) -> str:
    """The word of a chain that says a setting."""
    if name == "summary":
        return repr(value)
    if name == "select":
        from jitdb.common.paths import format_path

        return f"select({', '.join(repr(format_path(path)) for _, path in value)})"  # type: ignore[attr-defined]
    if name == "sort_by" and not isinstance(value, str):
        return f"sort_by({', '.join(map(repr, value))})"  # type: ignore[call-overload]
    if isinstance(value, Dedup):
        fields = ", ".join(map(describe_path, value.paths))
        return f"dedup({fields if len(value.paths) == 1 else f'[{fields}]'}{', last=True' if value.last else ''})"
    argument = "" if value is True or name == "sort_by" else describe_value(value)
    if isinstance(value, Live):
        shown = ["old=True"] if value.old else []
        argument = ", ".join(shown if value.after is None else [*shown, f"after={value.after!r}"])
    if isinstance(value, Context):
        shown = [str(value.before), str(value.after)]
        shown += [] if value.same is None else [f"same={describe_path(value.same)}"]
        argument = ", ".join(shown if value.among is None else [*shown, f"among={value.among!r}"])
    return f"{_NAMES.get(name, name)}({argument})"


class Page(Protocol):
    """A part of an answer."""

    @property
    def data(self) -> list[Any]:
        """The records of this page, or their offsets."""

    @property
    def total(self) -> int:
        """How many records the whole answer has."""

    @property
    def next_seq(self) -> int:
        """The `start_from` of the page after this one."""

    @property
    def duration(self) -> float:
        """Milliseconds it took."""


class Pages(Protocol):
    """An answer that ends, a page at a time. Read by one thread at a time; closed from any."""

    def read(self) -> Page | None:
        """The next page, never an empty one; None after the last."""

    def close(self) -> None:
        """Release the answer; never waits for a read() that is running."""


class Portion(Protocol):
    """Some of the records of a live question, in the order of the log."""

    @property
    def data(self) -> list[Any]:
        """The records, or their offsets; never none of them."""

    def cursor(self, count: int) -> str:
        """The place behind the first `count` of them. A reader that goes on there gets each of the others once."""


class Feed(Protocol):
    """The answer to a live question. Read by one thread at a time; watched and closed from any."""

    @property
    def cursor(self) -> str:
        """The place behind all that was read."""

    def read(self) -> Portion | None:
        """The next records, without waiting for any; None when there are none now."""

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back, from any thread, whenever read() may have something; the function given back ends it."""

    def close(self) -> None:
        """Read no more: a read() that is under way stops soon, and later ones raise QueryCancelled."""


class Explained(Protocol):
    """How a question would be answered."""

    @property
    def where(self) -> str:
        """The operation."""

    @property
    def log_bytes(self) -> int:
        """The durable bytes of the log, or of all logs."""

    @property
    def scan_bytes(self) -> int:
        """What of them must be scanned, because no index knows it yet."""

    @property
    def candidates(self) -> int:
        """Records that must be read to see if they match."""

    @property
    def confirm_bytes(self) -> int:
        """What reading them takes, at most."""

    @property
    def is_ready(self) -> bool:
        """Whether nothing is to be scanned."""

    @property
    def pays_after(self) -> int | None:
        """After how many questions the scan has cost no more than asking without an index; None where it never does."""

    def __getitem__(self, name: str, /) -> Any:
        """Each part by its name: the indexes, too."""


class Database(Protocol):
    """A database that can be asked. It resolves the question that it is given (tasks/deferred.py)."""

    def count(self, question: Question, /, *, cancel: threading.Event | None = None) -> int:
        """How many records the answer has after the first `start_from`; never negative."""

    def paginate(self, question: Question, /, *, cancel: threading.Event | None = None) -> Page:
        """At most `limit` records of the answer after the first `start_from`; without `limit`, all of them."""

    def pages(self, question: Question, /, *, cancel: threading.Event | None = None) -> Pages:
        """The answer as it stands when the first page is read, in pages of `portion` records."""

    def context(self, question: Question, /) -> Passages:
        """The answer in passages, as `around` says."""

    def summarize(self, question: Question, /, *, cancel: threading.Event | None = None) -> Any:
        """What the question's `summary` asks of its records: a Result (summaries/summary.py)."""

    def arrow(
        self,
        question: Question,
        /,
        *,
        schema: Any = None,
        times: bool = True,
        places: Sequence[str] = (),
        cancel: threading.Event | None = None,
    ) -> Arrow:
        """The selected fields of the answer's first `limit` records; of all, without it. See Query.to_arrow."""

    def record_set(self, question: Question, /, *, cancel: threading.Event | None = None) -> Any:
        """The records of the answer, at most `limit`, as a value: see operators/sets.py."""

    def feed(self, question: Question, /, *, cancel: threading.Event | None = None) -> Feed:
        """The answer to a live question, at most `portion` records at a time."""

    def explain(self, question: Question, /) -> Explained:
        """How it would be answered, for people."""
