"""What the commands that count have in common: whom they ask, about which records, and what is said of none."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from jitdb.cli.failures import note
from jitdb.cli.output.notes import note_missing, note_unknown_columns
from jitdb.common.paths import format_path

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators import Operation, Query


class Question(NamedTuple):
    """What is counted. `show` gets the answer before anything is said of it."""

    db: AnyDatabase
    operation: Operation | None
    options: Namespace
    show: Callable[[Any], object]

    @property
    def query(self) -> Query:
        """The records that are asked about."""
        query = self.db.query(self.operation)
        return query if self.options.as_of is None else query.as_of(self.options.as_of)

    def note_no_numbers(self, path: Path) -> None:
        """No record has a number there: say what they have instead, or that they have no such field."""
        name = format_path(path)
        kinds = next((field.kinds for field in self.db.fields() if field.path == path), None)
        if kinds is None:
            note_unknown_columns(self.db, [path], self.options)
        else:
            other = "timeline" if path in self.db.declared_time else "values"
            note(self.options, f"`{name}` holds no numbers but {' and '.join(kinds)}: `jitdb {other}` counts them")

    def note_others(self, path: Path) -> None:
        """Some records have numbers there: say whether others have something else."""
        from jitdb.operators import gt

        if not self.options.quiet and self.db.remarks(self.db.query(gt(0, path)).sort_by_arrival().question):
            told = f"some values of `{format_path(path)}` are no numbers, and left out here"
            note(self.options, f"{told}: `jitdb values` counts them, too")

    def note_nothing(self, total: int, empty: Iterable[Path] = ()) -> None:
        """Say which fields of the question no record has; where none matched, or had such a field, why."""
        note_missing(self.db, self.operation, self.options, is_empty=not total)
        if total:
            note_unknown_columns(self.db, empty, self.options)
