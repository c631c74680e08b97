"""What a question is made of: operations, immutable values that are true or false of a record.

Leaves look at one field or at the record's place in the log. An operator is a class with the function that makes it,
which checks what users write; nothing else checks twice. It declares its parts (`__match_args__`) and the arguments of
its function (`arguments`); from these follow its identity, its text in Python and in expressions, and its JSON. It says
what it means of one value (`holds`), which index it needs, and how that answers it. Here is what all are asked, and
And, Or and Not, which combine them. Two leaves are not resolved when they are made: Deferred and LiveSeqs
(operators/tasks).

Each operation has an `identity`: a nested tuple of plain hashable parts, made once. Equality and hashing go by it,
because Python's own would take True, 1 and 1.0 for one value and cannot hash a list. Keys of caches derive from it.
Functions are identified by name: a predicate by `name` and `version`, a seek function by its `index_type`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias

from jitdb.common.immutable import Immutable
from jitdb.common.paths import format_path
from jitdb.common.values import UNDEFINED, value_at, value_key
from jitdb.errors import QueryError
from jitdb.operators.nodes.instants import Instant
from jitdb.operators.nodes.literals import (
    describe_index,
    describe_path,
    describe_value,
    function_name,
    not_an_operation,
    written_index,
    written_value,
)

if TYPE_CHECKING:
    from pyroaring import BitMap

    from jitdb.common.paths import Path
    from jitdb.indexes.kinds.numbers import Comparison
    from jitdb.indexes.spec import IndexSpec, Requirement

Identity: TypeAlias = tuple[Any, ...]

MAX_NESTING: Final = 100  # combinators within each other; deeper ones would exhaust the stack of a walker

#: Bits of `Operation.unresolved`.
DEFERRED: Final = 1  # a task makes a part of it when it is asked
LIVE_SEQS: Final = 2  # a part of it becomes true of more and more records

VALUES: Final = ("value", "low", "high")  # parts, and arguments, that are values of records
OPTIONAL: Final = "pluck"  # the one argument that may be left out


class Core(Protocol):
    """Which fields a database takes for a record's time and place."""

    def compared(
        self, index: str | Path, bound: int | float | Instant, largest: bool = False
    ) -> tuple[IndexSpec, int | float]:
        """The column that answers a comparison, and the number to compare with. Raises QueryError.

        largest: it is one of the largest number that the path leads to
        """


class Answering(Protocol):
    """The index that a leaf needs, and some records. Deleted ones may be in what it gives. The engine implements it."""

    @property
    def core(self) -> Core: ...

    @property
    def form(self) -> str:
        """That of the index (IndexSpec.form)."""

    def with_value(self, key: bytes) -> BitMap:
        """Those whose field has the value of this key."""

    def without_value(self) -> BitMap:
        """Those that have no such field."""

    def marked(self) -> BitMap:
        """All in an index that has nothing but records."""

    def candidates(self) -> BitMap:
        """Those that have one of the operator's `prefixes`, and of which it `holds`."""

    def with_text(self, match: Any) -> BitMap:
        """Those that have one of the values that a leaf is true of."""

    def in_column(self, *bounds: tuple[Comparison, int | float]) -> BitMap:
        """Those whose number is above or below all of these."""

    def at_seqs(self, packed: bytes) -> BitMap:
        """Those of these ordinals (literals.pack_positions)."""

    def at_offsets(self, packed: bytes) -> BitMap:
        """Those that begin at these bytes."""

    def in_stretches(self, parts: Iterable[tuple[int, int]]) -> BitMap:
        """Those that begin in one of these stretches, from a byte on up to another one."""

    def in_set(self, log: bytes, generation: int, packed: bytes) -> BitMap:
        """Those that were in this set (operators/sets.py). Raises QueryError where it is of another log."""


