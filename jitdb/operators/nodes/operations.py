"""What a question is made of: operations, immutable values that are true or false of a record.

Leaves look at one field (Equal, Includes, Predicate, Absent, StartsWith, TextMatch, Compare) or at the record's place
in the log (Seqs, Offsets, Everything); And, Or and Not combine them. The functions of making.py check what users write
and make these values; nothing here checks twice. Two leaves are not resolved when they are made, and live in a room of
their own: Deferred and LiveSeqs (operators/tasks).

Each operation has an `identity`: a nested tuple of plain hashable parts, made once. Equality and hashing
go by it, because Python's own would take True, 1 and 1.0 for one value and cannot hash a list. The key of
a cache and the name of an index derive from it. Functions are identified by name: a predicate by `name`
and `version`, a seek function by its `index_type`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, Literal, TypeAlias

from jitdb.common.immutable import Immutable
from jitdb.common.paths import Path
from jitdb.common.values import value_key
from jitdb.errors import QueryError
from jitdb.operators.nodes.describe import (
    describe_bound,
    describe_path,
    describe_value,
    function_name,
    not_an_operation,
)
from jitdb.operators.nodes.field_ref import FieldRef
from jitdb.operators.nodes.instants import Instant
from jitdb.operators.nodes.literals import unpack_positions

Identity: TypeAlias = tuple[Any, ...]

Comparison: TypeAlias = Literal["gt", "gte", "lt", "lte"]

TextOperator: TypeAlias = Literal["contains", "starts_with", "ends_with", "like", "matches"]

MAX_NESTING: Final = 100  # combinators within each other; deeper ones would exhaust the stack of a walker

#: Bits of `Operation.unresolved`.
DEFERRED: Final = 1  # a task makes a part of it when it is asked
LIVE_SEQS: Final = 2  # a part of it becomes true of more and more records


class Operation(Immutable):
    """The base of all operations. Combine with `&`, `|`, `~` (or and_, or_, not_)."""

    __slots__ = ("_identity",)

    op = ""  # the name of the function that makes it, and in JSON
    nesting = 0  # how deep combinators lie within each other below this one
    unresolved = 0  # what below this one has no fixed meaning yet: DEFERRED | LIVE_SEQS; nothing in nearly all

    _identity: ClassVar[Identity]  # of each

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
        raise NotImplementedError

    def __repr__(self) -> str:
        """The operation as one would write it in Python."""
        raise NotImplementedError

    @property
    def function(self) -> tuple[str, str] | None:
        """What in it is a function, which cannot be written as text or shipped; and what can be written instead."""
        return None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths that it looks at itself: one, or none."""
        return ()

    def children(self) -> tuple[Operation, ...]:
        """The operations that it combines; none of a leaf."""
        return ()

    def rebuild(self, children: tuple[Operation, ...]) -> Operation:
        """The same of other children, as many."""
        return self

    def leaves(self) -> Iterator[Operation]:
        """All operations below that look at records themselves, in the order in which they stand."""
        children = self.children()
        if not children:
            yield self
        for child in children:
            yield from child.leaves()

    def replaced(self, by: Callable[[Operation], Operation], unresolved: int | None = None) -> Operation:
        """The operation with `by(leaf)` in the place of each leaf, or of those that are so `unresolved`."""
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

    def _identify(self) -> Identity:
        return ("everything",)

    def __repr__(self) -> str:
        return "everything()"


class FieldOperation(Operation):
    """A leaf that looks at one field."""

    __slots__ = ()

    field: FieldRef

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.field.paths

    @property
    def function(self) -> tuple[str, str] | None:
        return None if self.field.seek is None else ("a seek function", "use a path")

    def _written(self, *arguments: str) -> str:
        options = [f"{key}={value!r}" for key, value in self.field.options.given().items()]
        return f"{self.op}({', '.join([self.field.describe(), *arguments, *options])})"


class ValueOperation(FieldOperation):
    """A leaf that compares the field with a value."""

    __slots__ = ()

    value: Any

    @property
    def key(self) -> bytes:
        """The canonical bytes of the value (`value_key`), made once: it may be an array of a million numbers."""
        key: bytes = self.identity[2]
        return key


class Equal(ValueOperation):
    """The field holds this value."""

    __slots__ = __match_args__ = ("field", "value")
    op = "equal"

    def _identify(self) -> Identity:
        return ("equal", self.field.identity, value_key(self.value), self.field.options.identity)

    def __repr__(self) -> str:
        return self._written(describe_value(self.value))


class Includes(ValueOperation):
    """The field is an array with this value in it (under `pluck` in its elements), or is the value itself."""

    __slots__ = __match_args__ = ("field", "value", "pluck")
    op = "includes"

    pluck: Path | None

    def _identify(self) -> Identity:
        return ("includes", self.field.identity, value_key(self.value), self.pluck, self.field.options.identity)

    def __repr__(self) -> str:
        pluck = [] if self.pluck is None else [f"pluck={describe_path(self.pluck)}"]
        return self._written(describe_value(self.value), *pluck)


