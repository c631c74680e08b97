"""A file of lines that somebody else writes, as a log: read where it lies, never written to.

Questions are answered from the file as it was at the last look: when it was opened, at refresh(), or just now if it is
watched. After each read the file's stamp is checked. If lines were only appended, the answer stands. If the file was
changed in any other way, what was read is thrown away (LogSuperseded), the file is looked at anew, and the question is
asked once more.
"""

from __future__ import annotations

import errno
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from jitdb.common.arguments import function
from jitdb.common.forking import fork_safe
from jitdb.display.cells import printable
from jitdb.errors import (
    InvalidArgument,
    InvalidOffset,
    LogClosed,
    LogCorrupt,
    LogError,
    LogReadOnly,
    LogSuperseded,
    LogWarning,
    NotALog,
    QueryCancelled,
    Remedy,
)
from jitdb.log.codecs import Codec, get_codec
from jitdb.log.io import osfile
from jitdb.log.lines.detection import HEAD, headed
from jitdb.log.lines.fetching import (
    FEW,
    Around,
    LineCache,
    bytes_of,
    line_start,
    records_at,
    records_of,
    text_around,
    texts_of,
)
from jitdb.log.lines.files.file import AT_ONCE, FRESH, LineFile
from jitdb.log.lines.files.opening import as_document, open_lines
from jitdb.log.lines.files.stamp import Stamp, stamp_at
from jitdb.log.lines.form import PLAIN, LineForm, is_blank
from jitdb.log.lines.formats.headers import HEADED
from jitdb.log.lines.framing import LineFraming
from jitdb.log.lines.keeping.keeper import Keeper, judged
from jitdb.log.lines.keeping.known import Known, Verdict
from jitdb.log.lines.keeping.places import Place, place_of
from jitdb.log.objects.door import Location, location_of, refuse_following_object, requests_for
from jitdb.log.objects.urls import ObjectUrl
from jitdb.log.reading.extent import Watcher
from jitdb.log.source import LogSource, Transfer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.common.paths import Path as FieldPath
    from jitdb.log.codecs.fields.located import RecordBatch, Scratch
    from jitdb.log.lines.streaming import Counted
    from jitdb.log.objects.shelf import Shelf
    from jitdb.log.source import Record, Stats

BLOCK: Final = 1 << 18  # bytes under one checksum. It is in indexes on disk: another number makes them void
_CHANGED: Final = bytes([255]) * 8  # in a token's place, until refresh() has looked what became of the file
_TRIES: Final = 3  # at an object that is replaced while it is opened
_PAUSE: Final = 0.2  # seconds within which a writer that writes a line also ends it


class _State(NamedTuple):
    """All that changes when the file does, in one value."""

    file: LineFile
    known: Known  # when it was looked at by refresh()
    latest: Stamp  # up to which the file has only grown since
    is_settled: bool  # whether a change since then shows in the stamp
    is_guessed: bool  # whether known.end is a guess, or was one when it was taken
    lines: LineCache

    @classmethod
    def of(cls, file: LineFile, known: Known) -> _State:
        return cls(file, known, known.stamp, known.stamp.is_settled(), file.is_guessed, LineCache())

    def known_now(self) -> Known:
        """What is known before another look. A guess proves nothing."""
        return self.known._replace(stamp=self.latest, end=0 if self.is_guessed else self.known.end)


