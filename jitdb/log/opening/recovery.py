"""Where does a log end? The journal is compared with the file.

A log is recognised by a *fingerprint* of its end. Deleting a record changes its bytes, never its length. So the
fingerprint consists of the chains of lengths (the CRC of all headers in the first block, and in the block that holds
the end) and the CRC of the newest record, unless that was deleted since.

The journal is in one of a few states, the file in one of a few others, and `OUTCOMES` says what each pair means
(docs/format-log.md, "Opening", says why). Nothing is written here; opened.py and committer.py act on the outcome.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cached_property
from typing import Final, NamedTuple

from jitdb.log.blocks.block_format import header_size, is_zero, round_up, walk_block
from jitdb.log.blocks.checksum import crc32
from jitdb.log.codecs import Codec
from jitdb.log.io.osfile import FileSystem
from jitdb.log.sidecar import journal
from jitdb.log.sidecar.deletions import Agreement, DeletionReader

_CHUNK: Final = 1 << 20  # bytes read at once while a CRC is computed


class Tail(NamedTuple):
    """What first and last block say about the log up to `end`. `end` 0 is the empty log."""

    end: int = 0  # just past the newest record
    last_record_size: int = 0
    last_record_crc: int = 0
    last_record_deleted: bool = False  # its bytes are zero, so last_record_crc says nothing
    first_chain: int = 0
    tail_chain: int = 0
    block_crc: int = 0  # crc32 of the last block's bytes up to `end`; 0 where it is not known

    @classmethod
    def of(cls, entry: journal.Entry) -> Tail:
        last = entry.last_record_size, entry.last_record_crc
        return cls(entry.end, *last, False, entry.first_chain, entry.tail_chain, entry.data_crc)

    def since(self, block_size: int) -> int:
        """Offset of the newest record, -1 if there is none."""
        return self.end - self.last_record_size - header_size(block_size) if self.last_record_size else -1

    def entry(
        self, kind: int, generation: int, change: bytes, deletions: journal.JournalPrefix | None = None
    ) -> journal.Entry:
        """The journal's entry for a log that ends here and has these `deletions`."""
        return journal.Entry(
            start=deletions.packed if deletions is not None and deletions.packed >= 0 else self.end,
            end=self.end,
            stamp=0,
            change=change,
            data_crc=self.block_crc,
            last_record_size=self.last_record_size,
            last_record_crc=self.last_record_crc,
            first_chain=self.first_chain,
            tail_chain=self.tail_chain,
            generation=generation,
            kind=kind,
        )

    def agrees(self, entry: journal.Entry) -> bool:
        """Whether the block that holds the end is still that of the entry."""
        if self.last_record_size != entry.last_record_size or self.tail_chain != entry.tail_chain:
            return False
        return self.last_record_crc == entry.last_record_crc or (
            self.last_record_deleted and self.first_chain == entry.first_chain
        )


def measure(fs: FileSystem, fd: int, end: int, block_size: int) -> Tail | None:
    """The tail of the log in the file, if it ended at `end`. None if no record ends there."""
    if end == 0:
        return Tail()
    begin = end - end % block_size
    block = fs.read(fd, end - begin, begin)
    walk = walk_block(block, len(block), block_size)
    if walk.end != end - begin or walk.fault or not walk.positions:
        return None
    header = header_size(block_size)
    newest = block[walk.positions[-1] + header :]
    tail_chain = _chain(block, walk.positions, header)
    return Tail(
        end=end,
        last_record_size=len(newest),
        last_record_crc=crc32(newest),
        last_record_deleted=is_zero(newest),
        first_chain=first_chain(fs, fd, block_size) if begin else tail_chain,
        tail_chain=tail_chain,
        block_crc=crc32(block),
    )


def first_chain(fs: FileSystem, fd: int, block_size: int) -> int:
    """crc32 of all headers in the first block."""
    block = fs.read(fd, block_size, 0)
    return _chain(block, walk_block(block, len(block), block_size).positions, header_size(block_size))


def _chain(block: bytes, positions: Sequence[int], header: int) -> int:
    return crc32(b"".join([block[at : at + header] for at in positions]))


def stamp_of(status: os.stat_result) -> int:
    """A file's modification time in nanoseconds, as the 64 bits of an entry hold it: those before 1970 wrap around."""
    return status.st_mtime_ns % (1 << 64)


def change_token(modified: int, size: int) -> bytes:
    """8 bytes for the state in which another program left the file (nanoseconds, bytes)."""
    from jitdb.common.digests import blake2b

    return blake2b(b"%d %d" % (modified, size), digest_size=8).digest()


