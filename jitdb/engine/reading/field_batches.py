"""The selected fields of an answer as arrays, some thousand records at a time: what tables of any kind are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jitdb.engine.reading.paging import Located, Pages, read_raw
from jitdb.engine.reading.selecting import FieldBatch, Selector
from jitdb.engine.records import Records


class FieldBatches(Pages):
    """Pages of one FieldBatch each. The question selects fields."""

    def batches(self) -> Iterator[FieldBatch]:
        """All of them. Raises LogError, QueryError, DecodeError."""
        for page in iter(self.read, None):
            yield from page.data

    def _data(self, records: Records, found: Located) -> list[Any] | None:
        raw = read_raw(self._manager, records, found.live, found.offsets)
        if raw is None:
            return None
        select = self._question.select
        assert select is not None
        return [Selector(records, select).batch(raw, found.offsets)] if raw else []
