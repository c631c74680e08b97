"""Repairing a log: what verify found is put right, as far as it can be. No byte that was found is lost.

    the sidecar's files   written anew from what can be read of them, each replaced whole
    a damaged block       copied aside; then written as salvage.py makes it, under the redo journal of redo.py
    bytes behind the end  set aside and made zero

Where records may be others than before, the log gets a new identity, so that its indexes are built anew. A crash leaves
a log that can be opened; repairing it again goes on from there.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jitdb.errors import LogCorrupt
from jitdb.log.blocks.block_format import header_reader, header_size
from jitdb.log.blocks.checksum import crc32
from jitdb.log.codecs import Codec
from jitdb.log.io import filenames
from jitdb.log.io.osfile import FileSystem
from jitdb.log.maintenance.check_log import Progress, codec_of, verify_log
from jitdb.log.maintenance.check_sidecar import Sidecar
from jitdb.log.maintenance.report import Finding, LogReport, RepairAction, RepairReport
from jitdb.log.maintenance.salvage import DamagedBlock, RepairedBlock, is_sound, repair_block
from jitdb.log.opening import redo
from jitdb.log.opening.open_log import open_again
from jitdb.log.opening.recovery import first_chain, measure, stamp_of
from jitdb.log.sidecar import checksums, deletions, journal, meta, removals, sets
from jitdb.log.sidecar.checksums import Checksums
from jitdb.log.sidecar.onebit import restored_with_crc
from jitdb.log.writing.erase import set_aside, truncate_to

if TYPE_CHECKING:
    from jitdb.log.opening.format import OpenOptions
    from jitdb.log.opening.opened import Opened
    from jitdb.log.writing.writer import Rebind, Writer


def repair(writer: Writer, options: OpenOptions, progress: Progress, rebind: Rebind) -> RepairReport:
    """Repair the log of this writer, and open it again. See Log.repair."""
    reports: list[RepairReport] = []

    def work(opened: Opened) -> Opened:
        reports.append(_Repair(opened, progress).run())
        return open_again(opened, options)

    with writer.exclusively():
        writer.reopen(work, rebind, "a repair was cut short: open the log again, and repair it again")
    return reports[0]


class _Repair:
    """Of a log that its writer has closed but for the lock. `opened` is of the past afterwards."""

    def __init__(self, opened: Opened, progress: Progress) -> None:
        self._opened = opened
        self._fs = opened.fs
        self._sidecar = opened.sidecar
        self._size = opened.meta.block_size
        self._codec = codec_of(opened)
        base = opened.journal.poll().base
        assert base is not None  # the writer has just closed it
        self._base: journal.Entry = base
        self._end = base.end
        self._progress = progress
        self._actions: list[RepairAction] = []
        self._renewed = b""  # the identity that the log gets
        self._begun = False  # whether the file `mend` is in place

    def run(self) -> RepairReport:
        begin = time.perf_counter()
        before = verify_log(self._opened, self._end, self._progress, quiet=True)
        if not before.ok:
            self._repair(before)
        return RepairReport(
            path=str(self._opened.path),
            before=before,
            actions=tuple(self._actions),
            new_identity=bool(self._renewed),
            seconds=time.perf_counter() - begin,
            notes=tuple(f"when it was opened: {told}" for told in self._opened.notices),
        )

    def _repair(self, before: LogReport) -> None:
        sidecar = Sidecar(self._opened, self._end, quiet=True)
        self._actions += _rewrite_files(self._opened, before, self._base)
        if any(each.message.startswith("deletions") and not each.restored for each in self._actions):
            self._renewed = meta.new_identity()  # a record may be deleted that an index takes for live
        gone = [finding for finding in before.findings if finding.what == "deleted"]
        blocks = sorted({*before.damaged_blocks, *(finding.offset // self._size for finding in gone)})
        images = {block: self._image(block, sidecar, before, gone) for block in blocks}
        if any(not image.restored for image in images.values()):
            self._renewed = meta.new_identity()
        for block, image in images.items():
            self._rewrite_block(block, image)
        if any(finding.what == "tail" for finding in before.findings):
            self._truncate()
        first = min([sidecar.ours, *blocks])  # behind a block that was given one, all have one
        self._actions += _add_checksums(self._opened, before, first, self._last, self._codec)
        if self._renewed:
            if not self._begun and self._end:  # nothing but the sidecar was damaged: a step that changes no block
                self._step(self._last, self._base._replace(kind=journal.CLOSED), self._read(self._last))
            redo.renew_identity(self._fs, self._opened.path, self._sidecar, self._opened.meta, self._renewed)
        redo.clear(self._fs, self._sidecar)

    # --- blocks ----------------------------------------------------------------------------------------------------

    def _read(self, block: int) -> bytes:
        return self._opened.read(self._size, block * self._size).ljust(self._size, b"\0")

    def _image(self, block: int, sidecar: Sidecar, before: LogReport, gone: list[Finding]) -> RepairedBlock:
        is_last = block == self._last
        used = self._end - block * self._size if is_last else self._size
        data = self._read(block)
        if block in before.damaged_blocks:
            entry = None if is_last else sidecar.checksum(block)
            expected = sidecar.tail_crc if is_last else None if entry is None else entry.crc
            image = repair_block(DamagedBlock(data, used, expected), self._codec)
        else:
            image = RepairedBlock(data, used, restored=True)
        header, length_at = header_size(self._size), header_reader(self._size)
        erased = bytearray(image.data)
        for finding in gone:
            if finding.offset // self._size == block and (image.restored or finding.offset % self._size in image.kept):
                at = finding.offset % self._size
                (length,) = length_at(erased, at)
                erased[at + header : at + header + length] = bytes(length)
        return image._replace(data=bytes(erased))

    @property
    def _last(self) -> int:
        return (self._end - 1) // self._size

    def _rewrite_block(self, block: int, image: RepairedBlock) -> None:
        copy = self._set_aside(block)
        entry = self._entry(block, image)
        self._step(block, entry, image.data)
        begin = block * self._size
        self._actions.append(
            RepairAction(
                f"block {block}: {image.describe()}; as it was found, it is kept in {copy}",
                block,
                image.restored,
                tuple(begin + at for at in image.kept),
                tuple(begin + at for at in image.lost),
                copy,
            )
        )

    def _step(self, block: int, entry: journal.Entry, image: bytes) -> None:
        generation, is_last = self._opened.meta.generation, block == self._last
        step = redo.RedoStep(generation, block, entry, is_last, self._renewed, image)
        self._fs.replace_file(self._sidecar / filenames.REDO, redo.encode(step))  # before the block is touched
        self._begun = True
        redo.apply(self._fs, self._opened.path, self._sidecar, step)
        self._base = entry

    def _entry(self, block: int, image: RepairedBlock) -> journal.Entry:
        """How the log ends once the block is repaired."""
        begin = block * self._size
        entry = self._base._replace(kind=journal.CLOSED)
        as_it_will_be = _Overlay(self._fs, self._opened.fd, begin, image.data)
        if block == self._last:
            tail = measure(as_it_will_be, self._opened.fd, begin + image.end, self._size)
            assert tail is not None  # an image's chain is whole
            self._end = tail.end
            generation, known = self._opened.meta.generation, entry.deletions
            return tail.entry(journal.CLOSED, generation, entry.change, known)
        if block == 0:
            return entry._replace(first_chain=first_chain(as_it_will_be, self._opened.fd, self._size))
        return entry

    def _set_aside(self, block: int) -> str:
        fs, number = self._fs, 0
        while fs.exists(self._sidecar / filenames.damaged_name(block, number)):
            number += 1
        name = filenames.damaged_name(block, number)
        fs.write_file(self._sidecar / name, self._opened.read(self._size, block * self._size))
        fs.sync_folder(self._sidecar)
        return os.path.join(self._sidecar.name, name)

    def _truncate(self) -> None:
        """What stands behind the end is set aside."""
        kept = set_aside(self._fs, self._opened.fd, self._end, self._opened.path, self._sidecar)
        truncate_to(self._fs, self._opened.fd, self._end, self._size)
        stamp = stamp_of(self._fs.fstat(self._opened.fd))
        journal.append_entry(
            self._fs, self._sidecar / filenames.COMMIT, self._base._replace(kind=journal.CLOSED, stamp=stamp)
        )
        if kept is not None:
            self._actions.append(
                RepairAction(
                    f"bytes behind the end of the log made zero; they are kept in {self._sidecar.name}/{kept.name}"
                )
            )


class _Overlay(FileSystem):
    """The log's file as if a block had other bytes."""

    def __init__(self, fs: FileSystem, fd: int, begin: int, image: bytes) -> None:
        self._under, self._mine, self._begin, self._image = fs, fd, begin, image

    def read(self, fd: int, size: int, offset: int) -> bytes:
        data = bytearray(self._under.read(fd, size, offset))
        low, high = max(offset, self._begin), min(offset + len(data), self._begin + len(self._image))
        if fd == self._mine and low < high:
            data[low - offset : high - offset] = self._image[low - self._begin : high - self._begin]
        return bytes(data)


