"""Where the texts that are followed are now, whatever becomes of their files.

Texts are followed, not files (log/lines/files/stamp.py). Where a text lies now is found out at each look at the files,
from the files alone; what other processes keep about them in folders of indexes plays no part. At a look,

    a file that is followed has grown               its text is read on
    it is shorter, or its text is another one       the text is lost: it was truncated or replaced; another begins here
    it is gone, closed, and not in its folder       the text is lost, too; an open file is read on without a name
    a new file begins like a text that is there,    it is a copy, as rotation and compression make: left alone until
    and its name is what rotation makes of that     the other is lost, or the copy goes on otherwise
    a new file has all that was read of a lost text it is the text's place now, which is read on
    a copy of a lost text has less than was read    it is read, and known by its own text from now on
    any other new file                              is read from its beginning

A log of jitdb's is known by its identity in the same way.
"""

from __future__ import annotations

import os
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.common.formats import without_ending
from jitdb.engine.cursor import LogPlace, parse_files_cursor
from jitdb.engine.following.followed import (
    NOWHERE,
    Copy,
    Files,
    Followed,
    FollowedLog,
    FollowedText,
    Key,
    Lost,
    beside,
    name_of,
)
from jitdb.engine.following.lost import LostTexts
from jitdb.errors import JitdbError, LogError, LogWarning, NotALog, Remedy
from jitdb.log.io.osfile import reason
from jitdb.log.lines.files.rotated_names import Kinship, family, is_packed, kinship
from jitdb.log.lines.files.stamp import ENDS, SeenText, Stamp, begin_alike, stamp_at
from jitdb.operators.nodes.operation import EVERYTHING, not_
from jitdb.operators.question import Live, Question

if TYPE_CHECKING:
    from jitdb.log.lines.files.file import LineFile

_PATIENCE: Final = 10.0  # seconds until what may be a copy, by its name and text, counts as a log of its own
_REMOVED: Final = 60.0  # seconds that a removed file without news stays open: its writer may still have it
_LOST: Final = 256  # texts that are remembered after they were lost
_LOOKS: Final = 100  # at the files, one after the other, while they change
_WINDOWS: Final = 64  # logs to which something came last: of these, what is in memory is kept
_EMPTY: Final = 64  # files without anything in them that are held open
_NEW: Final = 1.0  # seconds after its last change, in which what a file is may still show

_BARE: Final = "/"  # in front of names that are not those of families: no name has it
_NOTHING: Final = not_(EVERYTHING)


class _Again(Exception):
    """A file changed while others were compared with it."""


class _Sought(NamedTuple):
    """A lost text that is looked for beside the files that are followed.

    late:    when that ends
    changed: when its folder had changed last, at the last search; None: that may have been just now
    """

    text: FollowedText
    late: float
    changed: int | None = None


