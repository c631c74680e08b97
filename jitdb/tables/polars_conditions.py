"""Conditions of Polars as operations of jitdb: Polars writes an expression as JSON, which is read here."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from jitdb.operators.nodes.operation import NOTHING
from jitdb.tables import superset
from jitdb.tables.superset import ANY, Kept, Time

if TYPE_CHECKING:
    from jitdb.engine.reading.arrow_tables import KnownColumn

_SIGNS: Final = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_BETWEEN: Final = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}
_UNITS: Final = {"Nanoseconds": "ns", "Microseconds": "us", "Milliseconds": "ms"}
_IN_PATTERNS: Final = frozenset("\\.+*?()|[]{}^$")  # what means something in a regular expression


def kept_by(predicate: Any, columns: Mapping[str, KnownColumn]) -> Kept:
    """The records whose rows a polars.Expr may keep."""
    try:
        return _Reader(columns).kept(json.loads(predicate.meta.serialize(format="json")))
    except Exception:  # of whatever kind: a version of Polars that writes expressions otherwise
        return ANY


class _Unknown(Exception):
    """This is not known here."""


class _Reader:
    """Reads expressions as Polars writes them: {"BinaryExpr": {"left": …, "op": "Eq", "right": …}}."""

    def __init__(self, columns: Mapping[str, KnownColumn]) -> None:
        self._columns = columns

    def kept(self, node: Any) -> Kept:
        try:
            kind, held = _only(node)
            return _READ[kind](self, held)
        except (_Unknown, KeyError, TypeError, ValueError):
            return ANY

    def literal(self, held: Any) -> Kept:
        value = _literal({"Literal": held})
        return Kept(None if value is True else NOTHING, None if value is False else NOTHING)

    def ternary(self, held: Any) -> Kept:
        return superset.one_of(self.kept(held["truthy"]), self.kept(held["falsy"]))

    def column(self, held: Any) -> Kept:
        return superset.is_true(self._columns[held])

    def alias(self, held: Any) -> Kept:
        return self.kept(held[0])

    def binary(self, held: Any) -> Kept:
        left, op, right = held["left"], held["op"], held["right"]
        if op in ("And", "LogicalAnd"):
            return self.kept(left) & self.kept(right)
        if op in ("Or", "LogicalOr"):
            return self.kept(left) | self.kept(right)
        sign = _SIGNS[op]
        if "Literal" in left:
            left, right, sign = right, left, _TURNED.get(sign, sign)
        column, value = self._operand(left), _literal(right)
        return ANY if value is None else superset.compared(column, sign, value)

    def function(self, held: Any) -> Kept:
        room, name = _only(held["function"])
        name, options = (name, {}) if isinstance(name, str) else _only(name)
        return _FUNCTIONS[room, name](self, held["input"], options)

    def negated(self, parts: Any, _: Any) -> Kept:
        return ~self.kept(parts[0])

    def is_null(self, parts: Any, _: Any) -> Kept:
        return superset.is_null(self._operand(parts[0]))

    def is_nan(self, parts: Any, _: Any) -> Kept:
        return superset.is_nan(self._operand(parts[0]))

    def is_in(self, parts: Any, options: Any) -> Kept:
        if options["nulls_equal"]:
            raise _Unknown
        return superset.is_in(self._operand(parts[0]), _literals(parts[1]))

    def is_between(self, parts: Any, options: Any) -> Kept:
        column, low, high = self._operand(parts[0]), _literal(parts[1]), _literal(parts[2])
        if low is None or high is None:
            return ANY
        above, below = _BETWEEN[options["closed"]]
        return superset.compared(column, above, low) & superset.compared(column, below, high)

    def holds_text(self, how: str, parts: Any, options: Any) -> Kept:
        column, text = self._operand(parts[0]), _literal(parts[1])
        if not isinstance(text, str) or (how == "contains" and not options["literal"] and _IN_PATTERNS & {*text}):
            return ANY
        return superset.holds_text(column, how, text)

    def holds_element(self, parts: Any, _: Any) -> Kept:
        value = _literal(parts[1])
        return ANY if value is None else superset.holds_element(self._operand(parts[0]), value)

    def _operand(self, node: Any) -> KnownColumn:
        """A column, as it is, whole numbers as doubles, or times in smaller units."""
        kind, held = _only(node)
        if kind == "Function":
            name, unit = _only(held["function"]["TemporalExpr"])
            column = self._operand(held["input"][0])
            if name == "CastTimeUnit" and superset.is_time_within(column.type, _UNITS[unit]):
                return column
        if kind == "Cast" and held["dtype"] == {"Literal": "Float64"}:
            kind, held = _only(held["expr"])
            if kind == "Column" and superset.is_number(self._columns[held].type):
                return self._columns[held]
        if kind != "Column":
            raise _Unknown
        return self._columns[held]


def _only(node: Any) -> tuple[str, Any]:
    ((kind, held),) = node.items()
    return kind, held


def _literal(node: Any) -> Any:
    """The value, read from the JSON: Polars reads 9007199254740991.0 there as the double before it. None: null."""
    kind, held = _only(node["Literal"])
    if kind not in ("Scalar", "Dyn"):
        raise _Unknown
    kind, value = _only(held)
    if kind == "Datetime":
        return Time(value[0], _UNITS[value[1]])
    if kind == "Null":
        return None
    if kind == "Binary":
        return bytes(value)
    if kind not in _SCALARS or not isinstance(value, _SCALARS[kind]):
        raise _Unknown  # null, too, which stands for infinities and NaN
    return float(value) if kind in ("Float64", "Float") else value


_WHOLE: Final = ("Int", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
_SCALARS: Final[dict[str, Any]] = {
    "String": str, "Str": str, "Boolean": bool, "Float64": (int, float), "Float": (int, float),
    **dict.fromkeys(_WHOLE, int),
}  # fmt: skip


def _literals(node: Any) -> list[Any]:
    """The values of a list, which stands in the JSON as bytes of Arrow's."""
    import polars

    if set(node) != {"Literal"}:
        raise _Unknown
    written = polars.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
    found = polars.select(written).to_series()
    found = found.explode() if found.dtype.is_nested() else found
    kind = found.dtype
    if isinstance(kind, polars.Datetime):
        return [None if each is None else Time(each, kind.time_unit) for each in found.to_physical()]
    if (
        kind not in (polars.String, polars.Boolean, polars.Binary, polars.Float64, polars.Null)
        and not kind.is_integer()
    ):
        raise _Unknown
    return list(found)