class LineLog(LogSource):
    """The lines of a file as records. Thread-safe.

    codec:  "json", or one of your own that reads lines
    folder: where what is known of the file is kept, and its indexes are by default: beside it (in `.jitdb`), or in the
            user's cache where that cannot be written; "memory" keeps nothing
    form:   what is a record of a line; each has a folder of its own there
    shelf:  what its indexes are shared by; of an object in a store

    Raises NotALog, CodecError, OSError.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        codec: str | Codec = "json",
        folder: str | os.PathLike[str] | Literal["memory"] | None = None,
        form: LineForm = PLAIN,
        shelf: Shelf | None = None,
    ) -> None:
        self._path = location_of(path)
        self._codec, self.shelf = get_codec(codec), shelf
        if shelf is not None and not isinstance(self._path, ObjectUrl):
            raise InvalidArgument(
                "indexes of objects in a store are shared in a store, and this is a file",
                path=self._path,
                remedy=Remedy("name a folder as indexes", "name a folder: --indexes DIR"),
            )
        self._is_document = form.is_document
        self._keeps = not (isinstance(folder, str) and folder == "memory")
        self._given = Path(folder) if folder is not None and self._keeps else None
        self._framing = LineFraming(form)
        for left in reversed(range(_TRIES)):
            try:
                self._begin(self._opened())
                break
            except OSError as error:  # an object was replaced, or a store failed
                if error.errno != errno.ESTALE or not left:
                    raise LogError(error.strerror or str(error), path=self._path) from error

    def _keeper_of(self, stamp: Stamp) -> Keeper:
        """Of the file with this stamp."""
        tag, given = self._framing.form.tag, self._given
        place = place_of(self._path, stamp, tag) if given is None else Place(given / tag)
        if self.shelf is not None:
            self.shelf.pull(place.folder)
        return Keeper(place, self._path, tag, keeps=self._keeps)

    def _begin(self, file: LineFile) -> None:
        stamp = file.stamp()
        self._take_header(file)
        self._framing.changed, self._framing.path = stamp.mtime, self._path
        self._keeper = self._keeper_of(stamp)
        self._refreshing = fork_safe(threading.Lock())
        self._watcher = Watcher(self, looks=True)
        self._guessers = threading.local()  # `count`: contexts of guessing() that this thread is in
        self._now: _State | None = _State.of(file, self._keeper.settle(file, None, keep=False))
        self._seen = self._state()
        self._is_told = False  # of a last line that is cut off
        self._tell_cut()

    def _take_header(self, file: LineFile) -> bool:
        """Whether a table has another header than before, so that rows are other records."""
        form, base = self._framing.form, self._framing.base
        if form.format not in HEADED or base:
            return False
        there = headed(file.head(HEAD), form.format) or form._replace(pattern="")
        if there == form:
            return False
        self._framing = LineFraming(there)
        self._framing.path = self._path
        file.goes_on = self._framing.goes_on
        return True

    def _tell_cut(self) -> None:
        """Warn of a last line that is cut off. Of a file that is being written nothing is said: the rest will come."""
        state = self._alive()
        if self._is_told:
            return
        with suppress(OSError, LogError):
            end, stamp = state.known.end, state.known.stamp
            rest = state.file.rest(end)
            if state.file.unfinished is None and self._framing.is_cut(rest) and not self._is_growing(state):
                self._is_told = True
                size = state.file.written(stamp) - end
                reason = f"the last line is cut off: {size:,} bytes at offset {end:,} are no whole record"
                warnings.warn(LogWarning(reason, path=self._path), stacklevel=6)

    def _is_growing(self, state: _State) -> bool:
        """Whether the file is being written, as far as a short look can say."""
        if time.time_ns() - state.known.stamp.mtime < FRESH:
            if state.known.end:
                return True
            time.sleep(_PAUSE)  # an answer without records is explained
        return state.file.stamp() != state.known.stamp

    def _opened(self) -> LineFile:
        try:
            file = self._open()
            if self._framing.joins and 0 <= time.time_ns() - file.stamp().mtime < AT_ONCE:
                time.sleep(_PAUSE)  # the last record may be written just now
            return file
        except FileNotFoundError as error:
            raise NotALog("there is no such file", path=self._path) from error
        except OSError as error:
            raise NotALog(f"it cannot be read: {osfile.reason(error)}", path=self._path) from error

    def _open(self) -> LineFile:
        if self._is_document:
            return as_document(open_lines(self._path, folder=lambda stamp: self._keeper_of(stamp).kept_in))
        is_whole = partial(self._framing.is_whole, codec=self._codec)
        file = open_lines(self._path, is_whole, lambda stamp: self._keeper_of(stamp).kept_in)
        file.goes_on = self._framing.goes_on
        return file

    # What it is

    @property
    def path(self) -> Location:
        """The file, links resolved when it was opened."""
        return self._path

    @property
    def codec(self) -> Codec:
        return self._codec

    @property
    def sparse_time(self) -> tuple[FieldPath, str] | None:  # type: ignore[override]
        return None if (row := self._framing.form.row) is None else row.sparse_time

    @property
    def time_doubt(self) -> str:  # type: ignore[override]
        return "" if (row := self._framing.form.row) is None else row.doubt

    @property
    def framing(self) -> LineFraming:
        return self._framing

    @property
    def block_size(self) -> int:
        """Bytes under one checksum: 256 KiB. Lines cross blocks."""
        return BLOCK

    @property
    def durable_end(self) -> int:
        """Just past the newline of the last line, when the file was last looked at; of a whole record at the end of the
        file it may not be written yet.

        To know it, a compressed file is decompressed once, which later processes need not do. Raises LogError, OSError.
        """
        return self._settled().known.end

    @property
    def expected_end(self) -> int:
        """The same, but it may be a guess, of a compressed file that nobody has decompressed yet."""
        return self._alive().known.end

    def guessing(self) -> AbstractContextManager[object]:
        return self._guessing() if self._alive().is_guessed else super().guessing()

    @contextmanager
    def _guessing(self) -> Iterator[None]:
        guess, before = self.expected_end, int(getattr(self._guessers, "count", 0))
        self._guessers.count = before + 1
        error: Exception | None = None
        try:
            yield
        except (LogSuperseded, LogClosed, QueryCancelled):
            raise
        except Exception as failed:
            error = failed
        finally:
            self._guessers.count = before
        if self.durable_end != guess:
            raise self.superseded() from error
        if error is not None:
            raise error

    @property
    def since(self) -> int:
        """Offset of the last line; -1 where there is none."""
        state = self._settled()
        if self._is_document and state.known.end:
            with self._reading():
                line = state.lines.line_at(state.file.read, state.known.end, state.known.end - 1, self._framing)
            return int(line.starts[-1])
        return self._framing.last_record(self, self.durable_end).offset if self.durable_end else -1

    @property
    def identity(self) -> bytes:
        """16 bytes that stay as long as the file was only appended to, or may have been edited."""
        return self._alive().known.identity

    @property
    def generation(self) -> int:
        """0: nobody compacts such a file."""
        return 0

    @property
    def identity_is_stored(self) -> bool:
        self._keep()
        return self._keeper.is_kept

    @property
    def sidecar(self) -> Path:
        """The folder for its indexes, and what else is known of it: another one once another file has its name."""
        return self._keeper.folder

    @property
    def is_rotated(self) -> bool:
        return True

    @property
    def compression(self) -> str:
        """How the file is compressed: "gzip" or "zstd"; empty where it is not. Offsets are those of its text."""
        return self._alive().file.compression

    @property
    def known(self) -> Known:
        """What is known of the file, as it was when it was last looked at."""
        return self._settled().known

    @property
    def read_only(self) -> bool:
        """True: somebody else writes it."""
        return True

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._now is None

    def _alive(self) -> _State:
        if self._now is None:
            raise LogClosed("the log was closed", path=self._path)
        return self._now

    def _settled(self) -> _State:
        """The same with the end of its lines known for certain, unless this thread is in guessing()."""
        state = self._alive()
        if not state.is_guessed or getattr(self._guessers, "count", False):
            return state
        with self._refreshing:
            state = self._alive()
            if state.is_guessed:
                state.file.settle()
                self._now = state = _State.of(
                    state.file, self._keeper.settle(state.file, state.known_now(), keep=self._keeper.is_kept)
                )
        return state

    def transfer(self, start: int, stop: int) -> Transfer:
        """See LogSource. Of a compressed file that nobody has read yet, all of it."""
        state = self._alive()
        stored, text = state.known.stamp.size, max(state.known.end, stop, 1)
        size = stored * (stop - start) // text if self.compression else stop - start
        return Transfer(size, 1 + requests_for(size) if state.file.is_object else 0)

    # Bytes

    def read_blocks(self, start: int, stop: int, buffer: memoryview | npt.NDArray[np.uint8]) -> int:
        """See ScanSource; from any byte on. Raises LogSuperseded where the file was changed by more than growing."""
        state = self._alive() if stop <= self.expected_end else self._settled()
        size = max(0, min(stop, state.known.end) - start)
        if not size:
            return 0
        view = (buffer if isinstance(buffer, memoryview) else buffer.data).cast("B")
        with self._reading():
            there = state.file.read_into(view[:size], start)
        if there < size:
            raise self.superseded()
        self._check()
        return size

    def second_look(self, block: int) -> tuple[bytes, None]:
        """The bytes of a block, also behind the end that is known. Nobody knows what they should be."""
        with self._reading():
            return self._alive().file.read(BLOCK, block * BLOCK), None

    def get_many_raw(self, offsets: Sequence[int] | npt.NDArray[np.int64]) -> list[bytes | None]:
        """The lines that begin at these offsets, without their newlines; None for one that is no record.

        Raises InvalidOffset where no line begins, LogSuperseded.
        """
        state = self._settled()
        with self._reading():
            state.file.expect(offsets)
            found = records_of(state.file.read, state.known.end, offsets, self._framing, self._codec, state.lines)
        self._check()
        return found

    def get_many_text(self, offsets: Sequence[int] | npt.NDArray[np.int64]) -> list[bytes | None]:
        """See LogSource.get_many_text. Raises InvalidOffset, LogSuperseded."""
        state = self._settled()
        with self._reading():
            state.file.expect(offsets)
            found = texts_of(state.file.read, state.known.end, offsets, self._framing, state.lines)
            if self._framing.form.is_document:  # whose newlines were read as blanks
                there = zip(found, offsets, strict=True)
                found = [state.file.read_written(len(text or b""), int(offset)) for text, offset in there]
        self._check()
        return found

    def bytes_to_read(self, offsets: npt.NDArray[np.int64]) -> int:
        """See LogSource.bytes_to_read: lines that lie far from each other are read alone."""
        return bytes_of(offsets)

    def read_batch(self, offsets: npt.NDArray[np.int64], scratch: Scratch) -> RecordBatch:
        """See LogSource.read_batch. Of many it is not looked at whether they are valid. Raises LogSuperseded."""
        state = self._settled()
        if len(offsets) <= FEW or not self._framing.form.is_plain:
            return super().read_batch(offsets, scratch)
        from jitdb.log.lines.streaming import lines_at

        with self._reading():
            state.file.expect(offsets)
            found = lines_at(state.file.read_into, state.known.end, offsets, self._framing, scratch)
        if found is None:
            return super().read_batch(offsets, scratch)
        self._check()
        return found

    def unreadable(self, offsets: Sequence[int]) -> list[int]:
        state = self._settled()
        wrong = []
        with self._reading():
            for number, offset in enumerate(offsets):
                found = list(records_at(state.file.read, state.known.end, [offset], self._framing, state.lines))
                (line,) = self._framing.rendered(found)
                is_none = self._framing.has_refused(found[0]) if is_blank(line) else not self._codec.is_valid(line)
                if is_none:
                    wrong.append(number)
        self._check()
        return wrong

    def texts_at(self, offsets: Sequence[int]) -> list[int]:
        if not self._framing.form.allow_prefix:
            return []
        state = self._settled()
        with self._reading():
            around = [self._framing.line_around(state.file.read, state.known.end, offset)[1] for offset in offsets]
        self._check()
        return [number for number, line in enumerate(around) if self._framing.is_only_text(line)]

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise what goes wrong as an error of this log."""
        try:
            yield
        except LogCorrupt:
            self._check()  # it may have been changed just now
            raise
        except LookupError as error:
            offset = int(error.args[0])
            raise InvalidOffset(f"no record begins at offset {offset:,}", path=self._path, offset=offset) from None
        except EOFError:
            raise self.superseded() from None
        except OSError as error:
            if error.errno == errno.ESTALE:
                raise self.superseded() from error
            raise LogError(error.strerror or str(error), path=self._path) from error

    def next_line(self, offset: int) -> int:
        """Where the first line begins that does not begin before this byte, and belongs to no record before it; or
        the last one ends.
        """
        return min(self._alive().file.next_line(offset), self.durable_end)

    def line_start(self, offset: int) -> int:
        """Where the line begins in which this byte is. Raises LogSuperseded."""
        state = self._settled()
        with self._reading():
            return line_start(state.file.read, state.known.end, offset, self._framing)

    # Whether it is still what it was

    def _check(self) -> None:
        """Raise LogSuperseded where the file was changed, other than by more lines, since it was looked at."""
        if not self._is_as_known():
            raise self.superseded()

    def _is_as_known(self) -> bool:
        state = self._alive()
        if not state.file.agrees(state.known.end):
            return False
        stamp = state.file.stamp()
        if stamp == state.latest and state.is_settled:
            return True
        latest = state.known._replace(stamp=state.latest)
        verdict = latest.judge(state.file, stamp, is_settled=state.is_settled)
        if verdict <= Verdict.GROWN and self._refreshing.acquire(blocking=False):  # else refresh() knows better
            try:
                if self._now is state:
                    self._now = state._replace(latest=stamp, is_settled=stamp.is_settled())
            finally:
                self._refreshing.release()
        return verdict <= Verdict.GROWN

    def superseded(self) -> LogSuperseded:
        """The error for what was read of a file that has become, or turned out to be, another."""
        return LogSuperseded(
            "it was changed, other than by more lines, since it was looked at", path=self._path, remedy=Remedy.refresh()
        )

    def foreign_change_token(self) -> bytes:
        state = self._alive()
        return state.known.token if self._is_as_known() else _CHANGED

    def settled_stamp(self) -> Stamp | None:
        state = self._alive()
        is_latest = state.is_settled and state.latest == state.known.stamp and state.file.agrees(state.known.end)
        return state.latest if is_latest else None

    def deletions(self, after: int = 0) -> tuple[int, npt.NDArray[np.int64]]:
        """No deletions: nobody deletes from such a file. Raises LogSuperseded."""
        self._check()
        return super().deletions(after)

    def deletion_position(self) -> int:
        """0. Raises LogSuperseded."""
        self._check()
        return 0

    def _keep(self) -> None:
        """Write down what is known of the file, for the next process."""
        if not self._keeper.is_kept:
            with self._refreshing:
                state = self._alive()
                self._now = _State.of(state.file, self._keeper.settle(state.file, state.known, keep=True))

    # What comes

    def refresh(self) -> bool:
        """Look at the file. True where it has more lines, was changed, or another file has its name."""
        with self._refreshing:
            state = self._alive()
            there, file = self._there(), state.file
            if there is None and file.is_object:
                raise LogError("the object is gone", path=self._path)
            if there is not None and not there.is_of(state.known.stamp):
                with suppress(FileNotFoundError):  # it is gone again
                    file = self._open()
                    self._take_header(file)
                    self._keeper = self._keeper_of(file.stamp())
                if not state.file.is_object:  # what came to the old one since must be in a copy of it
                    state = state._replace(known=judged(state.file, state.known))
            elif self._is_as_seen(state, there or file.stamp()):
                return False
            elif self._take_header(file):
                self._keeper = self._keeper_of(file.stamp())
            self._now = _State.of(file, self._keeper.settle(file, state.known_now(), keep=False))
            self._framing.changed = self._now.known.stamp.mtime
            seen, self._seen = self._seen, self._state()
        if seen != self._seen:
            self._watcher.tell()
        return seen != self._seen

    def _is_as_seen(self, state: _State, there: Stamp) -> bool:
        is_same = there == state.known.stamp and state.is_settled and state.file.agrees(state.known.end)
        return is_same and self._state() == self._seen

    def _there(self) -> Stamp | None:
        """The file of this name."""
        return stamp_at(self._path)

    def _state(self) -> tuple[object, ...]:
        known = self._alive().known
        return known.identity, known.token, known.end

    def check_growing(self) -> None:
        refuse_following_object(self._path)

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        self._alive()
        function("watch() takes a function without arguments", callback, 0, InvalidArgument)
        return self._watcher.watch(callback)

    def close(self) -> None:
        """End reading. Safe to call twice."""
        if self._now is not None and self.compression:  # what was decompressed since tells where the lines end
            self._tell_cut()
        state, self._now = self._now, None
        if state is not None:
            state.file.close()
            self._watcher.tell()

    def __repr__(self) -> str:
        return f"<LineLog {printable(str(self._path))} ({self._codec.name})>"

    def __enter__(self) -> LineLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # All of it

    def stream(self, *, raw: bool = False, lt: int | None = None, lte: int | None = None) -> Iterator[Record]:
        """The records in the order of the file, those that begin before `lt`, or at `lte` or before it."""
        from jitdb.log.lines.streaming import stream

        stop = self.durable_end if lt is None else min(lt, self.durable_end)
        return stream(self, stop if lte is None else min(lte + 1, stop), raw)

    def stats(self) -> Stats:
        """How many lines are records. Reads the whole file."""
        return self.counted().stats

    def counted(self) -> Counted:
        """What the lines are. Reads the whole file, from a guess of its end on, and anew where that was wrong."""
        from jitdb.log.lines.streaming import counted

        with suppress(LogSuperseded), self.guessing():
            return counted(self)
        return counted(self)

    def malformed(self) -> Iterator[int]:
        """The numbers, from 1 on, of the lines that the codec cannot read. Reads the whole file."""
        return iter(self.counted().malformed)

    def text_around(self, offset: int) -> Around:
        """The text before a record in its line, and that of the lines behind it up to the next record.

        Raises InvalidOffset where no record begins, LogSuperseded.
        """
        state = self._settled()
        with self._reading():
            found = text_around(state.file.read, state.known.end, offset, self._framing)
        self._check()
        return found

    def doubt(self) -> None:
        with self._refreshing:
            state = self._alive()
            self._now = _State.of(state.file, self._keeper.settle(state.file, state.known, keep=False, doubt=True))

    def refusal(self, done: str) -> LogReadOnly:
        return LogReadOnly(
            f"it is a JSON Lines file that somebody else writes, which is only read: it cannot be {done}",
            path=self._path,
            remedy=Remedy.importing(self._path),
        )
