"""What a locator is: a codec's way to find fields in many records at once.

The boundary is one call for some ten thousand records, with plain arrays on both sides: a compiled kernel, a library
and plain Python fit behind it alike. What the fields found are taken for follows from their kinds and from the encoding
of arrays and maps that they name, so nobody above asks which codec it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.log.codecs.fields.located import FieldValues, RecordBatch


class Locator(ABC):
    """Finds some fields in batches of records. It serves one thread, and may use the memory of a call in the next."""

    @abstractmethod
    def fields(self, records: RecordBatch) -> tuple[list[FieldValues], int]:
        """What each record holds under each path, a FieldValues a path; and how many live records are malformed.

        A deleted record has no fields. A malformed one has those, or none, that the codec's `find` gives. Raises
        QueryError where a value is none that can be asked for.
        """

    @abstractmethod
    def values_at(self, records: RecordBatch, positions: NDArray[np.int64]) -> FieldValues:
        """What `decode_at` finds at one position in each record; nothing where that is none, such as -1."""

    @abstractmethod
    def invalid(self, records: RecordBatch) -> NDArray[np.int64]:
        """The numbers of the live records that are no values of the codec."""
