"""Is this a Parquet or an Arrow file? Its columns, some thousand rows at a time, as pyarrow reads them.

Both kinds begin and end with the same bytes, so one that is cut off is told before it is read.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from jitdb.errors import LogCorrupt, LogError, MissingLibrary, NotALog, QueryError, Remedy, library
from jitdb.log.io import osfile
from jitdb.log.io.filenames import META, sidecar_path
from jitdb.log.objects.door import Location, exists, fs_of, opened_bytes, refuse_following_object
from jitdb.log.objects.urls import is_url

if TYPE_CHECKING:
    import pyarrow as pa

BATCH: Final = 8_192  # rows


class TableKind(NamedTuple):
    """A kind of file.

    magic: its first and its last bytes
    name:  as imports call it
    """

    magic: bytes
    name: str
    title: str


PARQUET: Final = TableKind(b"PAR1", "parquet", "a Parquet file")
ARROW: Final = TableKind(b"ARROW1", "arrow", "an Arrow file")


def kind_at(path: str | os.PathLike[str]) -> TableKind | None:
    """The kind of the file at this path; None for another file, or one that cannot be read."""
    try:
        fs = fs_of(path)
        with osfile.Descriptor(fs, path, os.O_RDONLY) as fd:
            head = fs.read(fd, len(ARROW.magic), 0)
    except OSError:
        return None
    found = next((kind for kind in (PARQUET, ARROW) if head.startswith(kind.magic)), None)
    return None if found is not None and not is_url(path) and exists(sidecar_path(Path(path)) / META) else found


def refuse_following(path: str | os.PathLike[str], kind: TableKind | None) -> None:
    """Raises QueryError for an object, or a file of a kind, whose live question would wait for ever."""
    refuse_following_object(path)
    if kind is not None:
        said = f"it is {kind.title}, which does not grow: no record will come"
        shown = f"ask it: jitdb query {shlex.quote(os.fspath(path))}"
        raise QueryError(said, path=path, remedy=Remedy("ask it without live(): it has all its records", shown))


class Rows(NamedTuple):
    """Those of a file: how many there are, their columns, and how to read them.

    total: None where the file does not say that
    """

    schema: pa.Schema
    total: int | None
    batches: Iterator[pa.RecordBatch]


def rows_of(file: IO[bytes], name: str) -> Rows:
    """The rows of an open file of the kind of this name. Raises what pyarrow raises: pa.ArrowException, OSError,
    ValueError; reading the batches does, too.
    """
    import pyarrow as pa

    if name == PARQUET.name:
        from pyarrow import parquet

        table = parquet.ParquetFile(file, page_checksum_verification=True)
        known = table.metadata
        if known.num_row_groups and known.num_columns and known.row_group(0).column(0).file_path:
            raise ValueError("it tells of the rows of other files, and has none: ask these, or their folder")
        return Rows(table.schema_arrow, known.num_rows, table.iter_batches(BATCH))
    if file.read(len(ARROW.magic)) == ARROW.magic:
        reader = pa.ipc.open_file(file)
        found = (reader.get_batch(number) for number in range(reader.num_record_batches))
        return Rows(reader.schema, None, _sliced(found))
    file.seek(0)
    stream = pa.ipc.open_stream(file)
    return Rows(stream.schema, None, _sliced(stream))


def _sliced(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH):
            yield batch.slice(start, BATCH)


def has_bytes(schema: pa.Schema) -> bool:
    """Whether a column, or what is in one, holds bytes, which JSON has none of."""
    return any("binary" in str(kind) for kind in schema.types)


class TableFile:
    """A file of this kind at a path. Raises MissingLibrary where pyarrow is missing."""

    def __init__(self, path: Location, kind: TableKind) -> None:
        self.path, self.kind = path, kind
        try:
            library("pyarrow")
        except MissingLibrary as error:
            said = f"it is {kind.title}, which is read by pyarrow, and that is not installed"
            raise MissingLibrary(said, path=path, library=error.library, remedy=error.remedy) from None

    def check(self) -> None:
        """Look at what the file says of itself. Raises as rows() does, OSError."""
        with opened_bytes(self.path) as (file, _):
            self.rows(file)

    def rows(self, file: IO[bytes]) -> Rows:
        """Raises LogCorrupt, LogError; reading the batches does, too."""
        self._check_end(file)
        errors = _errors()
        try:
            found = rows_of(file, self.kind.name)
        except errors as error:
            raise self._unread(error, 0) from None
        names = found.schema.names
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            said = f"it has two columns of the name {twice!r}, and a record has a field once"
            raise LogError(said, path=self.path, remedy="write it anew with other names")
        return found._replace(batches=self._read(found.batches))

    def _read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        done, errors = 0, _errors()
        while True:
            try:
                batch = next(batches, None)
            except errors as error:
                raise self._unread(error, done) from None
            if batch is None:
                return
            yield batch
            done += batch.num_rows

    def _check_end(self, file: IO[bytes]) -> None:
        magic = self.kind.magic
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(magic)))
        end, begin = file.read(len(magic)), max(0, size - len(magic))
        file.seek(0)
        if end == magic:
            return
        if self.kind is PARQUET and end == b"PARE":
            raise NotALog("it is a Parquet file that is encrypted", path=self.path)
        said = f"it is cut off, or still being written: {self.kind.title} ends with {magic!r}, and this with {end!r}"
        raise LogCorrupt(said, path=self.path, offset=begin, expected=magic, got=end)

    def _unread(self, error: Exception, done: int) -> LogError:
        import pyarrow as pa

        reason = " ".join(str(error).split())
        if isinstance(error, pa.ArrowNotImplementedError):
            return LogError(f"pyarrow {pa.__version__} cannot read it: {reason}", path=self.path)
        where = f" behind row {done:,}" if done else ""
        return LogCorrupt(f"it cannot be read as {self.kind.title}{where}: {reason}", path=self.path)


def _errors() -> tuple[type[Exception], ...]:
    """What pyarrow raises for a file that is not what it should be."""
    import pyarrow as pa

    return pa.ArrowException, OSError, ValueError, MemoryError
