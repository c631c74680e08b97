"""What a task of a read must know: which bytes of which log, and which of their records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from jitdb.engine.plan import CoreFields
from jitdb.spark_ext.errors import CopyDiffers, LogChanged
from jitdb.spark_ext.range_source import Fingerprint, Shape, SharedFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.errors import LogCorrupt


class Run(NamedTuple):
    """The records that begin in [start, stop) of the log, bytes; the first of them has this seq (-1: unknown), and the
    first behind them that one.
    """

    start: int
    stop: int
    first_seq: int
    stop_seq: int = -1


@dataclass(frozen=True, slots=True)
class Part:
    """The share of one task. Can be pickled.

    runs:    in the order of the log; only the last one may end within a block
    sums:    the checksums of their blocks, one run behind the other (see ScanSource.checksums); None: there are none
    deleted: offsets of records in the runs that were deleted, whether their bytes are zeros by now or not
    chosen:  the records wanted, by their seqs, as a serialized bitmap; None: all
    where:   the question whose answers are wanted, as JSON; None: it was answered already, or there is none
    """

    shape: Shape
    identity: bytes
    generation: int
    fingerprint: Fingerprint
    runs: tuple[Run, ...]
    sums: NDArray[np.int64] | None
    deleted: NDArray[np.int64]
    core: CoreFields
    chosen: bytes | None = None
    where: dict[str, Any] | None = None
    skip_corrupt: bool = False

    def open(self) -> SharedFile:
        """The log's file, if this machine sees the log that the driver saw. Raises CopyDiffers, LogChanged."""
        shape = self.shape
        # Before it is checked: what takes the log's place behind that is another file.
        source = SharedFile(shape, self.fingerprint.end, 0, None)
        try:
            self.fingerprint.check(shape.path, shape.block_size)
        except CopyDiffers:
            # A record of the first or last block may have been deleted since.
            if not self._is_same_log():
                self._refuse_compacted()
                raise
        self._refuse_compacted()  # which need not change what the fingerprint is of
        return source

    def second_look(self, source: SharedFile, block: int) -> tuple[bytes, LogCorrupt | None]:
        """See ScanSource.second_look. It is taken at the log as it is now: raises as open() does if that is another."""
        found = source.second_look(block)
        if not self._is_same_log():
            self._refuse_compacted()
            raise CopyDiffers(
                "another log took its place while it was read", path=self.shape.path, remedy="load it anew"
            )
        return found

    def _refuse_compacted(self) -> None:
        """Raise LogChanged where the log was compacted since: its records have other offsets and seqs by now."""
        from jitdb.errors import LogError
        from jitdb.log.opening.identity import stored_meta

        try:
            now = stored_meta(self.shape.path)
        except (LogError, OSError):
            return
        if now is not None and now.identity == self.identity and now.generation > self.generation:
            raise LogChanged(
                f"it was compacted since this read was planned (generation {self.generation} then, "
                f"{now.generation} now), and its records lie elsewhere",
                path=self.shape.path,
                remedy="load it anew, and ask again",
            )

    def _is_same_log(self) -> bool:
        from jitdb.errors import LogError
        from jitdb.log import Log

        shape = self.shape
        try:
            with Log(shape.path, codec=shape.codec, block_size=shape.block_size, read_only=True) as log:
                same = (log.identity, log.generation) == (self.identity, self.generation)
                return same and log.identity_is_stored and log.durable_end >= self.fingerprint.end
        except (LogError, OSError):
            return False
