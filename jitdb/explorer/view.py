"""What one request asks, and of what: the log, or a sample of it; it ends when nobody waits for it any more."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from jitdb.errors import QueryCancelled
from jitdb.explorer.session import Asked, Session

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators.queries import Query


class View(NamedTuple):
    """What one look asks, and of what: the log, or a sample of it."""

    session: Session
    db: AnyDatabase
    asked: Asked
    body: dict[str, Any]
    cancel: threading.Event
    sampled: int = 0  # records that a sample has

    def query(self, *, timed: bool = True, where: str | None = None) -> Query:
        """The question, or another one of the same time and state."""
        asked = self.asked if where is None else self.asked._replace(where=where)
        query = self.session.query(asked._replace(as_of=None) if self.sampled else asked, timed=timed)
        return type(query)(query.question.changed(db=Cancelled(self.db, self.cancel)))


class Cancelled:
    """A database whose questions end when `cancel` is set, those that are not begun too."""

    def __init__(self, db: Any, cancel: threading.Event) -> None:
        self._db, self._cancel = db, cancel

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._db, name)

        def asked(question: Any, **named: Any) -> Any:
            if self._cancel.is_set():
                raise QueryCancelled("another question was asked")
            return method(question.changed(db=self._db), **{**named, "cancel": self._cancel})

        return asked
