"""What a task of a stream reads: its share of a batch, also where a compaction takes the log's place meanwhile.

A place in the log is known again after a compaction (cursor.py), so what such a task had not read yet is planned again,
in the task: the same records, but for those that were deleted, at the places that they have now.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from jitdb.engine.cursor import Cursor
from jitdb.errors import LogError
from jitdb.spark_ext.errors import CopyDiffers, LogChanged, SparkError
from jitdb.spark_ext.reading.batches import read_part
from jitdb.spark_ext.streaming.stream import LogStream

if TYPE_CHECKING:
    import pyarrow as pa

    from jitdb.spark_ext.reading.options import Options
    from jitdb.spark_ext.reading.parts import Part
    from jitdb.spark_ext.reading.pieces import Piece
    from jitdb.spark_ext.reading.schema import Layout


def read_share(part: Part, layout: Layout, options: Options) -> Iterator[pa.RecordBatch]:
    """The rows of a part of a batch, each once. Raises LogChanged, and as read_part does."""
    left = [part]
    while left:
        share = left.pop(0)
        done = [_place(share, share.runs[0].first_seq, share.runs[0].start)]

        def note(piece: Piece, share: Part = share, done: list[Cursor] = done) -> None:
            if len(piece.seqs):
                done.append(_place(share, int(piece.seqs[-1]) + 1, int(piece.offsets[-1]) + 1))

        try:
            yield from read_part(share, layout, permissive=options.permissive, done=note)
        except (CopyDiffers, LogChanged):
            rest = _planned_again(share, done[-1], layout, options)
            if rest is None:
                raise
            left[:0] = rest


def _planned_again(part: Part, start: Cursor, layout: Layout, options: Options) -> list[Part] | None:
    """The rest of a part, from there on, of the log as it is now; None where this machine sees no compaction of it."""
    run = part.runs[0]
    try:
        stream = LogStream(options)
    except (LogError, SparkError, OSError):
        return None
    with closing(stream):
        if not stream.is_compacted(start):
            return None
        return stream.parts(start, _place(part, run.stop_seq, run.stop), slow=layout.is_slow)


def _place(part: Part, seq: int, offset: int) -> Cursor:
    return Cursor(part.identity, part.generation, seq, offset)
