"""Making records durable: what is written to which file, and in which order.

    write   journal: DATA entry        then the log: the records         then checksums of sealed blocks
    whole   the same, the entry fsynced first, the records of the last block last of all
    sync    the log and the journal,   then journal: SYNCED entry        then (writer.py) `since` moves
            both at the same time
    close   the log's time and the journal's last entry, CLOSED, both at the same time
    erase   journals of deletions and commits fsynced   then zeros in the log, checksums, fsynced   then a mark

If a step is interrupted (KeyboardInterrupt), the next one begins the journal anew at the last known end.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from jitdb.errors import LogWarning, LogWriteFailed, Remedy, outside
from jitdb.log.blocks.block_format import header_size, round_up
from jitdb.log.blocks.checksum import crc32
from jitdb.log.io import filenames
from jitdb.log.opening.recovery import Tail, change_token, measure, stamp_of
from jitdb.log.sidecar import journal
from jitdb.log.sidecar.checksums import UNPROVEN
from jitdb.log.sidecar.deletions import MARK, Deletions, DeletionWriter, encoded
from jitdb.log.writing.erase import erase, last_byte, set_aside, stands, truncate_to, with_lengths
from jitdb.log.writing.groups import EncodedGroup, PackedBlocks, Pending, ScratchBlocks

if TYPE_CHECKING:
    from pathlib import Path

    from jitdb.log.opening.opened import Opened

GROUP: Final = 1 << 20  # bytes; about as much is written at once, and covered by one entry of the journal
ROOM: Final = 1 << 16  # bytes; zeros are laid out up to a multiple of it, or to the end of the block: see _room
_NOWHERE: Final = 1 << 63


class Committer:
    """Writes to one log's files. Not safe for threads; raises OSError as the files do, LogWriteFailed."""

    def __init__(self, opened: Opened) -> None:
        """Clean up what a crash or another program left, and prepare to write."""
        self._opened = opened
        self._fs = opened.fs
        self._block_size = opened.meta.block_size
        self._header = header_size(self._block_size)
        self._journal = journal.JournalWriter(opened.fs, opened.sidecar / filenames.COMMIT)
        self._deletions = DeletionWriter(opened.fs, opened.sidecar / filenames.DELETIONS, opened.meta.generation)
        self._deletions.known = opened.deletions.known
        self._erasing = False  # a deletion is under way, or was interrupted
        self._running = False  # a step is under way; true at the beginning of one: the last was interrupted
        self.tail: Tail = opened.recovery.tail
        self.durable = self.tail
        self.damaged_block = self._tail_block if opened.recovery.damaged else -1
        self._doubted = -1  # the block that held the log's end when another program had changed the log
        self._laid = 0 if opened.fs.overwrites else _NOWHERE  # up to this byte zeros were laid out, if any were
        self._seen = (0, 0)  # the file's modification time and size after our last write
        try:
            self._prepare()
        except BaseException:
            self.release()
            raise

    def _prepare(self) -> None:
        opened, end = self._opened, self.tail.end
        found, base = opened.recovery, opened.journal.state.base
        if base is None or base.kind != journal.CLOSED or not base.end:
            opened.deletions.sync()
            # Names in these folders may be new, and their process dead before it synced them.
            self._fs.sync_folder(opened.sidecar)
            self._fs.sync_folder(opened.path.parent)
        if not found.is_recorded:
            # Bytes accepted by their CRC may not be on disk yet, nor the entries with these CRCs.
            self._fs.fsync(opened.fd)
            opened.journal.sync()
        kept = None if found.damaged else set_aside(self._fs, opened.fd, end, opened.path, opened.sidecar)
        is_kept = opened.checksums.open_to_write()
        self._seal_believed(base)  # before the journal is begun anew, which proves them
        if not found.damaged:
            self._cut(kept)
        else:
            warning = LogWarning(
                f"the last block is damaged (up to {end:,} it is not what was written), and new records go to the "
                f"next block",
                path=opened.path,
                remedy=Remedy(
                    *(f"{repair} restores what can be restored" for repair in ("Log.repair()", "jitdb repair"))
                ),
            )
            warnings.warn(warning, stacklevel=outside())
        if end and (not is_kept or opened.checksums.is_doubted(self._tail_block)):
            self._doubted = self._tail_block
        opened.checksums.forget_from(self._tail_block)
        self._look()
        if kept is None and found.is_recorded and base is not None and base.stamp == self._seen[0]:  # nothing to do
            self._journal.start(opened.journal.position)
            self._last = base.kind
        else:
            self._restart_journal()
        self._finish_deletions()

    def _seal_believed(self, base: journal.Entry | None) -> None:
        """Write the checksums of blocks that were sealed after `base`: the writer may have died before that."""
        size, sums, found = self._block_size, self._opened.checksums, self._opened.recovery
        if base is None or base.kind == journal.CLOSED or found.replaced or found.is_accepted:
            return
        for block in range(base.end // size, self._tail_block):
            data = self._opened.read(size, block * size)
            before = data[: max(0, base.end - block * size)]  # else all of it has just been accepted by its CRC
            if not before or sums.get(block) is None:
                is_proof = not before or crc32(before) == base.data_crc
                sums.put(block, [crc32(data)], 0 if is_proof else UNPROVEN)
        sums.sync()

    def _cut(self, kept: Path | None) -> None:
        """Cut the file off at the log's end. `kept` has the bytes behind it, unless they are zeros."""
        opened, end, found = self._opened, self.tail.end, self._opened.recovery
        if kept is not None:
            reason = f"the bytes from offset {end:,} on were never acknowledged or are no whole records"
            if found.unacknowledged and not found.is_accepted:
                reason = (
                    f"{opened.sidecar.name}/{filenames.COMMIT} tells of the log up to byte {end:,}; the whole "
                    f"records that follow up to byte {found.unacknowledged.stop:,} were never acknowledged, or it is "
                    f"older than the log"
                )
            told = f"{reason}; they were cut off and kept in {kept}"
            opened.notices.append(told)
            warnings.warn(LogWarning(told, path=opened.path), stacklevel=outside())
            # The file gets a new time now. With an old journal, bytes that are not cut off yet would count.
            self._restart_journal()
        truncate_to(self._fs, opened.fd, end, self._block_size)

    def _finish_deletions(self) -> None:
        """Zero the records whose deletion was cut short. Only now: accepted DATA entries have CRCs from before that."""
        opened = self._opened
        opened.deletions.poll()
        if not opened.deletions.unapplied:
            return
        self._deletions.known = journal.JournalPrefix(0, 0)  # their writer may have died before they were durable
        self._deletions.start(opened.deletions)
        fs, end, size = self._fs, self.tail.end, self._block_size
        found = Deletions()
        for each in opened.deletions.unapplied:
            if stands(fs, opened.fd, end, size, each):
                found.add(each)
        self._zero(found, again=True)
        self._deletions.sync()

    def _zero(self, deletions: Deletions, *, again: bool) -> None:
        """Zero these records, which are in the journal of deletions. `again`: this may have been begun before."""
        opened = self._opened
        self._deletions.sync()
        tail_begins = self._tail_block * self._block_size
        in_tail = max(deletions.offsets, default=-1) >= tail_begins
        known = self.tail.block_crc
        if in_tail:  # until that is done, the last block has neither the old CRC nor the new one
            self.tail = self.tail._replace(block_crc=0)
            self._append_entry(journal.SYNCED)
        self._journal.sync()
        again, self._erasing = again or self._erasing, True
        erase(self._fs, opened.fd, self._block_size, opened.checksums, deletions, again=again)
        self._erasing = False
        if in_tail and (known or not again):
            self._measure_block()
        self._deletions.append(MARK)
        self._look()
        self._append_entry(journal.SYNCED)
        opened.deletions.poll()

    def write(self, pending: Pending | EncodedGroup) -> None:
        """Write the group (its remaining runs), about a megabyte at a time. Durable after the next sync()."""
        with self._step():
            self._begin()
            runs = pending.runs()
            blocks = PackedBlocks(self.tail, self._block_size)
            for number in range(pending.done, len(runs)):
                if number:
                    if blocks.size >= GROUP:
                        self._write_blocks(blocks)
                        self.tail, pending.done = blocks.tail, number
                        blocks = PackedBlocks(self.tail, self._block_size)
                    blocks.seal()
                first, last = runs[number]
                if last > first:
                    pending.put(blocks, first, last)
            self._write_blocks(blocks)
            self.tail, pending.done = blocks.tail, len(runs)

    def _write_blocks(self, blocks: PackedBlocks) -> None:
        blocks.finish()
        data = b"".join(blocks.parts)
        self._announce(blocks, crc32(data))
        self._fs.write(self._opened.fd, data + bytes(self._room(blocks)), blocks.start)
        self._note_sealed(blocks)
        self._look()

    def _room(self, blocks: PackedBlocks) -> int:
        """How many zeros to lay out behind these. Later flushes overwrite them, for which a file system has no blocks
        to find and no size to note. None in the first block, so that a small log takes little space.
        """
        end = blocks.tail.end
        if end <= max(self._laid, self._block_size) or blocks.size >= ROOM:
            return 0
        self._laid = min(round_up(end, ROOM), round_up(end, self._block_size))
        return self._laid - end

    def write_whole(self, packed: ScratchBlocks) -> None:
        """Write records that one entry of the journal covers: all or none. Durable after the next sync()."""
        fd = self._opened.fd
        with self._step():
            self._begin()
            self._announce(packed, packed.crc, durably=True)
            # The last block makes the entry valid, so it is written last.
            last = max(packed.start, (packed.tail.end - 1) // self._block_size * self._block_size)
            packed.copy(fd, packed.start, last)
            self._note_sealed(packed)
            packed.copy(fd, last, packed.start + packed.size)
            self._look()
            self.tail = packed.tail

    def _announce(self, blocks: PackedBlocks, data_crc: int, *, durably: bool = False) -> None:
        """Announce the bytes in the journal, and extend the file to whole blocks for them."""
        entry = blocks.tail.entry(journal.DATA, self._opened.meta.generation, self._opened.recovery.change)
        self._journal.append(entry._replace(start=blocks.start, data_crc=data_crc))
        self._last = journal.DATA
        if durably:
            self._journal.sync()
        else:
            self._journal.keep_up()
        whole = round_up(blocks.tail.end, self._block_size)
        if whole > self._seen[1]:
            self._fs.truncate(self._opened.fd, whole)

    def _note_sealed(self, blocks: PackedBlocks) -> None:
        first, sealed = blocks.start // self._block_size, blocks.sealed
        if sealed and first == self.damaged_block and not self.tail.block_crc:
            first, sealed = first + 1, sealed[1:]  # its right CRC is unknown
        if sealed and first == self._doubted:
            self._opened.checksums.put(first, sealed[:1], UNPROVEN)
            first, sealed = first + 1, sealed[1:]
        self._opened.checksums.put(first, sealed)

    def sync(self) -> bool:
        """Make durable what was written; whether anything was."""
        if self.tail.end == self.durable.end:
            return False
        with self._step():
            self._fs.sync_both(lambda: self._fs.fdatasync(self._opened.fd), self._journal.sync)
            self._append_entry(journal.SYNCED)
            if self._journal.is_long:
                self._journal.rewrite(self._entry(journal.SYNCED))
        self.durable = self.tail
        return True

    def erase(self, offsets: Sequence[int]) -> None:
        """Delete these records for good. What was written must have been synced."""
        with self._step():
            self._begin()
            self._opened.deletions.poll()
            self._deletions.start(self._opened.deletions)
            deletions = with_lengths(self._fs, self._opened.fd, self._block_size, offsets)
            for entries in encoded(deletions):
                self._deletions.append(entries)
            self._zero(deletions, again=False)

    def close(self) -> None:
        """Note in the journal that the log was closed. Everything must have been synced."""
        if self.tail.end and self._doubted == self._tail_block:
            self._opened.checksums.put(self._doubted, [0], UNPROVEN)
        if self._last != journal.CLOSED:
            with self._step():
                self._deletions.sync()  # the last mark
                self._append_entry(journal.CLOSED)
                # A stamp that is another than the file's time costs a look at the whole log, and no record.
                self._fs.sync_both(lambda: self._fs.fsync(self._opened.fd), self._journal.finish)

    def release(self) -> None:
        self._journal.close()
        self._deletions.close()

    @property
    def tail_proof(self) -> int | None:
        """CRC-32 of the last block up to the end, as it was written; None if unknown, or if others wrote in it."""
        return None if self._doubted == self._tail_block else self.tail.block_crc or None

    @contextmanager
    def _step(self) -> Iterator[None]:
        self._check_place()
        if self._running:
            self._fs.fsync(self._opened.fd)
            if self.damaged_block != self._tail_block:
                self._measure_block()  # records in it may have been half erased
            self._look()
            self._restart_journal()
        else:
            self._check_unchanged()
        self._running = True
        yield
        self._running = False

    def _begin(self) -> None:
        """Note in the journal, before the log changes, that it is no longer closed."""
        if self._last == journal.CLOSED:
            self._append_entry(journal.OPENED)
            self._journal.sync()

    def _restart_journal(self) -> None:
        self._journal.rewrite(self._entry(journal.OPENED))
        self._last = journal.OPENED

    def _append_entry(self, kind: int) -> None:
        self._journal.append(self._entry(kind))
        self._last = kind

    def _entry(self, kind: int) -> journal.Entry:
        entry = self.tail.entry(kind, self._opened.meta.generation, self._opened.recovery.change, self._deletions.known)
        return entry._replace(stamp=self._seen[0])

    @property
    def _tail_block(self) -> int:
        return max(0, self.tail.end - 1) // self._block_size

    def _measure_block(self) -> None:
        begin = self._tail_block * self._block_size
        self.tail = self.tail._replace(block_crc=crc32(self._fs.read(self._opened.fd, self.tail.end - begin, begin)))

    def _look(self) -> None:
        stat = self._fs.fstat(self._opened.fd)
        self._seen = (stamp_of(stat), stat.st_size)

    def check_alone(self) -> None:
        """Raises LogWriteFailed if files were moved or replaced, or another program wrote to the log."""
        self._check_place()
        self._check_unchanged()

    def _check_place(self) -> None:
        """Check that the file, the lock and the journal still have their names. Takes microseconds at each flush."""
        opened, name = self._opened, self._opened.sidecar.name
        if not self._fs.is_at(opened.path, opened.fd):
            what, so = "the file", ", and what is written to it may never be found"
            remedy = "put the file back"
        elif opened.lock is not None and not opened.lock.is_in_place():
            what, so = f"its sidecar {name}, or the lock in it,", ", and another program may write to it"
            remedy = "put the sidecar back, or do without it"
        elif not self._deletions.is_in_place():
            what, so, remedy = f"its journal {name}/{filenames.DELETIONS}", "", "put it back, or do without it"
        else:
            return
        raise LogWriteFailed(
            f"{what} was moved, removed or replaced while the log was open here{so}; nothing more is written",
            remedy=f"{remedy}, then open the log again",
            path=opened.path,
            offset=self.durable.end,
        )

    def _check_unchanged(self) -> None:
        """Raise LogWriteFailed if another program appended to the log; note it if one deleted records."""
        stat = self._fs.fstat(self._opened.fd)
        if (stamp_of(stat), stat.st_size) == self._seen or self.damaged_block >= 0:
            return
        opened, end = self._opened, self.tail.end
        measured = measure(self._fs, opened.fd, end, self._block_size)
        entry = self._entry(journal.SYNCED)
        beyond = last_byte(self._fs, opened.fd, end, stat.st_size) > end
        if measured is None or not measured.agrees(entry) or beyond or stat.st_size != round_up(end, self._block_size):
            raise LogWriteFailed(
                "another program wrote to this log while it was open here; nothing more is written",
                remedy="close the other program, then open the log again",
                path=opened.path,
                offset=end,
            )
        self.tail = self.tail._replace(block_crc=measured.block_crc)
        opened.recovery = opened.recovery._replace(change=change_token(stamp_of(stat), stat.st_size))
        opened.checksums.rebind(opened.recovery.change)
        opened.checksums.open_to_write()
        self._doubted = self._tail_block
        self._fs.fsync(opened.fd)
        self._look()
        self._append_entry(journal.SYNCED)
        self._journal.sync()
