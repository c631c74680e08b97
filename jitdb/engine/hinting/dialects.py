"""A question in another dialect: `level` where other logs, or other records, say `severity`; `log.level` where the dot
is a part of the key. The first records of each log show it. The answer stays what was asked for; the note on it says
what asks all of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias

from jitdb.common.paths import ANY, Path, format_path
from jitdb.common.times import has_date, time_of, unit_of
from jitdb.common.values import UNDEFINED, number_of, value_at, value_key, values_at
from jitdb.common.words import counted, shown
from jitdb.engine.roles import (
    has_other_names,
    in_its_place,
    is_of_requests,
    is_time_name,
    is_usual,
    plain_key,
    time_meant,
)
from jitdb.operators.nodes.compare import Range, between, gte, lt
from jitdb.operators.nodes.equal import Absent, Equal
from jitdb.operators.nodes.instants import Instant, span_of
from jitdb.operators.nodes.levels import rank_of_name
from jitdb.operators.nodes.operation import VALUES, And, Operation, Or, combine
from jitdb.operators.summaries.fields import fields_in

_OF_MANY: Final = ("id", "name", "type", "value", "key", "kind", "count", "size", "text")  # keys of many things
_WORD: Final = r"[A-Z]+s?(?![a-z])|[A-Z]?[a-z]+|\d+"
_LAST: Final = 3  # words of a key that say what it is
_UNITS: Final = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

_OF_UNITS: Final = re.compile(
    r"s|secs?|seconds|[mun]s|millis|micros|nanos|(?:milli|micro|nano)seconds|minutes|bytes|[kmg]b"
)

#: For a field, those that stand in its place, each with the logs in which it does; of one log with none.
Elsewhere: TypeAlias = dict[Path, dict[Path, list[str]]]


def may_differ(paths: Iterable[Path]) -> list[Path]:
    """Those of these fields that others may name otherwise."""
    return [path for path in dict.fromkeys(paths) if is_usual(path) or _has_dot(path)]


def _has_dot(path: Path) -> bool:
    return all(isinstance(step, str) for step in path) and "." in _joined(path)


def _joined(path: Path) -> str:
    return ".".join(map(str, path))


def in_place_of(path: Path, records: Collection[Any]) -> Path | None:
    """The field that those of these records have which lack this one.

    >>> in_place_of(("level",), [{"level": "info"}, {"severity": "ERROR"}])
    ('severity',)
    >>> in_place_of(("level",), [{"severity": "DEFAULT"}, {"severity": "CRITICAL"}])
    ('severity',)
    """
    lacking = [record for record in records if value_at(record, path) is UNDEFINED]
    together = in_its_place(path, fields_in(lacking)) if lacking else None  # by the first value of each field
    each = (in_its_place(path, fields_in([record])) for record in lacking)
    return together or next((found for found in each if found is not None), None)


def is_called_so(path: Path) -> bool:
    """Whether others are known to have this field by another name."""
    return has_other_names(path) or _has_dot(path)


def is_of_text(record: Any) -> bool:
    """Whether it is of a line whose level stands somewhere in its text."""
    if not isinstance(record, dict):
        return False
    in_container = record.get("message", record.get("log")) if "stream" in record else None
    return isinstance(record.get("text", record.get("CONTENT", in_container)), str)


def called_in(paths: Iterable[Path], records: Collection[Any]) -> dict[Path, Path]:
    """What those of these fields are called in these records of one log that lack them."""
    ways = in_place_of, _of_requests, _renamed, _in_arrays
    found = {path: next(filter(None, (way(path, records) for way in ways)), None) for path in paths}
    return {path: other for path, other in found.items() if other is not None}


def _in_arrays(path: Path, records: Iterable[Any]) -> Path | None:
    """The field of any element, where one of the records is an array of which one has it."""
    arrays = (record for record in records if isinstance(record, list))
    return (ANY, *path) if any(values_at(record, (ANY, *path)) for record in arrays) else None


def _renamed(path: Path, records: Iterable[Any]) -> Path | None:
    """The field beside this one that all of these records have which lack it, and no other one has, if the name of one
    begins or ends with that of the other, and their values are alike: `duration_ms` in the place of `ms`.

    >>> _renamed(("ms",), [{"ms": 5}, {"duration_ms": 7}])
    ('duration_ms',)
    >>> _renamed(("ms",), [{"ms": 5}, {"duration_ms": 7}, {"event": "start"}])
    """
    having, lacking = _parted(path, records)
    there, known = fields_in(having), fields_in(lacking)
    if path not in there or not known:
        return None
    found = (
        other for other, value in known.items()
        if other not in there and _is_longer(path, other) and _are_alike(value, there[path])
    )  # fmt: skip
    every = (other for other in found if all(value_at(record, other) is not UNDEFINED for record in lacking))
    return next(every, path[:-1] if _was_plain(path, having, lacking) else None)


def _was_plain(path: Path, having: Iterable[Any], lacking: Iterable[Any]) -> bool:
    """Whether some records have a value of this field as that of the map around it: `user` beside `user.name`."""
    inside = {value_key(value_at(record, path)) for record in having}
    plain = (value_at(record, path[:-1]) for record in lacking if path[:-1])
    return any(value_key(value) in inside for value in plain if isinstance(value, str | int | float))


def have_one_unit(path: Path, other: Path) -> bool:
    """Whether the names of two fields have the same unit, or none.

    >>> have_one_unit(("duration_ms",), ("duration",)), have_one_unit(("ms",), ("duration_ms",))
    (False, True)
    """
    words = [re.findall(_WORD, str(each[-1])) for each in (path, other)]
    mine, theirs = ([word.lower() for word in each if _OF_UNITS.fullmatch(word.lower())] for each in words)
    return mine == theirs


def _is_longer(path: Path, other: Path) -> bool:
    """Whether fields of one map have names of which one has words before or behind those of the other."""
    if path[:-1] != other[:-1] or ANY in (path[-1], other[-1]) or str(path[-1]).lower() in _OF_MANY:
        return False
    short, long = sorted((re.findall(_WORD, str(each[-1])) for each in (path, other)), key=len)
    words = [[word.lower() for word in each] for each in (short, long)]
    return 0 < len(short) < len(long) and words[0] in (words[1][: len(short)], words[1][-len(short) :])


def _are_alike(value: Any, other: Any) -> bool:
    """Whether both are numbers, or neither is one."""
    return (number_of(value) is None) == (number_of(other) is None)


def _parted(path: Path, records: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """The records that have the field, and those that lack it."""
    having, lacking = list[Any](), list[Any]()
    for record in records:
        (lacking if value_at(record, path) is UNDEFINED else having).append(record)
    return having, lacking


def _of_requests(path: Path, records: Iterable[Any]) -> Path | None:
    """The field of requests that stands in this one's place in those of these records that lack it. Where one record
    has both, or their values are not alike, it is another thing: so is `job.status` beside `status`.
    """
    if not is_of_requests(path):
        return None
    having, lacking = _parted(path, records)
    there = fields_in(having)
    if not lacking or path not in there:
        return None
    known = {
        other: value for other, value in fields_in(lacking).items()
        if other not in there and 1 in (len(path), len(other)) and _are_alike(value, there[path])
    }  # fmt: skip
    return ends_so(path, known)


def asked_of(
    operation: Operation, others: Mapping[Path, Collection[Path]], missing: Collection[Path]
) -> Operation | None:
    """The question, asked of these other fields too; of the missing ones no longer. None if it has a function."""
    if any(leaf.function is not None for leaf in operation.leaves()):
        return None

    def both(leaf: Operation) -> Operation:
        path = next(iter(leaf.paths), None)
        if path is None or not others.get(path):
            return leaf
        kind = And if isinstance(leaf, Absent) else Or
        leaf = as_time(leaf)  # a number is a time of one unit, and other records may have another one, or text
        asked = [*([] if path in missing else [leaf]), *(_of_other(leaf, path, other) for other in others[path])]
        return combine(kind, tuple(map(within, asked) if is_time_name(path) else asked))

    return operation.replaced(both)


def as_time(leaf: Operation) -> Operation:
    """The leaf that compares a usual field of the time with the time that its number is; any other as it is.

    >>> as_time(gte(1_700_000_000, ("ts",)))
    gte('2023-11-14T22:13:20Z', 'ts')
    """
    path = next(iter(leaf.paths), ())
    if isinstance(leaf, Equal) and (time := time_meant(path, leaf.value)) is not None:
        return between(path, Instant(time), Instant(time))
    names = [name for name in VALUES if name in leaf.arguments] if isinstance(leaf, Range) else []
    times = {name: time_meant(path, getattr(leaf, name)) for name in names}
    if not times or None in times.values():
        return leaf
    return leaf.changed(**{name: Instant(time) for name, time in times.items() if time is not None})


def within(leaf: Operation) -> Operation:
    """The question whether the time is in the month, hour, minute or second that `==` names; any other leaf as it is.

    >>> from jitdb.operators import equal
    >>> within(equal("ts", "2026-11-20T14:01"))
    and_(gte('2026-11-20T14:01:00Z', 'ts'), lt('2026-11-20T14:02:00Z', 'ts'))
    """
    path = next(iter(leaf.paths), (ANY,))  # of several values the column knows the extremes only
    if not isinstance(leaf, Equal) or not isinstance(leaf.value, str) or ANY in path:
        return leaf
    span = span_of(leaf.value)
    return leaf if span is None else combine(And, (gte(span[0], path), lt(span[1], path)))


def _of_other(leaf: Operation, path: Path, other: Path) -> Operation:
    """The leaf, asked of another field. A level may be spelled otherwise there, so it is asked by how bad it is."""
    if isinstance(leaf, Equal) and is_usual(path) and _joined(path) != _joined(other) and ANY not in other:
        value = leaf.value
        if isinstance(value, str) and rank_of_name(value) is not None:
            return between(other, value, value)
    return leaf.of_field(other)


def held_otherwise(leaf: Operation, records: Iterable[Any]) -> str:
    """How these records hold a time that the leaf compares with a number which is none of theirs, in words: as text, or
    in another unit. Empty where they do not.
    """
    path = next(iter(leaf.paths), ())
    asked = [getattr(leaf, name) for name in VALUES if name in leaf.arguments]
    values = [value for record in records if (value := value_at(record, path)) is not UNDEFINED]
    name = f"`{format_path(path)}`"
    text = next((value for value in values if number_of(value) is None and time_of(value) is not None), None)
    if text is not None:
        return f"{name} holds times such as {shown(text)}, and numbers are compared with numbers alone"
    numbers = [number for value in values if (number := number_of(value)) is not None]
    held = dict.fromkeys(_how_written(number) for number in numbers if time_meant(path, number) is not None)
    wrong = [number for number in asked if held and _how_written(number) not in held]
    if not wrong:
        return ""
    size = "the digits of a date" if has_date(wrong[0]) else f"the size of {_UNITS[unit_of(wrong[0])]}"
    return f"{name} holds {' and '.join(held)}, and {wrong[0]} has {size}"


def _how_written(number: int | float) -> str:
    """How a number says a time, in words."""
    return "dates such as 20261120070000" if has_date(number) else f"{_UNITS[unit_of(number)]} since 1970"


def where_others(path: Path, others: Mapping[Path, Collection[str]]) -> str:
    """Where the field is called otherwise, in words."""
    return f"`{format_path(path)}` is called " + ", ".join(
        f"`{format_path(other)}` in {named_logs(logs)}" for other, logs in others.items()
    )


def no_time(logs: Collection[str]) -> str:
    """That these logs have no time that is known, in words."""
    return f"no time is found in the first records of {named_logs(logs)}: what is asked by time leaves them out"


def ends_so(path: Path, known: Mapping[Path, Any]) -> Path | None:
    """The one of these fields, given with a value of each, that probably says the same as this one, which is not among
    them: its name ends with the same key, or is a usual other one.

    >>> ends_so(("status",), {("http", "status"): 500}), ends_so(("status",), {("res", "statusCode"): 500})
    (('http', 'status'), ('res', 'statusCode'))
    >>> ends_so(("client_ip",), {("host",): "h", ("remote_addr",): "203.0.113.9"})
    ('remote_addr',)
    >>> ends_so(("id",), {("user", "id"): 5})
    """
    if path in known or not path or str(path[-1]).lower() in _OF_MANY:
        return None
    asked = plain_key(path[-1])
    found = [
        other for other, value in known.items()
        if ANY not in other and not isinstance(value, dict) and plain_key(str(other[-1]).rpartition(".")[2]) == asked
    ]  # fmt: skip
    return min(found, key=len, default=None)


def ends_in_words(path: Path, known: Mapping[Path, Any]) -> Path | None:
    """The one of these fields whose last words say the same as the key; of several that of the fewest words.

    >>> ends_in_words(("status",), {("ClientIP",): "203.0.113.9", ("EdgeResponseStatus",): 500})
    ('EdgeResponseStatus',)
    >>> ends_in_words(("status",), {("responseStatus", "code"): 500})
    ('responseStatus', 'code')
    >>> ends_in_words(("ip",), {("sourceIPs",): ["::1"], ("sourceIPs", ANY): "::1"})
    ('sourceIPs', None)
    """
    if not path or str(path[-1]).lower() in _OF_MANY:
        return None
    asked, found = plain_key(path[-1]), dict[Path, int]()
    for other, value in known.items():
        words = re.findall(_WORD, " ".join(str(step) for step in other if step is not ANY))
        ends = ["".join(words[-count:]) for count in range(1, _LAST + 1)]
        names = {plain_key(name) for end in ends for name in (end, end.removesuffix("s"))}
        if asked in names and not isinstance(value, dict | list):
            found[other] = len(words)
    return min(found, key=found.__getitem__, default=None)


def named_logs(logs: Collection[str]) -> str:
    """These logs in words; of one log, where they are none, its records without the field."""
    if not logs:
        return "records without it"
    first = next(iter(logs))
    return first if len(logs) == 1 else f"{first} and {counted(len(logs) - 1, 'more log', 'more logs')}"
