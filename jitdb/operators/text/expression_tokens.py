"""The tokens of an expression: what they are, the texts and numbers among them, the brackets that are open."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from jitdb.common.times import UNITS_OF_LENGTH
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.text import expression_errors as errors
from jitdb.operators.text.expression_errors import Part

M = TypeVar("M")

MAX_DEPTH: Final = 100  # parentheses and calls within each other
TOO_DEEP: Final = f"the expression nests parentheses or operators more than {MAX_DEPTH} deep"

_TOKEN: Final = r"""(?:\s+|\\\n|\#[^\n]*)*+(?:
    (?P<text>(?i:[bruf]|br|rb|fr|rf)?(?:'''(?:\\.|(?!''').)*+'''|\"{3}(?:\\.|(?!\"{3}).)*+\"{3}
        |'(?!'')[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'|"(?!"")[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"))
    |(?P<length>(?:[0-9]+(?:\.[0-9]+)?(?:UNIT))+(?![^\0-/:-@\[-^`{-\x7f\s]))
    |(?P<number>0[xXoObB][0-9a-fA-F_]+|(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?)
    |(?P<word>[^\0-/:-@\[-^`{-\x7f\s]+)
    |(?P<sign>[=<>!]+|.)
    |(?P<end>\Z))""".replace("UNIT", UNITS_OF_LENGTH)
_OPEN: Final = {"(": ")", "[": "]", "{": "}"}


class Tokens:
    """An expression, read from left to right, one token ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._match = re.compile(_TOKEN, re.VERBOSE | re.DOTALL).match
        self._open: list[int] = []  # where the brackets begin that are not closed yet
        self._depth = 0  # parentheses and calls among them
        self._kind = ""  # of the token: text, number, word, sign, end
        self._word = ""
        self._start = self._end = 0  # of the token
        self._before = self._done = 0  # where the one before begins, and ends
        self._next()

    def _next(self) -> str:
        """Go on to the next token; return the one before."""
        taken, self._before, self._done = self._word, self._start, self._end
        found = self._match(self._text, self._end)
        assert found is not None  # any character is a sign
        self._kind = found.lastgroup or ""
        self._word, self._start, self._end = found[self._kind], found.start(self._kind), found.end()
        return taken

    def _peeked(self) -> str:
        """The token behind this one."""
        found = self._match(self._text, self._end)
        assert found is not None
        return found[found.lastgroup or 0]

    def _error(self, what: str, part: Part | int) -> QueryError:
        return errors.error_at(self._text, part if isinstance(part, int) else part.start, what)

    def _stuck(self, message: str = "") -> QueryError:
        """This token cannot stand here."""
        is_quote = self._kind == "sign" and self._word in "\"'"
        message = "unterminated string" if is_quote else message
        return errors.stuck(self._text, self._start, self._before, self._open, message)

    def _made(self, part: Part | int, make: Callable[..., M], *arguments: Any, **options: Any) -> M:
        """What `make` makes; an error of it points at the part, if it does not point at a place yet."""
        try:
            return make(*arguments, **options)
        except QueryError as error:
            raise error if "\n" in str(error) else self._error(str(error), part) from error

    def _texts(self) -> Any:
        """One text, or several side by side."""
        start, parts = self._start, []
        while self._kind == "text":
            if re.match("[rR]?[fF]", self._word):
                raise self._error(errors.FORMATTED, self._start)
            parts.append(self._unquoted(self._next(), start))
        if len({type(part) for part in parts}) > 1:
            raise self._error("this is no expression: text and bytes stand side by side", start)
        return parts[0] if len(parts) == 1 else type(parts[0])().join(parts)

    def _unquoted(self, token: str, start: int) -> Any:
        if token[0] in "\"'" and token[1] != token[0] and "\\" not in token:
            return token[1:-1]
        from ast import literal_eval  # late: few texts need it

        head = re.match("[a-zA-Z]*", token)[0].lower()  # type: ignore[index]  # it matches nothing, too
        if "r" not in head:  # where a backslash means nothing, Python would warn
            means = rf"[\\'\"abfnrtvx\n0-7{'' if head else 'uUN'}]"
            token = re.sub(rf"\\({means})|\\", lambda found: found[0] if found[1] else r"\\", token)
        try:
            return literal_eval(token)
        except (SyntaxError, ValueError) as error:
            what = error.msg if isinstance(error, SyntaxError) else str(error)
            raise self._error(f"this is no expression: {what.partition(' (')[0]}", start) from None

    def _number(self) -> int | float:
        text = self._word
        try:
            found = float(text) if "." in text or (text[1:2] not in "xX" and "e" in text.lower()) else int(text, 0)
        except ValueError:
            raise self._stuck(f"{shown(text)[1:-1]} is no number") from None
        self._next()
        return found

    # --- brackets ----------------------------------------------------------------------------------------------------

    def _enter(self) -> int:
        """Take an opening bracket; return where it stands."""
        self._open.append(self._start)
        self._depth += self._word == "("
        if self._depth > MAX_DEPTH:
            raise self._error(TOO_DEEP, self._start)
        self._next()
        return self._open[-1]

    def _leave(self) -> None:
        """Take the bracket that closes it."""
        if self._word != _OPEN[self._text[self._open[-1]]]:
            raise self._stuck()
        self._open.pop()
        self._depth -= self._word == ")"
        self._next()
