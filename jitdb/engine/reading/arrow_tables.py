"""Selected fields of an answer as Arrow's record batches, some thousand rows at a time; needs pyarrow.

What type a column has is told by its values, so who streams an answer goes through it twice: schema_of, then batch_of.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from jitdb.common.paths import before_any
from jitdb.common.values import ABSENT, ARRAY
from jitdb.errors import QueryError
from jitdb.log.codecs.columns.arrow_columns import column, list_array
from jitdb.log.codecs.columns.arrow_types import SeenKinds
from jitdb.log.codecs.containers import Steps, list_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.reading.selecting import FieldBatch
    from jitdb.log.codecs.fields.located import FieldValues
    from jitdb.operators.nodes.selection import Selection


def schema_of(selection: Selection, batches: Iterable[FieldBatch]) -> pa.Schema:
    """A column for each selected field, of a type that takes all values of these batches."""
    seen = [SeenKinds() for _ in selection]
    for batch in batches:
        selection = batch.selection
        for number, kinds in enumerate(seen):
            values, owners = _found(batch, number)
            (kinds if owners is None else kinds.elements()).note(values)
    return pa.schema(
        [
            pa.field(name, pa.list_(kinds.elements().type()) if before_any(path) != path else kinds.type())
            for (name, path), kinds in zip(selection, seen, strict=True)
        ]
    )


def batch_of(batch: FieldBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a batch. Raises QueryError where a value fits its column no more."""
    arrays = []
    for number, field in enumerate(schema):
        values, owners = _found(batch, number)
        misfits = _Misfits(field.name)
        if owners is None:
            arrays.append(column(field.type, values, misfits))
        else:
            counts = np.bincount(owners, minlength=len(batch))
            arrays.append(list_array(field.type, column(field.type.value_type, values, misfits), counts, counts > 0))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _found(batch: FieldBatch, number: int) -> tuple[FieldValues, NDArray[np.int32] | None]:
    """The values of a field; of a path to any element, all that they lead to, and the rows that own these."""
    values, (_, path) = batch.fields[number], batch.selection[number]
    rest = path[len(before_any(path)) :]
    if not rest:
        return values, None
    only = values._replace(kind=np.where(values.kind == ARRAY, values.kind, np.uint8(ABSENT)))
    return list_values(only, Steps.of(rest))


class _Misfits:
    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, wrong: Any) -> None:
        raise QueryError(
            f"values of `{self._name}` are of another kind than all of them were just now: the log has grown",
            remedy="ask again",
        )
