"""How bad a record is, by the names and the numbers of levels: `level >= "warn"`.

A level has a rank. Names have one in any case, numbers by the scale of their field, which its name tells:

- **Syslog** (`PRIORITY`, `priority`, `syslog.severity`), also as text: 0 is emerg, 7 debug.
- **A priority value of syslog** (`PRI`): eight times the facility, and one of these.
- **OpenTelemetry** (`severityNumber`): 1 to 24, four a level.
- **Windows** (`Event.System.Level`): 1 is critical, 4 information, 5 verbose.
- **NXLog** (`SeverityValue`): 1 is debug, 2 info, 3 warning, 4 error, 5 critical.
- **CEF and LEEF** (`deviceSeverity`, `sev`): 0 to 3 are low (info), 4 to 6 medium (warning), 7 and 8 high (error), 9
  and 10 very high (critical); CEF may name them, too.
- **Python** (`levelno`, `level_number`): 10 is debug, 30 warning, 50 critical.
- Under any other name (`level`, `severity`, …) numbers go by their size. From 10 on they are those of pino and bunyan
  (10 is trace, 30 info, 50 error, 60 fatal; one between two levels is between them), from 5000 on those of Logback
  (20000 is info), between them those of Monolog (200 is info; of Google, where the field is `severity`), but those of
  java.util.logging from 700 to 1000 (700 is config, 800 info, 900 warning, 1000 severe), and 0 to 7 those of syslog
  (GELF).
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.paths import ANY, Path, format_path
from jitdb.common.spelling import nearest
from jitdb.common.values import number_of
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.indexes.spec import Requirement, values_spec
from jitdb.operators.nodes.operation import Answering, Core, Operation

if TYPE_CHECKING:
    from pyroaring import BitMap

    from jitdb.indexes.kinds.numbers import Comparison

#: The names of each level, the least one first; its place is its rank.
_NAMES: Final = (
    "trace verbose finer finest v t",
    "debug fine config d d1 d2 d3 d4 d5 debug1 debug2 debug3 debug4 debug5",
    "info information informational i log system -",
    "notice success deprecated audit a n *",
    "warn warning w #",
    "error err severe e",
    "critical crit fatal panic dpanic f fault c",
    "alert",
    "emerg emergency",
)
#: Names that libraries cut short, of the first levels.
_SHORT: Final = ("trc vrb trce trac", "dbg dbug debu .", "inf", "note", "wrn", "erro fail", "ftl fata crt pani")
#: Of PHP, in two words.
_PHP: Final = {
    "strict standards": 3, "core warning": 4, "compile warning": 4, "parse error": 5, "recoverable fatal error": 5,
    "catchable fatal error": 5, "fatal error": 6, "core error": 6, "compile error": 6,
}  # fmt: skip
#: Of what Postgres writes behind a message; of Tinyproxy; in German, French and Spanish. Nobody is asked whether they
#: meant one of these.
_SELDOM: Final = {
    **dict.fromkeys(("statement", "detail", "hint", "context", "query", "location"), 2),
    "connect": 3, "hinweis": 3, "warnung": 4, "avertissement": 4, "advertencia": 4, "fehler": 5, "erreur": 5,
}  # fmt: skip
_RANKS: Final = (
    {name: rank for every in (_NAMES, _SHORT) for rank, names in enumerate(every) for name in names.split()}
    | _PHP
    | _SELDOM
)
_SUGGESTED: Final = [name for names in _NAMES for name in names.split() if len(name) > 3]
_SYSLOG: Final = (8, 7, 6, 5, 4, 3, 2, 1)  # ranks of 0 to 7
_PINO: Final = ((10, 20, 30, 40, 50, 60), (0, 1, 2, 4, 5, 6))  # numbers, and their ranks
_PYTHON: Final = ((1, 10, 20, 30, 40, 50), (0, 1, 2, 4, 5, 6))
_MONOLOG: Final = ((100, 200, 250, 300, 400, 500, 550, 600), (1, 2, 3, 4, 5, 6, 7, 8))
_JUL: Final = ((700, 800, 900, 1000), (1, 2, 4, 5))
_GOOGLE: Final = ((100, 200, 300, 400, 500, 600, 700, 800), (1, 2, 3, 4, 5, 6, 7, 8))
_LOGBACK: Final = ((5000, 10_000, 20_000, 30_000, 40_000, 50_000), (0, 1, 2, 4, 5, 6))
_NUMBERS: Final = sorted({*range(61), *_MONOLOG[0], *_GOOGLE[0], *_JUL[0], *_LOGBACK[0]})  # that libraries write
_WINDOWS: Final = (2, 6, 5, 4, 2, 0)  # ranks of 0 (always logged) to 5
_NXLOG: Final = (1, 2, 4, 5, 6)  # ranks of 1 to 5
_CEF: Final = {"low": 2, "medium": 4, "high": 5, "very-high": 6}
_OPENTELEMETRY: Final = (0, 1, 2, 4, 5, 6)  # ranks of 1 to 4, 5 to 8, …
_SCALES: Final = {
    "pri": "pri", "severitynumber": "opentelemetry", "levelno": "python", "levelnumber": "python", "severity": "google",
    "severityvalue": "nxlog", "deviceseverity": "cef", "sev": "cef",
}  # fmt: skip
_LONGEST: Final = 32  # characters of a level

_RELATIONS: Final[dict[Comparison, Callable[[Any, Any], bool]]] = {
    "gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le,
}  # fmt: skip
_SIGNS: Final[dict[Comparison, str]] = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def rank_of_name(name: str) -> int | None:
    """The rank of the level that has this name, in any case; None where none has.

    >>> rank_of_name("WARN") == rank_of_name("warning"), rank_of_name("soon")
    (True, None)
    """
    return _RANKS.get(name.strip().lower())


def check_spelling(value: object) -> None:
    """Raise QueryError for text that is nearly the name of a level."""
    is_word = isinstance(value, str) and value.isalpha() and len(value) <= _LONGEST and rank_of_name(value) is None
    if is_word and (meant := nearest(str(value).lower(), _SUGGESTED, 0.7)):
        raise QueryError(f"{shown(value)} is no level; did you mean {meant!r}?")


def rank_of(value: Any, path: Path) -> float | None:
    """The rank of a value of this field; None where it is no level.

    >>> rank_of(50, ("level",)), rank_of("3", ("PRIORITY",)), rank_of(17, ("severityNumber",)), rank_of("ERR", ("a",))
    (5.0, 5, 5, 5)
    """
    if isinstance(value, str):
        named = rank_of_name(value)
        if named is not None or len(value) > _LONGEST:
            return named
    scale, number = _scale_of(path), number_of(value)
    if number is None or not math.isfinite(number):
        return _CEF.get(value.lower()) if isinstance(value, str) and scale == "cef" else None
    match scale:
        case "pri":
            return _SYSLOG[int(number) % 8] if number in range(192) else None
        case "syslog":
            return _SYSLOG[int(number)] if number in range(8) else None
        case "windows":
            return _WINDOWS[int(number)] if number in range(6) else None
        case "nxlog":
            return _NXLOG[int(number) - 1] if number in range(1, 6) else None
        case "cef":
            return (2, 4, 5, 6)[bisect_left((3, 6, 8), number)] if 0 <= number <= 10 else None
        case "opentelemetry":
            return _OPENTELEMETRY[int(number - 1) // 4] if number in range(1, 25) else None
        case "python":
            return _between(number, *_PYTHON)
        case "google" if 100 <= number < 5000:
            return _between(number, *_GOOGLE)
    if number in range(8):
        return _SYSLOG[int(number)]
    if 700 <= number <= 1000:
        return _between(number, *_JUL)
    return _between(number, *(_PINO if number < 100 else _MONOLOG if number < 5000 else _LOGBACK))


def _scale_of(path: Path) -> str:
    keys = [step.lower() for step in path if isinstance(step, str)]
    key = "".join(filter(str.isalnum, keys[-1])) if keys else ""
    if key in ("priority", "prio", "syslogseverity") or (key == "severity" and "syslog" in keys):
        return "syslog"
    if keys[-2:] == ["system", "level"]:
        return "windows"
    return _SCALES.get(key, "")


def goes_by_size(path: Path) -> bool:
    """Whether numbers of this field go by their size alone."""
    return not _scale_of(path)


def _between(number: float, numbers: tuple[int, ...], ranks: tuple[int, ...]) -> float | None:
    """The rank of a number: between those of the numbers around it; above all the last one's, below all None."""
    place = bisect_right(numbers, number) - 1
    if place < 0:
        return None
    if place == len(numbers) - 1:
        return ranks[-1]
    share = (number - numbers[place]) / (numbers[place + 1] - numbers[place])
    return ranks[place] + share * (ranks[place + 1] - ranks[place])


