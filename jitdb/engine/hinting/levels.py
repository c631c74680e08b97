"""What to say of a question for a level: that records of text have none, or that numbers are of another scale."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from jitdb.common.paths import ANY, Path, Step, format_path
from jitdb.common.values import UNDEFINED, number_of, value_at
from jitdb.common.words import shown
from jitdb.engine.answering.spellings import COLOURS
from jitdb.engine.hinting.dialects import in_place_of, is_of_text, named_logs
from jitdb.engine.hinting.fields import is_known
from jitdb.engine.hinting.knowledge import SAMPLE, Evidence
from jitdb.engine.roles import is_level_name
from jitdb.operators.nodes.equal import Absent, IsIn, absent, equal
from jitdb.operators.nodes.levels import CompareLevel, goes_by_size, rank_of, rank_of_name
from jitdb.operators.nodes.operation import And, Not, Operation, Or, combine
from jitdb.operators.summaries.fields import fields_in
from jitdb.operators.text.expression import typed

_LEVEL_WORD: Final = r"\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|CRITICAL|FATAL)\b"
_NAMED_LEVELS: Final[Mapping[Step, tuple[tuple[str, ...], str]]] = {  # where another field has a level's name
    "Level": (("LevelDisplayName",), "syslog"),
    "priority": (("level",), "syslog"),  # of Snort
    "severity": (("severityText", "severity_text"), "syslog, pino or Google"),
}
_OF_NEXTCLOUD: Final = {("reqId",), ("remoteAddr",), ("userAgent",)}  # fields of its records
_NEXTCLOUD: Final = (1, 2, 4, 5, 6)  # ranks of its levels, from 0 on
_SLOG: Final = ((-8, -4, 0, 4, 8, 12), (0, 1, 2, 4, 5, 6))  # numbers, and their ranks
_PYTHON: Final = ((10, 20, 30, 40, 50), (1, 2, 4, 5, 6))
_OTEL: Final = ((1, 5, 9, 13, 17, 21), (0, 1, 2, 4, 5, 6))  # the least number of each level, up to 24
_OF_PINO: Final = {("pid",), ("hostname",)}  # fields of its records
_OF_TEXT: Final = ("level",)  # of lines of text
_OF_SYSLOG: Final = ("CONTENT",)
_NO_LEVEL: Final = ("default", "unknown", "unspecified", "undefined", "none", "null", "off", "n/a", "any", "all")
_LONGEST: Final = 32  # characters of a word for a level
_NAMED: Final = 3  # words in a question


def on_unleveled(evidence: Evidence, operation: Operation) -> list[str]:
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
    if _OF_TEXT not in asked or _OF_TEXT in denied:
        return []
    records = [record for record in evidence.asked(operation, SAMPLE) if is_of_text(record)]
    return list(filter(None, (_partly_leveled(evidence, _OF_TEXT, records),)))


def _partly_leveled(evidence: Evidence, path: Path, records: Sequence[Any]) -> str:
    """The line about a level that some of these records of text lack, and no other field says; empty where none does,
    nor any other record, as an index of all levels knows.
    """
    lacking = [record for record in records if value_at(record, path) is UNDEFINED]
    if not records or in_place_of(path, lacking) or evidence.lack(path):  # of which another line says that none has it
        return ""
    unknown = Not(CompareLevel(path, "gte", "trace"))
    if not lacking and (
        any(rank_of(value_at(record, path), path) is None for record in records)
        or not evidence.has(unknown)
        or evidence.elsewhere(unknown, [path])
    ):
        return ""
    which = f"{len(lacking):,} of {len(records):,} records looked at" if lacking else "some records"
    if all(value_at(record, _OF_SYSLOG) is not UNDEFINED for record in records):
        finds = typed(combine(And, (absent(path), Not(absent(_OF_SYSLOG)))))
        return f"no level is found in `CONTENT`, what a program says, of {which}: `{finds}` finds these"
    return f"no level is found in the text of {which}: `{typed(absent(path))}` finds these"


def on_named_levels(evidence: Evidence, operation: Operation, paths: Collection[Path], is_empty: bool) -> Iterator[str]:
    """A line where numbers of levels are compared that are of another scale than their field's: of Windows, where 3 is
    a warning, or of OpenTelemetry in `severity`. A field beside it has the names. And one where they are all below
    8, which is read as syslog's: other programs count from 0 up. GELF's are syslog's. And where others, or names, are
    of no level that is known.
    """
    denied = set(operation.denied_leaves())
    levels = (leaf for leaf in operation.leaves() if isinstance(leaf, CompareLevel))
    for leaf in dict.fromkeys(levels):
        names, scale = _NAMED_LEVELS.get(leaf.index[-1], ((), ""))
        known = fields_in(evidence.sample(SAMPLE)) if names and leaf.index in paths else {}
        named = next((path for name in names if is_known(path := (*leaf.index[:-1], name), known)), None)
        if named is not None and number_of(known.get(leaf.index)) is not None:
            name = format_path(leaf.index)
            yield f"numbers of `{name}` are read as those of {scale}; did you mean `{typed(leaf.of_field(named))}`?"
        elif leaf.index in paths and are_of_syslog(leaf.index, records := evidence.sample(SAMPLE)):
            yield _read_as_syslog(leaf, records)
        elif leaf.index in paths:
            values = [value for record in records if (value := value_at(record, leaf.index)) is not UNDEFINED]
            yield from _on_numbers(leaf, values, is_empty and not _is_of_pino(records))
            if logs := evidence.numbered(operation, leaf.index):
                yield _read_as_syslog(leaf, (), f" in {named_logs(logs)}")
            yield from _unknown_names(evidence, leaf, values) if leaf not in denied else ()


def _on_numbers(leaf: CompareLevel, values: Sequence[Any], is_empty: bool) -> Iterator[str]:
    """The line about numbers of levels that are of no scale that is known, or may be Python's."""
    numbers = [number for value in values if (number := number_of(value)) is not None]
    if not numbers or len(numbers) < len(values) or rank_of(50, leaf.index) != rank_of_name("error"):
        return  # of a scale that the field's name tells
    name, are_of_slog = format_path(leaf.index), goes_by_size(leaf.index) and set(numbers) <= set(_SLOG[0])
    are_of_otel = set(numbers) <= set(range(1, 25)) and bool(set(numbers) & set(_OTEL[0][3:]))
    if not all(number in range(8) for number in numbers) and (are_of_slog or are_of_otel or max(numbers) < 10):
        told = f"numbers of `{name}` from 0 to 7 are read as syslog's, where 0 is the worst, and others are none"
        if are_of_slog:
            meant = _with_number(leaf, _number(leaf, *_SLOG))
            yield f"{told}: Go's slog has 8 for an error, and 4 for a warning; did you mean `{meant}`?"
        elif are_of_otel:
            meant = _with_number(leaf, _number(leaf, *_OTEL))
            told = f"numbers of `{name}` are read as syslog's below 8 and as pino's from 10 on"
            yield f"{told}: OpenTelemetry has 17 for an error, and 13 for a warning; did you mean `{meant}`?"
        else:
            yield f"{told}: if they grow with how bad it is, compare them as numbers: `{name} >= {max(numbers)}`"
    elif is_empty and leaf.op in ("gt", "gte") and 40 in numbers and set(numbers) <= {10, 20, 30, 40}:
        number = _number(leaf, *_PYTHON)
        if number + (leaf.op == "gt") <= 40:
            told = f"numbers of `{name}` are read as pino's, where 40 is a warning and 50 an error"
            yield f"{told}: if they are Python's, whose error is 40, ask `{_with_number(leaf, number)}`"


