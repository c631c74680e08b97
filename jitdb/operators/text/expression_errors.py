"""Errors of expressions: what was expected, and the text with a caret under the place; what people write out of habit
from other languages, and what it is here.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings
from array import array
from bisect import bisect_right
from itertools import accumulate
from typing import Final

from jitdb.common.paths import format_path
from jitdb.common.spelling import nearest
from jitdb.common.times import time_of_text
from jitdb.errors import QueryError
from jitdb.operators.text.keywords import TEXT_OPERATORS, first_formatted, is_numbered, with_keywords_as_names

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

#: Signs and words where Python could not go on, the longer ones first: regular expressions, which only mistakes need.
SIGNS: Final[tuple[tuple[str, str], ...]] = (
    (r"\s*&&", "`and` is written `and`, not `&&`"),
    (r"\s*\|\|", "`or` is written `or`, not `||`"),
    (r"\s*(=~|!~|~)", _PATTERN),
    (r"\s*===", "equality is written `==`, not `===`"),
    (r"\s*=(?!=)", "equality is written `==`, not `=`"),
    (r"\s*<>", "inequality is written `!=`, not `<>`"),
    (r"\s*!(?!=)", "negation is written `not`, not `!`"),
    (r"\s*(AND|OR|NOT|IN|IS)\b", "`and`, `or`, `not`, `in` and `is` are written in small letters"),
    (rf"(?i)\s*({'|'.join(TEXT_OPERATORS)})\b", _WORDS),
    (r"(?i)\s*(match|regexp?|rlike|glob)\b", _PATTERN),
    (r"(?i)\s*(includes|has|have)\b", _MEMBER),
    (r"(?i)\s*(exists|present)\b", _PRESENT),
    (r"\s*absent\b", "that a field is not there is written absent(field), or `field is absent`"),
    (r"(?i)\s*between\b", _RANGE),
    (r"\s*`", 'a field is written without such quotes; a key that is no name: ["log.level"]'),
)

#: Functions of other languages.
FUNCTIONS: Final = {
    "has": _MEMBER, "exists": _PRESENT,
    "missing": "records without a field are found by absent(field), or `field is absent`",
    **dict.fromkeys(("match", "regex", "regexp", "rlike", "glob", "predicate"), _PATTERN),
}  # fmt: skip

#: A path with a key that is no name, such as `@timestamp`, `a.$type`.
ODD_PATH: Final = r"[^\W\d][\w.]*\.[@$#%][\w.@$-]*\w|[@$#%][\w.@$-]*\w"


def odd_key(path: str) -> str:
    """The hint for a dotted path with a key that is no name; its quotes are double, as a shell has expressions between
    single ones.
    """
    return f"a key that is no name stands in brackets and quotes: {format_path(path.split('.'))}"


_WINDOW: Final = 60  # characters shown on each side of the caret where the line is longer
_LONG: Final = 10_000  # characters: Python reads a text with an f in front in quadratic time
_NEAR: Final = 400  # characters on each side of a mistake in which its cause is looked for
_MOST_SAID: Final = 1000  # characters of a complaint, whatever it names

_DOUBTFUL: Final = re.compile(r"[0-9a-fA-F_.jJ](?:and|else|for|if|in|is|not|or)\b|\\")
_filters: Final = threading.Lock()
_DATE: Final = r"\d{4}-\d{1,2}-\d{1,2}(T[\d:.]+(Z|[+-][\d:]+)?)?"


def _tree(text: str) -> ast.expr:
    """Raises SyntaxError. Python's warnings (`1or 2`, "\\d") are for programmers, and not shown."""
    if not _DOUBTFUL.search(text):
        return ast.parse(text, mode="eval").body
    with _filters, warnings.catch_warnings():  # which all threads share: only where there is something to be said
        warnings.simplefilter("ignore")
        return ast.parse(text, mode="eval").body