def believe(fs: FileSystem, fd: int, end: int, entries: tuple[journal.Entry, ...], size: int) -> int:
    """How far from `end` the bytes are those that the DATA entries announced."""
    for entry in entries:
        if entry.start != end or entry.end > size or _crc(fs, fd, entry.start, entry.end) != entry.data_crc:
            break
        end = entry.end
    return end


def _crc(fs: FileSystem, fd: int, start: int, end: int) -> int:
    crc = 0
    for at in range(start, end, _CHUNK):
        crc = crc32(fs.read(fd, min(_CHUNK, end - at), at), crc)
    return crc


def survey(fs: FileSystem, fd: int, size: int, block_size: int, codec: Codec, trusted: int) -> int:
    """The end of a log that another program wrote: just past the last whole, valid record of its last block.

    It is at least `trusted`: what is before that counts, whatever the codec says. Blocks before the last one are
    accepted as they are, as the other program does, which writes one block after the other.
    """
    header = header_size(block_size)
    begin = round_up(size, block_size) - block_size
    while begin >= 0 and begin + block_size > trusted:
        if not is_zero(fs.read(fd, header, begin)):
            block = fs.read(fd, min(block_size, size - begin), begin)
            end = begin + _good_end(block, block_size, codec)
            if end > begin:
                return max(end, trusted)
        begin -= block_size
    return trusted


def _good_end(block: bytes, block_size: int, codec: Codec) -> int:
    """Just past the last record that is whole and valid. An invalid one before a valid one is no torn end."""
    header = header_size(block_size)
    walk = walk_block(block, len(block), block_size)
    for position, length in zip(reversed(walk.positions), reversed(walk.lengths), strict=True):
        record = block[position + header : position + header + length]
        if is_zero(record) or codec.is_valid(record):
            return position + header + length
    return 0


_BREATH: Final = 2 * journal.LAG  # nanoseconds: our writer's bytes are at most that much newer than its journals
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
    tail: Tail
    change: bytes  # the token for what other programs did to the log
    is_recorded: bool  # the journal says so already
    stamp: int  # the file's modification time when it was looked at, nanoseconds
    replaced: bool = False  # this is not the log that the journal tells of
    damaged: bool = False  # the last block is not what was written, though nobody else wrote to it
    lost: str = ""  # what is wrong with the journal of deletions, if it lacks some
    unacknowledged: range = range(0)  # from the end of what the journal covers to the end of whole records

    @property
    def is_accepted(self) -> bool:
        """Whether unacknowledged records count, because they were written later."""
        return self.tail.end == self.unacknowledged.stop


