"""What a column of rows holds, for who reads them and for the kernels that make records of them."""

from __future__ import annotations

from typing import Final, NamedTuple

TEXT: Final = 0
NUMBER: Final = 1
WORD: Final = 2  # true or false


class Column(NamedTuple):
    """name: as the codec encodes it; holds: one of the above"""

    name: bytes
    holds: int