class Operation(Immutable):
    """The base of all operations. Combine with `&`, `|`, `~` (or and_, or_, not_)."""

    __slots__ = ("_identity",)

    op = ""  # the name of the function that makes it, and in JSON
    arguments: ClassVar[tuple[str, ...]] = ()  # of that function, in its order, and the keys of its JSON; parts of it
    signs: ClassVar[tuple[str, str]] = ("", "")  # how an expression writes it and its opposite, where not as a call
    nesting = 0  # how deep combinators lie within each other below this one
    unresolved = 0  # what of it is only known when it is asked: DEFERRED | LIVE_SEQS; mostly nothing
    names_places = False  # whether it names places in one log, which mean nothing in another
    longest = 0  # of a leaf that an index of all values of its field answers: the bytes of a key that it can hold of
    names_value = False  # whether it finds nothing for a value that no record has in the field

    _identity: ClassVar[Identity]  # of each

    # --- what it is -------------------------------------------------------------------------------------------------

    @property
    def identity(self) -> Identity:
        """A hashable value, equal for operations that ask the same."""
        try:
            return self._identity
        except AttributeError:
            identity = self._identify()
            object.__setattr__(self, "_identity", identity)
            return identity

    def _identify(self) -> Identity:
        names: tuple[str, ...] = self.__match_args__
        return (self.op, *[_identity_of(name, getattr(self, name)) for name in names if name != "op"])

    def __repr__(self) -> str:
        """The operation as one would write it in Python."""
        return self._call(describe_path, describe_value)

    def written(self) -> str:
        """The operation as `parse_expression` reads it."""
        return self._signed(self.signs[0]) if self._has_sign else self._call(format_path, written_value)

    def denied(self) -> str:
        """The text of its opposite."""
        return self._signed(self.signs[1]) if self._has_sign and self.signs[1] else f"not {_inside(self, Not)}"

    @property
    def _has_sign(self) -> bool:
        return bool(self.signs[0])

    def _signed(self, sign: str) -> str:
        return sign.format(*self._said(format_path, written_value))

    def _call(self, path: Callable[[Path], str], value: Callable[[Any], str]) -> str:
        keywords = (f"{name}={part!r}" for name, part in self.keywords().items())
        return f"{self.op}({', '.join([*self._said(path, value), *keywords])})"

    def _said(self, path: Callable[[Path], str], value: Callable[[Any], str]) -> Iterator[str]:
        """Its arguments as text."""
        for name in self.arguments:
            part: Any = None if name == "path" and self.seek is not None else getattr(self, name)
            if name in VALUES:
                yield value(part)
            elif name == "index":
                yield written_index(part) if path is format_path else describe_index(part)
            elif name == "fn" or (name == "path" and self.seek is not None):
                yield function_name(part or self.seek)
            elif name != OPTIONAL:
                yield path(part)
            elif part is not None:
                yield f"{name}={describe_path(part)}"

    def keywords(self) -> dict[str, Any]:
        """What its function takes by keywords beside the arguments, and what is not the default."""
        return {}

    @property
    def function(self) -> tuple[str, str] | None:
        """The function in it, which no text can hold, in words; and what to write instead. None without one."""
        return None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths that it looks at itself: one, or none."""
        return ()

    @property
    def seek(self) -> Callable[[bytes, int], int | None] | None:
        """The function of the user that finds its field, where no path does."""
        return None

    @property
    def compared(self) -> tuple[str | Path, bool] | None:
        """The index or path that it compares by size, and whether with times; None where it does not."""
        return None

    # --- what it means ----------------------------------------------------------------------------------------------

    def holds(self, value: Any) -> bool:
        """The rule: whether it is true of this value of its field. One of several values is enough."""
        raise NotImplementedError

    def of_value(self, value: Any) -> bool:
        """Whether it is true of a record whose field has this value alone, or none where it is UNDEFINED."""
        return value is not UNDEFINED and self.holds(value)

    def narrowed(self, fields: Mapping[str, Any]) -> Operation:
        """The operation for records that all have these fields: without what they decide; NOTHING if none can match.

        Raises QueryError for places in a log, which mean nothing in several logs.
        """
        if self.names_places:
            raise QueryError(
                f"{self.op}() names places in one log, and this asks several", remedy="ask that log: jitdb.open()"
            )
        if not self.paths or self.paths[0][0] not in fields or self.seek is not None:
            return self
        return EVERYTHING if self.of_value(value_at(dict(fields), self.paths[0])) else NOTHING

    # --- how it is answered -----------------------------------------------------------------------------------------

    def need(self, core: Core) -> Requirement | None:
        """The index to build if no existing one can answer it (engine/plan.py); None: it needs none.

        Raises QueryError.
        """
        return None

    @property
    def own_spec(self) -> IndexSpec | None:
        """The index that answers nothing but it, where an index of all values of the field would answer it, too."""
        return None

    @property
    def bitmap(self) -> tuple[IndexSpec, bytes] | None:
        """The index that it needs, and the key whose bitmap is its answer, if the index has a bitmap for each value."""
        return None

    def answer(self, asked: Answering) -> BitMap:
        """The records that it is true of, by its index."""
        raise NotImplementedError

    def prefixes(self, offset: int) -> tuple[int, int] | None:
        """The least and the largest prefix that a value which it holds of can have, from this byte on (IndexSpec).

        None where an index of prefixes does not answer it.
        """
        return None

    @property
    def payload(self) -> tuple[bytes, bool] | None:
        """The key of every value that it holds of (True), or the beginning of those keys (False); or None."""
        return None

    def records(self, leaf: Callable[[Operation], BitMap], every: Callable[[], BitMap]) -> BitMap:
        """The matching records, from those of each leaf and all that there are. Callers do not change the result."""
        return leaf(self)

    # --- where it finds nothing -------------------------------------------------------------------------------------

    def others(self) -> Iterator[Operation]:
        """The same for values that may have been meant, which the index of the question knows, too."""
        return iter(())

    def lowest(self) -> tuple[Operation, str] | None:
        """What is true of all values that it can compare, and what to say of a field without any; or None."""
        return None

    def of_elements(self) -> Operation | None:
        """The same, asked of the elements of arrays; None where that cannot be asked."""
        return None

    def of_field(self, path: Path) -> Operation:
        """A leaf that looks at one path: the same, asked of another field."""
        return self.changed(**{name: path for name in ("path", "index") if name in self.__match_args__})

    # --- together with others ---------------------------------------------------------------------------------------

    def children(self) -> tuple[Operation, ...]:
        """The operations that it combines; none of a leaf."""
        return ()

    def rebuild(self, children: tuple[Operation, ...]) -> Operation:
        """A copy with other children, as many."""
        return self

    def leaves(self) -> Iterator[Operation]:
        """All operations below that look at records themselves, in the order in which they stand."""
        children = self.children()
        if not children:
            yield self
        for child in children:
            yield from child.leaves()

    def denied_leaves(self) -> Iterator[Operation]:
        """Those of the leaves that stand below a `not`."""
        for child in self.children():
            yield from child.denied_leaves()

    def all_paths(self) -> list[Path]:
        """The paths that leaves below look at."""
        return [path for leaf in self.leaves() for path in leaf.paths]

    def compares(self, index: str) -> bool:
        """Whether a leaf below compares this derived index by size."""
        return any(leaf.compared is not None and leaf.compared[0] == index for leaf in self.leaves())

    def replaced(self, by: Callable[[Operation], Operation], unresolved: int | None = None) -> Operation:
        """The operation with `by(leaf)` for each leaf, or only for leaves with one of these bits in `unresolved`."""
        if unresolved is not None and not self.unresolved & unresolved:
            return self
        children = self.children()
        if not children:
            return by(self)
        return self.rebuild(tuple(child.replaced(by, unresolved) for child in children))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __and__(self, other: Operation) -> Operation:
        return combine(And, (self, other))

    def __or__(self, other: Operation) -> Operation:
        return combine(Or, (self, other))

    def __invert__(self) -> Operation:
        return self.arg if isinstance(self, Not) else Not(self)

    def __bool__(self) -> bool:
        raise QueryError(
            "an operation is neither true nor false until a record is looked at",
            remedy="combine operations with & | ~ or and_ or_ not_, not with `and`, `or`, `not`; write `1 < x "
            "< 5` as (x > 1) & (x < 5), and `field in [a, b]` as field.isin([a, b])",
        )


class Everything(Operation):
    """Every live record."""

    __slots__ = ()
    op = "everything"

    def records(self, leaf: Callable[[Operation], BitMap], every: Callable[[], BitMap]) -> BitMap:
        return every()


class _Combination(Operation):
    """Several operations at once; their order and repeats mean nothing to the answer or the identity."""

    __slots__ = ("args", "nesting", "unresolved")
    __match_args__ = arguments = ("args",)

    args: tuple[Operation, ...]

    def __init__(self, args: tuple[Operation, ...]) -> None:
        nesting = unresolved = 0
        for arg in args:
            if arg.nesting > nesting:
                nesting = arg.nesting
            unresolved |= arg.unresolved
        if nesting >= MAX_NESTING:
            raise QueryError(
                f"operations are nested more than {MAX_NESTING} deep", remedy="and_ and or_ take any number"
            )
        object.__setattr__(self, "args", args)
        object.__setattr__(self, "nesting", nesting + 1)
        object.__setattr__(self, "unresolved", unresolved)

    def _identify(self) -> Identity:
        return (self.op, frozenset(arg.identity for arg in self.args))

    def __repr__(self) -> str:
        return f"{self.op}_({', '.join(map(repr, self.children()))})"

    def children(self) -> tuple[Operation, ...]:
        return self.args

    def rebuild(self, children: tuple[Operation, ...]) -> Operation:
        return combine(type(self), children)

    def written(self) -> str:
        return f" {self.op} ".join(_inside(arg, type(self)) for arg in self.args)

    def narrowed(self, fields: Mapping[str, Any]) -> Operation:
        parts = [arg.narrowed(fields) for arg in self.args]
        absorbing, neutral = (NOTHING, EVERYTHING) if isinstance(self, And) else (EVERYTHING, NOTHING)
        if absorbing in parts:
            return absorbing
        rest = tuple(part for part in parts if part != neutral)
        return self.rebuild(rest) if rest else neutral


class Not(_Combination):
    """The live records of which `arg` is not true."""

    __slots__ = ()
    __match_args__ = arguments = ("arg",)
    op = "not"

    def __init__(self, arg: Operation) -> None:
        super().__init__((arg,))
        if self.unresolved & LIVE_SEQS:
            raise QueryError(
                "live_seqs() stands below no not_(): what its source has not given yet would be in the answer, "
                "and would have to be taken back later"
            )

    @property
    def arg(self) -> Operation:
        """What is not true."""
        return self.args[0]

    def _identify(self) -> Identity:
        return ("not", self.arg.identity)

    def denied_leaves(self) -> Iterator[Operation]:
        return self.arg.leaves()

    def rebuild(self, children: tuple[Operation, ...]) -> Operation:
        return ~children[0]

    def records(self, leaf: Callable[[Operation], BitMap], every: Callable[[], BitMap]) -> BitMap:
        return every() - self.arg.records(leaf, every)

    def written(self) -> str:
        return self.arg.denied()

    def narrowed(self, fields: Mapping[str, Any]) -> Operation:
        below = self.arg.narrowed(fields)
        return EVERYTHING if below == NOTHING else ~below


class And(_Combination):
    """All of `args` are true of the record."""

    __slots__ = ()
    op = "and"

    def records(self, leaf: Callable[[Operation], BitMap], every: Callable[[], BitMap]) -> BitMap:
        return reduce(operator.and_, sorted((arg.records(leaf, every) for arg in self.args), key=len))


class Or(_Combination):
    """At least one of `args` is true of the record."""

    __slots__ = ()
    op = "or"

    def records(self, leaf: Callable[[Operation], BitMap], every: Callable[[], BitMap]) -> BitMap:
        first, *rest = (arg.records(leaf, every) for arg in self.args)
        return first.union(first, *rest)


EVERYTHING: Final = Everything()
NOTHING: Final = ~EVERYTHING


def combine(kind: type[_Combination], args: tuple[Operation, ...]) -> Operation:
    """All `args` under one And or Or: those of the same kind are taken apart first."""
    flat: list[Operation] = []
    for arg in args:
        if type(arg) is kind:
            flat.extend(arg.args)
        elif isinstance(arg, Operation):
            flat.append(arg)
        else:
            raise QueryError(f"{kind.op}_() combines operations, and {not_an_operation(arg)}")
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def _identity_of(name: str, part: Any) -> Any:
    if name in VALUES:
        return ("time", value_key(part.time)) if isinstance(part, Instant) else value_key(part)
    return part.identity if name == "field" else part


def _inside(operation: Operation, outer: type[Operation]) -> str:
    """How it is written within another one."""
    binds_looser = isinstance(operation, Or) or (isinstance(operation, And) and outer is not Or)
    return f"({operation.written()})" if binds_looser else operation.written()


def and_(*operations: Operation | None) -> Operation:
    """All of them: see text/taken.py, whose and_ takes text, too, as do the two below."""
    given = tuple(operation for operation in operations if operation is not None)
    if given:
        return combine(And, given)
    if operations:
        return EVERYTHING
    raise QueryError("and_() needs at least one operation", remedy="for all records write everything()")


def or_(*operations: Operation | None) -> Operation:
    """At least one of them."""
    given = tuple(operation for operation in operations if operation is not None)
    if given:
        return combine(Or, given)
    raise QueryError(
        "or_() needs at least one operation", remedy="for no records write not_(everything()), for all everything()"
    )


def not_(operation: Operation) -> Operation:
    """The opposite."""
    if not isinstance(operation, Operation):
        raise QueryError(f"not_() takes one operation, and {not_an_operation(operation)}")
    return ~operation


def everything() -> Operation:
    """Every live record.

    >>> everything()
    everything()
    """
    return EVERYTHING
