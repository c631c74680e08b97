"""A Parquet or Arrow file as a log: its rows are read once, into a log that is kept with the file (kept_rows.py), and
that one is asked. The file itself is never written to.

Each question looks whether the file is still the one whose rows these are: one that was changed, or another file of its
name, is read anew. Where the file is gone, the rows of it are asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from jitdb.common.forking import begins_anew
from jitdb.display.cells import printable
from jitdb.errors import LogCorrupt, LogReadOnly, LogSuperseded, Remedy
from jitdb.log.columnar.kept_rows import KeptRows, NewBar, RowKeeper, no_bar
from jitdb.log.columnar.packed_log import packed_options
from jitdb.log.columnar.table_file import TableKind, refuse_following
from jitdb.log.lines.files.stamp import Stamp, stamp_at
from jitdb.log.objects.door import Location
from jitdb.log.opening.open_log import open_log
from jitdb.log.opening.opened import Opened
from jitdb.log.reading.extent import Extent
from jitdb.log.reading.log_reader import LogReader
from jitdb.log.source import LogSource

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.log.codecs.fields.located import RecordBatch, Scratch
    from jitdb.log.maintenance.report import LogReport
    from jitdb.log.source import Progress


class TableLog(LogReader):
    """The rows of a file as records, in their order. Thread-safe.

    folder: where the rows are kept, and by default the indexes: beside the file (in `.jitdb`), or in the user's cache
            where that cannot be written; "memory": in a temporary folder, until the log is closed
    bar:    is shown while they are read
    may_read: raises where so many bytes of an object may not be read

    Raises NotALog, LogCorrupt, LogError, MissingLibrary.
    """

    def __init__(
        self,
        path: Location,
        *,
        folder: str | os.PathLike[str] | Literal["memory"] | None = None,
        bar: NewBar = no_bar,
        may_read: Callable[[int, str], object] = lambda size, path: None,
    ) -> None:
        self._table = path
        self._keeper = RowKeeper(path, folder, bar, may_read)
        self._is_damaged = False  # what is kept
        self.kept: KeptRows = self._keeper.rows()
        try:
            super().__init__(self.kept.log, packed_options(self.kept.log), read_only=True)
        except LogCorrupt:  # it was cut
            self._keeper.drop(self.kept)
            self.kept = self._keeper.rows()
            super().__init__(self.kept.log, packed_options(self.kept.log), read_only=True)
        if any(self.foreign_change_token()):  # somebody wrote into what is kept
            self._keeper.drop(self.kept)
            self._is_damaged = True
            self._follow()
        self._begin()
        begins_anew(self)

    def _take(self, opened: Opened, extent: Extent) -> None:
        super()._take(opened, extent)
        self._path = self._table  # which errors are about

    @property
    def kind(self) -> TableKind:
        """Whether it is Parquet or Arrow."""
        return self.kept.kind

    @property
    def sidecar(self) -> Path:
        """The folder for its indexes, and what else is kept of the file."""
        return self.kept.entry

    @property
    def is_kept(self) -> bool:
        """Whether the next process finds the rows."""
        return self._keeper.is_kept

    # Whether it is still what it was

    def _is_another(self) -> bool:
        there = stamp_at(self._table)
        return there is not None and (self._is_damaged or there != self.kept.stamp)

    def _check(self) -> None:
        if self._is_another():
            said = "it was changed, or replaced, since its rows were read"
            raise LogSuperseded(said, path=self._table, remedy=Remedy.refresh())

    def settled_stamp(self) -> Stamp | None:
        return self.kept.stamp if self.kept.stamp.is_settled() else None

    def deletions(self, after: int = 0) -> tuple[int, npt.NDArray[np.int64]]:
        """No deletions: nobody deletes rows of the file. Raises LogSuperseded where it was changed."""
        self._check()
        return LogSource.deletions(self, after)

    def deletion_position(self) -> int:
        """0. Raises LogSuperseded where the file was changed."""
        self._check()
        return 0

    def _hide(self, *, look: bool = False) -> None:
        """Nothing is deleted."""

    def _follow(self) -> None:
        """Read the rows anew where the file was changed."""
        self._alive()
        if not self._is_another():
            return
        kept = self._keeper.rows()
        if kept.log != self.kept.log or self._is_damaged:
            self._rebind(open_log(kept.log, packed_options(kept.log), read_only=True))
        self.kept, self._is_damaged = kept, False

    def get_many_text(self, offsets: Sequence[int] | npt.NDArray[np.int64]) -> list[bytes | None]:
        raise self.no_text(f"it is {self.kind.title}")

    def check_growing(self) -> None:
        refuse_following(self._table, self.kind)

    # Damage of what is kept, which can be made again

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        """See ScanSource. Where the block is damaged, the rows are read anew (LogSuperseded), if the file is there."""
        data, fault = super().second_look(block)
        if fault is not None:
            self._doubt(fault)
        return data, fault

    def get_many_raw(self, offsets: Sequence[int] | npt.NDArray[np.int64]) -> list[bytes | None]:
        with self._healing():
            return super().get_many_raw(offsets)

    def read_batch(self, offsets: npt.NDArray[np.int64], scratch: Scratch) -> RecordBatch:
        with self._healing():
            return super().read_batch(offsets, scratch)

    @contextmanager
    def _healing(self) -> Iterator[None]:
        try:
            yield
        except LogCorrupt as fault:
            self._doubt(fault)
            raise

    def _doubt(self, fault: LogCorrupt) -> None:
        if stamp_at(self._table) is None:
            return
        self._keeper.drop(self.kept)
        self._is_damaged = True
        said = "what was kept of its rows is damaged: they are read anew"
        raise LogSuperseded(said, path=self._table, remedy=Remedy.refresh()) from fault

    def verify(self, progress: Progress | None = None) -> LogReport:
        """Read what is kept of the rows, and tell what is not as it was written. Raises LogError."""
        from jitdb.log.columnar.packed_log import PackedLog

        with PackedLog(self.kept.log, read_only=True) as log:
            found = log.verify(progress)
        if not found.ok:
            self._is_damaged = True
        return replace(found, path=str(self._table))

    def close(self) -> None:
        """End reading. Safe to call twice."""
        super().close()
        self._keeper.close()

    def __del__(self) -> None:
        if self._opened is not None:
            self.close()

    def __enter__(self) -> TableLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<TableLog {printable(str(self._table))} ({self.kind.title})>"

    def refusal(self, done: str) -> LogReadOnly:
        return LogReadOnly(
            f"it is {self.kind.title} that somebody else writes, which is only read: it cannot be {done}",
            path=self._table,
            remedy=Remedy.importing(self._table),
        )
