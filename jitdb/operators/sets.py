"""Sets of records as values: what a question found, kept, combined with others, and asked about again.

Such a value stands for the records that it was made of: what is appended later is not in it, and what is deleted is not
in it any more, at once. A compaction changes nothing of it. It is an operation, too: `db.query(found & (field("level")
== "error"))`, and what a question that follows the log is, is a question.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from jitdb.common.digests import blake2b
from jitdb.common.paths import LOG_PATH
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.operation import NOTHING, Identity, Operation

if TYPE_CHECKING:
    from pyroaring import BitMap

    from jitdb.operators.nodes.operation import Answering


class Sizes(NamedTuple):
    """How many records two sets have, and how many both have."""

    one: int
    other: int
    both: int


class Members(Operation):
    """Records of one log, for whoever asks: `packed` is a roaring bitmap of their seqs as of a `generation` of the log
    of the identity `log`.
    """

    __slots__ = __match_args__ = ("log", "generation", "packed")
    op = "set"

    log: bytes
    generation: int
    packed: bytes
    names_places = True

    def _identify(self) -> Identity:
        return ("set", self.log, self.generation, blake2b(self.packed, digest_size=16).digest())

    @property
    def function(self) -> tuple[str, str]:
        return "a set of records", "keep it by a name in `sets`, and take it from there"

    def __repr__(self) -> str:
        from pyroaring import BitMap

        return f"<a set of {len(BitMap.deserialize(self.packed)):,} records>"

    def answer(self, asked: Answering) -> BitMap:
        return asked.in_set(self.log, self.generation, self.packed)


class MembersOfLogs(Operation):
    """Records of several logs: those of each by its path."""

    __slots__ = __match_args__ = ("parts",)
    op = "set"

    parts: Mapping[str, Members]
    names_places = True

    def _identify(self) -> Identity:
        return ("sets", frozenset((path, part.identity) for path, part in self.parts.items()))

    @property
    def function(self) -> tuple[str, str]:
        return "a set of records", "keep it by a name in `sets`, and take it from there"

    def __repr__(self) -> str:
        return f"<a set of records of {len(self.parts):,} logs>"

    def narrowed(self, fields: Mapping[str, Any]) -> Operation:
        return self.parts.get(fields[LOG_PATH], NOTHING)

    def __reduce__(self) -> tuple[Any, ...]:
        return MembersOfLogs, (dict(self.parts),)


class RecordSet(Operation):
    """Records of a log, or of a set of logs. With another one: `&`, `|`, `-`, `^`, `==`, `<=`, `<`, `>=`, `>`; with any
    other operation `&` and `|` make a question, as does `~`.

    `len()` is how many there are; going through it gives where they are, in the order of the log: offsets, in a set of
    logs Places; `in` asks for such a place. They are not hashable: a record that is deleted leaves them.

    Raises QueryError where the other is of other logs, or the log is another one since.
    """

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __iter__(self) -> Iterator[Any]: ...

    @abstractmethod
    def __contains__(self, place: object) -> bool: ...

    @abstractmethod
    def _combined(self, other: Self, how: str) -> Self:
        """`how` is the sign."""

    @abstractmethod
    def _sizes(self, other: Self) -> Sizes: ...

    def __and__(self, other: Operation) -> Any:
        return self._combined(self._like(other), "&") if isinstance(other, RecordSet) else super().__and__(other)

    def __or__(self, other: Operation) -> Any:
        return self._combined(self._like(other), "|") if isinstance(other, RecordSet) else super().__or__(other)

    def __sub__(self, other: RecordSet) -> Self:
        return self._combined(self._like(other), "-")

    def __xor__(self, other: RecordSet) -> Self:
        return self._combined(self._like(other), "^")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecordSet):
            return NotImplemented
        sizes = self._sizes(self._like(other))
        return sizes.one == sizes.other == sizes.both

    __hash__ = None  # type: ignore[assignment]

    def __le__(self, other: RecordSet) -> bool:
        sizes = self._sizes(self._like(other))
        return sizes.one == sizes.both

    def __lt__(self, other: RecordSet) -> bool:
        sizes = self._sizes(self._like(other))
        return sizes.one == sizes.both < sizes.other

    def __ge__(self, other: RecordSet) -> bool:
        found: RecordSet = self._like(other)
        return found <= self

    def __gt__(self, other: RecordSet) -> bool:
        found: RecordSet = self._like(other)
        return found < self

    def isdisjoint(self, other: RecordSet) -> bool:
        """Whether they have no record in common."""
        return not self._sizes(self._like(other)).both

    def jaccard(self, other: RecordSet) -> float:
        """How alike they are: the share of the records of either that are in both; 1.0 of two empty ones."""
        one, two, both = self._sizes(self._like(other))
        return both / (one + two - both) if one or two else 1.0

    def _like(self, other: Any) -> Any:
        if type(other) is not type(self):
            raise QueryError(f"a set of records is combined with another one of the same logs, not {shown(other)}")
        return other


S = TypeVar("S", bound=RecordSet)


class NamedSets(MutableMapping[str, S]):
    """Sets that are kept under names, to be put in, taken, deleted and listed as in a dict."""

    def __repr__(self) -> str:
        return f"<sets: {', '.join(self) or 'none'}>"
