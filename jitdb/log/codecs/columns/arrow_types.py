"""Of what type an Arrow column is that holds all of some values, told by their kinds.

whole numbers          int64; uint64 where one needs it and none is negative; else double
numbers                double: of integers beyond 2**53 beside fractions the nearest one
false and true         bool
text, bytes            string, binary
arrays                 lists, of the type that all their elements have
maps, several kinds    string: text as it is, all else as JSON
nothing but null       string
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from jitdb.common.paths import ANY
from jitdb.common.values import ABSENT, ARRAY, BYTES, FALSE, KIND_NAMES, NULL, NUMBER, TRUE
from jitdb.log.codecs.columns.python_values import exact_integers, larger_naturals
from jitdb.log.codecs.containers import Steps, list_values

if TYPE_CHECKING:
    from jitdb.log.codecs.fields.located import FieldValues

_ELEMENTS: Final = Steps.of((ANY,))
_TOP: Final = 2.0**63


class SeenKinds:
    """What kinds the values of a column are of, as far as they were noted."""

    def __init__(self) -> None:
        self._kinds: set[int] = set()
        self._fractions = self._negative = self._large = False
        self._elements: SeenKinds | None = None

    def note(self, values: FieldValues) -> None:
        """Look at these values, too."""
        here = np.flatnonzero(np.bincount(values.kind)).tolist()
        self._kinds.update(here)
        if NUMBER in here:
            self._note_numbers(values)
        if ARRAY in here:
            arrays = values.kind == ARRAY
            only = values._replace(kind=np.where(arrays, values.kind, np.uint8(ABSENT)))
            self.elements().note(list_values(only, _ELEMENTS)[0])

    def _note_numbers(self, values: FieldValues) -> None:
        numbers = values.kind == NUMBER
        found = values.number[numbers]
        self._negative |= bool((found < 0).any())
        if (np.abs(found) < _TOP).all():  # the rests of such are 0 where they are fractions
            self._fractions |= bool((found != np.floor(found)).any())
            return
        large = larger_naturals(values)
        self._large |= bool(large.any())
        self._fractions |= bool((numbers & ~large & ~exact_integers(values)[1]).any())

    def elements(self) -> SeenKinds:
        """What kinds the elements of its arrays are of."""
        if self._elements is None:
            self._elements = SeenKinds()
        return self._elements

    def several(self) -> tuple[str, ...]:
        """Their names, where they are of several kinds that no type but text takes."""
        kinds = self._kinds - {ABSENT, NULL}
        names = dict.fromkeys("boolean" if kind in (FALSE, TRUE) else KIND_NAMES[kind] for kind in sorted(kinds))
        return tuple(names) if len(names) > 1 else ()

    def type(self) -> pa.DataType:
        """The type that takes all of them."""
        kinds = self._kinds - {ABSENT, NULL}
        if kinds and kinds <= {FALSE, TRUE}:
            return pa.bool_()
        if kinds == {NUMBER}:
            if self._fractions or (self._large and self._negative):
                return pa.float64()
            return pa.uint64() if self._large else pa.int64()
        if kinds == {BYTES}:
            return pa.binary()
        if kinds == {ARRAY}:
            return pa.list_(self.elements().type())
        return pa.string()
