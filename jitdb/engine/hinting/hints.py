"""Fields and values that a question asks for and no record has, each with the one that was probably meant."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from jitdb.common.paths import ANY, CASTS, LOG_PATH, Path, Step, before_cast, format_path
from jitdb.common.spelling import nearest
from jitdb.common.times import length_of_text, time_of
from jitdb.common.values import UNDEFINED, number_of, number_of_text, value_at, values_at
from jitdb.common.words import counted, shown
from jitdb.engine.hinting.dialects import (
    Elsewhere,
    as_time,
    asked_of,
    ends_so,
    held_otherwise,
    in_place_of,
    is_of_requests,
    no_level,
    where_others,
    within,
)
from jitdb.engine.roles import in_its_place, is_level_name, time_meant
from jitdb.indexes.kinds import seen
from jitdb.operators.nodes.compare import Between, PlainBound, Range, gte, lt
from jitdb.operators.nodes.equal import Absent, Equal, Includes, IsIn, absent
from jitdb.operators.nodes.instants import Instant
from jitdb.operators.nodes.levels import CompareLevel, goes_by_size, rank_of_name
from jitdb.operators.nodes.operation import And, Not, Operation, Or, combine
from jitdb.operators.nodes.text_match import TextMatch
from jitdb.operators.summaries.fields import fields_in
from jitdb.operators.text.expression import format_expression

if TYPE_CHECKING:
    from jitdb.operators.question import Question

_LITERAL: Final = re.compile(r""" "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' """, re.VERBOSE | re.DOTALL)
_TEXTS: Final = (("text",), ("message",), ("log",))  # of lines of text, of Kubernetes, of Docker
_FEW: Final = 10  # records
_MOST_VALUES: Final = 100  # of a question that are looked for in other forms: nobody reads a note on more
OF_TEXT: Final = {("time",), ("level",), ("trace",), ("stream",), *_TEXTS}  # all fields of lines of text
_FILE: Final = ("file", "filename", "path", "filepath")  # names of what LOG_PATH is here
_NAMED_LEVELS: Final[Mapping[Step, tuple[tuple[str, ...], str]]] = {  # where another field has a level's name
    "Level": (("LevelDisplayName",), "syslog"),
    "priority": (("level",), "syslog"),  # of Snort
    "severity": (("severityText", "severity_text"), "syslog, pino or Google"),
}
_OF_NEXTCLOUD: Final = {("reqId",), ("remoteAddr",), ("userAgent",)}  # fields of its records
_NEXTCLOUD: Final = (1, 2, 4, 5, 6)  # ranks of its levels, from 0 on
_OF_LOGINS: Final = ("user", "username", "ip", "client_ip", "src_ip", "remote_addr", "port")
#: What sshd says, by whom and from where.
_SSHD: Final = (
    r"(?P<time>[A-Z]\S+ +\S+ \S+|\S+) \S+ sshd[^ ]*: (?P<text>.*?(?:for|user) (?:invalid user )?(?P<user>\S+) from "
    r"(?P<ip>\S+).*)"
)
_CLASS: Final = re.compile(r"([1-9])xx", re.IGNORECASE)  # of a status
#: Of a request, a trace, a session; no date, nor one with a time.
_ID: Final = r"(?=[^0-9]*[0-9])(?!\d{4}-\d\d-\d\d(?:T|$))[0-9A-Za-z][0-9A-Za-z-]{11,63}"
_STREAMS: Final = ("stdout", "stderr")  # of containers
_LONGEST: Final = 1 << 16  # characters of a text that is looked into
SAMPLE: Final = 200  # records that are looked at for the names of fields

#: What no record has of a field, which is all of it, or nothing that a column holds (it says nothing of null);
#: "" where some record has it, None where no index knows.
Lack: TypeAlias = Literal["", "the field", "a number or a time in"] | None