class Texts:
    """The texts, and logs of jitdb's, that a question follows.

    logs:   by their files, in the order in which they were found
    looked: when the files were last looked at
    """

    def __init__(self, question: Question, files: Files) -> None:
        self._question, self._files = question, files
        self._live = question.live or Live()
        self.logs: dict[Key, Followed] = {}
        self._kin: dict[str, dict[FollowedText, None]] = {}  # those that are there, by what their names have in common
        self._lost = LostTexts()
        self._most_lost = _LOST
        self._followed = 0  # how many were found so far
        self._lost_logs: list[LogPlace] = []
        self._removed: list[FollowedText] = []  # open, and without a name at the last look
        self._sought: list[_Sought] = []
        self._copies: dict[Key, Copy] = {}
        self._odd: dict[Key, Stamp] = {}  # files that are not to be read, as they were when that was found
        self._empty: dict[Key, tuple[LineFile, str]] = {}  # files in which nothing is yet
        self._named: dict[str, Followed] = {}  # the last one that had this name
        self.looked = 0.0
        self._waits = False
        self._begins = True
        self._begin()
        self._begins = False

    def _begin(self) -> None:
        for place in [] if self._live.after is None else parse_files_cursor(self._live.after, self._files.head):
            if isinstance(place, LogPlace):
                self._lost_logs.append(place)
            else:
                text = FollowedText(self._files, self._question, place.path, place.key, place.stop)
                text.seen, text.looked = place.seen, place.looked
                self._lost.add(text)
        self._most_lost += len(self._lost)  # all of these are looked for
        self._sought = [_Sought(text, time.monotonic() + _PATIENCE) for text in self._lost]
        self.look()
        there = {followed.place for followed in self.logs.values()}
        unread = [text.path for text in self._lost if text.key != NOWHERE]
        for path in [*unread, *(log.path for log in self._lost_logs)]:
            if path in there:
                _warn_lost(path)

    @property
    def waits(self) -> bool:
        """For what a look at the files does not show."""
        return self._waits or any(followed.holds_back for followed in list(self.logs.values()))

    # --- looking at the files --------------------------------------------------------------------------------------

    def look(self) -> None:
        """Find out where the texts are now, and which files are new."""
        self.looked = time.monotonic()
        for _ in range(_LOOKS):
            with suppress(_Again):
                self._look_once()
                break
        self.make_room()

    def _look_once(self) -> None:
        """Raises _Again where a file changed meanwhile."""
        self._waits, self._removed = False, []
        there = self._there()
        for followed in list(self.logs.values()):
            self._see(followed, there)
        self._meet_empty(there)
        known = {text.key for text in self._lost}  # of two files with what is known of a text, its own comes first
        new = [
            (key not in known, is_packed(path), path)
            for key, (path, stamp) in there.items()
            if stamp.size and self._is_new(key, stamp, path)
        ]
        for *_, path in sorted(new):
            self._meet(path)
        self._seek()
        for followed in self.logs.values():
            if isinstance(followed, FollowedText):
                followed.looked = followed.seen
        self._forget(there)

    def _forget(self, there: dict[Key, tuple[str, Stamp]]) -> None:
        """Drop what is known of files that are gone, where there is much of it."""
        for known in (self._copies, self._odd):
            gone = [key for key in known if key not in there]
            for key in gone[:-_LOST]:
                del known[key]
        if len(self._named) > 2 * (len(there) + _LOST):
            latest = {*map(id, self.logs.values()), *map(id, self._lost)}
            self._named = {path: each for path, each in self._named.items() if id(each) in latest}

    def _there(self) -> dict[Key, tuple[str, Stamp]]:
        found: dict[Key, tuple[str, Stamp]] = {}
        for path in self._files.paths():
            stamp = stamp_at(Path(path))
            if stamp is not None:
                known = self.logs.get(stamp[:2])
                if stamp[:2] not in found or (known is not None and known.place == path):
                    found[stamp[:2]] = (path, stamp)
        return found

    def _see(self, followed: Followed, there: dict[Key, tuple[str, Stamp]]) -> None:
        """Where its file is now."""
        if followed.key in there:
            self._place(followed, there[followed.key][0])
        elif followed.is_removed():
            self._waits = True
            self._removed += [followed] if isinstance(followed, FollowedText) else []
            followed.removed = followed.removed or time.monotonic()
            if time.monotonic() - max(followed.removed, followed.used) > _REMOVED:
                self.lose(followed)
        elif not followed.is_open or isinstance(followed, FollowedLog):
            place = name_of(os.path.dirname(followed.place), followed.key)
            if place is None:
                self.lose(followed)
            else:
                self._place(followed, place)

    def _place(self, followed: Followed, path: str) -> None:
        self._drop_kin(followed)
        followed.place = path
        self._named[path] = followed
        if isinstance(followed, FollowedText):
            for name in _names(path):
                self._kin.setdefault(name, {})[followed] = None

    def _drop_kin(self, followed: Followed) -> None:
        if not isinstance(followed, FollowedText):
            return
        for name in _names(followed.place):
            alike = self._kin.get(name, {})
            alike.pop(followed, None)
            if not alike:
                self._kin.pop(name, None)

    def _is_new(self, key: Key, stamp: Stamp, path: str) -> bool:
        """Whether the file must be looked into."""
        if key in self.logs or self._odd.get(key) == stamp:
            return False
        copy = self._copies.get(key)
        if copy is None or not self.is_there(copy.of) or copy.stamp[:4] != stamp[:4]:
            return True
        if _kinship(copy.of, path) is Kinship.CERTAIN:
            return False
        self._waits = True
        return time.monotonic() - copy.since > _PATIENCE

    def is_there(self, followed: Followed) -> bool:
        return self.logs.get(followed.key) is followed

    def lose(self, followed: Followed) -> None:
        """Follow it no more, until it is found elsewhere."""
        del self.logs[followed.key]
        self._drop_kin(followed)
        followed.close()
        followed.key = NOWHERE
        if isinstance(followed, FollowedLog):
            self._lost_logs = [*self._lost_logs[1 - _LOST :], followed.log_place()]
        elif isinstance(followed, FollowedText) and followed.seen.at:
            self._lost.add(followed)
            self._lost.keep(self._most_lost)
            self._sought.append(_Sought(followed, time.monotonic() + _PATIENCE))

    # --- a file that nobody knows ----------------------------------------------------------------------------------

    def _meet(self, path: str) -> None:
        """Find out what is in a new file, and follow it unless it is no log, or its text is read elsewhere."""
        lines = self._files.lines
        if self._files.operation(path) == _NOTHING:
            return
        try:
            if lines is not None:
                file = lines.open(path)
                if lines.are_lines(file, path):
                    self._meet_text(file, path)
                    return
                file.close()
            self._meet_log(path)
        except FileNotFoundError:
            return
        except (NotALog, OSError) as error:
            self._pass_over(path, error)

    def _meet_empty(self, there: dict[Key, tuple[str, Stamp]]) -> None:
        """Hold files open in which nothing is yet: they may be written and renamed before they are seen again."""
        lines = self._files.lines
        if lines is None:
            return
        for key, (file, path) in list(self._empty.items()):
            size = file.stamp().size
            if size or file.is_removed():
                del self._empty[key]
                if size and lines.are_lines(file, path):
                    self._meet_text(file, path)
                else:
                    file.close()
        empty = [(key, path) for key, (path, stamp) in there.items() if not stamp.size and not is_packed(path)]
        for key, path in empty if len(empty) <= _EMPTY else []:
            if key not in self._empty and key not in self.logs:
                with suppress(LogError, OSError):
                    file = lines.open(path)
                    self._empty[file.stamp()[:2]] = (file, path)

    def _pass_over(self, path: str, error: JitdbError | OSError) -> None:
        """Leave out a file that is no log, or cannot be read; the user named it, or is warned."""
        stamp = stamp_at(Path(path))
        if stamp is None:
            return
        if self._begins and path in self._files.named:
            raise error
        if abs(time.time() - stamp.mtime / 1e9) < _NEW:  # it may be written just now
            self._waits = True
            return
        self._odd[stamp[:2]] = stamp
        if not self._files.may_tell(path):
            return
        why = error.reason if isinstance(error, JitdbError) else reason(error)
        told = "it is no log, and is passed over" if isinstance(error, NotALog) else f"it is passed over: {why}"
        warnings.warn(LogWarning(told, path=path), stacklevel=4)

    def _meet_text(self, file: LineFile, path: str) -> None:
        key = file.stamp()[:2]
        try:
            text = None if key in self.logs else self._text_of(file, path, key)
        except BaseException:
            file.close()
            raise
        if text is None:
            file.close()
        else:
            self._follow(text, path, key)
            text.take(file)

    def _follow(self, followed: Followed, path: str, key: Key) -> None:
        before = self._named.get(path)
        if before is not None and before is not followed:
            before.is_idle = False
            followed.after = before
        self._place(followed, path)
        self.logs[key] = followed
        self._copies.pop(key, None)
        followed.key = key
        self._followed += 1
        if not self._followed % max(1, self._files.most // 4):  # all of thousands of logs are looked at for that
            self.make_room()

    def _text_of(self, file: LineFile, path: str, key: Key) -> FollowedText | None:
        """The text in this file; None where it is to be left alone. Raises _Again."""
        stamp = file.stamp()
        size = file.written_size(stamp)
        if not size:
            return None
        end = size if file.compression else min(size, file.end_of_lines(stamp, 0, 0, b""))
        copy = self._copies.get(key)
        if copy is not None and copy.text.seen.at and not copy.text.seen.fits(file.read):
            del self._copies[key]  # another file has its inode now
            copy = None
        original = self._original(file, path, size, copy)
        start = 0 if not self._begins or self._live.old or self._live.after is not None else end
        alike = self._lost.beginning_like(file.read(ENDS, 0))
        if original is not None:
            seen = SeenText.of(file.read_written, end)
            known = FollowedText(self._files, self._question, path, key, end)
            known.seen = known.looked = seen or known.seen
            since, start = (time.monotonic(), start) if copy is None else (copy.since, copy.start)
            self._copies[key] = Copy(original, known, stamp, since, start)
            for text in alike:
                if text.key == key and text.seen.fits(file.read):
                    self._lost.discard(text)
            return None
        shorter = [text for text in alike if max(text.stop, text.seen.at) > size]
        begun = [text for text in shorter if self._may_have_begun(text, file, path, key)]
        found = self._found(file, path, key, size)
        if found is not None and not any(text.looked.is_long or found.key != key for text in begun):
            self._lost.discard(found)
            return found
        if copy is not None and self.is_there(copy.of):
            start = copy.start  # it goes on otherwise than what it was like
        elif begun:
            start = max(end, *(text.stop for text in begun if text.stop <= size), 0)  # it has less than was read
        elif (of := copy.of if copy is not None else self._copied(file, path, key, end)) is not None:
            start = min(of.stop, end)
        for text in begun:
            text.key = NOWHERE
        return FollowedText(self._files, self._question, path, key, start)

    def _original(self, file: LineFile, path: str, size: int, copy: Copy | None) -> FollowedText | None:
        """A text that is there, of which this file holds a part or all. Raises _Again."""
        is_late = copy is not None and time.monotonic() - copy.since > _PATIENCE
        for text in self._kin_of(path):
            kin = _kinship(text, path)
            if kin is Kinship.NONE or not self.is_there(text):
                continue
            try:
                self.make_room()  # before it is opened: it may be the one that had no news for longest
                other = text.file()
                most = min(size, other.written_size(other.stamp()))
                is_near = most >= ENDS or os.path.dirname(text.place) == os.path.dirname(path)
                is_alike = is_near and 0 < most == size and begin_alike(file.read, other.read, size)
                if is_alike and not (is_late and kin is Kinship.LIKELY):
                    return text
                is_whole = text.is_whole()
            except Lost:
                is_whole = False
            if not is_whole:
                self.lose(text)
                raise _Again
        return None

    def _kin_of(self, path: str) -> list[FollowedText]:
        """All that are there and may have a kinship with a file of this name: see rotated_names.py."""
        if is_packed(path):
            return list(self._kin.get(_names(path)[0], ()))
        _, bare = _names(path)
        open_ones = [each for each in self._removed if family(each.place) == family(path)]
        return list(dict.fromkeys([*self._kin.get(bare, ()), *self._kin.get(_BARE + family(path), ()), *open_ones]))

    def _copied(self, file: LineFile, path: str, key: Key, end: int) -> FollowedText | None:
        """The lost text that it is a copy of, as it has what a copy of that has: it was made of that one."""
        for copy in self._copies.values():
            text = copy.text
            is_lost = text.stop <= end and not self.is_there(copy.of) and path != copy.of.place
            if is_lost and self._may_be(text, text.seen, file, path, key):
                return copy.of
        return None

    def _found(self, file: LineFile, path: str, key: Key, size: int) -> FollowedText | None:
        """The lost text that is in this file."""

        for place in self._lost_logs:  # from a cursor of the older form
            if place.path == path and self._is_at(place, path):
                self._lost_logs.remove(place)
                return FollowedText(self._files, self._question, path, key, place.cursor.offset)
        alike = self._lost.beginning_like(file.read(ENDS, 0))
        fit = [text for text in alike if text.stop <= size and self._may_be(text, text.seen, file, path, key)]
        return max(fit, key=lambda text: (text.stop, text.key == key), default=None)

    def _may_have_begun(self, text: FollowedText, file: LineFile, path: str, key: Key) -> bool:
        """Whether the file may be a copy of a lost text that was made before all was read of that."""
        is_other = text.looked.is_long or kinship(text.place, path) is not Kinship.NONE
        return is_other and self._may_be(text, text.looked, file, path, key)

    def _may_be(self, text: FollowedText, seen: SeenText, file: LineFile, path: str, key: Key) -> bool:
        """Whether the file has what was seen of a text; of a short text, names must speak for it, too."""
        is_alike = os.path.dirname(text.place) == os.path.dirname(path) and family(text.place) == family(path)
        is_like = text.key == key or seen.is_long or is_alike
        return seen.at > 0 and is_like and seen.fits(file.read)

    def _is_at(self, place: LogPlace, path: str) -> bool:
        with self._files.shared(path) as db:
            return db.log.identity == place.cursor.identity

    def _seek(self) -> None:
        """Look for lost texts beside where they were: rotation may give names that are not followed.

        Again, for a while, when the folder has changed: a copy may be compressed while it is looked for.
        """
        sought = [each for each in self._sought if each.text in self._lost]
        self._sought = []
        for folder in dict.fromkeys(os.path.dirname(each.text.place) for each in sought):
            changed = _changed_at(folder)
            here = [each for each in sought if os.path.dirname(each.text.place) == folder]
            fresh = [each.text for each in here if changed is None or changed != each.changed]
            for path in beside(folder, fresh) if fresh else []:
                self._seek_in(path)
            left = [each for each in here if each.text in self._lost and time.monotonic() < each.late]
            self._sought += [each._replace(changed=changed) for each in left]
        self._waits = self._waits or bool(self._sought)

    def _seek_in(self, path: str) -> None:
        assert self._files.lines is not None
        try:
            file = self._files.lines.open(path)
        except (LogError, OSError):
            return
        key, found = file.stamp()[:2], None
        with suppress(LogError, OSError):
            size = 0 if key in self.logs or key in self._copies else file.written_size(file.stamp())
            found = self._found(file, path, key, size) if size else None
        if found is None:
            file.close()
        else:
            self._lost.discard(found)
            self._follow(found, path, key)
            found.take(file)

    def _meet_log(self, path: str) -> None:
        """A log of jitdb's."""
        with self._files.shared(path) as db:
            db.refresh()
            identity, stamp = db.log.identity, stamp_at(Path(path))
            if stamp is None or not db.log.framing.is_blocked:
                return
        for other in self.logs.values():
            if isinstance(other, FollowedLog) and other.identity == identity:
                self._odd[stamp[:2]] = stamp  # it is a copy
                return
        place = next((place for place in self._lost_logs if place.cursor.identity == identity), None)
        is_new = not self._begins or self._live.old or self._live.after is not None
        live = Live(is_new) if place is None else Live(after=str(place.cursor))
        followed = FollowedLog(self._files, self._question, path, stamp[:2], live)
        if place is not None:
            self._lost_logs.remove(place)
        self._follow(followed, path, stamp[:2])

    def make_room(self) -> None:
        """Where too many logs are open, close those without news for longest."""
        most = max(1, self._files.most // 2)
        if len(self.logs) > min(most, _WINDOWS):
            latest = sorted((each for each in self.logs.values() if each.is_open), key=lambda each: -each.used)
            for followed in latest[_WINDOWS:]:
                if isinstance(followed, FollowedText):
                    followed.rest()
            for followed in latest[most:]:
                followed.close()

    @property
    def texts(self) -> list[FollowedText]:
        """All that a cursor tells of: copies, those that are lost, and those that are there."""
        copies = [copy.text for copy in self._copies.values() if copy.text.stop <= copy.of.stop]
        there = [each for each in self.logs.values() if isinstance(each, FollowedText)]
        return [*copies, *self._lost, *there]

    @property
    def replaced(self) -> list[FollowedText]:
        """Those that are lost, and whose name another text has by now."""
        there = {followed.place for followed in self.logs.values()}
        return [text for text in self._lost if text.place in there]

    def is_lost(self, text: FollowedText) -> bool:
        """Whether it is looked for."""
        return text in self._lost

    def forget(self, lost: FollowedText) -> None:
        """Look for it no more."""
        self._lost.discard(lost)

    def entries(self, without: Followed | None = None) -> list[str]:
        """Of a cursor: what was read of all, but of one."""
        logs = [each for each in self.logs.values() if not isinstance(each, FollowedText)]
        followed = [each.entry() for each in [*logs, *self.texts] if each is not without]
        return [*map(LogPlace.entry, self._lost_logs), *followed]

    def close(self) -> None:
        for followed in list(self.logs.values()):
            followed.close()
        for file, _ in self._empty.values():
            file.close()


def _names(path: str) -> tuple[str, str]:
    """What the name of a file has in common with those of its kin: the first name, and this one without an ending."""
    return family(path), _BARE + without_ending(os.path.basename(path))


def _changed_at(folder: str) -> int | None:
    """When a name in the folder changed last, in nanoseconds; None where another change might not show."""
    with suppress(OSError):
        stamp = Stamp.of(os.stat(folder or "."))
        return stamp.mtime if stamp.is_settled() else None
    return None


def _kinship(original: Followed, path: str) -> Kinship:
    """How likely the file at this path is a copy of one that is there, by their names."""
    if original.is_removed() and family(original.place) == family(path):
        return Kinship.CERTAIN
    return kinship(original.place, path)


def _warn_lost(path: str) -> None:
    warnings.warn(
        LogWarning(
            "another file has its name since it was read last, and the one that had it is not found: what came to "
            "that one afterwards is left out",
            path=path,
            remedy=Remedy("follow the folder of the rotated files, too", "follow the folder of the rotated files, too"),
        ),
        stacklevel=5,
    )
