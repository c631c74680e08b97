"""What a process of Spark knows of the driver's log, and the part of it that it reads: as a log of its own."""

from __future__ import annotations

import hashlib
import os
import pickle
import shlex
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.errors import LogCorrupt, LogError
from jitdb.log.blocks.block_format import round_up
from jitdb.log.blocks.checksum import UNKNOWN, crc32
from jitdb.log.blocks.framing import Framing
from jitdb.log.codecs import Codec, find_codec, get_codec
from jitdb.log.io import osfile
from jitdb.log.lines.fetching import records_of
from jitdb.log.lines.files.file import LineFile, filled
from jitdb.log.lines.files.stamp import Stamp, stamp_at
from jitdb.log.lines.form import PLAIN, LineForm
from jitdb.log.lines.framing import LineFraming
from jitdb.log.lines.line_log import LineLog
from jitdb.log.objects.door import Location, fs_of, in_full, location_of
from jitdb.log.objects.urls import is_url
from jitdb.log.source import LogSource
from jitdb.spark_ext.errors import CopyDiffers, LogChanged, SparkError, finding_codec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.any_log import AnyLog
    from jitdb.log.log import Log

SHARED: Final = "the path must lie on storage that all machines share"  # what to do when a machine has no such log

_ENDS: Final = 1 << 16  # bytes of lines, at most, that a digest is of at either end: many files are small

Look = Callable[[int], tuple[bytes, LogCorrupt | None]]  # as ScanSource.second_look, of a block of the log


