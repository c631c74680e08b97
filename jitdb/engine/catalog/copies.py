"""Was an index built from this very log? The last record that it covers tells, and the deletions that it knows.

Two copies of a log share identity and generation. Once both have grown, an index of one is wrong for the other. So each
segment notes the CRC-32 of its last record, and how much of the journal of deletions was known. When an index is read
from a file, the notes of its newest segments are held against the log (docs/format-index.md).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from jitdb.common.zlib import crc32
from jitdb.errors import IndexForeign, LogSuperseded
from jitdb.indexes.segment import NO_JOURNAL, SPAN, Journal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.indexes.files.index import Index
    from jitdb.indexes.segment import Segment
    from jitdb.log.source import LogSource

UNKNOWN: Final = 0  # the record was deleted, or its block is damaged, or not here
NO_RECORD: Final = -1  # none ends there: the log is another copy

_KEPT: Final = 64  # indexes mostly end at the same few records


class Deletions:
    """The log's journal of deletions, as far as it was read."""

    def __init__(self, log: LogSource) -> None:
        self._log = log
        self._read = (0, Journal())  # up to which position

    def now(self) -> Journal:
        """How much there is of it now. Raises LogError, LogSuperseded."""
        before, known = self._read
        position, offsets = self._log.deletions(before)
        if position < before:  # another journal took its place
            self._read = (0, Journal())
            return self.now()
        known = Journal(known.deletions + len(offsets), crc32(_bytes_of(offsets), known.crc))
        self._read = (position, known)
        return known

    def begins_with(self, known: Journal) -> bool:
        """Whether it begins with these deletions. Raises LogError, LogSuperseded."""
        _, every = self._log.deletions()
        return known.deletions <= len(every) and crc32(_bytes_of(every[: known.deletions])) == known.crc


class LastRecords:
    """The CRC-32 of single records of one generation of a log, by where they end. Guarded by the engine's lock."""

    def __init__(self, log: LogSource) -> None:
        self.log = log
        self._crcs: dict[int, int] = {}
        self.deletions = Deletions(log)
        self._begun_with: set[Journal] = {NO_JOURNAL}  # what the journal was found to begin with

    def crc(self, end: int) -> int:
        """That of the record that ends at this byte of the log: UNKNOWN or NO_RECORD where there is none.

        It is read once: a later deletion does not change what the record was. Raises LogError.
        """
        found = self._crcs.get(end)
        if found is None:
            found = _crc_at(self.log, end)[0]
            if found != NO_RECORD:
                self.keep(end, found)
        return found

    def noted(self, segment: Segment) -> Segment:
        """The segment with the CRC of its last record, if it is there, and with the journal. Raises LogError.

        One that ends with its span gets neither: its bytes do not tell when it was built.
        """
        if segment.end_seq % SPAN == 0:
            return segment.changed(last_crc=UNKNOWN, journal=NO_JOURNAL)
        # Read here: segments that come from other machines were made without the whole log.
        found = self.crc(segment.end_offset)
        journal = NO_JOURNAL
        with suppress(LogSuperseded):  # the next call to the log raises it again
            journal = self.deletions.now()
        self._begun_with.add(journal)
        return segment.changed(last_crc=UNKNOWN if found == NO_RECORD else found, journal=journal)

    def fits(self, crc: int, end: int) -> bool:
        """Whether the record that ends there can be one with this CRC. Raises LogError."""
        if crc == UNKNOWN or self.crc(end) in (crc, UNKNOWN):
            return True
        found, offset = _crc_at(self.log, end)  # read anew: its deletion may have been half done
        if found in (crc, UNKNOWN) or (found != NO_RECORD and _is_deleted(self.log, offset)):
            self.keep(end, UNKNOWN)
            return True
        return False

    def check(self, index: Index) -> None:
        """Raise IndexForeign where the log has another record than the index was built of, or lacks a deletion.

        Raises LogError.
        """
        if index.segments and not self._begins_with(index.segments[-1].journal):
            raise IndexForeign(
                "it is of a later state of the log, or of another copy of it: it knows of deletions of which the log's "
                "journal does not tell",
                path=index.name,
            )
        for segment in reversed(index.segments):
            if not self.fits(segment.last_crc, segment.end_offset):
                raise IndexForeign(
                    f"it is of another copy of the log: of a record that ends at byte {segment.end_offset:,} and is "
                    f"another one here, or none",
                    path=index.name,
                )
            if segment.last_crc != UNKNOWN and self.crc(segment.end_offset) != UNKNOWN:
                return  # this record is the log's, so earlier ones are, too: copies differ from some place on

    def _begins_with(self, known: Journal) -> bool:
        with suppress(LogSuperseded):
            if known not in self._begun_with and not self.deletions.begins_with(known):
                return False
            self._begun_with.add(known)
        return True

    def keep(self, end: int, crc: int) -> None:
        """From now on crc() gives this."""
        if len(self._crcs) >= _KEPT:
            self._crcs.clear()
        self._crcs[end] = crc


def _crc_at(log: LogSource, end: int) -> tuple[int, int]:
    """The CRC of the record that ends there, and where it begins."""
    record, offset, is_lost = log.framing.last_record(log, end)
    if record is not None:
        return crc32(record), offset
    return UNKNOWN if is_lost or offset >= 0 else NO_RECORD, offset


def _is_deleted(log: LogSource, offset: int) -> bool:
    with suppress(LogSuperseded):  # then nobody uses this generation's indexes any more
        # First those that are not in the journal yet: they enter it before they leave that list.
        return offset in log.deleting() or bool((log.deletions()[1] == offset).any())
    return True


def _bytes_of(offsets: NDArray[np.int64]) -> bytes:
    return offsets.astype("<i8").tobytes()
