"""Notes on an answer that is right and probably not what was meant: no order to speak of, a field that nobody has.

What is true of the log is asked of the indexes; a sample of it is looked at for what was meant instead.
"""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Container, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.error_text import say
from jitdb.common.paths import ANY, Path, Step, format_path, parse_path
from jitdb.common.times import time_of
from jitdb.common.values import UNDEFINED, value_at

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.log import LogSource
    from jitdb.logset import LogSet
    from jitdb.operators import Operation

_SAMPLE: Final = 200  # records looked at
_DEPTH: Final = 8  # keys in a path
_ELEMENTS: Final = 8  # of an array
_FIELDS: Final = 20_000  # fields looked at; records with ids for keys have no end of them


def note_order(db: JITDB | LogSet, operation: Operation | None, options: Namespace) -> None:
    """Say so where the answer's order by time is none, no record having a timestamp."""
    if options.quiet or options.arrival:
        return
    from jitdb.operators import gte

    timed = gte(float("-inf"), "timestamp")
    as_of = options.as_of
    if db.count(timed if operation is None else operation & timed, as_of=as_of) or db.count(operation, as_of=as_of) < 2:
        return
    names = options.timestamp or [format_path(path) for path in db.declared_time]
    known = _fields(db.sample(_SAMPLE))
    if not known:  # raw bytes have no fields
        return
    held = {format_path(path): value for path, value in known.items() if ANY not in path and _is_time(path[-1])}
    times = [name for name, value in held.items() if time_of(value) is not None and name not in names]
    others = [name for name, value in held.items() if time_of(value) is None and not isinstance(value, dict)]
    whose = "record" if operation is None or not db.count(timed) else "record of this answer"
    shown = " or ".join(f"`{name}`" for name in names)
    typed = shlex.quote(min(times, key=len)) if times else "PATH"
    say(f"jitdb: no {whose} has a time under {shown}: this is the order of arrival; say --timestamp {typed}")
    if others and not times:
        name = min(others, key=len)
        say(f"  `{name}` holds no time: RFC 3339 (2026-11-01T12:00:00Z) and numbers since 1970 are times")


def note_times(db: JITDB | LogSet, operation: Operation | None, options: Namespace, *, ordered: bool) -> None:
    """Say which field is the time, where it was found by its name; and how times were taken, and what is none."""
    if options.quiet:
        return
    from jitdb.common.paths import TIMESTAMPS
    from jitdb.operators.nodes.operations import Compare

    asked = () if operation is None else operation.leaves()
    by_time = ordered or any(isinstance(leaf, Compare) and leaf.index == "timestamp" for leaf in asked)
    names = [format_path(path) for path in db.declared_time] if by_time and not options.timestamp else []
    if names and not set(names) & set(TIMESTAMPS):
        say(f"jitdb: the time is `{' or '.join(names)}`; --timestamp names another field")
    question = db.query(operation)
    for remark in db.remarks((question if ordered else question.sort_by_arrival()).question):
        say(f"jitdb: {remark}")


def note_empty(db: JITDB | LogSet, operation: Operation | None, options: Namespace) -> None:
    """The answer is empty: say which fields of the question no live record has, and which values they have instead."""
    paths = [] if operation is None else [path for leaf in operation.leaves() for path in leaf.paths]
    if options.quiet or not paths or not db.count():
        return
    from jitdb.cli.output.other_spellings import other_spelling
    from jitdb.operators import absent
    from jitdb.operators.nodes.operations import Equal

    known = _fields(db.sample(_SAMPLE))
    unknown = [path for path in paths if not _is_known(path, known) and not db.count(~absent(path))]
    _say_unknown("no record has", unknown, known)
    assert operation is not None  # it has paths
    for leaf in operation.leaves():
        if isinstance(leaf, Equal) and not set(unknown).intersection(leaf.paths):
            other = other_spelling(db, leaf)
            if other is not None:
                say(f"jitdb: no record has {_typed(leaf)}; did you mean `{_typed(other)}`?")


def _typed(operation: Operation) -> str:
    """As it can stand between the single quotes of a shell, where that is possible."""
    from jitdb.operators.text.format import format_expression

    text = format_expression(operation)
    return text if '"' in text else text.replace("'", '"')