@dataclass(frozen=True)
class Snapshot:
    """A log as the driver saw it. Can be pickled.

    end:    bytes that count: a log that grows meanwhile is still the same
    digest: of its first and last block, see digest_of
    form:   of JSON Lines that somebody else writes; None of a log of jitdb's
    stamp:  their file's
    compression: "gzip" or "zstd": `end` counts text then, and may be what the file claims (compressed_file.py)
    folder, name: where checkpoints of a compressed file are kept (empty: nowhere), and what they are known by
    """

    path: str
    codec_name: str
    block_size: int
    identity: bytes
    generation: int
    end: int
    digest: str
    sent_codec: bytes = b""  # one that is no codec of jitdb's, pickled: for processes that do not know its name
    form: LineForm | None = None
    stamp: Stamp | None = None
    compression: str = ""
    folder: str = ""
    name: bytes = b""

    @staticmethod
    def of(log: AnyLog, end: int) -> Snapshot:
        """The log up to a byte of it. Raises LogError, OSError; EOFError where the file is shorter than the log was.

        Raises SparkError for batches: tasks begin at lines, and records of one line would be of two tasks.
        """
        path, size = in_full(log.path), log.block_size
        form = log.framing.form if isinstance(log.framing, LineFraming) else None
        if form is not None:
            refuse_batches(form, path)
        stamp = None if form is None else stamp_at(path)
        compression, folder, name = "", "", b""
        if isinstance(log, LineLog) and log.compression:
            compression, stamp, name = log.compression, log.known.stamp, log.known.identity + log.known.token
            folder = os.path.abspath(log.sidecar) if log.identity_is_stored else ""
        digest = _digest(path, stamp.size if stamp is not None and compression else end, size, form is not None)
        return Snapshot(
            path, log.codec.name, size, log.identity, log.generation, end, digest, _sent(log.codec), form, stamp,
            compression, folder, name,
        )  # fmt: skip

    @property
    def stored_end(self) -> int:
        """Bytes of the file that count: of a compressed one all that it had."""
        return self.stamp.size if self.stamp is not None and self.compression else self.end

    def text_in(self, file: osfile.Descriptor) -> LineFile:
        """What the open file holds, decompressed."""
        text = LineFile(file)
        if self.compression:
            from jitdb.log.lines.files.opening import decompressed

            is_whole = partial(LineFraming(self.form or PLAIN).is_whole, codec=self.codec)
            folder = Path(self.folder) if self.folder else None
            text = decompressed(file, location_of(self.path), self.compression, folder, is_whole)
        if self.stamp is not None and (self.compression or self.end > self.stamp.size):
            text.end_of_lines(self.stamp, self.end, self.stamp.size, self.name)
        return text

    @cached_property
    def codec(self) -> Codec:
        """How its records are read. Raises CodecError where this process finds no such codec."""
        with finding_codec(self.path):
            found = find_codec(self.codec_name)
            if found is None:
                found = pickle.loads(self.sent_codec) if self.sent_codec else get_codec(self.codec_name)
        assert isinstance(found, Codec)
        return found

    def open(self, advice: str = SHARED) -> osfile.Descriptor:
        """The log's file, if this machine sees the log that the driver saw. Raises CopyDiffers, LogChanged."""
        host, found = os.uname().nodename, ""
        try:
            # Before it is checked: what takes the log's place behind that is another file.
            file = osfile.Descriptor(fs_of(self.path), self.path, os.O_RDONLY)
            found = _digest(self.path, self.stored_end, self.block_size, self.form is not None)
        except OSError as error:
            is_missing = isinstance(error, FileNotFoundError)
            text = f"{host} " + ("has no such file" if is_missing else f"cannot read it ({error.strerror})")
            raise CopyDiffers(text, path=self.path, remedy=advice) from error
        except EOFError:
            text = f"{host} has less than {self.stored_end:,} bytes of it, an old copy"
        else:
            text = f"{host} has another file there, expected digest {self.digest}, got {found}"
            advice = f"{advice}; if records were deleted or the log was compacted meanwhile, start the job again"
        if self.stamp is not None and found == self.digest:
            self._refuse_edited(Stamp.of(file.status()))
        elif found == self.digest:
            self._refuse_compacted()  # which need not change these blocks
        else:
            self._refuse_another(text, advice)  # a record of these blocks may have been deleted
        return file

    def _refuse_edited(self, now: Stamp) -> None:
        """Raise LogChanged where a file of lines, whose ends are what they were, was edited."""
        assert self.stamp is not None
        is_another = is_url(self.path) and now != self.stamp
        if is_another or now.size < self.stamp.size or (now.size == self.stamp.size and now.mtime != self.stamp.mtime):
            raise LogChanged(
                "it was changed, other than by more lines, since the job was planned",
                path=self.path,
                remedy="load it anew, or start the job again",
            )

    def check(self, file: osfile.Descriptor) -> None:
        """Whether lines that were read are those that the driver saw. Raises LogChanged, OSError."""
        if self.stamp is None:
            return
        self._refuse_edited(Stamp.of(file.status()))
        try:
            found = digest_of(_reader(file, True), self.stored_end, min(self.block_size, _ENDS))
        except EOFError:
            found = ""
        if found != self.digest:
            raise LogChanged("it was changed while it was read", path=self.path, remedy="start the job again")

    def look_again(self) -> Look:
        """Looks at blocks of the log as it is now, opened by the first call. Raises LogChanged, CopyDiffers."""
        opened: list[Log] = []

        def look(block: int) -> tuple[bytes, LogCorrupt | None]:
            from jitdb.log import Log

            if not opened:
                opened.append(Log(self.path, codec=self.codec, block_size=self.block_size, read_only=True))
            found = opened[0].second_look(block)
            self._refuse_another("another log took its place while it was read", "load it anew")
            return found

        return look

    def _refuse_another(self, text: str, advice: str) -> None:
        """Raise LogChanged, or CopyDiffers with this text, unless the log is still this one, with as many bytes."""
        from jitdb.log import Log

        with (
            suppress(LogError, OSError),
            Log(self.path, codec=self.codec, block_size=self.block_size, read_only=True) as log,
        ):
            same = (log.identity, log.generation) == (self.identity, self.generation)
            if same and log.identity_is_stored and log.durable_end >= self.end:
                return
        self._refuse_compacted()
        raise CopyDiffers(text, path=self.path, remedy=advice)

    def _refuse_compacted(self) -> None:
        """Raise LogChanged where the log was compacted since: its records have other offsets and seqs by now."""
        from jitdb.log.opening.opened import stored_meta

        now = None
        with suppress(LogError, OSError):
            now = stored_meta(self.path)
        if now is not None and now.identity == self.identity and now.generation > self.generation:
            raise LogChanged(
                f"it was compacted since the job was planned (generation {self.generation} then, "
                f"{now.generation} now), and its records lie elsewhere",
                path=self.path,
                remedy="load it anew, or start the job again",
            )