class Predicate(FieldOperation):
    """The function says so of the field's value. It is known by `name`; a new `version` is a new index."""

    __slots__ = __match_args__ = ("field", "fn", "name", "version")
    op = "predicate"

    fn: Callable[[Any], object]
    name: str
    version: int

    def _identify(self) -> Identity:
        return ("predicate", self.field.identity, self.name, self.version, self.field.options.identity)

    @property
    def function(self) -> tuple[str, str]:
        return "a predicate holds a function, which", "ask for what can be compared"

    def __repr__(self) -> str:
        shown = function_name(self.fn)
        extra = [] if shown == self.name else [f"name={self.name!r}"]
        extra += [f"version={self.version}"] if self.version else []
        return self._written(shown, *extra)


class Absent(FieldOperation):
    """The record has no such field (one that holds null is present)."""

    __slots__ = __match_args__ = ("field",)
    op = "absent"

    def _identify(self) -> Identity:
        return ("absent", self.field.identity, self.field.options.identity)

    def __repr__(self) -> str:
        return self._written()


class StartsWith(Operation):
    """The field holds text (or bytes) that begins with `prefix`."""

    __slots__ = __match_args__ = ("path", "prefix")
    op = "starts_with"

    path: Path
    prefix: str | bytes

    def _identify(self) -> Identity:
        return ("starts_with", self.path, value_key(self.prefix))

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)

    def __repr__(self) -> str:
        return f"starts_with({describe_path(self.path)}, {self.prefix!r})"


class TextMatch(Operation):
    """The field holds text (or, of a pattern of bytes, bytes) that is so: nodes/texts.py has the rule."""

    __slots__ = __match_args__ = ("op", "path", "value", "ignore_case")

    op: TextOperator
    path: Path
    value: str | bytes
    ignore_case: bool

    def _identify(self) -> Identity:
        return (self.op, self.path, value_key(self.value), self.ignore_case)

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)

    def __repr__(self) -> str:
        more = ", ignore_case=True" if self.ignore_case else ""
        return f"{self.op}({describe_path(self.path)}, {self.value!r}{more})"


class Compare(Operation):
    """The number, or where `value` is an Instant the time, is above (gt, gte) or below (lt, lte) it.

    `index` is the name "timestamp" or "sequence" of an index that the database derives, or the path of a
    field: `"timestamp"` is the derived index, `("timestamp",)` the field of that name.
    """

    __slots__ = __match_args__ = ("op", "index", "value")

    op: Comparison
    index: str | Path
    value: int | float | Instant

    def _identify(self) -> Identity:
        if isinstance(self.value, Instant):
            return (self.op, self.index, "time", value_key(self.value.time))
        return (self.op, self.index, value_key(self.value))

    @property
    def paths(self) -> tuple[Path, ...]:
        return () if isinstance(self.index, str) else (self.index,)

    def __repr__(self) -> str:
        if isinstance(self.index, str) or self.index in (("timestamp",), ("sequence",)):
            where = repr(self.index)
        else:
            where = describe_path(self.index)
        return f"{self.op}({describe_bound(self.value)}, {where})"


class _Positions(Operation):
    """Places in the log. `packed` has each as eight bytes, little-endian; order and repeats mean nothing."""

    __slots__ = __match_args__ = ("packed",)

    packed: bytes

    def _identify(self) -> Identity:
        return (self.op, array("Q", sorted(set(self))).tobytes())

    def __repr__(self) -> str:
        shown = [str(position) for position in unpack_positions(self.packed[: 8 * _SHOWN])]
        rest = [f"… {len(self):,} in all"] if len(self) > _SHOWN else []
        return f"{self.op}([{', '.join(shown + rest)}])"

    def __len__(self) -> int:
        return len(self.packed) // 8

    def __iter__(self) -> Iterator[int]:
        return iter(unpack_positions(self.packed))


_SHOWN: Final = 20  # positions that describe() lists before it abbreviates


class Seqs(_Positions):
    """The record is one of these, by ordinal."""

    __slots__ = ()
    op = "seqs"


class Offsets(_Positions):
    """The record is one of these, by byte position."""

    __slots__ = ()
    op = "offsets"


class _Combination(Operation):
    """Several operations at once; their order and repeats mean nothing to the answer or the identity."""

    __slots__ = ("args", "nesting", "unresolved")
    __match_args__ = ("args",)

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
        return f"{self.op}_({', '.join(map(repr, self.args))})"

    def children(self) -> tuple[Operation, ...]:
        return self.args

    def rebuild(self, children: tuple[Operation, ...]) -> Operation:
        return combine(type(self), children)


class Not(_Combination):
    """The live records of which `arg` is not true."""

    __slots__ = ()
    __match_args__ = ("arg",)
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

    def rebuild(self, children: tuple[Operation, ...]) -> Operation:
        return ~children[0]


class And(_Combination):
    """All of `args` are true of the record."""

    __slots__ = ()
    op = "and"


class Or(_Combination):
    """At least one of `args` is true of the record."""

    __slots__ = ()
    op = "or"


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
