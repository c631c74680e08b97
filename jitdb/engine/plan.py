"""From a question to the indexes that answer it, and how many of them questions may have built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from jitdb.common.paths import ANY, Path, single
from jitdb.common.times import AUTO, NUMBER, Nanoseconds, time_of_number
from jitdb.engine.declared_time import USUAL
from jitdb.errors import QueryError, TooManyIndexes
from jitdb.indexes.spec import OFFSETS, Form, IndexSpec
from jitdb.operators.nodes import operations as ops
from jitdb.operators.nodes.instants import Instant
from jitdb.operators.nodes.operations import Operation

if TYPE_CHECKING:
    from jitdb.indexes.files.index import Index
    from jitdb.operators.question import Context


class Requirement(NamedTuple):
    """An index that must be up to date, and the user's functions that building it takes."""

    spec: IndexSpec
    seek: Callable[[bytes, int], int | None] | None = None
    accepts: Callable[[Any], object] | None = None


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

    def compared(self, leaf: ops.Compare) -> tuple[IndexSpec, Nanoseconds]:
        """The column that answers it, and the number to compare with: nanoseconds, where times are compared.

        A number is compared with the declared time as a time, and with a field as a number. Raises QueryError.
        """
        value, index = leaf.value, leaf.index
        # Any number is above a bound if the largest is; of one number, it is the smallest too.
        largest = not isinstance(index, str) and ANY in index and leaf.op in ("gt", "gte")
        is_time = self.unit != NUMBER
        if isinstance(value, Instant):
            if is_time and (index == "timestamp" or self.timestamp == (index,)):
                return self.column("timestamp"), value.time
            if isinstance(index, str):
                raise QueryError(f"the declared time is a number here, and {value!r} a time", remedy="compare numbers")
            return IndexSpec("time", (index,), name=self.unit if is_time else AUTO, largest=largest), value.time
        if is_time and index == "timestamp":
            time = time_of_number(value, self.unit)
            assert time is not None  # no question holds NaN
            return self.column("timestamp"), time
        return self.column(index)._replace(largest=largest), value


def values_spec(path: Path) -> IndexSpec:
    """The index that is built for the values of a field: bitmaps of elements of arrays: a record has several."""
    spec = IndexSpec("dictionary", (path,))
    return spec._replace(form="bitmap") if spec.is_owned else spec


def first_bytes_spec(path: Path) -> IndexSpec:
    """The index that is built for what values begin with."""
    spec = IndexSpec("prefix", (path,), prefix_offset=0)
    return spec._replace(form="prefix_map") if spec.is_owned else spec


def requirement(leaf: Operation, core: CoreFields) -> Requirement | None:
    """The index that is built to answer a leaf, if none serves that is there (serving.py); None when it needs none."""
    if isinstance(leaf, ops.Predicate):
        spec = IndexSpec(
            "predicate", leaf.field.paths, leaf.field.options.index_type, name=leaf.name, version=leaf.version
        )
        return Requirement(spec, leaf.field.seek, leaf.fn)
    if isinstance(leaf, (ops.Equal, ops.Includes, ops.Absent)):
        return Requirement(field_spec(leaf), leaf.field.seek)
    if isinstance(leaf, ops.StartsWith):
        return Requirement(first_bytes_spec(leaf.path))
    if isinstance(leaf, ops.TextMatch):
        return Requirement(values_spec(leaf.path))
    if isinstance(leaf, ops.Compare):
        return Requirement(core.compared(leaf)[0])
    if isinstance(leaf, ops.Offsets):
        return Requirement(OFFSETS)
    return None


def requirements(operation: Operation, core: CoreFields) -> Needs:
    """Each index that the question needs, once."""
    found: dict[IndexSpec, Requirement] = {}
    for leaf in operation.leaves():
        need = requirement(leaf, core)
        if need is not None:
            found.setdefault(need.spec, need)
    return tuple(found.values())


def field_spec(leaf: ops.FieldOperation) -> IndexSpec:
    """The index that a leaf which looks for a value of a field is answered from."""
    options = leaf.field.options
    elements = isinstance(leaf, ops.Includes)
    pluck = leaf.pluck or () if isinstance(leaf, ops.Includes) else ()
    spec = IndexSpec("auto", leaf.field.paths, options.index_type, elements, pluck, version=options.version)
    if options.prefix is None and not options.index_all:
        return spec
    if not options.prefix:
        return spec._replace(form="bitmap")
    # A prefix index has one entry a record: where a record may own more, it is a map.
    form: Form = "prefix_map" if options.use_map or spec.is_owned else "prefix"
    return spec._replace(form=form, prefix_offset=options.prefix_offset)


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