# --- the sidecar: each file is written anew from what can be read of it, and replaced whole ------------------------


def _rewrite_files(opened: Opened, before: LogReport, base: journal.Entry) -> list[RepairAction]:
    """All but the checksums of blocks that have none."""
    damaged = {finding.what for finding in before.findings}
    done: list[RepairAction] = []
    if filenames.META in damaged:
        opened.fs.replace_file(opened.sidecar / filenames.META, meta.encode(opened.meta))
        done.append(RepairAction("meta: written anew", restored=True))
    if filenames.COMMIT in damaged:
        stamp = stamp_of(opened.fs.fstat(opened.fd))
        entry = base._replace(kind=journal.CLOSED, stamp=stamp)
        opened.fs.replace_file(opened.sidecar / filenames.COMMIT, journal.encode(entry))
        done.append(RepairAction("commit: the journal was begun anew; the log ends where it did", restored=True))
    if filenames.DELETIONS in damaged:
        done.append(_rewrite_deletions(opened))
    if filenames.CHECKSUMS in damaged:
        _rewrite_checksums(opened)
    done += [_repair_removals(opened, finding.file) for finding in before.findings if finding.what == "moved"]
    done += [_repair_set(opened, finding.file) for finding in before.findings if finding.what == "set"]
    return done


def _rewrite_deletions(opened: Opened) -> RepairAction:
    """Entries that cannot be read become marks: all that was deleted is zeros since the log was opened for writing."""
    path = opened.sidecar / filenames.DELETIONS
    body = b""
    with suppress(FileNotFoundError):
        body = opened.fs.read_file(path)[deletions.HEAD_SIZE :]
    entries = deletions.decode_all(body)
    data = b"".join(deletions.MARK if entry is None else deletions.encode_entry(entry) for entry in entries)
    opened.fs.replace_file(path, deletions.encode_head(opened.meta.generation) + data)
    lost = sum(entry is None for entry in entries)
    if not lost:
        return RepairAction("deletions: written anew", restored=True)
    return RepairAction(f"deletions: written anew without {lost:,} entries that cannot be read")


