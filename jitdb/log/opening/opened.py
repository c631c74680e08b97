"""A log's file and sidecar, found in order: what everything that reads or writes the log holds on to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jitdb.errors import LogClosed, LogError
from jitdb.log.codecs import Codec
from jitdb.log.io import osfile
from jitdb.log.io.lock import Lock
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.opening.recovery import Recovery
from jitdb.log.sidecar.checksums import Checksums
from jitdb.log.sidecar.deletions import DeletionReader
from jitdb.log.sidecar.journal import JournalReader
from jitdb.log.sidecar.meta import Meta

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.log.sidecar.removals import Removals


class Opened:
    """One log as it was opened. Closed when nobody needs it any more, if not before."""

    def __init__(
        self,
        fs: FileSystem,
        path: Path,
        sidecar: Path,
        file: Descriptor,
        codec: Codec,
        meta: Meta,
        stored: bool,
        journal: JournalReader,
        checksums: Checksums,
        deletions: DeletionReader,
        recovery: Recovery,
        lock: Lock | None,
        notices: list[str],
    ) -> None:
        self.fs = fs
        self.path = path
        self.sidecar = sidecar
        self.file = file
        self.codec = codec
        self.meta = meta
        self.stored = stored  # `meta` is in the sidecar; if not, the identity holds for this process only
        self.journal = journal
        self.checksums = checksums
        self.deletions = deletions
        self.recovery = recovery
        self.lock = lock  # a writer's
        self.notices = notices  # what was put in order when it was opened for writing

    @property
    def fd(self) -> int:
        """The log's file; -1 once it is closed."""
        return self.file.number

    def read(self, size: int, offset: int) -> bytes:
        """Bytes of the log's file; fewer than `size` only at its end. Raises LogClosed, LogError."""
        if self.fd < 0:
            raise self.closed()
        try:
            return self.fs.read(self.fd, size, offset)
        except OSError as error:
            raise self.unreadable(error, offset) from error

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill the buffer from the log's file; fewer bytes only at its end. Raises LogClosed, LogError."""
        if self.fd < 0:
            raise self.closed()
        try:
            return self.fs.read_into(self.fd, buffer, offset)
        except OSError as error:
            raise self.unreadable(error, offset) from error

    def deleted(self, after: int, *, looks: bool) -> tuple[int, npt.NDArray[np.int64]]:
        """See LogSource.deletions. `looks`: what others do is to be seen at once. Raises LogSuperseded, LogError."""
        position = self.deletion_position(after, looks=looks)
        try:
            return position, self.deletions.between(after, position)
        except OSError as error:
            raise self.unreadable(error) from error

    def deletion_position(self, after: int = 0, *, looks: bool) -> int:
        """Of deleted(), the position alone. Raises as it does."""
        try:
            if looks:
                self.deletions.look(self.path)
            elif after > self.deletions.position:  # a reader was sooner to see what the writer just wrote
                self.deletions.poll()
            return self.deletions.position
        except OSError as error:
            raise self.unreadable(error) from error

    def unapplied(self, *, look: bool) -> set[int]:
        """Offsets of records that are deleted, and perhaps not zero yet. Raises LogError."""
        try:
            if look:
                self.deletions.poll()
        except OSError as error:
            raise self.unreadable(error) from error
        return {each.offset for each in self.deletions.unapplied}

    def removals(self, generation: int) -> list[Removals] | None:
        """See LogSource.removals. Raises LogError."""
        from jitdb.log.sidecar.removals import read_since

        try:
            return read_since(self.fs, self.sidecar, self.meta, generation)
        except OSError as error:
            raise self.unreadable(error) from error

    def closed(self) -> LogClosed:
        """The error for whoever still reads."""
        return LogClosed("the log was closed", path=self.path)

    def unreadable(self, error: OSError, offset: int | None = None) -> LogError:
        """The error for whoever meets a disk that does not give back what is on it."""
        if self.fd < 0:
            return self.closed()
        return LogError(f"cannot be read: {osfile.reason(error)}", path=self.path, offset=offset)

    def close(self) -> None:
        """Close all files; a writer's lock is released last."""
        self.journal.close()
        self.deletions.close()
        self.checksums.close()
        self.file.close()
        if self.lock is not None:
            self.lock.close()
