"""What fields are and Python's are not: `from == "x"`, `user.is == 1`, `"a" in class`, `path.0 == "x"`, `items[].id`.

Python reads a name whose letters are look-alikes (a bold f and "rom") as the name it looks like, but never as a
keyword. So the first letter of a keyword that can only be a field is made bold before the text is parsed; the tree
then holds the plain word, and every character keeps its place in the line. No digit begins a name, whatever it looks
like: in its place stands a letter of a script that nobody types, and the tree gets its digit back (`is_numbered`). So
does `[]` behind a field: it becomes a dot and a letter of that script (ANY_ELEMENT). Only
text that Python refuses as it stands is looked at, so what is an expression already never changes its meaning.

Operators that are words stand between two operands, where Python knows no name: `message contains "timeout"`. In their
place the tree has an `@`, and what was typed there is looked up in the text.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from functools import partial
from itertools import tee, zip_longest
from typing import Final

from jitdb.operators.nodes.operation import Operation
from jitdb.operators.nodes.table import OPERATORS

_TOKEN: Final = r"""(?P<skip>\s+|\#[^\n]*)
      | (?P<value>[A-Za-z]{0,2}(?:'''.*?'''|\"{3}.*?\"{3}|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")|\.?\d[\w.]*
         |["'].*)   # which is never closed
      | (?P<word>[^\W\d]\w*)
      | (?P<sign>[=<>!]+|.)"""
_FORMATTED: Final = r"[rR]?[fF][rR]?[\"']"
#: What makes each operator that is a word: an `i` in front is without regard to case, `startswith` what Python has.
TEXT_OPERATORS: Final[dict[str, Callable[..., Operation]]] = {
    spelling: partial(row.make, ignore_case=True) if spelling[0] == "i" else row.make
    for name, row in OPERATORS.items()
    if row.takes == "ignore_case"
    for spelling in sorted({case + word for word in (name, name.replace("s_with", "swith")) for case in ("", "i")})
}
_OPERATORS: Final = frozenset({"and", "or", "not", "in", "is"})
_NEGATED: Final = frozenset(("not", name) for name in TEXT_OPERATORS)
_VALUES: Final = frozenset({"True", "False", "None"})
_BOLD: Final = {"a": 0x1D41A, "A": 0x1D400}
_NUMERALS: Final = {str(digit): chr(0x12400 + digit) for digit in range(10)}  # cuneiform

ANY_ELEMENT: Final = chr(0x1240A)  # the name that stands in the tree for `[]`, where the text has its second bracket


def with_keywords_as_names(text: str) -> str:
    """The text, keywords that stand where a field stands, and `[]` behind one, disguised as names; as long as before.

    >>> import ast
    >>> ast.unparse(ast.parse(with_keywords_as_names("from == 1 and user.is == 2 or in in in"), mode="eval"))
    'from == 1 and user.is == 2 or in in in'
    """
    found = re.finditer(_TOKEN, text, re.VERBOSE | re.DOTALL)
    tokens, ahead = tee(token for token in found if token.lastgroup != "skip")
    next(ahead, None)
    parts: list[str] = []
    done = 0
    operand = False  # whether what stands before is complete, so that an operator may follow
    before = ""
    for token, following in zip_longest(tokens, ahead):
        shown = token.group()
        after = following.group() if following is not None else ""
        if token.lastgroup == "word" and operand and (shown in TEXT_OPERATORS or (shown, after) in _NEGATED):
            parts += [text[done : token.start()], ("@" if shown in TEXT_OPERATORS else "").ljust(len(shown))]
            done = token.end()
            operand = shown == "not"
        elif token.lastgroup == "word":
            if keyword.iskeyword(shown) and _is_name(shown, before, after, operand):
                parts += [text[done : token.start()], _bold(shown[0])]
                done = token.start() + 1
                operand = True
            else:
                operand = shown not in _OPERATORS
                if shown == "not" and before not in ("", "(", "[", ",", "and", "or", "is"):
                    operand = after == "in"  # of `not in`, the `in` is no field
        else:
            if operand and token.lastgroup == "value" and shown[0] == ".":  # a number here would follow an operand
                parts += [text[done : token.start()], *map(_numbered, re.findall(r"\.|[^.]+", shown))]
                done = token.end()
            if following is not None and operand and shown == "[" and after == "]":
                parts += [text[done : token.start()], ".", text[token.end() : following.start()], ANY_ELEMENT]
                done = following.end()
            operand = token.lastgroup == "value" or shown in (")", "]", "}")
        before = shown
    return "".join([*parts, text[done:]])


def first_formatted(text: str) -> int:
    """Where the first text with an `f` in front begins; -1 where there is none.

    >>> first_formatted('a == "f" and b == f"c"')
    18
    """
    if not re.search(_FORMATTED, text):
        return -1
    values = (found for found in re.finditer(_TOKEN, text, re.VERBOSE | re.DOTALL) if found.lastgroup == "value")
    return next((found.start() for found in values if re.match(_FORMATTED, found.group())), -1)


def _is_name(word: str, before: str, after: str, operand: bool) -> bool:
    if before == ".":
        return True
    if word in _VALUES:
        return False
    if word not in _OPERATORS:
        return True
    if after == ".":
        return not operand
    if word == "not":
        return not operand and after[:1] in ("=", "<", ">", "!")
    return not operand


def is_numbered(name: str, typed: str) -> bool:
    """Whether a name of the tree stands for this key, which begins with a digit.

    >>> import ast
    >>> name = ast.parse(with_keywords_as_names("path.0"), mode="eval").body.attr
    >>> is_numbered(name, "0")
    True
    """
    return name == _numbered(typed) != typed


def _numbered(key: str) -> str:
    return _NUMERALS.get(key[:1], key[:1]) + key[1:]


def _bold(letter: str) -> str:
    first = "A" if letter.isupper() else "a"
    return chr(_BOLD[first] + ord(letter) - ord(first))
