"""Where the rows of a Parquet or Arrow file are kept: as a log of jitdb's, in the folder of what is kept of that file
(lines/keeping/places.py).

    rows/NAME/log      the log, packed (packed_log.py). NAME is another one each time that the file was changed, or may
                       have been
    rows/NAME/content  blake2b (32 bytes) of a version and all bytes of the file: where they are the same, the log gets
                       the new name
    rows/NAME.tmp/     one that is being made, or whose process died
    rows-lock          held by the process that makes one; others wait for it

The log gets its name by one rename, when it is whole and on the disk: what has the name is believed. Where nothing can
be kept, or nothing shall be, it lies in a temporary folder as long as somebody asks it.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from jitdb.common.digests import blake2b
from jitdb.errors import (
    EncodeError,
    InvalidRecord,
    LogCorrupt,
    LogError,
    LogWriteFailed,
    NotALog,
    RecordTooLarge,
    Remedy,
)
from jitdb.log.blocks.block_format import MAX_BLOCK_SIZE, block_size_for, largest_record
from jitdb.log.columnar.table_file import TableFile, TableKind, has_bytes, kind_at
from jitdb.log.io import osfile
from jitdb.log.io.filenames import INDEXES, ROWS, ROWS_LOCK, TEMPORARY_SUFFIX
from jitdb.log.lines.files.file import LineFile
from jitdb.log.lines.files.opening import as_document, open_lines
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.lines.keeping.keeper import Keeper
from jitdb.log.lines.keeping.known import Known
from jitdb.log.lines.keeping.places import Place, place_of
from jitdb.log.objects.door import Location, opened_bytes, size_at
from jitdb.log.objects.urls import is_url

if TYPE_CHECKING:
    import pyarrow as pa

    from jitdb.log.log import Log

NewBar: TypeAlias = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]

TAG: Final = "table"  # in the name of the folder
LOG: Final = "log"
CONTENT: Final = "content"

_VERSION: Final = b"2"  # of what is kept: another one is made anew
_TRIES: Final = 5  # the file may be changed, or what is kept of it forgotten, while it is read
_PAUSE: Final = 0.02  # seconds between two looks: is the other process done?
_CLOCK: Final = 0.025  # seconds after a change within which another one might not show in the stamp
_BLOCK: Final = 1 << 16  # bytes of a block, as long as all records fit
_PIECE: Final = 1 << 20  # bytes read at a time


def no_bar(title: str, total: int) -> AbstractContextManager[Callable[[int], object]]:
    """Shows nothing."""
    return nullcontext(lambda done: None)


class KeptRows(NamedTuple):
    """The rows of a file as it was at some moment.

    kind:  of the file
    log:   the file of the log that they are
    entry: the folder in which it is, with the indexes and named sets
    stamp: of the file
    read:  how many were read just now; None: an earlier question did that
    """

    kind: TableKind
    log: Path
    entry: Path
    stamp: Stamp
    read: int | None

    @property
    def bytes(self) -> int:
        """What the log takes."""
        return sum(each.stat().st_size for each in self.log.parent.rglob("*") if each.is_file())


class _Changed(Exception):
    """The file was changed while it was read, or what is kept of it was forgotten."""


class RowKeeper:
    """Reads the rows of one file when that has to be done.

    folder: where they are kept, and not in the usual place; "memory": in a temporary folder
    bar:    makes the progress bar that is shown while they are read
    may_read: raises where so many bytes of an object may not be read
    """

    def __init__(
        self,
        path: Location,
        folder: str | os.PathLike[str] | Literal["memory"] | None,
        bar: NewBar = no_bar,
        may_read: Callable[[int, str], object] = lambda size, path: None,
    ) -> None:
        self.path, self._bar, self._may_read = path, bar, may_read
        self._keeps = not (isinstance(folder, str) and folder == "memory")
        self._given = Path(folder) if folder is not None and self._keeps else None
        self._known: Known | None = None
        self.is_kept = False  # whether the next process will find the rows
        self._aside: tempfile.TemporaryDirectory[str] | None = None

    def rows(self) -> KeptRows:
        """The rows of the file as it is now. Raises NotALog, LogCorrupt, LogError, MissingLibrary."""
        for _ in range(_TRIES):
            try:
                with closing(self._opened()) as file:
                    return self._rows_of(file)
            except _Changed:
                continue
            except OSError as error:
                if error.errno != errno.ESTALE:  # another object has the name of the one that was opened
                    raise
        said = "it was written again each time that its rows were read"
        raise LogError(said, path=self.path, remedy="ask again once it is whole")

    def drop(self, kept: KeptRows) -> None:
        """Remove the rows, which are damaged. Raises OSError."""
        with suppress(FileNotFoundError, _Changed), _alone(kept.entry / ROWS_LOCK):
            osfile.fs.remove(kept.log.parent)

    def close(self) -> None:
        """Remove what is kept for the time of the questions only."""
        aside, self._aside = self._aside, None
        if aside is not None:
            aside.cleanup()

    def _opened(self) -> LineFile:
        try:
            file = open_lines(self.path)
        except FileNotFoundError as error:
            raise NotALog("there is no such file", path=self.path) from error
        except OSError as error:
            if error.errno == errno.ESTALE:
                raise
            raise NotALog(f"it cannot be read: {osfile.reason(error)}", path=self.path) from error
        return as_document(file)

    def _rows_of(self, file: LineFile) -> KeptRows:
        if not file.stamp().is_settled():
            time.sleep(_CLOCK)
        kind = kind_at(self.path)
        if kind is None:
            raise NotALog("it is no Parquet or Arrow file any more", path=self.path, remedy="open it anew")
        keeper = self._keeper_of(file.stamp())
        self._known = known = keeper.settle(file, self._known, keep=True)
        self.is_kept = keeper.is_kept
        entry = keeper.folder if keeper.is_kept else self._set_aside()
        name = blake2b(_VERSION + known.identity + known.token, digest_size=8).hexdigest()
        place = entry / ROWS / name
        if osfile.fs.exists(place / LOG):
            return KeptRows(kind, place / LOG, entry, known.stamp, None)
        try:
            count = self._make(place, TableFile(self.path, kind), known.stamp)
        except (OSError, LogError) as error:
            if not isinstance(error, OSError | LogWriteFailed) and not isinstance(error.__cause__, OSError):
                raise
            raise self._unkept(error, entry) from error
        return KeptRows(kind, place / LOG, entry, known.stamp, count)

    def _keeper_of(self, stamp: Stamp) -> Keeper:
        place = place_of(self.path, stamp, TAG) if self._given is None else Place(self._given / TAG)
        return Keeper(place, self.path, TAG, keeps=self._keeps)

    def _set_aside(self) -> Path:
        if self._aside is None:
            self._aside = tempfile.TemporaryDirectory(prefix="jitdb-", ignore_cleanup_errors=True)
        return Path(self._aside.name)

    def _make(self, place: Path, table: TableFile, stamp: Stamp) -> int | None:
        """Make the log in this folder; how many rows were read, or None where they were there. Raises _Changed,
        OSError.
        """
        fs, rows = osfile.fs, place.parent
        fs.make_folders(rows)
        with _alone(rows.with_name(ROWS_LOCK)), self._source(stamp) as (source, check):
            if fs.exists(place / LOG):
                return None
            if is_url(self.path):
                self._may_read(stamp.size, str(self.path))
            content = _digest_of_object(stamp) if is_url(self.path) else _digest(source)
            before = fs.listdir(rows)
            same = next((name for name in before if fs.read_if_there(rows / name / CONTENT) == content), None)
            check()
            if same is not None:
                fs.rename(rows / same, place)
                return None
            for name in before:  # of the file as it was, or what a process left that died
                fs.remove(rows / name)
            made = place.with_name(place.name + TEMPORARY_SUFFIX)
            try:
                count = self._import(made, table, source)
                check()
                fs.write_file(made / CONTENT, content)
                fs.sync_folder(made)
                with suppress(FileNotFoundError):
                    fs.remove(rows.with_name(INDEXES))  # of other rows
                fs.rename(made, place)
                fs.sync_folder(rows)
            except BaseException as error:
                if isinstance(error, OSError | LogError) and not fs.exists(rows):
                    raise _Changed from error  # what is kept was forgotten
                with suppress(OSError):
                    fs.remove(made)
                raise
            return count

    @contextmanager
    def _source(self, stamp: Stamp) -> Iterator[tuple[IO[bytes], Callable[[], None]]]:
        """The open file, and what raises _Changed where it is not the one of this stamp; an error in what it holds is
        none where it was changed meanwhile.
        """
        with opened_bytes(self.path) as (source, status):

            def check() -> None:
                if Stamp.of(status()) != stamp:
                    raise _Changed from None

            check()
            try:
                yield source, check
            except Exception:
                check()
                raise

    def _import(self, folder: Path, table: TableFile, source: IO[bytes]) -> int:
        """Write the rows into a log in this folder, in blocks that hold the largest one; how many there are."""
        block_size = _BLOCK
        while True:
            osfile.fs.make_folders(folder)
            try:
                return self._write(table, source, folder / LOG, block_size)
            except RecordTooLarge as error:
                block_size = self._larger(error, block_size)
                osfile.fs.remove(folder)

    def _write(self, table: TableFile, source: IO[bytes], path: Path, block_size: int) -> int:
        from jitdb.log.columnar.packed_log import PackedLog

        rows, done = table.rows(source), 0
        size = size_at(self.path)
        log = PackedLog(path, codec="msgpack" if has_bytes(rows.schema) else "json", block_size=block_size)
        try:
            with self._bar(f"importing {self.path.name}", size) as tell:
                for batch in rows.batches:
                    self._append(log, batch, done)
                    done += batch.num_rows
                    tell(source.tell() if rows.total is None else size * done // rows.total)
        except BaseException:
            with suppress(LogError):
                log.close()
            raise
        log.close()
        return done

    def _append(self, log: Log, batch: pa.RecordBatch, done: int) -> None:
        """Append rows, behind as many others. Raises RecordTooLarge, LogError."""
        import pyarrow as pa

        try:
            log.append_arrow(pa.Table.from_batches([batch]))
        except RecordTooLarge:
            raise
        except (EncodeError, InvalidRecord) as error:
            which = f"a row from {done + 1:,} to {done + batch.num_rows:,}"
            raise LogError(f"{which} cannot be a record: {error.reason}", path=self.path) from error
        except ValueError as error:
            which = f"a row from {done + 1:,} to {done + batch.num_rows:,}"
            raise LogCorrupt(f"{which} cannot be read: {error}", path=self.path) from error

    def _larger(self, error: RecordTooLarge, block_size: int) -> int:
        needed = max(block_size_for(error.size), block_size * 4)
        if block_size_for(error.size) > MAX_BLOCK_SIZE:
            most = largest_record(MAX_BLOCK_SIZE)
            said = f"a row takes {error.size:,} bytes as a record, and no log holds more than {most:,}"
            raise LogError(said, path=self.path) from error
        return min(needed, MAX_BLOCK_SIZE)

    def _unkept(self, error: OSError | LogError, entry: Path) -> LogWriteFailed:
        """The error where the rows cannot be written."""
        cause = error if isinstance(error, OSError) else error.__cause__
        reason = osfile.reason(cause) if isinstance(cause, OSError) else str(error)
        with suppress(OSError):
            free = shutil.disk_usage(entry).free
            reason += f" ({free:,} bytes are free, and it has {size_at(self.path):,})"
        remedy = Remedy(
            "make room there, or name another folder: indexes=FOLDER",
            "make room there, or name another folder: --indexes FOLDER",
        )
        said = f"its rows cannot be kept in {entry}, which asking it takes: {reason}; nothing was left there"
        return LogWriteFailed(said, path=self.path, remedy=remedy)


def _digest(source: IO[bytes]) -> bytes:
    """Of all bytes of the file: where only its stamp is another one, its rows are the same."""
    digest = blake2b(_VERSION, digest_size=32)
    while part := source.read(_PIECE):
        digest.update(part)
    return digest.digest()


def _digest_of_object(stamp: Stamp) -> bytes:
    """Its stamp is of one object alone, which never changes, so it need not be read twice."""
    return blake2b(_VERSION + repr(stamp).encode(), digest_size=32).digest()


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold the lock, once no other process, or thread, does. Raises OSError, _Changed."""
    with osfile.Descriptor(osfile.fs, lock, os.O_RDWR | os.O_CREAT) as fd:
        while not osfile.fs.lock(fd):
            time.sleep(_PAUSE)
        if not osfile.fs.is_at(lock, fd):
            raise _Changed
        yield
