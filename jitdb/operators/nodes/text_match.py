"""The operators that look into a text: `contains`, `starts_with`, `ends_with`, `like` and `matches`.

`holds_text` is the rule for one text, which indexes hold to (engine/text_tests.py tests all values of a field at
once). Without regard to case means: of both texts as `str.casefold` has them, `Straße` like `STRASSE`; of a regular
expression it means what RE2 says.

Regular expressions are RE2's: they match in time that is linear in the text, whatever the expression is, and what of
them would take too much memory is refused when the question is made. Python's `re` is hung by `(a+)+$` and thirty
letters.

An index of all values of the field answers any of them. Where there is none, a `starts_with` that looks at case is
answered by an index of what values begin with; any other one by that index of values, or by one of the records that it
is true of, alone (engine/plan.py chooses).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, get_args

from jitdb.common.paths import ANY, Path
from jitdb.common.values import kind_of, value_key
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.indexes.spec import IndexSpec, Requirement, first_bytes_spec, values_spec
from jitdb.operators.nodes.field_ref import PathLike, as_path
from jitdb.operators.nodes.literals import plain_value
from jitdb.operators.nodes.operation import Answering, Core, Operation

if TYPE_CHECKING:
    from pyroaring import BitMap

TextOperator: TypeAlias = Literal["contains", "starts_with", "ends_with", "like", "matches"]


def starts_with(path: PathLike, prefix: str | bytes, *, ignore_case: bool = False) -> Operation:
    """The records whose field is text (or, for a prefix of bytes, bytes) that begins with `prefix`.

    `ignore_case`: here and below, texts are compared as `str.casefold` has them.

    >>> starts_with("value.author", "@6CAx")
    starts_with('value.author', '@6CAx')
    """
    return _text_match("starts_with", path, prefix, ignore_case, "text or bytes to begin with")


def ends_with(path: PathLike, suffix: str | bytes, *, ignore_case: bool = False) -> Operation:
    """The records whose field is text (or bytes) that ends with `suffix`.

    >>> ends_with("file", ".png", ignore_case=True)
    ends_with('file', '.png', ignore_case=True)
    """
    return _text_match("ends_with", path, suffix, ignore_case, "text or bytes to end with")


def contains(path: PathLike, part: str | bytes, *, ignore_case: bool = False) -> Operation:
    """The records whose field is text (or bytes) that has `part` somewhere in it. Of arrays, see `includes`.

    >>> contains("message", "timeout")
    contains('message', 'timeout')
    """
    return _text_match("contains", path, part, ignore_case, "text or bytes to contain")


def like(path: PathLike, pattern: str, *, ignore_case: bool = False) -> Operation:
    """The records whose field is text that is like an SQL pattern: `%` stands for any characters, `_` for one; behind a
    backslash they are meant as such, as is a backslash.

    >>> like("name", "A%")
    like('name', 'A%')
    """
    return _text_match("like", path, pattern, ignore_case, "a pattern such as 'A%'")


def matches(path: PathLike, pattern: str, *, ignore_case: bool = False) -> Operation:
    """The records whose field is text in which the regular expression `pattern` is found, as RE2 has them: no pattern
    takes more time than is linear in the text. Needs `pip install 'jitdb[regex]'`.

    >>> matches("url", "^/api/v[0-9]+/")
    matches('url', '^/api/v[0-9]+/')
    """
    return _text_match("matches", path, pattern, ignore_case, "a regular expression")


def _text_match(op: TextOperator, path: PathLike, value: object, ignore_case: object, wanted: str) -> TextMatch:
    keys, plain = as_path(op, path), plain_value(value)
    is_bytes = isinstance(plain, bytes) and op not in ("like", "matches")
    if not isinstance(plain, str) and not is_bytes:
        raise QueryError(f"{op}() takes {wanted}, not {shown(value)}")
    if not isinstance(ignore_case, bool):
        raise QueryError(f"ignore_case is True or False, not {shown(ignore_case)}")
    if is_bytes and ignore_case:
        raise QueryError(f"bytes have no case: {op}() of bytes takes no ignore_case")
    if op == "matches":
        expression(plain, ignore_case)
    elif isinstance(plain, str):
        size = floating_size(steps_of(op, plain))
        if size > MOST_FLOATING:
            raise QueryError(f"{op}() looks for at most {MOST_FLOATING:,} characters anywhere, not {size:,}")
    return TextMatch(op, keys, plain, ignore_case)


class TextMatch(Operation):
    """The field holds text (or, of a pattern of bytes, bytes) that is so."""

    __slots__ = __match_args__ = ("op", "path", "value", "ignore_case")
    arguments = ("path", "value")
    names_value = True

    op: TextOperator
    path: Path
    value: str | bytes
    ignore_case: bool

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)

    @property
    def signs(self) -> tuple[str, str]:  # type: ignore[override]
        return f"{{}} {'i' if self.ignore_case else ''}{self.op} {{}}", ""

    def keywords(self) -> dict[str, Any]:
        return {"ignore_case": True} if self.ignore_case else {}

    def holds(self, value: Any) -> bool:
        if self._is_prefix:
            return kind_of(value) == kind_of(self.value) and value_key(value).startswith(value_key(self.value))
        return holds_text(self.op, self.value, self.ignore_case, value)

    @property
    def _is_prefix(self) -> bool:
        """Whether values that it is true of begin with the same bytes."""
        return self.op == "starts_with" and not self.ignore_case

    def need(self, core: Core) -> Requirement:
        return Requirement(first_bytes_spec(self.path) if self._is_prefix else values_spec(self.path))

    @property
    def own_spec(self) -> IndexSpec:
        if self._is_prefix:
            return first_bytes_spec(self.path)
        value = json.dumps(self.value) if isinstance(self.value, str) else f"0x{self.value.hex()}"
        return IndexSpec("text", (self.path,), name=f"{'i' if self.ignore_case else ''}{self.op} {value}")

    def answer(self, asked: Answering) -> BitMap:
        if asked.form == "text":
            return asked.marked()
        return asked.candidates() if asked.form in ("prefix", "prefix_map") else asked.with_text(self)

    def prefixes(self, offset: int) -> tuple[int, int] | None:
        if not self._is_prefix:
            return None
        text = value_key(self.value)[1 + offset :][:4]
        return int.from_bytes(text.ljust(4, b"\0"), "big"), int.from_bytes(text.ljust(4, b"\xff"), "big")

    @property
    def payload(self) -> tuple[bytes, bool] | None:
        return (value_key(self.value), False) if self._is_prefix else None

    def others(self) -> Iterator[Operation]:
        if not self.ignore_case and isinstance(self.value, str):
            yield self.changed(ignore_case=True)
        if self.op == "like" and isinstance(self.value, str) and not {"%", "_"} & set(self.value):
            yield self.changed(value=self.value.replace("*", "%").replace("?", "_"))  # as shells have it

    def of_elements(self) -> Operation:
        return self.changed(path=(*self.path, ANY))


def text_match_of(spec: IndexSpec) -> TextMatch:
    """What an index of matches is of: its name says all of it. Raises QueryError where that is nothing."""
    word, _, written = spec.name.partition(" ")
    op: Any = word if word in get_args(TextOperator) else word.removeprefix("i")
    try:
        value = bytes.fromhex(written[2:]) if written.startswith("0x") else json.loads(written)
        (path,) = spec.paths
    except (ValueError, RecursionError):
        value = path = None
    if op not in get_args(TextOperator) or path is None:
        raise QueryError(f"no question about text is written {spec.name!r}")
    return _text_match(op, path, value, op != word, "text or bytes")


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
