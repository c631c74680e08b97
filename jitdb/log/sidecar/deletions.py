"""`deletions`: which records were deleted, in order. A redo journal, from which indexes learn of deletions, too.

docs/format-log.md describes its bytes. An entry is durable before its record's bytes are zeroed. A mark says that all
entries before it are applied; those after the last mark are applied again. A *position* counts entries, including
marks and damaged ones. A journal of a later generation shows a reader that another file took the log's place.
"""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.common.forking import fork_safe
from jitdb.errors import LogSuperseded, Remedy
from jitdb.log.blocks.checksum import SIZE, crc32, crcs_of_rows
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.sidecar.framing import EntryFile, Frame, read_entries
from jitdb.log.sidecar.journal import JournalPrefix
from jitdb.log.sidecar.meta import LAST_GENERATION, NO_GENERATION

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# On disk: never change.
MAGIC: Final = b"JITDBDEL"
_HEAD: Final = Frame(MAGIC, "I")
_ENTRY: Final = Frame(b"", "QI")
HEAD_SIZE: Final = _HEAD.size
ENTRY_SIZE: Final = _ENTRY.size
APPLIED: Final = (1 << 64) - 1
_DAMAGED: Final = APPLIED - 1  # in memory, in the place of the offset in an entry that cannot be read

_UNREADABLE: Final = b"\xff" * ENTRY_SIZE
_TOGETHER: Final = 1 << 14  # entries that are read or encoded at once
_NUMPY_FROM: Final = 512  # entries; for fewer, plain loops are faster than numpy is loaded
_BODY: Final = ENTRY_SIZE - SIZE


class Agreement(NamedTuple):
    unlogged: bool  # a record is zero without an entry
    unapplied: bool  # a record that the journal says was zeroed is not zero, or not there


class Deletion(NamedTuple):
    offset: int
    length: int  # bytes, the header not counted


class Deletions:
    """Many deletions, in order, in twelve bytes each."""

    def __init__(self, offsets: Iterable[int] = (), lengths: Iterable[int] = ()) -> None:
        self.offsets, self.lengths = array("Q", offsets), array("I", lengths)

    def add(self, deletion: Deletion) -> None:
        self.offsets.append(deletion.offset)
        self.lengths.append(deletion.length)

    def extend(self, entries: Deletions) -> None:
        """Add these, but for damaged ones."""
        if _DAMAGED in entries.offsets:
            entries = Deletions(*zip(*(each for each in entries if each.offset != _DAMAGED), strict=True))
        self.offsets += entries.offsets
        self.lengths += entries.lengths

    def __iter__(self) -> Iterator[Deletion]:
        return map(Deletion, self.offsets, self.lengths)

    def __len__(self) -> int:
        return len(self.offsets)

    def __getitem__(self, which: slice) -> Deletions:
        return Deletions(self.offsets[which], self.lengths[which])


def encode_head(generation: int) -> bytes:
    return _HEAD.pack(generation)


def is_head(data: bytes) -> bool:
    return _HEAD.unpack(data) is not None


def generation_in(head: bytes) -> int:
    """The generation in the head; 0 if it is damaged."""
    (generation,) = _HEAD.unpack(head) or (0,)
    return int(generation) if generation < NO_GENERATION else 0


def encode_entry(deletion: Deletion) -> bytes:
    return _ENTRY.pack(*deletion)


def encoded(deletions: Deletions) -> Iterator[bytes]:
    """The entries, some at a time."""
    for at in range(0, len(deletions), _TOGETHER):
        some = deletions[at : at + _TOGETHER]
        yield _packed(some) if len(some) >= _NUMPY_FROM else b"".join(map(encode_entry, some))


def _packed(deletions: Deletions) -> bytes:
    import numpy as np

    rows = np.empty((len(deletions), ENTRY_SIZE), np.uint8)
    for column, values, form in ((0, deletions.offsets, "<u8"), (8, deletions.lengths, "<u4")):
        field = np.asarray(values).astype(form).view(np.uint8).reshape(len(rows), -1)
        rows[:, column : column + field.shape[1]] = field
    rows[:, _BODY:] = crcs_of_rows(rows[:, :_BODY]).astype("<u4").view(np.uint8).reshape(-1, SIZE)
    return rows.tobytes()


def _unpacked(data: bytes) -> Deletions:
    """The entries in these bytes, _DAMAGED for those that decode_all() gives None for."""
    count = len(data) // ENTRY_SIZE
    if count < _NUMPY_FROM:
        found = Deletions()
        for each in decode_all(data):
            found.add(each or Deletion(_DAMAGED, 0))
        return found
    import numpy as np

    rows = np.frombuffer(data, np.uint8, count * ENTRY_SIZE).reshape(count, ENTRY_SIZE)
    offsets, lengths = rows[:, :8].copy().view("<u8").ravel(), rows[:, 8:_BODY].copy().view("<u4").ravel()
    is_good = crcs_of_rows(rows[:, :_BODY]) == rows[:, _BODY:].copy().view("<u4").ravel()
    is_good &= (offsets < 1 << 63) | (offsets == APPLIED)
    offsets[~is_good] = _DAMAGED
    stop = int(np.flatnonzero(is_good)[-1]) + 1 if is_good.any() else 0
    return Deletions(array("Q", offsets[:stop].astype(np.uint64).tobytes()), array("I", lengths[:stop].tobytes()))


