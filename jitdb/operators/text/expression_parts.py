"""The two things that expressions compare: fields and literals, read from nodes of `ast`."""

from __future__ import annotations

import ast
from typing import Any, Final, Literal, NamedTuple, TypeGuard, overload

from jitdb.common.paths import ANY, MAX_DEPTH, Path, Step
from jitdb.common.times import time_of_text
from jitdb.errors import QueryError
from jitdb.operators.nodes.compare import DERIVED_INDEXES
from jitdb.operators.nodes.field import Field, field
from jitdb.operators.nodes.literals import MAX_VALUE_DEPTH
from jitdb.operators.text.expression_errors import FORMATTED, Source, odd_key
from jitdb.operators.text.keywords import ANY_ELEMENT

#: Bare names that stand for values.
CONSTANTS: Final = {"true": True, "false": False, "null": None}

# Bare names that people take for values.
_CASES: Final = ("lower", "upper", "lcase", "ucase", "casefold", "tolower", "toupper")  # functions of other languages
_NUMBERS: Final = {"nan": "nan", "inf": "inf", "infinity": "inf"}


class Index(NamedTuple):
    """`index("timestamp")`: an index that the database derives."""

    name: str


@overload
def read_field(source: Source, node: ast.expr, *, or_text: bool = False) -> Field: ...
@overload
def read_field(source: Source, node: ast.expr, *, or_text: bool = False, or_index: Literal[True]) -> Field | Index: ...
@overload
def read_field(
    source: Source, node: ast.expr, *, or_index: Literal[True], maybe: Literal[True]
) -> Field | Index | None: ...
def read_field(
    source: Source, node: ast.expr, *, or_text: bool = False, or_index: bool = False, maybe: bool = False
) -> Field | Index | None:
    """The field that `node` names.

    By default a node that is no field is an error. `or_text`: a string is a dotted path;
    `or_index`: it may be `index(...)`; `maybe`: None where it is a literal.
    """
    if or_text and isinstance(node, ast.Constant) and isinstance(node.value, str):
        return field(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "index":
        return _read_index(source, node, or_index)
    if maybe and _is_literal(node):
        return None
    steps: list[Step] = []  # from the last to the first
    rest = node
    while not isinstance(rest, ast.Name):
        if len(steps) > MAX_DEPTH:
            raise source.error(f"a field path has at most {MAX_DEPTH} keys", node)
        if isinstance(rest, ast.Attribute):
            is_any = rest.attr == ANY_ELEMENT and source.typed(rest, 1) == "]"
            steps.append(ANY if is_any else _as_typed(source, rest, rest.attr))
            rest = rest.value
        elif isinstance(rest, ast.Subscript):
            steps.append(_step(source, rest.slice))
            rest = rest.value
        elif is_bracketed(rest):
            first = ANY if not rest.elts else _step(source, rest.elts[0])
            return _joined(source, node, (first,), steps)
        elif isinstance(rest, ast.Call) and isinstance(rest.func, ast.Name) and rest.func.id == "field":
            return _joined(source, node, _read_field_call(source, rest), steps)
        else:
            raise _no_field(source, rest)
    if rest.id in CONSTANTS:
        raise source.error(f'{rest.id} is a value; a field of that name is written ["{rest.id}"]', rest)
    return _joined(source, node, (_as_typed(source, rest, rest.id),), steps)


def read_literal(source: Source, node: ast.expr, depth: int = 0) -> Any:
    """The value that `node` stands for."""
    if depth > MAX_VALUE_DEPTH:
        raise source.error(f"a value nests lists and dicts more than {MAX_VALUE_DEPTH} deep", node)
    match node:
        case ast.Constant(value=value) if value is not Ellipsis and not isinstance(value, complex):
            return value
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float() as number)) if (
            not isinstance(number, bool)
        ):
            return -number if isinstance(node.op, ast.USub) else number
        case ast.UnaryOp(operand=ast.Name(id=name)) if name.lower() in _NUMBERS:
            raise source.error(f'it is written float("-{_NUMBERS[name.lower()]}")', node)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Call() as call):
            return -_read_float(source, call)
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [read_literal(source, item, depth + 1) for item in items]
        case ast.Dict():
            return _read_dict(source, node, depth)
        case ast.Call(func=ast.Name(id="float")):
            return _read_float(source, node)
        case ast.Name(id="absent" | "undefined"):
            raise source.error("records without a field are found by `field is absent`", node)
        case ast.Name(id=name) if name.lower() in _NUMBERS:
            raise source.error(f'it is written float("{_NUMBERS[name.lower()]}")', node)
        case ast.Name(id=name):
            raise source.error(f'a value was expected, not another field: text stands in quotes, as in "{name}"', node)
        case ast.Attribute() | ast.Subscript():
            raise source.error("a field is compared with a value, not with another field (text stands in quotes)", node)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            raise source.error("& and | bind closer than comparisons: put parentheses around each comparison", node)
        case ast.BinOp():
            if time_of_text(_dashed(node)) is not None:
                raise source.error(f'a time stands in quotes: "{_dashed(node)}"', node)
            if typed := dashed_name(node):
                raise source.error(f'a value was expected: text stands in quotes, as in "{typed}"', node)
            raise source.error("a value was expected, and sums are not worked out here", node)
        case ast.JoinedStr():
            raise source.error(FORMATTED, node)
    raise source.error("a value was expected: text in quotes, a number, True, False, None, a list or a dict", node)


