"""One log that is followed: the text of a file of lines, or a log of jitdb's.

Both read portion by portion, say when nothing more is there (`is_idle`), and where they are in a cursor (`entry`).
"""

from __future__ import annotations

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from jitdb.engine.cursor import MANY, Cursor, LogPlace, parse_cursor
from jitdb.errors import LogError, LogSuperseded, QueryCancelled, QueryError
from jitdb.log.io.filenames import COMMIT, sidecar_path
from jitdb.log.lines.files.rotated_names import family, is_packed
from jitdb.log.lines.files.stamp import NOTHING_SEEN, SeenText, Stamp, are_settled, stamp_at
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.question import Live, Question

if TYPE_CHECKING:
    from jitdb.engine.reading.feed import Feed, Portion
    from jitdb.log.lines.files.file import LineFile
    from jitdb.log.lines.windows import LineOpener, LineWindow
    from jitdb.log.source import LogSource

WINDOW: Final = 1 << 26  # bytes of a file that are indexed at a time, in memory

Key: TypeAlias = tuple[int, ...]  # device and inode of a file
NOWHERE: Final = (0, 0)  # of a text that is lost


class Lost(Exception):
    """The file was truncated, replaced or removed: what was read of it is in another file, or nowhere."""


class Moved(Lost):
    """It is not where it was: a look at the files tells where it is now, by its inode."""


class Askable(Protocol):
    """What is needed of a JITDB."""

    log: LogSource

    def refresh(self) -> bool: ...

    def feed_here(self, question: Question) -> Feed: ...

    def explained_soon(self, question: Question) -> Any: ...

    def over(self, log: LogSource) -> Askable: ...


class Files(NamedTuple):
    """Which files are followed, and how they are asked.

    paths:     their paths now; those that were named and are not there are left out
    named:     those that the user named himself
    lines:     how files of lines are opened; None where all logs are jitdb's
    over:      asks a part of a file, with indexes in memory
    shared:    asks the log at a path, with its indexes
    operation: what is left of the question for the log at a path
    finish:    what is made of a record, or offset, of the log at a path
    most:      how many files may be open
    head:      of cursors (engine/cursor.py)
    may_tell:  whether nobody has warned yet that the file at a path is passed over; asked by who does so
    """

    paths: Callable[[], list[str]]
    named: frozenset[str]
    lines: LineOpener | None
    over: Callable[[LogSource], Askable]
    shared: Callable[[str], AbstractContextManager[Askable]]
    operation: Callable[[str], Operation]
    finish: Callable[[Any, str], Any]
    most: int
    head: str = MANY
    may_tell: Callable[[str], bool] = lambda path: True


