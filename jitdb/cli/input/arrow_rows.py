"""Rows of Parquet and Arrow files, a batch at a time, through pyarrow; log/codecs/rows/table_rows.py makes records of
them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

from jitdb.cli.failures import Failure
from jitdb.cli.input.batches import Batch, Compiled, EncodedBatch
from jitdb.cli.input.lines import Records, Source

if TYPE_CHECKING:
    import pyarrow as pa

    from jitdb.log.codecs.rows.table_rows import RowEncoder

_BATCH: Final = 8_192  # rows


def arrow_batches(source: Source, name: str, compiled: Compiled) -> Iterator[Batch | EncodedBatch]:
    """The rows of a source. Raises Failure where pyarrow is missing, or the file is none."""
    try:
        import pyarrow as pa
    except ImportError:
        raise Failure(
            f"{source.name}: {name} is read by pyarrow, which is not installed", "pip install 'jitdb[arrow]'"
        ) from None
    from jitdb.log.codecs.rows.table_rows import RowEncoder

    last = 0
    encoder = RowEncoder()
    with _seekable(source) as file:
        try:
            for batch in _read(file, name):
                for start in range(0, batch.num_rows, _BATCH):
                    some = batch.slice(start, _BATCH)
                    yield _encoded(encoder, some, last, compiled(some.nbytes)) or _rows(some, last)
                    last += some.num_rows
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise Failure(f"{source.name}, behind record {last:,}: this cannot be read as {name}: {reason}") from None


def _encoded(
    encoder: RowEncoder, batch: pa.RecordBatch, last: int, form: tuple[str, int] | None
) -> EncodedBatch | None:
    """The records of a batch, behind record `last`; None where they are left to Python."""
    import numpy as np

    from jitdb.log.codecs import get_codec

    found = None if form is None else encoder.encode(batch, get_codec(form[0]), form[1])
    if found is None:
        return None
    return EncodedBatch(*found, np.arange(last + 1, last + 1 + batch.num_rows), last + batch.num_rows)


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


def _rows(batch: pa.RecordBatch, last: int) -> Batch:
    from jitdb.log.codecs.rows.table_rows import rows_of

    values = rows_of(batch)
    return Batch(Records(values, list(range(last + 1, last + 1 + len(values)))), last + len(values))
