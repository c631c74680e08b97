"""Sets of records of several logs: each log's own records, kept beside it under the same name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.words import shown
from jitdb.errors import QueryError, SetNotFound
from jitdb.logset.asking import Asking
from jitdb.logset.merging import Place, shared_places, with_shared, without
from jitdb.operators.nodes.positions import offsets
from jitdb.operators.sets import Members, MembersOfLogs, NamedSets, RecordSet, Sizes

if TYPE_CHECKING:
    import threading

    from jitdb.engine.answering.firsts import Firsts
    from jitdb.engine.database import JITDB
    from jitdb.logset.bundling import Part
    from jitdb.operators.question import Question
    from jitdb.operators.summaries.summary import Keys

_KEPT: Final = {"&": (False, False), "|": (True, True), "-": (True, False), "^": (True, True)}  # of one, of the other


class LogSetRecordSet(RecordSet, MembersOfLogs):
    """Records of the logs of a set. Records of a log that is gone are gone, too."""

    __slots__ = ("logs",)

    logs: Asking

    def __init__(self, logs: Asking, parts: Mapping[str, Members]) -> None:
        # Without the databases, which may be closed in between.
        self._keep({path: Members(part.log, part.generation, part.packed) for path, part in parts.items()})
        object.__setattr__(self, "logs", logs)

    def __len__(self) -> int:
        return sum(db.count(self.parts[path]) for path, db in self.logs.each(self.parts))

    def __iter__(self) -> Iterator[Place]:
        """Their places, in the order of the paths, and in each log in its own."""
        for path, db in self.logs.each(self.parts):
            yield from [Place(path, offset) for offset in db.record_set(self.parts[path])]

    def __contains__(self, place: object) -> bool:
        if not isinstance(place, tuple) or len(place) != 2 or place[0] not in self.parts:
            return False
        return any(place[1] in db.record_set(self.parts[path]) for path, db in self.logs.each([place[0]]))

    def _combined(self, other: LogSetRecordSet, how: str) -> LogSetRecordSet:
        keeps_one, keeps_other = _KEPT[how]
        found: dict[str, Members] = {}
        for path, db in self.logs.each({**self.parts, **other.parts}):
            one, two = self.parts.get(path), other.parts.get(path)
            if one is not None and two is not None:
                found[path] = db.record_set(one)._combined(db.record_set(two), how)
            elif one is not None and keeps_one:
                found[path] = one
            elif two is not None and keeps_other:
                found[path] = two
        return LogSetRecordSet(self.logs, found)

    def _sizes(self, other: LogSetRecordSet) -> Sizes:
        sizes = Sizes(0, 0, 0)
        for path, db in self.logs.each({**self.parts, **other.parts}):
            one, two = (db.record_set(each.parts.get(path, _NOTHING)) for each in (self, other))
            sizes = Sizes(*map(sum, zip(sizes, one._sizes(two), strict=True)))
        return sizes


def firsts_of_logs(
    logs: Asking, question: Question, cancel: threading.Event | None
) -> tuple[LogSetRecordSet, int, int]:
    """See Asker._firsts: of the first records that each log has, those that come first of all."""
    assert question.dedup is not None
    is_last = question.dedup.last

    def one(db: JITDB, part: Part) -> tuple[str, Firsts]:
        shared = shared_places(question, part.member)
        own = without(question, shared).changed(db=db, operation=part.operation)
        found = db.firsts(own, cancel, part.member.fields)
        if shared:
            found = found._replace(places=[with_shared(place, shared) for place in found.places])
        return part.member.path, found

    parts = logs.of_each(logs.parts(question.operation), one, question.dedup)
    best: dict[Keys, tuple[Any, int, int]] = {}  # what orders it, of which log, and its number there
    for number, (_, found) in enumerate(parts):
        for at, (keys, place) in enumerate(zip(found.keys, found.places, strict=True)):
            known = best.get(keys)
            if known is None or (place < known[0]) != is_last:  # of equal ones that of the later log is the last
                best[keys] = place, number, at
    chosen: list[list[int]] = [[] for _ in parts]
    for _, number, at in best.values():
        chosen[number].append(at)
    held = zip(parts, chosen, strict=True)
    members = {path: Members(*found.packed(some)) for (path, found), some in held if some}
    return LogSetRecordSet(logs, members), len(best), sum(found.total for _, found in parts)


_NOTHING: Final = offsets([])


def set_of_places(logs: Asking, places: Iterable[Place]) -> LogSetRecordSet:
    """The records at these places."""
    by_path: dict[str, list[int]] = defaultdict(list)
    for path, offset in places:
        by_path[path].append(offset)
    return LogSetRecordSet(logs, {path: db.record_set(offsets(by_path[path])) for path, db in logs.each(by_path)})


class SavedLogSets(NamedSets[LogSetRecordSet]):
    """Sets of records that a set of logs keeps: each log its own part, under the same name. They are written log by
    log, so a reader may meanwhile see the new part of one log and the old part of another.
    """

    def __init__(self, logs: Asking) -> None:
        self._logs = logs

    def _each(self) -> Iterator[tuple[str, JITDB]]:
        return self._logs.each(member.path for member in self._logs.members)

    def __getitem__(self, name: str) -> LogSetRecordSet:
        """Raises SetNotFound where no log has one, LogCorrupt for a damaged file."""
        parts = {path: db.sets[name] for path, db in self._each() if name in db.sets}
        if not parts:
            raise SetNotFound(f"no set is kept as {shown(name)} by any of the logs")
        return LogSetRecordSet(self._logs, parts)

    def __setitem__(self, name: str, value: LogSetRecordSet) -> None:
        if not isinstance(value, LogSetRecordSet):
            raise QueryError(f"what is kept by a name is a set of records of these logs, not {shown(value)}")
        is_kept = False
        for path, db in self._each():
            part = value.parts.get(path)
            if part is not None:
                db.sets[name] = db.record_set(part)
                is_kept = True
            elif name in db.sets:
                del db.sets[name]
        if not is_kept:  # the first one keeps that there is one, of no records
            for _, db in self._each():
                db.sets[name] = db.record_set(_NOTHING)
                break

    def __delitem__(self, name: str) -> None:
        is_found = False
        for _, db in self._each():
            if name in db.sets:
                del db.sets[name]
                is_found = True
        if not is_found:
            raise SetNotFound(f"no set is kept as {shown(name)} by any of the logs")

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({name for _, db in self._each() for name in db.sets}))

    def __len__(self) -> int:
        return len(list(iter(self)))
