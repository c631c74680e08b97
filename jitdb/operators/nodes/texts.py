"""What the operators that look into a text mean: `contains`, `starts_with`, `ends_with`, `like` and `matches`.

Here is the rule for one text, which indexes hold to (engine/text_tests.py tests all values of a field at
once). Without regard to case means: of both texts as `str.casefold` has them, `Straße` like `STRASSE`; of a regular
expression it means what RE2 says.

Regular expressions are RE2's: they match in time that is linear in the text, whatever the expression is, and what of
them would take too much memory is refused when the question is made. Python's `re` is hung by `(a+)+$` and thirty
letters.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

from jitdb.common.words import shown
from jitdb.errors import QueryError

LITERAL: Final = 0
ONE: Final = 1  # `_`: any character
RUN: Final = 2  # `%`: any characters, or none

MOST_FLOATING: Final = 1000  # characters of a pattern that may begin anywhere: looking for it is tried at each place


class Step(NamedTuple):
    """A part of a `like` pattern: LITERAL with its text, ONE or RUN."""

    kind: int
    text: str = ""


def like_steps(pattern: str) -> list[Step]:
    """The parts of an SQL pattern. Raises QueryError.

    >>> like_steps("a%\\\\_")
    [Step(kind=0, text='a'), Step(kind=2, text=''), Step(kind=0, text='_')]
    """
    steps: list[Step] = []
    for part in re.findall(r"\\.|[%_]|[^\\%_]+|\\", pattern, re.DOTALL):
        if part in ("%", "_"):
            if part == "_" or not steps or steps[-1].kind != RUN:
                steps.append(Step(ONE if part == "_" else RUN))
        elif part == "\\":
            raise QueryError("a pattern of like() ends with a backslash: one that is meant as such is written \\\\")
        else:
            steps.append(Step(LITERAL, part.removeprefix("\\")))
    return steps


def steps_of(op: str, text: str) -> list[Step]:
    """Any of the operators but `matches`, as the steps of a pattern."""
    run, literal = Step(RUN), [Step(LITERAL, text)] if text else []
    match op:
        case "contains":
            return [run, *literal, run] if literal else [run]
        case "starts_with":
            return [*literal, run]
        case "ends_with":
            return [run, *literal]
    return like_steps(text)


def floating_size(steps: list[Step]) -> int:
    """How many characters of a pattern may stand at any place of a text: neither at its beginning nor at its end."""
    runs = [place for place, step in enumerate(steps) if step.kind == RUN]
    if not runs:
        return 0
    is_anchored = all(step.kind == LITERAL for step in steps[runs[-1] + 1 :])
    return sum(len(step.text) or 1 for step in steps[runs[0] + 1 : runs[-1] if is_anchored else None])


def expression(pattern: str, ignore_case: bool) -> Any:
    """The regular expression, compiled by RE2. Raises QueryError for what is none, or would take too much memory."""
    try:
        import re2
    except ImportError:
        raise QueryError(
            "regular expressions are RE2's, which no pattern can hang, and RE2 is not installed",
            remedy="pip install 'jitdb[regex]'",
        ) from None
    return _compiled(re2, pattern, ignore_case)


@lru_cache(maxsize=256)
def _compiled(re2: Any, pattern: str, ignore_case: bool) -> Any:
    options = re2.Options()
    options.never_capture = True
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(pattern, options)
    except UnicodeEncodeError:
        raise QueryError(f"a regular expression is text that UTF-8 can hold, not {shown(pattern)}") from None
    except re2.error as error:
        (said,) = error.args
        said = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise QueryError(f"{shown(pattern)} is no regular expression of RE2: {said}", remedy=_remedy(said)) from None


def _remedy(said: str) -> str:
    if "perl operator" in said or "escape sequence" in said:
        return "RE2 has neither look-around nor back references: combine several questions by and, or, not"
    if "too large" in said or "repetition" in said:
        return "ask for less repetition, or for parts of it by several questions"
    return "the syntax: https://github.com/google/re2/wiki/Syntax"


def holds_text(op: str, pattern: str | bytes, ignore_case: bool, value: Any) -> bool:
    """Whether it is true of a field that holds this value: the rule.

    >>> holds_text("like", "a%c_", False, "abcd"), holds_text("contains", "SS", True, "Straße")
    (True, True)
    """
    if isinstance(pattern, str):
        if not isinstance(value, str):
            return False
        if op == "matches":
            return expression(pattern, ignore_case).search(value.encode("utf-8", "surrogateescape")) is not None
        folded = str.casefold if ignore_case else str
        steps = [step._replace(text=folded(step.text)) for step in steps_of(op, pattern)]
        return _is_like(folded(value), steps)
    if not isinstance(value, bytes):
        return False
    match op:
        case "contains":
            return pattern in value
        case "starts_with":
            return value.startswith(pattern)
    return value.endswith(pattern)


def _is_like(text: str, steps: list[Step]) -> bool:
    """Whether the whole text is like the steps. What is between two runs is looked for at its first place: if the rest
    fits behind any place, it fits behind that one.
    """
    marks: list[tuple[int, str]] = []
    for step in steps:
        marks += [(LITERAL, char) for char in step.text] if step.kind == LITERAL else [(step.kind, "")]
    at = place = 0
    run, begun = -1, 0  # the last run, and where what follows it was looked for
    while at < len(text):
        if place < len(marks) and marks[place][0] == RUN:
            run, begun, place = place, at, place + 1
        elif place < len(marks) and (marks[place][0] == ONE or marks[place][1] == text[at]):
            at, place = at + 1, place + 1
        elif run >= 0:
            begun += 1
            at, place = begun, run + 1
        else:
            return False
    return all(kind == RUN for kind, _ in marks[place:])