def _repair_removals(opened: Opened, file: str) -> RepairAction:
    name = os.path.basename(file)
    path = opened.sidecar / name
    whole = restored_with_crc(opened.fs.read_file(path)) or b""
    try:
        removals.decode(whole, Path(name))
    except LogCorrupt:
        opened.fs.unlink(path)
        opened.fs.sync_folder(opened.sidecar)
        return RepairAction(f"{name}: removed; cursors and indexes from before that compaction count no more")
    opened.fs.replace_file(path, whole)
    return RepairAction(f"{name}: one flipped bit put right", restored=True)


def _repair_set(opened: Opened, file: str) -> RepairAction:
    name = os.path.basename(file)
    path = opened.sidecar / filenames.SETS / name
    whole = sets.restored(opened.fs.read_file(path))
    if whole is None:
        aside = f"{name}.damaged"
        opened.fs.rename(path, path.with_name(aside))
        opened.fs.sync_folder(path.parent)
        return RepairAction(f"{name}: set aside as {aside}; the set is to be made again")
    opened.fs.replace_file(path, whole)
    return RepairAction(f"{name}: one flipped bit put right", restored=True)


def _rewrite_checksums(opened: Opened) -> None:
    """Head and entries as they were written; what cannot be read of them is left out."""
    path, entries = opened.sidecar / filenames.CHECKSUMS, b""
    with suppress(FileNotFoundError):
        entries = opened.fs.read_file(path)[checksums.HEAD_SIZE :]
    opened.fs.replace_file(path, opened.checksums.head + checksums.rewritten(entries, opened.meta.generation))


def _add_checksums(opened: Opened, before: LogReport, first: int, last: int, codec: Codec) -> list[RepairAction]:
    """Give each block from `first` to `last` a checksum that has none and in which nothing is seen to be wrong."""
    size = opened.meta.block_size
    sums = Checksums(opened.fs, opened.sidecar / filenames.CHECKSUMS, opened.meta.generation, opened.recovery.change)
    given = []
    try:
        sums.open_to_write()
        for block in range(first, last):
            if sums.get(block) is None:
                data = opened.read(size, block * size)
                if is_sound(data, size, codec):  # others were repaired, and have one
                    sums.put(block, [crc32(data)], checksums.UNPROVEN)
                    given.append(block)
        sums.sync()
    finally:
        sums.close()
    opened.checksums.close()  # it was replaced
    done = []
    if any(finding.what == filenames.CHECKSUMS for finding in before.findings):
        done.append(RepairAction("checksums: written anew", restored=not given))
    if given:
        text = f"{len(given):,} blocks were given a checksum: nothing is seen to be wrong with them"
        done.append(RepairAction(text, unproven=tuple(given)))
    return done
