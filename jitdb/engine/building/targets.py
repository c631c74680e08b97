"""The targets of a scan: each index that it brings up to date, its builder, and the segments that result."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

from jitdb.common.arguments import ENDS, failure
from jitdb.common.paths import Path, before_any
from jitdb.common.values import value_of_key
from jitdb.engine.catalog.catalog import Catalog
from jitdb.engine.text_tests import Texts, joined, matcher_of
from jitdb.errors import IndexDamaged, QueryCancelled, QueryError
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds.bitmaps import distinct_keys
from jitdb.indexes.kinds.builder import Builder, Piece, Pieces, ValueSource
from jitdb.indexes.kinds.dictionary import DictionaryBuilder, TooLarge
from jitdb.indexes.kinds.grams import GramsBuilder
from jitdb.indexes.kinds.numbers import ExtremesBuilder, NumbersBuilder
from jitdb.indexes.kinds.prefixes import PrefixBuilder
from jitdb.indexes.kinds.set_builders import (
    AnywhereBuilder,
    DeletedBuilder,
    OffsetsBuilder,
    PredicateBuilder,
    TextBuilder,
    TextTest,
    ValuesBuilder,
)
from jitdb.indexes.segment import BITMAPS, SPAN, Segment
from jitdb.indexes.spec import Requirement
from jitdb.operators.nodes.anywhere import anywhere_of
from jitdb.operators.nodes.literals import seek_name
from jitdb.operators.nodes.text_match import text_match_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.indexes.spec import IndexSpec
    from jitdb.log.source import ScanSource

T = TypeVar("T")

_VERDICTS: Final = 1 << 12  # values for which a predicate's verdict is remembered
_SHORT_KEY: Final = 256  # bytes of a value: for longer ones it is not


class BuildTarget:
    """An index to bring up to date, and its builder. `emit` takes each finished segment.

    What it was fed is one list, which is right wherever an exception (a Ctrl-C) interrupts.
    """

    def __init__(self, index: Index, builder: Builder, emit: Callable[..., None]) -> None:
        self.index = index
        self.builder = builder
        self.begin_seq, self.begin_offset = index.end_seq, index.end_offset
        self._emit = emit
        self._from = (self.begin_seq, self.begin_offset)  # what is emitted ends here
        self._fed: list[tuple[int, Piece, int]] = []  # first seq, piece, where its last record ends
        self._early = 0  # so many of them are in segments that were emitted early

    @property
    def next_seq(self) -> int:
        """The first record that it was not fed yet."""
        if not self._fed:
            return self._from[0]
        seq, piece, _ = self._fed[-1]
        return seq + piece.records

    def feed(self, piece: Piece, seq: int, ends: NDArray[np.int64]) -> None:
        """Take the records of a slice that the index lacks; `seq` is the slice's first. Emits full spans."""
        at = self.next_seq - seq
        if self.next_seq == self.begin_seq:
            self._check_place(at, ends)
        while at < piece.records:
            first = seq + at
            stop = min(piece.records, at + SPAN - first % SPAN)
            self._fed.append((first, piece.cut(at, stop), int(ends[stop - 1])))
            at = stop
            if (seq + at) % SPAN == 0:
                self.take(self.make(last=False))

    @property
    def is_fed(self) -> bool:
        return bool(self._fed)

    def make(self, last: bool) -> Segment:
        """The segment of all that it was fed since the last one was taken. Changes nothing."""
        return self._made(0, last)

    def make_rest(self) -> Segment | None:
        """The segment of what is in none yet, nor in one that was emitted early. Changes nothing."""
        return self._made(self._early, False) if self._early < len(self._fed) else None

    def take(self, segment: Segment) -> None:
        self._from = (segment.end_seq, segment.end_offset)
        self._fed, self._early = [], 0
        self._emit(segment)

    def save(self) -> None:
        """Emit what is in no segment yet, until the one of the whole span takes its place."""
        segment = self.make_rest()
        if segment is not None:
            self._emit(segment, True)
            self._early = len(self._fed)  # afterwards: emitted twice, a segment takes its own place

    def _made(self, begin: int, last: bool) -> Segment:
        first_seq, first_offset = self._from
        if begin:
            first_seq, first_offset = self._fed[begin][0], self._fed[begin - 1][2]
        run = (first_seq, self.next_seq - first_seq, first_offset, self._fed[-1][2])
        try:
            return self.builder.make(Pieces((seq, piece) for seq, piece, _ in self._fed[begin:]), run, last)
        except TooLarge as error:
            raise QueryError(
                f"what is asked of `{self.index.spec.title}` needs more than there is room for: {error.reason}",
                remedy="ask for values (==, starts_with), or look at each record with a predicate",
            ) from error

    def _check_place(self, at: int, ends: NDArray[np.int64]) -> None:
        """Raise IndexDamaged unless record `at` of a slice begins where the index ends."""
        if 0 <= at < len(ends) and ends[at] > self.begin_offset and (at == 0 or ends[at - 1] == self.begin_offset):
            return
        raise IndexDamaged(
            f"{self.begin_seq} records are indexed up to byte {self.begin_offset}, where the log has another number of "
            f"them now: a block was damaged or repaired since",
            path=self.index.name,
        )


