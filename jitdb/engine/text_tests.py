"""Which values of a field contain a text, are like a pattern, or match a regular expression: many tested at once.

Texts lie one behind the other as keys of a dictionary (indexes/kinds/dictionary.py), so one call of a kernel, or of
RE2, goes over a million of them. `holds_text` (operators/nodes/text_match.py) has the rule for a single one.

If case is ignored, a kernel folds ASCII as it goes; Python folds other values first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

import numpy as np

from jitdb.common.values import BYTES, STRING, value_of_key
from jitdb.engine import text_kernels as kernels
from jitdb.errors import QueryError
from jitdb.indexes.kinds.dictionary import values_of_heap
from jitdb.indexes.numbering import NumberingTable
from jitdb.log.codecs.search import wanted_byte
from jitdb.operators.nodes.equal import IsIn
from jitdb.operators.nodes.text_match import (
    LITERAL,
    RUN,
    Step,
    TextMatch,
    expression,
    floating_size,
    holds_text,
    steps_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.fields.located import FieldValues
    from jitdb.operators.nodes.operation import Operation

PART: Final = 1 << 20  # bytes that are tested in one call; between two calls a question can be cancelled
_BEHIND: Final = 64  # bytes that a kernel may read behind the texts, and as many more as its needle has


class Texts(NamedTuple):
    """The keys of some values, each its kind and its payload (jitdb.common.values.value_key).

    buffer: uint8, the keys one behind the other, and any bytes behind the last one
    ends:   uint32, where each ends
    """

    buffer: NDArray[np.uint8]
    ends: NDArray[np.uint32]

    @classmethod
    def of(cls, keys: Sequence[bytes]) -> Self:
        ends = np.cumsum(np.fromiter(map(len, keys), np.int64, len(keys)))
        return cls(np.frombuffer(b"".join(keys), np.uint8), ends.astype(np.uint32))

    def parts(self) -> Iterator[Texts]:
        """Pieces of about PART bytes, of whole keys."""
        first, begin = 0, 0
        while first < len(self.ends):
            stop = max(first + 1, int(np.searchsorted(self.ends, begin + PART, side="right")))
            end = int(self.ends[stop - 1])
            yield Texts(self.buffer[begin:], self.ends[first:stop] - np.uint32(begin))
            first, begin = stop, end

    @property
    def size(self) -> int:
        """Bytes of all keys."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def begins(self) -> NDArray[np.uint32]:
        return np.concatenate([np.zeros(1, np.uint32), self.ends[:-1]])

    def payloads(self, numbers: NDArray[Any]) -> list[bytes]:
        """The payloads of the values with these numbers."""
        data, begins = self.buffer[: self.size].tobytes(), self.begins()
        return [
            data[begin + 1 : end]
            for begin, end in zip(begins[numbers].tolist(), self.ends[numbers].tolist(), strict=True)
        ]


Test: TypeAlias = "Callable[[Texts], NDArray[np.bool_]]"


