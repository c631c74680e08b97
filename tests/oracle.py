"""The plain, slow, obvious engine that the real one is compared with: decode every record, ask every question of it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from mask_oracle import fits, mask

from jitdb.common.paths import Cast
from jitdb.common.times import as_text, time_of
from jitdb.common.values import UNDEFINED
from jitdb.errors import DecodeError
from jitdb.log.codecs import get_codec
from jitdb.operators.nodes.anywhere import Anywhere
from jitdb.operators.nodes.compare import Between, Compare
from jitdb.operators.nodes.equal import Absent, Equal, Includes, IsIn
from jitdb.operators.nodes.fits import Fits
from jitdb.operators.nodes.instants import Instant
from jitdb.operators.nodes.levels import CompareLevel
from jitdb.operators.nodes.operation import And, Everything, Not, Operation, Or
from jitdb.operators.nodes.positions import Offsets, Seqs
from jitdb.operators.nodes.predicate import Predicate
from jitdb.operators.nodes.selection import SortKey
from jitdb.operators.nodes.text_match import TextMatch

MISSING = object()


def fields(record: Any, path: Sequence[str | int | None]) -> list[Any]:
    """All that a path leads to; JavaScript's undefined is nothing."""
    if not path:
        return [] if record is UNDEFINED else [record]
    step, *rest = path
    if isinstance(step, Cast):
        inside = list(cast_of(step.name, record))
    elif isinstance(step, str):
        inside = [record[step]] if isinstance(record, dict) and step in record else []
    elif not isinstance(record, (list, tuple)) or hasattr(record, "code"):
        inside = []
    else:
        inside = list(record) if step is None else list(record[step : step + 1])
    return [found for value in inside for found in fields(value, rest)]


def cast_of(name: str, value: Any) -> Iterator[Any]:
    """What a value is when it is taken for something else, or nothing."""
    if name == "number" and (number := number_in(value)) is not None:
        yield number
    if name == "time" and (time := time_of(value)) is not None and math.isfinite(time):
        yield as_text(time)
    if name == "duration" and isinstance(value, str) and (seconds := seconds_in(value)) is not None:
        yield seconds
    if name == "text" and isinstance(value, str):
        yield value
    if name == "pattern" and isinstance(value, str):
        yield mask(value)
    if name == "text" and isinstance(value, bool):
        yield str(value).lower()
    elif name == "text" and is_number(value):
        is_whole = math.isfinite(value) and value == int(value) and -(2**63) <= value < 2**64
        yield json.dumps(int(value) if is_whole else float(value))
    if name == "json" and isinstance(value, str):
        with suppress(DecodeError):
            yield get_codec("json").decode(value.encode("utf-8", "surrogateescape"))


_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 6 * 10**10, "min": 6 * 10**10,
          "h": 36 * 10**11, "d": 864 * 10**11, "w": 6048 * 10**11}  # fmt: skip


def _parts_of_length(text: str) -> list[str] | None:
    """Weeks, days, hours, minutes, seconds, and the digits of a fraction, of 1.02:03:04.5 or P1DT2H3M4.5S."""
    text = text.replace(",", ".")
    if text.startswith("P"):
        day, mark, clock = text[1:].partition("T")
        found = re.fullmatch("([0-9]+W)?([0-9]+D)?", day), re.fullmatch(r"([0-9]+H)?([0-9]+M)?([0-9.]+S)?", clock)
        if None in found or not (day or mark) or (mark and not clock):
            return None
        parts = [(part or "0W")[:-1] for match in found if match for part in match.groups()]
    else:
        day, dot, clock = text.partition(".") if "." in text.partition(":")[0] else ("0", "", text)
        if text.count(":") != 2 or not re.fullmatch(r"[0-9]+:[0-5][0-9]:[0-5][0-9]([.][0-9]+)?", clock):
            return None
        parts = ["0", day, *clock.split(":")]
    second, dot, fraction = parts[-1].partition(".")
    whole = [*parts[:-1], second]
    if not all(part.isdecimal() and len(part) <= 9 for part in whole) or (dot and not fraction.isdecimal()):
        return None
    return [*whole, fraction]


