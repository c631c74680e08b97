"""What a database is asked with, checked: operations, numbers, orders, paths."""

from __future__ import annotations

import operator
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from jitdb.errors import QueryError
from jitdb.operators.deferred import resolve
from jitdb.operators.live_seqs import refuse_live_seqs
from jitdb.operators.operations import Everything, Operation, not_an_operation
from jitdb.paths import Path, parse_path

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
) -> Operation:
    """The operation, with what its deferred parts give for `db` in their places; none asks for everything.

    `live`: whether it is asked by a feed, the one place where live_seqs() is understood.
    """
    if operation is None:
        return EVERYTHING
    if not isinstance(operation, Operation):
        raise QueryError(f"a question is an operation, and {not_an_operation(operation)}")
    if operation.unsettled:
        operation = resolve(operation, db, cancel)
        if not live:
            refuse_live_seqs(operation)
    return operation


def whole_number(meaning: str, number: int, least: int = 0) -> int:
    """An integer, of Python or of numpy, of at least `least`."""
    if type(number) is int and number >= least:
        return number
    try:
        found = least - 1 if isinstance(number, bool) else operator.index(number)
    except TypeError:
        found = least - 1
    if found < least:
        raise QueryError(f"{meaning}, {least} or more, not {number!r}")
    return found


def skipped(start_from: int) -> int:
    """How many answers to skip."""
    return whole_number("start_from is a number of answers to skip", start_from)


def page_size(limit: int) -> int:
    """How many answers a page has at most."""
    return whole_number("limit is a number of records", limit, 1)


def by_arrival(sort_by: str) -> bool:
    """Whether answers come in the order of the log."""
    if sort_by not in ("declared", "arrival"):
        raise QueryError(f"sort_by is 'declared' or 'arrival', not {sort_by!r}")
    return sort_by == "arrival"


def paths_of(paths: PathLike | Sequence[PathLike]) -> tuple[Path, ...]:
    """One path or several; a plain string is one path."""
    if isinstance(paths, str):
        return (parse_path(paths),)
    return tuple(parse_path(path) for path in paths)
