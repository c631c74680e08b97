"""`deletions`: which records were deleted, in order. A redo journal, and the index engine's news of deletions.

    magic        8   "JITDBDEL"
    generation   u32 as in meta
    crc          u32 of the 12 bytes before
    then entries of 16 bytes:
    offset       u64 of the deleted record
    length       u32 of the deleted record
    crc          u32 of the 12 bytes before

An entry is durable before its record's bytes are zeroed. The entry with offset 2**64 - 1 and length 0 says that
the zeros of all entries before it, and the checksums of their blocks, are durable; a writer that finds entries
behind the last such mark zeroes those records again. A *position* in the journal counts entries, damaged ones too:
those are passed over. An entry that is lost could bring a deleted record back, so a single flipped bit is put back when
it is read.

A journal of a later generation means to a reader that another file took the log's place since it looked: the deletions
in it are those of a log that it does not know yet.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.common.forking import fork_safe
from jitdb.errors import LogSuperseded, Remedy
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.sidecar.framing import CRC_SIZE, Entries, Frame, read_entries
from jitdb.log.sidecar.journal import JournalPrefix
from jitdb.log.sidecar.meta import LAST_GENERATION, NO_GENERATION
from jitdb.log.sidecar.onebit import differs_by_one_bit

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


class Agreement(NamedTuple):
    """What holding the journal against the log's file found (log/opening/survey.py)."""

    unlogged: bool  # a record is zero, and the journal does not tell of it
    unapplied: bool  # a record is not, or not there, though the journal says that it was made zero


class Deletion(NamedTuple):
    offset: int
    length: int  # bytes, the header not counted


def encode_head(generation: int) -> bytes:
    """The first 16 bytes of the file."""
    return _HEAD.pack(generation)


def is_head(data: bytes) -> bool:
    """Whether this is the head of such a file, of whichever generation."""
    return _HEAD.unpack(data) is not None


def generation_in(head: bytes) -> int:
    """The generation in these first 16 bytes, a single flipped bit put back; 0 where they are no such head.

    >>> generation_in(encode_head(3)), generation_in(bytes(16))
    (3, 0)
    """
    (generation,) = _HEAD.restore(head) or (0,)
    return int(generation) if generation < NO_GENERATION else 0


def encode_entry(deletion: Deletion) -> bytes:
    """The 16 bytes of an entry."""
    return _ENTRY.pack(*deletion)


MARK: Final = encode_entry(Deletion(APPLIED, 0))


def crc_of(data: bytes, crc: int = 0) -> int:
    """CRC-32 of what these entries say, behind those of which it was `crc`: without the CRCs that they end with.

    The CRC of anything that ends with its own does not depend on what it is.
    """
    body = ENTRY_SIZE - CRC_SIZE
    return zlib.crc32(b"".join([data[at : at + body] for at in range(0, len(data), ENTRY_SIZE)]), crc)


def last_generation(fs: FileSystem, path: Path) -> int:
    """The generation of the journal, 0 if there is none."""
    try:
        with Descriptor(fs, path, os.O_RDONLY) as fd:
            found = generation_in(fs.read(fd, HEAD_SIZE, 0))
            return found if found <= LAST_GENERATION else 0
    except (FileNotFoundError, NotADirectoryError):
        return 0