class Evidence(Protocol):
    """Of a log, or of several."""

    def lack(self, path: Path) -> Lack:
        """What all records lack of a field."""

    def has(self, leaf: Operation) -> bool:
        """Whether the leaf is known to be true of some live record."""

    def remarks(self, operation: Operation) -> list[str]:
        """How the values that it compares were taken."""

    def seen_in(self, path: Path) -> int:
        """What columns of the field's numbers saw beside numbers: bits of indexes/kinds/seen.py."""

    def spellings(self, leaf: Operation) -> list[Operation]:
        """The leaf with other values that may have been meant and that live records have, where indexes know them."""

    def elsewhere(self, operation: Operation, paths: Sequence[Path]) -> Elsewhere:
        """The fields that stand in the place of these in the first records of the logs that are asked."""

    def unleveled(self, operation: Operation) -> list[str]:
        """Of several: the logs that are asked whose first records have no level that is known, and words of levels."""

    def asked(self, operation: Operation, count: int) -> list[Any]:
        """At most so many records of the logs that are asked."""

    @property
    def convert(self) -> str:
        """The command that makes UTF-8 of the log's file."""

    def sample(self, count: int) -> list[Any]:
        """So many live records at most; none where there are none."""


def hints_of(evidence: Evidence, operation: Operation, paths: Iterable[Path] = ()) -> list[str]:
    """For an empty answer: a line for each field that no record has, and for each value that is there in another form.

    paths: further fields that were asked about
    """
    leaves = [leaf for leaf in operation.leaves() if leaf.paths]
    asked = (*operation.all_paths(), *paths)
    lacks = _lacks(evidence, asked)
    wrong = [leaf for leaf in leaves if leaf.names_value and not lacks.keys() & set(leaf.paths)]
    wrong = [leaf for leaf in wrong if not evidence.has(leaf)]
    found = _on_fields(evidence, operation, asked, lacks)
    records = evidence.sample(_FEW) if wrong else []  # an answer that is not empty may not read much for a note
    for leaf in wrong if fields_in(records) else ():
        if isinstance(leaf, Equal) and leaf.value is None and evidence.has(lacking := absent(leaf.paths[0])):
            name = f"`{format_path(leaf.paths[0])}`"
            found.append(f"no record has null in {name}, and some lack the field; did you mean `{typed(lacking)}`?")
        elif (meant := _meant(evidence, leaf, records)) is not None:
            found.append("; ".join(meant))
        elif (lowest := leaf.lowest()) is not None and not evidence.has(lowest[0]):
            found.append(lowest[1])
    return [*found, *_on_named_levels(evidence, operation, asked), *_on_ranges(operation)]


def _on_ranges(operation: Operation) -> Iterator[str]:
    """A line for each range whose lower bound is above its upper one. (Of an array, other elements may be in each.)"""
    parts = operation.children() if isinstance(operation, And) else (operation,)
    ranges = [part for part in parts if isinstance(part, Range) and not any(ANY in path for path in part.paths)]
    for index, of_times in dict.fromkeys((part.index, part.is_of_times) for part in ranges):
        asked = [part for part in ranges if (part.index, part.is_of_times) == (index, of_times)]
        bounds = [bound for part in asked for bound in part.bounds]
        low = max((bound for op, bound in bounds if op in ("gt", "gte")), key=_size, default=None)
        high = min((bound for op, bound in bounds if op in ("lt", "lte")), key=_size, default=None)
        if low is not None and high is not None and _size(low) > _size(high):
            name = "no time" if isinstance(index, str) else f"no value of `{format_path(index)}`"
            meant = isinstance(asked[0], Between) and len(asked) == 1
            swapped = f"; did you mean `{typed(asked[0].changed(low=high, high=low))}`?" if meant else ""
            yield f"{name} is above {low!r} and below {high!r} at once{swapped}"
    for part in operation.children():
        if part not in ranges:
            yield from _on_ranges(part)


