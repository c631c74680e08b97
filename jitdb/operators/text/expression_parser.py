"""The parser of expressions: text that looks like Python, read from left to right and never evaluated.

Words of Python may be fields, and so may keys that begin with a digit: `from == 1`, `user.is`, `path.0`. A word is an
operator where an operator can stand, behind an operand, and a field elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.paths import ANY, CASTS, Path, Step, format_path
from jitdb.common.paths import MAX_DEPTH as MOST_STEPS
from jitdb.common.spelling import did_you_mean
from jitdb.common.times import length_of_units
from jitdb.errors import QueryError
from jitdb.operators.nodes.anywhere import anywhere
from jitdb.operators.nodes.compare import DERIVED_INDEXES, equal_or_within, gt, gte, lt, lte
from jitdb.operators.nodes.equal import Absent, absent, equal
from jitdb.operators.nodes.field import Field, field
from jitdb.operators.nodes.operation import OPTIONAL, Operation, and_, not_, or_
from jitdb.operators.nodes.table import OPERATORS, TEXT_OPERATORS, Row
from jitdb.operators.nodes.text_match import TextMatch, contains
from jitdb.operators.text import expression_errors as errors
from jitdb.operators.text.expression_errors import Part
from jitdb.operators.text.expression_tokens import Tokens

if TYPE_CHECKING:
    from jitdb.operators.text.saved import Book

_KEY: Final = r"\.\s*([^\0-/:-@\[-^`{-\x7f\s]+)"  # behind a field: here digits may come first
_SAVED: Final = r"@(?=([\w.@$-]*))([^\W\d]\w*)"  # a saved question; the first group is all that looks like a key
_KEYWORD: Final = r"(\w+)\s*=(?!=)"  # before an argument

_CONSTANTS: Final = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
_ENDS: Final = frozenset(")]},:")  # what may stand behind an expression within another one

_VALUES: Final = ("value", "list", "length", "sum")  # kinds of parts that are no fields
_COMPARISONS: Final = {"<": (lt, gt), "<=": (lte, gte), ">": (gt, lt), ">=": (gte, lte)}  # and with the sides changed

# How close operators bind; `not` and `~` have a place among them.
_NOT, _INVERT = 3, 7
_LEVELS: Final = {
    "or": 1, "and": 2, **dict.fromkeys((*_COMPARISONS, "==", "!=", "in", "not in", "is", "is not"), 4), "|": 5, "&": 6,
    **dict.fromkeys(TEXT_OPERATORS, 8), **dict.fromkeys("+-*/%^", 9),
}  # fmt: skip
# Of any value: `*`.
_ANYWHERE: Final[dict[str, Callable[..., Operation]]] = {
    "contains": anywhere, "icontains": partial(anywhere, ignore_case=True),
}  # fmt: skip
_COMBINING: Final = {"or": or_, "|": or_, "and": and_, "&": and_}


class Parser(Tokens):
    """The grammar. A method takes what it is called for, from the token on.

    within: the saved questions that this is in; book: all of them, once one was asked for
    """

    def __init__(self, text: str, within: tuple[str, ...] = (), book: Book | None = None) -> None:
        super().__init__(text)
        self._within, self._book = within, book

    def whole(self) -> Operation:
        """The operation that all of the text stands for."""
        found = self._expression()
        if self._word == ",":
            raise self._error(errors.COMMAS, found)
        if self._kind != "end":
            raise self._stuck()
        return self._operation(found)

    # --- operators ---------------------------------------------------------------------------------------------------

    def _expression(self, least: int = 0) -> Part:
        """Operands and the operators between them that bind as close as this, or closer."""
        left = self._operand()
        while True:
            sign = self._operator()
            level = _LEVELS.get(sign, 0)
            if not level and self._kind != "end" and self._word not in _ENDS:
                raise self._stuck()
            if not level or level < least:
                return left
            if sign in _COMBINING:
                parts = [left]
                while self._word == sign:
                    self._next()
                    parts.append(self._expression(level + 1))
                operations = [self._operation(part, sign) for part in parts]
                found: Operation = self._made(left, _COMBINING[sign], *operations)
            elif level == _LEVELS["=="]:
                found = self._compared(left)
            elif sign in TEXT_OPERATORS:
                is_denied = self._word == "not"
                if is_denied:
                    self._next()
                word = self._next()
                make: Callable[..., Operation]
                if left.kind == "star" and word in _ANYWHERE:
                    make = _ANYWHERE[word]
                else:
                    make = partial(TEXT_OPERATORS[word], self._field(left).path)
                right = self._expression(level + 1)
                found = self._made(right, make, self._value(right))
                found = not_(found) if is_denied else found
            else:
                while self._kind == "sign" and self._word in "+-*/%^":
                    if self._next() == self._word and self._word in "*/":
                        self._next()
                    self._expression(level + 1)
                left = Part("sum", None, left.start, self._done)
                continue
            left = Part("operation", found, left.start, self._done)

    def _operator(self) -> str:
        """The operator at which the token stands."""
        if self._word not in ("not", "is"):
            return self._word
        following = self._peeked()
        if self._word == "is":
            return "is not" if following == "not" else "is"
        return "not in" if following == "in" else following if following in TEXT_OPERATORS else ""

    def _compared(self, left: Part) -> Operation:
        """A comparison, or several at once: `1 < a <= 5`."""
        found, first = [], left
        while _LEVELS.get(sign := self._operator()) == _LEVELS["=="]:
            for _ in sign.split():
                self._next()
            right = self._expression(_LEVELS["=="] + 1)
            found.append(self._made(first, self._comparison, left, sign, right))
            left = right
        return self._made(first, and_, *found)

    def _comparison(self, left: Part, sign: str, right: Part) -> Operation:
        if sign.endswith("in"):
            found = self._membership(left, right)
        elif sign.startswith("is"):
            found = self._identity(left, right)
        else:
            side, value = (left, right) if left.kind not in _VALUES else (right, left)
            if side.kind in _VALUES:  # two values; one in brackets may be a field
                side, value = (left, right) if self._is_bracketed(left) else (right, left)
                if not self._is_bracketed(side):
                    what, part = errors.no_field_at_all(self._text, left, right)
                    raise self._error(what, part)
            subject = side.value if side.kind == "index" else self._field(side).path
            if value.kind == "length":
                subject, value = self._of_length(side, value)
            literal = self._value(value)
            if sign in _COMPARISONS:
                return self._made(value, _COMPARISONS[sign][side is right], literal, subject)
            if isinstance(subject, str):
                raise self._error(f'index("{subject}") is compared by <, <=, > and >=', side)
            found = equal_or_within(subject, literal)
        return not_(found) if sign in ("!=", "not in", "is not") else found

    def _of_length(self, side: Part, value: Part) -> tuple[Path, Part]:
        """The length of time in a field, and the number of seconds that it is compared with."""
        path, cast = self._field(side).path, CASTS["duration"]
        return (path if path[-1] is cast else (*path, cast)), value._replace(kind="value")

    def _membership(self, left: Part, right: Part) -> Operation:
        is_value = left.kind == "value" or (
            left.kind == "list" and isinstance(left.value, list) and len(left.value) != 1
        )
        if right.kind == "list" and not (is_value and self._is_bracketed(right)):
            return self._field(left).isin(list(right.value))
        subject, value = self._field(right), self._value(left)
        found = subject.includes(value)
        return or_(found, contains(subject.path, value)) if value and isinstance(value, (str, bytes)) else found

    def _identity(self, left: Part, right: Part) -> Operation:
        subject, name = self._field(left), self._text[right.start : right.end]
        if name == "absent":
            return subject.absent()
        if name in errors.STATES:
            raise self._error(errors.STATES[name], right)
        value = self._value(right)
        if value is not None and not isinstance(value, bool):
            raise self._error("`is` goes with None, True, False and absent; other values are compared by ==", right)
        found = equal(subject.path, value)
        return or_(found, subject.absent()) if value is None else found

    # --- what a part stands for --------------------------------------------------------------------------------------

    def _operation(self, part: Part, sign: str = "") -> Operation:
        if part.kind == "operation":
            found: Operation = part.value
            return found
        if sign in ("&", "|"):
            raise self._error("& and | bind closer than comparisons: put parentheses around each comparison", part)
        if part.kind == "index":
            raise self._error("index(...) alone is no question: compare it with a value", part)
        if part.kind == "value":
            text = self._text[part.start : part.end]
            in_any = f", or look for it in any: * contains {text}" if isinstance(part.value, str) else ""
            raise self._error(f"a value alone is no question; compare a field with it{in_any}", part)
        path = format_path(self._field(part).path)
        in_any = f'; a text in any field: * contains "{path}"' if path.isidentifier() else ""
        raise self._error(f"a field alone is no question: compare it, or write present({path}){in_any}", part)

    def _is_bracketed(self, part: Part) -> bool:
        """Whether it may be a path that begins with a bracket: `["log.level"]`, `[0]`, `[]`; or such a list."""
        is_list = part.kind == "list" and self._text[part.start] == "["
        return is_list and (not part.value or (len(part.value) == 1 and type(part.value[0]) in (str, int)))

    def _field(self, part: Part, *, or_text: bool = False) -> Field:
        if part.kind == "field":
            found: Field = part.value
            return found
        if self._is_bracketed(part):
            return self._made(part, field, list(part.value) or [ANY])
        if or_text and isinstance(part.value, str) and part.kind == "value":
            return self._made(part, field, part.value)
        raise self._error(errors.no_field(self._text, part), part)

    def _value(self, part: Part) -> Any:
        if part.kind == "value" or (part.kind == "list" and isinstance(part.value, list)):
            return part.value
        raise self._error(errors.no_value(self._text, part), part)

    # --- operands ----------------------------------------------------------------------------------------------------

    def _operand(self) -> Part:
        start = self._start
        if self._denies():
            sign = self._next()
            part = self._expression(_NOT if sign == "not" else _INVERT)
            if sign == "~" and part.kind == "value":
                raise self._error(errors.no_value(self._text, part), start)
            return Part("operation", not_(self._operation(part)), start, self._done)
        if self._word in ("+", "-"):
            sign = self._next()
            part = self._operand() if self._word not in ("+", "-") else Part("sum", None, start, start)
            if part.kind in ("value", "length") and type(part.value) in (int, float):
                return part._replace(value=-part.value if sign == "-" else part.value, start=start)
            raise self._error(errors.no_value(self._text, part._replace(start=start)), start)
        return self._behind(self._primary())

    def _denies(self) -> bool:
        """Whether it denies what follows: `~`, or `not` where that is no field."""
        if self._word != "not":
            return self._word == "~"
        following = self._peeked()
        return following != "." and following[:1] not in ("=", "<", ">", "!")

    def _primary(self) -> Part:
        start, kind, word = self._start, self._kind, self._word
        if kind == "text":
            return Part("value", self._texts(), start, self._done)
        if kind == "number":
            return Part("value", self._number(), start, self._done)
        if kind == "length":
            length = length_of_units(self._next())
            assert length is not None  # as its token says
            return Part("length", float(length) / 1e9, start, self._done)
        if kind == "word":
            return self._named()
        if word == "*":
            self._next()
            return Part("star", None, start, self._done)
        if word == "(":
            return self._parenthesized()
        if word == "[":
            return self._listed()
        if word == "{":
            return self._braced()
        if word == "@":
            return self._saved()
        raise self._stuck()

    def _named(self) -> Part:
        start, name = self._start, self._word
        if not name.isidentifier():
            raise self._stuck()
        self._next()
        if self._word == "(":
            return self._call(name, start, [])
        if name in _CONSTANTS:
            if self._word in (".", "[") and name.islower():
                raise self._error(f'{name} is a value; a field of that name is written ["{name}"]', start)
            return Part("value", _CONSTANTS[name], start, self._done)
        return Part("field", [name], start, self._done)

    def _saved(self) -> Part:
        """`@name`: the question that is saved as this."""
        from jitdb.operators.text.saved import Book  # late: few expressions have one

        start = self._start
        found = re.compile(_SAVED).match(self._text, start)
        if found is None or found[1] != found[2]:
            raise self._stuck()
        book = self._book = self._book or Book()
        text, within = self._made(start, book.text_of, found[1], self._within), (*self._within, found[1])
        self._end = found.end()
        self._next()
        try:
            return Part("operation", Parser(text, within, book).whole(), start, self._done)
        except QueryError as error:
            error.add_note(f"in @{found[1]}, which is saved in {book.path}")
            raise

    def _behind(self, part: Part) -> Part:
        """The part, with the keys, positions and calls behind it."""
        steps: list[Step] | None = part.value if isinstance(part.value, list) and part.kind == "field" else None
        while True:
            is_key = self._word[:1] == "." and self._kind in ("sign", "number")
            if not is_key and self._word != "[":
                break
            if is_key:
                key = self._key()
                if self._word == "(":
                    receiver = part if steps is None else self._ended(part, steps)
                    return self._behind(self._call(key, part.start, [receiver]))
            if steps is None:
                steps = list(self._field(part).path)
            if len(steps) > MOST_STEPS:
                raise self._error(f"a field path has at most {MOST_STEPS} keys", part)
            steps.append(key if is_key else self._step())
        return part if steps is None else self._ended(part, steps)

    def _ended(self, part: Part, steps: list[Step]) -> Part:
        return Part("field", self._made(part, field, steps), part.start, self._done)

    def _key(self) -> str:
        found = re.compile(_KEY).match(self._text, self._start)
        if found is None or not (f"_{found[1]}" if "0" <= found[1][0] <= "9" else found[1]).isidentifier():
            raise self._stuck()
        self._end = found.end()
        self._next()
        return found[1]

    def _step(self) -> Step:
        self._enter()
        start, kind = self._start, self._kind
        step: Any = ANY
        if self._word != "]":
            step = self._texts() if kind == "text" else self._number() if kind == "number" else None
            if type(step) not in (str, int) or self._word != "]":
                raise self._error(
                    'in brackets stands a key in quotes, as in value["my-key"], the position of an element, counted '
                    'from 0, or nothing: tags[] == "x" asks for any element', start,
                )  # fmt: skip
        self._leave()
        found: Step = step
        return found

    def _items(self, closing: str) -> list[Part]:
        """Parts with commas between them, up to the closing bracket."""
        found: list[Part] = []
        while self._word != closing:
            found.append(self._expression())
            if self._word != ",":
                break
            self._next()
        return found

    def _parenthesized(self) -> Part:
        start = self._enter()
        found = self._items(")")
        is_tuple = len(found) != 1 or self._text[self._done - 1] == ","
        self._leave()
        if not is_tuple:
            return found[0]
        for part in found:
            if part.kind == "operation":
                raise self._error(errors.COMMAS, start)
        return Part("list", [self._value(part) for part in found], start, self._done)

    def _listed(self) -> Part:
        start = self._enter()
        values = [self._value(part) for part in self._items("]")]
        self._leave()
        return Part("list", values, start, self._done)

    def _braced(self) -> Part:
        """A dict, or a set, which is there for `in` only."""
        start, pairs, items = self._enter(), [], []
        while self._word != "}":
            if self._word == "*":
                raise self._error("stars have no meaning here", start)
            key = self._expression()
            if self._word == ":":
                if key.kind == "list" or isinstance(key.value, dict):
                    raise self._error("a key of a dict is text, a number, bytes or None", key)
                self._next()
                pairs.append((self._value(key), self._value(self._expression())))
            else:
                items.append(self._value(key))
            if (pairs and items) or self._word != ",":
                break
            self._next()
        self._leave()
        return Part("list", tuple(items), start, self._done) if items else Part("value", dict(pairs), start, self._done)

    # --- functions ---------------------------------------------------------------------------------------------------

    def _call(self, name: str, start: int, arguments: list[Part]) -> Part:
        """A function, of what stands before its name and in its parentheses."""
        self._enter()
        options: dict[str, Any] = {}
        is_method = bool(arguments)
        while self._word != ")":
            if self._word == "*":
                raise self._error("a star has no meaning here", self._start)
            keyword = re.compile(_KEYWORD).match(self._text, self._start) if self._kind == "word" else None
            if keyword is None:
                arguments.append(self._expression())
            else:
                self._end = keyword.end()
                self._next()
                options[keyword[1]] = self._value(self._expression())
            if self._word != ",":
                break
            self._next()
        self._leave()
        if name in CASTS and not is_method:
            if len(arguments) != 1 or options:
                raise self._error(f"it is written {name}(field)", start)
            path = (*self._field(arguments[0]).path, CASTS[name])
            return Part("field", self._made(arguments[0], field, path), start, self._done)
        if name not in _SPECIAL or is_method:
            return Part("operation", self._called(name, start, arguments, options), start, self._done)
        values = [] if options else [self._value(argument) for argument in arguments]
        kind, value = self._special(name, start, values)
        return Part(kind, value, start, self._done)

    def _special(self, name: str, start: int, values: list[Any]) -> tuple[Any, Any]:
        """The kind and value of a call that is no question."""
        if name == "float" and len(values) == 1 and values[0] in ("nan", "inf", "-inf"):
            return "value", float(values[0])
        if name == "index" and len(values) == 1 and values[0] in DERIVED_INDEXES:
            return "index", values[0]
        if name == "field" and values and all(isinstance(key, str) for key in values):
            return "field", self._made(start, field, values[0] if len(values) == 1 else values)
        raise self._error(_SPECIAL[name], start)

    def _called(self, name: str, start: int, arguments: list[Part], options: dict[str, Any]) -> Operation:
        if name not in _FUNCTIONS:
            names = (*_FUNCTIONS, *CASTS)
            typed = self._text[start : self._done]
            if name not in errors.FUNCTIONS and re.search(r"\s\(|\([^\"',]*[\w]-", typed):
                raise self._error(f'there is no function {name!r}; a field of this name is written ["{typed}"]', start)
            hint = did_you_mean(name, names, f"there are {', '.join(names)}")
            raise self._error(errors.FUNCTIONS.get(name, f"there is no function {name!r}; {hint}"), start)
        make, kind, usage, takes = _FUNCTIONS[name]
        keys = kind.arguments
        if keys not in _POSITIONS and len(arguments) != sum(key != OPTIONAL for key in keys):
            raise self._error(f"it is written {usage}", start)
        if options and takes != "options":
            raise self._error(f"it is written {usage}, without further options", start)
        given: list[Any]
        if keys in _POSITIONS:
            values = [self._value(argument) for argument in arguments]
            given = [values[0] if len(values) == 1 and isinstance(values[0], list) else values]
        elif not arguments:
            given = []
        else:
            first, *rest = arguments
            is_index = first.kind == "index" and keys[0] == "index"
            of = first.value if is_index else self._field(first, or_text=True).path
            given = [of, *map(self._value, rest)]
        return self._made(start, make, *given, **options)


def _present(path: Any, **options: Any) -> Operation:
    return not_(absent(path, **options))


_FUNCTIONS: Final = {
    **{name: row for name, row in OPERATORS.items() if row.usage},
    **{name: Row(make, TextMatch, f'{name}(field, "text")') for name, make in TEXT_OPERATORS.items()},
    "present": Row(_present, Absent, "present(field)", "options"),
}
_POSITIONS: Final = (("seqs",), ("offsets",))  # of integers, or of one list of them
_SPECIAL: Final = {
    "float": 'it is written float("nan"), float("inf") or float("-inf")',
    "field": 'it is written field("a.b") for a path, ["a.b"] for a key with a dot in it',
    "index": 'it is written index("timestamp") or index("sequence"); other fields are written as such',
}
