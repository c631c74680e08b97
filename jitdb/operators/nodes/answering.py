"""What an operator asks of the database that answers it. The engine implements both protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyroaring import BitMap

    from jitdb.common.paths import Path
    from jitdb.indexes.kinds.numbers import Comparison
    from jitdb.indexes.spec import IndexSpec
    from jitdb.operators.nodes.instants import Instant


class Core(Protocol):
    """Which fields a database takes for a record's time and place."""

    def compared(
        self, index: str | Path, bound: int | float | Instant, largest: bool = False
    ) -> tuple[IndexSpec, int | float]:
        """The column that answers a comparison, and the number to compare with. Raises QueryError.

        largest: it is one of the largest number that the path leads to
        """


class Answering(Protocol):
    """The index that the operator needs, of some records, and those records. Deleted ones may be in what it gives."""

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
        """Those that an index is of which has only records."""

    def candidates(self) -> BitMap:
        """Those that have one of the operator's `prefixes`, and of which it `holds`."""

    def with_text(self, match: Any) -> BitMap:
        """Those that have one of the values that a TextMatch is true of."""

    def in_column(self, *bounds: tuple[Comparison, int | float]) -> BitMap:
        """Those whose number is above or below all of these."""

    def at_seqs(self, packed: bytes) -> BitMap:
        """Those of these ordinals (literals.pack_positions)."""

    def at_offsets(self, packed: bytes) -> BitMap:
        """Those that begin at these bytes."""

    def in_set(self, log: bytes, generation: int, packed: bytes) -> BitMap:
        """Those that were in this set (operators/sets.py). Raises QueryError where it is of another log."""
