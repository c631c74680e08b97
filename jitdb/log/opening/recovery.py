"""Where does the log end? What the journal says is held against the file, whoever wrote to it last.

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

Nothing is written here; truncate.py and open_log.py act on what is found.
"""

from __future__ import annotations

import zlib
from hashlib import blake2b
from typing import Final, NamedTuple

from jitdb.log.blocks.layout import header_size, round_up
from jitdb.log.blocks.packing import is_zero, walk_block
from jitdb.log.codecs import Codec
from jitdb.log.io.osfile import FileSystem
from jitdb.log.opening.agreement import compare
from jitdb.log.opening.tail import Tail, change_token, measure, stamp_of
from jitdb.log.sidecar import journal
from jitdb.log.sidecar.deletions import DeletionReader

_CHUNK: Final = 1 << 20  # bytes read at once while a CRC is computed
_BREATH: Final = 2 * journal.LAG  # nanoseconds: our writer's bytes come no later than that after its last durable word
NO_CHANGE: Final = bytes(8)


class Recovery(NamedTuple):
    """The log as it stands in the file."""

    tail: Tail
    change: bytes  # the token for what other programs did to the log
    is_recorded: bool  # the journal says just this: there is nothing to record
    stamp: int  # the file's modification time when it was looked at, nanoseconds
    replaced: bool = False  # this is not the log that the journal tells of
    damaged: bool = False  # the last block is not what was written, though nobody else wrote to it
    lost: str = ""  # what is wrong with the journal of deletions: it does not tell of all of them
    unacknowledged: range = range(
        0
    )  # from where the journal tells of to where whole records end of which no entry tells

    @property
    def is_accepted(self) -> bool:
        """Whether such records count, because they were written later."""
        return self.tail.end == self.unacknowledged.stop


def examine(
    fs: FileSystem,
    fd: int,
    block_size: int,
    codec: Codec,
    state: journal.State,
    *,
    writer_alive: bool,
    deletions: DeletionReader,
    last_word: int = 0,
) -> Recovery:
    """Find the log's durable end. `writer_alive`: another process is writing now, and answers for the file.

    `last_word` is when a writer of ours last wrote to its journals, in nanoseconds; `deletions` was read to its end
    after `state` was.
    """
    base = state.base
    stat = fs.fstat(fd)
    stamp = stamp_of(stat)
    changed = change_token(stamp, stat.st_size)
    if base is None:
        end = survey(fs, fd, stat.st_size, block_size, codec, 0)
        return Recovery(_tail_at(fs, fd, end, block_size), changed if end else NO_CHANGE, False, stamp)

    tail = measure(fs, fd, base.end, block_size) if base.end <= stat.st_size else None
    if tail is not None and not tail.agrees(base):
        tail.last_record_deleted |= tail.since(block_size) in {
            each.offset for each in deletions.unapplied
        }  # or half zero
    closed, alive = base.kind == journal.CLOSED, writer_alive and base.kind != journal.CLOSED
    seen = base.stamp == stamp and stat.st_size == round_up(base.end, block_size)
    untouched = seen and not state.data
    lost = lost_of(base, deletions)
    change = _without_deletions(base, changed) if lost else base.change
    if tail is None or not tail.agrees(base):
        if untouched or alive:
            return Recovery(_as_written(base), change, not lost, stamp, damaged=True, lost=lost)
        return _replaced(fs, fd, stat.st_size, block_size, codec, changed, stamp)
    if alive:
        return Recovery(tail, change, not lost, stamp, lost=lost)
    known = base.deletions
    is_other = not seen or lost or (known is not None and known.position != deletions.position)
    if is_other and (base.end or deletions.position):
        # The log and its journal of deletions may be of different moments: copies, or a writer that was killed.
        strict = bool(lost) or closed
        applied = deletions.position if strict and base.deletions is not None else deletions.marked
        agreement = deletions.compared(
            (base.end, stamp, stat.st_size, applied),
            lambda: compare(fs, fd, base.end, block_size, deletions, applied),
        )
        if agreement.unapplied:
            return _replaced(fs, fd, stat.st_size, block_size, codec, changed, stamp)
        if agreement.unlogged and not closed and not lost:
            change = _without_deletions(base, changed)
            if base.change == NO_CHANGE:  # else another program may have deleted them, long ago
                lost = "it does not tell of all records that are zeros in the log, which is newer"
    if untouched and not writer_alive and tail.is_damaged(base):
        return Recovery(_as_written(base), change, not lost, stamp, damaged=True, lost=lost)
    if untouched:
        return Recovery(tail, change, not lost, stamp, lost=lost)
    end = base.end if closed else believe(fs, fd, base.end, state.data, stat.st_size)
    told = end if closed else max([end, *(entry.end for entry in state.data)])
    whole = survey(fs, fd, stat.st_size, block_size, codec, end)
    unacknowledged = range(end, whole) if whole > told and not closed else range(0)
    if closed or stamp > last_word + _BREATH:  # not by our writer, killed between two words
        end = whole if closed or unacknowledged else end
        change = changed if end else change
    tail = tail if end == base.end else _tail_at(fs, fd, end, block_size)
    return Recovery(tail, change, False, stamp, lost=lost, unacknowledged=unacknowledged)


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
    return blake2b(changed + base.change + base.start.to_bytes(8, "little"), digest_size=8).digest()


def _replaced(
    fs: FileSystem, fd: int, size: int, block_size: int, codec: Codec, changed: bytes, stamp: int
) -> Recovery:
    end = survey(fs, fd, size, block_size, codec, 0)
    return Recovery(_tail_at(fs, fd, end, block_size), changed, False, stamp, replaced=True)


def _as_written(base: journal.Entry) -> Tail:
    return Tail(
        base.end, base.last_record_size, base.last_record_crc, False, base.first_chain, base.tail_chain, base.data_crc
    )


def _tail_at(fs: FileSystem, fd: int, end: int, block_size: int) -> Tail:
    tail = measure(fs, fd, end, block_size)
    # Only another program that writes at this very moment can have moved the end meanwhile.
    return Tail() if tail is None else tail


def believe(fs: FileSystem, fd: int, end: int, entries: tuple[journal.Entry, ...], size: int) -> int:
    """How far the bytes are those of which the DATA entries tell, from `end` on."""
    for entry in entries:
        if entry.start != end or entry.end > size or _crc(fs, fd, entry.start, entry.end) != entry.data_crc:
            break
        end = entry.end
    return end


def _crc(fs: FileSystem, fd: int, start: int, end: int) -> int:
    crc = 0
    for at in range(start, end, _CHUNK):
        crc = zlib.crc32(fs.read(fd, min(_CHUNK, end - at), at), crc)
    return crc


def survey(fs: FileSystem, fd: int, size: int, block_size: int, codec: Codec, trusted: int) -> int:
    """The end of a log that another program wrote: just past the last whole, valid record of its last block.

    `trusted` is the least that this gives back: what is before it counts, whatever the codec says. Blocks before the
    last one are taken as they are, as the other program does: its blocks are written one after the other.
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
    """Just past the last record that is whole and valid. One that is not, with such a one behind it, is no torn end."""
    header = header_size(block_size)
    walk = walk_block(block, len(block), block_size)
    for position, length in zip(reversed(walk.positions), reversed(walk.lengths), strict=True):
        record = block[position + header : position + header + length]
        if is_zero(record) or codec.is_valid(record):
            return position + header + length
    return 0
