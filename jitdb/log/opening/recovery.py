"""Where does the log end? What the journal says is held against the file, whoever wrote to it last.

The journal is in one of a few states, the file in one of a few others, and `OUTCOMES` says what each pair means. Why:

- After a clean close, bytes beyond the last entry were appended by another program: they are accepted as far as
  they are whole records.
- An entry's stamp tells whether anybody wrote to the file since.
- After a crash, the DATA entries behind the last settled one hold as long as the bytes have their CRC. What else they
  tell of was never acknowledged.
- Bytes that no entry tells of are there after a power failure that took the entry, or because the journal is of an
  earlier moment than the log, or another program appended after the crash. A writer syncs its word at least each
  second before it writes (journal.py): where the file was written to long after the journals, it was no power failure,
  and they are accepted as after a clean close. Else they are left out, and told of if they are whole records.
- A log that is not the one the journal tells of (truncated, replaced, compacted by another program) is a new one.
- A settled entry says what the journal of deletions held. Where that is lost, or may be of another moment than the log,
  which records are deleted is found by reading, as after another program.

Nothing is written here; truncate.py and bind.py act on what is found.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cached_property
from typing import Final, NamedTuple

from jitdb.log.blocks.layout import round_up
from jitdb.log.codecs import Codec
from jitdb.log.io.osfile import FileSystem
from jitdb.log.opening.survey import believe, compare, survey
from jitdb.log.opening.tail import Tail, change_token, measure, stamp_of
from jitdb.log.sidecar import journal
from jitdb.log.sidecar.deletions import DeletionReader

_BREATH: Final = 2 * journal.LAG  # nanoseconds: our writer's bytes come no later than that after its last durable word
NO_CHANGE: Final = bytes(8)


class Journal(Enum):
    """What the journal of commits says of the log."""

    NONE = "nothing"
    WRITING = "a writer is there, and answers for the file"
    CLOSED = "the writer left"
    SYNCED = "the writer died, and had announced nothing since all was durable"
    DATA = "the writer died, and had announced bytes"


class File(Enum):
    """How the log's file stands to the last settled entry."""

    UNKNOWN = "there is no such entry"
    UNTOUCHED = "as the entry left it"
    TOUCHED = "written to since, and it has the last record of which the entry tells"
    DAMAGED = "not written to since, and a byte of its last block is another"
    BROKEN = "not written to since, and its last record is another"
    FOREIGN = "written to since, and its last record is another: it is shorter, or another log"
    OLDER = "records stand in it that the journal of deletions says are zeros"


class Recovery(NamedTuple):
    """The log as it stands in the file."""

    tail: Tail
    change: bytes  # the token for what other programs did to the log
    is_recorded: bool  # the journal says just this: there is nothing to record
    stamp: int  # the file's modification time when it was looked at, nanoseconds
    replaced: bool = False  # this is not the log that the journal tells of
    damaged: bool = False  # the last block is not what was written, though nobody else wrote to it
    lost: str = ""  # what is wrong with the journal of deletions: it does not tell of all of them
    unacknowledged: range = range(0)  # from where the journal tells of to where whole records end of which it does not

    @property
    def is_accepted(self) -> bool:
        """Whether such records count, because they were written later."""
        return self.tail.end == self.unacknowledged.stop


