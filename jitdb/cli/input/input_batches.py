"""Rows of an import in batches, and the options for reading them.

Each row has a number: that of its first line, or, in formats without lines, that of the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.log.codecs.base import Codec
    from jitdb.log.codecs.json.row_kernels import Framed

FORMATS: Final = ("auto", "ndjson", "json", "csv", "tsv", "parquet", "arrow")
Tell = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line or row that is not a record. `number` counts from 1; `mendable`: a corrected line can take its place."""

    number: int
    reason: str
    hint: str = ""
    mendable: bool = True


def shortened(text: str) -> str:
    """A reason that fits a line or two: the path of a deeply nested value may be thousands of characters.

    >>> len(shortened("a." * 1000 + "b: too deep"))
    201
    """
    return text if len(text) <= 201 else f"{text[:60]}…{text[-140:]}"


@dataclass(slots=True)
class Batch:
    """Some rows, up to the number `last`.

    values:  their values, or JSON text for the codec json
    numbers: their numbers
    bad:     rows that are not records, by number
    encoded: instead of values: the bytes of records, and the length of each
    codec:   of these; None: json
    """

    last: int
    values: list[Any] = field(default_factory=list)
    numbers: Sequence[int] | NDArray[np.int64] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    encoded: tuple[NDArray[np.uint8], NDArray[np.int64]] | None = None
    codec: Codec | None = None

    @classmethod
    def framed(cls, framed: Framed, first: int) -> Batch:
        """The records that a kernel framed in lines, the first of which has this number."""
        return cls(
            first - 1 + framed.done, numbers=framed.lines + first, encoded=(framed.data, framed.lengths)
        )  # fmt: skip

    def singly(self) -> Iterator[tuple[int, Any]]:
        """The number and the value of each."""
        if self.encoded is None:
            yield from zip(self.numbers, self.values, strict=True)
            return
        from jitdb.log.codecs.json.codec import JsonText

        data, lengths = self.encoded
        value_of = JsonText if self.codec is None or self.codec.is_json else self.codec.decode
        start = 0
        for number, size in zip(self.numbers, lengths.tolist(), strict=True):
            yield int(number), value_of(data[start : start + size].tobytes())
            start += size

    def behind(self, number: int) -> Batch:
        """Without the rows up to this number."""
        if not len(self.numbers) or self.numbers[0] > number:
            return self
        rest = [(at, value) for at, value in self.singly() if at > number]
        return Batch(self.last, [value for _, value in rest], [at for at, _ in rest], self.bad)


@dataclass(frozen=True, slots=True)
class RowOptions:
    """How rows are read.

    delimiter:   between two fields of CSV; empty: found in its first line
    columns:     of CSV without a first line that names them
    all_text:    fields of CSV stay text
    tagged:      values that JSON lacks are written as `jitdb export` writes them
    stop_at_bad: stop at the first row that is not a record
    """

    format: str = "auto"
    delimiter: str = ""
    columns: tuple[str, ...] = ()
    all_text: bool = False
    tagged: bool = False
    stop_at_bad: bool = True
