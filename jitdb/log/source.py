"""What other code needs of a log, in three steps, and what reading one gives. Code asks for no more than it needs, and
a kind of log shows by its class what it can do.

    ScanSource         blocks of records that stay where they are                     a scan, a check of some blocks
    LogSource          the same with a name; it may grow and lose records meanwhile   questions: JITDB(source)
    MaintainedSource   its bytes are ours                                             JITDB.compact, .verify, .repair

A new kind of log is one class. It overrides the abstract methods, and others where it differs: their defaults are right
for records that nobody deletes or rewrites. jitdb.testing.sources has the tests that it must pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.errors import InvalidOffset, LogError, Remedy
from jitdb.log.blocks.block_format import header_reader, header_size, is_zero, walk_block
from jitdb.log.blocks.checksum import UNKNOWN, crc32
from jitdb.log.blocks.framing import BlockFraming, Framing
from jitdb.log.io.filenames import sidecar_path
from jitdb.log.objects.door import Location

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.common.paths import Path as FieldPath
    from jitdb.errors import LogCorrupt
    from jitdb.log.codecs import Codec
    from jitdb.log.codecs.fields.located import RecordBatch, Scratch
    from jitdb.log.lines.files.stamp import Stamp
    from jitdb.log.maintenance.report import Compaction, LogReport, RepairReport
    from jitdb.log.objects.shelf import Shelf
    from jitdb.log.sidecar.removals import Removals

    Progress = Callable[[int, int], object]  # bytes done, of so many


class Record(NamedTuple):
    """One record of a stream."""

    offset: int  # byte position of its header in the file
    seq: int  # 0-based ordinal in the log, deleted records counted
    value: Any  # what the codec decoded; bytes in a raw stream


class Batch(NamedTuple):
    """A run of consecutive records, live and deleted, of n records in all.

    `data` is a view of a buffer that the next batch overwrites: copy what is to be kept. Record i holds the bytes
    `data[starts[i] : starts[i] + lengths[i]]`.
    """

    first_seq: int
    offsets: npt.NDArray[np.int64]  # (n,) byte positions in the file
    lengths: npt.NDArray[np.int64]  # (n,) bytes, headers not counted
    deleted: npt.NDArray[np.bool_]  # (n,)
    starts: npt.NDArray[np.int64]  # (n,) position of each record's first byte in `data`
    data: npt.NDArray[np.uint8]
    damaged: npt.NDArray[np.bool_]  # (n,) in a damaged block; these are in `deleted`, too


class Stats(NamedTuple):
    """The size of a log, durable records only. `total_bytes` reaches to the end of the last one."""

    total_bytes: int
    deleted_bytes: int  # of deleted records, headers included: about what compaction would free
    records: int  # live ones
    deleted_records: int
    proven_blocks: int = 0  # blocks that their checksums prove to be what was written
    damaged_records: int = 0  # in damaged blocks, as far as they can be found; not counted above


_CERTAIN: Final = nullcontext()
_BINARY: Final = ("msgpack", "bipf")  # codecs whose records are no text


class Transfer(NamedTuple):
    """What a scan reads: bytes as they are stored, and how many requests that takes of a store of objects."""

    bytes: int
    requests: int = 0


class ScanSource(ABC):
    """Blocks of records that stay where they are, told apart as `framing` says. Safe for threads."""

    @property
    @abstractmethod
    def path(self) -> Location:
        """The log's file."""

    @property
    @abstractmethod
    def codec(self) -> Codec:
        """How a record's bytes are read."""

    @property
    @abstractmethod
    def block_size(self) -> int:
        """Bytes that are read and verified at a time. With BlockFraming, records have u16 headers up to 65,536, u32
        headers above.
        """

    @property
    def framing(self) -> Framing:
        """How records are told apart: by default as in jitdb's own logs, of which no record crosses a block."""
        return BlockFraming(self.block_size)

    @property
    @abstractmethod
    def durable_end(self) -> int:
        """Just past the last durable record, where the next one of its block would begin; 0 when empty.

        If nothing can be appended to that block any more, it may be the block's end.
        """

    @abstractmethod
    def read_blocks(self, start: int, stop: int, buffer: memoryview | npt.NDArray[np.uint8]) -> int:
        """Read the bytes from `start` (a block boundary, where records do not cross any) to `stop` into `buffer`,
        durable bytes only.

        Gives the number of bytes read: less than `stop - start` only where the log ends. Raises LogError.
        """

    def checksums(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """int64: the CRC-32 (zlib's) of each of `count` blocks from `first` on; -1 if unknown, -2 for a block that is
        known to be damaged. If a block has another CRC, second_look() says whether that is damage.
        """
        import numpy as np

        return np.full(count, UNKNOWN, np.int64)

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        """The bytes of a block, read once more, and the damage, if it is damaged.

        None if it is not: somebody was writing to it, or its checksum is of no use any more.
        """
        data = bytearray(self.block_size)
        begin = block * self.block_size
        return bytes(data[: self.read_blocks(begin, begin + len(data), memoryview(data))]), None

    def refuses_malformed(self) -> LogError | None:
        """The error to raise if a scan finds records that no codec can read; None: warn of them."""
        return None


class LogSource(ScanSource):
    """A log: it has a name, by which its indexes are known, and may grow, lose records and be compacted."""

    @property
    @abstractmethod
    def identity(self) -> bytes:
        """16 bytes that no other log has, kept when it is compacted. Indexes of another identity are void.

        Empty while refresh() changes over to another log: what is read then may be of either.
        """

    @property
    @abstractmethod
    def generation(self) -> int:
        """Grows when the log was truncated, replaced or compacted; after a compaction `removals` knows what went."""

    #: The fields of the time that its first records have, where that is known without reading them
    known_time: tuple[FieldPath, ...] | None = None

    #: The field of its times where its format leaves out that of the record before, and what becomes of such records,
    #: as a remark says it
    sparse_time: tuple[FieldPath, str] | None = None

    #: What is not certain of its times, as a remark says it; empty: nothing
    time_doubt: str = ""

    #: What its indexes are shared by with other machines; None: nothing
    shelf: Shelf | None = None

    @property
    @abstractmethod
    def identity_is_stored(self) -> bool:
        """Whether the next process finds the same identity, so that index files and cursors can be bound to it."""

    @property
    def sidecar(self) -> Path:
        """The folder for what belongs to the log; it need not exist."""
        return sidecar_path(Path(self.path))

    def transfer(self, start: int, stop: int) -> Transfer:
        """What a scan from byte `start` to `stop` reads of what is stored."""
        return Transfer(stop - start)

    def guessing(self) -> AbstractContextManager[object]:
        """Within, on this thread, `durable_end` may be a guess, if the whole log must be read to know it: for code that
        reads all of it anyway. Leaving it checks the guess, and raises LogSuperseded if it was wrong.
        """
        return _CERTAIN

    def get_many_raw(self, offsets: Sequence[int] | npt.NDArray[np.int64]) -> list[bytes | None]:
        """The bytes of the records at these offsets, in that order; None for a deleted one. Each block is read once.

        Raises InvalidOffset where no record begins, LogCorrupt.
        """
        size, header, read = self.block_size, header_size(self.block_size), header_reader(self.block_size)
        found: list[bytes | None] = [None] * len(offsets)
        held, data, starts = -1, b"", set[int]()
        for number in sorted(range(len(offsets)), key=lambda number: int(offsets[number])):
            block, position = divmod(int(offsets[number]), size)
            if block != held:
                held, data = block, self._verified(block)
                starts = set(walk_block(data, len(data), size).positions)
            if position not in starts:
                at = int(offsets[number])
                raise InvalidOffset(f"no record begins at offset {at:,}", path=self.path, offset=at)
            begin = position + header
            record = data[begin : begin + read(data, position)[0]]
            found[number] = None if is_zero(record) else record
        return found

    def get_many_text(self, offsets: Sequence[int] | npt.NDArray[np.int64]) -> list[bytes | None]:
        """The records at these offsets as the file has them, all their lines, without the newline behind; None for a
        deleted one. Raises as get_many_raw does, and LogError where they are no text.
        """
        if self.codec.name in _BINARY:
            raise self.no_text(f"its records are {self.codec.name}")
        return self.get_many_raw(offsets)

    def no_text(self, why: str) -> LogError:
        """The error for records that are no text."""
        remedy = Remedy("leave as_raw() out", "leave --raw out: --format ndjson writes them as JSON")
        return LogError(f"{why}, which is no text to show as it stands", path=self.path, remedy=remedy)

    def bytes_to_read(self, offsets: npt.NDArray[np.int64]) -> int:
        """How many bytes are read for the records at these offsets, about: those of their blocks."""
        import numpy as np

        return len(np.unique(offsets // self.block_size)) * self.block_size

    def read_batch(self, offsets: npt.NDArray[np.int64], scratch: Scratch) -> RecordBatch:
        """The records at these ascending offsets, in one buffer, deleted ones marked. Whether the codec can read them
        is checked as in get_many_raw, or not at all. The buffer may be the scratch's.

        Raises as get_many_raw does.
        """
        import numpy as np

        from jitdb.log.codecs.fields.constants import DELETED
        from jitdb.log.codecs.fields.located import RecordBatch

        found = self.get_many_raw(offsets)
        batch = RecordBatch.of([record or b"" for record in found])
        batch.states[np.fromiter((record is None for record in found), np.bool_, len(found))] = DELETED
        return batch

    def _verified(self, block: int) -> bytes:
        if not 0 <= block * self.block_size < self.durable_end:
            return b""
        buffer, begin = bytearray(self.block_size), block * self.block_size
        data = bytes(buffer[: self.read_blocks(begin, begin + len(buffer), memoryview(buffer))])
        if int(self.checksums(block, 1)[0]) not in (UNKNOWN, crc32(data)):
            data, fault = self.second_look(block)
            if fault is not None:
                raise fault
        return data

    def settled_stamp(self) -> Stamp | bytes | None:
        """What LogSet's Member.look gives as long as the log has exactly the records that are known now.

        None if a look cannot show that.
        """
        return None

    # What was deleted

    def deletions(self, after: int = 0) -> tuple[int, npt.NDArray[np.int64]]:
        """A position in the journal of deletions, and the offsets deleted between `after` and there, in order.

        Raises LogSuperseded for a reader if another file took the log's place, until it calls refresh().
        """
        import numpy as np

        return 0, np.empty(0, np.int64)

    def deletion_position(self) -> int:
        """The position of deletions() alone. Raises as it does."""
        return self.deletions()[0]

    def deleting(self) -> list[int]:
        """Offsets of records that count as deleted already, but are not in `deletions` yet."""
        return []

    def foreign_change_token(self) -> bytes:
        """Changes when another program was seen to have changed the log.

        Then records may have been deleted that are not in `deletions`.
        """
        return b""

    def removals(self, generation: int) -> list[Removals] | None:
        """The compactions that led from this generation of the same log to the present one, the oldest first.

        None if that is not known any more: seqs of that generation mean nothing then.
        """
        return [] if generation == self.generation else None

    def beginning(self) -> LogSource:
        """The log in whose first records to look for the field of time: the first of several that are read as one."""
        return self

    def counter(self) -> Callable[[int], int] | None:
        """A function that counts the records before an offset of the log as it is now, also once another file took its
        place. None if only another log's file ever takes its place.
        """
        return None

    @property
    def is_rotated(self) -> bool:
        """Whether another program writes the log and rotates its file: then the files are followed, not the log."""
        return False

    def doubt(self) -> None:
        """Let the next question check all bytes: they were found not to be those that were indexed."""

    def refusal(self, done: str) -> LogError:
        """The error if it cannot be compacted or repaired, as `done` says."""
        return LogError(f"this kind of log cannot be {done}", path=self.path)

    # News

    def check_growing(self) -> None:
        """Raises QueryError where no record will ever come."""

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back, from any thread, whenever there may be news; the returned function ends that.

        While anyone watches, a reader looks several times a second for what other processes did.
        """
        return lambda: None

    def refresh(self) -> bool:
        """See what other processes did. Gives whether end, deletions, token or identity changed since the last call."""
        return False

    def unreadable(self, offsets: Sequence[int]) -> list[int]:
        """Which of these, by their places in the list, are no records because the codec cannot read them.

        Asked about records that count as deleted, if the framing names such ones. Raises LogError, LogSuperseded.
        """
        return []

    def texts_at(self, offsets: Sequence[int]) -> list[int]:
        """Which of these, by their places in the list, are lines of text beside JSON, which nothing searches.

        Asked as unreadable() is, and raises what that does.
        """
        return []

    def close(self) -> None:
        """End reading and writing."""


class MaintainedSource(LogSource):
    """A log whose bytes are ours: records can be deleted and removed, damage can be found and repaired."""

    @abstractmethod
    def delete_many(self, offsets: Iterable[int], generation: int | None = None) -> None:
        """Delete the records at these offsets, all or none; of this generation of the log only. Raises LogError."""

    @abstractmethod
    def flush(self) -> None:
        """Return when all changes are on the disk. Raises LogError."""

    @abstractmethod
    def compact(self, progress: Progress | None = None) -> Compaction:
        """Remove deleted records, and free their space. Raises LogCorrupt, LogError."""

    @abstractmethod
    def verify(self, progress: Progress | None = None) -> LogReport:
        """Read the whole log, and report what is not as it was written; changes nothing. Raises LogError."""

    @abstractmethod
    def repair(self, progress: Progress | None = None) -> RepairReport:
        """Verify the log, and repair what can be repaired. Raises LogError."""