class Followed(ABC):
    """path: where it was found, which its records are labelled with; place: where it is now; key: of its file"""

    def __init__(self, path: str, key: Key) -> None:
        self.path = self.place = path
        self.key = key
        self.is_idle = False  # nothing more was in it when it was last read
        self.holds_back = False  # whether its last record is not given yet, as more lines of it may come
        self.after: Followed | None = None  # the one to be read before it
        self.used = 0.0  # when something came
        self.removed: float | None = None  # when its file was seen to have no name any more

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether its file is."""

    @abstractmethod
    def read(self) -> tuple[list[Any], list[int] | list[Cursor]] | None:
        """The next records and the places behind them; None where there is none. Raises Lost, and as Feed.read."""

    @abstractmethod
    def entry(self, place: Any = None) -> str:
        """Where it is, or this place in it, as JSON; empty where nothing was read."""

    @abstractmethod
    def look(self) -> tuple[Stamp | None, ...]:
        """At its files, from any thread."""

    def is_removed(self) -> bool:
        """Whether its file is open, and has no name any more."""
        return False

    @abstractmethod
    def interrupt(self) -> None:
        """Let another thread that reads it stop soon, with QueryCancelled."""

    @abstractmethod
    def close(self) -> None:
        """Close its file; the place is kept."""


class IndexedText:
    """A text up to where its indexes reach, which answer for it."""

    base, is_full, holds_back = 0, True, False

    def __init__(self, log: LogSource, held: ExitStack) -> None:
        self._log, self._held = log, held
        self.durable_end = log.durable_end

    @property
    def identity(self) -> bytes:
        return self._log.identity

    def refresh(self) -> None:
        """What comes is read behind it."""

    def begins_record(self) -> bool:
        """Yes: it begins with the text."""
        return True

    def close(self) -> None:
        self._held.close()


class FollowedText(Followed):
    """The text of a file of lines.

    stop: the byte up to which it was read
    seen: what tells the text, up to there or a place before
    looked: the same when all files were last looked at: a copy that was begun since then has as much
    """

    def __init__(self, files: Files, question: Question, path: str, key: Key, stop: int = 0) -> None:
        super().__init__(path, key)
        self._files, self._question = files, question
        self.stop = stop
        self.seen = self.looked = NOTHING_SEEN
        self._file: LineFile | None = None
        self._stamp: Stamp | None = None  # of the file when all of it was read
        self._window: tuple[LineWindow | IndexedText, Feed] | None = None
        self._is_indexed = not stop  # whether its indexes may answer for what is there at the beginning
        self._entry: tuple[tuple[Any, ...], str] = ((), "")

    @property
    def is_open(self) -> bool:
        return self._file is not None

    # --- the file --------------------------------------------------------------------------------------------------

    def take(self, file: LineFile) -> None:
        """The text is in this file, which is open."""
        self.close()
        self._file, self._stamp, self.is_idle = file, None, False
        self.seen = SeenText.of(file.read_written, self.stop or 1) or self.seen  # of an unread one its first line

    def file(self) -> LineFile:
        """Its file, opened where it is not. Raises Moved, Lost."""
        assert self._files.lines is not None
        if self._file is None:
            stamp = stamp_at(Path(self.place))
            if stamp is None or stamp[:2] != self.key:
                raise Moved
            try:
                file = self._files.lines.open(self.place)
            except (LogError, OSError) as error:
                raise Lost from error
            if file.stamp()[:2] != self.key:
                file.close()
                raise Moved
            self._file = file
        return self._file

    def is_whole(self) -> bool:
        """Whether the file still has all that was read. Raises Lost where it cannot be read."""
        file = self.file()
        try:
            size = file.written_size(file.stamp())
            return size >= self.stop and (not self.seen.at or self.seen.fits(file.read))
        except (LogError, OSError) as error:
            raise Lost from error

    def is_removed(self) -> bool:
        return self._file is not None and self._file.is_removed()

    def look(self) -> tuple[Stamp | None, ...]:
        file = self._file
        try:
            return (stamp_at(Path(self.place)) if file is None else file.stamp(),)
        except OSError:  # it was closed just now
            return (None,)

    def rest(self) -> None:
        """Free what is in memory."""
        self._end_window()

    def interrupt(self) -> None:
        if (window := self._window) is not None:
            window[1].close()

    def close(self) -> None:
        self._end_window()
        if self._file is not None:
            self._file.close()
        self._file = None

    # --- reading ---------------------------------------------------------------------------------------------------

    def read(self) -> tuple[list[Any], list[int]] | None:
        if self._file is None and self._stamp is not None and stamp_at(Path(self.place)) == self._stamp:
            self.is_idle = True
            return None
        file = self.file()
        stamp = file.stamp()
        if stamp == self._stamp:
            self.is_idle = True
            return None
        if file.compression and self._stamp is not None:  # what is known of its text is of the file as it was
            self.close()
            file = self.file()
        if not self.is_whole():
            raise Lost
        found = self._read(file)
        # Asked before the next look, which may let the record go that this read did not get.
        held_back = self._window is not None and self._window[0].holds_back
        stop = self.stop if found is None else found[1][-1]
        seen = SeenText.of(file.read_written, stop or 1)
        if self._window is not None:
            window, feed = self._window
            window.refresh()
            if window.identity != feed.identity or not self.is_whole():
                raise Lost  # it was truncated while it was read: these lines may be another text's
        self.holds_back = held_back or (self._window is not None and self._window[0].holds_back)
        self.stop, self.seen = stop, seen or self.seen
        if found is not None and not self.looked.at:  # a copy has the first line at least
            self.looked = SeenText.of(file.read_written, 1) or self.looked
        self.is_idle = found is None and not self.holds_back
        if self.is_idle:
            self._stamp = stamp
            if file.compression:  # which seldom grows
                self.close()
        return found

    def _read(self, file: LineFile) -> tuple[list[Any], list[int]] | None:
        """The same, of a file that has what was read."""
        most = WINDOW
        while True:
            if self._window is None:
                self._window = self._opened(file, most)
            window, feed = self._window
            try:
                window.refresh()
                if not window.begins_record():
                    self._end_window()
                    continue
                portion = feed.read()
            except (LogSuperseded, QueryError) as error:
                if window.identity == feed.identity:
                    raise
                raise Lost from error
            if portion is not None:
                return self._placed(window, portion)
            self.stop = max(self.stop, min(window.base + feed.place.offset, file.written_size(file.stamp())))
            if not window.is_full:
                return None
            most = most if window.durable_end else 2 * most  # else a line is longer
            self._end_window()

    def _placed(self, window: LineWindow | IndexedText, portion: Portion) -> tuple[list[Any], list[int]]:
        base, data = window.base, portion.data
        places = [base + place.offset for place in portion.places]
        return ([base + offset for offset in data] if self._question.as_offsets else data), places

    def _opened(self, file: LineFile, most: int) -> tuple[LineWindow | IndexedText, Feed]:
        """The window behind what was read."""
        assert self._files.lines is not None
        is_indexed, self._is_indexed = self._is_indexed and file.text_size(file.stamp()) > WINDOW, False
        indexed = self._indexed() if is_indexed else None
        if indexed is not None:
            return indexed
        window = self._files.lines.window(file, self.place, self.stop, most)
        db = self._files.over(window)
        operation = self._files.operation(self.path)
        return window, db.feed_here(self._question.changed(db=db, operation=operation, live=Live(old=True)))

    def _indexed(self) -> tuple[LineWindow | IndexedText, Feed] | None:
        """All that is there already, if the file's own indexes can answer for it."""
        from jitdb.log.lines.line_log import LineLog

        with suppress(LogError, OSError), ExitStack() as held:
            db = held.enter_context(self._files.shared(self.place))
            db.refresh()
            operation = self._files.operation(self.path)
            question = self._question.changed(db=db, operation=operation, live=Live(old=True), sort_by="arrival")
            if isinstance(db.log, LineLog) and db.log.known.stamp[:2] == self.key:
                plan = db.explained_soon(question)
                if plan is not None and plan.scan_bytes <= WINDOW:
                    return IndexedText(db.log, held.pop_all()), db.feed_here(question)
        return None

    def _end_window(self) -> None:
        if self._window is not None:
            window, feed = self._window
            feed.close()
            window.close()
        self._window = None

    # --- its place -------------------------------------------------------------------------------------------------

    def entry(self, place: int | None = None) -> str:
        stop = self.stop if place is None else place
        if not stop:
            return ""
        known = (stop, self.looked.at, self.place, self.key)
        if self._entry[0] != known:
            seen = self._seen_at(stop)
            texts = [seen, self.looked] if 0 < self.looked.at < seen.at else [seen]
            told = [part for each in texts for part in (each.at, each.head.hex(), each.tail.hex())]
            entry = json.dumps([self.place, *self.key, stop, *told], separators=(",", ":"))
            self._entry = (known, entry if seen.at else "")
        return self._entry[1]

    def _seen_at(self, stop: int) -> SeenText:
        """What tells the text up to the end of the line that was read last, which began before this byte; less where
        the file does not have that any more.
        """
        if self.seen.at == stop:
            return self.seen
        if self._file is not None:
            with suppress(LogError, OSError):
                end = min(self._file.next_line(stop), self._file.written_size(self._file.stamp()))
                seen = SeenText.of(self._file.read_written, end)
                if seen is not None and self.seen.fits(self._file.read):
                    return seen
        return self.looked if self.looked.at else self.seen


