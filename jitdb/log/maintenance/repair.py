"""Repair: fix what verify found. Damaged bytes are kept aside.

    a damaged block       copied aside, and made anew by salvage.py; the log with the new blocks takes the log's place
    bytes behind the end  set aside and made zero
    the sidecar's files   written anew from what can be read of them

All of it takes effect at once, as a compaction does (swap.py): after a crash either nothing was repaired, or the next
writer finishes the repair. If records may have changed, the log gets a new identity, and its indexes are built anew.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING

from jitdb.log.blocks.block_format import header_reader, header_size
from jitdb.log.blocks.checksum import crc32
from jitdb.log.io import filenames
from jitdb.log.maintenance.check_log import Progress, codec_of, verify_log
from jitdb.log.maintenance.check_sidecar import Sidecar
from jitdb.log.maintenance.exchange import make_next_log, prepare, put_in_place
from jitdb.log.maintenance.report import LogReport, RepairAction, RepairReport
from jitdb.log.maintenance.salvage import DamagedBlock, RepairedBlock, is_sound, repair_block
from jitdb.log.opening import swap
from jitdb.log.sidecar import checksums, deletions, meta
from jitdb.log.sidecar.deletions import Deletion
from jitdb.log.writing.erase import free_name, set_aside, truncate_to

if TYPE_CHECKING:
    from jitdb.log.opening.opened import Opened
    from jitdb.log.reading.record_reader import RecordReader
    from jitdb.log.writing.writer import Writer

_FILES = (filenames.META, filenames.COMMIT, filenames.DELETIONS, filenames.CHECKSUMS)
_IN_THE_LOG = ("block", "deleted", "tail")
_MARK = Deletion(deletions.APPLIED, 0)


def repair(writer: Writer, progress: Progress) -> RepairReport:
    """Repair the log of this writer, and open it again. See Log.repair."""
    reports: list[RepairReport] = []

    def work(_: Opened) -> None:
        reports.append(_Repair(writer.reader, progress).run())

    with writer.exclusively():
        writer.reopen(work, "a repair was cut short: open the log again, and repair it again")
    return reports[0]


class _Repair:
    """One repair. The writer has closed the log, but still holds its lock; `reader` is outdated afterwards."""

    def __init__(self, reader: RecordReader, progress: Progress) -> None:
        self._reader, opened = reader, reader.opened
        self._opened, self._fs, self._sidecar = opened, opened.fs, opened.sidecar
        self._size = opened.meta.block_size
        self._codec = codec_of(opened)
        base = opened.journal.poll().base
        assert base is not None  # the writer has just closed it
        self._files = Sidecar(opened, base.end, quiet=True)
        self._end, self._last = base.end, self._files.last
        self._progress = progress
        self._actions: list[RepairAction] = []
        self._is_renewed = False

    def run(self) -> RepairReport:
        begin = time.perf_counter()
        before = verify_log(self._reader, self._files, self._progress)
        for finding in before.findings:
            if finding.what in ("moved", "set"):
                self._put_away(finding.what, os.path.basename(finding.file))
        if any(finding.what in (*_FILES, *_IN_THE_LOG) for finding in before.findings):
            self._write_anew(before)
        return RepairReport(
            path=str(self._opened.path),
            before=before,
            actions=tuple(self._actions),
            new_identity=self._is_renewed,
            seconds=time.perf_counter() - begin,
            notes=tuple(f"when it was opened: {told}" for told in self._opened.notices),
        )

    def _put_away(self, what: str, name: str) -> None:
        path = self._sidecar / (filenames.SETS if what == "set" else "") / name
        if what == "set":
            aside = f"{name}.damaged"
            self._fs.rename(path, path.with_name(aside))
            self._actions.append(RepairAction(f"{name}: set aside as {aside}; the set is to be made again"))
        else:
            self._fs.unlink(path)
            count_no_more = "cursors and indexes from before that compaction count no more"
            self._actions.append(RepairAction(f"{name}: removed; {count_no_more}"))
        self._fs.sync_folder(path.parent)

    def _write_anew(self, before: LogReport) -> None:
        """Write the sidecar, and the log if blocks are damaged, and put them in place at once."""
        damaged = {finding.what for finding in before.findings}
        self._report_files(damaged)
        deleted = self._deletions(damaged)
        images = self._images(before)
        for block, image in images.items():
            self._report_block(block, image)
            deleted += [self._deletion(block * self._size, at, image.data) for at in image.lost]
        if images:
            deleted.append(_MARK)  # what it lost is zeros
        if "tail" in damaged:
            kept = set_aside(self._fs, self._opened.fd, self._end, self._opened.path, self._sidecar)
            where = "" if kept is None else f"; they are kept in {self._sidecar.name}/{kept.name}"
            self._actions.append(RepairAction(f"bytes behind the end of the log made zero{where}"))
        now = self._opened.meta
        if self._is_renewed or images:
            self._is_renewed = True
            now = now._replace(identity=meta.new_identity(), generation=now.generation + 1)
        end = self._last * self._size + images[self._last].end if self._last in images else self._end
        entries = b"".join(deletions.encode_entry(each) for each in deleted)
        if images:
            with make_next_log(self._opened) as copy:
                sums = self._sums(images, before, copy)
                self._fs.fsync(copy)
                pending = prepare(self._opened, copy, now, end, sums, deleted=entries)
            put_in_place(self._opened, pending)
        else:
            truncate_to(self._fs, self._opened.fd, self._end, self._size)
            sums = self._sums(images, before, None)
            pending = prepare(self._opened, self._opened.fd, now, end, sums, deleted=entries)
            swap.finish(self._fs, self._sidecar, pending)
        for name in self._fs.listdir(self._sidecar) if self._is_renewed else []:
            if filenames.is_moved_name(name):  # of the old identity
                self._fs.unlink(self._sidecar / name)

    def _report_files(self, damaged: set[str]) -> None:
        if filenames.META in damaged:
            self._actions.append(RepairAction("meta: written anew", restored=True))
        if filenames.COMMIT in damaged:
            done = "commit: the journal was begun anew; the log ends where it did"
            self._actions.append(RepairAction(done, restored=True))

    def _deletions(self, damaged: set[str]) -> list[Deletion]:
        """The entries of the journal of deletions; unreadable ones become marks, so that positions stay."""
        data = self._fs.read_if_there(self._sidecar / filenames.DELETIONS) or b""
        head, body = data[: deletions.HEAD_SIZE], data[deletions.HEAD_SIZE :]
        is_void = deletions.is_head(head) and head != deletions.encode_head(self._opened.meta.generation)
        entries = [] if is_void else deletions.decode_all(body)
        lost = sum(entry is None for entry in entries)
        if filenames.DELETIONS in damaged:
            without = f" without {lost:,} entries that cannot be read" if lost else ""
            self._actions.append(RepairAction(f"deletions: written anew{without}", restored=not lost))
        self._is_renewed |= bool(lost)  # a record may be deleted that an index takes for live
        return [_MARK if entry is None else entry for entry in entries]

    # --- blocks ----------------------------------------------------------------------------------------------------

    def _read(self, block: int) -> bytes:
        data = self._opened.read(self._size, block * self._size)
        return (data if block < self._last else data[: self._end - block * self._size]).ljust(self._size, b"\0")

    def _images(self, before: LogReport) -> dict[int, RepairedBlock]:
        """The new bytes of damaged blocks, and of blocks with records that were deleted and are still there."""
        gone = [finding.offset for finding in before.findings if finding.what == "deleted"]
        blocks = sorted({*before.damaged_blocks, *(offset // self._size for offset in gone)})
        images = {}
        for block in blocks:
            data = self._opened.read(self._size, block * self._size).ljust(self._size, b"\0")
            used = self._end - block * self._size if block == self._last else self._size
            image = RepairedBlock(data, used, restored=True)
            if block in before.damaged_blocks:
                entry = self._opened.checksums.get(block)
                expected = self._files.tail_crc if block == self._last else None if entry is None else entry.crc
                image = repair_block(DamagedBlock(data, used, expected), self._codec)
            erased = bytearray(image.data)
            for at in (offset % self._size for offset in gone if offset // self._size == block):
                if image.restored or at in image.kept:
                    begin, length = at + header_size(self._size), self._deletion(0, at, erased).length
                    erased[begin : begin + length] = bytes(length)
            images[block] = image._replace(data=bytes(erased))
        return images

    def _deletion(self, begin: int, at: int, data: bytes | bytearray) -> Deletion:
        """The entry of the record at this place of a block that begins there."""
        return Deletion(begin + at, header_reader(self._size)(data, at)[0])

    def _report_block(self, block: int, image: RepairedBlock) -> None:
        begin, copy = block * self._size, self._set_aside(block)
        done = f"block {block}: {image.describe()}; as it was found, it is kept in {copy}"
        kept, lost = (tuple(begin + at for at in places) for places in (image.kept, image.lost))
        self._actions.append(RepairAction(done, block, image.restored, kept, lost, copy))

    def _set_aside(self, block: int) -> str:
        path = free_name(self._fs, self._sidecar, partial(filenames.damaged_name, block))
        self._fs.write_file(path, self._opened.read(self._size, block * self._size))
        self._fs.sync_folder(self._sidecar)
        return os.path.join(self._sidecar.name, path.name)

    def _sums(
        self, images: dict[int, RepairedBlock], before: LogReport, copy: int | None
    ) -> list[checksums.Entry | None]:
        """The checksums of all blocks. A block without one gets one if its chain and records are valid.

        `copy`: the file that all blocks are written to, unless none is damaged.
        """
        entries = list[checksums.Entry | None]()
        given = []
        first = min([self._files.ours, *images])
        for block in range(self._last + 1):
            image, known = images.get(block), self._opened.checksums.get(block)
            is_wanted = copy is not None or (known is None and block >= first)
            data = image.data if image is not None else self._read(block) if is_wanted else b""
            if copy is not None:
                self._fs.write(copy, data, block * self._size)
            if block == self._last:
                if self._opened.checksums.is_doubted(block):
                    entries.append(checksums.DOUBT)
                continue
            if image is not None:
                known = checksums.Entry(crc32(data))
            elif known is None and block >= first and is_sound(data, self._size, self._codec):
                known = checksums.Entry(crc32(data), checksums.UNPROVEN)
                given.append(block)
            entries.append(known)
        if any(finding.what == filenames.CHECKSUMS for finding in before.findings):
            self._actions.append(RepairAction("checksums: written anew", restored=not given))
        if given:
            done = f"{len(given):,} blocks were given a checksum: nothing is seen to be wrong with them"
            self._actions.append(RepairAction(done, unproven=tuple(given)))
        return entries
