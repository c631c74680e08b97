"""From a question to the indexes that answer it, and how many of them questions may have built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from jitdb.common.paths import Path, single
from jitdb.common.times import AUTO, NUMBER, Nanoseconds, time_of_number
from jitdb.engine.declared_time import USUAL
from jitdb.errors import QueryError, TooManyIndexes
from jitdb.indexes.spec import IndexSpec, Requirement
from jitdb.operators.nodes.instants import Instant
from jitdb.operators.nodes.operation import Operation

if TYPE_CHECKING:
    from jitdb.indexes.files.index import Index
    from jitdb.operators.question import Context


Needs: TypeAlias = tuple[Requirement, ...]


class Plan(NamedTuple):
    """The indexes that a question needs."""

    needs: Needs
    indexes: tuple[Index, ...]

    def ends(self) -> set[tuple[int, int]]:
        """Where its indexes end: the byte of the log, and how many records there are up to there."""
        return {(index.end_offset, index.end_seq) for index in self.indexes}

    def stale(self, end: int) -> bool:
        """Whether one of them does not reach this byte of the log."""
        return min([index.reached for index in self.indexes], default=end) < end  # a list: asked with each question

    def only_stale(self, end: int) -> Plan:
        """Those that do not reach this byte of the log."""
        stale = [pair for pair in zip(*self, strict=True) if pair[1].reached < end]
        return Plan(tuple(need for need, _ in stale), tuple(index for _, index in stale))


class CoreFields:
    """The fields of a database that stand for a record's time and place.

    timestamp: None are to be found among the usual names; `find` looks, and gives None while there is no record
    unit:      of numbers that are times (jitdb.common.times); NUMBER where the declared time is no time
    """

    def __init__(
        self,
        timestamp: tuple[Path, ...] | None,
        sequence: tuple[Path, ...],
        unit: str = AUTO,
        find: Callable[[], tuple[Path, ...] | None] | None = None,
    ) -> None:
        for path in (*sequence, *(timestamp or ())):
            single(path, "a declared time or sequence")
        self.sequence = sequence
        self.unit = unit
        self.named = timestamp
        self._given: tuple[Path, ...] | None = None  # the last time that anybody asked; None: nobody did
        self._changes = 0
        self._find = find
        self._found: tuple[Path, ...] | None = None

    @property
    def timestamp(self) -> tuple[Path, ...]:
        """The fields that say when a record was made."""
        return self.named if self.named is not None else self._look()

    def _look(self) -> tuple[Path, ...]:
        if self._found is None and self._find is not None:
            self._found = self._find()
        given = self._found or USUAL
        self._changes += self._given not in (None, given)
        self._given = given
        return given

    def changes(self) -> int:
        """How often `timestamp` was found to be other fields than were given before."""
        if self._given is not None and self._found is None:
            self._look()
        return self._changes

    def forget(self) -> None:
        """It is another log now."""
        self._given, self._found = None, None

    def column(self, index: str | Path) -> IndexSpec:
        """The column of "timestamp", of "sequence", or of a field's numbers."""
        if index == "timestamp":
            if self.unit == NUMBER:
                return IndexSpec("column", self.timestamp)
            return IndexSpec("time", self.timestamp, name=self.unit)
        if index == "sequence":
            return IndexSpec("column", self.sequence)
        assert not isinstance(index, str)
        return IndexSpec("column", (index,))

    def compared(
        self, index: str | Path, bound: int | float | Instant, largest: bool = False
    ) -> tuple[IndexSpec, Nanoseconds]:
        """The column that answers a comparison, and the number to compare with: nanoseconds, where times are compared.

        A number is compared with the declared time as a time, and with a field as a number. Raises QueryError.
        """
        is_time = self.unit != NUMBER
        if isinstance(bound, Instant):
            if is_time and (index == "timestamp" or self.timestamp == (index,)):
                return self.column("timestamp"), bound.time
            if isinstance(index, str):
                raise QueryError(f"the declared time is a number here, and {bound!r} a time", remedy="compare numbers")
            return IndexSpec("time", (index,), name=self.unit if is_time else AUTO, largest=largest), bound.time
        if is_time and index == "timestamp":
            time = time_of_number(bound, self.unit)
            assert time is not None  # no question holds NaN
            return self.column("timestamp"), time
        return self.column(index)._replace(largest=largest), bound


def requirements(operation: Operation, core: CoreFields) -> Needs:
    """Each index that the question needs, once."""
    found: dict[IndexSpec, Requirement] = {}
    for leaf in operation.leaves():
        need = leaf.need(core)
        if need is not None:
            found.setdefault(need.spec, need)
    return tuple(found.values())


def needs_of_context(context: Context, core: CoreFields) -> Needs:
    """The indexes by which what stands around answers is found: of a field that is to be the same, the first."""
    same = () if context.same is None else (Requirement(IndexSpec("dictionary", (context.same,))),)
    return same if context.among is None else same + requirements(context.among, core)


class Bounds(NamedTuple):
    """How many indexes questions may have built: for services that take them from strangers. None: any.

    What every answer needs (places, deletions), or its order (time), does not count.
    """

    indexes: int | None = None
    bytes: int | None = None  # of all together; who is below it may build one more, however large that gets

    def check(self, log: FilePath, new: int, there: int, size: int) -> None:
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