def same_levels(value: str, path: Path) -> Iterator[Any]:
    """Other values of this field that are the level of this name: numbers first, then names."""
    rank = rank_of_name(value)
    if rank is None:
        return
    numbers = [number for number in _NUMBERS if rank_of(number, path) == rank]
    yield from numbers
    yield from map(str, numbers)
    for name in (each for each, is_of in _RANKS.items() if is_of == rank):
        yield from (other for other in dict.fromkeys((name, name.upper(), name.capitalize())) if other != value)


class CompareLevel(Operation):
    """The level is worse (gt, gte), or less bad (lt, lte), than the one of this name; what is no level is neither."""

    __slots__ = __match_args__ = ("index", "op", "value")
    arguments = ("value", "index")
    names_value = True
    longest = 1 + _LONGEST

    index: Path
    op: Comparison
    value: str

    @property
    def signs(self) -> tuple[str, str]:  # type: ignore[override]
        return f"{{1}} {_SIGNS[self.op]} {{0}}", ""

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.index,)

    def holds(self, value: Any) -> bool:
        rank = rank_of(value, self.index)
        return rank is not None and _RELATIONS[self.op](rank, _RANKS[self.value.strip().lower()])

    def need(self, core: Core) -> Requirement:
        return Requirement(values_spec(self.index))

    def answer(self, asked: Answering) -> BitMap:
        return asked.with_text(self)

    def lowest(self) -> tuple[Operation, str]:
        name = format_path(self.index)
        told = f"`{name}` holds no levels: no names such as info or error, and no numbers that stand for them"
        return self.changed(op="gte", value="trace"), told

    def of_elements(self) -> Operation:
        return self.changed(index=(*self.index, ANY))
