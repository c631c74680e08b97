"""Asking for what stands around answers: of a database, and of a set of logs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Unpack, cast

from jitdb.engine.checks import question_of, with_context
from jitdb.operators.nodes.field_ref import PathLike
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.question import Question, Settings

if TYPE_CHECKING:
    from jitdb.engine.face.base import Asked, Cancel
    from jitdb.operators.passages import Passages
    from jitdb.operators.question import Database


class Contexts:
    """The question is made ready here, and answered by `_passages`."""

    __slots__ = ()

    def context(
        self,
        question: Asked = None,
        before: int = 0,
        after: int = 0,
        *,
        same: PathLike | None = None,
        among: Operation | None = None,
        limit: int | None = None,
        cancel: Cancel = None,
        **settings: Unpack[Settings],
    ) -> Passages:
        """The answers among the records around them: an iterator, also for `async for`, of passages, each a list of
        Seen (record, is_match, place), in the order of the answer. Where contexts overlap or touch, they are one.

        before, after: so many that are earlier, and later: by their times, or (sort_by="arrival") in the log
        same:  only records that have in this field what the answer has; those without it belong together, too
        among: only records of which this is true
        limit: of answers

        What is_match marks are the answers that the question has without context; `total` is how many there are. The
        index of `same` is built in the scan of the question's own. Of a set of logs, what stands around a record is of
        its own log. Raises QueryError, LogError.
        """
        asked = question_of(cast("Database", self), question, settings, limit)
        asked = asked if asked.context is not None else with_context(asked, before, after, same, among)
        return self._passages(asked, threading.Event() if cancel is None else cancel)

    def _passages(self, question: Question, cancel: threading.Event) -> Passages:
        raise NotImplementedError