def _size(bound: PlainBound) -> float:
    return bound.time if isinstance(bound, Instant) else bound


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _meant(evidence: Evidence, leaf: Operation, records: Collection[Any]) -> tuple[str, str] | None:
    """Why no record matches the leaf, and what was probably meant; None where nothing is known of that."""
    other = next((other for other in leaf.others() if evidence.has(other)), None)
    path, known = leaf.paths[0], fields_in(records)
    name, held = f"`{format_path(path)}`", known.get(path)
    if isinstance(other, IsIn):
        kind = "text, in quotes" if isinstance(other.value[0], str) else "numbers, without quotes"
        return f"none of the {len(other.value):,} values is in {name}", f"did you mean {kind}?"
    if other is not None:
        return f"no record has {typed(leaf)}", f"did you mean `{typed(other)}`?"
    if (*path, ANY) in known and (of_elements := leaf.of_elements()) is not None:
        return f"{name} holds arrays", f"did you mean `{typed(of_elements)}`?"
    if isinstance(held, dict):
        inside = _inside(path, known)
        found = next((each for each in map(leaf.of_field, inside) if _holds(each, records)), None)
        told = f"did you mean `{typed(found)}`?" if found is not None else "ask a field in them" + _such_as(inside)
        return f"{name} holds maps", told
    if isinstance(leaf, TextMatch) and isinstance(held, bool | int | float):
        of_text = leaf.of_field((*path, CASTS["text"]))
        return f"{name} holds no text, which `{leaf.op}` looks at", f"did you mean `{typed(of_text)}`?"
    if isinstance(leaf, Equal) and is_plain_number(held) and (status := _CLASS.fullmatch(_text(leaf.value))):
        low = 100 * int(status[1])
        meant = combine(And, (gte(low, path), lt(low + 100, path)))
        told = f"{name} holds numbers such as {held}, and {shown(leaf.value)} is text"
        return told, f"did you mean `{typed(meant)}`?"
    if (span := within(leaf)) is not leaf and any(_is_time(path, value_at(record, path)) for record in records):
        return f"no time in {name} is written {shown(getattr(leaf, 'value', None))}", f"did you mean `{typed(span)}`?"
    if path == ("stream",) and ("time",) in known and getattr(leaf, "value", None) in _STREAMS:
        more = evidence.sample(SAMPLE)  # few records have one
        texts = [text for text in (("message",), ("log",)) if any(_goes_on(record, text) for record in more)]
        finds = "present(trace)" if ("trace",) in fields_in(more) else ""
        finds = finds or next((f'{format_path(text)} contains "\\n"' for text in texts), "")
        told = f"records have the {name} of their first line, and stack traces on the other one belong to them"
        return (told, f"`{finds}` finds these") if finds else None
    return None


def is_plain_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_time(path: Path, value: Any) -> bool:
    return time_of(value) is not None and (number_of(value) is None or time_meant(path, number_of(value)) is not None)


def _goes_on(record: Any, path: Path) -> bool:
    """Whether a text of the record has several lines."""
    value = value_at(record, path)
    return isinstance(value, str) and "\n" in value


def _holds(leaf: Operation, records: Iterable[Any]) -> bool:
    """Whether it is true of one of these records."""
    return any(leaf.of_value(value_at(record, leaf.paths[0])) for record in records)


def _inside(path: Path, known: Iterable[Path]) -> list[Path]:
    """Those of these fields that are in the maps of this one."""
    return [other for other in known if other[: len(path)] == path != other and ANY not in other]


def _such_as(paths: Sequence[Path]) -> str:
    return f", such as `{format_path(paths[0])}`" if paths else ""


def hints_about(evidence: Evidence, question: Question, is_empty: bool) -> list[str]:
    """For any answer: a line for each field or value that no record has, or field whose text is taken as numbers."""
    operation = question.operation
    found = hints_of(evidence, operation) if is_empty else hints_on_fields(evidence, operation, operation.all_paths())
    compared = values_compared(evidence, operation, is_empty)
    odd = [*_on_unleveled(evidence, operation), *_on_encoding(evidence, operation)]
    return [*found, *compared, *odd, *number_hints(evidence, numbers_of(question))]