def _number(leaf: CompareLevel, numbers: Sequence[int], ranks: Sequence[int]) -> int:
    """The number that the level asked for has on a scale."""
    rank = rank_of_name(leaf.value) or 0
    place = bisect_left(ranks, rank) if leaf.op in ("gte", "lt") else bisect_right(ranks, rank) - 1
    return (numbers[0] - 1, *numbers, numbers[-1] + 1)[place + 1]


def _with_number(leaf: CompareLevel, number: int) -> str:
    return leaf.signs[0].format(number, format_path(leaf.index))


def _is_of_pino(records: Iterable[Any]) -> bool:
    """Whether pino, or bunyan, wrote these records: by what it adds to each."""
    return any(fields_in([record]).keys() >= _OF_PINO for record in records)


def _unknown_names(evidence: Evidence, leaf: CompareLevel, values: Iterable[Any]) -> Iterator[str]:
    """The line about words that are no levels that are known, in a field that has such levels, too."""
    path = leaf.index
    unknown = [value for value in (*values, *evidence.values(path)) if _is_word(value) and rank_of(value, path) is None]
    if not unknown or ANY in path or not evidence.has(leaf.lowest()[0]):
        return  # where it has no level at all, another line says so
    held = (value for value in dict.fromkeys(unknown) if evidence.has(IsIn(path, [value])))
    if not (names := list(islice(held, _NAMED))):
        return
    finds = typed(combine(Or, tuple(equal(path, each) for each in names)))
    yield (
        f"values of `{format_path(path)}` such as {shown(names[0])} are no levels that are known, and `{typed(leaf)}` "
        f"leaves them out: `{finds}` finds {'these' if len(names) > 1 else 'them'}"
    )


