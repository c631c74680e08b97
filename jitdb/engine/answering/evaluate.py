"""From indexes to the set of records that a question is true of.

Every set here is a set of *live* records below one horizon (`end_seq`), so `and`, `or` and `not` combine truths, and
a count needs no correction. What a leaf matches is remembered and extended by the new records' share.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from itertools import islice
from operator import and_
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np
from pyroaring import BitMap

from jitdb.common import memory
from jitdb.engine.answering.candidate_filter import CandidateFilter, records_matching, size_of
from jitdb.engine.catalog.catalog import Catalog
from jitdb.engine.declared_time import CoreFields
from jitdb.engine.plan import Serving
from jitdb.engine.records import Records
from jitdb.errors import QueryError
from jitdb.indexes.kinds.bitmaps import ABSENT_KEY, records_with
from jitdb.indexes.kinds.numbers import Comparison, compare
from jitdb.indexes.kinds.prefixes import candidates, records_present
from jitdb.indexes.kinds.remap import Renumbering
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_mask, bitmap_of_range, union_of
from jitdb.indexes.kinds.set import records_in_sets
from jitdb.indexes.segment import BITMAPS, PREFIX_MAP, PREFIXES, Segment
from jitdb.indexes.spec import OFFSETS, IndexSpec
from jitdb.operators.nodes.operation import And, Not, Operation, Or

if TYPE_CHECKING:
    from jitdb.indexes.files.index import Index

T = TypeVar("T")

CONFIRMED_AT_ONCE: Final = 1024  # candidates; more of them are read without holding the lock
_LOOKED_AT_TO_SEE: Final = 64  # candidates that are read to see whether any match
LOOKED_AT_ONCE: Final = 1 << 18  # bytes of texts; more of them are looked at without holding the lock
_NOTHING_READ: Final = (BitMap(), BitMap())
REMEMBERED: Final = 4096  # leaves whose matches are kept
_BEING_READ: Final = 256  # leaves whose candidates were read for a question that is asked again now, or was cancelled


class Unconfirmed(Exception):
    """A leaf has too many candidates to read, or look at, while holding the engine's lock.

    The caller runs `read` without the lock, and then asks again.
    """

    def __init__(self, read: Callable[[threading.Event | None], None]) -> None:
        super().__init__()
        self.read = read


class Reading(NamedTuple):
    """How much of the log a question must still read to check the candidates that prefix indexes name."""

    candidates: int  # of the records that are indexed
    bytes: int  # at most: all blocks that have a candidate, and what is not indexed yet


class _LeafMatches(NamedTuple):
    """The records that a leaf matches: live ones below end_seq, as of one state of the deletions."""

    bitmap: BitMap
    end_seq: int
    deletions: int

    @property
    def bytes(self) -> int:
        """About what the set takes in memory."""
        return min(2 * len(self.bitmap), self.end_seq // 8)


class Evaluator:
    """Answers operations with sets. Guarded by the engine's lock."""

    def __init__(self, catalog: Catalog, records: Records, core: CoreFields, serving: Serving) -> None:
        self.catalog = catalog
        self.serving = serving
        self.records = records
        self.core = core
        self._known: OrderedDict[Any, _LeafMatches] = OrderedDict()  # the one that was asked for last stands last
        self._held = memory.Held()  # by their sets, about: a dense one has a bit a record
        self._filter = CandidateFilter(records)
        self._looked_at: dict[Any, dict[Segment, BitMap]] = {}  # of leaves: what they match in segments
        self._read: dict[Any, tuple[BitMap, BitMap]] = {}  # of leaves: candidates that were read, and those that match

    def matches(self, operation: Operation, end_seq: int) -> BitMap:
        """The live records below `end_seq` that the operation is true of. Not to be changed by the caller.

        The indexes it needs must cover them. Raises IndexDamaged.
        """
        return operation.records(partial(self._leaf, end_seq=end_seq), partial(self.records.live, end_seq))

    def count(self, operation: Operation, end_seq: int) -> int:
        """How many matches() would give, without making the last set."""
        if isinstance(operation, And) and len(operation.args) == 2:
            left, right = operation.args
            return int(self.matches(left, end_seq).intersection_cardinality(self.matches(right, end_seq)))
        if isinstance(operation, Or) and len(operation.args) == 2:
            left, right = operation.args
            return int(self.matches(left, end_seq).union_cardinality(self.matches(right, end_seq)))
        if isinstance(operation, Not):
            return len(self.records.live(end_seq)) - self.count(operation.arg, end_seq)
        return len(self.matches(operation, end_seq))

    def has_match(self, leaf: Operation, end_seq: int) -> bool:
        """Whether it is true of a live record; of a leaf's many candidates only the first few are read to see that."""
        if leaf.children():
            return self.count(leaf, end_seq) > 0
        known = self._known.get(leaf.identity)
        if known is not None and known.end_seq >= end_seq:
            return bool(self._leaf(leaf, end_seq))
        asked = _Asked(self, leaf, 0, end_seq)
        if asked.names_candidates:
            named = asked.named() - self.records.deleted
            return bool(self._filter.matches(leaf, BitMap(islice(named, _LOOKED_AT_TO_SEE))))
        return bool(self.matches(leaf, end_seq))

    def forget(self) -> None:
        self._known.clear()
        self._read.clear()
        self._looked_at.clear()
        self._held.clear()

    def _leaf(self, leaf: Operation, end_seq: int) -> BitMap:
        key, records = leaf.identity, self.records
        known = self._known.get(key)
        if known is None:
            known = _LeafMatches(BitMap(), 0, records.deletions)
        else:
            self._known.move_to_end(key)
        if known.end_seq < end_seq:
            found = self._find(leaf, known.end_seq, end_seq) - records.deleted
            bitmap = known.bitmap | found if known.end_seq else found
            known = self._remember(key, known._replace(bitmap=bitmap, end_seq=end_seq))
        if known.deletions != records.deletions:
            bitmap = known.bitmap - records.deleted
            known = self._remember(key, known._replace(bitmap=bitmap, deletions=records.deletions))
        return known.bitmap & bitmap_of_range(0, end_seq) if known.end_seq > end_seq else known.bitmap

    def _remember(self, key: Any, matches: _LeafMatches) -> _LeafMatches:
        before = self._known.get(key)
        self._held.add(matches.bytes - (0 if before is None else before.bytes))
        self._known[key] = matches
        most = memory.for_sets()  # of all databases together: who has more to remember makes room
        while len(self._known) > 1 and (len(self._known) > REMEMBERED or self._held.total > most):
            self._held.add(-self._known.popitem(last=False)[1].bytes)
        return matches

    def _find(self, leaf: Operation, start: int, stop: int) -> BitMap:
        """The records of [start, stop) that the leaf matches, deleted ones perhaps among them."""
        found = leaf.answer(_Asked(self, leaf, start, stop))
        window = bitmap_of_range(start, stop)
        return found if found.issubset(window) else found & window

    def unread(self, operation: Operation) -> Reading:
        """How much of the log must be read to check all candidates. Reads only indexes. Raises IndexDamaged."""
        offsets, end = self.catalog.get(OFFSETS), self.records.log.durable_end
        records = size = 0
        for leaf in operation.leaves():
            known = self._known.get(leaf.identity)
            start = known.end_seq if known is not None else 0
            asked = _Asked(self, leaf, start, max(start, offsets.end_seq))
            if not asked.names_candidates:
                continue
            index = asked.index
            rest = self._rest(leaf, asked.named())
            records += len(rest)
            size += self.records.block_bytes(rest) + max(0, end - min(index.reached, offsets.reached))
        return Reading(records, size)

    def _rest(self, leaf: Operation, found: BitMap) -> BitMap:
        """The candidates that must be read."""
        return found - self.records.deleted - self._read.get(leaf.identity, _NOTHING_READ)[0]

    def confirmed(self, leaf: Operation, found: BitMap) -> BitMap:
        """The candidates that match. Raises Unconfirmed where too many are unread."""
        rest, (read, kept) = self._rest(leaf, found), self._read.get(leaf.identity, _NOTHING_READ)
        # A function of the user is never called with the lock: it may take long, or ask the database itself.
        at_once = CONFIRMED_AT_ONCE if leaf.seek is None else 0
        if len(rest) > at_once:
            segments = self.records.offset_segments()  # where they lie now, which needs no lock

            def read_them(cancel: threading.Event | None) -> None:
                matches = CandidateFilter(self.records, segments, cancel).matches(leaf, rest)
                _put(self._read, leaf.identity, (read | rest, kept | matches))  # at once: no lock is held

            raise Unconfirmed(read_them)
        self._read.pop(leaf.identity, None)
        return self._filter.matches(leaf, rest) | (kept & found)

    def with_text(self, leaf: Operation, segments: Sequence[Segment]) -> BitMap:
        """The records of these segments whose text matches. Raises Unconfirmed where there is much to look at."""
        known = self._looked_at.pop(leaf.identity, {})
        rest = [segment for segment in segments if segment not in known]
        if sum(map(size_of, rest)) > LOOKED_AT_ONCE:

            def look(cancel: threading.Event | None) -> None:
                found = {segment: records_matching(leaf, segment, cancel) for segment in rest}
                _put(self._looked_at, leaf.identity, found | known)

            raise Unconfirmed(look)
        return union_of(known[seg] if seg in known else records_matching(leaf, seg) for seg in segments)


