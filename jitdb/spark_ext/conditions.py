"""Conditions in Spark's words as questions to a log, so that they reach the indexes: read_log(…, where=F.col("n") > 5).

Spark resolves the condition against the table's columns and simplifies it; what is left is translated, or refused. The
question finds all rows of which the condition is true, and may find others: Spark asks its own condition of these. So a
translation must not miss a row, and need not be exact. SQL has three truths: of each part there is a question for
where it is true, and one for where it is false; NOT exchanges them, and where it is neither, no row comes.
"""

from __future__ import annotations

import json
import math
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.errors import QueryError
from jitdb.operators import and_, equal, gt, gte, lt, lte, not_, or_
from jitdb.operators.nodes.operation import Everything, Operation
from jitdb.spark_ext.columns import ColumnRequest, ColumnSource, source_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

_WHOLE: Final = ("byte", "short", "integer", "long")
_EXACT: Final = 1 << 53  # beyond, several whole numbers are one double
_SETS_FROM: Final = "spark.sql.optimizer.inSetConversionThreshold"
_ALL: Final = Everything()
_WHAT: Final = (
    "ask =, !=, <, <=, >, >=, IN and BETWEEN of numbers, =, != and IN of text, true and false, joined by AND, OR and "
    "NOT, of columns and values; the rest in jitdb's words (where=\"user contains 'x'\"), or by .filter() of what comes"
)


class Node(NamedTuple):
    """A part of Spark's condition: what it is called, its attributes, and its parts."""

    name: str
    form: Mapping[str, Any]
    parts: tuple[Node, ...]


class Field(NamedTuple):
    """A column in a condition, and its type in Spark's words."""

    source: ColumnSource
    type: str


def is_condition(where: object) -> bool:
    """Whether it is a column of Spark's, of either API."""
    return any(each.__module__.startswith("pyspark.sql") and each.__name__ == "Column" for each in type(where).__mro__)


def question_of(frame: DataFrame, where: Column, asked: Sequence[ColumnRequest] | None = None) -> Operation:
    """What finds the rows of a table of a log of which a condition is true, and maybe others. Raises QueryError.

    asked: the option `columns` of the table
    """
    if not hasattr(frame, "_jdf"):
        raise QueryError(
            "conditions in Spark's words are not translated over Spark Connect",
            remedy='write it in jitdb\'s words: where="status >= 500"',
        )
    fields = fields_of(frame.schema, asked)
    found = [_translated(node, fields) for node in _conditions(frame.filter(where))]
    return and_(*found) if found else _ALL


def fields_of(schema: StructType, asked: Sequence[ColumnRequest] | None) -> dict[str, Field]:
    """What a condition may ask of the columns of a table. `asked`: its option `columns`."""
    return {each.name: Field(source_of(each.name, each.metadata, asked), each.dataType.typeName()) for each in schema}


def translated_parts(node: Node, fields: Mapping[str, Field]) -> Iterator[Operation]:
    """Of the parts of a condition that all must be true, those that can be asked of a log."""
    for part in _chained(node) if node.name == "And" else [node]:
        try:
            found = _translated(part, fields)
        except QueryError:  # Spark asks it alone
            continue
        if found != _ALL:
            yield found


def _conditions(asked: DataFrame) -> Iterator[Node]:
    """What is left of the conditions above the table when Spark has simplified them."""
    plan = optimized(asked)
    while plan.children().size() == 1:
        if plan.getClass().getSimpleName() == "Filter":
            yield node_of(plan.condition())
        plan = plan.children().head()


def optimized(frame: DataFrame) -> Any:
    """Java's plan of a frame as Spark simplifies it, in which lists of values are told."""
    spark: Any = frame.sparkSession
    with _lists_kept(spark.conf):
        written = frame._jdf.queryExecution().analyzed()
        anew = spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, written)
        return anew.queryExecution().optimizedPlan()


def node_of(condition: Any) -> Node:
    """Java's expression, to be read here."""
    return _parsed(json.loads(condition.toJSON()))


@contextmanager
def _lists_kept(conf: Any) -> Iterator[None]:
    """Of more than ten values Spark makes a set, which it does not tell."""
    before = conf.get(_SETS_FROM)
    conf.set(_SETS_FROM, "1000000")
    try:
        yield
    finally:
        conf.set(_SETS_FROM, before)


def _parsed(forms: Sequence[Mapping[str, Any]]) -> Node:
    """The tree that Spark lists from the root on, parts behind what they are of. It may be deep: a chain of AND is."""
    done: list[Node] = []
    for form in reversed(forms):
        parts = tuple(done.pop() for _ in range(form["num-children"]))
        done.append(Node(str(form["class"]).rpartition(".")[2], form, parts))
    return done[0]


def _translated(node: Node, fields: Mapping[str, Field]) -> Operation:
    try:
        return _Translator(fields).true(node)
    except RecursionError:
        raise _refused(node, "a condition that nests so deep") from None


def _chained(node: Node) -> list[Node]:
    """The parts of a chain of AND, or of OR, in which Spark nests each in the next."""
    left, found = [node], []
    while left:
        part = left.pop()
        if part.name == node.name:
            left += reversed(part.parts)
        else:
            found.append(part)
    return found


