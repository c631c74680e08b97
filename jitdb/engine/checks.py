"""Checks of what a database is asked with: operations, settings, paths, names of indexes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from jitdb.common.arguments import flag, is_list, whole_number
from jitdb.common.paths import Path, format_path, parse_path
from jitdb.common.times import NUMBER, UNITS, with_zone
from jitdb.common.words import shown
from jitdb.engine.declared_time import CoreFields
from jitdb.engine.plan import requirements
from jitdb.errors import InvalidArgument, QueryError
from jitdb.indexes.spec import IndexSpec
from jitdb.operators.nodes.field_ref import PathLike
from jitdb.operators.nodes.operation import EVERYTHING, Operation
from jitdb.operators.nodes.selection import SortKeys, selection, sort_keys
from jitdb.operators.question import Database, Question
from jitdb.operators.text.taken import operation_of


def question_of(
    db: Database, question: str | Operation | Question | None, settings: Mapping[str, Any], limit: int | None
) -> Question:
    """What a database is asked: a question as it is, else one of an operation (None: all records) and settings."""
    if isinstance(question, Question):
        return question
    operation = EVERYTHING if question is None else operation_of(question, "a question is an operation")
    if not settings and limit is None:
        return Question(db=db, operation=operation)
    said = checked({**settings, "limit": limit} if limit is not None else {**settings})
    return Question(db=db, operation=operation, **said)


def listed(name: str, fields: Any) -> list[Any]:
    if not isinstance(fields, (list, tuple)):
        raise QueryError(f"{name} is a list of fields, not {shown(fields)}")
    return list(fields)


def page_size(limit: int) -> int:
    return whole_number("limit is a number of records", limit, 1)


def sort_by(order: Any) -> str | SortKeys:
    if isinstance(order, str) and order in ("declared", "arrival"):
        return order
    return sort_keys("sort_by()", list(order) if isinstance(order, list) or type(order) is tuple else [order])


CHECKS: Final[dict[str, Callable[[Any], Any]]] = {
    "limit": page_size,
    "start_from": lambda number: whole_number("start_from is a number of answers to skip", number),
    "descending": lambda value: flag("descending", value),
    "as_offsets": lambda value: flag("as_offsets", value),
    "as_raw": lambda value: flag("as_raw", value),
    "sort_by": sort_by,
    "select": lambda fields: selection("select", [fields] if isinstance(fields, str) else listed("select", fields)),
    "as_of": lambda place: place,  # which the log knows: Records.horizon
}


def checked(settings: dict[str, Any]) -> dict[str, Any]:
    for name in settings:
        if name not in CHECKS:
            raise TypeError(f"a question has no setting {name!r}; there are {', '.join(CHECKS)}")
    return {name: CHECKS[name](value) for name, value in settings.items()}


def paths_of(paths: PathLike | Sequence[PathLike]) -> tuple[Path, ...]:
    """One path or several; a plain string is one path."""
    if isinstance(paths, str):
        return (parse_path(paths),)
    if not isinstance(paths, (list, tuple)) or not paths:
        raise QueryError(f"fields are a path such as 'value.timestamp', or a list of paths, not {shown(paths)}")
    return tuple(parse_path(path) for path in paths)


def unit_of(unit: object, zone: object = None) -> str:
    """How times are read (jitdb.common.times): the unit of those that are numbers, the zone of those that say none."""
    if not isinstance(unit, str) or unit not in UNITS:
        raise InvalidArgument(f"time_unit is one of {', '.join(UNITS)}, not {shown(unit)}")
    if zone is None or zone == "":
        return unit
    if unit == NUMBER:
        raise InvalidArgument("log_tz is a zone of times, and with time_unit='number' there are none: leave one out")
    from jitdb.operators.summaries.arithmetic.calendar import zone_named

    return with_zone(unit, zone_named(zone))


def operations_of(operations: Sequence[str | Operation | None]) -> list[str | Operation | None]:
    """Several operations, in a list or whatever may be gone through."""
    if not is_list(operations):
        raise QueryError(f"operations is a list of operations, not {shown(operations)}")
    return list(operations)


def dropped_names(
    which: Sequence[PathLike | Operation], there: Mapping[str, IndexSpec | None], core: CoreFields
) -> tuple[str, ...]:
    """The names, of those that there are, that are meant. Raises QueryError for what no index has."""
    if not which:
        raise QueryError("drop_index() takes names of index files, paths or questions: none was given")
    names: set[str] = set()
    for each in which:
        if isinstance(each, Operation):
            specs = {need.spec for need in requirements(each, core)}
            specs |= {leaf.own_spec for leaf in each.leaves() if leaf.own_spec is not None}
            names.update({spec.file_name() for spec in specs} & there.keys())
        elif isinstance(each, str) and each in there:
            names.add(each)
        else:
            names.update(_of_path(each, there))
    return tuple(sorted(names))


def _of_path(path: PathLike, there: Mapping[str, IndexSpec | None]) -> set[str]:
    keys = parse_path(path)
    found = {name for name, spec in there.items() if spec and keys in spec.paths}
    if not found:
        known = [*there, *(format_path(each) for spec in there.values() if spec for each in spec.paths)]
        from jitdb.common.spelling import nearest

        near = nearest(path if isinstance(path, str) else format_path(keys), known)
        hint = f"; did you mean {near!r}?" if near else ""
        raise QueryError(f"there is no index of {format_path(keys)!r}, and no index file of that name{hint}")
    return found