def refuse_batches(form: LineForm, path: str) -> None:
    """Raises SparkError for lines that may hold several records each."""
    if form.has_batches:
        raise SparkError(
            "its lines are batches of records, which Spark's tasks cannot share", path=path,
            remedy=f"write its records as lines, and read these: jitdb export {shlex.quote(path)} > records.ndjson",
        )  # fmt: skip


def digest_of(read: Callable[[int, int], bytes], end: int, block_size: int) -> str:
    """What tells a log from an earlier copy of it, and from another: a digest of its first and its last block.

    read: gives some bytes of it, by where they start and how many; `end`: those before count

    Raises what `read` raises; EOFError if there are fewer.
    """
    last = (end - 1) // block_size * block_size if end else 0
    first_block = read(0, min(block_size, end))
    last_block = read(last, end - last)
    if len(last_block) < end - last:
        raise EOFError
    return hashlib.blake2b(first_block + last_block, digest_size=12).hexdigest()


def _digest(path: str, end: int, block_size: int, are_lines: bool) -> str:
    file = osfile.Descriptor(fs_of(path), path, os.O_RDONLY)
    size = min(block_size, _ENDS) if are_lines else block_size
    try:
        return digest_of(_reader(file, are_lines), end, size)
    finally:
        file.close()


def _reader(file: osfile.Descriptor, are_lines: bool) -> Callable[[int, int], bytes]:
    """Reads bytes from where they start on; of lines with the newline that may lack behind them (log/lines/files/)."""

    def read(start: int, size: int) -> bytes:
        found = file.read(size, start)
        return filled(found, size) if are_lines else found

    return read


def _sent(codec: Codec) -> bytes:
    if type(codec).__module__.startswith("jitdb.log.codecs."):
        return b""
    from pyspark import cloudpickle

    sent: bytes = cloudpickle.dumps(codec)  # also of a class of the program that runs
    return sent


class EndMoved(Exception):
    """The text of a compressed file ends elsewhere than it claimed: `end` is certain. What was read before is right.

    Never leaves this package.
    """

    def __init__(self, end: int) -> None:
        super().__init__(f"the text ends at byte {end:,}")
        self.end = end


class Run(NamedTuple):
    """The records that begin in [start, stop) of the log, bytes; the first of them has this seq (-1: unknown), and the
    first behind them that one.
    """

    start: int
    stop: int
    first_seq: int = -1
    stop_seq: int = -1