def _on_unleveled(evidence: Evidence, operation: Operation) -> list[str]:
    """A line for logs without a level that is known, but with words of levels in their text, where one is asked for;
    else one for each level that some records of text have, and others not.
    """
    asked = {
        path: None
        for leaf in operation.leaves() for path in leaf.paths if isinstance(leaf, CompareLevel) or is_level_name(path)
    }  # fmt: skip
    if logs := evidence.unleveled(operation) if asked else []:
        return [no_level(logs)]
    denied = {leaf.paths[0] for leaf in operation.leaves() if isinstance(leaf, Absent)}
    records = [record for record in evidence.sample(SAMPLE) if _is_of_text(record)] if asked else []
    return list(filter(None, (_partly_leveled(evidence, path, records) for path in asked if path not in denied)))


def _is_of_text(record: Any) -> bool:
    """Whether it is of a line whose level stands somewhere in its text."""
    return isinstance(record, dict) and isinstance(record.get("text", record.get("CONTENT")), str)


def _partly_leveled(evidence: Evidence, path: Path, records: Sequence[Any]) -> str:
    """The line about a level that some of these records of text lack, and no other field says; empty where none does,
    nor any other record, as an index of all levels knows.
    """
    lacking = [record for record in records if value_at(record, path) is UNDEFINED]
    if len(lacking) == len(records) or in_place_of(path, lacking):
        return ""
    if not lacking and not evidence.has(Not(CompareLevel(path, "gte", "trace"))):
        return ""
    which = f"{len(lacking):,} of {len(records):,} records looked at" if lacking else "some records"
    return f"no level is found in the text of {which}: `{typed(absent(path))}` finds these"


def replaced_in(record: Any) -> bool:
    """Whether a text of a record has a byte that is no UTF-8."""
    return any(isinstance(value, str) and "\ufffd" in value for value in fields_in([record]).values())


def _texts_of(leaf: Operation) -> Iterator[str]:
    """The texts that a leaf compares."""
    for name in leaf.arguments:
        value = getattr(leaf, name, None)
        yield from (each for each in (value if isinstance(value, list | tuple) else (value,)) if isinstance(each, str))


def _on_encoding(evidence: Evidence, operation: Operation) -> Iterator[str]:
    """A line where a text that is no ASCII is asked for, and some records have bytes that are no UTF-8."""
    texts = [text for leaf in operation.leaves() for text in _texts_of(leaf) if not text.isascii()]
    records = evidence.sample(SAMPLE) if texts else []
    if odd := sum(map(replaced_in, records)):
        which = f"{odd:,} of {counted(len(records), 'record', 'records')} looked at"
        yield (
            f"bytes that are no UTF-8 are read as U+FFFD, in {which}, so {shown(texts[0])} is not found where they "
            f"stand: make UTF-8 of the file first, say from Latin-1: {evidence.convert}"
        )


def hints_on_fields(evidence: Evidence, operation: Operation, paths: Sequence[Path]) -> list[str]:
    """For an answer that is not empty: a line for each of these fields that no record has, one for those that are
    called otherwise in some of the logs, and one for their values that are there in another form, too.

    The first matter here, too: `not`, `!=` and `is absent` are then true of all records, and `or` loses a part.
    """
    found = _on_fields(evidence, operation, paths, _lacks(evidence, paths))
    return [*found, *_on_values(evidence, operation, paths), *_on_named_levels(evidence, operation, paths)]


def _on_named_levels(evidence: Evidence, operation: Operation, paths: Collection[Path]) -> Iterator[str]:
    """A line where numbers of levels are compared that are of another scale than their field's: of Windows, where 3 is
    a warning, or of OpenTelemetry in `severity`. A field beside it has the names. And one where they are all below
    8, which is read as syslog's: other programs count from 0 up. GELF's are syslog's.
    """
    levels = (leaf for leaf in operation.leaves() if isinstance(leaf, CompareLevel))
    for leaf in dict.fromkeys(levels):
        names, scale = _NAMED_LEVELS.get(leaf.index[-1], ((), ""))
        known = fields_in(evidence.sample(SAMPLE)) if names and leaf.index in paths else {}
        named = next((path for name in names if is_known(path := (*leaf.index[:-1], name), known)), None)
        if named is not None and number_of(known.get(leaf.index)) is not None:
            name = format_path(leaf.index)
            yield f"numbers of `{name}` are read as those of {scale}; did you mean `{typed(leaf.of_field(named))}`?"
        elif leaf.index in paths and _is_of_syslog_alone(leaf.index, records := evidence.sample(SAMPLE)):
            yield _read_as_syslog(leaf, records)


