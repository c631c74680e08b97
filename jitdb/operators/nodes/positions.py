"""`seqs` and `offsets`: the record is one of these, by its place in the log; and where in it records may begin."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from jitdb.indexes.spec import OFFSETS, Requirement
from jitdb.operators.nodes.literals import pack_positions, unpack_positions
from jitdb.operators.nodes.operation import Answering, Core, Identity, Operation

if TYPE_CHECKING:
    from pyroaring import BitMap


def seqs(values: Iterable[int]) -> Operation:
    """The records with these ordinals (0-based, deleted ones counted). Order and repeats mean nothing.

    Any iterable of integers will do: a list, a NumPy array, a bitmap. None is no record at all.

    >>> seqs([11, 13, 17])
    seqs([11, 13, 17])
    >>> seqs([1, 1, 2]) == seqs([2, 1])
    True
    """
    return Seqs(pack_positions("seqs", values))


def offsets(values: Iterable[int]) -> Operation:
    """The records that begin at these bytes of the log. Seqs are faster: they need no look-up.

    >>> offsets([0, 341])
    offsets([0, 341])
    """
    return Offsets(pack_positions("offsets", values))


class _Positions(Operation):
    """Places in the log. `packed` has each as eight bytes, little-endian; order and repeats mean nothing."""

    __slots__ = __match_args__ = ("packed",)

    packed: bytes
    names_places = True

    def _identify(self) -> Identity:
        return (self.op, array("Q", sorted(set(self))).tobytes())

    def written(self) -> str:
        return f"{self.op}({', '.join(map(str, self))})"

    def __repr__(self) -> str:
        shown = [str(position) for position in unpack_positions(self.packed[: 8 * _SHOWN])]
        rest = [f"… {len(self):,} in all"] if len(self) > _SHOWN else []
        return f"{self.op}([{', '.join(shown + rest)}])"

    def __len__(self) -> int:
        return len(self.packed) // 8

    def __iter__(self) -> Iterator[int]:
        return iter(unpack_positions(self.packed))


_SHOWN: Final = 20  # positions that repr() lists


class Seqs(_Positions):
    """The record is one of these, by ordinal."""

    __slots__ = ()
    op = "seqs"
    arguments = ("seqs",)

    @property
    def seqs(self) -> list[int]:
        return list(self)

    def answer(self, asked: Answering) -> BitMap:
        return asked.at_seqs(self.packed)


class Offsets(_Positions):
    """The record is one of these, by byte position."""

    __slots__ = ()
    op = "offsets"
    arguments = ("offsets",)

    @property
    def offsets(self) -> list[int]:
        return list(self)

    def need(self, core: Core) -> Requirement:
        return Requirement(OFFSETS)

    def answer(self, asked: Answering) -> BitMap:
        return asked.at_offsets(self.packed)


class Stretches(Operation):
    """The record begins in one of these stretches of the log: from a byte on, up to another one. The engine makes it,
    to ask a part of a log.
    """

    __slots__ = __match_args__ = ("parts",)
    op = "stretches"

    parts: tuple[tuple[int, int], ...]
    names_places = True

    def _identify(self) -> Identity:
        return (self.op, self.parts)

    def __repr__(self) -> str:
        return f"<{len(self.parts):,} parts of a log>"

    def need(self, core: Core) -> Requirement:
        return Requirement(OFFSETS)

    def answer(self, asked: Answering) -> BitMap:
        return asked.in_stretches(self.parts)
