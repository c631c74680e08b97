"""Many files as a stream: what is new in them, how far the next batch goes, and who reads what of it. Knows nothing of
Spark.

Where each text is now, whatever rotates its file, is found out as by all that follow files (engine/following/texts.py).
Files of jitdb's among them are told by their identities, and each is followed as one log is (stream.py). A place is
what places.py keeps: of each text how far it was read. What a batch has of a text follows from two places alone, so a
batch that is read again has the same records, wherever its texts lie by then.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.engine.cursor import MANY, Cursor, cursor_of, is_cursor_of_files
from jitdb.engine.following.followed import Askable, Files, FollowedText, Lost, Moved
from jitdb.engine.following.texts import Texts
from jitdb.errors import LogError, LogWarning, NotALog, QueryError
from jitdb.log.codecs import get_codec
from jitdb.log.io.filenames import META, sidecar_path
from jitdb.log.lines.files.file import NEWLINE
from jitdb.log.lines.files.rotated_names import family
from jitdb.log.lines.files.stamp import SeenText, Stamp, stamp_at
from jitdb.log.lines.form import LineForm, line_form
from jitdb.log.lines.windows import LineOpener, LineWindow
from jitdb.log.objects.door import refuse_following_object
from jitdb.log.objects.urls import is_url
from jitdb.logset.member import Member, fields_of, find_members
from jitdb.logset.opening import folder_of
from jitdb.operators.nodes.operation import EVERYTHING, NOTHING
from jitdb.operators.question import Live, Question
from jitdb.operators.text.json import to_json
from jitdb.spark_ext.counting import PIECE, records_between, walked
from jitdb.spark_ext.errors import LogChanged
from jitdb.spark_ext.file_range import Run, Snapshot, refuse_batches
from jitdb.spark_ext.reading.many import is_several, packed
from jitdb.spark_ext.reading.opening import open_log
from jitdb.spark_ext.reading.partitions import Partition
from jitdb.spark_ext.reading.planning import blocks_of_task
from jitdb.spark_ext.streaming.places import READ, UNREAD, FilesPlace, LogPart, Mark, TextPart
from jitdb.spark_ext.streaming.stream import Limit, LogStream
from jitdb.spark_ext.streaming.text_share import TextPartition, located

if TYPE_CHECKING:
    from jitdb.log.lines.files.file import LineFile
    from jitdb.log.source import LogSource
    from jitdb.spark_ext.options import ReadOptions

_OPEN: Final = 64  # files that stay open, at most
_NEWLINE: Final = NEWLINE[-1]
_ALL: Final = 1 << 62  # bytes: no limit
_GONE: Final = 256  # logs of jitdb's that are remembered after their files went
_PATIENCE: Final = 10.0  # seconds for which a text whose name another one has may turn up again
_PAUSE: Final = 0.1  # seconds between two looks for it, where a stream begins
_AT_START: Final = 2.0  # seconds for which these go on


def is_of_lines(path: str) -> bool:
    """Whether a file has lines that somebody else writes; one of jitdb's has its sidecar."""
    return not (sidecar_path(Path(path)) / META).exists()


