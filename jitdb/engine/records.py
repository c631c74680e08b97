"""The records of a log as the engine sees them: which are live, where each lies, what each holds."""

from __future__ import annotations

import json
import os
import warnings
from array import array
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
from pyroaring import BitMap, BitMap64

from jitdb.common.arguments import whole_number
from jitdb.common.words import shown
from jitdb.engine.catalog.catalog import Catalog
from jitdb.errors import (
    DamageWarning,
    DecodeError,
    IndexBehind,
    IndexForeign,
    InvalidOffset,
    LogCorrupt,
    LogWarning,
    MalformedWarning,
    Remedy,
)
from jitdb.indexes.kinds.offsets import damaged_blocks, load_offsets, offsets_at, places_at, rank_in
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_range, members_of
from jitdb.indexes.kinds.set import records_in_sets
from jitdb.indexes.spec import OFFSETS, IndexSpec, deleted_spec
from jitdb.log.codecs.fields.located import RecordBatch, Scratch
from jitdb.log.lines.formats.kernels.kinds import PATTERN

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from jitdb.indexes.files.index import Index
    from jitdb.indexes.segment import Segment
    from jitdb.log.source import LogSource, ScanSource
    from jitdb.operators.question import AsOf

MAX_RECORDS: Final = 1 << 32  # bitmaps hold 32-bit seqs
_TOGETHER: Final = 1 << 17  # offsets whose records are looked for at once


class Gone(Exception):
    """Records that were to be read are deleted, or count as deleted because the codec cannot read them. Without `seqs`:
    the seqs of the answer in hand are all void.
    """

    def __init__(self, seqs: NDArray[np.uint32]) -> None:
        super().__init__()
        self.seqs = seqs