def without_marks(leaf: Operation, records: Iterable[Any]) -> str:
    """What asks for texts of these records that are levels but for marks around them, as `[ERROR]`, or colours; empty
    where none would match.
    """
    if not isinstance(leaf, CompareLevel) or ANY in leaf.index:
        return ""
    values = (value_at(record, leaf.index) for record in records)
    texts = dict.fromkeys(value for value in values if isinstance(value, str))
    found = [text for text in texts if leaf.holds(re.sub(r"^\W+|\W+$", "", re.sub(COLOURS, "", text)))]
    return f"; did you mean `{typed(combine(Or, tuple(equal(leaf.index, each) for each in found)))}`?" if found else ""


def _is_word(value: Any) -> bool:
    """Whether it is one word or a few, but none that says that there is no level."""
    word = value.strip().lower() if isinstance(value, str) else ""
    return len(word) <= _LONGEST and any(map(str.isalpha, word)) and word not in _NO_LEVEL


def _read_as_syslog(leaf: CompareLevel, records: Sequence[Any], where: str = "") -> str:
    """The line about numbers of levels that are read as syslog's, and are not, or may not be."""
    name = format_path(leaf.index)
    told = f"numbers of `{name}`{where} are read as syslog's, where 0 is the worst and 3 an error: "
    if fields_in(records[:1]).keys() >= _OF_NEXTCLOUD:
        meant = _with_number(leaf, _number(leaf, range(len(_NEXTCLOUD)), _NEXTCLOUD))
        return f"{told}Nextcloud's grow, from 0 (debug) to 4 (fatal); did you mean `{meant}`?"
    return f"{told}if they grow with how bad it is, compare them as numbers: `{name} >= 3`"


def are_of_syslog(path: Path, records: Sequence[Any]) -> bool:
    """Whether all levels in these records are numbers below 8, in a field that may have others."""
    if ("short_message",) in fields_in(records[:1]):
        return False
    numbers = [number_of(value) for record in records if (value := value_at(record, path)) is not UNDEFINED]
    return bool(numbers) and goes_by_size(path) and all(number in range(8) for number in numbers)


def no_level(logs: Collection[str]) -> str:
    """That these logs have no level that is known, but words of levels in their text; in words."""
    return (
        f"no level is found in the first records of {named_logs(logs)}, though their text has words such as ERROR: "
        'what is asked by level leaves them out; `* contains "ERROR"` asks all for the word'
    )


def has_level_word(records: Iterable[Any]) -> bool:
    """Whether a text of these records, none of which has a level, has a word of levels in capitals.

    >>> has_level_word([{"text": "ERROR [main] no route"}]), has_level_word([{"text": "GET /a 500"}])
    (True, False)
    """
    texts = (value for record in records for value in fields_in([record]).values() if isinstance(value, str))
    return any(re.search(_LEVEL_WORD, text) for text in texts)
