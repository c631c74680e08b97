"""The selected fields of an answer as arrays, some thousand records at a time: tables of any kind are made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.common import memory
from jitdb.common.values import NUMBER
from jitdb.display.columns import DEEPEST, leaf_paths
from jitdb.engine.answering.passing import passing
from jitdb.engine.reading.indexed_fields import IndexedFields, needs_of
from jitdb.engine.reading.paging import Located, Pages, Snapshot, located
from jitdb.engine.reading.selecting import CodedValues, FieldBatch, Selector
from jitdb.engine.records import Records
from jitdb.errors import DecodeError, LogError, QueryError, Remedy
from jitdb.log.codecs.compiled import build_trie
from jitdb.log.codecs.container_kernels import first_with_more
from jitdb.log.codecs.fields.constants import LIVE
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch, Scratch, known_encoding

if TYPE_CHECKING:
    import threading

    from numpy.typing import NDArray

    from jitdb.common.paths import Keys
    from jitdb.engine.answering.order import Answer
    from jitdb.engine.manager import IndexManager
    from jitdb.engine.plan import Needs
    from jitdb.log.codecs.compiled import Trie
    from jitdb.operators.question import Question


ROWS: Final = 1 << 13  # records of a batch, at most
_MOST_BYTES: Final = 64 << 20  # that are read for a batch, about: a larger one gets fewer records
_FEWEST: Final = 64  # records of a batch, however large they are
_INDEXED: Final = 4  # times as many records are in a batch that indexes have, if they are not limited,
_MOST_TEXT: Final = 8 << 20  # until their texts take more bytes
_FEW_BYTES: Final = 1 << 20  # of them, which need not be added up
MOST_FIELDS: Final = 10_000  # in all records: those with ids for keys have no end of them


class FieldBatches(Pages):
    """Pages of one FieldBatch each. The question selects fields.

    is_keyed:  with the declared times of the records
    is_placed: with their offsets, also where indexes have the fields
    """

    is_keyed = False
    is_placed = False
    _indexed: IndexedFields | None = None
    _selector: Selector | None = None
    _keys: NDArray[np.float64] | None = None  # of the records that are read now

    def batches(self) -> Iterator[FieldBatch]:
        """All of them. Raises LogError, QueryError, DecodeError."""
        for page in iter(self.read, None):
            yield from page.data

    def _choose(self, answer: Answer) -> NDArray[np.uint32]:
        seqs = super()._choose(answer)
        self._keys = answer.order.keys(seqs) if self.is_keyed and answer.order is not None else None
        return seqs

    def _also(self) -> Needs:
        manager, select = self._manager, self._question.select
        if not select or manager.log.framing.keeps_malformed:  # indexes do not tell what cannot be decoded
            return super()._also()
        with manager.lock:
            return (*super()._also(), *needs_of(manager.catalog, select))

    def _hold(self, answer: Answer, end: int) -> Snapshot:
        held, select = super()._hold(passing(answer, self._question.descending), end), self._question.select
        self._indexed = None
        if select and not held.records.log.framing.keeps_malformed:
            self._indexed = IndexedFields.of(self._manager.catalog, select, end)
        if self._indexed is not None and self.portion == ROWS:
            self.portion = _INDEXED * ROWS
        return held

    def _from_indexes(self, held: Snapshot, indexed: IndexedFields) -> tuple[Located, list[Any]] | None:
        """The next records; None where the log must be read."""
        at = located(self._manager, held.records, lambda: self._choose(held.answer), are_placed=self.is_placed)
        fields = indexed.read(at.live)
        if fields is None:
            self._indexed, self.portion = None, min(self.portion, ROWS)
            return None
        texts = sum(map(_text_bytes, fields))
        if texts > _MOST_TEXT:
            self.portion = max(self.portion // 4, _FEWEST)
        assert self._question.select is not None
        batch = FieldBatch(self._question.select, at.live, at.offsets, fields)
        return at, [batch.changed(keys=self._keys_of(at))] if len(at.live) else []

    def _keys_of(self, at: Located) -> NDArray[np.float64] | None:
        return None if self._keys is None else self._keys[:, np.isin(at.seqs, at.live)]

    def _rows(self, held: Snapshot) -> tuple[Located, list[Any]]:
        if self._indexed is not None and (found := self._from_indexes(held, self._indexed)) is not None:
            return found
        while True:
            at = located(self._manager, held.records, lambda: self._choose(held.answer))
            if (
                self.portion <= _FEWEST
                or not self._question.select
                or _bytes_about(at, held.records) <= memory.work(_MOST_BYTES)
            ):
                return at, self._data(held.records, at)
            self.portion = max(self.portion // 4, _FEWEST)

    def _data(self, records: Records, at: Located) -> list[Any]:
        if not len(at.live):
            return []
        return [self._batch(records, at).changed(keys=self._keys_of(at))]

    def _batch(self, records: Records, at: Located) -> FieldBatch:
        select = self._question.select
        assert select is not None
        if not select:  # places alone, which indexes know
            return FieldBatch(select, at.live, at.offsets, [])
        if self._selector is None or self._selector.records is not records:
            self._selector = Selector(records, select)
        return self._selector.read(at.live, at.offsets)


def _text_bytes(values: FieldValues | CodedValues) -> int:
    """Bytes of the texts that records have; or more, if there are few of them."""
    held, codes = values if isinstance(values, CodedValues) else (values, slice(None))
    sizes = np.where(held.kind > NUMBER, held.length, 0)
    count = len(sizes) if isinstance(codes, slice) else len(codes)
    most = int(sizes.max(initial=0)) * count
    return most if most <= _FEW_BYTES else int(sizes[codes].sum(dtype=np.int64))


def _bytes_about(at: Located, records: Records) -> int:
    """How many bytes are read for these records; 0 where they lie closer than _MOST_BYTES."""
    if not len(at.offsets) or int(at.offsets.max() - at.offsets.min()) < memory.work(_MOST_BYTES):
        return 0
    return records.log.bytes_to_read(at.offsets)


def passes(
    manager: IndexManager,
    question: Question,
    cancel: threading.Event | None,
    tell: Callable[[Question, bool], object],
    *,
    are_placed: bool,
) -> Callable[[], Iterator[FieldBatch]]:
    """A function that reads the answer each time that it is called: the records that it had the first time, without
    those that were deleted since; at most the question's limit. are_placed: with their offsets
    """
    asked = question.changed(limit=portion_of(question), batch=None)

    def batches() -> Iterator[FieldBatch]:
        nonlocal asked
        pages = FieldBatches(manager, asked, cancel, tell)
        pages.is_placed = are_placed
        page = pages.read()
        if page is not None and asked.as_of is None:
            with suppress(LogError):  # it was compacted just now
                asked = asked.changed(as_of=pages.place())
        while page is not None:
            yield from page.data
            page = pages.read()

    return lambda: first_of(batches(), question.limit)


def portion_of(question: Question) -> int:
    """How many of its records are read at a time."""
    return ROWS if question.limit is None else min(ROWS, question.limit)


def first_of(batches: Iterable[FieldBatch], most: int | None) -> Iterator[FieldBatch]:
    """The batches, cut after `most` records."""
    left = most
    for batch in batches:
        if left is not None and len(batch) >= left:
            yield batch.first(left)
            return
        yield batch
        left = None if left is None else left - len(batch)


# --- which fields there are -------------------------------------------------------------------------------------------


class LeafPaths(Pages):
    """Goes through an answer. `found`: all fields that its records have, in the order in which they come, behind those
    that are `known`.

    A kernel looks for the first record with a field that none before it had. Only such records are decoded.
    """

    def __init__(
        self, manager: IndexManager, question: Question, cancel: threading.Event | None, known: Iterable[Keys] = ()
    ) -> None:
        super().__init__(manager, question, cancel, lambda *_: None)
        self.found: dict[Keys, None] = dict.fromkeys(known)
        self.portion = ROWS
        self._scratch = Scratch()
        self._trie = _trie_of(self.found)

    def look(self) -> dict[Keys, None]:
        """Read all of it, or the question's limit. Raises QueryError for too many fields."""
        left = self._question.limit
        while left is None or left > 0:
            self.portion = min(self.portion, ROWS if left is None else left)
            page = self.read()
            if page is None:
                break
            left = None if left is None else left - sum(page.data)
        return self.found

    def _data(self, records: Records, at: Located) -> list[int]:
        batch = records.read_batch(at.offsets, self._scratch)
        if len(batch) and int(batch.lengths.sum()) > memory.work(_MOST_BYTES):
            self.portion = max(self.portion // 2, 1)
        whole = records.log.codec.locator([]).values_at(batch, np.zeros(len(batch), np.int64))
        self._take(records, batch, whole)
        return [len(at.seqs)]

    def _take(self, records: Records, batch: RecordBatch, whole: FieldValues) -> None:
        encoding = known_encoding(whole.encoding)
        first, stops, stack = 0, 0, np.empty(4 * DEEPEST, np.int64)
        while True:
            trie = self._trie
            first = first_with_more(
                encoding, whole.buffer, whole.kind, whole.start, whole.length, first,
                trie.first_child, trie.next_sibling, trie.key_start, trie.key_length, trie.field, trie.keys, stack,
            )  # fmt: skip
            if first >= len(batch):
                return
            known = len(self.found)
            for number in range(first, min(first + (1 << min(stops, 13)), len(batch))):
                if batch.states[number] == LIVE:
                    self._decode(records, batch.record(number))
            if len(self.found) > known:
                self._trie = _trie_of(self.found)
            first += 1 << min(stops, 13)
            stops += 1  # where each record has other fields, more of them are decoded at a time

    def _decode(self, records: Records, record: bytes) -> None:
        try:
            value = records.log.codec.decode(record)
        except DecodeError:
            return  # reading its fields raises it again
        self.found.update(dict.fromkeys(leaf_paths(value)))
        if len(self.found) > MOST_FIELDS:
            raise QueryError(
                f"these records have more than {MOST_FIELDS:,} fields, too many for columns",
                remedy=Remedy("select() names those that are wanted", "--fields names those that are wanted"),
            )


def _trie_of(found: Iterable[Keys]) -> Trie:
    return build_trie([path for path in found if all(map(_is_text, path))])


def _is_text(key: str) -> bool:
    """Whether it has UTF-8 bytes. Records with other keys are decoded each time."""
    try:
        key.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True