class _Translator:
    def __init__(self, fields: Mapping[str, Field]) -> None:
        self._fields = fields

    def true(self, node: Node) -> Operation:
        """Finds where it is true, at least."""
        match node.name:
            case "And":
                return and_(*map(self.true, _chained(node)))
            case "Or":
                return or_(*map(self.true, _chained(node)))
            case "Not":
                return self.false(*node.parts)
            case "IsNotNull":
                return _ALL  # Spark asks that again
            case "In":
                return or_(*(self._equal(node.parts[0], each) for each in node.parts[1:]))
            case "EqualTo" | "EqualNullSafe":
                return self._equal(*_ordered(node))
            case "AttributeReference":
                return equal(self._path(node, "boolean"), True)
            case name if name in _ABOVE:
                return self._compared(node, _ABOVE)
        raise _refused(node)

    def false(self, node: Node) -> Operation:
        """Finds where it is false, at least."""
        match node.name:
            case "And":
                return or_(*map(self.false, _chained(node)))
            case "Or":
                return and_(*map(self.false, _chained(node)))
            case "Not":
                return self.true(*node.parts)
            case "In":
                return and_(*(self._unequal(node.parts[0], each) for each in node.parts[1:]))
            case "EqualTo":
                return self._unequal(*_ordered(node))
            case "AttributeReference":
                return equal(self._path(node, "boolean"), False)
            case name if name in _ABOVE:
                return self._compared(node, _BELOW)
        raise _refused(node)

    def _compared(self, node: Node, by: Mapping[str, Callable[..., Operation]]) -> Operation:
        first, second = node.parts
        name = node.name
        if _is_literal(first):
            first, second, name = second, first, _TURNED[name]
        field = self._field(first)
        if field.type not in (*_WHOLE, "double"):
            raise _refused(node, f"a comparison of the type {field.type}")
        return by[name](self._number(node, second), field.source.path)

    def _equal(self, column: Node, literal: Node) -> Operation:
        field = self._field(column)
        path = field.source.path
        if field.type == "string":
            return or_(*(equal(path, each) for each in _spelled(column, _text(literal))))
        if field.type == "boolean":
            return equal(path, literal.form["value"] == "true")
        if field.type in (*_WHOLE, "double"):
            return equal(path, self._number(column, literal))
        raise _refused(column, f"equality of the type {field.type}")

    def _unequal(self, column: Node, literal: Node) -> Operation:
        field = self._field(column)
        value = _text(literal) if field.type == "string" else None
        return not_(equal(field.source.path, value)) if value is not None else not_(self._equal(column, literal))

    def _number(self, node: Node, literal: Node) -> int | float:
        kind, value = literal.form.get("dataType"), literal.form.get("value")
        if not _is_literal(literal) or value is None:
            raise _refused(node, "a comparison of two columns, or with NULL")
        if kind in _WHOLE:
            return int(value)
        number = float(value)
        if kind != "double" or not math.isfinite(number):
            raise _refused(node, f"a comparison with {value} of the type {kind}")
        return number

    def _path(self, node: Node, kind: str) -> Any:
        field = self._field(node)
        if field.type != kind:
            raise _refused(node, f"a column of the type {field.type} as a condition")
        return field.source.path

    def _field(self, node: Node) -> Field:
        """The column that is asked, or a wider one of it."""
        if node.name == "Cast" and node.form["dataType"] in (*_WHOLE, "double"):
            (inner,) = node.parts
            if inner.form.get("dataType") in _WHOLE[:3]:
                return self._field(inner)
        if node.name != "AttributeReference":
            raise _refused(node)
        found = self._fields.get(node.form["name"])
        if found is None:  # what Spark puts in the place of a function of Python's
            raise _refused(node, f"what is no column of the table ({node.form['name']})")
        if found.source.core:
            raise _refused(node, f"the column {found.source.core}, which is no field of a record,")
        return found._replace(type=str(node.form["dataType"]))


_ABOVE: Final[Mapping[str, Callable[..., Operation]]] = {
    "GreaterThan": gt, "GreaterThanOrEqual": gte, "LessThan": lt, "LessThanOrEqual": lte,
}  # fmt: skip
_BELOW: Final[Mapping[str, Callable[..., Operation]]] = {
    "GreaterThan": lte, "GreaterThanOrEqual": lt, "LessThan": gte, "LessThanOrEqual": gt,
}  # fmt: skip
_TURNED: Final = {
    "GreaterThan": "LessThan", "GreaterThanOrEqual": "LessThanOrEqual", "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
}  # fmt: skip


def _is_literal(node: Node) -> bool:
    return node.name == "Literal"


def _ordered(node: Node) -> tuple[Node, Node]:
    """The column, and the value that it is compared with."""
    first, second = node.parts
    return (second, first) if _is_literal(first) else (first, second)


def _text(literal: Node) -> str:
    value = literal.form.get("value")
    if not _is_literal(literal) or value is None:
        raise _refused(literal, "a comparison of two columns, or with NULL")
    return str(value)


def _spelled(node: Node, text: str) -> Iterator[Any]:
    """The values that a column of text shows as this one: others than text are JSON there, bytes are base64."""
    yield text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, (dict, list)) or text[:1] in ("{", "["):
        raise _refused(node, "equality with the text of a map or an array")
    if isinstance(value, (bool, int, float)):
        yield value
    try:
        yield b64decode(text, validate=True)
    except ValueError:
        return


def _refused(node: Node, what: str = "") -> QueryError:
    said = what or f"Spark's {node.name}"
    return QueryError(f"{said} cannot be asked of a log as it stands in a condition of Spark's", remedy=_WHAT)
