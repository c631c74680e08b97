"""`commit`, the journal: up to which byte the log is durable. Entries of 64 bytes, appended, none ever changed.

A DATA entry says "the bytes from `start` to `end` are about to be written, and this is their CRC", so it does not
matter which of the two reaches the disk first; a transaction that it covers is there whole or not at all. A settled
entry (OPENED, SYNCED, CLOSED) says that all before `end` is on disk for certain.

Each entry is written twice, in one call. An entry that cannot be read is skipped, and at the end of the file taken for
torn and overwritten. Its copy says the same, so damage to one costs nothing.

Entries are synced when the log is, and a DATA entry at once that comes LAG or more after the last one that was: bytes
that were written much later than the newest entry that is left were not written by us.

A writer fills ROOM for the next entries with zeros: to sync overwritten bytes takes a fraction of the time that a
growing file takes, because the file system has only the bytes to write. The modification time is then synced once in
each LAG, not with each entry. Closing the log cuts the rest of the room off.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.log.blocks.checksum import FIELD
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.sidecar.framing import EntryFile, Frame, read_entries
from jitdb.log.sidecar.meta import LAST_GENERATION, NO_GENERATION

# On disk: never change.
OPENED: Final = 1  # a writer began: `end` is durable
DATA: Final = 2  # bytes from `start` to `end` follow, with `data_crc`
SYNCED: Final = 3  # `end` is durable
CLOSED: Final = 4  # `end` is durable, the writer left, and the file was as `stamp` says
_FRAME: Final = Frame(b"", f"QQQ8s{FIELD}I{3 * FIELD}II")
ENTRY_SIZE: Final = _FRAME.size  # 64: an entry never crosses a sector
_COPIES: Final = 2  # of each entry; readers need one

LAG: Final = 1_000_000_000  # nanoseconds; a longer one syncs less often where little is written, and tells less
MAX_SIZE: Final = 1 << 18  # bytes; then the journal is written anew with one entry
ROOM: Final = 1 << 14  # bytes that are laid out at a time; more are longer to read for those who follow the journal

_U32: Final = (1 << 32) - 1


class JournalPrefix(NamedTuple):
    """The first entries of the journal of deletions, which are durable: a journal without them is another one."""

    position: int
    crc: int

    @property
    def packed(self) -> int:
        """As in an entry: the CRC in the upper 32 bits. Positions beyond 32 bits are not noted (-1)."""
        return self.crc << 32 | self.position if self.position <= _U32 else -1


class Entry(NamedTuple):
    """One entry; the fields in their order on disk (widths: u64 u64 u64, 8 bytes, 7 times u32; then the CRC, u32)."""

    start: int  # DATA: its first byte; else what the journal of deletions is known to hold, see `deletions`
    end: int  # the end of the log, once this entry holds
    stamp: int  # settled entries: the log file's modification time then, nanoseconds; DATA: 0
    change: bytes  # 8 bytes, others each time that another program was seen to have changed the log
    data_crc: int  # DATA: crc32 of the bytes from start to end; else: of the block that holds end, up to there, or 0
    last_record_size: int  # length of the newest record, the one that ends at `end`; 0 if there is none
    last_record_crc: int  # crc32 of its bytes
    first_chain: int  # crc32 of the headers in the log's first block, up to `end`
    tail_chain: int  # crc32 of the headers in the block that holds `end`, up to there
    generation: int  # of the log, as in meta; an entry of another generation is void
    kind: int

    @property
    def deletions(self) -> JournalPrefix | None:
        """Of a settled entry: what the journal of deletions held; None if that was not noted.

        With an empty log it holds nothing, noted or not.
        """
        is_noted = self.kind != DATA and (self.start != self.end or self.end == 0)
        return JournalPrefix(self.start & _U32, self.start >> 32) if is_noted else None


class State(NamedTuple):
    base: Entry | None  # the last settled entry
    data: tuple[Entry, ...]  # DATA entries that may hold beyond it


def encode(entry: Entry) -> bytes:
    return _FRAME.pack(*entry)


def written(entry: Entry) -> bytes:
    """The entry as it is in the file, with its copy."""
    return encode(entry) * _COPIES


def decode(data: bytes) -> Entry | None:
    """None if these 64 bytes are no entry, or an impossible one."""
    fields = _FRAME.unpack(data)
    if fields is None:
        return None
    entry = Entry._make(fields)
    possible = entry.end < 1 << 63 and OPENED <= entry.kind <= CLOSED
    possible = possible and (entry.kind != DATA or entry.start <= entry.end)  # of others, `start` is no offset
    return entry if possible and 0 < entry.generation < NO_GENERATION else None


def decode_all(data: bytes) -> list[Entry | None]:
    """A journal's entries, copies too; None for a damaged one. See framing.read_entries."""
    return read_entries(data, ENTRY_SIZE, decode)


