"""Errors of expressions: what was expected, and the text with a caret under the place."""

from __future__ import annotations

import ast
import re
from typing import Final

from jitdb.errors import QueryError

_WINDOW: Final = 60  # characters shown on each side of the caret where the line is longer

# What people write out of habit from other languages, and what it is here.
_HABITS: Final = (
    (re.compile(r"\s*&&"), "`and` is written `and`, not `&&`"),
    (re.compile(r"\s*\|\|"), "`or` is written `or`, not `||`"),
    (re.compile(r"\s*==="), "equality is written `==`, not `===`"),
    (re.compile(r"\s*=(?!=)"), "equality is written `==`, not `=`"),
    (re.compile(r"\s*<>"), "inequality is written `!=`, not `<>`"),
    (re.compile(r"\s*!(?!=)"), "negation is written `not`, not `!`"),
    (re.compile(r"\s*(AND|OR|NOT|IN|IS)\b"), "`and`, `or`, `not`, `in` and `is` are written in small letters"),
    (re.compile(r"\s*(like|LIKE)\b"), "text that begins with something is found by starts_with(field, 'text')"),
)


class Source:
    """The text of an expression, which knows how to complain about a place in it."""

    __slots__ = ("_lines", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = text.split("\n")

    def error(self, what: str, node: ast.AST) -> QueryError:
        """A complaint about a node of the parsed expression."""
        number = getattr(node, "lineno", 1)
        line = self._lines[number - 1] if number <= len(self._lines) else ""
        # ast counts columns in bytes of UTF-8.
        column = len(line.encode()[: getattr(node, "col_offset", 0)].decode(errors="ignore"))
        return QueryError(what + self._caret(line, column))

    def parse_error(self, error: SyntaxError) -> QueryError:
        """A complaint about text that is no expression at all."""
        number = min(max(error.lineno or 1, 1), len(self._lines))
        line = self._lines[number - 1]
        message = (error.msg or "invalid syntax").split(". ")[0].split(" (detected")[0]
        column = (error.offset or 0) - 1
        if not 0 <= column < len(line):
            missing = "something is missing at the end" if message == "invalid syntax" else message
            return QueryError(f"this is no expression: {missing}" + self._caret(line, len(line)))
        for habit, hint in _HABITS:
            # Python points at the odd character, or at the word before it that it could not go on from.
            for start in (column, _end_of_word(line, column), max(column - 2, 0), max(column - 1, 0)):
                found = habit.match(line, start)
                if found and (start >= column or found.end() > column):
                    place = found.end() - len(found.group().lstrip())
                    return QueryError(hint + self._caret(line, place))
        if message == "invalid syntax":
            message = "it cannot go on like this"
        return QueryError(f"this is no expression: {message}" + self._caret(line, column))

    @staticmethod
    def _caret(line: str, column: int) -> str:
        first = max(0, column - _WINDOW)
        last = column + _WINDOW
        before, after = "…" if first else "", "…" if last < len(line) else ""
        shown = before + line[first:last].replace("\t", " ") + after
        return f"\n  {shown}\n  {' ' * (len(before) + column - first)}^"


def _end_of_word(line: str, column: int) -> int:
    while column < len(line) and (line[column].isalnum() or line[column] in "._"):
        column += 1
    return column
