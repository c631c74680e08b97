"""Iterators that are held through whatever happens to a log and its indexes, against a plain list."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from index_cases import spans_of
from thoroughness import tries

from jitdb import JITDB, Log
from jitdb.engine.reading.feed import Feed
from jitdb.engine.reading.paging import Page
from jitdb.operators import equal, everything, gte, includes, not_
from jitdb.operators.nodes.operation import Operation

QUESTIONS: list[tuple[Operation, Callable[[dict[str, Any]], bool]]] = [
    (everything(), lambda record: True),
    (includes("tags", "a"), lambda record: "a" in record["tags"]),
    (equal("type", "post"), lambda record: record["type"] == "post"),
    (not_(equal("type", "post")), lambda record: record["type"] != "post"),
    (equal("key", "k3", prefix=32), lambda record: record["key"] == "k3"),
    (gte(3, "timestamp"), lambda record: record.get("timestamp", -1) >= 3),
]

shapes = st.tuples(
    st.sampled_from(["post", "vote"]),
    st.lists(st.sampled_from("abc"), max_size=2),
    st.integers(0, 5),
    st.none() | st.integers(0, 9),
)


@dataclass
class Known:
    """A record as the plain list has it."""

    id: int
    value: dict[str, Any]
    deleted: bool = False
    flushed: bool = False  # its deletion, so that readers know of it


@dataclass
class Side:
    """One who asks: the writer, or a reader beside him."""

    db: JITDB
    is_reader: bool
    visible: int = 0  # records that it has seen

    def sees(self, known: Known) -> bool:
        return not (known.flushed if self.is_reader else known.deleted)


@dataclass
class Held:
    """A started `pages()`, and what it has still to give."""

    side: Side
    pages: Iterator[Page]
    limit: int
    rest: list[Known]
    what: str


@dataclass
class HeldFeed:
    """A feed, and the id of the first record that it was not asked for yet."""

    side: Side
    feed: Feed
    fits: Callable[[dict[str, Any]], bool]
    limit: int
    place: int
    operation: Operation = field(repr=False)


def declared(known: Known) -> tuple[bool, int, int]:
    when = known.value.get("timestamp")
    return (when is not None, when or 0, known.id)


class HeldIterators(RuleBasedStateMachine):
    @initialize(span=st.sampled_from([8, 64, 1 << 20]), first=st.lists(shapes, min_size=1, max_size=40))
    def make(self, span: int, first: list[Any]) -> None:
        self.spans = spans_of(span)
        self.spans.__enter__()
        self.folder = Path(tempfile.mkdtemp())
        self.known: list[Known] = []
        self.pages: list[Held] = []
        self.feeds: list[HeldFeed] = []
        path = self.folder / "log"
        self.log = Log(path, codec="msgpack", block_size=512, flush_interval=3600)
        self.writer = Side(JITDB(self.log), False)
        self._append(first)
        self.reader = Side(JITDB(Log(path, read_only=True)), True, len(self.known))

    def _append(self, some: list[Any]) -> None:
        for kind, tags, key, when in some:
            value = {"id": len(self.known), "type": kind, "tags": tags, "key": f"k{key}", "pad": "x" * (5 * key)}
            if when is not None:
                value["timestamp"] = when
            self.log.append(value)
            self.known.append(Known(len(self.known), value))
        self.flush()
        self.writer.visible = len(self.known)

    # --- what happens ----------------------------------------------------------------------------------------------

    @rule(some=st.lists(shapes, min_size=1, max_size=8))
    def append(self, some: list[Any]) -> None:
        self._append(some)

    @rule(chosen=st.lists(st.integers(0, 200), min_size=1, max_size=6))
    def delete(self, chosen: list[int]) -> None:
        """Deletes at first, to be flushed some other time."""
        offsets = {record.value["id"]: record.offset for record in self.log.stream()}
        for at in chosen:
            known = self.known[at % len(self.known)]
            if not known.deleted:
                self.log.delete(offsets[known.id])
                known.deleted = True

    @rule()
    def flush(self) -> None:
        self.log.flush()
        for known in self.known:
            known.flushed = known.deleted

    @rule()
    def compact(self) -> None:
        self.writer.db.compact()
        self.flush()
        self.refresh()

    @rule(by_reader=st.booleans(), part=st.sampled_from([0, 0, 0.5, 0.9]))
    def reindex(self, by_reader: bool, part: float) -> None:
        side = self.reader if by_reader else self.writer
        side.db.reindex(int(part * self.log.durable_end))

    @rule()
    def refresh(self) -> None:
        self.reader.db.refresh()
        self.reader.visible = len(self.known)

    @rule(by_reader=st.booleans(), chosen=st.sampled_from(QUESTIONS))
    def ask(self, by_reader: bool, chosen: Any) -> None:
        side = self.reader if by_reader else self.writer
        operation, fits = chosen
        there = [k for k in self.known[: side.visible] if fits(k.value) and side.sees(k)]
        assert side.db.count(operation) == len(there)
        got = [record["id"] for record in side.db.all(operation)]
        assert got == [known.id for known in sorted(there, key=declared)]

    # --- pages -----------------------------------------------------------------------------------------------------

    @rule(
        by_reader=st.booleans(),
        chosen=st.sampled_from(QUESTIONS),
        limit=st.sampled_from([1, 3, 3, 7]),
        descending=st.booleans(),
        arrival=st.sampled_from([False, False, True]),
        start=st.sampled_from([0, 0, 2]),
        as_of=st.none() | st.integers(0, 200),
    )
    def begin_pages(
        self, by_reader: bool, chosen: Any, limit: int, descending: bool, arrival: bool, start: int, as_of: int | None
    ) -> None:
        side = self.reader if by_reader else self.writer
        operation, fits = chosen
        visible = self.known[: side.visible]
        offset = None
        if as_of is not None:
            live = [record for record in side.db.log.stream() if record.value["id"] < side.visible]
            if not live:
                return
            last = live[as_of % len(live)]
            offset, visible = last.offset, visible[: last.value["id"] + 1]
        there = [known for known in visible if fits(known.value) and side.sees(known)]
        there.sort(key=(lambda known: known.id) if arrival else declared, reverse=descending)
        pages = side.db.pages(
            operation, limit=limit, start_from=start, descending=descending, as_of=offset,
            sort_by="arrival" if arrival else "declared",
        )  # fmt: skip
        what = f"{operation} {limit=} {descending=} {arrival=} {start=} {as_of=} {by_reader=}"
        held = Held(side, pages, limit, there[start:], what)
        self._read(held)  # an answer is that of its first page
        self.pages.append(held)

    @precondition(lambda self: self.pages)
    @rule(data=st.data())
    def read_page(self, data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(range(len(self.pages))))
        if not self._read(self.pages[held]):
            self.pages.pop(held)

    def _read(self, held: Held) -> bool:
        page = next(held.pages, None)
        there = [known for known in held.rest if held.side.sees(known)]
        if page is None:
            assert there == [], held.what
            return False
        got = [record["id"] for record in page]
        assert 0 < len(got) <= held.limit
        assert got == [known.id for known in there[: len(got)]], held.what
        held.rest = held.rest[held.rest.index(there[len(got) - 1]) + 1 :]
        return True

    # --- feeds -----------------------------------------------------------------------------------------------------

    @rule(
        by_reader=st.booleans(), chosen=st.sampled_from(QUESTIONS), limit=st.sampled_from([1, 3, 50]), old=st.booleans()
    )
    def begin_feed(self, by_reader: bool, chosen: Any, limit: int, old: bool) -> None:
        side = self.reader if by_reader else self.writer
        operation, fits = chosen
        feed = side.db.feed(operation, limit=limit, old=old)
        self.feeds.append(HeldFeed(side, feed, fits, limit, 0 if old else side.visible, operation))

    @precondition(lambda self: self.feeds)
    @rule(data=st.data())
    def read_feed(self, data: st.DataObject) -> None:
        held = self.feeds[data.draw(st.sampled_from(range(len(self.feeds))))]
        side = held.side
        there = [k for k in self.known[held.place : side.visible] if held.fits(k.value) and side.sees(k)]
        portion = held.feed.read()
        if portion is None:
            assert there == []
            return
        got = [record["id"] for record in portion.data]
        assert 0 < len(got) <= held.limit
        assert got == [known.id for known in there[: len(got)]]
        held.place = got[-1] + 1

    @precondition(lambda self: self.feeds)
    @rule(data=st.data())
    def go_on_from_a_cursor(self, data: st.DataObject) -> None:
        held = self.feeds[data.draw(st.sampled_from(range(len(self.feeds))))]
        cursor = held.feed.cursor
        held.feed.close()
        held.feed = held.side.db.feed(held.operation, limit=held.limit, after=cursor)

    def teardown(self) -> None:
        try:
            if hasattr(self, "log"):
                for held in self.pages:
                    while self._read(held):
                        pass
        finally:
            if hasattr(self, "log"):
                self.spans.__exit__(None, None, None)
                self.reader.db.close()
                self.log.close()
                shutil.rmtree(self.folder)


HeldIterators.TestCase.settings = settings(
    max_examples=tries(8, 200), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestHeldIterators = HeldIterators.TestCase
