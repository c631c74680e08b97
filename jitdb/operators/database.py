"""What a consumer asks of the database that a query carries. The engine answers it; operators only call it.

`operation` is always an Operation: `Everything()` where the query has no `where`. `cancel` is set, from any
thread, when the asker has gone away: the database then stops soon and raises QueryCancelled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal, Protocol, TypeAlias

from jitdb.operators.nodes.operations import Operation

SortBy: TypeAlias = Literal["declared", "arrival"]

#: An earlier state of the log: an offset, for the records up to the one there; or a cursor; None is now.
AsOf: TypeAlias = int | str | None


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


class Portion(Protocol):
    """Some of the records of a live question, in the order of the log."""

    @property
    def data(self) -> list[Any]:
        """The records, or their offsets; never none of them."""

    def cursor(self, count: int) -> str:
        """The place behind the first `count` of them: who goes on there gets the others, and each once."""


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


class Database(Protocol):
    """A database that can be asked."""

    def count(
        self,
        operation: Operation,
        *,
        start_from: int = 0,
        as_of: AsOf = None,
        cancel: threading.Event | None = None,
    ) -> int:
        """How many records the answer has after the first `start_from`; never negative."""

    def all(
        self,
        operation: Operation,
        *,
        start_from: int = 0,
        descending: bool = False,
        as_offsets: bool = False,
        sort_by: SortBy = "declared",
        as_of: AsOf = None,
        cancel: threading.Event | None = None,
    ) -> list[Any]:
        """The whole answer after the first `start_from`."""

    def paginate(
        self,
        operation: Operation,
        *,
        start_from: int = 0,
        limit: int,
        descending: bool = False,
        as_offsets: bool = False,
        sort_by: SortBy = "declared",
        as_of: AsOf = None,
        cancel: threading.Event | None = None,
    ) -> Page:
        """At most `limit` records of the answer after the first `start_from`."""

    def pages(
        self,
        operation: Operation,
        *,
        limit: int,
        start_from: int = 0,
        descending: bool = False,
        as_offsets: bool = False,
        sort_by: SortBy = "declared",
        as_of: AsOf = None,
        cancel: threading.Event | None = None,
    ) -> Iterator[Page]:
        """The answer as it stands now, page by page; each is read when it is asked for.

        Pages may be asked for from different threads, one at a time. Where the iterator has a `close()`, it
        is called when no more pages are wanted.
        """

    def feed(
        self,
        operation: Operation,
        *,
        limit: int,
        old: bool = False,
        after: str | None = None,
        as_offsets: bool = False,
    ) -> Feed:
        """The records that come, at most `limit` a portion; `old`: those that are there first.

        `after`: a cursor; those behind it, whether they are there already or not.
        """

    def explain(self, operation: Operation) -> object:
        """How it would be answered, for people."""
