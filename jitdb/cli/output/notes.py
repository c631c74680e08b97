"""Notes on an answer that is right and probably not what was meant: no order to speak of, a field that nobody has.

What is true of the log is asked of the indexes; a sample of it is looked at for what was meant instead.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.error_text import say
from jitdb.common.paths import TIMESTAMPS, Path, format_path

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.log import LogSource
    from jitdb.operators import Operation

_SAMPLE: Final = 200  # records looked at
_DEPTH: Final = 8  # keys in a path
_FIELDS: Final = 20_000  # fields looked at; records with ids for keys have no end of them

_TIMES: Final = frozenset(
    {"timestamp", "time", "ts", "date", "datetime", "created", "when", "at", "epoch", "_time", "received", "updated"}
)
_TIME_ENDINGS: Final = ("_time", "Time", "_at", "At", "_ts", "Ts", "_date", "Date", "timestamp", "Timestamp")


def note_order(db: JITDB, operation: Operation | None, options: Namespace) -> None:
    """Say so where the answer's order by time is none, no record having a timestamp."""
    if options.quiet or options.arrival or db.log.codec.name == "raw":  # raw bytes have no fields
        return
    from jitdb.operators import gte

    timed = gte(float("-inf"), "timestamp")
    as_of = options.as_of
    if db.count(timed if operation is None else operation & timed, as_of=as_of) or db.count(operation, as_of=as_of) < 2:
        return
    names = options.timestamp or TIMESTAMPS
    whose = "record" if operation is None or not db.count(timed) else "record of this answer"
    shown = " or ".join(f"`{name}`" for name in names)
    numbers, others = _times(_some_records(db.log), names)
    say(
        f"jitdb: no {whose} has a number under {shown}: this is the order of arrival; "
        f"say --timestamp {numbers or 'PATH'}"
    )
    if others and not numbers:
        say(f"  `{others}` holds no number, and only numbers can be ordered: milliseconds since 1970, for example")


def note_unknown_fields(db: JITDB, operation: Operation | None, options: Namespace) -> None:
    """The answer is empty: say which fields of the question no live record has."""
    if options.quiet or operation is None:
        return
    paths = _paths_of(operation)
    sample = _some_records(db.log) if paths else []
    if not sample:
        return
    from jitdb.operators import absent

    known = _fields(sample)
    for path in paths:
        if path not in known and not db.count(~absent(path)):
            _say_unknown("no record has", path, known)


def note_unknown_columns(db: JITDB, names: Iterable[str], options: Namespace) -> None:
    """None of the records shown had these fields."""
    if options.quiet:
        return
    from jitdb.common.paths import parse_path

    known: dict[Path, None] | None = None
    for name in names:
        known = _fields(_some_records(db.log)) if known is None else known
        _say_unknown("none of these records has", parse_path(name), known)


def note_unseen_fields(log: LogSource, paths: Iterable[Path]) -> None:
    """Before a long scan: no record of a sample has such a field."""
    records = _some_records(log)
    known = _fields(records)
    for path in paths:
        if records and path not in known:
            _say_unknown(f"none of {len(records):,} records looked at has", path, known)


def _say_unknown(who: str, path: Path, known: Iterable[Path]) -> None:
    meant = nearest_field(path, known)
    guess = f"; did you mean `{format_path(meant)}`?" if meant else ""
    say(f"jitdb: {who} the field `{format_path(path)}`{guess}")


def nearest_field(path: Path, known: Iterable[Path]) -> Path | None:
    """The field that was probably meant: one of a similar name, or one deeper that ends in that name.

    >>> nearest_field(("tpye",), [("type",), ("user", "name")])
    ('type',)
    >>> nearest_field(("name",), [("type",), ("user", "name")])
    ('user', 'name')
    """
    import difflib

    names = {".".join(other): other for other in known if other != path}
    wanted = ".".join(path)
    for name, other in names.items():
        if name.lower() == wanted.lower():
            return other
    deeper = [other for other in names.values() if other[-len(path) :] == path]
    if deeper:
        return min(deeper, key=len)
    close = difflib.get_close_matches(wanted, names, n=1, cutoff=0.7)
    if close:
        return names[close[0]]
    last = {other[-1]: other for other in reversed(names.values())}
    close = difflib.get_close_matches(path[-1], last, n=1, cutoff=0.75)
    return last[close[0]] if close else None


def _some_records(log: LogSource) -> list[Any]:
    from jitdb.log.reading.sampling import sample

    return list(sample(log, _SAMPLE))


def _paths_of(operation: Operation) -> list[Path]:
    """The fields that a question looks at, each once."""
    return list(dict.fromkeys(path for leaf in operation.leaves() for path in leaf.paths))


def _fields(records: Iterable[Any]) -> dict[Path, None]:
    """All paths in these records, in the order in which they come."""
    found: dict[Path, None] = {}
    _visit(records, lambda path, value: found.setdefault(path))
    return found


def _times(records: Iterable[Any], besides: Iterable[str]) -> tuple[str, str]:
    """A field named like a time that holds numbers, and one that holds something else; empty when there is none."""
    numbers: dict[Path, None] = {}
    others: dict[Path, None] = {}

    def look(path: Path, value: Any) -> None:
        if not _is_time(path[-1]) or isinstance(value, (dict, bool)):
            return
        (numbers if isinstance(value, (int, float)) else others).setdefault(path)

    _visit(records, look)
    left_out = {tuple(name.split(".")) for name in besides}
    number = min((path for path in numbers if path not in left_out), key=len, default=())
    other = min(others, key=len, default=())
    return _typed(number), ".".join(other)


def _typed(path: Path) -> str:
    import shlex

    return shlex.quote(".".join(path)) if path else ""


def _is_time(key: str) -> bool:
    return key.lower().lstrip("@$_") in _TIMES or key.endswith(_TIME_ENDINGS)


def _visit(records: Iterable[Any], look: Callable[[Path, Any], object]) -> None:
    left = _FIELDS
    waiting: list[tuple[Path, Any]] = []
    for record in records:
        waiting.append(((), record))
        while waiting and left:
            path, value = waiting.pop()
            if path:
                left -= 1
                look(path, value)
            if isinstance(value, dict) and len(path) < _DEPTH:
                below = [((*path, key), item) for key, item in value.items() if isinstance(key, str)]
                waiting += reversed(below)
