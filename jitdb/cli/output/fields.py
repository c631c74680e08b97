"""What the options of query say of records: which, in what order, and which of their fields."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from jitdb.cli.output.notes import note_unknown_columns
from jitdb.common.paths import Path
from jitdb.common.values import UNDEFINED, value_at

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators.question import Settings


def settings_of(options: Namespace) -> Settings:
    """Which records, and in which order."""
    return {
        "start_from": options.skip,
        "descending": options.descending,
        "sort_by": options.sort or ("arrival" if options.arrival else "declared"),
        "as_of": options.as_of,
    }


def paths_by_name(names: list[str] | None) -> dict[str, Path]:
    """The paths that --fields gave, by the names of their columns. Raises QueryError."""
    from jitdb.operators.nodes.selection import selection

    return dict(selection("--fields", names)) if names else {}


def chosen(record: Any, paths: dict[str, Path]) -> dict[str, Any]:
    """The fields asked for, by the names of their columns; absent ones are left out."""
    held = ((name, value_at(record, path)) for name, path in paths.items())
    return {name: value for name, value in held if value is not UNDEFINED}


def note_unseen(db: AnyDatabase, rows: Iterable[Any], paths: dict[str, Path], options: Namespace) -> None:
    """Say which of the columns none of these rows has, if there are any."""
    held = [row.keys() for row in rows] if paths else []
    if held:
        known = set().union(*held)
        note_unknown_columns(db, [path for name, path in paths.items() if name not in known], options)