def note_unknown_columns(db: JITDB | LogSet, names: Iterable[str], options: Namespace) -> None:
    """None of the records shown had these fields."""
    paths = list(map(parse_path, names))
    if paths and not options.quiet:
        _say_unknown("none of these records has", paths, _fields(db.sample(_SAMPLE)))


def note_unsorted(db: JITDB | LogSet, operation: Operation | None, options: Namespace) -> None:
    """None of the records of the answer had a field that they were sorted by: that of the first one would be there."""
    if options.quiet:
        return
    firsts = {key.path: db.query(operation).sort_by(key).first() for key in options.sort}
    unknown = [path for path, record in firsts.items() if value_at(record, path) is UNDEFINED]
    if unknown:
        _say_unknown("none of these records has", unknown, _fields(db.sample(_SAMPLE)))


def note_unseen_fields(log: LogSource, paths: Iterable[Path]) -> None:
    """Before a long scan: no record of a sample has such a field."""
    from jitdb.log.reading.sampling import sample

    records = list(sample(log, _SAMPLE))
    if records:
        known = _fields(records)
        unseen = [path for path in paths if not _is_known(path, known)]
        _say_unknown(f"none of {len(records):,} records looked at has", unseen, known)


def _say_unknown(who: str, paths: Iterable[Path], known: Iterable[Path]) -> None:
    for path in dict.fromkeys(paths):
        meant = nearest_field(path, known)
        guess = f"; did you mean `{format_path(meant)}`?" if meant else ""
        say(f"jitdb: {who} the field `{format_path(path)}`{guess}")


def nearest_field(path: Path, known: Iterable[Path]) -> Path | None:
    """The field that was probably meant: one of a similar name, or one deeper whose last key is similar.

    Where only dots and brackets differ, it is certain: a key with a dot in it, elements of an array.

    >>> nearest_field(("tpye",), [("type",), ("user", "name")])
    ('type',)
    >>> nearest_field(("name",), [("type",), ("user", "name")])
    ('user', 'name')
    >>> nearest_field(("log", "level"), [("log.level",)])
    ('log.level',)
    >>> nearest_field(("items", "0", "sku"), [("items", None, "sku")])
    ('items', 0, 'sku')
    """
    import difflib

    others = [other for other in reversed(list(known)) if other != path]
    for keys in (slice(None), slice(-1, None)):
        names = {_words(other[keys]): other for other in others}
        close = difflib.get_close_matches(_words(path[keys]), names, n=1, cutoff=0.7)
        if close:
            return _with_positions(names[close[0]], path)
    return None


def _words(path: Path) -> str:
    """A path without what tells keys and elements apart."""
    return ".".join(str(step) for step in path if not _is_position(step)).lower()


def _is_position(step: Step) -> bool:
    return not isinstance(step, str) or step.isdecimal()


def _with_positions(meant: Path, path: Path) -> Path:
    """The field that was meant, with the positions that were written in the place of any."""
    positions = [int(step) for step in path if step is not ANY and _is_position(step)]
    if len(positions) != meant.count(ANY):
        return meant
    return tuple(positions.pop(0) if step is ANY else step for step in meant)


def _is_known(path: Path, known: Container[Path]) -> bool:
    return tuple(ANY if isinstance(step, int) else step for step in path) in known


def _fields(records: Iterable[Any]) -> dict[Path, Any]:
    """The paths in these records, in the order in which they come, and the first value of each."""
    found: dict[Path, Any] = {}
    for path, value in islice(chain.from_iterable(map(_walk, records)), _FIELDS):
        found.setdefault(path, value)
    return found


def _walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if path:
        yield path, value
    if isinstance(value, dict) and len(path) < _DEPTH:
        for key, item in value.items():
            if isinstance(key, str):
                yield from _walk(item, (*path, key))
    elif isinstance(value, list) and len(path) < _DEPTH:
        for item in value[:_ELEMENTS]:
            yield from _walk(item, (*path, ANY))


def _is_time(step: Step) -> bool:
    key = str(step)
    return key.lower().endswith(("time", "timestamp", "_at", "_ts", "_date")) or key.lower() in ("ts", "date")
