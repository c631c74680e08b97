"""Remarks on an answer by numbers or times: how the values of a field were read, and which are no number or time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

from jitdb.common.paths import format_path
from jitdb.common.times import AUTO
from jitdb.indexes.kinds import seen
from jitdb.indexes.kinds.numbers import seen_by
from jitdb.indexes.spec import IndexSpec

if TYPE_CHECKING:
    from jitdb.engine.catalog.catalog import Catalog
    from jitdb.engine.declared_time import CoreFields
    from jitdb.operators.nodes.operation import Operation

_UNITS: Final = {
    seen.SECONDS: "seconds", seen.MILLISECONDS: "milliseconds", seen.MICROSECONDS: "microseconds",
    seen.NANOSECONDS: "nanoseconds",
}  # fmt: skip


def remarks_of(
    catalog: Catalog, core: CoreFields, operation: Operation, ordered: bool, is_full: bool = True
) -> list[str]:
    """A line for each remark on the columns that answer the question, as far as they are built.

    is_full: False: only remarks on what may make the answer unexpected
    """
    found = ((leaf.need(core), leaf.compared) for leaf in operation.leaves())
    ranges = [(need.spec, compared[1]) for need, compared in found if need is not None and compared is not None]
    specs = dict.fromkeys((spec for spec, _ in ranges), False) | {spec: True for spec, of_times in ranges if of_times}
    if ordered:
        specs.setdefault(core.column("timestamp"), False)
    lines = (_of_column(spec, _bits(catalog, spec), as_time, is_full) for spec, as_time in specs.items())
    return list(dict.fromkeys(chain.from_iterable(lines)))  # a range of any element asks two columns of one field


def _bits(catalog: Catalog, spec: IndexSpec) -> int:
    bits = 0
    for segment in catalog.get(spec).segments:
        bits |= seen_by(segment)
    return bits


def _of_column(spec: IndexSpec, bits: int, as_time: bool, is_full: bool) -> Iterator[str]:
    """`as_time`: the field is compared with a time. The unit of numbers, and the zone of text, does not matter to the
    order among them.
    """
    name = " or ".join(f"`{format_path(path)}`" for path in spec.paths)
    if spec.form == "column":
        if bits & seen.OTHERS:
            yield f"some values of {name} are no numbers: `<` and `>` leave them out"
        return
    if bits & seen.OTHERS:
        yield f"some values of {name} are no times: comparisons leave them out, and they sort first"
    if bits & seen.ZONELESS and as_time:
        yield f"times of {name} without a zone are read as UTC"
    units = [unit for bit, unit in _UNITS.items() if bits & bit]
    if spec.name == AUTO and units and (len(units) > 1 or (as_time and is_full)):
        yield f"numbers of {name} are read as {' and '.join(units)}, by their size"