class FilesStream:
    """The files that a path names, followed by the driver of a stream."""

    def __init__(self, options: ReadOptions) -> None:
        """Raises QueryError, LogError."""
        refuse_following_object(options.path)
        self._options = options
        form = line_form(options.allow_prefix, None, options.log_format)
        self._lines = LineOpener(get_codec(options.codec or "json"), form, options.codec is not None)
        where = EVERYTHING if options.where is None else options.where
        self._narrowed = cache(lambda path: where.narrowed(fields_of(path)))
        self._texts: Texts | None = None
        self._marks: dict[FollowedText, Mark] = {}
        self._idle: dict[FollowedText, Stamp] = {}  # files in which nothing more was, as they were then
        self._forms: dict[int, LineForm] = {}  # what the lines of texts are, by IDs
        self._lost_since: dict[FollowedText, float] = {}
        self._logs: dict[bytes, LogPart] = {}
        self._seen_logs: dict[str, Stamp] = {}  # files of logs in which nothing more was
        self._next_id = 0
        self._turn: FollowedText | None = None  # whose turn it is to be read
        self._stops = False
        self._until: dict[FollowedText, int] | None = None  # where the texts that are read end, once that is decided
        self._until_logs: dict[str, Cursor] = {}
        self._place: FilesPlace | None = None  # where all this is
        self._first: FilesPlace | None = None

    def close(self) -> None:
        """Close all files."""
        if self._texts is not None:
            self._texts.close()
        self._texts = self._place = None

    # --- places ------------------------------------------------------------------------------------------------------

    @staticmethod
    def as_offset(place: FilesPlace) -> dict[str, Any]:
        """What Spark keeps of a place."""
        return place.as_offset()

    @staticmethod
    def of_offset(form: dict[str, Any]) -> FilesPlace:
        """The place that Spark kept. Raises QueryError."""
        return FilesPlace.of_offset(form)

    def first(self) -> FilesPlace:
        """Where a new stream begins: Spark asks again while it runs. Raises QueryError, LogError."""
        if self._first is not None:
            return self._first
        where = self._options.starting_offset
        if is_cursor_of_files(where):
            self._begin(Live(after=where), FilesPlace())
        elif where.lower() in ("earliest", "latest"):
            self._begin(Live(old=where.lower() == "earliest"), FilesPlace())
        else:
            raise QueryError(
                f"the option startingOffset of a stream of files is 'earliest', 'latest' or a cursor of many logs, not "
                f"{where[:80]!r}"
            )
        if where.lower() == "latest":
            for path in self._log_paths():
                with closing(self._stream_of(path, "latest")) as stream:
                    end = stream.first()
                self._logs[end.identity] = LogPart(path, end, end)
        self._place = self._first = replace(self._told(), is_first=True)
        return self._first

    def latest(self) -> FilesPlace:
        """How many files there are, for those who watch the query: ends are not looked for."""
        return FilesPlace() if self._place is None else self._place

    def stop_here(self) -> None:
        """Read what there is when the next batch is planned, and no more."""
        self._until, self._stops = None, True

    def next(self, start: FilesPlace, limit: Limit) -> FilesPlace:
        """Where the batch that begins at `start` ends; `start` itself when there is nothing to read.

        Raises LogChanged, LogError, OSError.
        """
        texts = self._go_to(start)
        texts.look()
        self._miss(texts)
        if self._stops and self._until is None:
            self._until = {text: self._end_of(text) for text in self._there(texts)}
            self._until_logs = {path: self._end_of_log(path) for path in self._log_paths()}
        room = _Room(*limit)
        self._take_texts(self._in_turn(texts), room)
        if any(mark.done == UNREAD for mark in self._marks.values()):
            texts.look()
            self._take_texts(self._in_turn(texts), room)
        is_moved = False
        for path in self._log_paths():
            is_moved |= not room.is_full and self._take_log(path, room)
        if room.is_empty and not is_moved:
            return start
        self._place = self._told()
        return self._place

    def _go_to(self, place: FilesPlace) -> Texts:
        """Have all files at this place."""
        if self._texts is None or self._place != place:
            self.close()
            cursor = cursor_of(MANY, [each.entry for each in place.texts])
            self._begin(Live(after=cursor), place)
            self._place = place
            assert self._texts is not None
            self._await_rotation(self._texts)
        assert self._texts is not None
        return self._texts

    def _begin(self, live: Live, place: FilesPlace) -> None:
        find_members(self._options.path)  # what is named is there
        path = self._options.path
        files = Files(
            self._line_paths, frozenset([path] if os.path.isfile(path) else ()), self._lines, _nothing, _no_log,
            self._narrowed, lambda record, _: record, _OPEN,
        )  # fmt: skip
        question = Question(db=None, operation=EVERYTHING, live=live)  # nothing is asked here
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "another file has its name", LogWarning)  # see _miss
            self._texts = Texts(question, files)
        self._next_id, self._logs, self._seen_logs, self._idle = place.next_id, dict(place.logs), {}, {}
        known = {(each.place.stop, each.place.seen, each.place.path): each.mark for each in place.texts}
        self._marks = {}
        for text in self._texts.texts:
            found = known.get((text.stop, text.seen, text.path))
            if found is not None:
                self._marks[text] = found

    def _told(self) -> FilesPlace:
        """Where all files are."""
        assert self._texts is not None
        texts = list(self._texts.texts)
        self._marks = {text: self._mark(text) for text in texts if text.stop}
        for text in self._there(self._texts):
            if text in self._marks:
                self._marks[text] = self._marks[text]._replace(done=READ if text.is_removed() else 0)
        entries = {text: entry for text in self._marks if (entry := text.entry())}
        parts = [TextPart(self._marks[text], tuple(json.loads(entry))) for text, entry in entries.items()]
        self._idle = {text: stamp for text, stamp in self._idle.items() if text in self._marks}
        gone = [identity for identity, part in self._logs.items() if not os.path.exists(part.path)]
        for identity in gone[:-_GONE]:
            del self._logs[identity]
        return FilesPlace(tuple(parts), dict(self._logs), self._next_id)

    def _mark(self, text: FollowedText) -> Mark:
        if text not in self._marks:
            seq = -1 if text.stop else 0
            self._marks[text] = Mark(self._next_id, text.stop, seq, seq)
            self._next_id += 1
        return self._marks[text]

    # --- which files ------------------------------------------------------------------------------------------------

    def _paths(self) -> list[str]:
        members = find_members(self._options.path, is_following=True)
        return [each.path for each in members if self._narrowed(each.path) != NOTHING]

    def _line_paths(self) -> list[str]:
        return [path for path in self._paths() if is_of_lines(path)]

    def _log_paths(self) -> list[str]:
        return [path for path in self._paths() if not is_of_lines(path)]

    def _there(self, texts: Texts) -> list[FollowedText]:
        return [each for each in texts.logs.values() if isinstance(each, FollowedText)]

    def _in_turn(self, texts: Texts) -> list[FollowedText]:
        """All that are there; first the one whose turn it is."""
        there = self._there(texts)
        begin = there.index(self._turn) if self._turn in there else 0
        return there[begin:] + there[:begin]

    # --- what is lost ------------------------------------------------------------------------------------------------

    def _await_rotation(self, texts: Texts) -> None:
        """A file may be rotated at this very moment: look a few times before something counts as lost."""
        until = time.monotonic() + _AT_START
        while self._replaced(texts) and time.monotonic() < until:
            time.sleep(_PAUSE)
            texts.look()
        for text in self._replaced(texts):
            self._lose(texts, text)

    def _miss(self, texts: Texts) -> None:
        """Tell of texts whose name another one has, and that are nowhere."""
        now = time.monotonic()
        replaced = self._replaced(texts)
        self._lost_since = {text: self._lost_since.get(text, now) for text in replaced}
        for text, since in self._lost_since.items():
            if now - since > _PATIENCE:
                self._lose(texts, text)

    def _replaced(self, texts: Texts) -> list[FollowedText]:
        """Those that are lost, and records with them. A file that has a name of rotation does not grow any more."""
        return [
            text
            for text in texts.replaced
            if os.path.basename(text.place) == family(text.place) and not self._is_done(text)
        ]

    def _is_done(self, text: FollowedText) -> bool:
        return text in self._marks and bool(self._marks[text].done)

    def _lose(self, texts: Texts, text: FollowedText) -> None:
        """Raises LogChanged, unless the user takes the loss."""
        said = (
            f"it was removed, or another file has its name, since it was read up to byte {text.stop:,}, and what it "
            "held is in no file: what was written to it afterwards is lost"
        )
        if not self._options.may_lose:
            raise LogChanged(
                said, path=text.place,
                remedy="give the folder into which files are rotated, too; to go on without, failOnDataLoss=false",
            )  # fmt: skip
        warnings.warn(LogWarning(said, path=text.place), stacklevel=2)
        texts.forget(text)

    # --- how far -----------------------------------------------------------------------------------------------------

    def _take_texts(self, texts: list[FollowedText], room: _Room) -> None:
        """Put what is new into the batch. One that had all of a batch lets the others go first."""
        for number, text in enumerate(texts):
            was_empty = room.is_empty
            self._take(text, room)
            if room.is_full:
                self._turn = texts[(number + 1) % len(texts)] if was_empty else text
                return
        self._turn = None

    def _take(self, text: FollowedText, room: _Room) -> None:
        """The same of one text."""
        assert self._texts is not None
        if self._until is not None and text.stop >= self._until.get(text, 0):
            return
        was_open = text.is_open
        try:
            if text not in self._idle or (self._idle[text],) != text.look():
                self._take_new(self._texts, text, text.file(), room)
        except Moved:
            pass  # the next look finds it
        except Lost:
            self._texts.lose(text)
        if not was_open and len(self._texts.logs) > _OPEN // 2:
            text.close()

    def _take_new(self, texts: Texts, text: FollowedText, file: LineFile, room: _Room) -> None:
        """Raises Moved, Lost."""
        at, stamp, begin = time.time_ns(), file.stamp(), text.stop
        if not text.is_whole():
            raise Lost
        most = _ALL if self._until is None else self._until.get(text, 0) - begin
        try:
            with closing(self._window(file, text.place, begin, most)) as window:
                mark = self._counted(text, file)
                records, last = _fitting(window, room)
                self._forms[mark.id] = window.framing.form
                is_end = last == window.durable_end
                is_all = is_end and not window.holds_back and not window.is_full
                end = window.base + last if is_end else file.next_line(window.base + last)
                stop = min(end, file.written_size(file.stamp())) if records else begin
        except (LogError, OSError, EOFError) as error:
            raise Lost from error
        if not text.is_whole():  # it was truncated meanwhile
            raise Lost
        if is_all and stamp.is_settled(at):
            self._idle[text] = stamp
        if stop <= begin:
            return
        if text.is_removed():  # no task can open it: it may be compressed by now
            self._marks[text] = mark._replace(done=UNREAD)
            texts.lose(text)
            return
        text.seen = SeenText.of(file.read_written, stop) or text.seen
        if not text.looked.at:
            text.looked = SeenText.of(file.read_written, 1) or text.looked
        text.stop, text.used = stop, time.monotonic()
        room.take(records, stop - begin)
        self._marks[text] = mark._replace(seq=mark.seq + records)

    def _end_of(self, text: FollowedText) -> int:
        """Where what is written of it ends now."""
        was_open = text.is_open
        try:
            file = text.file()
            return file.written(file.stamp())
        except (Moved, Lost, LogError, OSError):
            return _ALL
        finally:
            if not was_open:
                text.close()

    def _window(self, file: LineFile, path: str, begin: int, most: int) -> LineWindow:
        window = self._lines.window(file, path, begin, most)
        refuse_batches(window.framing.form, path)
        return window

    def _counted(self, text: FollowedText, file: LineFile) -> Mark:
        """Its mark, with the number of the records before the place where it is."""
        mark = self._mark(text)
        if mark.seq < 0:
            with closing(self._window(file, text.place, 0, _ALL)) as window:
                seq = int(records_between(window, 0, [text.stop])[0])
            mark = mark._replace(begin_seq=seq, seq=seq)
        return mark

    def _take_log(self, path: str, room: _Room) -> bool:
        """The same of a log of jitdb's: whether its place is another one."""
        stamp = stamp_at(path)
        if stamp is None or self._seen_logs.get(path) == stamp:
            return False
        with closing(self._stream_of(path)) as stream:
            start = begin = stream.first()
            known = self._logs.get(start.identity)
            if known is not None:
                start, begin = known.cursor, known.begin
            if self._until is not None:
                if path not in self._until_logs:
                    return False
                stream.stop_at(self._until_logs[path])
            now = stream.now(start)
            end = stream.next(start, room.limit(now.offset))
        if end.offset == 0 or end == start:
            if known is not None and not room.is_full:
                self._seen_logs[path] = stamp
            return False
        room.take(end.seq - now.seq, end.offset - now.offset)
        self._logs[end.identity] = LogPart(path, begin, end)
        return True

    def _end_of_log(self, path: str) -> Cursor:
        with closing(self._stream_of(path)) as stream:
            return stream.latest()

    def _stream_of(self, path: str, begins: str = "earliest") -> LogStream:
        return LogStream(replace(self._of(path), starting_offset=begins))

    def _of(self, path: str) -> ReadOptions:
        """What is asked of the log at a path."""
        options = self._options
        where = None if options.where is None else self._narrowed(path)
        folder = folder_of(Member(path), options.index_folder or None) or ""
        shared = dict(fields_of(path)) if path != options.path else {}
        return replace(options, path=os.path.abspath(path), where=where, index_folder=folder, shared=shared)

    # --- reading -----------------------------------------------------------------------------------------------------

    def partitions(self, start: FilesPlace, end: FilesPlace, *, slow: bool) -> list[tuple[Partition, ...]]:
        """What the tasks of a batch read. Raises LogChanged, LogError, OSError."""
        known = {} if start.is_first else {each.mark.id: each for each in start.texts}
        parts: list[Partition] = []
        shares = []
        for each in end.texts:
            before = known.get(each.mark.id)
            begin = each.mark.begin if before is None else before.stop
            seq = each.mark.begin_seq if before is None or before.mark.seq < 0 else before.mark.seq
            if begin < each.stop:
                shares.append((each, Run(begin, each.stop, seq, each.mark.seq)))
        size = self._bytes_of_task(sum(run.stop - run.start for _, run in shares), slow)
        for each, run in shares:
            parts += self._parts(each, run, size)
        for identity, log in end.logs.items():
            begins = start.logs[identity].cursor if identity in start.logs and not start.is_first else log.begin
            if begins != log.cursor:
                parts += self._parts_of_log(log, begins, slow)
        return list(packed(parts, size))

    def _bytes_of_task(self, total: int, slow: bool) -> int:
        return blocks_of_task(self._options, total, 1, slow=slow)

    def _parts(self, part: TextPart, run: Run, size: int) -> Iterator[Partition]:
        """What tasks read of a text."""
        place, options = part.place, self._of(part.place.path)
        form, path, runs = self._forms.get(part.mark.id), place.path, [run]
        is_large = run.stop - run.start > size + size // 4
        if (form is None or is_large) and (found := located(place, self._lines, self._options.path)) is not None:
            file, path = found
            with closing(file):
                with closing(self._window(file, path, 0, _ALL)) as window:
                    form = window.framing.form
                if is_large and not file.compression:
                    runs = self._cut_run(file, path, run, size)
        snapshot = Snapshot(
            path=path, codec_name=self._lines.codec.name, block_size=1, identity=bytes(16), generation=0,
            end=run.stop, digest="", form=form or self._lines.form,
        )  # fmt: skip
        for each in runs:
            yield TextPartition(
                snapshot=snapshot, runs=(each,), sums=None, deleted=np.empty(0, np.int64), core=options.fields,
                where=None if options.where is None else to_json(options.where), skip_corrupt=options.skip_corrupt,
                shared=options.shared, place=place, opener=self._lines, root=self._options.path,
                may_lose=options.may_lose,
            )  # fmt: skip

    def _cut_run(self, file: LineFile, path: str, run: Run, size: int) -> list[Run]:
        """The same as runs of about so many bytes."""
        edges = sorted({file.next_line(at) for at in range(run.start + size, run.stop - size // 4, size)} - {run.stop})
        edges = [run.start, *(edge for edge in edges if run.start < edge < run.stop), run.stop]
        with closing(self._window(file, path, run.start, _ALL)) as window:
            counts = records_between(window, 0, [max(0, edge - window.base) for edge in edges[1:-1]]).tolist()
        seqs = [run.first_seq, *(run.first_seq + count for count in counts), run.stop_seq]
        return [Run(*ends, *numbers) for ends, numbers in zip(pairwise(edges), pairwise(seqs), strict=True)]

    def _parts_of_log(self, log: LogPart, begin: Cursor, slow: bool) -> list[Partition]:
        paths = dict.fromkeys([log.path, *self._log_paths()])
        for path in paths:
            with suppress(NotALog, LogChanged, QueryError, OSError), closing(self._stream_of(path)) as stream:
                if stream.first().identity == log.cursor.identity:
                    return stream.parts(begin, log.cursor, slow=slow)
        said = "the log that the batch has records of is in none of the files any more"
        if not self._options.may_lose:
            raise LogChanged(said, path=log.path, remedy="to go on without it, failOnDataLoss=false")
        warnings.warn(LogWarning(said, path=log.path), stacklevel=2)
        return []


class _Room:
    """What a batch may still take."""

    def __init__(self, records: int | None, size: int | None) -> None:
        self.records = _ALL if records is None else records
        self.bytes = _ALL if size is None else size
        self.is_empty = True
        self.is_full = False  # the next record may not come in

    def take(self, records: int, size: int) -> None:
        """So many records, of so many bytes, are in the batch."""
        self.is_empty = False
        self.records, self.bytes = self.records - records, self.bytes - size
        self.is_full = self.is_full or self.records <= 0 or self.bytes <= 0

    def limit(self, offset: int) -> Limit:
        """The same of a log alone."""
        return Limit(self.records, self.bytes)


def _fitting(window: LineWindow, room: _Room) -> tuple[int, int]:
    """How many of the records in a window have room, and a byte in the last line of them; its end where it is all."""
    taken = last = 0
    form = window.framing.form
    if (form.is_plain or form.allow_prefix) and window.durable_end <= room.bytes:  # each line is one, which may be all
        count = _newlines(window)
        if count <= room.records:
            return count, window.durable_end
    for offsets, ends in walked(window, 0, window.durable_end):
        few = min(len(offsets), room.records - taken)
        fitting = int(ends.searchsorted(room.bytes - len(NEWLINE), side="right"))
        few = min(few, max(fitting, int(room.is_empty and not taken)))
        if few:
            taken, last = taken + few, int(offsets[few - 1]) + 1
        if few < len(offsets):
            room.is_full = True
            return taken, last
    return taken, window.durable_end


def _newlines(window: LineWindow) -> int:
    found, data = 0, memoryview(bytearray(min(PIECE, window.durable_end)))
    for begin in range(0, window.durable_end, PIECE):
        size = window.read_blocks(begin, min(begin + PIECE, window.durable_end), data)
        found += int(np.count_nonzero(np.frombuffer(data[:size], np.uint8) == _NEWLINE))
    return found


def _nothing(log: LogSource) -> Askable:
    raise NotImplementedError  # nothing is asked of a part of a file here: tasks read it


def _no_log(path: str) -> AbstractContextManager[Askable]:
    raise NotALog("it is neither lines that a stream can follow nor a log of jitdb's", path=path)


def stream_of(options: ReadOptions) -> LogStream | FilesStream:
    """One log of jitdb's as a stream, or whatever else the path names. Raises QueryError, LogError, SparkError."""
    if not is_url(options.path) and not is_several(options.path):
        with closing(open_log(options)) as log:
            is_blocked = log.framing.is_blocked
        if is_blocked:
            return LogStream(options)
    return FilesStream(options)
