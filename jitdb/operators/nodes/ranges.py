"""Numbers above and below: gt, gte, lt, lte.

The second argument is the path of any field that holds numbers, or `declared_time` or `declared_sequence`: what a
record declares in the fields that the database was told of. In the words of the ancestor these are `"timestamp"` and
`"sequence"`; a field that is itself called so, at the top of the record, is written as a tuple: `("timestamp",)`.
Records without a number there are in none of the answers.
"""

from __future__ import annotations

from typing import Final

from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.field_ref import PathLike, as_path
from jitdb.operators.nodes.literals import plain_number
from jitdb.operators.nodes.operations import Compare, Comparison, Operation

DERIVED_INDEXES: Final = ("timestamp", "sequence")


class Declared:
    """A number that records declare, to be compared. Not a field: the database says which fields it is taken from.

    >>> (declared_time >= 1_600_000_000_000) & (declared_sequence < 10)
    and_(gte(1600000000000, 'timestamp'), lt(10, 'sequence'))
    """

    __slots__ = ("index", "name")

    def __init__(self, name: str, index: str) -> None:
        self.name = name
        self.index = index

    def __lt__(self, value: float) -> Operation:
        return _compare("lt", value, self)

    def __le__(self, value: float) -> Operation:
        return _compare("lte", value, self)

    def __gt__(self, value: float) -> Operation:
        return _compare("gt", value, self)

    def __ge__(self, value: float) -> Operation:
        return _compare("gte", value, self)

    def __repr__(self) -> str:
        return self.name


#: When a record was made: the field(s) that the database knows as `timestamp`, the smallest number of them.
declared_time: Final = Declared("declared_time", "timestamp")

#: Which record of its author it is: the field that the database knows as `sequence`.
declared_sequence: Final = Declared("declared_sequence", "sequence")


def gt(value: float, index: PathLike | Declared) -> Operation:
    """The records whose number is above `value`.

    >>> gt(1_600_000_000_000, "timestamp")
    gt(1600000000000, 'timestamp')
    """
    return _compare("gt", value, index)


def gte(value: float, index: PathLike | Declared) -> Operation:
    """The records whose number is `value` or above.

    >>> gte(10, "sequence")
    gte(10, 'sequence')
    """
    return _compare("gte", value, index)


def lt(value: float, index: PathLike | Declared) -> Operation:
    """The records whose number is below `value`.

    >>> lt(0, "value.content.vote.value")
    lt(0, 'value.content.vote.value')
    """
    return _compare("lt", value, index)


def lte(value: float, index: PathLike | Declared) -> Operation:
    """The records whose number is `value` or below.

    >>> lte(1.5, ("timestamp",))
    lte(1.5, ('timestamp',))
    """
    return _compare("lte", value, index)


def _compare(op: Comparison, value: object, index: object) -> Operation:
    if isinstance(value, str) and isinstance(index, (int, float)):
        raise QueryError(f"the number comes first, then the index: {op}({shown(index)}, {shown(value)})")
    number = plain_number(value)
    if isinstance(index, Declared):
        return Compare(op, index.index, number)
    if isinstance(index, str) and index in DERIVED_INDEXES:
        return Compare(op, index, number)
    return Compare(op, as_path(op, index), number)
