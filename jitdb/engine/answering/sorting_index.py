"""Which index a field's order is taken from: the smallest one that holds all of its values.

A column does where all values are numbers, a column of times where all are times as text, a dictionary always. That
there are others is told by a column once it is built; until then by one that there is, else by the first records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jitdb.common.times import AUTO, NUMBER, time_of_text
from jitdb.common.values import value_at
from jitdb.errors import LogError
from jitdb.indexes.kinds import seen
from jitdb.indexes.kinds.numbers import seen_by
from jitdb.indexes.spec import IndexSpec
from jitdb.log.reading.sampling import first

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.engine.catalog.catalog import Catalog
    from jitdb.engine.declared_time import CoreFields
    from jitdb.indexes.files.index import Index
    from jitdb.log.source import LogSource

_LOOKED_AT: Final = 16  # records
_TEXTS_ONLY: Final = seen.TEXTS | seen.ZONELESS


def sorting_spec(path: Path, core: CoreFields, catalog: Catalog, log: LogSource) -> IndexSpec:
    """The index to sort by this field from, which may not be there yet."""
    column = IndexSpec("column", (path,))
    time = IndexSpec("time", (path,), name=AUTO if core.unit == NUMBER else core.unit)
    dictionary = IndexSpec("dictionary", (path,))
    for spec in (column, time, dictionary):
        index = catalog.get(spec)
        if index.segments and _holds_all(index):
            return spec
    if catalog.get(column).segments or catalog.get(time).segments:
        return dictionary
    return {_is_number: column, _is_time: time}.get(_what_all_are(path, log), dictionary)


def _holds_all(index: Index) -> bool:
    """Whether it holds all values that the field has, as far as it reaches."""
    bits = 0
    if index.spec.form != "dictionary":
        for segment in index.segments:
            bits |= seen_by(segment)
    return not bits & ~_TEXTS_ONLY


def _what_all_are(path: Path, log: LogSource) -> Any:
    """_is_number or _is_time, where that is true of all values in the first records, and there are some."""
    try:
        found = [value_at(record, path) for record in first(log, _LOOKED_AT)]
    except LogError:  # whoever reads these records is told
        return None
    values = [value for value in found if value]  # what is empty, or 0, tells little
    return next((kind for kind in (_is_number, _is_time) if values and all(map(kind, values))), None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and time_of_text(value) is not None
