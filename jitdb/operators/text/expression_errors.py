"""Errors of expressions: what was expected, and the text with a caret under the place; what people write out of habit
from other languages, and what it is here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from jitdb.common.paths import format_path
from jitdb.common.spelling import nearest
from jitdb.common.times import time_of_text
from jitdb.errors import QueryError
from jitdb.operators.nodes.table import TEXT_OPERATORS

FORMATTED: Final = "text is written without an f before the quotes"
_PREDICATE: Final = 'any other test is a function in Python: field("type").matches(function)'
_PATTERN: Final = (
    'a part of a text: field contains "x"; an SQL pattern: field like "x%"; a regular expression: field matches "^x"; '
    f"{_PREDICATE}"
)
_WORDS: Final = 'it is written in small letters, a text behind it: field contains "x", field like "x%"'
_MEMBER: Final = 'that an array has an element is written `"a" in tags`'
_PRESENT: Final = "that a field is there is written present(field), or `field is not absent`"
_RANGE: Final = "a range is written `1 <= field <= 2`, or between(field, 1, 2)"

# Signs and words that cannot stand where they do, the longer ones first: patterns, which only mistakes need.
_SIGNS: Final[tuple[tuple[str, str], ...]] = (
    (r"&&", "write `and` instead of `&&`"),
    (r"\|\|", "write `or` instead of `||`"),
    (r"(=~|!~|~)", _PATTERN),
    (r"===", "equality is written `==`, not `===`"),
    (r"=(?!=)", "equality is written `==`, not `=`"),
    (r"<>", "inequality is written `!=`, not `<>`"),
    (r"!(?!=)", "negation is written `not`, not `!`"),
    (r"(AND|OR|NOT|IN|IS)\b", "`and`, `or`, `not`, `in` and `is` are written in small letters"),
    (rf"(?i)({'|'.join(TEXT_OPERATORS)})\b", _WORDS),
    (r"(?i)(match|regexp?|rlike|glob)\b", _PATTERN),
    (r"(?i)(includes|has|have)\b", _MEMBER),
    (r"(?i)(exists|present)\b", _PRESENT),
    (r"absent\b", "that a field is not there is written absent(field), or `field is absent`"),
    (r"(?i)between\b", _RANGE),
    (r"`", 'a field is written without such quotes; a key that is no name: ["log.level"]'),
)

#: Functions of other languages.
FUNCTIONS: Final = {
    "has": _MEMBER, "exists": _PRESENT,
    "missing": "records without a field are found by absent(field), or `field is absent`",
    **dict.fromkeys(("match", "regex", "regexp", "rlike", "glob", "predicate"), _PATTERN),
}  # fmt: skip

# A path with a key that is no name, such as `@timestamp`, `a.$type`.
_ODD_PATH: Final = r"[^\W\d][\w.]*\.[@$#%][\w.@$-]*\w|[@$#%][\w.@$-]*\w"


def odd_key(path: str) -> str:
    """The hint for a dotted path with a key that is no name; its quotes are double, as a shell has expressions between
    single ones.
    """
    name, bracket, place = path.partition("[")
    return f"a key that is no name stands in brackets and quotes: {format_path(name.split('.'))}{bracket}{place}"


#: Words behind `is`.
STATES: Final = {
    "present": "it is written present(field) or `field is not absent`; the opposite is absent(field)",
    "missing": "it is written absent(field), or `field is absent`",
    "empty": 'what is empty is compared with: == "" or == [] or == None; what is not there: `field is absent`',
}  # fmt: skip
COMMAS: Final = "comparisons are joined by `and` or `or`, not by commas"

_CASES: Final = r"(lower|upper|lcase|ucase|casefold|tolower|toupper)\s*\("  # functions of other languages
_NUMBERS: Final = {"nan": "nan", "inf": "inf", "infinity": "inf"}  # names that people take for numbers
_WINDOW: Final = 60  # characters shown on each side of the caret where the line is longer
_NEAR: Final = 400  # characters on each side of a mistake in which its cause is looked for
_MOST_SAID: Final = 1000  # characters of a complaint, whatever it names
_BARE: Final = r"(?=\D*\d)\w[\w-]{3,}"  # an id alone
_DATE: Final = r"\d{4}-\d{1,2}-\d{1,2}(T[\d:.]+(Z|[+-][\d:]+)?)?"


class Part(NamedTuple):
    """What stands between two places of an expression.

    kind: an operation, a Field, the name of an index, a value, several values (a list, a tuple, a set), a length of
          time (its seconds), a star (any value of the record), or a sum, which only errors speak of
    """

    kind: Literal["operation", "field", "index", "value", "list", "length", "star", "sum"]
    value: Any
    start: int
    end: int


def error_at(text: str, at: int, what: str) -> QueryError:
    """A complaint about a place in an expression, with a caret under it."""
    begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    first, last = max(begin, at - _WINDOW), min(len(text) if end < 0 else end, at + _WINDOW)
    before, after = "…" if first > begin else "", "…" if text[last : last + 1] not in ("", "\n") else ""
    line = "".join(char if char.isprintable() else " " if char == "\t" else "\ufffd" for char in text[first:last])
    shown = what if len(what) <= _MOST_SAID else what[:_MOST_SAID] + "…"
    return QueryError(f"{shown}\n  {before}{line}{after}\n  {' ' * (len(before) + at - first)}^")


def stuck(text: str, at: int, before: int, opened: Sequence[int], message: str = "") -> QueryError:
    """A complaint about a token that cannot stand here, or that `message` says something of.

    before: where the token before begins
    opened: where the brackets begin that are not closed yet
    """
    char = text[at : at + 1]
    if not char:
        if text[0] == "#" and (odd := re.match(_ODD_PATH, text[:_NEAR])):
            return error_at(text, 0, odd_key(odd.group()))
        what = f"{text[opened[-1]]!r} was never closed" if opened else "something is missing at the end"
        return error_at(text, opened[-1] if opened else at, f"this is no expression: {what}")
    if char in ")]}" and not opened:
        message = f"unmatched {char!r}"
    first = max(text.rfind("\n", 0, at) + 1, at - _NEAR)
    what, place = _cause(text[first : at + _NEAR].partition("\n")[0], at - first, max(before - first, 0), message)
    return error_at(text, first + place, what)


def _cause(line: str, column: int, before: int, message: str) -> tuple[str, int]:
    """What to say of a token in a line, and where. The line is short: this takes more than linear time."""
    for date in re.finditer(_DATE, line):
        if date.start() <= column <= date.end() and time_of_text(date.group().rstrip()) is not None:
            return f'a time stands in quotes: "{date.group().rstrip()}"', date.start()
    if re.fullmatch(_BARE, line.strip()):
        return f'this is no expression; a text in any field: * contains "{line.strip()}"', 0
    for odd in re.finditer(_ODD_PATH, line):
        if odd.start() <= column <= odd.end():
            return odd_key(odd.group()), odd.start()
    if not message:
        for place in (column, before):  # or the word before is one of another language: NOT a
            for habit, what in _SIGNS:
                if re.compile(habit).match(line, place):
                    return what, place
        message = _meant(line, column) or "it cannot go on like this"
    return f"this is no expression: {message}", column


def _meant(line: str, column: int) -> str:
    """What a word may be that cannot stand here: an operator with a slip in it, a part of a key; else ""."""
    word = re.compile(r"(\w+)\s*([<>=!]?)").match(line, column)
    if word is None:
        return ""
    before = re.search(r"([^\W\d]\w*)\s+$", line[:column])
    if before is not None and word[2]:
        return f'a key with a blank stands in brackets and quotes: ["{before[1]} {word[1]}"]'
    near = nearest(word[1].lower(), TEXT_OPERATORS, 0.8)
    return f"did you mean `{near}`?" if near else ""


_ADDRESS: Final = r"\d+\.\d+\.\d"

# --- what stands where something else was expected -------------------------------------------------------------------


def dashed_name(text: str, part: Part) -> str:
    """`user-name` as it was typed, where there is a difference of names; "" for all else."""
    typed = re.sub(r"\s+", "", text[part.start : part.end])
    return typed if part.kind == "sum" and re.fullmatch(r"\w[\w.]*(-\w[\w.]*)+(\[\d*\])*", typed) else ""


def no_field(text: str, part: Part) -> str:
    """What to say of what is no field."""
    dashed = dashed_name(text, part)
    if part.kind == "star":
        return 'a star, any value of the record, goes with contains and icontains: * contains "timeout"'
    if part.kind == "index":
        return "index(...) is compared by <, <=, > and >=, or between(), only"
    if dashed and not dashed[0].isdigit():
        return odd_key(dashed)
    if re.compile(_CASES).match(text, part.start):
        return 'without regard to case: field ilike "text", also icontains, imatches'
    if re.compile(_ADDRESS).search(text, max(0, text.rfind(" ", 0, part.start))):
        return 'a text stands in quotes, addresses and versions, too: remote_addr == "203.0.113.9"'
    return "a field was expected here, such as value.content.type"


def no_field_at_all(text: str, left: Part, right: Part) -> tuple[str, Part]:
    """What to say of a comparison of two values, and of which of them."""
    for side in (left, right):
        if (key := dashed_name(text, side)) and not key[0].isdigit():
            return odd_key(key), side
    typed: Any = left.value
    if isinstance(typed, str) and typed:
        dotted = f", or, where the key itself has a dot, {format_path((typed,))}" if "." in typed else ""
        return f"text in quotes is a value; the field is written {format_path(typed.split('.'))}{dotted}", left
    if left.kind == "sum":
        return "fields are compared as they are: sums are not worked out here", left
    return "one side of a comparison is a field, such as value.content.type", left


def no_value(text: str, part: Part) -> str:
    """What to say of what is no value."""
    typed, dashed = text[part.start : part.end], dashed_name(text, part)
    if (number := re.fullmatch(r"([+-]?)\s*(\w+)", typed)) and number[2].lower() in _NUMBERS:
        return f'it is written float("{number[1]}{_NUMBERS[number[2].lower()]}")'
    if typed in ("absent", "undefined"):
        return "records without a field are found by `field is absent`"
    if part.kind == "field":
        if typed.isidentifier():
            return f'a value was expected, not another field: text stands in quotes, as in "{typed}"'
        return "a field is compared with a value, not with another field (text stands in quotes)"
    if part.kind == "length":
        return f"a length of time is compared by <, <=, >, >= and == only, as in took > {typed}"
    if part.kind == "sum":
        if dashed and time_of_text(dashed) is not None:
            return f'a time stands in quotes: "{dashed}"'
        if dashed and not re.fullmatch(r"[\d-]+", dashed):
            return f'a value was expected: text stands in quotes, as in "{dashed}"'
        return "a value was expected, and sums are not worked out here"
    return "a value was expected: text in quotes, a number, True, False, None, a list or a dict"
