"""Batches of values into a log, each durable once and whole, also through failures."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

from jitdb.errors import LogError
from jitdb.handlers.plain import shortened, told
from jitdb.log import Log
from jitdb.log.blocks.block_format import largest_record
from jitdb.log.io.filenames import followed


class BatchWriter:
    """Writes to the log at `path`, which it opens, and opens again after a failure. For one thread."""

    def __init__(self, path: Path, codec: str | None, block_size: int | None) -> None:
        self._path, self._codec, self._block_size = path, codec, block_size
        self._log: Log | None = None
        self._since: int | None = None  # offset of the last record that is known to be durable
        self._records: list[bytes] | None = None  # of a batch that failed: what of it is not in the log

    def open(self) -> Log:
        """The log. Raises LogError, CodecError."""
        if self._log is None:
            followed(os.fspath(self._path), is_written=True)
            self._log = Log(self._path, codec=self._codec, block_size=self._block_size)
            if self._since is None:
                self._since = self._log.since
            elif self._records:
                self._pass_over(self._log, self._records)
        return self._log

    def write(self, values: list[dict[str, Any]]) -> None:
        """Return when all of them are durable.

        Raises LogError, after which it must be called with the same values, until it succeeds: what of them had come
        into the log is found there, and not written twice.
        """
        log = self.open()
        if self._records is None:
            self._records = [_encoded(value, log) for value in values]
        try:
            _append(log, self._records)
            log.flush()
        except LogError:
            self.close()
            raise
        self._since, self._records = log.since, None

    def close(self) -> None:
        """Close the log, if it is open."""
        log, self._log = self._log, None
        if log is not None:
            with suppress(LogError):  # of a write that failed before, and was told of
                log.close()

    def _pass_over(self, log: Log, records: list[bytes]) -> None:
        """Forget those records that are in the log already."""
        there = 0
        for record in log.stream(gt=self._since, raw=True):
            if there == len(records) or record.value != records[there]:
                break
            there += 1
        del records[:there]


def _append(log: Log, records: list[bytes]) -> None:
    if records:
        from jitdb.log.codecs.fields.located import RecordBatch  # with numpy, which opening a log does without

        batch = RecordBatch.of(records)
        log.append_encoded(batch.buffer, batch.lengths)


def _encoded(value: dict[str, Any], log: Log) -> bytes:
    """The record of this value; where it has none, of what of it fits, and says so."""
    largest = largest_record(log.block_size)
    try:
        record = log.codec.encode(value)
    except Exception as error:  # whatever a codec raises: others wait behind this one
        value = _refused(value, error, largest)
        record = log.codec.encode(value)
    if len(record) <= largest:
        return record
    size = largest
    while len(record) > largest:
        size //= 2
        record = log.codec.encode({**shortened(value, size), "truncated": len(record)})
    return record


def _refused(value: dict[str, Any], error: Exception, largest: int) -> dict[str, Any]:
    when = value.get("timestamp")
    now = float(when) if isinstance(when, int | float) and isfinite(when) else time.time() * 1000
    return {"timestamp": now, "message": repr(value)[: largest // 8], "refused": told(str(error))[: largest // 8]}