class DeletionReader:
    """Follows a journal of deletions."""

    def __init__(self, fs: FileSystem, path: Path, generation: int) -> None:
        self._fs = fs
        self._path = path
        self.generation = generation
        self._file = Descriptor.closed()
        self._which = (0, 0)  # device and inode: a journal that was replaced is another file
        self.position = 0  # entries read so far, marks counted
        self.marked = 0  # those of them up to the last mark
        self.unapplied: list[Deletion] = []  # those behind it
        self.is_lost = False  # another file is in the place of this journal, and does not go on from it
        self._crc = 0  # of the entries read so far
        self._compared: tuple[object, Agreement] | None = None
        self._odd: dict[int, Deletion | None] = {}  # what stands, or should stand, where the bytes are damaged
        self._polling = fork_safe(threading.Lock())
        self._later = 0  # the generation of the journal that has taken the place of this one's
        self._void = 0  # of one that was there though the log was still this one: it says nothing

    @property
    def exists(self) -> bool:
        """Whether there is such a file, of this generation; readers of it need not look for another one."""
        return self._file.is_open

    @property
    def superseded_by(self) -> int:
        """The later generation of which the journal was at the last poll(); 0 if it was of this one."""
        return self._later if self._later > self._void else 0

    def stay(self, later: int) -> None:
        """The log is still the one of this generation, though a journal of a later one is beside it."""
        self._void = max(self._void, later)

    @property
    def known(self) -> JournalPrefix:
        """How many entries were read, and their CRC."""
        return JournalPrefix(self.position, self._crc)

    def extends(self, known: JournalPrefix) -> bool:
        """Whether what was read begins with the entries that were known."""
        if known.position > self.position:
            return False
        is_all = known.position == self.position
        crc = self._crc if is_all else self._crc_of(self._file.number, known.position)
        # Logs of before have the CRC with those of the entries, which tells how many they are, and no more.
        return known.crc == crc or (crc >= 0 and known.crc == zlib.crc32(MARK * known.position))

    def _crc_of(self, fd: int, position: int) -> int:
        data = self._fs.read(fd, position * ENTRY_SIZE, HEAD_SIZE)
        return crc_of(_restored(data, _read(data))) if len(data) == position * ENTRY_SIZE else -1

    def compared(self, state: object, compare: Callable[[], Agreement]) -> Agreement:
        """What `compare` gives, asked for again only where the log is in another state, or the journal."""
        key = (state, self.known)
        if self._compared is None or self._compared[0] != key:
            self._compared = key, compare()
        return self._compared[1]

    def sync(self) -> None:
        """Make durable what was read: whoever wrote it may have been killed before it did."""
        if self._file.is_open:
            self._fs.fsync(self._file.number)

    def look(self, log: Path) -> None:
        """As poll(), for a reader of `log`. Raises LogSuperseded where that is not the log any more.

        What is zero in an index that was just read or built must not be taken for a live record without the field: a
        deletion is in the journal before its bytes are zero.
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
        """Read what was appended since the last call; whether there was anything."""
        with self._polling:
            return self._poll()

    def _poll(self) -> bool:
        if not self._file.is_open and not self._open():
            return False
        if self._is_replaced():  # by a repair, which keeps positions, or by a compaction: no news from here on
            self._open()
        at = HEAD_SIZE + self.position * ENTRY_SIZE
        size = self._fs.fstat(self._file.number).st_size
        before = self.position
        self.is_lost |= size < at
        if size >= at + ENTRY_SIZE:
            data = self._fs.read(self._file.number, size - at, at)
            entries = _read(data)
            position, marked, unapplied = self.position, self.marked, list(self.unapplied)
            self._odd.update((position + number, entries.all[number]) for number in entries.odd)
            for deletion in entries.all:
                position += 1
                if deletion is not None and deletion.offset == APPLIED:
                    unapplied, marked = [], position
                elif deletion is not None:
                    unapplied.append(deletion)
            crc = crc_of(_restored(data, entries), self._crc)
            # No call between these: an interrupt, or a forked child, finds all of them or none.
            self.position, self.marked, self.unapplied, self._crc = position, marked, unapplied, crc
        return self.position > before

    def _is_replaced(self) -> bool:
        try:
            found = self._fs.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return False  # what is open here is all that there is
        return (found.st_dev, found.st_ino) != self._which

    def _open(self) -> bool:
        try:
            self._fs.stat(self._path)  # each question looks: failing to open takes ten times as long
            file = Descriptor(self._fs, self._path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            self._later = 0
            return False
        head, expected = self._fs.read(file.number, HEAD_SIZE, 0), encode_head(self.generation)
        if head != expected and not differs_by_one_bit(head, expected):
            file.close()
            later = generation_in(head)
            self._later = later if later > self.generation else 0
            return False
        self._later = 0
        if self.position and self._crc_of(file.number, self.position) != self._crc:
            file.close()  # what was deleted since then is told of in the file that is open, if anywhere
            self.is_lost = True
            return False
        found = self._fs.fstat(file.number)
        which = (found.st_dev, found.st_ino)
        former, self._file, self._which = self._file, file, which
        former.close()
        return True

    def between(self, position: int, stop: int) -> npt.NDArray[np.int64]:
        """Offsets that the entries from `position` to `stop` deleted."""
        import numpy as np

        count = stop - max(0, position)
        if count <= 0 or not self._file.is_open:
            return np.empty(0, np.int64)
        with self._polling:  # which may open another file
            data = self._fs.read(self._file.number, count * ENTRY_SIZE, HEAD_SIZE + max(0, position) * ENTRY_SIZE)
        fields = np.frombuffer(data, [("offset", "<u8"), ("length", "<u4"), ("crc", "<u4")])
        offsets = fields["offset"]
        odd = [(at, each) for at, each in self._odd.items() if max(0, position) <= at < stop]
        if odd:
            offsets = offsets.copy()
            for at, each in odd:
                offsets[at - max(0, position)] = APPLIED if each is None else each.offset
        found: npt.NDArray[np.int64] = offsets[offsets != APPLIED].astype(np.int64)
        return found

    def close(self) -> None:
        self._file.close()
        self.position, self.marked, self.unapplied, self._odd = 0, 0, [], {}
        self._crc, self.is_lost = 0, False


def _restored(data: bytes, entries: Entries[Deletion]) -> bytes:
    """The bytes of these entries, which were read from `data`, with flipped bits put back."""
    whole = bytearray(data[: len(entries.all) * ENTRY_SIZE])
    for number in entries.odd:
        entry = entries.all[number]
        if entry is not None:
            whole[number * ENTRY_SIZE : (number + 1) * ENTRY_SIZE] = encode_entry(entry)
    return bytes(whole)


def decode_all(data: bytes) -> list[Deletion | None]:
    """The entries; None for a damaged one, or one that nobody writes. See framing.read_entries.

    >>> decode_all(encode_entry(Deletion(7, 6)) + bytes(16) + MARK + bytes(16))[:2]
    [Deletion(offset=7, length=6), None]
    """
    return _read(data).all


def _read(data: bytes) -> Entries[Deletion]:
    return read_entries(data, ENTRY_SIZE, _decode)


def _decode(data: bytes) -> Deletion | None:
    fields = _ENTRY.unpack(data)
    return Deletion._make(fields) if fields is not None and (fields[0] < 1 << 63 or fields[0] == APPLIED) else None


class DeletionWriter:
    """Appends to the journal; the caller holds the log's lock and has read it to its end."""

    def __init__(self, fs: FileSystem, path: Path, generation: int) -> None:
        self._fs = fs
        self._path = path
        self._head = encode_head(generation)
        self._file = Descriptor.closed()
        self._end = 0
        self._crc = 0
        self.known = JournalPrefix(0, 0)  # the entries that are durable: what the journal of commits may tell of

    def start(self, reader: DeletionReader) -> None:
        """Go on behind what `reader` has found to be valid; make the file if it found none."""
        if self._file.is_open:
            return
        if not reader.exists:
            self._fs.replace_file(self._path, self._head)
        file = Descriptor(self._fs, self._path, os.O_RDWR)
        end = HEAD_SIZE + reader.position * ENTRY_SIZE
        if self._fs.size(file.number) > end:
            self._fs.truncate(file.number, end)  # a torn entry
        crc = reader.known.crc
        self._file, self._end, self._crc = file, end, crc

    def append(self, data: bytes) -> None:
        self._fs.write(self._file.number, data, self._end)
        end, crc = self._end + len(data), crc_of(data, self._crc)
        self._end, self._crc = end, crc  # no call between the two: an interrupt finds both done or neither

    def sync(self) -> None:
        """Make durable what was appended, if anything was."""
        position = (self._end - HEAD_SIZE) // ENTRY_SIZE
        if self._file.is_open and self.known.position != position:
            self._fs.fsync(self._file.number)
            self.known = JournalPrefix(position, self._crc)

    def is_in_place(self) -> bool:
        """Whether readers find what is written here."""
        try:
            return not self._file.is_open or self._fs.is_at(self._path, self._file.number)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def close(self) -> None:
        self._file.close()
