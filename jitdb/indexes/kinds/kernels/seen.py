"""What the scan of a column saw beside numbers: bits of the flags in its head (docs/format-index.md).

They are on disk: never change one.
"""

from __future__ import annotations

from typing import Final

OTHERS: Final = 1 << 2  # values that are no numbers (of a time column: no times), nor null or NaN
TEXTS: Final = 1 << 3  # times as text, or as numbers that spell dates; of a column of numbers, numbers
ZONELESS: Final = 1 << 4  # some of these without a zone, taken for UTC
SECONDS: Final = 1 << 5  # numbers taken for seconds, milliseconds, microseconds, nanoseconds
MILLISECONDS: Final = 1 << 6
MICROSECONDS: Final = 1 << 7
NANOSECONDS: Final = 1 << 8

ALL: Final = OTHERS | TEXTS | ZONELESS | SECONDS | MILLISECONDS | MICROSECONDS | NANOSECONDS