class Source:
    """The text of an expression, which knows how to complain about a place in it."""

    __slots__ = ("_ends", "_lines", "_parsed", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = text.split("\n")
        self._parsed = self._lines  # the same with keywords disguised as names, where that was needed
        self._ends: dict[int, array[int]] = {}  # of lines that are not ASCII: where each character ends, in bytes

    def parse(self) -> ast.expr:
        """The tree of the text, fields named with keywords of Python read as fields."""
        if len(self.text) > _LONG and (start := first_formatted(self.text)) >= 0:
            number = self.text.count("\n", 0, start)
            raise self._complaint(FORMATTED, self._lines[number], start - self.text.rfind("\n", 0, start) - 1)
        try:
            return _tree(self.text)
        except SyntaxError as error:
            parsed = with_keywords_as_names(self.text)
            if parsed == self.text:
                raise self.parse_error(error) from None
        self._parsed = parsed.split("\n")
        try:
            tree = _tree(parsed)
        except SyntaxError as error:
            raise self.parse_error(error) from None
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and is_numbered(node.attr, typed := self.typed(node, len(node.attr))):
                node.attr = typed
        return tree

    def error(self, what: str, node: ast.AST) -> QueryError:
        """A complaint about a node of the parsed expression."""
        return self._complaint(what, *self._place(getattr(node, "lineno", 1), getattr(node, "col_offset", 0)))

    def _place(self, number: int, offset: int) -> tuple[str, int]:
        """A line of the text, and a column in it, where ast counts bytes of UTF-8, of the text that it read."""
        if number > len(self._lines):
            return "", 0
        return self._lines[number - 1], self._column(number, offset)

    def _column(self, number: int, offset: int) -> int:
        parsed = self._parsed[number - 1]
        if parsed.isascii():
            return min(offset, len(parsed))
        if number not in self._ends:
            self._ends[number] = array("I", accumulate(len(char.encode()) for char in parsed))
        return bisect_right(self._ends[number], offset)

    def typed(self, node: ast.expr, length: int) -> str:
        """The last characters of what was typed for a node."""
        line, column = self._place(node.end_lineno or 1, node.end_col_offset or 0)
        return line[max(column - length, 0) : column]

    def between(self, left: ast.expr, right: ast.expr) -> list[str]:
        """The words that were typed between two nodes."""
        first, begin = (left.end_lineno or 1), self._place(left.end_lineno or 1, left.end_col_offset or 0)[1]
        last, end = right.lineno, self._place(right.lineno, right.col_offset)[1]
        lines = self._lines[first - 1 : last]
        if first == last:
            lines = [lines[0][begin:end]]
        else:
            lines[0], lines[-1] = lines[0][begin:], lines[-1][:end]
        return re.findall(r"\w+", " ".join(re.sub("#.*", "", line) for line in lines))

    def parse_error(self, error: SyntaxError) -> QueryError:
        """A complaint about text that is no expression at all."""
        number = min(max(error.lineno or 1, 1), len(self._lines))
        line = self._lines[number - 1]
        message = (error.msg or "invalid syntax").split(". ")[0].split(" (detected")[0]
        column = (error.offset or 0) - 1
        if line.startswith("#") and (odd := re.match(ODD_PATH, line[:_NEAR])):
            return self._complaint(odd_key(odd.group()), line, 0)
        if not 0 <= column < len(line):
            missing = "something is missing at the end" if message == "invalid syntax" else message
            return self._complaint(f"this is no expression: {missing}", line, len(line))
        first = max(0, column - _NEAR)
        what, place = _cause(line[first : column + _NEAR], column - first, message)
        return self._complaint(what, line, first + place)

    def _complaint(self, what: str, line: str, column: int) -> QueryError:
        shown = what if len(what) <= _MOST_SAID else what[:_MOST_SAID] + "…"
        return QueryError(shown + self._caret(line, column))

    @staticmethod
    def _caret(line: str, column: int) -> str:
        first = max(0, column - _WINDOW)
        last = column + _WINDOW
        before, after = "…" if first else "", "…" if last < len(line) else ""
        shown = before + line[first:last].replace("\t", " ") + after
        return f"\n  {shown}\n  {' ' * (len(before) + column - first)}^"


def _cause(line: str, column: int, message: str) -> tuple[str, int]:
    """What to say of a mistake at a place in a line, and where it is. The line is short: this takes more than linear
    time.
    """
    for date in re.finditer(_DATE, line):
        if date.start() <= column <= date.end() and time_of_text(date.group().rstrip()) is not None:
            return f'a time stands in quotes: "{date.group().rstrip()}"', date.start()
    for odd in re.finditer(ODD_PATH, line):
        if odd.start() <= column <= odd.end():
            return odd_key(odd.group()), odd.start()
    for habit, what in SIGNS:
        # Python points at the odd character, or at the word before it that it could not go on from.
        for start in (column, _end_of_word(line, column), max(column - 2, 0), max(column - 1, 0)):
            found = re.compile(habit).match(line, start)
            if found and (start >= column or found.end() > column):
                return what, found.end() - len(found.group().lstrip())
    if message == "invalid syntax":
        message = _meant(line, column) or "it cannot go on like this"
    return f"this is no expression: {message}", column


def _meant(line: str, column: int) -> str:
    """What a word may be at which Python could not go on: an operator with a slip in it, a part of a key; else ""."""
    word = re.compile(r"\s*(\w+)\s*([<>=!]?)").match(line, column)
    if word is None:
        return ""
    before = re.search(r"([^\W\d]\w*)\s+$", line[: word.start(1)])
    if before is not None and word[2]:
        return f'a key with a blank stands in brackets and quotes: ["{before[1]} {word[1]}"]'
    near = nearest(word[1].lower(), TEXT_OPERATORS, 0.8)
    return f"did you mean `{near}`?" if near else ""


def _end_of_word(line: str, column: int) -> int:
    while column < len(line) and (line[column].isalnum() or line[column] in "._"):
        column += 1
    return column
