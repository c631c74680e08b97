"""What a consumer asks of the database that a query carries. The engine answers it; operators only call it.

`operation` is always an Operation: `Everything()` where the query has no `where`. `cancel` is set, from any
thread, when the asker has gone away: the database then stops soon and raises QueryCancelled.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Literal, Protocol, TypeAlias

from jitdb.operators.operations import Operation

SortBy: TypeAlias = Literal["declared", "arrival"]


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


class Database(Protocol):
    """A database that can be asked."""

    def count(self, operation: Operation, *, start_from: int = 0, cancel: threading.Event | None = None) -> int:
        """How many records the answer has after the first `start_from`; never negative."""

    def all(
        self,
        operation: Operation,
        *,
        start_from: int = 0,
        descending: bool = False,
        as_offsets: bool = False,
        sort_by: SortBy = "declared",
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
        cancel: threading.Event | None = None,
    ) -> Iterator[Page]:
        """The answer as it stands now, page by page; each is read when it is asked for.

        Pages may be asked for from different threads, one at a time. Where the iterator has a `close()`, it
        is called when no more pages are wanted.
        """

    def explain(self, operation: Operation) -> object:
        """How it would be answered, for people."""