def _put(held: dict[Any, T], key: Any, value: T) -> None:
    """Keep it until the question is asked again; only the latest, for a cancelled question never is."""
    held[key] = value
    for oldest in list(held)[:-_BEING_READ]:
        held.pop(oldest, None)


class _Asked:
    """A leaf, with the index that answers it, about the records of [start, stop): Answering of operators."""

    def __init__(self, evaluator: Evaluator, leaf: Operation, start: int, stop: int) -> None:
        self.core = evaluator.core
        self._evaluator, self._leaf, self._start, self._stop = evaluator, leaf, start, stop
        self._need = evaluator.serving.needed(leaf, self.core)

    @property
    def _spec(self) -> IndexSpec:
        assert self._need is not None
        return self._need.spec

    @property
    def form(self) -> str:
        return self._spec.form

    @property
    def index(self) -> Index:
        return self._evaluator.catalog.get(self._spec)

    @property
    def _segments(self) -> Sequence[Segment]:
        return self.index.since(self._start)

    @property
    def names_candidates(self) -> bool:
        """Whether the index has prefixes; False too where that is not known before it is built."""
        if self._need is None or self._leaf.prefixes(self._spec.prefix_offset) is None:
            return False
        kind = self.index.kind
        return kind in (PREFIXES, PREFIX_MAP) or (kind == 0 and self.form in ("prefix", "prefix_map"))

    def named(self) -> BitMap:
        """The records that have a prefix which what the leaf asks for has."""
        prefixes = self._leaf.prefixes(self._spec.prefix_offset)
        assert prefixes is not None
        found = union_of(candidates(segment, *prefixes) for segment in self._segments)
        return found & bitmap_of_range(self._start, self._stop)

    def candidates(self) -> BitMap:
        return self._evaluator.confirmed(self._leaf, self.named())

    def with_value(self, key: bytes) -> BitMap:
        return records_with(self._segments, key) if self.index.kind == BITMAPS else self.candidates()

    def without_value(self) -> BitMap:
        if self.index.kind == BITMAPS:
            return records_with(self._segments, ABSENT_KEY)
        there = union_of(records_present(segment) for segment in self._segments)
        return bitmap_of_range(self._start, self._stop) - there

    def marked(self) -> BitMap:
        return records_in_sets(self._segments)

    def with_text(self, match: Operation) -> BitMap:
        return self._evaluator.with_text(match, self._segments)

    def in_column(self, *bounds: tuple[Comparison, int | float]) -> BitMap:
        return union_of(_compared(segment, bounds) for segment in self._segments)

    def at_seqs(self, packed: bytes) -> BitMap:
        numbers = np.frombuffer(packed, "<u8")
        return bitmap_of(np.unique(numbers[numbers < self._stop]).astype(np.uint32))

    def at_offsets(self, packed: bytes) -> BitMap:
        return self._evaluator.records.seqs_at(np.frombuffer(packed, "<u8"))

    def in_stretches(self, parts: Iterable[tuple[int, int]]) -> BitMap:
        rank = self._evaluator.records.rank
        return union_of([bitmap_of_range(rank(begin), rank(end)) for begin, end in parts])

    def in_set(self, log: bytes, generation: int, packed: bytes) -> BitMap:
        seqs, now = BitMap.deserialize(packed), self._evaluator.records.log
        if not seqs or (now.identity, now.generation) == (log, generation):
            return seqs
        removals = now.removals(generation) if now.identity == log else None
        if removals is None:
            raise QueryError(
                "the set is of another log, or of this one before it was truncated, replaced, or compacted so often "
                "that it is not known any more which records went",
                path=now.path,
                remedy="ask again for what the set was made of",
            )
        return Renumbering(removals).of_set(seqs)


def _compared(segment: Segment, bounds: Sequence[tuple[Comparison, int | float]]) -> BitMap:
    masks = [compare(segment, op, bound) for op, bound in bounds]
    there = [mask for mask in masks if mask is not None]
    return bitmap_of_mask(reduce(and_, there), segment.first_seq) if len(there) == len(masks) else BitMap()