def _read_as_syslog(leaf: CompareLevel, records: Sequence[Any]) -> str:
    """The line about numbers of levels that are read as syslog's, and are not, or may not be."""
    name = format_path(leaf.index)
    told = f"numbers of `{name}` are read as syslog's, where 0 is the worst and 3 an error: "
    if fields_in(records[:1]).keys() >= _OF_NEXTCLOUD:
        rank = rank_of_name(leaf.value) or 0
        number = bisect_left(_NEXTCLOUD, rank) if leaf.op in ("gte", "lt") else bisect_right(_NEXTCLOUD, rank) - 1
        meant = leaf.signs[0].format(number, name)
        return f"{told}Nextcloud's grow, from 0 (debug) to 4 (fatal); did you mean `{meant}`?"
    return f"{told}if they grow with how bad it is, compare them as numbers: `{name} >= 3`"


def _is_of_syslog_alone(path: Path, records: Sequence[Any]) -> bool:
    """Whether all levels in these records are numbers below 8, in a field that may have others."""
    if ("short_message",) in fields_in(records[:1]):
        return False
    numbers = [number_of(value) for record in records if (value := value_at(record, path)) is not UNDEFINED]
    return bool(numbers) and goes_by_size(path) and all(number in range(8) for number in numbers)


def _on_values(evidence: Evidence, operation: Operation, paths: Collection[Path]) -> list[str]:
    named_values = dict.fromkeys(leaf for leaf in operation.leaves() if leaf.names_value)  # others have no hash
    asked = [leaf for leaf in named_values if leaf.paths and leaf.paths[0] in paths][:_MOST_VALUES]
    denied = set(operation.denied_leaves())
    asked = [leaf for leaf in asked if leaf not in denied or evidence.has(leaf)]  # else denied_values() says it
    named, others = set(named_values), dict[Operation, list[Operation]]()
    for leaf in asked:
        others[leaf] = [other for other in dict.fromkeys(evidence.spellings(leaf)) if other not in named]
        named.update(others[leaf])
    told = ", ".join(f"`{typed(other)}`" for found in others.values() for other in found)
    if not told or any(leaf.function is not None for leaf in operation.leaves()):
        return []
    every = operation.replaced(lambda leaf: combine(Or, (leaf, *others.get(leaf, ()))))
    return [f"other records have {told}: `{typed(every)}` asks those, too"]


def _on_fields(
    evidence: Evidence, operation: Operation, paths: Sequence[Path], lacks: Mapping[Path, Lack]
) -> list[str]:
    told = _told(lacks, evidence.sample(SAMPLE)) if lacks else {}
    named = operation.all_paths()
    others = _called_otherwise(evidence, operation, paths)
    if not others:
        return list(told.values())
    instead = asked_of(operation, others, others.keys() & told.keys())
    for path in told.keys() & others.keys():
        meant = typed(instead) if instead is not None and path in named else " or ".join(map(format_path, others[path]))
        told[path] = f"no record has {lacks[path]} `{format_path(path)}`; did you mean `{meant}`?"
    partly = [where_others(path, found) for path, found in others.items() if path not in told]
    if not partly:
        return list(told.values())
    return [
        *told.values(),
        "; ".join(partly)
        + (f": `{typed(instead)}` asks those, too" if instead is not None else "")
        + _anywhere(operation),
    ]


