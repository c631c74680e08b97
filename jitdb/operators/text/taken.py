"""Conditions as they are taken wherever something is asked: an operation, or its expression as text. Text is read here
and nowhere else.
"""

from __future__ import annotations

from jitdb.errors import QueryError
from jitdb.operators.nodes import operation as nodes
from jitdb.operators.nodes.literals import not_an_operation
from jitdb.operators.nodes.operation import Operation


def operation_of(given: str | Operation, takes: str) -> Operation:
    """The operation. Raises QueryError: of text with the place in it, else that `takes` operations, and this is none.

    >>> operation_of("age > 18", "where() takes operations")
    gt(18, 'age')
    """
    if isinstance(given, Operation):
        return given
    if not isinstance(given, str):
        raise QueryError(f"{takes}, and {not_an_operation(given)}")
    from jitdb.operators.text.expression import parse_expression  # late: most programs write operations

    return parse_expression(given)


def and_(*operations: str | Operation | None) -> Operation:
    """The records of which all `operations` are true. None stands for a condition left out.

    >>> from jitdb.operators import equal, gt
    >>> and_(equal("value.content.type", "vote"), gt(10, "sequence"))
    and_(equal('value.content.type', 'vote'), gt(10, 'sequence'))
    >>> and_("value.content.type == 'vote'", None)
    equal('value.content.type', 'vote')
    """
    return nodes.and_(*_all_of("and_() combines operations", operations))


def or_(*operations: str | Operation | None) -> Operation:
    """The records of which at least one of `operations` is true. None stands for a condition left out.

    >>> from jitdb.operators import equal
    >>> or_(equal("value.author", "@alice"), equal("value.author", "@bob"))
    or_(equal('value.author', '@alice'), equal('value.author', '@bob'))
    """
    return nodes.or_(*_all_of("or_() combines operations", operations))


def not_(operation: str | Operation) -> Operation:
    """The live records of which `operation` is not true, those without its field among them.

    >>> from jitdb.operators import equal
    >>> not_(equal("value.content.type", "post"))
    not_(equal('value.content.type', 'post'))
    """
    return nodes.not_(operation_of(operation, "not_() takes one operation"))


def _all_of(takes: str, operations: tuple[str | Operation | None, ...]) -> list[Operation | None]:
    return [None if each is None else operation_of(each, takes) for each in operations]