class Records:
    """Guarded by the engine's lock, except for `read`.

    deleted:   the seqs of the records that are known to be deleted
    deletions: how often that changed
    """

    def __init__(self, log: LogSource, catalog: Catalog) -> None:
        self.log = log
        self.deleted = BitMap()
        self.deletions = 0
        self.deleted_spec = deleted_spec(b"")
        self._change = b""
        self._catalog = catalog
        self._journal = 0  # how far the log's deletions were read
        self._unplaced: NDArray[np.int64] = np.empty(0, np.int64)  # deleted offsets that no index covers yet
        self._scanned = 0  # records whose state at the scan is in `deleted`
        self._looked_at: set[int] = set()  # damaged blocks whose records are in `deleted`
        self._live: tuple[int, int, BitMap] = (-1, -1, BitMap())

    def note_changes(self, change: bytes) -> IndexSpec:
        """The index of the deleted records: another one after another program changed the file.

        change: the log's token (foreign_change_token) when its content was looked at
        """
        if change != self._change:
            self._change = change
            self.deleted_spec = deleted_spec(change)
            self._scanned = self._journal = 0
        return self.deleted_spec

    def note_deletions(self) -> None:
        """Take in what was deleted since the last call. Raises LogSuperseded: then refresh the log, and ask again."""
        # First those that are not in the journal yet: they are there before they leave this list.
        hidden = self.log.deleting()
        index = self._catalog.get(self.deleted_spec)
        scanned, (position, offsets) = index.end_seq, self.log.deletions(self._journal)
        if hidden or scanned != self._scanned or len(offsets) or len(self._unplaced):
            found = self.seqs_at(np.array(hidden, np.int64))
            if scanned != self._scanned:
                found |= records_in_sets(index.since(min(self._scanned, scanned)))
            self._unplaced = np.concatenate([self._unplaced, offsets]) if len(self._unplaced) else offsets
            covered = self._unplaced < self._catalog.get(OFFSETS).end_offset
            for at in range(0, len(covered), _TOGETHER):  # the arrays that this takes are several times as large
                some = slice(at, at + _TOGETHER)
                found |= self.seqs_at(self._unplaced[some][covered[some]])
            self._unplaced = self._unplaced[~covered]
            self.add_deleted(found)
        self._journal, self._scanned = position, scanned

    def add_deleted(self, seqs: BitMap) -> None:
        """Count these records as deleted, too."""
        if seqs and not seqs.issubset(self.deleted):
            self.deleted = self.deleted | seqs
            self.deletions += 1

    def set_aside(self, fault: LogCorrupt) -> int:
        """Treat the records that a damaged block hides as deleted; returns how many.

        Raises the fault where all of them were set aside before.
        """
        if fault.block is None or fault.offset is None:
            raise fault
        lost = self._hidden_by(fault) - self.deleted
        if not lost:
            raise fault
        self.add_deleted(lost)
        self._looked_at.add(fault.block)
        return len(lost)

    def damaged_blocks(self) -> set[int]:
        """The numbers of the blocks of the log that were found damaged, by whatever process."""
        return damaged_blocks(self._catalog.get(OFFSETS).segments)

    def unseen_damage(self) -> list[int]:
        """The damaged blocks whose records are not left out yet."""
        damaged = self.damaged_blocks()
        return sorted(damaged - self._looked_at) if damaged else []

    def leave_out(self, faults: Iterable[LogCorrupt]) -> int:
        """Treat the records that these damaged blocks hide as deleted; returns how many."""
        lost = BitMap()
        for fault in faults:
            assert fault.block is not None
            lost |= self._hidden_by(fault)
            self._looked_at.add(fault.block)
        self.add_deleted(lost)
        return len(lost)

    def _hidden_by(self, fault: LogCorrupt) -> BitMap:
        """The records from the damage on, to the end of its block."""
        assert fault.block is not None
        assert fault.offset is not None
        return bitmap_of_range(self.rank(fault.offset), self.rank((fault.block + 1) * self.log.block_size))

    def live(self, end_seq: int) -> BitMap:
        """All live records below `end_seq`. Not to be changed by the caller."""
        if self._live[:2] != (end_seq, self.deletions):
            self._live = (end_seq, self.deletions, bitmap_of_range(0, end_seq) - self.deleted)
        return self._live[2]

    def seqs_at(self, offsets: NDArray[Any]) -> BitMap:
        """The records that begin at these offsets; other offsets are passed over."""
        if not len(offsets):
            return BitMap()
        offsets = np.sort(offsets[offsets < 1 << 63].astype(np.int64))
        parts = []
        for segment in self._catalog.get(OFFSETS).segments:
            low, high = np.searchsorted(offsets, [segment.first_offset, segment.end_offset]).tolist()
            if low < high:
                parts.append(places_at(segment, offsets[low:high]) + segment.first_seq)
        return bitmap_of(np.concatenate(parts)) if parts else BitMap()

    def rank(self, offset: int) -> int:
        """How many records begin before this byte of the log, of those that the index of offsets knows."""
        for segment in reversed(self._catalog.get(OFFSETS).segments):
            if segment.first_offset < offset:
                return segment.first_seq + rank_in(segment, offset)
        return 0

    def place_of(self, seq: int) -> int:
        """Where the record with this seq begins; where the records end, if there is none."""
        index = self._catalog.get(OFFSETS)
        return int(self.offsets_of(np.array([seq], np.uint32))[0]) if seq < index.end_seq else index.end_offset

    def horizon(self, as_of: AsOf, end_seq: int) -> int:
        """How many of the records below `end_seq` an earlier state of the log had.

        as_of: None: all of them; a cursor: those before it; an offset: those that begin there or before, of -1 none

        Raises QueryError, and InvalidOffset for what is no integer, below -1, or past the log's durable end.
        """
        if as_of is None:
            return end_seq
        if isinstance(as_of, str):
            from jitdb.engine.cursor import place_in

            return min(place_in(as_of, self.log).rank(self.log, self.rank), end_seq)
        offset = whole_number("as_of is an offset in the log, an integer", as_of, -1, InvalidOffset)
        if offset >= self.log.durable_end:
            raise InvalidOffset(
                f"as_of={shown(offset)} is no offset of the log: expected -1 (before all records) up to "
                f"{self.log.durable_end - 1:,}",
                path=self.log.path,
                offset=offset,
            )
        return min(self.rank(offset + 1), end_seq)

    def offsets_of(self, seqs: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Where these records begin. Raises IndexBehind where the index does not know them any more."""
        index = self._catalog.get(OFFSETS)
        require(index, seqs)
        return offsets_at(index.segments, seqs)

    def offset_set(self, seqs: BitMap) -> BitMap64:
        """The same as a set, of some two bytes each, for any number of them. Keeps nothing of the index in memory."""
        index, found = self._catalog.get(OFFSETS), BitMap64()
        if seqs:
            require(index, np.array([seqs.max()], np.uint32))
        for segment in index.segments:
            mine = members_of(seqs & bitmap_of_range(segment.first_seq, segment.end_seq))
            if len(mine):
                places = load_offsets(segment, keep=False)[mine - np.uint32(segment.first_seq)]
                found.update(array("Q", places.tobytes()))
        return found

    def sizes_of(self, seqs: NDArray[np.uint32], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Bytes from each of these records, which begin there, to the next record. Raises IndexBehind."""
        index, following = self._catalog.get(OFFSETS), seqs.astype(np.int64) + 1
        ends = np.full(len(seqs), index.end_offset, np.int64)
        is_there = following < index.end_seq
        ends[is_there] = self.offsets_of(following[is_there].astype(np.uint32))
        return ends - offsets

    def block_bytes(self, seqs: BitMap) -> int:
        """The total size of the blocks that hold these records."""
        size = self.log.block_size
        return len(np.unique(self.offsets_of(members_of(seqs)) // size)) * size

    def offset_segments(self) -> list[Segment]:
        """What offsets_of() reads, for use without the lock."""
        return list(self._catalog.get(OFFSETS).segments)

    def read(self, offsets: NDArray[np.int64]) -> list[bytes | None]:
        """The records' bytes; None for a deleted one. Raises IndexForeign where the indexes are not this log's."""
        try:
            return self.log.get_many_raw(offsets)
        except InvalidOffset as error:
            raise self._foreign(error) from error

    def texts(self, offsets: NDArray[np.int64]) -> list[bytes | None]:
        """The same as the file has them: LogSource.get_many_text."""
        try:
            return self.log.get_many_text(offsets)
        except InvalidOffset as error:
            raise self._foreign(error) from error

    def _foreign(self, error: InvalidOffset) -> IndexForeign:
        return IndexForeign(f"it is of another copy of the log: {error}", path=self._catalog.get(OFFSETS).name)

    def read_batch(self, offsets: NDArray[np.int64], scratch: Scratch) -> RecordBatch:
        """The records at these offsets, in any order, in one buffer; deleted ones are marked. Raises as read() does."""
        order = None
        if len(offsets) > 1 and not bool((offsets[1:] > offsets[:-1]).all()):
            order = np.argsort(offsets)
        try:
            found = self.log.read_batch(offsets if order is None else offsets[order], scratch)
        except InvalidOffset as error:
            raise self._foreign(error) from error
        if order is None:
            return found
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return RecordBatch(found.buffer, found.starts[places], found.lengths[places], found.states[places], offsets)

    def decode_all(self, raw: Sequence[bytes], offsets: NDArray[np.int64]) -> list[Any]:
        """The values of the records that lie there. Raises DecodeError, as decode() does."""
        try:
            return list(map(self.log.codec.decode, raw))
        except DecodeError:
            return [self.decode(record, offset) for record, offset in zip(raw, offsets.tolist(), strict=True)]

    def decode(self, raw: bytes, offset: int) -> Any:
        """A record's value. Raises a DecodeError that names the log and the offset."""
        try:
            return self.log.codec.decode(raw)
        except DecodeError as error:
            raise DecodeError(
                f"the record at offset {offset} cannot be decoded as {self.log.codec.name}: {error}",
                path=self.log.path,
                remedy=Remedy(
                    "ask with as_offsets() to see where the other answers lie",
                    "ask with --offsets to see where the other answers lie",
                ),
                position=error.position,
                offset=offset,
            ) from error


def require(index: Index, seqs: NDArray[np.uint32]) -> None:
    """Raise IndexBehind where the index does not reach the last of these (ascending or not) records."""
    if len(seqs) and int(seqs.max()) >= index.end_seq:
        raise IndexBehind(f"covers {index.end_seq:,} records, and record {int(seqs.max()):,} is asked", path=index.name)


# --- damage ----------------------------------------------------------------------------------------------------------


def damage_in(log: ScanSource, block: int) -> LogCorrupt | None:
    """What a second look finds wrong in a block: its checksum, or a length, at `offset`. Raises LogError."""
    data, fault = log.second_look(block)
    if fault is None:
        begin = block * log.block_size
        lost = log.framing.fault_in(data, log.durable_end - begin)
        fault = None if lost is None else leads_out(log.path, begin + lost, block)
    return fault


def leads_out(path: str | os.PathLike[str], offset: int, block: int) -> LogCorrupt:
    """The error of a record's length that leads out of its block."""
    return LogCorrupt(
        f"block {block} is damaged: the length at offset {offset:,} leads out of the block, so the records behind it "
        f"cannot be found",
        remedy=Remedy("see verify(), and repair() or a copy of the log", "see jitdb verify, and jitdb repair"),
        path=path,
        offset=offset,
        block=block,
    )


_NAMED: Final = 5  # lines that a warning names
_ROUND: Final = 100  # to which the number of lines is rounded where there may be more
_SHOWN: Final = 100  # bytes of a line in a warning
_GROWTH: Final = 10  # from one warning of lines that come to the next
_READ: Final = 16 << 20  # bytes that are read to say what is wrong in a line
_LONGEST: Final = 1 << 16  # bytes of that line


_WHY: Final = Remedy("", "jitdb info says which and why")
_TEXT: Final = Remedy(
    "log.text_around(offset) gives them, and format='mixed' reads all lines",
    "jitdb query --text shows them, and --log-format mixed reads all lines",
)
_BESIDE: Final = Remedy(
    "format='mixed' reads text between JSON, too",
    "jitdb info says which and why, and --log-format mixed reads all lines",
)
_AS_TEXT: Final = Remedy(
    "format='mixed' reads all lines as text",
    "jitdb info says which and why, and --log-format mixed reads all lines as text",
)
_OTHERWISE: Final = Remedy(
    "pass format=, or format='plain' for any text",
    "say what they are: --log-format NAME, or --log-format plain for any text",
)


class DamageReport:
    """Warns of damage in one log."""

    def __init__(self, log: ScanSource) -> None:
        self._log = log
        self._reported: set[int] = set()  # offsets
        self.has_malformed = False  # whether malformed() was given any
        self.has_texts = False  # whether texts() was
        self._came, self._told = 0, 0.1  # lines that came() was given, and when it warned last

    def broken_at(self, offsets: Sequence[int]) -> None:
        """From these offsets on, to the ends of their blocks, no record can be found."""
        fresh = sorted(set(offsets) - self._reported)
        self._reported.update(fresh)
        if fresh:
            size, path = self._log.block_size, self._log.path
            faults = [
                LogCorrupt(f"block {at // size} is damaged at offset {at:,}", path=path, offset=at, block=at // size)
                for at in fresh
            ]
            text = f"{faults[0].reason}{_more(fresh)}: the records behind it in this block are left out of all answers"
            warnings.warn(DamageWarning(text, faults, path=path), stacklevel=7)

    def malformed(self, seqs: Sequence[int], count: int, *, is_all: bool = True, has_others: bool = True) -> None:
        """The codec cannot read `count` records, or more, which count as deleted; these are the first of them.

        has_others: the log has records that it can read
        """
        if count and self._log.framing.tells_malformed and not (count == 1 and self._begins_blank()):
            refused = self._log.refuses_malformed()
            if refused is not None:
                raise refused
            self.has_malformed = True
            numbers = [seq + 1 for seq in seqs] if self._log.framing.names_malformed else []
            form, row = self._form, getattr(self._log.framing, "row", None)
            is_json, is_text = row is None, row is not None and row.how == PATTERN
            wrong, why = _fault_in(self._log.path, numbers[0]) if numbers and is_json else ("", None)
            wrong = wrong and f" ({'the first ' if count > 1 else ''}has {wrong})"
            if has_others and count == 1 and self._joins_text:  # one record, of any number of lines
                what = f"the lines before the first record cannot be read as {form}, and are left out of all answers"
                remedy = _WHY
            elif has_others:
                said = f"cannot be read as {form}{wrong}, left out of all answers"
                is_batch = getattr(getattr(self._log.framing, "form", None), "has_batches", False)  # no lines beside it
                what = _lines(numbers, count, is_all, said)
                remedy = why or (_BESIDE if is_json and not is_batch else _AS_TEXT if is_text else _WHY)
            else:
                which = f"its {count:,} lines" if numbers and is_all and count > 1 else "its lines"
                what = f"none of {which} can be read as {form}{wrong}, so that no answer has records"
                remedy = why or (_WHY if wrong else _OTHERWISE)
            warnings.warn(MalformedWarning(what, numbers, count, path=self._log.path, remedy=remedy), stacklevel=6)

    def _begins_blank(self) -> bool:
        """Whether lines before the first record are all blank, which is nothing to warn of."""
        from jitdb.log.lines.framing import LineFraming
        from jitdb.log.reading.sampling import sample_raw
        from jitdb.log.source import LogSource

        log, framing = self._log, self._log.framing
        if not self._joins_text or not isinstance(framing, LineFraming) or not isinstance(log, LogSource):
            return False
        first = list(sample_raw(log, 1, LineFraming()))
        return bool(first) and bool(framing.renderer.rendered(first)[0])

    @property
    def _joins_text(self) -> bool:
        """Whether a line that does not fit belongs to the record before it, so that only the first ones are none."""
        row = getattr(self._log.framing, "row", None)
        return row is not None and row.joins and not row.is_json

    @property
    def _form(self) -> str:
        """As what records are read."""
        row = getattr(self._log.framing, "row", None)
        if row is None:
            return self._log.codec.name.upper()
        return "the pattern says" if row.name == "pattern" else str(row.title)

    def came(self, first: bytes, count: int) -> None:
        """Warn that `count` lines came to a followed file that cannot be read; `first` is the first of them.

        After the first warning, the next comes when there are ten times as many, and so on.
        """
        self._came += count
        if self._came >= self._told * _GROWTH:
            self._told = self._came
            said = f"cannot be read as {self._form}, and {'are' if self._came > 1 else 'is'} left out"
            what = "a line that came" if self._came == 1 else f"{self._came:,} lines that came"
            line = shown(first[:_SHOWN].decode(errors="replace").strip(), _SHOWN)
            text = f"{what} {said}{', now:' if self._came > count else ':'} {line}"
            warnings.warn(LogWarning(text, path=self._log.path, remedy=_WHY), stacklevel=6)

    def texts(self, seqs: Sequence[int], *, is_all: bool) -> None:
        """These records, or more, are lines of text beside JSON."""
        self.has_texts = True
        numbers = [seq + 1 for seq in seqs] if self._log.framing.names_malformed else []
        what = _lines(numbers, len(seqs), is_all, "without JSON {} left out of all answers, and not searched")
        warnings.warn(MalformedWarning(what, numbers, len(seqs), path=self._log.path, remedy=_TEXT), stacklevel=6)

    def left_out(self, faults: Sequence[LogCorrupt], records: int) -> None:
        """Warn that these blocks are damaged, and how many known records that costs."""
        broken = [fault.offset for fault in faults if fault.expected is None and fault.offset is not None]
        self.broken_at(broken)
        wrong = [fault for fault in faults if fault.offset not in broken]
        if wrong:
            text = f"{wrong[0].reason}{_more(wrong)}. {records:,} records are left out of all answers"
            warnings.warn(DamageWarning(text, wrong, path=self._log.path, remedy=wrong[0].remedy), stacklevel=6)


def _lines(numbers: Sequence[int], count: int, is_all: bool, said: str) -> str:
    """What is said of `count` lines, or more, the first of which have these numbers, if that is known."""
    named = ", ".join(f"{number:,}" for number in numbers[:_NAMED]) + (", …" if count > _NAMED and numbers else "")
    which = f"{count:,} lines" if count > 1 else "1 line"
    if not is_all:  # no more are looked at
        below = (count - 1) // _ROUND * _ROUND
        which = f"more than {below:,} lines" if below else f"at least {which}"
    return f"{which} {said.format('are' if count > 1 else 'is')}{named and f': line {named}'}"


def _fault_in(path: object, number: int) -> tuple[str, Remedy | None]:
    """What a line has that no record of JSON can hold, in words: bytes that are no UTF-8, or a large integer; and what
    helps. Empty where it has neither, or is not looked at.
    """
    from jitdb.common.paths import format_path
    from jitdb.log.lines.detection import converted
    from jitdb.operators.summaries.fields import fields_in

    if not isinstance(path, str | os.PathLike):
        return "", None
    try:
        with open(path, "rb") as file:
            line = _line(file, number)
        known = fields_in([json.loads(line.decode())])
    except UnicodeDecodeError:
        how = f"make UTF-8 of it: {converted(path)}"
        return "bytes that are no UTF-8", Remedy(how, how)
    except (OSError, ValueError, RecursionError):
        return "", None
    large = (path for path, value in known.items() if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64)
    found = next(large, None)
    return "" if found is None else f"an integer of more than 64 bits in `{format_path(found)}`", None


def _line(file: IO[bytes], number: int) -> bytes:
    """A line, by its number from 1 on; empty where it lies too far from the beginning, or is too long."""
    while number > 1 and file.tell() < _READ and (piece := file.readline(_LONGEST)):
        number -= piece.endswith(b"\n")
    line = file.readline(_LONGEST) if number == 1 else b""
    return line if len(line) < _LONGEST else b""


def _more(found: Sequence[object]) -> str:
    return f" (and {len(found) - 1:,} more blocks)" if len(found) > 1 else ""
