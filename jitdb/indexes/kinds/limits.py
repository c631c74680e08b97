"""When a field has too many values for a bitmap each."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from jitdb.common.values import ARRAY, MAP

MAX_VALUES: Final = 1 << 16  # values with a bitmap each; beyond, a prefix index is smaller and faster
MAX_VALUE_BYTES: Final = 16 << 20  # their bytes in all
MAX_CONTAINER_BYTES: Final = 1 << 16  # of one array or map in the log: a larger one is never decoded to be numbered
FEW_VALUES: Final = 256  # always worth a bitmap each; and as many arrays and maps, which cost decoding, are ever
RECORDS_A_VALUE: Final = 16  # beyond FEW_VALUES: so many records for each value, or it is a prefix index

UNKNOWN: Final = 1 << 62  # how many records there will be, in the middle of a scan


def too_many(values: int, value_bytes: int, records: int) -> bool:
    """Whether a field has too many values for bitmaps. The same data always gives the same answer."""
    return values > max(FEW_VALUES, records // RECORDS_A_VALUE) or values > MAX_VALUES or value_bytes > MAX_VALUE_BYTES


def too_many_keys(keys: Collection[bytes], records: int) -> bool:
    """Whether a field with the values of these keys would have been given hashes by a scan of so many records."""
    containers = sum(key[0] in (ARRAY, MAP) for key in keys)
    return containers > FEW_VALUES or too_many(len(keys), sum(map(len, keys)), records)
