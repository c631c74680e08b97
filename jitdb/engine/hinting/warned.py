"""Warnings on questions, in Python: for an empty answer once for each question, for any other once for each field."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.paths import ANY
from jitdb.engine.hinting.evidence import no_numbers
from jitdb.errors import JitdbError, QuestionWarning, outside
from jitdb.indexes.kinds.kernels import seen

if TYPE_CHECKING:
    import os

    from jitdb.common.paths import Path
    from jitdb.engine.hinting.knowledge import Evidence
    from jitdb.operators.nodes.operation import Operation
    from jitdb.operators.question import Question

_VALUES: Final = 32  # questions that differ only in their values: no person asks more
_SHAPES: Final = 1000  # other questions
_FIELDS: Final = 10_000  # fields that are remembered


class QuestionWarnings:
    """Warns of fields and values that are asked for and that no record has. Safe for threads.

    evidence: what the log has
    where:    its path
    """

    def __init__(self, evidence: Callable[[], Evidence], where: str | os.PathLike[str] | None) -> None:
        self._evidence, self._where = evidence, where
        self._looked_at: dict[Any, set[Any]] = {}  # identities of questions, by operators and fields
        self._fields: set[Path] = set()  # that were looked for
        # The last question: asking it again costs nothing.
        self._last: tuple[Any, ...] = ()
        self._compared: set[Any] = set()  # identities of operations that were looked at for what they compare
        self._numbers: set[Path] = set()  # fields of which it was told how their text is taken
        self._values: set[Path] = set()  # and how their maps are
        self._bounded: set[Path] = set()  # what comparisons leave out of them
        self._encoded: set[Path] = set()  # and that they have bytes which are no text
        self._is_order_known = False  # whether records have times to be ordered by

    def tell(self, question: Question, is_empty: bool, paths: Sequence[Path] = ()) -> None:
        """After an answer: warn if the question asks for what no record has.

        paths: further fields of the question that no record of the answer has
        """
        operation = question.operation
        asked = (operation, is_empty, paths, question.summary, question.order, question.descending)
        if len(asked) == len(self._last) and all(map(operator.is_, asked, self._last)):
            return
        self._last = asked
        new = [path for path in operation.all_paths() if path not in self._fields]
        if new and len(self._fields) < _FIELDS:
            self._fields.update(new)
        if is_empty:
            self._tell_empty(operation, paths)
        else:
            if new:
                self._tell_fields(operation, new)
            self._tell_bounded(operation)
            self._tell_order(question)
        self._tell_compared(operation, is_empty)
        self._tell_encoding(operation)
        self._tell_taken(question)

    def _tell_fields(self, operation: Operation, new: Sequence[Path]) -> None:
        from jitdb.engine.hinting.hints import hints_on_fields

        self._warn(lambda: hints_on_fields(self._evidence(), operation, new))

    def _tell_compared(self, operation: Operation, is_empty: bool) -> None:
        is_of_interest = operation.children() or operation.compared is not None  # else it denies and compares nothing
        if not is_of_interest or operation.identity in self._compared or len(self._compared) >= _SHAPES:
            return
        from jitdb.engine.hinting.hints import values_compared

        self._compared.add(operation.identity)
        self._warn(lambda: values_compared(self._evidence(), operation, is_empty))

    def _tell_bounded(self, operation: Operation) -> None:
        """What is left out where numbers are compared; of an empty answer, the remarks say so."""
        compared = [leaf.compared for leaf in operation.leaves()]
        bounded = [each[0] for each in compared if each is not None and not each[1] and isinstance(each[0], tuple)]
        self._tell_once(self._bounded, bounded, _left_out)

    def _tell_order(self, question: Question) -> None:
        """That newest first is no order, where no record has a time."""
        is_by_time = question.descending and question.order is True and question.summary is None
        if not is_by_time or self._is_order_known:
            return

        def hints() -> Iterator[str]:
            told = self._evidence().unordered()
            self._is_order_known = told is not None
            if told:
                yield told

        self._warn(hints)

    def _tell_encoding(self, operation: Operation) -> None:
        from jitdb.engine.hinting.texts import on_encoding, texts_of

        leaves = [leaf for leaf in operation.leaves() if not all(map(str.isascii, texts_of(leaf)))]
        paths = [path for leaf in leaves for path in leaf.paths or ((ANY,),)]
        self._tell_once(self._encoded, paths, lambda evidence, _: on_encoding(evidence, operation))

    def _tell_taken(self, question: Question) -> None:
        """How the fields are taken whose numbers, or whose values, the question is about."""
        from jitdb.engine.hinting.hints import map_hints, number_hints, numbers_of

        self._tell_once(self._numbers, numbers_of(question), number_hints)
        if question.summary is not None:
            self._tell_once(self._values, question.summary.values_of, map_hints)

    def _tell_once(
        self, told: set[Path], paths: Iterable[Path], hints: Callable[[Evidence, Sequence[Path]], Iterable[str]]
    ) -> None:
        new = [path for path in paths if path not in told]
        if new and len(told) < _FIELDS:
            told.update(new)
            self._warn(lambda: hints(self._evidence(), new))

    def _tell_empty(self, operation: Operation, paths: Sequence[Path]) -> None:
        shape = (*((leaf.op, leaf.paths) for leaf in operation.leaves()), *paths)
        looked_at = self._looked_at.get(shape)
        if looked_at is None:
            if len(self._looked_at) >= _SHAPES:
                return
            looked_at = self._looked_at[shape] = set()
        if len(looked_at) >= _VALUES or operation.identity in looked_at:
            return
        looked_at.add(operation.identity)

        def hints() -> Iterable[str]:
            from jitdb.engine.hinting.hints import hints_of

            evidence = self._evidence()
            return [*hints_of(evidence, operation, paths), *evidence.remarks(operation)]

        self._warn(hints)

    def _warn(self, hints: Callable[[], Iterable[str]]) -> None:
        lines: Iterable[str] = ()
        with suppress(JitdbError, OSError):  # the log is closed, or was changed: the answer stands
            lines = list(hints())
        for line in lines:
            warnings.warn(QuestionWarning(line, path=self._where), stacklevel=outside())


def _left_out(evidence: Evidence, paths: Sequence[Path]) -> Iterator[str]:
    """A line for each of these fields of which comparisons leave out some values."""
    for path in paths:
        if evidence.seen_in(path) & seen.OTHERS:
            yield no_numbers((path,))