def seconds_in(text: str) -> float | None:
    """The seconds of a length of time such as 1h2m3.5s, each of its parts to the nearest nanosecond; or of 1.02:03:04.5
    or P1DT2H3M4.5S.
    """
    bare = text.removeprefix("-")
    if (":" in bare or "P" in bare) and (parts := _parts_of_length(bare)) is not None:
        *whole, fraction = parts
        units = ("w", "d", "h", "m", "s")
        exact = sum(int(part) * _UNITS[unit] for part, unit in zip(whole, units, strict=True))
        exact += int(fraction[:9].ljust(9, "0"))
        return None if exact >= 2**63 else float(-exact if text.startswith("-") else exact) / 10**9
    rest, total = text.removeprefix("-"), 0
    while rest:
        part = re.match(r"([0-9]+)([.][0-9]+)? ?([a-zµμ]+) ?", rest)
        if part is None or part[3] not in _UNITS:
            return None
        rest, unit = rest[part.end() :], _UNITS[part[3]]
        total += round(float(part[1] + part[2]) * unit) if part[2] else int(part[1]) * unit
    if text in ("", "-") or total >= 2**63:
        return None
    return float(-total if text.startswith("-") else total) / 10**9


def field(record: Any, path: Sequence[str | int | None]) -> Any:
    """The one value at a path, or MISSING."""
    assert None not in path
    return (fields(record, path) or [MISSING])[0]


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number_in(value: Any) -> int | float | None:
    """The number that a value is, or that its text spells as JSON writes numbers; None where there is none."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?", value):
        whole = int(value) if value.lstrip("+-").isdigit() and len(value) < 1000 else 2**64
        return whole if -(2**63) <= whole < 2**64 else float(value)
    return value if is_number(value) else None


LEVELS = {
    "trace": "trace verbose finer finest trc vrb v t trce trac",
    "debug": "debug fine config d d1 d2 d3 d4 d5 debug1 debug2 debug3 debug4 debug5 dbg dbug debu .",
    "info": "info information informational i log inf system - statement detail hint context query location",
    "notice": "notice note success deprecated audit a n * connect hinweis",
    "warn": "warn warning w wrn # warnung avertissement advertencia",
    "error": "error err severe e erro fail fehler erreur",
    "critical": "critical crit fatal panic dpanic f ftl fata crt fault c pani",
    "alert": "alert",
    "emerg": "emerg emergency",
}
LEVELS_OF_PHP = {
    "notice": ["strict standards"],
    "warn": ["core warning", "compile warning"],
    "error": ["parse error", "recoverable fatal error", "catchable fatal error"],
    "critical": ["fatal error", "core error", "compile error"],
}


def rank_of(value: Any, key: str) -> float | None:
    """How bad a level is, under this key; None for what is no level."""
    order = list(LEVELS)
    if isinstance(value, str):
        for name, others in LEVELS.items():
            if value.strip().lower() in [*others.split(), *LEVELS_OF_PHP.get(name, [])]:
                return order.index(name)
        if len(value) > 32:
            return None
    number = number_in(value)
    if number is None or not math.isfinite(number):
        return None
    if key == "severityNumber":
        names = ["trace", "debug", "info", "warn", "error", "critical"]
        return order.index(names[(int(number) - 1) // 4]) if number == int(number) and 1 <= number <= 24 else None
    if number == int(number) and 0 <= number <= 7:
        syslog = ["emerg", "alert", "critical", "error", "warn", "notice", "info", "debug"]
        return order.index(syslog[int(number)])
    if key == "PRIORITY" or number < 10:
        return None
    if number >= 100:
        return _rank_of_hundreds(number, key)
    known = {10: "trace", 20: "debug", 30: "info", 40: "warn", 50: "error", 60: "critical"}
    if number >= 60:
        return order.index("critical")
    below = int(number) // 10 * 10
    low, high = order.index(known[below]), order.index(known[below + 10])
    return low + (number - below) / 10 * (high - low)


def _rank_of_hundreds(number: float, key: str) -> float:
    names = ["debug", "info", "notice", "warn", "error", "critical", "alert", "emerg"]
    if number >= 5000:
        names = ["trace", "debug", "info", "warn", "error", "critical"]
        numbers = [5000, 10_000, 20_000, 30_000, 40_000, 50_000]
    elif key == "severity":
        numbers = [100, 200, 300, 400, 500, 600, 700, 800]
    elif 700 <= number <= 1000:
        names, numbers = ["debug", "info", "warn", "error"], [700, 800, 900, 1000]
    else:
        numbers = [100, 200, 250, 300, 400, 500, 550, 600]
    ranks = [list(LEVELS).index(name) for name in names]
    for low, high, rank, above in zip(numbers, numbers[1:], ranks, ranks[1:], strict=False):
        if low <= number < high:
            return rank + (number - low) / (high - low) * (above - rank)
    return ranks[-1]


def same(left: Any, right: Any) -> bool:
    """Equality by value, not by Python: True is not 1, NaN is NaN, a string is not bytes."""
    if is_number(left) and is_number(right):
        return bool(left == right or (left != left and right != right))
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    return type(left) is type(right) and bool(left == right)


class Oracle:
    """All records of a log: `records[seq]` is the decoded value, or None in `live` where it is deleted."""

    def __init__(
        self,
        records: Sequence[Any],
        offsets: Sequence[int],
        deleted: set[int],
        timestamp: Sequence[Sequence[str]] = (("timestamp",), ("value", "timestamp")),
        sequence: Sequence[str] = ("value", "sequence"),
        unit: str = "auto",
    ) -> None:
        self.records = records
        self.offsets = offsets
        self.deleted = deleted
        self.timestamp = timestamp
        self.sequence = sequence
        self.unit = unit
        self._asked: tuple[Operation | None, list[int]] = (None, [])  # the last question, which tests ask in each order

    def time_of(self, record: Any) -> float | int | None:
        """Nanoseconds since 1970; or with the unit "number" the number."""
        values = [field(record, path) for path in self.timestamp]
        if self.unit == "number":
            return self.smallest_number(record)
        return min((time for value in values if (time := time_of(value, self.unit)) is not None), default=None)

    def smallest_number(self, record: Any) -> float | int | None:
        """Of the fields that say when a record was made, as a number."""
        values = [number_in(field(record, path)) for path in self.timestamp]
        return min((value for value in values if value is not None and value == value), default=None)

    def holds(self, operation: Operation, seq: int) -> bool:
        record = self.records[seq]
        if isinstance(operation, And):
            return all(self.holds(arg, seq) for arg in operation.args)
        if isinstance(operation, Or):
            return any(self.holds(arg, seq) for arg in operation.args)
        if isinstance(operation, Not):
            return not self.holds(operation.arg, seq)
        if isinstance(operation, Everything):
            return True
        if isinstance(operation, Seqs):
            return seq in set(operation)
        if isinstance(operation, Offsets):
            return self.offsets[seq] in set(operation)
        if isinstance(operation, Compare):
            return self._compare(operation.op, operation.index, operation.value, seq)
        if isinstance(operation, Between):
            return self._compare("gte", operation.index, operation.low, seq) and self._compare(
                "lte", operation.index, operation.high, seq
            )
        if isinstance(operation, CompareLevel):
            bound = rank_of(operation.value, "")
            ranks = [rank_of(value, str(operation.index[-1])) for value in fields(record, operation.index)]
            return any(_compared(operation.op, rank, bound) for rank in ranks)
        if isinstance(operation, Anywhere):
            return any(text_within(operation, held) for held in scalars(record))
        assert isinstance(operation, (Equal, IsIn, Includes, Absent, Predicate, TextMatch, Fits))
        (path,) = operation.paths
        found = fields(record, path)
        if isinstance(operation, Absent):
            return not found
        return any(self._value_holds(operation, value) for value in found)

    def _value_holds(self, operation: Equal | IsIn | Includes | Predicate | TextMatch | Fits, value: Any) -> bool:
        if isinstance(operation, IsIn):
            return any(same(value, each) for each in operation.value)
        if isinstance(operation, Predicate):
            return bool(operation.fn(value))
        if isinstance(operation, TextMatch):
            return text_matches(operation, value)
        if isinstance(operation, Fits):
            return fits(operation.value, value)
        if isinstance(operation, Equal) or not isinstance(value, (list, tuple)):
            return same(value, operation.value)
        items = [item for element in value for item in fields(element, operation.pluck or ())]
        return any(same(item, operation.value) for item in items)

    def _compare(self, op: str, index: Any, bound: Any, seq: int) -> bool:
        record, declared = self.records[seq], index == "timestamp"
        if declared and self.unit != "number":
            values = [self.times[seq]]
            bound = bound.time if isinstance(bound, Instant) else time_of(bound, self.unit)
        elif isinstance(bound, Instant):
            unit = "auto" if self.unit == "number" else self.unit
            values, bound = [time_of(value, unit) for value in fields(record, index)], bound.time
        else:
            path = self.sequence if index == "sequence" else index
            values = [self.times[seq]] if declared else fields(record, path)
        return any(_compared(op, value, bound) for value in values)

    def matches(self, operation: Operation) -> list[int]:
        if self._asked[0] is not operation:
            live = (seq for seq in range(len(self.records)) if seq not in self.deleted)
            self._asked = (operation, [seq for seq in live if self.holds(operation, seq)])
        return list(self._asked[1])

    @cached_property
    def times(self) -> list[float | int | None]:
        """Of each record."""
        return [self.time_of(record) for record in self.records]

    def ordered(self, operation: Operation, *, descending: bool = False, arrival: bool = False) -> list[int]:
        """The matching seqs in the order of the answers."""

        def key(seq: int) -> tuple[int, Any, int]:
            time = None if arrival else self.times[seq]
            return (0, 0, seq) if time is None else (1, time, seq)

        return sorted(self.matches(operation), key=key, reverse=descending)

    def sorted_by(self, operation: Operation, keys: Sequence[SortKey], *, descending: bool = False) -> list[int]:
        """The matching seqs, sorted by fields."""
        seqs = self.matches(operation)
        if descending:
            seqs.reverse()
        for key in reversed(keys):
            placed = {seq: place_of(field(self.records[seq], key.path)) for seq in seqs}
            there = [seq for seq in seqs if placed[seq] is not None]
            there.sort(key=lambda seq: placed[seq], reverse=key.descending != descending)
            seqs = there + [seq for seq in seqs if placed[seq] is None]
        return seqs


def place_of(value: Any) -> tuple[Any, ...] | None:
    """Where a value stands among others: the lesser comes first. None: nowhere."""
    if value is MISSING or value is None or is_nan(value):
        return None
    number = number_in(value)
    if number is not None:
        return (0, number)
    if (time := time_of(value)) is not None:
        return (1, time)
    if isinstance(value, str):
        return (2, value.encode("utf-8", "surrogateescape"))
    if isinstance(value, bool):
        return (4 if value else 3,)
    return (5, value) if isinstance(value, bytes) else (6,)


def scalars(value: Any) -> Iterator[Any]:
    """All values in it that are no arrays and no maps."""
    if isinstance(value, dict):
        for held in value.values():
            yield from scalars(held)
    elif isinstance(value, (list, tuple)) and not hasattr(value, "code"):
        for held in value:
            yield from scalars(held)
    else:
        yield value


def text_within(operation: Anywhere, value: Any) -> bool:
    """Whether a scalar's text has the text in it."""
    if isinstance(value, bytes) or hasattr(value, "code"):
        return operation.value.encode() in (value if isinstance(value, bytes) else value.data)
    if not isinstance(value, str):
        value = "null" if value is UNDEFINED else json.dumps(value)
    if operation.ignore_case:
        return operation.value.casefold() in value.casefold()
    return operation.value in value


