"""The log as arrays: batches of consecutive records, deleted ones included and marked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jitdb.log.blocks.scanner import scan as blocks
from jitdb.log.reading.block_reader import PIECE, BlockReader, OffsetRange
from jitdb.log.record import Batch, Stats


def batches(
    reader: BlockReader, within: OffsetRange, limit: int | None, hidden: set[int], owner: object
) -> Iterator[Batch]:
    """All records within the bounds, about a megabyte of the file at a time; `owner` is kept alive meanwhile."""
    if within.start >= within.stop or (limit is not None and limit <= 0):
        return
    size = reader.block_size
    begin = within.start - within.start % size
    end = min(reader.extent.durable_end, -(-within.stop // size) * size)
    seq = reader.first_seq(begin // size)
    for piece in blocks(reader.opened.read_into, begin, end, size, size=PIECE, walk=reader.walk):
        starts, lengths, deleted = piece.walked[:3]
        damaged = np.zeros(len(starts), np.bool_)
        for number in piece.wrong:
            low, high = piece.bounds[number], piece.bounds[number + 1]
            damaged[low:high] = deleted[low:high] = True
        reader.learn(piece.first_block, starts, len(piece.data), seq)
        batch = Batch(seq, starts + (piece.begin - reader.header), lengths, deleted, starts, piece.data, damaged)
        seq += len(starts)
        batch = _clip(batch, within, limit)
        if hidden:
            batch.deleted[np.isin(batch.offsets, list(hidden))] = True
        if len(batch.offsets):
            yield batch
        if limit is not None:
            limit -= len(batch.offsets)
            if limit <= 0:
                return


def _clip(batch: Batch, within: OffsetRange, limit: int | None) -> Batch:
    offsets = batch.offsets
    if not len(offsets):
        return batch
    first = int(offsets.searchsorted(within.start)) if offsets[0] < within.start else 0
    last = int(offsets.searchsorted(within.stop)) if offsets[-1] >= within.stop else len(offsets)
    if limit is not None:
        last = min(last, first + limit)
    if first == 0 and last == len(offsets):
        return batch
    cut = slice(first, last)
    return Batch(
        batch.first_seq + first,
        offsets[cut],
        batch.lengths[cut],
        batch.deleted[cut],
        batch.starts[cut],
        batch.data,
        batch.damaged[cut],
    )


def measure(reader: BlockReader) -> Stats:
    """The log's sizes, by reading all of it."""
    end = reader.extent.durable_end
    deleted_bytes = records = deleted_records = damaged_records = 0
    for batch in batches(reader, OffsetRange(0, end), None, reader.hidden(), None):
        dead = int(batch.deleted.sum())
        records += len(batch.offsets) - dead
        if dead:
            gone = batch.deleted & ~batch.damaged
            damaged_records += int(batch.damaged.sum())
            deleted_records += int(gone.sum())
            deleted_bytes += int(batch.lengths[gone].sum()) + int(gone.sum()) * reader.header
    return Stats(end, deleted_bytes, records, deleted_records, reader.proven(), damaged_records)