class Look:
    """A log's file and journals at one moment: the state of each, and the outcome."""

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
        """last_word: when our writer last wrote to its journals, nanoseconds; `deletions` was read after `state`"""
        stat = fs.fstat(fd)
        self._fs, self._fd, self._block_size, self._codec = fs, fd, block_size, codec
        self._size, self._stamp = stat.st_size, stamp_of(stat)
        self._deletions, self._last_word, self._writer_alive = deletions, last_word, writer_alive
        self._base, self._data = state
        self._change, self._lost = NO_CHANGE, ""
        self._tail = Tail()  # of the file up to where the entry ends
        self.journal = self._journal()
        self.file = File.UNKNOWN if self._base is None else self._file(self._base)

    @cached_property
    def _changed(self) -> bytes:
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
            is_unapplied = tail.since(block_size) in deletions.unapplied.offsets
            tail = tail._replace(last_record_deleted=tail.last_record_deleted or is_unapplied)
        if tail is None or not tail.agrees(base):
            return File.BROKEN if untouched else File.FOREIGN
        self._tail = tail
        if self.journal is not Journal.WRITING:
            if self._is_older(base, is_same):
                return File.OLDER
            if untouched and not self._writer_alive and base.data_crc not in (0, tail.block_crc):
                return File.DAMAGED
        return File.UNTOUCHED if untouched else File.TOUCHED

    def _is_older(self, base: journal.Entry, is_same: bool) -> bool:
        """Compare the log with its journal of deletions, if one of them may be a copy, or the writer was killed."""
        deletions, known, closed = self._deletions, base.deletions, base.kind == journal.CLOSED
        is_known = known is None or known.position == deletions.position
        if (is_same and not self._lost and is_known) or not (base.end or deletions.position):
            return False
        strict = bool(self._lost) or closed
        applied = deletions.position if strict and known is not None else deletions.marked
        agreement = deletions.compared(
            (base.end, self._stamp, self._size, applied),
            lambda: self._compare(base.end, applied),
        )
        if agreement.unlogged and not agreement.unapplied and not closed and not self._lost:
            self._change = _without_deletions(base, self._changed)
            if base.change == NO_CHANGE:  # else another program may have deleted them, long ago
                self._lost = "it does not tell of all records that are zeros in the log, which is newer"
        return agreement.unapplied

    def _compare(self, end: int, applied: int) -> Agreement:
        """Compare the log up to `end` with its journal of deletions, whose first `applied` entries should be zeros.

        If a record is zero without an entry, the journal is older. If one with such an entry is not zero, the file is
        older, or another one, perhaps compacted.
        """

        from jitdb.common.sorting import are_among, each_once
        from jitdb.log.blocks.scanner import scan

        block_size, deletions = self._block_size, self._deletions
        logged = each_once(deletions.between(0, deletions.position))
        gone = logged if applied == deletions.position else each_once(deletions.between(0, applied))
        header = header_size(block_size)
        unlogged, met = False, 0
        for piece in scan(lambda buffer, at: self._fs.read_into(self._fd, buffer, at), 0, end, block_size):
            walked = piece.walked
            zeros = walked.starts[walked.deleted] + (piece.begin - header)
            unlogged |= not bool(are_among(zeros, logged).all())
            met += int(are_among(zeros, gone).sum())
            for fault in (walked.faults + piece.begin).tolist():  # what lies behind it cannot be looked at
                met += int(((gone >= fault) & (gone < fault - fault % block_size + block_size)).sum())
        return Agreement(unlogged, met < len(gone))

    def recover(self) -> Recovery:
        return OUTCOMES[self.journal][self.file](self)

    def surveyed(self) -> Recovery:
        """The log ends with its last whole record."""
        end = self._survey(0)
        return Recovery(self._tail_at(end), self._changed if end else NO_CHANGE, False, self._stamp)

    def kept(self) -> Recovery:
        """Ends where the entry says."""
        return Recovery(self._tail, self._change, not self._lost, self._stamp, lost=self._lost)

    def kept_damaged(self) -> Recovery:
        """Ends where the entry says, and its last block is damaged."""
        return self.kept()._replace(tail=Tail.of(self._entry), damaged=True)

    def believed(self) -> Recovery:
        """Ends with the last bytes that were announced and have their CRC."""
        end = believe(self._fs, self._fd, self._entry.end, self._data, self._size)
        whole = self._survey(end)
        is_announced = whole <= max([end, *(entry.end for entry in self._data)])
        found = self._ending(end)._replace(unacknowledged=range(0) if is_announced else range(end, whole))
        if self._stamp <= self._last_word + _BREATH:
            return found
        accepted = found if is_announced else self._ending(whole)  # written after our writer was killed
        return self._changed_by_others(accepted)._replace(unacknowledged=found.unacknowledged)

    def accepted(self) -> Recovery:
        """Ends with its last whole record: another program wrote to it."""
        return self._changed_by_others(self._ending(self._survey(self._entry.end)))

    def replaced(self) -> Recovery:
        """Ends with its last whole record, and counts as another log."""
        return self.surveyed()._replace(change=self._changed, replaced=True)

    @property
    def _entry(self) -> journal.Entry:
        assert self._base is not None  # otherwise it is surveyed
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


_ALONE: Final[dict[File, Callable[[Look], Recovery]]] = {
    File.UNTOUCHED: Look.kept,
    File.DAMAGED: Look.kept_damaged,
    File.BROKEN: Look.kept_damaged,
    File.FOREIGN: Look.replaced,
    File.OLDER: Look.replaced,
}

# Impossible cells are left out: announced bytes touch the file, and beside a writer nothing is compared.
OUTCOMES: Final[dict[Journal, dict[File, Callable[[Look], Recovery]]]] = {
    Journal.NONE: {File.UNKNOWN: Look.surveyed},
    Journal.WRITING: {
        File.UNTOUCHED: Look.kept,
        File.TOUCHED: Look.kept,
        File.BROKEN: Look.kept_damaged,
        File.FOREIGN: Look.kept_damaged,
    },
    Journal.CLOSED: {**_ALONE, File.TOUCHED: Look.accepted},
    Journal.SYNCED: {**_ALONE, File.TOUCHED: Look.believed},
    Journal.DATA: {File.TOUCHED: Look.believed, File.FOREIGN: Look.replaced, File.OLDER: Look.replaced},
}


def lost_of(base: journal.Entry, deletions: DeletionReader) -> str:
    """What is wrong with the journal of deletions, if it lacks entries that it had when `base` was written."""
    known = base.deletions
    if known is None or deletions.extends(known):
        return ""
    there = "no such file, or none of this log" if not deletions.exists else f"{deletions.position:,}"
    same = " others, or damaged ones:" if deletions.position >= known.position else ""
    return f"expected {known.position:,} entries, got{same} {there}"


def _without_deletions(base: journal.Entry, changed: bytes) -> bytes:
    """A new token, so that all records are read: the journal does not say which of them are deleted."""
    from jitdb.common.digests import blake2b

    return blake2b(changed + base.change + base.start.to_bytes(8, "little"), digest_size=8).digest()
