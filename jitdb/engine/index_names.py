"""Which index files are meant by who drops indexes: by name, by path, or by a question that they answer."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from jitdb.common.paths import format_path, parse_path
from jitdb.engine.checks import PathLike
from jitdb.engine.plan import CoreFields, requirements
from jitdb.errors import QueryError
from jitdb.indexes.spec import IndexSpec
from jitdb.operators.nodes.operations import Operation


def dropped_names(
    which: Sequence[PathLike | Operation], there: Mapping[str, IndexSpec | None], core: CoreFields
) -> tuple[str, ...]:
    """The names, of those that there are, that are meant. Raises QueryError for what no index has."""
    if not which:
        raise QueryError("drop_index() takes names of index files, paths or questions: none was given")
    names: set[str] = set()
    for each in which:
        if isinstance(each, Operation):
            names.update({need.spec.file_name() for need in requirements(each, core)} & there.keys())
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
        close = difflib.get_close_matches(path if isinstance(path, str) else format_path(keys), known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise QueryError(f"there is no index of {format_path(keys)!r}, and no index file of that name{hint}")
    return found
