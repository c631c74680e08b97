"""What a database is asked with, checked: operations, numbers, orders, paths."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from jitdb.common.arguments import is_list, whole_number
from jitdb.common.paths import Path, parse_path
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.deferred import resolve
from jitdb.operators.nodes.live_seqs import given_so_far
from jitdb.operators.nodes.operations import Everything, Operation, not_an_operation
from jitdb.operators.nodes.tasks import ONCE, Shape

if TYPE_CHECKING:
    from jitdb.operators.database import Database

PathLike = str | Sequence[str]

EVERYTHING: Final = Everything()


def asked(
    operation: Operation | None,
    db: Database | None = None,
    cancel: threading.Event | None = None,
    *,
    live: bool = False,
    shape: Shape = ONCE,
) -> Operation:
    """The operation, with what its deferred parts give for `db` in their places; none asks for everything.

    `live`: whether it is asked by a feed, which understands live_seqs(); else they stand for what was given by now.
    `shape`: how the answer shall come, for the tasks of deferred parts.
    """
    if operation is None:
        return EVERYTHING
    if not isinstance(operation, Operation):
        raise QueryError(f"a question is an operation, and {not_an_operation(operation)}")
    if operation.unsettled:
        operation = resolve(operation, db, cancel, shape)
        if not live:
            operation = given_so_far(operation)
    return operation


def skipped(start_from: int) -> int:
    """How many answers to skip."""
    return whole_number("start_from is a number of answers to skip", start_from)


def page_size(limit: int) -> int:
    """How many answers a page has at most."""
    return whole_number("limit is a number of records", limit, 1)


def by_arrival(sort_by: str) -> bool:
    """Whether answers come in the order of the log."""
    if not isinstance(sort_by, str) or sort_by not in ("declared", "arrival"):
        raise QueryError(f"sort_by is 'declared' or 'arrival', not {shown(sort_by)}")
    return sort_by == "arrival"


def paths_of(paths: PathLike | Sequence[PathLike]) -> tuple[Path, ...]:
    """One path or several; a plain string is one path."""
    if isinstance(paths, str):
        return (parse_path(paths),)
    if not isinstance(paths, (list, tuple)) or not paths:
        raise QueryError(f"fields are a path such as 'value.timestamp', or a list of paths, not {shown(paths)}")
    return tuple(parse_path(path) for path in paths)


def operations_of(operations: Sequence[Operation]) -> list[Operation]:
    """Several operations, in a list or whatever may be gone through."""
    if not is_list(operations):
        raise QueryError(f"operations is a list of operations, not {shown(operations)}")
    return list(operations)