def text_matches(operation: TextMatch, value: Any) -> bool:
    pattern: Any = operation.value
    if type(value) is not type(pattern):
        return False
    if operation.op == "matches":  # `$` is the end in RE2, in Python the place before a last newline too
        ends = re.sub(r"(?<!\\)\$", r"\\Z", pattern)
        flags = re.IGNORECASE if operation.ignore_case else 0
        if "\\b" in pattern or "\\B" in pattern:  # RE2's words are of ASCII
            flags |= re.ASCII
        return re.search(ends, value, flags) is not None
    if operation.ignore_case:
        pattern, value = pattern.casefold(), value.casefold()
    if operation.op == "contains":
        return pattern in value
    if operation.op == "starts_with":
        return bool(value.startswith(pattern))
    if operation.op == "ends_with":
        return bool(value.endswith(pattern))
    tokens = re.findall(r"\\.|.", pattern, re.DOTALL)
    written = "".join({"%": ".*", "_": "."}.get(token, re.escape(token[-1])) for token in tokens)
    return re.fullmatch(written, value, re.DOTALL) is not None


def _compared(op: str, value: Any, bound: Any) -> bool:
    value = number_in(value)
    if value is None or value != value:
        return False
    return {"gt": value > bound, "gte": value >= bound, "lt": value < bound, "lte": value <= bound}[op]


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
