"""A log's file and sidecar, found in order: what everything that reads or writes the log holds on to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyroaring import BitMap64

from jitdb.errors import LogClosed, LogError
from jitdb.log.codecs import Codec, find_codec
from jitdb.log.io import filenames, osfile
from jitdb.log.io.lock import Lock, has_writer
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.opening.recovery import Look, Recovery
from jitdb.log.sidecar.checksums import Checksums
from jitdb.log.sidecar.deletions import DeletionReader
from jitdb.log.sidecar.journal import JournalReader
from jitdb.log.sidecar.meta import Meta

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.log.sidecar.removals import Removals

_LOOKS: Final = 5  # a writer that comes meanwhile stays, so the second look is the last one but by misfortune


class Opened:
    """One log as it was opened. Closed when nobody needs it any more, if not before."""

    def __init__(
        self,
        fs: FileSystem,
        path: Path,
        file: Descriptor,
        codec: Codec,
        meta: Meta,
        stored: bool,
        journal: JournalReader,
        lock: Lock | None,
    ) -> None:
        self.fs, self.path, self.file = fs, path, file
        self.sidecar = sidecar = filenames.sidecar_path(path)
        self.codec, self.meta = codec, meta
        self.stored = stored  # `meta` is in the sidecar; if not, the identity holds for this process only
        self.journal = journal
        self.deletions = DeletionReader(fs, sidecar / filenames.DELETIONS, meta.generation)
        self.lock = lock  # a writer's
        self.recovery = self.examine()
        self.checksums = Checksums(fs, sidecar / filenames.CHECKSUMS, meta.generation, self.recovery.change)
        self.notices: list[str] = []  # what was put in order when it was opened

    def examine(self) -> Recovery:
        """Where the log ends; as a reader looks again, if a writer came and what was seen may be half written."""
        fs, mine, is_written_here = self.fs, self.meta, self.lock is not None
        # Of a log that is opened as raw bytes, what its own codec says counts.
        codec = self.codec if self.codec.name == mine.codec else find_codec(mine.codec) or self.codec
        for _ in range(_LOOKS):
            state = self.journal.poll()
            self.deletions.poll()  # after the entries, which tell what must be in it
            alive = not is_written_here and has_writer(fs, self.sidecar / filenames.LOCK)
            journals = map(fs.find, (self.sidecar / filenames.COMMIT, self.sidecar / filenames.DELETIONS))
            last_word = max((each.st_mtime_ns for each in journals if each is not None), default=0)
            found = Look(
                fs, self.fd, mine.block_size, codec, state,
                writer_alive=alive, deletions=self.deletions, last_word=last_word,
            ).recover()  # fmt: skip
            if is_written_here or alive or found.is_recorded:
                break
            if not has_writer(fs, self.sidecar / filenames.LOCK) and self.journal.poll() == state:
                break
        return found

    @property
    def fd(self) -> int:
        """The log's file; -1 once it is closed."""
        return self.file.number

    def read(self, size: int, offset: int) -> bytes:
        """Bytes of the log's file; fewer than `size` only at its end. Raises LogClosed, LogError."""
        try:
            return self.fs.read(self.fd, size, offset)
        except OSError as error:
            raise self.unreadable(error, offset) from error

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill the buffer from the log's file; fewer bytes only at its end. Raises LogClosed, LogError."""
        try:
            return self.fs.read_into(self.fd, buffer, offset)
        except OSError as error:
            raise self.unreadable(error, offset) from error

    def deleted(self, after: int, *, looks: bool) -> tuple[int, npt.NDArray[np.int64]]:
        """See LogSource.deletions. `looks`: what others do is to be seen at once. Raises LogSuperseded, LogError."""
        position = self.deletion_position(after, looks=looks)
        return position, self.deletions.between(after, position)

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

    def unapplied(self, *, look: bool) -> BitMap64:
        try:
            if look:
                self.deletions.poll()
        except OSError as error:
            raise self.unreadable(error) from error
        return BitMap64(self.deletions.unapplied.offsets)

    def removals(self, generation: int) -> list[Removals] | None:
        from jitdb.log.sidecar.removals import read_since

        try:
            return read_since(self.fs, self.sidecar, self.meta, generation)
        except OSError as error:
            raise self.unreadable(error) from error

    def closed(self) -> LogClosed:
        return LogClosed("the log was closed", path=self.path)

    def unreadable(self, error: OSError, offset: int | None = None) -> LogError:
        """The error for whoever meets a disk that does not give back what is on it, or a log that was closed."""
        if self.fd < 0:
            return self.closed()
        return LogError(f"cannot be read: {osfile.reason(error)}", path=self.path, offset=offset)

    def close(self) -> None:
        """Close all files; a writer's lock is released last."""
        for each in (self.journal, self.deletions, self.checksums, self.file, self.lock):
            if each is not None:
                each.close()
