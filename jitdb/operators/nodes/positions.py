"""Places in the log as operations: the bridge from indexes that others keep."""

from __future__ import annotations

from collections.abc import Iterable

from jitdb.operators.nodes.literals import pack_positions
from jitdb.operators.nodes.operations import Offsets, Operation, Seqs


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