MARK: Final = encode_entry(Deletion(APPLIED, 0))


def crc_of(data: bytes, crc: int = 0) -> int:
    """CRC-32 of these entries without their own, with which it would not depend on them, behind others' `crc`."""
    return crc32(b"".join([data[at : at + _BODY] for at in range(0, len(data), ENTRY_SIZE)]), crc)


def last_generation(fs: FileSystem, path: Path) -> int:
    try:
        with Descriptor(fs, path, os.O_RDONLY) as fd:
            found = generation_in(fs.read(fd, HEAD_SIZE, 0))
            return found if found <= LAST_GENERATION else 0
    except (FileNotFoundError, NotADirectoryError):
        return 0


class DeletionReader(EntryFile):
    def __init__(self, fs: FileSystem, path: Path, generation: int) -> None:
        super().__init__(fs, path)
        self.generation = generation
        self.position = 0  # entries read so far, marks counted
        self.marked = 0  # those of them up to the last mark
        self.unapplied = Deletions()  # those after it
        self.is_lost = False  # another file has replaced this journal, and does not contain it
        self._crc = 0  # of the entries read so far
        self._compared: tuple[object, Agreement] | None = None
        self._polling = fork_safe(threading.Lock())
        self._later = 0  # the generation of a later journal that has replaced this one
        self._void = 0  # of a later journal that was there though the log was still this one: it is ignored

    @property
    def exists(self) -> bool:
        """Whether there is such a file, of this generation."""
        return self._file.is_open

    @property
    def superseded_by(self) -> int:
        """The later generation of the journal at the last poll(); 0 if it was of this one."""
        return self._later if self._later > self._void else 0

    def stay(self, later: int) -> None:
        """The log is still the one of this generation, though a journal of a later one is beside it."""
        self._void = max(self._void, later)

    @property
    def known(self) -> JournalPrefix:
        return JournalPrefix(self.position, self._crc)

    def extends(self, known: JournalPrefix) -> bool:
        """Whether the entries read so far begin with the known ones."""
        if known.position > self.position:
            return False
        crc = self._crc if known.position == self.position else self._crc_of(self._file.number, known.position)
        # Older logs note a CRC over the entries with their CRCs, which depends on their number alone.
        return known.crc == crc or (crc >= 0 and known.crc == crc32(MARK * known.position))

    def _crc_of(self, fd: int, position: int) -> int:
        stop, crc = HEAD_SIZE + position * ENTRY_SIZE, 0
        if self._fs.size(fd) < stop:
            return -1
        for _, data in self._entries(fd, HEAD_SIZE, stop):
            crc = crc_of(data, crc)
        return crc

    def _entries(self, fd: int, at: int, stop: int) -> Iterator[tuple[Deletions, bytes]]:
        """The entries in these bytes of the file, and their bytes, some at a time. Damaged ones give _UNREADABLE, which
        changes the CRC over all entries, too, if only the entry's own CRC is damaged.
        """
        waiting: list[bytes] = []  # unreadable entries: damaged if a good one follows, otherwise torn
        while at < stop and (data := self._fs.read(fd, min(_TOGETHER * ENTRY_SIZE, stop - at), at)):
            at += len(data)
            entries = _unpacked(data)
            read = len(entries) * ENTRY_SIZE
            if entries:
                damaged = len(b"".join(waiting)) // ENTRY_SIZE
                parts = [data[:read]]
                if _DAMAGED in entries.offsets:
                    parts = [_UNREADABLE if each.offset == _DAMAGED else encode_entry(each) for each in entries]
                if damaged:
                    lead = array("Q", [_DAMAGED]) * damaged, array("I", [0]) * damaged
                    entries = Deletions(lead[0] + entries.offsets, lead[1] + entries.lengths)
                yield entries, b"".join([*[_UNREADABLE] * damaged, *parts])
                waiting = []
            waiting.append(data[read:])

    def compared(self, state: object, compare: Callable[[], Agreement]) -> Agreement:
        """What `compare` gives; called again only if the state of the log or the journal changed."""
        key = (state, self.known)
        if self._compared is None or self._compared[0] != key:
            self._compared = key, compare()
        return self._compared[1]

    def look(self, log: Path) -> None:
        """poll() for a reader of `log`. Raises LogSuperseded if another file took the log's place.

        A deletion is in the journal before its bytes are zero. So a reader that polls after reading records never takes
        zeros for a live record.
        """
        self.poll()
        if self.superseded_by:
            raise LogSuperseded(
                f"it was compacted or replaced since it was read (expected generation {self.generation}, got "
                f"{self.superseded_by})",
                remedy=Remedy.refresh(),
                path=log,
            )
        if self.is_lost:
            raise LogSuperseded("another journal of deletions is beside it", path=log, remedy=Remedy.refresh())

    def poll(self) -> bool:
        """Read what was appended since the last call; whether anything was."""
        with self._polling:
            return self._poll()

    def _poll(self) -> bool:
        if not self._file.is_open and not self._open():
            return False
        found = self._fs.find(self._path)  # if it is missing, the open file is all that there is
        if found is not None and not self._is(found):  # replaced by a repair, which keeps positions, or a compaction
            self._open()
        at = HEAD_SIZE + self.position * ENTRY_SIZE
        size = self._fs.fstat(self._file.number).st_size
        before = self.position
        self.is_lost |= size < at
        if size >= at + ENTRY_SIZE:
            position, marked, unapplied, crc = self.position, self.marked, self.unapplied[:], self._crc
            for entries, data in self._entries(self._file.number, at, size):
                if APPLIED in entries.offsets:
                    last = len(entries) - entries.offsets[::-1].index(APPLIED)
                    entries, unapplied, marked = entries[last:], Deletions(), position + last
                unapplied.extend(entries)
                position += len(data) // ENTRY_SIZE
                crc = crc_of(data, crc)
            # No call between these: an interrupt, or a forked child, finds all of them or none.
            self.position, self.marked, self.unapplied, self._crc = position, marked, unapplied, crc
        return self.position > before

    def _open(self) -> bool:
        try:
            self._fs.stat(self._path)  # polled at each question, and a failing open takes ten times as long
            file = Descriptor(self._fs, self._path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            self._later = 0
            return False
        head, expected = self._fs.read(file.number, HEAD_SIZE, 0), encode_head(self.generation)
        if head != expected:
            file.close()
            later = generation_in(head)
            self._later = later if later > self.generation else 0
            return False
        self._later = 0
        if self.position and self._crc_of(file.number, self.position) != self._crc:
            file.close()  # later deletions are in the file that is open, if anywhere
            self.is_lost = True
            return False
        former, self._file = self._file, file
        former.close()
        return True

    def between(self, position: int, stop: int) -> npt.NDArray[np.int64]:
        """The offsets in the entries from `position` to `stop`. Read anew: there may be one for each record."""
        import numpy as np

        parts = [np.empty(0, np.int64)]
        if position < stop:  # nearly each question asks for nothing
            with self._polling:
                first, last = (HEAD_SIZE + ENTRY_SIZE * max(0, at) for at in (position, min(stop, self.position)))
                for entries, _ in self._entries(self._file.number, first, last):
                    offsets = np.asarray(entries.offsets)
                    parts.append(offsets[offsets < _DAMAGED].astype(np.int64))
        return np.concatenate(parts)

    def close(self) -> None:
        super().close()
        self.position, self.marked, self.unapplied = 0, 0, Deletions()
        self._crc, self.is_lost = 0, False


def decode_all(data: bytes) -> list[Deletion | None]:
    """The entries; None for a damaged or impossible one. See framing.read_entries."""
    return read_entries(data, ENTRY_SIZE, _decode)


def _decode(data: bytes) -> Deletion | None:
    fields = _ENTRY.unpack(data)
    return Deletion._make(fields) if fields is not None and (fields[0] < 1 << 63 or fields[0] == APPLIED) else None


class DeletionWriter(EntryFile):
    """Appends to the journal; the caller holds the log's lock and has read it to its end."""

    def __init__(self, fs: FileSystem, path: Path, generation: int) -> None:
        super().__init__(fs, path)
        self._head = encode_head(generation)
        self._crc = 0
        self.known = JournalPrefix(0, 0)  # the durable entries: the journal of commits may note them

    def start(self, reader: DeletionReader) -> None:
        """Go on after the valid entries that `reader` found; make the file if it found none."""
        if self._file.is_open:
            return
        if not reader.exists:
            self._fs.replace_file(self._path, self._head)
        self._crc = reader.known.crc
        self._open_to_append(HEAD_SIZE + reader.position * ENTRY_SIZE)

    def append(self, data: bytes) -> None:
        self._fs.write(self._file.number, data, self._end)
        end, crc = self._end + len(data), crc_of(data, self._crc)
        self._end, self._crc = end, crc  # no call between the two, so an interrupt finds both done or neither

    def sync(self) -> None:
        """Sync, if anything was appended."""
        position = (self._end - HEAD_SIZE) // ENTRY_SIZE
        if self._file.is_open and self.known.position != position:
            super().sync()
            self.known = JournalPrefix(position, self._crc)

    def is_in_place(self) -> bool:
        return not self._file.is_open or self._fs.is_at(self._path, self._file.number)