def _anywhere(operation: Operation) -> str:
    """The question for a value in any field, in words, where one is asked for that is long and no word, as that of a
    request is, which other logs have, too; else empty.
    """
    values = (leaf.value for leaf in operation.leaves() if isinstance(leaf, Equal) and isinstance(leaf.value, str))
    found = next((value for value in values if re.fullmatch(_ID, value)), "")
    return f'; `* contains "{found}"` looks in all fields' if found else ""


def _called_otherwise(evidence: Evidence, operation: Operation, paths: Sequence[Path]) -> Elsewhere:
    """The other names of these fields that the question does not name itself; a function knows what it asks for."""
    of_functions = {path for leaf in operation.leaves() if leaf.function is not None for path in leaf.paths}
    asked = [path for path in dict.fromkeys(paths) if path not in of_functions]
    named = set(operation.all_paths())
    others: Elsewhere = {}
    for path, found in (evidence.elsewhere(operation, asked) if asked else {}).items():
        new = {other: logs for other, logs in found.items() if other not in named}
        if new:
            others[path] = new
            named |= new.keys()
    return others


def values_compared(evidence: Evidence, operation: Operation, is_empty: bool) -> list[str]:
    """For any answer: a line for each value that is denied or compared in a form in which no record has it."""
    return [*_on_times(evidence, operation), *(() if is_empty else _denied_values(evidence, operation))]


def _on_times(evidence: Evidence, operation: Operation) -> Iterator[str]:
    """A line for each number that a time is compared with and that is none of its unit: 1700000000 of milliseconds is
    above nothing, and 1700000000000 of seconds below all.
    """
    asked = {leaf: other for leaf in operation.leaves() if (other := as_time(leaf)) is not leaf}
    records = evidence.asked(operation, _FEW) if asked else []
    for leaf, other in asked.items():
        if why := held_otherwise(leaf, records):
            yield f"{why}; did you mean `{typed(other)}`?"


def _denied_values(evidence: Evidence, operation: Operation) -> list[str]:
    """A line for each value that is denied, that no record has, and that is there in another form.

    `status != 200` is true of all records where the status is text, and `level != "error"` where errors are 50.
    Whether a record has other values may take reads.
    """
    leaves = list(operation.denied_leaves())
    of_elements = {leaf.paths for leaf in leaves if isinstance(leaf, Includes)}  # `not in` denies `contains`, too
    denied = dict.fromkeys(leaf for leaf in leaves if leaf.names_value and leaf.paths and leaf.paths not in of_elements)
    wrong = [leaf for leaf in islice(denied, _MOST_VALUES) if not evidence.has(leaf)]
    records = evidence.sample(_FEW) if wrong else []  # an answer that is not empty may not read much for a note
    found = (_meant(evidence, leaf, records) for leaf in wrong if records)
    return [f"{why}, so `not` is true of all; {what}" for why, what in filter(None, found)]


def numbers_of(question: Question) -> list[Path]:
    """The fields whose values the question takes as numbers."""
    compared = (leaf.compared for leaf in question.operation.leaves())
    found: list[Any] = [each[0] for each in compared if each is not None and not each[1]]
    if question.summary is not None:
        found += question.summary.columns
    if not isinstance(question.order, bool):
        found += [key.path for key in question.order]
    return [path for path in dict.fromkeys(found) if isinstance(path, tuple)]


def number_hints(evidence: Evidence, paths: Iterable[Path]) -> list[str]:
    """For fields that were taken for numbers, a line for each with text that spells a number, or a length of time."""
    found = []
    for path in paths:
        bits = evidence.seen_in(path)
        if bits & seen.TEXTS:
            found.append(taken_as_numbers(path))
        elif bits & seen.OTHERS and (text := length_in(evidence, path)):
            name = format_path(path)
            found.append(
                f'`{name}` is text such as "{text}": `duration({name})` is the length of time in seconds, and '
                f"`{name} > 5ms` compares it"
            )
    return found