class FollowedLog(Followed):
    """A log of jitdb's, which is known by its identity."""

    def __init__(self, files: Files, question: Question, path: str, key: Key, live: Live) -> None:
        super().__init__(path, key)
        self._files, self._question, self._live = files, question, live
        self.identity = b""
        self._held = ExitStack()
        self._open: tuple[Askable, Feed] | None = None
        self._look: tuple[Stamp | None, ...] | None = None  # at its files when nothing more was in them
        self._cursor = ""
        self._opened()

    @property
    def is_open(self) -> bool:
        return self._open is not None

    def _opened(self) -> tuple[Askable, Feed]:
        if self._open is None:
            with ExitStack() as held:
                db = held.enter_context(self._files.shared(self.place))
                db.refresh()
                operation = self._files.operation(self.path)
                feed = db.feed_here(self._question.changed(db=db, operation=operation, live=self._live))
                self._held, self._open = held.pop_all(), (db, feed)
            self.identity = db.log.identity
        return self._open

    def read(self) -> tuple[list[Any], list[Cursor]] | None:
        at, now = time.time_ns(), self.look()
        if now[0] is None or now[0][:2] != self.key:
            raise Lost
        if now == self._look and not self.is_open:
            return None
        db, feed = self._opened()
        if now != self._look:
            db.refresh()
        try:
            portion = feed.read()
        except QueryError as error:
            if feed.place.identity == db.log.identity:
                raise
            raise Lost from error
        if portion is None:
            self._look, self.is_idle = now if are_settled(now, at) else None, True
            return None
        return portion.data, portion.places

    def entry(self, place: Cursor | None = None) -> str:
        if place is None and self._open is not None:
            self._cursor = self._open[1].cursor
        return LogPlace(self.place, parse_cursor(self._cursor) if place is None else place).entry()

    def look(self) -> tuple[Stamp | None, ...]:
        """Records count once its writer has said in the sidecar that they are durable, after it wrote them."""
        path = Path(self.place)
        return stamp_at(path), stamp_at(sidecar_path(path) / COMMIT)

    def log_place(self) -> LogPlace:
        """Where it is, once it is closed."""
        return LogPlace(self.place, parse_cursor(self._cursor))

    def interrupt(self) -> None:
        if (opened := self._open) is not None:
            opened[1].close()

    def close(self) -> None:
        if self._open is not None:
            with suppress(QueryCancelled):
                self._cursor = self._open[1].cursor
            self._live = Live(after=self._cursor)
            self._open[1].close()
        self._open = None
        self._held.close()


