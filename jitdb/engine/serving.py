"""Which index serves where several can: for the values of a field, and for what is asked of its text.

Bitmaps that questions for a value left behind have all values of their field, and so has a dictionary. Where one of
them is there, nothing else is built for counting or for text. The one that knows most of the log serves, so one that is
up to date is enough. What is there may change while an index is built: bitmaps become hashes; so plans are looked at
again.

Where neither is there, the first question about text builds a dictionary, but for a field of long texts that hardly
ever repeat: to keep them all once more takes several times as long as to look for one thing in each. There the records
that match are an index of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitdb.common.values import value_at
from jitdb.errors import LogError
from jitdb.indexes.segment import BITMAPS
from jitdb.indexes.spec import IndexSpec, Requirement, values_spec
from jitdb.log.reading.sampling import sample

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.engine.catalog.catalog import Catalog
    from jitdb.engine.plan import CoreFields
    from jitdb.log.source import LogSource
    from jitdb.operators.nodes.operation import Operation

LARGE: Final = 16 << 20  # bytes of a log, below which a dictionary is made in no time
_LOOKED_AT: Final = 500  # records of a large one
_LONG: Final = 32  # bytes of a text, on average: shorter ones are numbered as fast as looked into
_REPEATED: Final = 0.02  # of the texts, that others are too: then there are some ten thousand, which pay for themselves


def serving_spec(catalog: Catalog, path: Path) -> IndexSpec:
    """The index that has the values: bitmaps that know more of the log than the one that is built, or that one."""
    bitmaps, counted = IndexSpec("auto", (path,)), values_spec(path)
    known = catalog.get(bitmaps)
    return bitmaps if known.kind == BITMAPS and known.reached > catalog.get(counted).reached else counted


class Serving:
    """The choice for one log. Guarded by the engine's lock."""

    def __init__(self, catalog: Catalog, log: LogSource) -> None:
        self._catalog, self._log = catalog, log
        self._long: dict[Path, bool] = {}  # whether fields of a large log hold long texts that do not repeat

    def needed(self, leaf: Operation, core: CoreFields) -> Requirement | None:
        """The index that a leaf is answered from, as things are now; None when it needs none."""
        need, own = leaf.need(core), leaf.own_spec
        if need is None or own is None:
            return need
        (path,) = leaf.paths
        values = serving_spec(self._catalog, path)
        reached, known = self._catalog.get(values).reached, self._catalog.reached(own)
        if reached or known:
            return Requirement(values if reached > known else own)
        return Requirement(own if need.spec == own or self.holds_long(path) else values)

    def holds_long(self, path: Path) -> bool:
        """Whether the log is large, and the field one of long texts that hardly ever repeat."""
        if self._log.durable_end < LARGE or values_spec(path).is_owned:
            return False
        found = self._long.get(path)
        if found is None:
            found = self._long[path] = _are_long(path, self._log)
        return found


def _are_long(path: Path, log: LogSource) -> bool:
    try:
        values = [value_at(record, path) for record in sample(log, _LOOKED_AT)]
    except LogError:  # whoever reads these records is told
        return False
    texts = [value for value in values if isinstance(value, str | bytes)]
    repeated = len(texts) - len({*texts})
    return bool(texts) and sum(map(len, texts)) >= _LONG * len(texts) and repeated <= _REPEATED * len(texts)
