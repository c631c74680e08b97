"""Operations from text, as one types them at a command line, and text of operations. It is read with `ast`, never
evaluated.

    value.content.type == "post" and value.sequence > 10

docs/operators.md has the whole grammar, EXPRESSION_HELP the short of it. Names of fields may be words of Python
(keywords.py); text that is no expression is answered with the right way (expression_errors.py).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from jitdb.common.paths import format_path
from jitdb.common.spelling import did_you_mean
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.compare import gt, gte, lt, lte
from jitdb.operators.nodes.equal import Absent, Equal, absent, equal
from jitdb.operators.nodes.field import Field
from jitdb.operators.nodes.instants import instant_of
from jitdb.operators.nodes.literals import not_an_operation, plain_value, written_value
from jitdb.operators.nodes.operation import OPTIONAL, Operation, and_, not_, or_
from jitdb.operators.nodes.table import OPERATORS, Row
from jitdb.operators.nodes.text_match import TextMatch
from jitdb.operators.text.expression_errors import FUNCTIONS, Source, odd_key
from jitdb.operators.text.expression_parts import Index, dashed_name, is_absent, is_bracketed, read_field, read_literal
from jitdb.operators.text.keywords import TEXT_OPERATORS

MAX_LENGTH: Final = 1_000_000  # characters; ast needs about a hundred bytes of memory for each
MAX_DEPTH: Final = 100  # parentheses and operators within each other


def parse_expression(text: str) -> Operation:
    """The operation that the text stands for; QueryError shows the place that cannot be understood.

    >>> parse_expression('value.content.type == "post" and value.sequence > 10')
    and_(equal('value.content.type', 'post'), gt(10, 'value.sequence'))
    >>> parse_expression('value.content.type = "post"')
    Traceback (most recent call last):
        ...
    jitdb.errors.QueryError: equality is written `==`, not `=`
      value.content.type = "post"
                         ^
    """
    if not isinstance(text, str):
        raise QueryError(f"an expression is text, such as 'value.content.type == \"post\"', not {shown(text)}")
    if len(text) > MAX_LENGTH:
        raise QueryError(f"an expression has at most {MAX_LENGTH:,} characters, this one {len(text):,}")
    text = text.strip()
    if not text:
        raise QueryError("the expression is empty", remedy="for all records write everything()")
    source = Source(text)
    try:
        tree = source.parse()
    except (RecursionError, MemoryError):
        raise QueryError(_TOO_DEEP) from None
    except QueryError:
        raise
    except ValueError as error:  # null bytes, lone surrogates
        raise QueryError(f"this is no text that can be read: {error}") from None
    return _Reader(source).operation(tree, 0)


def format_expression(operation: Operation) -> str:
    """The text of an operation, for `parse_expression`; QueryError where it holds a function.

    >>> from jitdb.operators import absent, and_, equal, gt, not_, or_
    >>> format_expression(and_(equal("value.content.type", "post"), gt(10, "value.sequence")))
    "value.content.type == 'post' and value.sequence > 10"
    >>> format_expression(not_(or_(absent("a"), equal(("a.b", "c"), None))))
    'not (absent(a) or ["a.b"].c == None)'
    """
    refuse_functions(operation, "cannot be written as text")
    return operation.written()


def format_value(value: Any) -> str:
    """A value as expressions write it; times as text, arrays as lists. Raises QueryError for what no field can hold.

    >>> from datetime import date
    >>> print(format_value('a"b'), format_value(date(2026, 11, 1)), format_value((1, None)))
    'a"b' '2026-11-01T00:00:00Z' [1, None]
    """
    if isinstance(value, (set, frozenset)):
        value = list(value)
    if not isinstance(value, str) and (instant := instant_of(value)) is not None:
        return repr(instant)
    if hasattr(value, "tolist"):  # of NumPy, pandas
        value = value.tolist()
    return written_value(plain_value(value))


def refuse_functions(operation: object, lacks: str) -> None:
    """Raises QueryError for what is no operation, or holds a function: it `lacks` what was asked for."""
    if not isinstance(operation, Operation):
        raise QueryError(f"what is no operation {lacks}: {not_an_operation(operation)}")
    for leaf in operation.leaves():
        if leaf.function is not None:
            what, remedy = leaf.function
            raise QueryError(f"{what} {lacks}: {leaf!r}", remedy=remedy)


#: The language on one screen, for a command line or a notebook.
EXPRESSION_HELP: Final = """\
  type == "post"                       equal; also 5, -1.5, true, null, b"bytes", [1, 2], {"k": 1}, float("nan")
  type != "post"                       not equal, or without the field
  age > 18    18 < age <= 65           numbers; also <, <=, >=
  between(age, 18, 65)                 both ends among them; numbers or times
  "a" in tags    "a" not in tags       an array has this element
  type in ["post", "vote"]             one of these
  root is absent    present(root)      without the field; with it, be it null
  root is None                         the field is there and holds null
  message contains "timeout"           text with this in it; also starts_with, ends_with
  name like "A%"    url matches "^/api/"   an SQL pattern; a regular expression (RE2)
  message icontains "timeout"          without regard to case, as ilike, istarts_with and others
  includes(mentions, "@b", pluck="link")   an element of the array has this under `link`
  date > "2015-12-01T10:30:00Z"        times; also 2015-12-01, as much of it as is known
  index("timestamp") > "2026-11-01"    what the record declares as its time, or index("sequence")
  equal(id, "u17", prefix=32)          with options of the index
  seqs(1, 2)  offsets(0, 341)  everything()
  a == 1 and not (b == 2 or c == 3)    combined

