"""Answers of a set among the records around them: each one's context is of its own log.

The answers are found first, as places in the order of all logs. Then each log says what stands around its own, and the
passages of all come in the order of the first answer in each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

from jitdb.engine.reading.paging import changed_meanwhile
from jitdb.logset.member import Member
from jitdb.logset.merging import MergedPages, Place
from jitdb.operators.nodes.positions import offsets
from jitdb.operators.nodes.selection import selected
from jitdb.operators.passages import Passages, Seen
from jitdb.operators.question import Question

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB


class _Passage(NamedTuple):
    """Where one lies. `rank`: of its first answer, among those of all logs."""

    rank: int
    member: Member
    generation: int
    seen: list[Seen]  # offsets


class SetPassages(Passages):
    """The passages around the records on these pages of places, found and read when they are asked for.

    finish: what is made of each record, or offset, of a log

    Raises LogError, also where a log was compacted or replaced since its passages were found.
    """

    def __init__(
        self,
        pages: MergedPages,
        question: Question,
        members: Sequence[Member],
        using: Callable[[Member], AbstractContextManager[JITDB]],
        finish: Callable[[Any, Member], Any],
        cancel: threading.Event,
    ) -> None:
        super().__init__(cancel)
        self._pages, self._question, self._members, self._using, self._finish = pages, question, members, using, finish
        self._places: list[Place] | None = None
        self._coming = self._all()

    def __next__(self) -> list[Seen]:
        return next(self._coming)

    @property
    def total(self) -> int:
        self._answers()
        return self._pages.total

    def _answers(self) -> list[Place]:
        if self._places is None:
            if self._question.limit is None:
                self._places = [place for page in iter(self._pages.read, None) for place in page.data]
            else:
                self._places = list(getattr(self._pages.read(), "data", []))
                self._pages.close()
        return self._places

    def _all(self) -> Iterator[list[Seen]]:
        ranks: dict[str, dict[int, int]] = {}
        for rank, place in enumerate(self._answers()):
            ranks.setdefault(place.path, {})[place.offset] = rank
        found: list[_Passage] = []
        for member in self._members:
            if member.path in ranks:
                with self._using(member) as db:
                    found += _found(db, member, self._question, ranks[member.path])
        for passage in sorted(found):
            with self._using(passage.member) as db:
                yield _read(db, passage, self._question, self._finish)


def _found(db: JITDB, member: Member, question: Question, ranks: dict[int, int]) -> Iterator[_Passage]:
    context = question.context
    assert context is not None
    if context.among is not None:
        context = context._replace(among=context.among.narrowed(member.fields))
    generation = db.log.generation
    asked = question.changed(
        db=db, operation=offsets(list(ranks)), context=context, as_offsets=True, start_from=0, limit=None
    )
    for seen in db.context(asked):
        rank = min(ranks[each.place] for each in seen if each.is_match)
        yield _Passage(rank, member, generation, seen)


def _read(db: JITDB, passage: _Passage, question: Question, finish: Callable[[Any, Member], Any]) -> list[Seen]:
    log, member = db.log, passage.member
    if log.generation != passage.generation:
        raise changed_meanwhile(log)
    at = [Place(member.path, each.place) for each in passage.seen]
    if question.as_offsets:
        return [Seen(place, each.is_match, place) for place, each in zip(at, passage.seen, strict=True)]
    select = question.select

    def decode(data: bytes) -> Any:
        record = log.codec.decode(data)
        return record if select is None else selected(record, select)

    found = log.get_many_raw([place.offset for place in at])
    return [
        Seen(finish(decode(data), member), each.is_match, place)
        for data, each, place in zip(found, passage.seen, at, strict=True)
        if data is not None
    ]
