"""Operations made of operations: and_, or_, not_, everything."""

from __future__ import annotations

from jitdb.errors import QueryError
from jitdb.operators.nodes.operations import And, Everything, Operation, Or, combine, not_an_operation


def and_(*operations: Operation | None) -> Operation:
    """The records of which all `operations` are true. None stands for a condition left out.

    >>> from jitdb.operators import equal, gt
    >>> and_(equal("value.content.type", "vote"), gt(10, "sequence"))
    and_(equal('value.content.type', 'vote'), gt(10, 'sequence'))
    >>> and_(equal("value.content.type", "vote"), None)
    equal('value.content.type', 'vote')
    """
    given = tuple(operation for operation in operations if operation is not None)
    if given:
        return combine(And, given)
    if operations:
        return Everything()
    raise QueryError("and_() needs at least one operation", remedy="for all records write everything()")


def or_(*operations: Operation | None) -> Operation:
    """The records of which at least one of `operations` is true. None stands for a condition left out.

    >>> from jitdb.operators import equal
    >>> or_(equal("value.author", "@alice"), equal("value.author", "@bob"))
    or_(equal('value.author', '@alice'), equal('value.author', '@bob'))
    """
    given = tuple(operation for operation in operations if operation is not None)
    if given:
        return combine(Or, given)
    raise QueryError(
        "or_() needs at least one operation", remedy="for no records write not_(everything()), for all everything()"
    )


def not_(operation: Operation) -> Operation:
    """The live records of which `operation` is not true, those without its field among them.

    >>> from jitdb.operators import equal
    >>> not_(equal("value.content.type", "post"))
    not_(equal('value.content.type', 'post'))
    """
    if not isinstance(operation, Operation):
        raise QueryError(f"not_() takes one operation, and {not_an_operation(operation)}")
    return ~operation


def everything() -> Operation:
    """Every live record.

    >>> everything()
    everything()
    """
    return Everything()