def is_bracketed(node: ast.expr) -> TypeGuard[ast.List]:
    """Whether it may be a path that begins with a bracket: `["log.level"]`, `[0]`, `[]`; or such a list."""
    return isinstance(node, ast.List) and (
        not node.elts
        or (len(node.elts) == 1 and isinstance(node.elts[0], ast.Constant) and type(node.elts[0].value) in (str, int))
    )


def is_absent(node: ast.expr) -> bool:
    """Whether it is the bare name `absent`, as in `field is absent`."""
    return isinstance(node, ast.Name) and node.id == "absent"


def dashed_name(node: ast.expr) -> str | None:
    """`user-name` as it was typed, where Python reads names and minus signs; None for all else."""
    names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
    return _dashed(node) or None if isinstance(node, ast.BinOp) and names else None


def _dashed(node: ast.expr, depth: int = 0) -> str:
    """Names, paths and whole numbers with minus signs between them; "" where there is anything else."""
    if depth > MAX_DEPTH:
        return ""
    match node:
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            first, second = _dashed(left, depth + 1), _dashed(right, depth + 1)
            return f"{first}-{second}" if first and second else ""
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            path = _dashed(value, depth + 1)
            return f"{path}.{name}" if path else ""
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return str(number)
    return ""


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return node.id in CONSTANTS
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "float"
    return not isinstance(node, (ast.Attribute, ast.Subscript))


def _read_index(source: Source, node: ast.Call, allowed: bool) -> Index:
    if not allowed:
        raise source.error("index(...) is compared by <, <=, > and >=, or between(), only", node)
    match node:
        case ast.Call(args=[ast.Constant(value=str() as name)], keywords=[]) if name in DERIVED_INDEXES:
            return Index(name)
    raise source.error('it is written index("timestamp") or index("sequence"); other fields are written as such', node)


def _read_field_call(source: Source, node: ast.Call) -> Path:
    values = [read_literal(source, argument) for argument in node.args]
    if node.keywords or not values or not all(isinstance(value, str) for value in values):
        raise source.error('it is written field("a.b") for a path, ["a.b"] for a key with a dot in it', node)
    return field(*values).path


def _step(source: Source, node: ast.expr) -> str | int:
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, int)) and not isinstance(node.value, bool):
        return node.value
    raise source.error(
        'in brackets stands a key in quotes, as in value["my-key"], the position of an element, counted from 0, or '
        'nothing: tags[] == "x" asks for any element',
        node,
    )


def _joined(source: Source, node: ast.expr, first: Path, rest: list[Step]) -> Field:
    try:
        return field((*first, *reversed(rest)))
    except QueryError as error:
        raise source.error(str(error), node) from error


def _as_typed(source: Source, node: ast.Name | ast.Attribute, name: str) -> str:
    # Python folds look-alike letters of names into one (NFKC); a key of a record is never folded.
    if not source.text.isascii() and source.typed(node, len(name)) != name:
        raise source.error(
            'this name has letters that Python would change: write it in brackets, as in value["…"]', node
        )
    return name


def _read_float(source: Source, node: ast.Call) -> float:
    match node:
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as text)], keywords=[]) if text in (
            "nan",
            "inf",
            "-inf",
        ):
            return float(text)
    raise source.error('it is written float("nan"), float("inf") or float("-inf")', node)


def _read_dict(source: Source, node: ast.Dict, depth: int) -> dict[Any, Any]:
    result = {}
    for key, item in zip(node.keys, node.values, strict=True):
        if key is None:
            raise source.error("stars have no meaning here", node)
        if isinstance(key, (ast.List, ast.Tuple, ast.Dict)):
            raise source.error("a key of a dict is text, a number, bytes or None", key)
        result[read_literal(source, key, depth + 1)] = read_literal(source, item, depth + 1)
    return result


def _no_field(source: Source, node: ast.expr) -> QueryError:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        return source.error("& and | bind closer than comparisons: put parentheses around each comparison", node)
    if name := dashed_name(node):
        return source.error(odd_key(name), node)
    if isinstance(node, ast.Tuple):
        return source.error("comparisons are joined by `and` or `or`, not by commas", node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CASES:
        return source.error('without regard to case: field ilike "text", also icontains, imatches', node)
    return source.error("a field was expected here, such as value.content.type", node)
