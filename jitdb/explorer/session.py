"""What is asked, and how: one log or many, its state, its usual fields, a sample of its records."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from jitdb.common.paths import Path, format_path
from jitdb.common.words import counted
from jitdb.engine.database import JITDB
from jitdb.engine.roles import Roles, roles_of
from jitdb.errors import JitdbError
from jitdb.explorer.guard import Refused
from jitdb.explorer.sampled import Sampled
from jitdb.log.objects.door import size_at
from jitdb.log.source import MaintainedSource
from jitdb.logset import LogSet
from jitdb.operators.nodes.operation import Operation, or_
from jitdb.operators.nodes.positions import offsets
from jitdb.operators.nodes.selection import selection

if TYPE_CHECKING:
    from jitdb.explorer.opening import Opening
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators.queries import Query

Known = TypeVar("Known")

SAMPLE: Final = 1000  # records
_REMEMBERED: Final = 1000  # operations
_LAST: Final = 0.5  # seconds that the end waits for a sample
_SIZED: Final = 1000  # files whose sizes are added up
_LONGEST: Final = 100_000  # characters of a text in a request
_MOST: Final = 100  # columns that are shown


class Asked(NamedTuple):
    """The records that a request is about."""

    where: str
    since: str | None
    until: str | None
    as_of: int | None

    @classmethod
    def of(cls, body: dict[str, Any]) -> Asked:
        """What the request says. Raises Refused."""
        as_of = optional_text(body, "as_of")
        if as_of is not None and not as_of.removeprefix("-").isdecimal():
            raise Refused(HTTPStatus.BAD_REQUEST, "as_of is what an answer said")
        where = (optional_text(body, "where") or "").strip()
        return cls(
            where, optional_text(body, "since"), optional_text(body, "until"), None if as_of is None else int(as_of)
        )


class Session:
    """One log, or many, as the page asks it. Every method may be called from any thread."""

    def __init__(self, db: AnyDatabase, opening: Opening) -> None:
        self.db, self.opening = db, opening
        self._lock = threading.Lock()
        self._files: list[str] = []  # a number stands for a path on its way to the page and back
        self._samples: dict[object, Sampled] = {}  # by what the log was; an answer under way may use an earlier one
        self._fresh: set[Any] = set()  # identities of operations whose indexes were built for this page
        self._known: tuple[int | None, dict[str, Any]] = None, {}  # what is the same for all questions of a state

    @property
    def log(self) -> Any:
        """The one log; None where there are many."""
        return self.db.log if isinstance(self.db, JITDB) else None

    def now(self) -> int | None:
        """The state of the log, for as_of; None where there are many, whose state changes with the next now()."""
        self.db.refresh()
        return None if self.log is None else self.log.since

    def query(self, asked: Asked, *, timed: bool = True) -> Query:
        """The question. Raises QueryError."""
        query = self.db.query(asked.where or None)
        if timed:
            query = query if asked.since is None else query.since(asked.since)
            query = query if asked.until is None else query.until(asked.until)
        return query if asked.as_of is None or self.log is None else query.as_of(asked.as_of)

    def operation(self, asked: Asked) -> Operation:
        """The same without the state of the log."""
        return self.query(asked._replace(as_of=None)).question.operation

    def notes(self, asked: Asked, *, is_empty: bool) -> list[str]:
        """What is to be known of an answer: fields and values that no record has, lines that are none."""
        notes = self.db.hints(self.operation(asked), is_empty=is_empty)
        if isinstance(self.db, JITDB) and not isinstance(self.db.log, MaintainedSource):
            known = self.db.known()
            if known is not None and known.deleted:
                many = counted(known.deleted, "line is no record, and is", "lines are no records, and are")
                notes = [*notes, f"{many} left out of all answers: `jitdb verify` lists them"]
        return notes

    # --- a sample ----------------------------------------------------------------------------------------------------

    @property
    def sampled(self) -> Sampled:
        """Some records of the log; others once it is another one, or twice as large."""
        with self._lock:
            state = self._size_of_sampled()
            if self._samples.get(state) is None:
                self._samples[state] = Sampled(self.db, SAMPLE)
            return self._samples[state]

    def _size_of_sampled(self) -> object:
        if isinstance(self.db, JITDB):
            return self.db.log.identity, self.db.log.durable_end.bit_length()
        return len(self.db.members).bit_length()

    def roles_in(self, record: Any) -> Roles:
        """The fields that say when, how bad, and what in one record: logs of several programs name them differently."""
        if self.log is not None or not isinstance(record, dict):
            return self.sampled.roles
        return roles_of([record])

    def columns(self, chosen: Sequence[str]) -> list[tuple[str, Path]]:
        """The columns of the list of records, by name: those that were chosen, or the most telling ones."""
        paths = [path for _, path in selection("columns", chosen[:_MOST])] if chosen else self.sampled.columns
        return [("" if path == ("",) else format_path(path), path) for path in paths]

    # --- scans -------------------------------------------------------------------------------------------------------

    def stale(self, operations: Sequence[Operation]) -> tuple[list[Operation], int]:
        """Which of these need indexes that are not there yet, and how many bytes must be read for them."""
        if len(self._fresh) > _REMEMBERED:
            self._fresh = set()
        new = [each for each in operations if each.identity not in self._fresh]
        size = self.db.explain(self.db.query(or_(*new)).question).scan_bytes if new else 0
        if not size:
            self._fresh |= {each.identity for each in new}
        return (new, size) if size else ([], 0)

    def prepare(self, operations: Sequence[Operation], cancel: threading.Event) -> None:
        """Build the indexes of all of these, in one scan. Raises QueryCancelled, LogError."""
        self.db.count(or_(*operations), cancel=cancel)
        self._fresh |= {each.identity for each in operations}

    def known(self, state: int | None, name: str, find: Callable[[], Known]) -> Known:
        """What `find` gives, found once for each state of the log; anew of many logs, which have no name of it."""
        if state is None:
            return find()
        held = self._known
        if held[0] != state:
            held = self._known = state, {}
        if name not in held[1]:
            held[1][name] = find()
        return cast("Known", held[1][name])

    # --- places ------------------------------------------------------------------------------------------------------

    def place(self, where: Any) -> Any:
        """A record's place as the page gets it: its offset, or the number of its file and that."""
        if self.log is not None:
            return where
        with self._lock:
            if where.path not in self._files:
                self._files.append(where.path)
            return [self._files.index(where.path), where.offset]

    def file_of(self, place: Any) -> str:
        """The path of the file that a record is in. Raises Refused."""
        return str(self.log.path) if self.log is not None else self._files[self.checked_place(place)[0]]

    @contextmanager
    def at(self, place: Any) -> Iterator[tuple[JITDB, Operation]]:
        """The log of the record at this place, and the operation that is true of it alone. Raises Refused, LogError."""
        number, offset = self.checked_place(place)
        if isinstance(self.db, JITDB):
            yield self.db, offsets([offset])
        else:
            with self.db.using(self._files[number]) as db:
                yield db, offsets([offset])

    def checked_place(self, place: Any) -> tuple[int, int]:
        """The number of the file, and the offset in it."""
        number, offset = place if isinstance(place, list) and len(place) == 2 else (0, place)
        is_one = isinstance(place, int) == (self.log is not None)
        whole = all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in (number, offset))
        if not is_one or not whole or offset >= 1 << 63 or (self.log is None and number >= len(self._files)):
            raise Refused(HTTPStatus.BAD_REQUEST, "a place is one that an answer said")
        return number, offset

    # --- what goes on ------------------------------------------------------------------------------------------------

    def about(self) -> dict[str, Any]:
        """What the head of the page says of the logs."""
        if isinstance(self.db, LogSet):
            members = self.db.members
            sizes = [member.size for member in members[:_SIZED]]
            return {"files": len(members), "bytes": sum(sizes) if len(members) <= _SIZED else 0}
        return {"files": 1, "bytes": size_at(self.log.path)}

    def progress(self) -> dict[str, Any]:
        """How far a scan is."""
        if isinstance(self.db, LogSet):
            done, total = self.db.scanning
            return {"part": "progress", "done": done, "total": total, "unit": "files"}
        status = self.db.status
        is_busy = status.state != "idle"
        return {"part": "progress", "done": is_busy * status.done, "total": is_busy * status.total, "unit": "bytes"}

    def warm(self) -> None:
        """Take the sample, and load what answers, before anybody asks; what is wrong is said to who does."""

        def take() -> None:
            with suppress(JitdbError, OSError):
                sampled = self.sampled
                _ = sampled.columns
                sampled.db.facets(fields=sampled.facet_batches[0])

        threading.Thread(target=take, name="jitdb explorer", daemon=True).start()

    def close(self) -> None:
        """Remove the sample; one that is taken just now removes itself when the program ends."""
        if self._lock.acquire(timeout=_LAST):
            try:
                for sampled in self._samples.values():
                    sampled.close()
            finally:
                self._lock.release()


def optional_text(body: dict[str, Any], name: str) -> str | None:
    """A text of a request that may be left out. Raises Refused."""
    found = body.get(name)
    if found is None or found == "":
        return None
    if not isinstance(found, str) or len(found) > _LONGEST:
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name} is text of at most {_LONGEST:,} characters")
    return found


def number(body: dict[str, Any], name: str, usual: int, most: int) -> int:
    """A number of a request, 0 or more, and not more than `most`. Raises Refused."""
    found = body.get(name, usual)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= most:
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name} is a whole number from 0 to {most:,}")
    return found


def texts(body: dict[str, Any], name: str, most: int = 100) -> list[str]:
    """A list of texts of a request. Raises Refused."""
    found = body.get(name, [])
    if not isinstance(found, list) or len(found) > most or not all(isinstance(each, str) for each in found):
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name} is a list of at most {most} texts")
    return found
