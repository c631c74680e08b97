"""Operations from text, as one types them at a command line, and text of operations.

    value.content.type == "post" and value.sequence > 10

docs/operators.md has the whole grammar, EXPRESSION_HELP the short of it. expression_parser.py reads the text, and
expression_errors.py says what is wrong with it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Final

from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.instants import instant_of
from jitdb.operators.nodes.literals import not_an_operation, plain_value, written_value
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.text.expression_parser import Parser
from jitdb.operators.text.expression_tokens import TOO_DEEP

MAX_LENGTH: Final = 1_000_000  # characters
_LITERAL: Final = re.compile(r""" "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' """, re.VERBOSE | re.DOTALL)
_LONGEST_MENDED: Final = 2000  # characters of a wrong expression for which a right one is looked for


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
    did you mean: value.content.type == "post"
    """
    if not isinstance(text, str):
        raise QueryError(f"an expression is text, such as 'value.content.type == \"post\"', not {shown(text)}")
    if len(text) > MAX_LENGTH:
        raise QueryError(f"an expression has at most {MAX_LENGTH:,} characters, this one {len(text):,}")
    text = text.strip()
    if not text:
        raise QueryError("the expression is empty", remedy="for all records write everything()")
    try:
        return Parser(text).whole()
    except RecursionError:
        raise QueryError(TOO_DEEP) from None
    except QueryError as error:
        if (meant := _meant(text)) is not None:
            error.add_note(f"did you mean: {meant}")
        raise


def _meant(text: str) -> str | None:
    """An expression that may have been meant by this text, which is none."""
    from jitdb.operators.text.expression_habits import mended  # late: for mistakes alone

    meant = mended(text) if len(text) < _LONGEST_MENDED else text
    if re.search(r'"[+-]?(?:nan|inf|infinity)"', meant, re.IGNORECASE) and not re.search(
        r'"[+-]?(?:nan|inf)', text, re.IGNORECASE
    ):
        return None  # it is a number, which the error says how to write
    with suppress(QueryError, RecursionError):
        if meant != text:
            Parser(meant).whole()
            return meant
    return None


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
  level >= "warn"                      that bad or worse: names, and numbers of pino, syslog, OpenTelemetry
  between(age, 18, 65)                 both ends among them; numbers or times
  "a" in tags    "a" not in message    an array has this element, or a text this part
  type in ["post", "vote"]             one of these
  root is absent    present(root)      without the field; with it, be it null
  root is null   root is not null      the field is not there or holds null
  message contains "timeout"           text with this in it; also starts_with, ends_with
  took > 100ms                         a length of time in text such as "1.5s" or "120ms"
  name like "A%"    url matches "^/api/"   an SQL pattern; a regular expression (RE2)
  message fits "took <num>ms"          of a pattern, as `patterns` writes it
  message icontains "timeout"          without regard to case, as ilike, istarts_with and others
  * contains "9f3a"                     any value of the record has this in it; also * icontains
  includes(mentions, "@b", pluck="link")   an element of the array has this under `link`
  date > "2015-12-01T10:30:00Z"        times; as much of it as is known
  date == "2015-12-01"                 on this day; > after it, <= up to its end
  index("timestamp") > "2026-11-01"    what the record declares as its time, or index("sequence")
  number(status) == 502    json(log).level == "error"    text as a number, as JSON; also text(x), time(x)
  equal(id, "u17", prefix=32)          with options of the index
  seqs(1, 2)  offsets(0, 341)  everything()
  @slow and service == "web"           what was saved: jitdb save slow 'ms > 1000'
  a == 1 and not (b == 2 or c == 3)    combined

Fields are paths: value.content.type. Keys that are no names, such as those with dots, stand in brackets and quotes:
["log.level"], value["my-key"].x. items[0].sku is in the first element of an array, items[].sku in any: == asks if
one is equal, != if none is. Text and times stand in quotes. Numbers in a time's place are since 1970.
"""


def typed(operation: Operation) -> str:
    """The operation as text that can stand between the single quotes of a shell, if possible."""

    def doubled(literal: re.Match[str]) -> str:
        text = literal[0]
        return f'"{text[1:-1]}"' if text[0] == "'" and not set('"\\') & set(text) else text

    return _LITERAL.sub(doubled, format_expression(operation))
