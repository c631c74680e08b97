"""Rows of Parquet and Arrow files, a batch at a time, through pyarrow. log/codecs/table_rows.py makes records
of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from jitdb.cli.failures import Failure
from jitdb.cli.input.input_batches import Batch
from jitdb.cli.input.sources import Source
from jitdb.log.columnar.table_file import has_bytes, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

    from jitdb.cli.input.import_target import Target


def arrow_batches(source: Source, name: str, target: Target) -> Iterator[Batch]:
    """The rows of a source. Raises Failure where pyarrow is missing, or the file is none."""
    try:
        import pyarrow as pa
    except ImportError:
        raise Failure(
            f"{source.name}: {name} is read by pyarrow, which is not installed", "pip install 'jitdb[arrow]'"
        ) from None
    last = 0
    with _seekable(source) as file:
        try:
            rows = rows_of(file, name)
            if has_bytes(rows.schema):
                target.holds_bytes()
            for batch in rows.batches:
                found = _rows(batch, last, target)
                yield found
                last = found.last
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise Failure(f"{source.name}, behind record {last:,}: this cannot be read as {name}: {reason}") from None


def _rows(batch: pa.RecordBatch, last: int, target: Target) -> Batch:
    """The records of a batch, behind record `last`."""
    from jitdb.log.codecs.table_rows import records_of

    stop = last + batch.num_rows
    rows = records_of(batch, target.codec)
    if isinstance(rows, list):
        return Batch(stop, rows, range(last + 1, stop + 1))
    return Batch(stop, numbers=range(last + 1, stop + 1), encoded=rows, codec=target.codec)


@contextmanager
def _seekable(source: Source) -> Iterator[IO[bytes]]:
    """The source as a file in which one can go back, as these formats need: what comes by a pipe is stored."""
    if source.is_plain:
        with open(source.path, "rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as stored:
        stored.writelines(source.blocks())
        stored.seek(0)
        yield stored
