"""What to say of a question for a level: that records of text have none, or that numbers are of another scale."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from jitdb.common.paths import Path, Step, format_path
from jitdb.common.values import UNDEFINED, number_of, value_at
from jitdb.engine.hinting.dialects import in_place_of, named_logs
from jitdb.engine.hinting.fields import is_known
from jitdb.engine.hinting.knowledge import SAMPLE, Evidence
from jitdb.engine.roles import is_level_name
from jitdb.operators.nodes.equal import Absent, absent
from jitdb.operators.nodes.levels import CompareLevel, goes_by_size, rank_of_name
from jitdb.operators.nodes.operation import Not, Operation
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
    records = [record for record in evidence.asked(operation, SAMPLE) if _is_of_text(record)] if asked else []
    return list(filter(None, (_partly_leveled(evidence, path, records) for path in asked if path not in denied)))


def _is_of_text(record: Any) -> bool:
    """Whether it is of a line whose level stands somewhere in its text."""
    return isinstance(record, dict) and isinstance(record.get("text", record.get("CONTENT")), str)


def _partly_leveled(evidence: Evidence, path: Path, records: Sequence[Any]) -> str:
    """The line about a level that some of these records of text lack, and no other field says; empty where none does,
    nor any other record, as an index of all levels knows.
    """
    lacking = [record for record in records if value_at(record, path) is UNDEFINED]
    if not records or in_place_of(path, lacking) or evidence.lack(path):  # of which another line says that none has it
        return ""
    if not lacking and not evidence.has(Not(CompareLevel(path, "gte", "trace"))):
        return ""
    which = f"{len(lacking):,} of {len(records):,} records looked at" if lacking else "some records"
    return f"no level is found in the text of {which}: `{typed(absent(path))}` finds these"


def on_named_levels(evidence: Evidence, operation: Operation, paths: Collection[Path]) -> Iterator[str]:
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
