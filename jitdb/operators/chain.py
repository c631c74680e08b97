"""The chain: `query(...)` puts parts together, in any order.

Conditions of several `where` are and-ed; any other part that is said twice counts as said last, so that a query can be
piped further and changed:

    posts = query(from_db(db), where(equal("value.content.type", "post")))
    newest = query(posts, descending(), paginate(10), to_result())
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar, overload

from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.consumers import Consumer
from jitdb.operators.nodes.describe import function_name
from jitdb.operators.nodes.operations import And, Everything, Operation, combine
from jitdb.operators.parts import Condition, Part, Setting
from jitdb.operators.query import Query
from jitdb.operators.question import Question
from jitdb.operators.tasks.deferred import Deferred

Piece: TypeAlias = Part | Query | Deferred
R = TypeVar("R")


@overload
def query(*parts: *tuple[*tuple[Piece, ...], Consumer[R]]) -> R: ...
@overload
def query(*parts: Piece) -> Query: ...
def query(*parts: Any) -> Any:  # type: ignore[misc]  # that it takes what the first overload does, mypy does not see
    """Put the parts together: a Query, or, with a consumer among them, what the consumer gives.

    For a type checker the consumer stands last.

    >>> from jitdb.operators import equal, from_db, paginate, to_result, where
    >>> query(from_db(db), where(equal("value.content.type", "post")), paginate(2), to_result()).total
    3
    >>> query(where(equal("value.content.type", "post")), paginate(2))
    query(where(equal('value.content.type', 'post')), paginate(2))
    """
    settings: dict[str, Any] = {}
    conditions: list[Operation] = []
    consumer: Consumer[Any] | None = None
    for part in parts:
        if isinstance(part, Setting):
            settings[part.name] = part.value
        elif isinstance(part, Condition):
            if part.operation is not None:
                conditions.append(part.operation)
        elif isinstance(part, Consumer):
            if consumer is not None:
                raise QueryError(f"a query has one consumer, and here are two: {consumer!r} and {part!r}")
            consumer = part
        elif isinstance(part, Query):
            settings |= vars(part.question)
            operation = settings.pop("operation", None)
            if operation is not None and not isinstance(operation, Everything):
                conditions.append(operation)
        elif isinstance(part, Deferred):
            conditions.append(part)
        else:
            raise QueryError(_not_a_part(part))
    if conditions:
        settings["operation"] = conditions[0] if len(conditions) == 1 else combine(And, tuple(conditions))
    question = Question(**settings).checked()
    return Query(question) if consumer is None else consumer.consume(question)


def _not_a_part(thing: object) -> str:
    if isinstance(thing, Operation):
        return f"wrap the operation in where(...): where({shown(thing)})"
    if hasattr(thing, "paginate") and hasattr(thing, "pages"):
        return "wrap the database in from_db(...)"
    if isinstance(thing, str):
        return f"{shown(thing)} is no part of a query; an expression is read by where(parse_expression({shown(thing)}))"
    if callable(thing):
        name = function_name(thing)
        return f"{name} is a function: was it meant to be called, as in {name}(...)?"
    return (
        f"{shown(thing)} is no part of a query; parts are from_db(...), where(...), modifiers such as "
        "descending() and a consumer such as to_result()"
    )