def map_hints(evidence: Evidence, paths: Iterable[Path]) -> list[str]:
    """For fields whose values are counted, a line for each that some of a few records hold a map in."""
    records, told = evidence.sample(_FEW), []
    for path in paths:
        held = [isinstance(value, dict) for record in records for value in values_at(record, path)]
        if any(held):
            maps = "maps" if all(held) else "maps in some records"
            meant = f"ask a field in them{_such_as(_inside(path, fields_in(records)))}"
            told.append(f"`{format_path(path)}` holds {maps}, and each different map counts as a value; {meant}")
    return told


def taken_as_numbers(path: Path) -> str:
    """The line about a field in which text is taken as the number that it spells."""
    return f"`{format_path(path)}` holds numbers written as text: taken as numbers here, and by == as text"


def length_in(evidence: Evidence, path: Path) -> str:
    """A length of time in the field, if most of its texts are some."""
    values = [value for record in evidence.sample(SAMPLE) for value in values_at(record, path)]
    texts = [value for value in values if isinstance(value, str)]
    lengths = [text for text in texts if length_of_text(text) is not None]
    return lengths[0] if 2 * len(lengths) > len(values) else ""


def missing_fields(evidence: Evidence, paths: Iterable[Path]) -> dict[Path, str]:
    """The fields among these that no record has, with a line for each.

    That matters to answers that are not empty, too: `not`, `!=` and `is absent` are then true of all records, and `or`
    loses a part.
    """
    lacks = _lacks(evidence, paths)
    return _told(lacks, evidence.sample(SAMPLE)) if lacks else {}


def _lacks(evidence: Evidence, paths: Iterable[Path]) -> dict[Path, Lack]:
    return {path: lack for path in dict.fromkeys(paths) if (lack := evidence.lack(path))}


def _told(lacks: Mapping[Path, Lack], records: Sequence[Any]) -> dict[Path, str]:
    """A line for each missing field; none where the records have no fields at all."""
    known = fields_in(records)
    missing = {path: lack for path, lack in lacks.items() if known and not is_known(path, known)}
    told = {path: unknown_field(f"no record has {lack}", path, known) for path, lack in missing.items()}
    return {path: _or_each(line, path, known) if len(records) == 1 else line for path, line in told.items()}


def _or_each(told: str, path: Path, known: Iterable[Path]) -> str:
    """The line about an unknown field of one document, with the array whose elements have it."""
    meant = nearest_field(path, known)
    if meant is None or ANY not in meant or meant[-len(path) :] != path:
        return told
    return f"{told.partition(';')[0]}; the elements of an array do: {as_records(meant)}"


def as_records(path: Path) -> str:
    """How the elements of the array in this path become records, in words."""
    array = format_path(path[: max(place for place, step in enumerate(path) if step is ANY) + 1])
    return f"--each '{array}' (each=\"{array}\" in Python) makes records of them"


def unknown_field(who: str, path: Path, known: Mapping[Path, Any]) -> str:
    """The line about an unknown field, with the known one that was probably meant."""
    first = before_cast(path)
    if first != path and is_known(first, known):
        held, there = known[tuple(ANY if isinstance(step, int) else step for step in first)], f"`{format_path(first)}`"
        if CASTS["duration"] in path and isinstance(held, int | float) and not isinstance(held, bool):
            numbers = f"{there} holds plain numbers such as {held}"
            return f"{who} `{format_path(path)}`: {numbers}: compare with a number, as in `{format_path(first)} > 1`"
        if CASTS["duration"] in path and isinstance(held, str) and number_of_text(held) is not None:
            numbers = f"{there} holds numbers written as text, such as {shown(held)}, without a unit"
            return f"{who} `{format_path(path)}`: {numbers}: compare with a number, as in `{format_path(first)} > 1`"
        return f"{who} `{format_path(path)}`: {there} is there, but holds nothing that is one"
    same = ends_so(first, known)
    meant = in_its_place(first, known) or _inside_text(first, known) or (same if is_of_requests(first) else None)
    meant = meant or nearest_field(first, known) or same
    guess = f"; did you mean `{format_path(meant)}`?" if meant else ""
    if path == ("*",):
        guess = "; without --fields all fields are shown"
    elif not meant and any("," in str(step) for step in path):
        guess = "; here stands one field"
    elif not meant and len(path) == 1 and str(path[0]).strip("_").lower() in _FILE:
        guess = f"; of several logs, `{LOG_PATH}` is the path of each record's log"
    elif not meant and {("TAG",), ("CONTENT",)} <= known.keys():
        guess = ": what a program says is text, in `CONTENT`"
        guess += f"; of sshd, this gives `user` and `ip`: --log-format '{_SSHD}'" if path[0] in _OF_LOGINS else ""
    elif not meant and known.keys() <= OF_TEXT and (text := next((each for each in _TEXTS if each in known), None)):
        names = ", ".join(f"`{format_path(other)}`" for other in known)
        guess = f": these are lines of text, with the fields {names}; look into `{format_path(text)}`"
        guess += ", or say which fields a line has: --log-format '(?P<name>...)'" if text == ("text",) else ""
    return f"{who} `{format_path(path)}`{guess}"


