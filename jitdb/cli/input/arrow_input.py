"""Rows of Parquet and Arrow files, a batch at a time, through pyarrow. log/codecs/table_rows.py makes records
of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

from jitdb.cli.failures import Failure
from jitdb.cli.input.input_batches import Batch
from jitdb.cli.input.sources import Source

if TYPE_CHECKING:
    import pyarrow as pa

    from jitdb.cli.input.import_target import Target

_BATCH: Final = 8_192  # rows


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
            for batch in _read(file, name):
                if not last and any("binary" in str(kind) for kind in batch.schema.types):
                    target.holds_bytes()
                for start in range(0, batch.num_rows, _BATCH):
                    found = _rows(batch.slice(start, _BATCH), last, target)
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
    return Batch(stop, numbers=range(last + 1, stop + 1), encoded=rows)


def _read(file: IO[bytes], name: str) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    if name == "parquet":
        from pyarrow import parquet

        yield from parquet.ParquetFile(file).iter_batches(_BATCH)
        return
    if file.read(6) == b"ARROW1":
        with pa.ipc.open_file(file) as reader:
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)
        return
    file.seek(0)
    with pa.ipc.open_stream(file) as stream:
        yield from stream


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
