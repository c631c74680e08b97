"""Warning of an answer that is nothing, once for each question, so that nobody who expects nothing pays for it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from jitdb.errors import EmptyAnswerWarning, JitdbError

if TYPE_CHECKING:
    import os

    from jitdb.common.paths import Path
    from jitdb.operators.nodes.operations import Operation

_VALUES: Final = 32  # questions that differ in their values alone: who asks for more is no person
_SHAPES: Final = 1000  # other questions
_PACKAGE: Final = __name__.partition(".")[0]


class EmptyAnswers:
    """Which of them were told of. Safe for threads.

    hints: what there is to be said of a question
    where: the log
    """

    def __init__(
        self, hints: Callable[[Operation, Sequence[Path]], list[str]], where: str | os.PathLike[str] | None
    ) -> None:
        self._hints, self._where = hints, where
        self._looked_at: dict[Any, set[Any]] = {}  # identities of questions, by what they have in common

    def tell(self, operation: Operation, paths: Sequence[Path] = ()) -> None:
        """The answer is nothing, or nothing is there of these `paths`: warn if it is because of the question."""
        shape = (*((leaf.op, leaf.paths) for leaf in operation.leaves()), *paths)
        looked_at = self._looked_at.get(shape)
        if looked_at is None:
            if len(self._looked_at) >= _SHAPES:
                return
            looked_at = self._looked_at[shape] = set()
        if len(looked_at) >= _VALUES or operation.identity in looked_at:
            return
        looked_at.add(operation.identity)
        lines: list[str] = []
        with suppress(JitdbError, OSError):  # the log is closed, or was changed: the answer stands
            lines = self._hints(operation, paths)
        for line in lines:
            warnings.warn(EmptyAnswerWarning(line, path=self._where), stacklevel=_outside())


def _outside() -> int:
    """Of the stack as its caller sees it, the first frame that is none of jitdb's: there stands the question."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    return level