def _inside_text(path: Path, known: Mapping[Path, Any]) -> Path | None:
    """The field, or the one that stands in its place, inside the JSON that a field holds as text."""
    for other, value in known.items():
        if isinstance(value, str) and value.lstrip()[:1] == "{" and len(value) <= _LONGEST:
            with suppress(ValueError):
                inside = fields_in([json.loads(value)])
                if (found := path if path in inside else in_its_place(path, inside)) is not None:
                    return (*other, CASTS["json"], *found)
    return None


def typed(operation: Operation) -> str:
    """The operation as text that can stand between the single quotes of a shell, if possible."""

    def doubled(literal: re.Match[str]) -> str:
        text = literal[0]
        return f'"{text[1:-1]}"' if text[0] == "'" and not set('"\\') & set(text) else text

    return _LITERAL.sub(doubled, format_expression(operation))


def is_known(path: Path, known: Container[Path]) -> bool:
    """Whether it is one of these fields, in which ANY stands for each element of an array."""
    return tuple(ANY if isinstance(step, int) else step for step in path) in known


def nearest_field(path: Path, known: Iterable[Path]) -> Path | None:
    """The field that was probably meant: one of a similar name, or one deeper whose last key is similar.

    Where only dots and brackets differ, it is certain: a key with a dot in it, elements of an array. So it is where the
    whole of a path with a dot is the end of another.

    >>> nearest_field(("tpye",), [("type",), ("user", "name")])
    ('type',)
    >>> nearest_field(("name",), [("type",), ("user", "name")])
    ('user', 'name')
    >>> nearest_field(("log", "level"), [("log.level",)])
    ('log.level',)
    >>> nearest_field(("service", "name"), [("scope", "name"), ("resource", "attributes", "service.name")])
    ('resource', 'attributes', 'service.name')
    >>> nearest_field(("items", "0", "sku"), [("items", None, "sku")])
    ('items', 0, 'sku')
    """
    others = [other for other in reversed(list(known)) if other != path]
    if "." in (words := _words(path)):
        ends = [other for other in others if _words(other).endswith(f".{words}")]
        if ends:
            return _with_positions(min(ends, key=len), path)
    for keys in (slice(None), slice(-1, None)):
        names = {_words(other[keys]): other for other in others}
        if near := nearest(_words(path[keys]), names, 0.7):
            return _with_positions(names[near], path)
    return None


def _words(path: Path) -> str:
    """A path without the marks of keys and elements."""
    return ".".join(str(step) for step in path if not _is_position(step)).lower()


def _is_position(step: Step) -> bool:
    return step is ANY or isinstance(step, int) or (isinstance(step, str) and step.isdecimal())


def _with_positions(meant: Path, path: Path) -> Path:
    """The field that was meant, with the positions that were written in the place of any."""
    positions = [int(str(step)) for step in path if step is not ANY and _is_position(step)]
    if len(positions) != meant.count(ANY):
        return meant
    return tuple(positions.pop(0) if step is ANY else step for step in meant)
