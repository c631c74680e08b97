"""A question in another dialect: `level` where other logs, or other records, say `severity`; `log.level` where the dot
is a part of the key. The first records of each log show it. The answer stays what was asked for; the note on it says
what asks all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

from jitdb.common.paths import Path, format_path
from jitdb.common.values import UNDEFINED, value_at
from jitdb.common.words import counted
from jitdb.engine.roles import in_its_place, is_usual
from jitdb.operators.nodes.compare import between
from jitdb.operators.nodes.equal import Absent, Equal
from jitdb.operators.nodes.levels import rank_of_name
from jitdb.operators.nodes.operation import And, Operation, Or, combine
from jitdb.operators.summaries.fields import fields_in

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
        kept = [] if path in missing else [leaf]
        kind = And if isinstance(leaf, Absent) else Or
        return combine(kind, (*kept, *(_of_other(leaf, path, other) for other in others[path])))

    return operation.replaced(both)


def _of_other(leaf: Operation, path: Path, other: Path) -> Operation:
    """The leaf, asked of another field. A level may be spelled otherwise there, so it is asked by how bad it is."""
    if isinstance(leaf, Equal) and is_usual(path) and _joined(path) != _joined(other):
        value = leaf.value
        if isinstance(value, str) and rank_of_name(value) is not None:
            return between(other, value, value)
    return leaf.of_field(other)


def where_others(path: Path, others: Mapping[Path, Collection[str]]) -> str:
    """Where the field is called otherwise, in words."""
    return f"`{format_path(path)}` is called " + ", ".join(
        f"`{format_path(other)}` in {_named(logs)}" for other, logs in others.items()
    )


def no_time(logs: Collection[str]) -> str:
    """That these logs have no time that is known, in words."""
    return f"no time is found in the first records of {_named(logs)}: what is asked by time leaves them out"


def _named(logs: Collection[str]) -> str:
    if not logs:
        return "other records"
    first = next(iter(logs))
    return first if len(logs) == 1 else f"{first} and {counted(len(logs) - 1, 'more log', 'more logs')}"
