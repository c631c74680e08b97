"""The records of lines as scans of chunks find them."""

from __future__ import annotations

from typing import Any

from jitdb.log.lines.line_log import LineLog


def walked(log: LineLog, most: int) -> list[tuple[int, Any]]:
    """Each record and its offset, in chunks of so many bytes, each by a walker that knows nothing of the others."""
    found: list[tuple[int, Any]] = []
    for begin in range(0, log.durable_end, most):
        walker = log.framing.walker(log, most, log.durable_end)
        for counts in walker.walks(begin, 0):
            batch = walker.batch(0, counts.records, begin)
            batch.states[log.codec.locator([]).invalid(batch)] = 1
            assert batch.offsets is not None
            found += [(int(batch.offsets[n]), log.codec.decode(batch.record(n))) for n in batch.live()]
    return found
