"""From a question to the indexes that answer it, and how many of them questions may have built."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from jitdb.common.paths import Path
from jitdb.common.values import value_at
from jitdb.engine.budget import Budget
from jitdb.engine.declared_time import CoreFields
from jitdb.errors import LogError, TooManyIndexes
from jitdb.indexes.segment import BITMAPS
from jitdb.indexes.spec import IndexSpec, Requirement, values_spec
from jitdb.log.reading.sampling import sample
from jitdb.operators.nodes.operation import Operation

if TYPE_CHECKING:
    from jitdb.engine.catalog.catalog import Catalog
    from jitdb.indexes.files.index import Index
    from jitdb.log.objects.door import Location
    from jitdb.log.source import LogSource


Needs: TypeAlias = tuple[Requirement, ...]

# Each question looks at all its indexes with these, which is faster than a loop of ours.
_END: Final = attrgetter("end_offset", "end_seq")
_REACHED: Final = attrgetter("reached")


class Plan(NamedTuple):
    """The indexes that a question needs."""

    needs: Needs
    indexes: tuple[Index, ...]

    def ends(self) -> set[tuple[int, int]]:
        """Where its indexes end: the byte of the log, and how many records there are up to there."""
        return set(map(_END, self.indexes))

    def stale(self, end: int) -> bool:
        """Whether one of them does not reach this byte of the log."""
        return min(map(_REACHED, self.indexes), default=end) < end

    def only_stale(self, end: int) -> Plan:
        """Those that do not reach this byte of the log."""
        stale = [pair for pair in zip(*self, strict=True) if pair[1].reached < end]
        return Plan(tuple(need for need, _ in stale), tuple(index for _, index in stale))


def requirements(operation: Operation, core: CoreFields) -> Needs:
    """Each index that the question needs, once."""
    found: dict[IndexSpec, Requirement] = {}
    for leaf in operation.leaves():
        need = leaf.need(core)
        if need is not None:
            found.setdefault(need.spec, need)
    return tuple(found.values())


class Bounds(NamedTuple):
    """How many indexes questions may have built: for services that take them from strangers. None: any.

    What every answer needs (places, deletions), or its order (time), does not count.
    """

    indexes: int | None = None
    bytes: int | None = None  # of all together; who is below it may build one more, however large that gets
    budget: Budget | None = None  # of bytes that may be read to build them

    def check(self, log: Location, new: int, there: int, size: int) -> None:
        """Raise TooManyIndexes if `new` indexes beside the `there` ones of `size` bytes are too many."""
        if self.indexes is not None and there + new > self.indexes:
            bound = f"max_indexes={self.indexes:,} are allowed, and there are {there:,}"
        elif self.bytes is not None and size >= self.bytes:
            bound = f"max_index_bytes={self.bytes:,} are taken: {size:,}"
        else:
            return
        raise TooManyIndexes(
            f"the question needs {new:,} {'index' if new == 1 else 'indexes'} more, and {bound}",
            path=log,
            remedy="ask for what is indexed, build it with prepare(), or drop others with drop_index()",
        )


UNBOUND: Final = Bounds()


# --- which of several indexes serves ---------------------------------------------------------------------------------

LARGE: Final = 16 << 20  # bytes of a log, below which a dictionary is made in no time
_LOOKED_AT: Final = 500  # records of a large one
_LONG: Final = 32  # bytes of a text, on average: shorter ones are numbered as fast as looked into
_REPEATED: Final = 0.02  # of the texts, that others are too: then there are some ten thousand, which pay for themselves


def serving_spec(catalog: Catalog, path: Path) -> IndexSpec:
    """The index that has the values: bitmaps if they know more of the log than the index of counts, else that one."""
    bitmaps, counted = IndexSpec("auto", (path,)), values_spec(path)
    known = catalog.get(bitmaps)
    return bitmaps if known.kind == BITMAPS and known.reached > catalog.get(counted).reached else counted


class Serving:
    """Which index serves where several would do. Guarded by the engine's lock.

    For the values of a field, and for what is asked of its text, these are bitmaps that questions for a value left
    behind, and a dictionary. Where one of them is there, nothing else is built for counting or for text. The one that
    knows most of the log serves, so one that is up to date is enough. What is there may change while an index is built
    (bitmaps become hashes), so plans are looked at again.

    Where neither is there, the first question about text builds a dictionary, except for a field of long texts that
    hardly ever repeat: keeping them all once more takes several times as long as looking for one thing in each. There
    the records that match are an index of their own.
    """

    def __init__(self, catalog: Catalog, log: LogSource) -> None:
        self._catalog, self._log = catalog, log
        self._long: dict[Path, bool] = {}  # whether fields of a large log hold long texts that do not repeat

    def needed(self, leaf: Operation, core: CoreFields) -> Requirement | None:
        """The index that a leaf is answered from, as things are now; None when it needs none."""
        need, own = leaf.need(core), leaf.own_spec
        if leaf.longest:
            return Requirement(serving_spec(self._catalog, *leaf.paths))
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
    except LogError:  # raised again to who reads these records
        return False
    texts = [value for value in values if isinstance(value, str | bytes)]
    repeated = len(texts) - len({*texts})
    return bool(texts) and sum(map(len, texts)) >= _LONG * len(texts) and repeated <= _REPEATED * len(texts)
