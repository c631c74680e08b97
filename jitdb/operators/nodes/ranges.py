"""Numbers above and below: gt, gte, lt, lte.

The second argument is `"timestamp"` or `"sequence"` for the indexes of that name which the database
derives, or the path of any field that holds numbers. A field that is itself called `timestamp`, at the top of
the record, is written as a tuple: `("timestamp",)`. Records without a number there are in none of the answers.
"""

from __future__ import annotations

from typing import Final

from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.literals import plain_number
from jitdb.operators.nodes.operations import Compare, Comparison, Operation
from jitdb.operators.nodes.targets import PathLike, as_path

DERIVED_INDEXES: Final = ("timestamp", "sequence")


def gt(value: float, index: PathLike) -> Operation:
    """The records whose number is above `value`.

    >>> gt(1_600_000_000_000, "timestamp")
    gt(1600000000000, 'timestamp')
    """
    return _compare("gt", value, index)


def gte(value: float, index: PathLike) -> Operation:
    """The records whose number is `value` or above.

    >>> gte(10, "sequence")
    gte(10, 'sequence')
    """
    return _compare("gte", value, index)


def lt(value: float, index: PathLike) -> Operation:
    """The records whose number is below `value`.

    >>> lt(0, "value.content.vote.value")
    lt(0, 'value.content.vote.value')
    """
    return _compare("lt", value, index)


def lte(value: float, index: PathLike) -> Operation:
    """The records whose number is `value` or below.

    >>> lte(1.5, ("timestamp",))
    lte(1.5, ('timestamp',))
    """
    return _compare("lte", value, index)


def _compare(op: Comparison, value: object, index: object) -> Operation:
    if isinstance(value, str) and isinstance(index, (int, float)):
        raise QueryError(f"the number comes first, then the index: {op}({shown(index)}, {shown(value)})")
    number = plain_number(value)
    if isinstance(index, str) and index in DERIVED_INDEXES:
        return Compare(op, index, number)
    return Compare(op, as_path(op, index), number)