class Copy(NamedTuple):
    """A file that holds the same as another one, or did when that was lost.

    text:  its text, as if it was read to its end
    stamp: the file, as it was when that was found
    since: when it was first seen
    start: where reading begins if it turns out to be a log of its own
    """

    of: FollowedText
    text: FollowedText
    stamp: Stamp
    since: float
    start: int


class Placed(Protocol):
    """What a text is looked for by: the file that it was in."""

    @property
    def place(self) -> str: ...

    @property
    def key(self) -> Key: ...


def beside(folder: str, texts: Sequence[Placed]) -> list[str]:
    """The files in a folder that may have these texts, by their inodes or names; the likeliest first."""
    keys, families = {text.key for text in texts}, {family(text.place) for text in texts}
    found = []
    with suppress(OSError), os.scandir(folder or ".") as entries:
        for entry in entries:
            stamp = stamp_at(Path(entry.path)) if not entry.name.startswith(".") else None
            if stamp is not None and stamp.size and (stamp[:2] in keys or family(entry.name) in families):
                found.append((stamp[:2] not in keys, is_packed(entry.name), -stamp.mtime, entry.name))
    return [os.path.join(folder, name) for *_, name in sorted(found)]


def name_of(folder: str, key: Key) -> str | None:
    """The path of the file of this device and inode in the folder; None where it is not there."""
    try:
        with os.scandir(folder or ".") as entries:
            for entry in entries:
                stamp = stamp_at(Path(entry.path)) if entry.inode() == key[1] else None
                if stamp is not None and stamp[:2] == key:
                    return os.path.join(folder, entry.name)
    except OSError:
        pass
    return None