Fields are paths: value.content.type. Keys that are no names, such as those with dots, stand in brackets and quotes:
["log.level"], value["my-key"].x. items[0].sku is in the first element of an array, items[].sku in any: == asks if
one is equal, != if none is. Text and times stand in quotes. Numbers in a time's place are since 1970.
"""

_TOO_DEEP: Final = f"the expression nests parentheses or operators more than {MAX_DEPTH} deep"


class _Reader:
    """Reads one expression. Each method takes a node of the tree and gives what it stands for."""

    __slots__ = ("source",)

    def __init__(self, source: Source) -> None:
        self.source = source

    def operation(self, node: ast.expr, depth: int) -> Operation:
        if depth > MAX_DEPTH:
            raise self.source.error(_TOO_DEEP, node)
        try:
            return self._operation(node, depth)
        except QueryError as error:
            if "\n" in str(error):  # it shows its place already
                raise
            raise self.source.error(str(error), node) from error

    def _operation(self, node: ast.expr, depth: int) -> Operation:
        match node:
            case ast.BoolOp(op=ast.And()):
                return and_(*(self.operation(value, depth + 1) for value in node.values))
            case ast.BoolOp():
                return or_(*(self.operation(value, depth + 1) for value in node.values))
            case ast.UnaryOp(op=ast.Not() | ast.Invert()):
                return not_(self.operation(node.operand, depth + 1))
            case ast.BinOp(op=ast.BitAnd()):
                return and_(*(self.operation(value, depth + 1) for value in _chain(node, ast.BitAnd)))
            case ast.BinOp(op=ast.BitOr()):
                return or_(*(self.operation(value, depth + 1) for value in _chain(node, ast.BitOr)))
            case ast.BinOp(op=ast.MatMult()):
                return self._text_match(node)
            case ast.Compare():
                return self._comparisons(node)
            case ast.Call():
                return self._call(node)
            case ast.Constant():
                raise self.source.error("a value alone is no question; compare a field with it", node)
        field = read_field(self.source, node)
        raise self.source.error(
            f"a field alone is no question: compare it, or write present({format_path(field.path)})", node
        )

    def _comparisons(self, node: ast.Compare) -> Operation:
        sides = [node.left, *node.comparators]
        pairs = zip(sides, node.ops, sides[1:], strict=False)
        return and_(*(self._comparison(left, op, right) for left, op, right in pairs))

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Operation:
        if isinstance(op, (ast.In, ast.NotIn)):
            found = self._membership(left, right)
            return found if isinstance(op, ast.In) else not_(found)
        if isinstance(op, (ast.Is, ast.IsNot)):
            found = self._identity(left, right)
            return found if isinstance(op, ast.Is) else not_(found)
        subject, value = read_field(self.source, left, or_index=True, maybe=True), right
        if subject is None:
            op = _MIRRORED[type(op)]()
            subject, value = read_field(self.source, right, or_index=True, maybe=True), left
        if subject is None:  # two values; one in brackets may be a path
            if is_bracketed(left):
                op = _MIRRORED[type(op)]()
                subject, value = read_field(self.source, left), right
            elif is_bracketed(right):
                subject = read_field(self.source, right)
            else:
                raise self.source.error(*_no_field_at_all(left, right))
        literal = read_literal(self.source, value)
        if isinstance(op, (ast.Eq, ast.NotEq)):
            if isinstance(subject, Index):
                raise self.source.error(f'index("{subject.name}") is compared by <, <=, > and >=', left)
            found = equal(subject.path, literal)
            return found if isinstance(op, ast.Eq) else not_(found)
        compare = _COMPARISONS[type(op)]
        try:
            return compare(literal, _compared(subject))
        except QueryError as error:
            raise self.source.error(str(error), value) from error

    def _text_match(self, node: ast.BinOp) -> Operation:
        """`field contains "x"`: what the words are that `@` stands for."""
        *negation, name = self.source.between(node.left, node.right) or [""]
        if name not in TEXT_OPERATORS:
            raise self.source.error("this is no expression: it cannot go on like this", node.right)
        subject = read_field(self.source, node.left)
        try:
            found = TEXT_OPERATORS[name](subject.path, read_literal(self.source, node.right))
        except QueryError as error:
            raise error if "\n" in str(error) else self.source.error(str(error), node.right) from error
        return not_(found) if negation else found

    def _membership(self, left: ast.expr, right: ast.expr) -> Operation:
        if isinstance(right, (ast.List, ast.Tuple, ast.Set)) and not (is_bracketed(right) and _is_value(left)):
            subject = read_field(self.source, left)
            return subject.isin([read_literal(self.source, item) for item in right.elts])
        return read_field(self.source, right).includes(read_literal(self.source, left))

    def _identity(self, left: ast.expr, right: ast.expr) -> Operation:
        subject = read_field(self.source, left)
        if is_absent(right):
            return subject.absent()
        if isinstance(right, ast.Name) and right.id in _STATES:
            raise self.source.error(_STATES[right.id], right)
        value = read_literal(self.source, right)
        if value is not None and not isinstance(value, bool):
            raise self.source.error(
                "`is` goes with None, True, False and absent; other values are compared by ==", right
            )
        return equal(subject.path, value)

    def _call(self, node: ast.Call) -> Operation:
        arguments = list(node.args)
        if isinstance(node.func, ast.Name):
            name = node.func.id
        elif isinstance(node.func, ast.Attribute):
            name = node.func.attr
            arguments.insert(0, node.func.value)
        else:
            raise self.source.error("only the functions of this language can be called", node)
        if name in ("field", "index") and isinstance(node.func, ast.Name):
            raise self.source.error(f"{name}(...) alone is no question: compare it with a value", node)
        if name not in _FUNCTIONS:
            if name in FUNCTIONS:
                raise self.source.error(FUNCTIONS[name], node)
            hint = did_you_mean(name, _FUNCTIONS, f"there are {', '.join(_FUNCTIONS)}")
            raise self.source.error(f"there is no function {name!r}; {hint}", node)
        for argument in arguments:
            if isinstance(argument, ast.Starred):
                raise self.source.error("a star has no meaning here", argument)
        options = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.source.error("a star has no meaning here", keyword.value)
            options[keyword.arg] = read_literal(self.source, keyword.value)
        make, kind, usage, takes = _FUNCTIONS[name]
        keys = kind.arguments
        if keys not in _POSITIONS and len(arguments) != sum(key != OPTIONAL for key in keys):
            raise self.source.error(f"it is written {usage}", node)
        if options and takes != "options":
            raise self.source.error(f"it is written {usage}, without further options", node)
        if keys in _POSITIONS:
            values = [read_literal(self.source, argument) for argument in arguments]
            return make(values[0] if len(values) == 1 and isinstance(values[0], list) else values)
        if not arguments:
            return make()
        subject: Field | Index
        if keys[0] == "index":
            subject = read_field(self.source, arguments[0], or_text=True, or_index=True)
        else:
            subject = read_field(self.source, arguments[0], or_text=True)
        literals = [read_literal(self.source, argument) for argument in arguments[1:]]
        return make(_compared(subject), *literals, **options)


def _compared(subject: Field | Index) -> Any:
    """What the functions of operators take for it."""
    return subject.name if isinstance(subject, Index) else subject.path


def _chain(node: ast.BinOp, kind: type[ast.operator]) -> list[ast.expr]:
    """The parts of `a & b & c`, which Python nests to the left."""
    parts: list[ast.expr] = []
    rest: ast.expr = node
    while isinstance(rest, ast.BinOp) and isinstance(rest.op, kind):
        parts.append(rest.right)
        rest = rest.left
    return [rest, *reversed(parts)]


def _no_field_at_all(left: ast.expr, right: ast.expr) -> tuple[str, ast.expr]:
    """What to say of a comparison of two values, and of which of them."""
    for side in (left, right):
        key = dashed_name(side)
        if key:
            return odd_key(key), side
    if isinstance(left, ast.Constant) and isinstance(left.value, str) and left.value:
        dotted = f", or, where the key itself has a dot, {format_path((left.value,))}" if "." in left.value else ""
        return f"text in quotes is a value; the field is written {format_path(left.value.split('.'))}{dotted}", left
    if isinstance(left, ast.BinOp):
        return "fields are compared as they are: sums are not worked out here", left
    return "one side of a comparison is a field, such as value.content.type", left


def _is_value(node: ast.expr) -> bool:
    is_list = isinstance(node, ast.List) and len(node.elts) != 1
    return is_list or isinstance(node, (ast.Constant, ast.Dict, ast.UnaryOp))


_STATES: Final = {
    "present": "it is written present(field) or `field is not absent`; the opposite is absent(field)",
    "missing": "it is written absent(field), or `field is absent`",
    "empty": 'what is empty is compared with: == "" or == [] or == None; what is not there: `field is absent`',
}  # fmt: skip
_MIRRORED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.Eq, ast.NotEq: ast.NotEq,
    ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE,
}  # fmt: skip
_COMPARISONS: Final[dict[type[ast.cmpop], Callable[..., Operation]]] = {
    ast.Lt: lt, ast.LtE: lte, ast.Gt: gt, ast.GtE: gte,
}  # fmt: skip


def _present(path: Any, **options: Any) -> Operation:
    return not_(absent(path, **options))


def _isin(path: Any, values: Any) -> Operation:
    return Field(path).isin(values)


_FUNCTIONS: Final = {
    **{name: row for name, row in OPERATORS.items() if row.usage},
    **{name: Row(make, TextMatch, f'{name}(field, "text")') for name, make in TEXT_OPERATORS.items()},
    "present": Row(_present, Absent, "present(field)", "options"),
    "isin": Row(_isin, Equal, 'isin(field, ["a", "b"])'),
}
_POSITIONS: Final = (("seqs",), ("offsets",))  # of integers, or of one list of them
