"""Rows as they come to an import, some at a time, and how they are to be taken.

Each has its number in the source: the line at which it begins, where the format has lines, else which record it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from jitdb.cli.input.lines import Records

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Batch(NamedTuple):
    """Some rows, and the number of the last one that they come to."""

    found: Records
    last: int


class EncodedBatch(NamedTuple):
    """Some rows as records of the log already, one behind the other, and the number of the last one."""

    data: NDArray[np.uint8]
    lengths: NDArray[np.int64]  # bytes of each
    numbers: NDArray[np.int64]
    last: int


# Of so many bytes, the codec that kernels write and the bytes of its largest record; None where they do not pay.
Compiled = Callable[[int], tuple[str, int] | None]
Tell = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class RowOptions:
    """How rows are taken.

    delimiter:   between two fields of CSV; empty: found in its first line
    columns:     of CSV without a first line that names them
    all_text:    fields of CSV stay text
    tagged:      what JSON lacks is written as `jitdb export` writes it
    stop_at_bad: nothing is read behind a row that is none
    """

    format: str = "auto"
    delimiter: str = ""
    columns: tuple[str, ...] = ()
    all_text: bool = False
    tagged: bool = False
    stop_at_bad: bool = True
