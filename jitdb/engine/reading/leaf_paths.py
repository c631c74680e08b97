"""Which fields the records of an answer have, all of them: what a table's columns are.

A kernel looks for the first record with a field that none before it had. Only such records are decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.paths import Keys
from jitdb.display.columns import DEEPEST, leaf_paths
from jitdb.engine.reading.paging import Located, Pages, read_records
from jitdb.errors import DecodeError, QueryError, Remedy
from jitdb.log.codecs.compiled import build_trie
from jitdb.log.codecs.container_kernels import first_with_more
from jitdb.log.codecs.fields.constants import LIVE
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch, Scratch, known_encoding

if TYPE_CHECKING:
    import threading

    from jitdb.engine.manager import IndexManager
    from jitdb.engine.records import Records
    from jitdb.operators.question import Question

MOST: Final = 10_000  # fields: records with ids for keys have no end of them
_ROWS: Final = 1 << 13  # records looked at together, at most
_BATCH: Final = 1 << 26  # bytes of a batch, about, beyond which it is of fewer records


class LeafPaths(Pages):
    """Goes through an answer. `found`: the fields of its records, in the order in which they come."""

    def __init__(self, manager: IndexManager, question: Question, cancel: threading.Event | None) -> None:
        super().__init__(manager, question, cancel, lambda *_: None)
        self.found: dict[Keys, None] = {}
        self.portion = _ROWS
        self._scratch = Scratch()
        self._trie = build_trie([])

    def look(self) -> dict[Keys, None]:
        """At all of it, or so many records as the question is limited to. Raises QueryError for too many fields."""
        left = self._question.limit
        while left is None or left > 0:
            self.portion = min(self.portion, _ROWS if left is None else left)
            page = self.read()
            if page is None:
                break
            left = None if left is None else left - sum(page.data)
        return self.found

    def _data(self, records: Records, found: Located) -> list[int] | None:
        batch = read_records(self._manager, records, found.offsets, self._scratch)
        if batch is None:
            return None
        if len(batch) and int(batch.lengths.sum()) > _BATCH:
            self.portion = max(self.portion // 2, 1)
        whole = records.log.codec.locator([]).values_at(batch, np.zeros(len(batch), np.int64))
        self._take(records, batch, whole)
        return [len(found.seqs)]

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
                self._trie = build_trie([path for path in self.found if all(map(_is_text, path))])
            first += 1 << min(stops, 13)
            stops += 1  # records of ever other fields are decoded more at a time

    def _decode(self, records: Records, record: bytes) -> None:
        try:
            value = records.log.codec.decode(record)
        except DecodeError:
            return  # who reads its fields tells of it
        self.found.update(dict.fromkeys(leaf_paths(value)))
        if len(self.found) > MOST:
            raise QueryError(
                f"these records have more than {MOST:,} fields, too many for columns",
                remedy=Remedy("select() names those that are wanted", "--fields names those that are wanted"),
            )


def _is_text(key: str) -> bool:
    """Whether it has bytes. Records with other keys are decoded each time."""
    try:
        key.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True