class FileRange(LogSource):
    """The blocks that some runs lie in, one behind the other: offsets count from the first one, seqs from its records.

    Nothing of it changes, and nothing is written: it has no name of its own, its indexes stay in memory. Closed when
    nobody needs it.
    """

    identity = bytes(16)
    generation = 1
    identity_is_stored = False

    def __init__(
        self,
        snapshot: Snapshot,
        runs: Sequence[tuple[int, ...]],
        read: Callable[[memoryview, int], int],
        look: Look,
        sums: NDArray[np.int64] | None = None,
        *,
        first_sum: int = 0,
        deleted: NDArray[np.int64] | None = None,
        renamed: bool = False,
    ) -> None:
        """
        runs:      begin with where they start and stop in the log, in order; only the last may end within a block
        read:      fills a buffer from a byte of the log on; gives how many bytes there were
        look:      a second look at a block of the log
        sums:      the checksums of the blocks from the one with the number `first_sum` on: see ScanSource.checksums
        deleted:   offsets in the log of records that were deleted, ascending
        renamed:   whether a fault tells its place in here (and is set aside by who asks), or that in the log
        """
        self._snapshot, self._read, self._look = snapshot, read, look
        self._sums, self._first_sum, self._renamed = sums, first_sum, renamed
        size = snapshot.block_size if snapshot.form is None else 1  # lines cross blocks, and runs end where lines do
        firsts = np.array([run[0] // size * size for run in runs], np.int64)
        stops = np.array([run[1] for run in runs], np.int64)
        ends = np.cumsum([round_up(stop, size) - first for first, stop in zip(firsts, stops, strict=True)])
        self.begins = np.concatenate([[0], ends]).astype(np.int64)  # of each run in here; and where all would end
        self.shifts = firsts - self.begins[:-1]  # from in here to the log
        self._end = int(stops[-1] - self.shifts[-1])
        self._check: Callable[[], None] = lambda: None
        self._deleted = np.empty(0, np.int64) if deleted is None else self.offsets_here(deleted)

    @staticmethod
    def of_file(
        snapshot: Snapshot,
        runs: Sequence[tuple[int, ...]],
        file: osfile.Descriptor,
        sums: NDArray[np.int64] | None,
        **more: Any,
    ) -> FileRange:
        """Read from a file that this machine can open."""
        text = snapshot.text_in(file)

        def read(buffer: memoryview, at: int) -> int:
            done = text.read_into(buffer, at)
            if not text.agrees(snapshot.end):
                assert snapshot.stamp is not None
                raise EndMoved(text.end_of_lines(snapshot.stamp, 0, -1, snapshot.name))
            return done

        made = FileRange(snapshot, runs, read, snapshot.look_again(), sums, **more)
        weakref.finalize(made, text.close)
        made._check = lambda: snapshot.check(file)
        return made

    @staticmethod
    def of_text(snapshot: Snapshot, run: tuple[int, ...], file: LineFile, check: Callable[[], None]) -> FileRange:
        """Read from an open file of lines; `check` is asked after each read whether it still has the text."""

        def read(buffer: memoryview, at: int) -> int:
            done = file.read_into(buffer, at)
            check()
            return done

        made = FileRange(snapshot, [run], read, snapshot.look_again())
        weakref.finalize(made, file.close)
        return made

    @staticmethod
    def of_bytes(
        snapshot: Snapshot, stop: int, data: memoryview, begin: int, sums: NDArray[np.int64] | None
    ) -> FileRange:
        """The log up to `stop`, of which there is `data`, from the boundary `begin` on; so are the checksums."""
        size, first = snapshot.block_size, begin // snapshot.block_size

        def read(buffer: memoryview, at: int) -> int:
            found = data[at - begin : at - begin + len(buffer)]
            buffer[: len(found)] = found
            return len(found)

        def look(block: int) -> tuple[bytes, LogCorrupt | None]:

            found = bytes(data[block * size - begin : (block + 1) * size - begin])
            expected, got = UNKNOWN if sums is None else int(sums[block - first]), crc32(found)
            if expected in (UNKNOWN, got):
                return found, None
            return found, LogCorrupt(
                f"block {block} is damaged: expected CRC {expected:08x}, got {got:08x}",
                path=snapshot.path, offset=block * size, block=block, expected=expected, got=got,
            )  # fmt: skip

        return FileRange(snapshot, [(0, stop)], read, look, sums, first_sum=first)

    # --- places ------------------------------------------------------------------------------------------------------

    def runs_in(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """The runs whose blocks lie in [start, stop) of this: the number of each, and begin and end of the common."""
        low = int(self.begins.searchsorted(start, side="right")) - 1
        for number in range(max(low, 0), len(self.begins) - 1):
            begin, end = max(start, int(self.begins[number])), min(stop, int(self.begins[number + 1]))
            if begin >= stop:
                return
            if begin < end:
                yield number, begin, end

    def texts(self) -> list[tuple[int, int]]:
        """Begin and end of what is read as one text. Where a record may have several lines, each gap in the log ends
        one: whether a line begins a record is told by the line before it there.
        """
        if not (isinstance(self.framing, LineFraming) and self.framing.joins):
            return [(0, self._end)]
        gaps = self.begins[1:-1][np.diff(self.shifts) != 0].tolist()
        return list(pairwise([0, *gaps, self._end]))

    def offset_in_log(self, offset: int) -> int:
        """Where a byte of this lies in the log."""
        return offset + int(self.shifts[max(int(self.begins.searchsorted(offset, side="right")) - 1, 0)])

    def offsets_here(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where those of these (ascending) bytes of the log that are in here lie."""
        firsts = self.begins[:-1] + self.shifts
        run = np.maximum(firsts.searchsorted(offsets, side="right") - 1, 0)
        found = offsets - self.shifts[run]
        here: NDArray[np.int64] = found[(found >= self.begins[run]) & (found < self.begins[run + 1])]
        return here[here < self._end]

    # --- LogSource ---------------------------------------------------------------------------------------------------

    @property
    def path(self) -> Location:
        """That of the log."""
        return location_of(self._snapshot.path)

    @property
    def codec(self) -> Codec:
        """That of the log."""
        return self._snapshot.codec

    @property
    def block_size(self) -> int:
        """That of the log, in bytes."""
        return self._snapshot.block_size

    @property
    def framing(self) -> Framing:
        """That of the log."""
        form = self._snapshot.form
        return super().framing if form is None else self._framing_of_lines(form)

    def _framing_of_lines(self, form: LineForm) -> LineFraming:
        stamp = self._snapshot.stamp
        return LineFraming(form, int(self.shifts[0]), changed=0 if stamp is None else stamp.mtime)

    @property
    def durable_end(self) -> int:
        """How many bytes it has."""
        return self._end

    def read_blocks(self, start: int, stop: int, buffer: memoryview | NDArray[np.uint8]) -> int:
        """See LogSource. Raises CopyDiffers where the file is shorter than it was; OSError."""
        view = buffer if isinstance(buffer, memoryview) else buffer.data
        stop = min(stop, self._end)
        for number, begin, end in self.runs_in(start, stop):
            at = begin + int(self.shifts[number])
            got = self._read(view[begin - start : end - start], at)
            if got < end - begin:
                raise CopyDiffers(
                    f"it ends at byte {at + got:,} here, where {at + end - begin:,} bytes were read before: it was "
                    f"truncated, or this is an old copy",
                    path=self._snapshot.path,
                )
        return max(stop - start, 0)

    def checksums(self, first: int, count: int) -> NDArray[np.int64]:
        """See LogSource."""
        out = np.full(count, UNKNOWN, np.int64)
        if self._sums is not None:
            low = first - self._first_sum
            known = self._sums[max(0, low) : max(0, low + count)]
            out[max(0, -low) : max(0, -low) + len(known)] = known
        return out

    def get_many_raw(self, offsets: Sequence[int] | NDArray[np.int64]) -> list[bytes | None]:
        """See LogSource."""
        framing = self.framing
        if not isinstance(framing, LineFraming):
            return super().get_many_raw(offsets)

        def read(size: int, begin: int) -> bytes:
            buffer = memoryview(bytearray(max(0, min(size, self._end - begin))))
            return bytes(buffer[: self.read_blocks(begin, begin + len(buffer), buffer)])

        return records_of(read, self._end, offsets, framing, self.codec)

    def check(self) -> None:
        """Whether what was read of lines is what the driver saw. Raises LogChanged, OSError."""
        self._check()

    def look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        """As second_look; what is wrong tells its place in the log."""
        if self._snapshot.form is not None:
            return super().second_look(block)
        return self._look(self.offset_in_log(block * self.block_size) // self.block_size)

    def second_look(self, block: int) -> tuple[bytes, LogCorrupt | None]:
        """See LogSource."""
        data, fault = self.look(block)
        if fault is not None and self._renamed:
            offset = block * self.block_size
            fault = LogCorrupt(str(fault), offset=offset, block=block, expected=fault.expected, got=fault.got)
        return data, fault

    def deletions(self, after: int = 0) -> tuple[int, NDArray[np.int64]]:
        """See LogSource."""
        return len(self._deleted), self._deleted[after:]