_READ: Final[dict[str, Callable[[_Reader, Any], Kept]]] = {
    "Literal": _Reader.literal,
    "Column": _Reader.column,
    "Alias": _Reader.alias,
    "BinaryExpr": _Reader.binary,
    "Ternary": _Reader.ternary,
    "Function": _Reader.function,
}

_FUNCTIONS: Final[dict[tuple[str, str], Callable[[_Reader, Any, Any], Kept]]] = {
    ("Boolean", "Not"): _Reader.negated,
    ("Boolean", "IsNull"): _Reader.is_null,
    ("Boolean", "IsNotNull"): lambda reader, parts, options: ~reader.is_null(parts, options),
    ("Boolean", "IsNan"): _Reader.is_nan,
    ("Boolean", "IsNotNan"): lambda reader, parts, options: ~reader.is_nan(parts, options),
    ("Boolean", "IsIn"): _Reader.is_in,
    ("Boolean", "IsBetween"): _Reader.is_between,
    ("StringExpr", "StartsWith"): lambda reader, *held: reader.holds_text("starts_with", *held),
    ("StringExpr", "EndsWith"): lambda reader, *held: reader.holds_text("ends_with", *held),
    ("StringExpr", "Contains"): lambda reader, *held: reader.holds_text("contains", *held),
    ("ListExpr", "Contains"): _Reader.holds_element,
}