class IndexBuilderFactory:
    """Makes the targets of one scan and numbers the fields that it must locate."""

    def __init__(self, log: ScanSource) -> None:
        self._log = log
        self._rows: dict[Path, int] = {}
        self._ended = threading.Event()
        self._calls = False  # whether any function of the user is called

    @property
    def paths(self) -> list[Path]:
        """The fields to locate, by row."""
        return list(self._rows)

    @property
    def calls(self) -> threading.Event | None:
        """Ends calls of the user's functions once it is set; None if there are none."""
        return self._ended if self._calls else None

    def targets(
        self, needs: Sequence[Requirement], catalog: Catalog, emit: Callable[[Index, Segment], None]
    ) -> list[BuildTarget]:
        pairs = [(need, catalog.get(need.spec)) for need in needs]
        return [BuildTarget(index, self._builder(need, index), partial(emit, index)) for need, index in pairs]

    def _builder(self, need: Requirement, index: Index) -> Builder:
        spec = need.spec
        if spec.form == "offsets":
            return OffsetsBuilder()
        if spec.form == "deleted":
            return DeletedBuilder()
        if spec.form in ("column", "time"):
            unit = spec.name if spec.form == "time" else None
            if spec.is_owned:
                return ExtremesBuilder(self._source(need), spec.largest, unit)
            return NumbersBuilder(tuple(self._row(path) for path in spec.paths), unit)
        if spec.form == "grams":
            return GramsBuilder(self._log)
        if spec.form == "text" and not spec.paths:
            asked = anywhere_of(spec)
            return AnywhereBuilder(asked.value, asked.ignore_case)
        source = self._source(need)
        if spec.form in ("prefix", "prefix_map"):
            return PrefixBuilder(source, spec.prefix_offset, spec.form == "prefix_map")
        if spec.form == "dictionary":
            return DictionaryBuilder(source)
        if spec.form == "predicate":
            accepts = need.accepts
            assert accepts is not None
            return PredicateBuilder(source, self._verdict(accepts, spec.name))
        if spec.form == "text":
            return TextBuilder(source, _text_test(spec))
        hashed = index.kind not in (0, BITMAPS)
        keys = set() if hashed else distinct_keys(index.segments)
        return ValuesBuilder(source, limited=spec.form == "auto", hashed=hashed, keys=keys)

    def _source(self, need: Requirement) -> ValueSource:
        spec = need.spec
        included = spec.pluck if spec.elements else None
        if need.seek is not None:
            return ValueSource(-1, self._until_ended(need.seek, seek_name(need.seek)), included=included)
        path = spec.paths[0]
        single = before_any(path)
        return ValueSource(self._row(single), None, path[len(single) :], included)

    def _until_ended(self, function: Callable[..., T], what: str) -> Callable[..., T]:
        """The user's function, until the scan ends: a slow function must not delay that."""
        self._calls = True

        @wraps(function)
        def call(*arguments: Any) -> T:
            if self._ended.is_set():
                raise QueryCancelled("the scan was ended")
            try:
                return function(*arguments)
            except ENDS as error:
                raise failure(what, error) from error

        return call

    def _verdict(self, accepts: Callable[[Any], object], name: str) -> Callable[[bytes], bool]:
        """Whether the user's function accepts the value with a key. It is called about once for each value."""
        ask = self._until_ended(accepts, f"the predicate {name!r}")
        known: dict[bytes, bool] = {}

        def verdict(key: bytes) -> bool:
            found = known.get(key)
            if found is None:
                found = bool(ask(value_of_key(key)))
                if len(key) <= _SHORT_KEY:
                    if len(known) >= _VERDICTS:
                        known.clear()
                    known[key] = found
            return found

        return verdict

    def _row(self, path: Path) -> int:
        return self._rows.setdefault(path, len(self._rows))


def _text_test(spec: IndexSpec) -> TextTest:
    """The test that keys pass which an index of matches in text holds."""
    test = matcher_of(text_match_of(spec))

    def tested(buffer: NDArray[np.uint8], ends: NDArray[np.uint32]) -> NDArray[np.bool_]:
        return joined([test(part) for part in Texts(buffer, ends).parts()])

    return tested
