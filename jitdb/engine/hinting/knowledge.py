"""What a log, or several, can say of fields and values, for hints about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from jitdb.common.paths import Path
from jitdb.engine.hinting.dialects import Elsewhere
from jitdb.operators.nodes.operation import Operation

SAMPLE: Final = 200  # records that are looked at for the names of fields

#: What no record has of a field, which is all of it, or nothing that a column holds (it says nothing of null);
#: "" where some record has it, None where no index knows.
Lack: TypeAlias = Literal["", "the field", "a number or a time in"] | None


class Unlike(NamedTuple):
    """What the format of a log is, how many lines were looked at, and the records of those that are none of it."""

    format: str
    lines: int
    records: list[Any]


class Evidence(Protocol):
    """Of a log, or of several."""

    def lack(self, path: Path) -> Lack:
        """What all records lack of a field."""

    def has(self, leaf: Operation) -> bool:
        """Whether the leaf is known to be true of some live record."""

    def remarks(self, operation: Operation) -> list[str]:
        """How the values that it compares were taken."""

    def unordered(self) -> str | None:
        """A line where no record has a time to be ordered by; empty where some have one, None where no index knows."""

    def seen_in(self, path: Path) -> int:
        """What columns of the field's numbers saw beside numbers: bits of indexes/kinds/kernels/seen.py."""

    def spellings(self, leaf: Operation, among: Callable[[Operation], Operation] | None = None) -> list[Operation]:
        """The leaf with other values that may have been meant and that live records have, or asked of what is in a map
        or an array, where indexes know it.

        among: makes a question one of those logs alone that are asked
        """

    def values(self, path: Path) -> list[Any]:
        """Values of a field that the index of a question names; none of a field with many, or where none is."""

    def elsewhere(self, operation: Operation, paths: Sequence[Path]) -> Elsewhere:
        """The fields that stand in the place of these in the first records of the logs that are asked."""

    def unleveled(self, operation: Operation) -> list[str]:
        """Of several: the logs that are asked whose first records have no level that is known, and words of levels."""

    def numbered(self, operation: Operation, path: Path) -> list[str]:
        """Of several: the logs that are asked whose levels in this field are numbers that may be syslog's."""

    def asked(self, operation: Operation, count: int) -> list[Any]:
        """At most so many records of the logs that are asked."""

    def unlike(self, operation: Operation, path: Path) -> Iterator[Unlike]:
        """Of each log of text that is asked: lines of another kind than its format's, if that has the field and lines
        of others not. Of many logs of some.
        """

    @property
    def convert(self) -> str:
        """The command that makes UTF-8 of the log's file."""

    def sample(self, count: int) -> list[Any]:
        """So many live records at most; none where there are none."""