def fold(state: State, entries: Iterable[Entry]) -> State:
    """What the journal says after these further entries."""
    base, data = state
    for entry in entries:
        if entry.kind == DATA:
            data = data if entry in data[-1:] else (*data, entry)
        else:
            base = entry
            data = tuple(waiting for waiting in data if waiting.end > entry.end) if entry.kind == SYNCED else ()
    return State(base, data)


class JournalReader(EntryFile):
    """Follows a journal, its own or another process's. Not safe for threads: callers hold their lock."""

    def __init__(self, fs: FileSystem, path: Path, generation: int, first: Entry | None = None) -> None:
        """`first`: an entry that counts as if it stood before all others."""
        super().__init__(fs, path)
        self._generation = generation
        self._first = State(first, ())
        self.position = 0  # bytes up to the last valid entry
        self.last_generation = 0  # the highest in any entry, of this log or another; 0 without entries
        self.state = self._first

    def poll(self) -> State:
        """Read what was appended since the last call; all of it again if the journal was written anew."""
        stat = self._fs.find(self._path)
        if stat is None:
            self.close()
            return self.state
        if not self._is(stat):
            self.close()
            self._file = Descriptor(self._fs, self._path, os.O_RDONLY)
            stat = self._fs.fstat(self._file.number)
        if stat.st_size >= self.position + ENTRY_SIZE:
            entries = self._read(stat.st_size)
            if None in entries:
                entries = self._read(stat.st_size)  # one may have been half written when it was read
            named = {entry.generation for entry in entries if entry is not None}
            possible = (generation for generation in named if generation <= LAST_GENERATION)
            self.last_generation = max(self.last_generation, *possible, 0)
            valid = [entry for entry in entries if entry is not None and entry.generation == self._generation]
            position, state = self.position + len(entries) * ENTRY_SIZE, fold(self.state, valid)
            self.position, self.state = position, state  # no call between the two: see Descriptor
        return self.state

    def _read(self, size: int) -> list[Entry | None]:
        return decode_all(self._fs.read(self._file.number, size - self.position, self.position))

    def close(self) -> None:
        super().close()
        self.position, self.last_generation, self.state = 0, 0, self._first


class JournalWriter(EntryFile):
    """Appends to a journal. The caller holds the log's lock."""

    _synced = 0  # the modification time that is durable, nanoseconds
    _laid = 0  # bytes of the file; zeros stand behind the entries

    def start(self, position: int) -> None:
        """Go on at `position`, after the last valid entry; make the file if there are none."""
        if position == 0:
            self._fs.replace_file(self._path, b"")
        self._open_to_append(position)
        self._laid = position

    def append(self, entry: Entry) -> None:
        data = written(entry)
        end = self._end + len(data)
        if end > self._laid:
            laid = max(end, min(end + ROOM - end % ROOM, MAX_SIZE))
            self._fs.write(self._file.number, data + bytes(laid - end), self._end)
            self._laid = laid
        else:
            self._fs.write(self._file.number, data, self._end)
        self._end = end

    def sync(self) -> None:
        if self._is_late():
            super().sync()
            self._synced = self._time()
        else:
            self._fs.fdatasync(self._file.number)

    def finish(self) -> None:
        """Cut off the room, and sync: no entry follows."""
        self._fs.truncate(self._file.number, self._end)
        self._laid = self._end
        super().sync()
        self._synced = self._time()

    def keep_up(self) -> None:
        """Sync, unless that was done within the last second: entries are durable soon before their bytes."""
        if self._is_late():
            self.sync()

    def _is_late(self) -> bool:
        return not 0 <= self._time() - self._synced < LAG

    def _time(self) -> int:
        return self._fs.fstat(self._file.number).st_mtime_ns

    @property
    def is_long(self) -> bool:
        return self._end >= MAX_SIZE

    def rewrite(self, entry: Entry) -> None:
        """Replace the journal by this one (settled) entry, durably and at once."""
        data = written(entry)
        self._fs.replace_file(self._path, data)
        self.close()
        self.start(len(data))
        self._synced = self._time()


def read_state(fs: FileSystem, path: Path, generation: int, first: Entry | None = None) -> State:
    """What the journal says by now; see JournalReader."""
    with closing(JournalReader(fs, path, generation, first)) as reader:
        return reader.poll()


def append_entry(fs: FileSystem, path: Path, entry: Entry) -> None:
    """Append an entry to the journal, durably, for the holder of the log's lock."""
    with closing(JournalReader(fs, path, entry.generation)) as reader, closing(JournalWriter(fs, path)) as writer:
        reader.poll()
        writer.start(reader.position)
        writer.append(entry)
        writer.finish()
