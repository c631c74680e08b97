"""Everything that jitdb raises or warns of, in one small tree under JitdbError.

Each error says what was expected, what was found and what to do about it; those that speak of bytes on
disk carry the file and the offset as attributes, so that a program need not read the sentence.

    JitdbError
      LogError             the file of records
        NotALog              it is not a block-aligned log (or not with this block size or codec)
        LogLocked            another process writes to it
        LogClosed            it was closed
        LogReadOnly          it was opened read-only
        LogCorrupt           bytes are not what was written
        CompactionUnfinished another program began to compact it, and has not finished: opening it for writing does
        LogSuperseded        a reader's: it was compacted or replaced since it was read; refresh() shows it
        LogWriteFailed       the disk refused; the writer stops until the log is opened again
        InvalidArgument      an argument that no log can take
        InvalidOffset        no record begins there
        RecordDeleted        the record was deleted
        InvalidRecord        it cannot be stored as a record (empty, all zeros, not bytes)
          RecordTooLarge       it does not fit one block
      CodecError           one record's bytes
        EncodeError
        DecodeError
      QueryError           a question that cannot be asked (unknown option, wrong type, bad expression)
        TooManyIndexes       it needs an index more than max_indexes or max_index_bytes allow
      QueryCancelled       the asker went away before the answer
      IndexDamaged         an index file is not what was written (it is rebuilt; you see the warning below)
        IndexForeign         it belongs to another log, or to this one before it was replaced
        IndexBehind          it does not reach as far as it did: somebody had it built anew
    JitdbWarning
      IndexWarning         an index was rebuilt, or is kept in memory because its folder cannot be written
      LogWarning           the log was repaired when it was opened
        DamageWarning        records were left out, because their block is not what was written
"""

from __future__ import annotations

import os
from collections.abc import Sequence


class JitdbError(Exception):
    """The root of all errors that jitdb raises on purpose."""


class LogError(JitdbError):
    """Something is wrong with a log. `path` is its file, `offset` the byte position (or None)."""

    def __init__(self, message: str, *, path: str | os.PathLike[str] | None = None, offset: int | None = None) -> None:
        where = "" if path is None else f"{os.fspath(path)}: "
        super().__init__(where + message)
        self.path = None if path is None else os.fspath(path)
        self.offset = offset


class InvalidArgument(LogError, ValueError):
    """An argument that no log can take: a path that is none, a limit below 0, text instead of a function."""


class NotALog(LogError):
    """The file is not a block-aligned log, or not with the block size or codec it was opened with."""


class LogLocked(LogError):
    """Another process (`pid`, when known) has the log open for writing."""

    def __init__(self, message: str, *, path: str | os.PathLike[str] | None = None, pid: int | None = None) -> None:
        super().__init__(message, path=path)
        self.pid = pid


class LogClosed(LogError):
    """The log was closed."""


class LogReadOnly(LogError):
    """The log was opened read-only."""


class LogCorrupt(LogError):
    """Bytes on disk are not those that were written. `block` is the number of the damaged block."""

    def __init__(
        self,
        message: str,
        *,
        path: str | os.PathLike[str] | None = None,
        offset: int | None = None,
        block: int | None = None,
        expected: object = None,
        got: object = None,
    ) -> None:
        super().__init__(message, path=path, offset=offset)
        self.block = block
        self.expected = expected
        self.got = got


class LogSuperseded(LogError):
    """A reader does not know yet that the log was compacted or replaced: which records were deleted since is told only
    to who calls refresh(). Questions do so by themselves.
    """


class CompactionUnfinished(LogError):
    """async-append-only-log began to compact the log, and has not finished: until then it cannot be read.

    Whoever opens the log for writing finishes it, here or there.
    """


class LogWriteFailed(LogError):
    """A write or fsync failed. What was not acknowledged may be lost; open the log again to go on."""


class InvalidOffset(LogError, ValueError):
    """No record begins at this offset: negative, not an integer, past the end, or inside a record."""


class RecordDeleted(LogError, LookupError):
    """The record at this offset was deleted."""


class InvalidRecord(LogError, ValueError):
    """This cannot be stored as a record."""


class RecordTooLarge(InvalidRecord):
    """The record (`size` bytes) is larger than one block can hold (`limit` bytes)."""

    def __init__(self, *, path: str | os.PathLike[str] | None, size: int, limit: int) -> None:
        super().__init__(
            f"a record of {size:,} bytes does not fit a block: at most {limit:,} bytes; "
            f"a log made with a larger block_size (up to 16 MiB) holds larger records",
            path=path,
        )
        self.size = size
        self.limit = limit


class CodecError(JitdbError):
    """One record's bytes, or one value, do not suit the codec."""


class EncodeError(CodecError, ValueError):
    """The value has no encoding in this codec."""


class DecodeError(CodecError, ValueError):
    """The bytes are no value of this codec. `position` is the byte in the record, `offset` the record's."""

    def __init__(self, message: str, *, position: int | None = None, offset: int | None = None) -> None:
        super().__init__(message)
        self.position = position
        self.offset = offset


class QueryError(JitdbError, ValueError):
    """The question cannot be asked: an unknown operator or option, a wrong type, a bad expression.

    Also where a function of the user raised StopIteration or StopAsyncIteration, which would end the answer.
    """


class TooManyIndexes(QueryError):
    """The question needs an index that is not there, and no more of them may be built for questions."""


class QueryCancelled(JitdbError):
    """The asker went away (a cancelled task, a closed iterator) before the answer was there."""


class IndexDamaged(JitdbError):
    """An index file is not what was written. Inside the engine only: the file is rebuilt, with a warning."""

    def __init__(self, message: str, *, path: str | os.PathLike[str], offset: int | None = None) -> None:
        super().__init__(f"{os.fspath(path)}: {message}")
        self.path = os.fspath(path)
        self.offset = offset


class IndexForeign(IndexDamaged):
    """An index file belongs to another log, to this one before it was replaced, or to a copy. Inside the engine only.

    `generation` is that of the log that the file belongs to, where it is the same log, or was; else None.
    """

    def __init__(self, message: str, *, path: str | os.PathLike[str], generation: int | None = None) -> None:
        super().__init__(message, path=path)
        self.generation = generation


class IndexBehind(IndexDamaged):
    """An index does not reach as far as it did; nothing is wrong with it. Inside the engine only."""


class JitdbWarning(UserWarning):
    """The root of all warnings."""


class IndexWarning(JitdbWarning):
    """An index was damaged, stale or foreign and is rebuilt, or cannot be written and is kept in memory."""


class LogWarning(JitdbWarning):
    """The log was repaired when it was opened, or was changed by another program."""


class DamageWarning(LogWarning):
    """Records were left out, because their blocks are not what was written. `faults` tell of each such place.

    Who must have all records or none makes it an error: `warnings.simplefilter("error", DamageWarning)`.
    """

    def __init__(self, message: str, faults: Sequence[LogCorrupt] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)