class Look:
    """A log's file and its journals as they are at one moment: the state of each, and the outcome."""

    def __init__(
        self,
        fs: FileSystem,
        fd: int,
        block_size: int,
        codec: Codec,
        state: journal.State,
        *,
        writer_alive: bool,
        deletions: DeletionReader,
        last_word: int = 0,
    ) -> None:
        """`writer_alive`: another process is writing now.

        `last_word` is when a writer of ours last wrote to its journals, in nanoseconds; `deletions` was read to its end
        after `state` was.
        """
        stat = fs.fstat(fd)
        self._fs, self._fd, self._block_size, self._codec = fs, fd, block_size, codec
        self._size, self._stamp = stat.st_size, stamp_of(stat)
        self._deletions, self._last_word, self._writer_alive = deletions, last_word, writer_alive
        self._base, self._data = state
        self._change, self._lost = NO_CHANGE, ""
        self._tail = Tail()  # as it is in the file, were the log to end where the entry says
        self.journal = self._journal()
        self.file = File.UNKNOWN if self._base is None else self._file(self._base)

    @cached_property
    def _changed(self) -> bytes:
        """The token of a log that another program left so."""
        return change_token(self._stamp, self._size)

    def _journal(self) -> Journal:
        if self._base is None:
            return Journal.NONE
        if self._base.kind == journal.CLOSED:
            return Journal.CLOSED
        if self._writer_alive:
            return Journal.WRITING
        return Journal.DATA if self._data else Journal.SYNCED

    def _file(self, base: journal.Entry) -> File:
        deletions, block_size = self._deletions, self._block_size
        is_same = base.stamp == self._stamp and self._size == round_up(base.end, block_size)
        untouched = is_same and not self._data
        self._lost = lost_of(base, deletions)
        self._change = _without_deletions(base, self._changed) if self._lost else base.change
        tail = measure(self._fs, self._fd, base.end, block_size) if base.end <= self._size else None
        if tail is not None and not tail.agrees(base):  # half zero, perhaps
            tail.last_record_deleted |= tail.since(block_size) in {each.offset for each in deletions.unapplied}
        if tail is None or not tail.agrees(base):
            return File.BROKEN if untouched else File.FOREIGN
        self._tail = tail
        if self.journal is not Journal.WRITING:
            if self._is_older(base, is_same):
                return File.OLDER
            if untouched and not self._writer_alive and tail.is_damaged(base):
                return File.DAMAGED
        return File.UNTOUCHED if untouched else File.TOUCHED

    def _is_older(self, base: journal.Entry, is_same: bool) -> bool:
        """Hold the log against its journal of deletions, where they may be of different moments.

        They may be copies, or of a writer that was killed.
        """
        deletions, known, closed = self._deletions, base.deletions, base.kind == journal.CLOSED
        is_known = known is None or known.position == deletions.position
        if (is_same and not self._lost and is_known) or not (base.end or deletions.position):
            return False
        strict = bool(self._lost) or closed
        applied = deletions.position if strict and known is not None else deletions.marked
        agreement = deletions.compared(
            (base.end, self._stamp, self._size, applied),
            lambda: compare(self._fs, self._fd, base.end, self._block_size, deletions, applied),
        )
        if agreement.unlogged and not agreement.unapplied and not closed and not self._lost:
            self._change = _without_deletions(base, self._changed)
            if base.change == NO_CHANGE:  # else another program may have deleted them, long ago
                self._lost = "it does not tell of all records that are zeros in the log, which is newer"
        return agreement.unapplied

    def recover(self) -> Recovery:
        """The log's durable end."""
        return OUTCOMES[self.journal][self.file](self)

    # --- outcomes: the log ends ... --------------------------------------------------------------------------------

    def surveyed(self) -> Recovery:
        """With its last whole record, whoever wrote it."""
        end = self._survey(0)
        return Recovery(self._tail_at(end), self._changed if end else NO_CHANGE, False, self._stamp)

    def kept(self) -> Recovery:
        """Where the entry says."""
        return Recovery(self._tail, self._change, not self._lost, self._stamp, lost=self._lost)

    def kept_damaged(self) -> Recovery:
        """Where the entry says, and its last block is damaged."""
        return self.kept()._replace(tail=Tail.of(self._entry), damaged=True)

    def believed(self) -> Recovery:
        """With the last bytes that were announced and have their CRC."""
        end = believe(self._fs, self._fd, self._entry.end, self._data, self._size)
        whole = self._survey(end)
        is_announced = whole <= max([end, *(entry.end for entry in self._data)])
        found = self._ending(end)._replace(unacknowledged=range(0) if is_announced else range(end, whole))
        if self._stamp <= self._last_word + _BREATH:
            return found
        accepted = found if is_announced else self._ending(whole)  # not by our writer, killed between two words
        return self._changed_by_others(accepted)._replace(unacknowledged=found.unacknowledged)

    def accepted(self) -> Recovery:
        """With its last whole record: another program wrote to it."""
        return self._changed_by_others(self._ending(self._survey(self._entry.end)))

    def replaced(self) -> Recovery:
        """With its last whole record, and it counts as another log."""
        return self.surveyed()._replace(change=self._changed, replaced=True)

    @property
    def _entry(self) -> journal.Entry:
        assert self._base is not None  # else it is surveyed
        return self._base

    def _ending(self, end: int) -> Recovery:
        tail = self._tail if end == self._entry.end else self._tail_at(end)
        return Recovery(tail, self._change, False, self._stamp, lost=self._lost)

    def _changed_by_others(self, found: Recovery) -> Recovery:
        return found._replace(change=self._changed) if found.tail.end else found

    def _survey(self, trusted: int) -> int:
        return survey(self._fs, self._fd, self._size, self._block_size, self._codec, trusted)

    def _tail_at(self, end: int) -> Tail:
        # Only another program that writes at this very moment can have moved the end meanwhile.
        return measure(self._fs, self._fd, end, self._block_size) or Tail()


# What cannot be is left out: who announces bytes writes to the file, and while a writer is there nothing is compared.
OUTCOMES: Final[dict[Journal, dict[File, Callable[[Look], Recovery]]]] = {
    Journal.NONE: {
        File.UNKNOWN: Look.surveyed,
    },
    Journal.WRITING: {
        File.UNTOUCHED: Look.kept,
        File.TOUCHED: Look.kept,
        File.BROKEN: Look.kept_damaged,
        File.FOREIGN: Look.kept_damaged,
    },
    Journal.CLOSED: {
        File.UNTOUCHED: Look.kept,
        File.TOUCHED: Look.accepted,
        File.DAMAGED: Look.kept_damaged,
        File.BROKEN: Look.kept_damaged,
        File.FOREIGN: Look.replaced,
        File.OLDER: Look.replaced,
    },
    Journal.SYNCED: {
        File.UNTOUCHED: Look.kept,
        File.TOUCHED: Look.believed,
        File.DAMAGED: Look.kept_damaged,
        File.BROKEN: Look.kept_damaged,
        File.FOREIGN: Look.replaced,
        File.OLDER: Look.replaced,
    },
    Journal.DATA: {
        File.TOUCHED: Look.believed,
        File.FOREIGN: Look.replaced,
        File.OLDER: Look.replaced,
    },
}


def lost_of(base: journal.Entry, deletions: DeletionReader) -> str:
    """What is wrong with the journal of deletions where it lacks entries that it had when this one was written."""
    known = base.deletions
    if known is None or deletions.extends(known):
        return ""
    there = "no such file, or none of this log" if not deletions.exists else f"{deletions.position:,}"
    same = " others" if deletions.position >= known.position else ""
    return f"expected {known.position:,} entries, got{same} {there}"


def _without_deletions(base: journal.Entry, changed: bytes) -> bytes:
    """A token by which all records are looked at again: the journal does not tell which of them are deleted."""
    from hashlib import blake2b

    return blake2b(changed + base.change + base.start.to_bytes(8, "little"), digest_size=8).digest()