def joined(found: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """The results of several parts as one array."""
    return np.concatenate([np.empty(0, np.bool_), *found])


def matcher_of(leaf: Operation) -> Test:
    """What tells which of some values the leaf is true of."""
    if isinstance(leaf, IsIn):
        return _Known(leaf.keys).test
    if not isinstance(leaf, TextMatch):
        return partial(_by_value, leaf)
    if leaf.op == "matches":
        assert isinstance(leaf.value, str)
        return _Expression(leaf.value, leaf.ignore_case).test
    if isinstance(leaf.value, str) and not _is_utf8(leaf.value):
        return lambda texts: _one_by_one(leaf, texts)
    return _Like(leaf).test


def _by_value(leaf: Operation, texts: Texts) -> NDArray[np.bool_]:
    """Each value alone, but for those that are too long."""
    data, begins = texts.buffer[: texts.size].tobytes(), texts.begins()
    found = np.zeros(len(begins), np.bool_)
    chosen = np.flatnonzero(texts.ends - begins <= leaf.longest)
    for number, begin, end in zip(chosen.tolist(), begins[chosen].tolist(), texts.ends[chosen].tolist(), strict=True):
        found[number] = leaf.holds(value_of_key(data[begin:end]))
    return found


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _one_by_one(leaf: TextMatch, texts: Texts) -> NDArray[np.bool_]:
    """Each text tested alone: for patterns with bytes that are no UTF-8."""
    found: NDArray[np.bool_] = texts.buffer[texts.begins()] == STRING
    numbers = np.flatnonzero(found)
    held = (payload.decode("utf-8", "surrogateescape") for payload in texts.payloads(numbers))
    found[numbers] = [holds_text(leaf.op, leaf.value, leaf.ignore_case, text) for text in held]
    return found


class _Known:
    """Values of any kind, in a table."""

    def __init__(self, keys: frozenset[bytes]) -> None:
        self._keys, self._table = keys, NumberingTable()
        values = _values(Texts.of(list(keys)))
        assert values is not None  # all are keys
        self._table.number(values, np.zeros(len(values.kind), np.uint8))

    def test(self, texts: Texts) -> NDArray[np.bool_]:
        values = _values(texts)
        if values is None:  # bitmaps, which are few, have the key of no value, too
            data, ends = texts.buffer[: texts.size].tobytes(), texts.ends.tolist()
            return np.array([data[begin:end] in self._keys for begin, end in pairwise([0, *ends])], np.bool_)
        return np.asarray(self._table.find(values) != 0)


def _values(texts: Texts) -> FieldValues | None:
    return values_of_heap(texts.buffer[: texts.size], texts.ends)


class _Like:
    """A pattern of literals, single characters and runs: all operators but `matches` are one."""

    def __init__(self, leaf: TextMatch) -> None:
        text, self._fold = leaf.value, leaf.ignore_case
        if isinstance(text, str):
            self._kind, encoding = STRING, "utf-8"
            steps = [
                step._replace(text=step.text.casefold()) if self._fold else step for step in steps_of(leaf.op, text)
            ]
        else:
            self._kind, encoding = BYTES, "latin-1"
            steps = steps_of(leaf.op, text.decode("latin-1"))
        steps = _joined(steps)
        literals = [step.text.encode(encoding) for step in steps]
        last = max((place for place, step in enumerate(steps) if step.kind == RUN), default=None)
        tail = steps[len(steps) if last is None else last + 1 :]
        is_fixed = last is not None and all(step.kind == LITERAL for step in tail)
        self._fixed = sum(len(step.text.encode(encoding)) for step in tail) if is_fixed else -1
        self._steps = np.array(
            [step.kind for step, held in zip(steps, literals, strict=True) for _ in held or b"0"], np.uint8
        )
        self._bytes = np.frombuffer(bytearray().join(held or b"\0" for held in literals), np.uint8)
        is_floating = floating_size(steps) > 0 and steps[0].kind == RUN
        self._needle = max(literals, key=len) if is_floating else b""
        self._is_plain = is_floating and [step.kind for step in steps] == [RUN, LITERAL, RUN]

    def test(self, texts: Texts) -> NDArray[np.bool_]:
        found = self._tested(texts, self._fold)
        if self._fold:
            odd = np.empty(len(found), np.bool_)
            if kernels.not_ascii(np.require(texts.buffer[: texts.size], requirements="W"), texts.ends, STRING, odd):
                found[odd] = self._tested(_folded(texts, odd), False)
        return found

    def _tested(self, texts: Texts, fold: bool) -> NDArray[np.bool_]:
        """Which texts are like the pattern; `fold`: ignoring the case of ASCII letters."""
        needle, count = self._needle, len(texts.ends)
        buffer, end = texts.buffer, texts.size
        room = end + _BEHIND + len(needle)
        if len(buffer) < room or not buffer.flags.writeable:  # kernels take writeable arrays only
            buffer = np.zeros(room, np.uint8)
            buffer[:end] = texts.buffer[:end]
        found = np.full(count, not needle, np.bool_)
        if needle:
            wanted = wanted_byte(needle[0], fold) | wanted_byte(needle[-1], fold) << 16
            kernels.find_texts(
                buffer, texts.ends, self._kind, np.frombuffer(bytearray(needle), np.uint8), wanted, fold, found
            )
        if not self._is_plain:
            kernels.like_texts(buffer, texts.ends, self._kind, self._steps, self._bytes, self._fixed, fold, found)
        return found


def _joined(steps: Sequence[Step]) -> list[Step]:
    """The steps, with literals that follow each other as one."""
    joined: list[Step] = []
    for step in steps:
        if joined and joined[-1].kind == step.kind == LITERAL:
            joined[-1] = Step(LITERAL, joined[-1].text + step.text)
        else:
            joined.append(step)
    return joined


def _folded(texts: Texts, numbers: NDArray[np.bool_]) -> Texts:
    """The chosen texts, case-folded."""
    head = bytes([STRING])
    held = (payload.decode("utf-8", "surrogateescape") for payload in texts.payloads(np.flatnonzero(numbers)))
    return Texts.of([head + text.casefold().encode("utf-8", "surrogateescape") for text in held])


class _Expression:
    """A regular expression.

    RE2 searches all texts at once for the next match. Between two texts stands a byte that no expression matches, so no
    match reaches from one into the next. Anchors (`^`, `$`) mean each text: the expression is searched without them,
    which finds at least the texts that match, and these are then tested one by one. An expression that begins with `^`
    is searched behind a character that is put before each text and is in none of them. Where many texts match, testing
    each one alone is faster than searching on.
    """

    def __init__(self, pattern: str, ignore_case: bool) -> None:
        self._exact = expression(pattern, ignore_case)
        tokens = _TOKENS.findall(pattern)
        self._is_exact = not _ANCHORS & {*tokens}
        self._loose = _compiled_loosely("".join(map(_unanchored, tokens)), tokens, ignore_case)
        self._begun: Any = None
        if tokens[:1] == ["^"] and not {"^", r"\A"} & {*tokens[1:]} and tokens[1:2] not in _REPEATED:
            self._begun = _compiled_loosely(_BEFORE + "".join(map(_unanchored, tokens[1:])), tokens, ignore_case)

    def test(self, texts: Texts) -> NDArray[np.bool_]:
        texts = texts._replace(buffer=texts.buffer[: texts.size])
        found: NDArray[np.bool_] = texts.buffer[texts.begins()] == STRING
        begun = self._begun is not None and not (texts.buffer == ord(_BEFORE)).any()
        first = 0  # text that is to be tested alone
        if begun or self._loose is not None:
            holding, seen = _holding(_parted(texts, begun), (self._begun if begun else self._loose).search)
            found &= holding
            first = seen if self._is_exact else 0
        numbers, search = np.flatnonzero(found[first:]) + first, self._exact.search
        found[numbers] = [search(payload) is not None for payload in texts.payloads(numbers)]
        return found


def _parted(texts: Texts, begun: bool) -> Texts:
    """The texts, each behind a byte that no expression matches, and if `begun` behind the character for `^`."""
    if not begun:
        parted = texts.buffer.copy()
        parted[texts.begins()] = _NO_TEXT[0]
        return Texts(parted, texts.ends)
    before = _NO_TEXT + _BEFORE.encode()
    held = before + before.join(texts.payloads(np.arange(len(texts.ends))))
    added: NDArray[np.uint32] = np.arange(1, len(texts.ends) + 1, dtype=np.uint32)
    return Texts(np.frombuffer(held, np.uint8), texts.ends + added)


def _holding(texts: Texts, search: Any) -> tuple[NDArray[np.bool_], int]:
    """Which texts a search through all of them finds, and how far it went: once matches turn out to be frequent it
    ends, and all texts behind count as found.

    A text begins behind the byte between it and the one before. An empty match may stand at its very end.
    """
    found, place, hits = np.zeros(len(texts.ends), np.bool_), 1, 0
    data = texts.buffer.tobytes()
    while place <= len(data) and (match := search(data, place)) is not None:
        number = int(np.searchsorted(texts.ends, np.uint32(match.start())))  # another type would convert all of them
        found[number] = True
        place = int(texts.ends[number]) + 1
        hits += 1
        if hits >= _TRIED and _WORTH_IT * hits > number:
            found[number + 1 :] = True
            return found, number + 1
    return found, len(found)


_TOKENS: Final = re.compile(r"\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|.", re.DOTALL)
_ANCHORS: Final = frozenset({"^", "$", r"\A", r"\z"})
_REPEATED: Final = (["*"], ["+"], ["?"], ["{"])
_NO_TEXT: Final = b"\xff"  # in no UTF-8
_BEFORE: Final = "\x1e"  # in hardly any text
_TRIED: Final = 100  # matches before it is decided whether they are frequent
_WORTH_IT: Final = 5  # texts passed for each match, or they are


def _unanchored(token: str) -> str:
    return "(?:)" if token in _ANCHORS else token


def _compiled_loosely(loose: str, tokens: list[str], ignore_case: bool) -> Any:
    """An expression that matches wherever one of these tokens does; None if there is none, or it matches any text."""
    if {r"\Q", r"\C"} & {*tokens}:  # \Q quotes tokens; \C also matches the byte between two texts
        return None
    try:
        found = expression(loose, ignore_case)
    except QueryError:
        return None
    return None if found.search(b"") is not None else found
