"""What the index engine needs of a log, and no more. Other kinds of log can stand behind this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.errors import LogCorrupt
    from jitdb.log.codecs import Codec
    from jitdb.log.sidecar.removals import Moved


@runtime_checkable
class LogSource(Protocol):
    """Records in blocks, walked as blocks.walk_block does, that stay where they are."""

    @property
    def path(self) -> Path:
        """The log's file."""

    @property
    def sidecar(self) -> Path:
        """The folder for what belongs to the log; it need not exist."""

    @property
    def identity(self) -> bytes:
        """16 bytes that no other log has, kept when it is compacted. What was indexed under another one is void.

        No bytes while refresh() changes over to another log: what is read then may be of either.
        """

    @property
    def generation(self) -> int:
        """Grows when the log was truncated, replaced or compacted: only after the last does `moved` know more."""

    @property
    def block_size(self) -> int:
        """Bytes. Records have u16 headers up to 65,536, u32 headers above."""

    @property
    def codec(self) -> Codec:
        """How a record's bytes are read."""

    @property
    def read_only(self) -> bool:
        """Whether this is a reader, who must call refresh() to see news."""

    @property
    def durable_end(self) -> int:
        """Just past the last durable record's bytes, where the next one of its block would begin; 0 when empty."""

    @property
    def since(self) -> int:
        """Offset of the newest durable record; -1 when empty."""

    def read_blocks(self, start: int, stop: int, buffer: memoryview | npt.NDArray[np.uint8]) -> int:
        """Read the file's bytes from `start` (a block boundary) to `stop` into `buffer`, durable bytes only.

        Gives the number of bytes read: less than `stop - start` only where the log ends. Safe for threads.
        """

    def checksums(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """int64: the CRC-32 (zlib's) of each of `count` blocks from `first` on; -1 where none is known, -2 for a
        block that is known not to be what was written. Of a block that has another one, second_look() tells whether
        that is damage. Safe for threads.
        """

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        """The bytes of a block which does not seem to be what was written, read once more, and what is wrong with it.

        None where nothing is: somebody was writing to it, or its checksum says nothing any more. Safe for threads.
        """

    def get_many_raw(self, offsets: Sequence[int] | npt.NDArray[np.int64]) -> list[bytes | None]:
        """The bytes of the records at these offsets, in that order; None for a deleted one.

        Raises InvalidOffset where no record begins, LogCorrupt.
        """

    def deletions(self, after: int = 0) -> tuple[int, npt.NDArray[np.int64]]:
        """A position in the journal of deletions, and the offsets deleted between `after` and there, in order.

        Raises LogSuperseded to a reader whose records are not the log any more, until it calls refresh().
        """

    def deleting(self) -> list[int]:
        """Offsets of records that get() refuses as deleted already, though `deletions` does not tell of them yet."""

    def foreign_change_token(self) -> bytes:
        """Stays equal as long as no other program was seen to have changed the log.

        When it differs, records may have been deleted that `deletions` does not tell of.
        """

    def moved(self, generation: int) -> list[Moved] | None:
        """The compactions that led from this generation of the same log to the present one, the oldest first.

        None when that is not known any more: seqs of that generation mean nothing then.
        """

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back, from any thread, whenever there may be news; the function that is given back ends it.

        A reader looks for what other processes did, several times a second, as long as anyone watches.
        """

    def refresh(self) -> bool:
        """See what other processes did; whether end, deletions, token or identity changed since the last call."""

    def close(self) -> None:
        """End reading and writing."""
