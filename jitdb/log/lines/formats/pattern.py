"""Patterns: regular expressions for the lines of a log, compiled to a program that a kernel runs in linear time.

What is understood of Python's `re`: literals, `.`, classes, `\\d \\w \\s` and their opposites, `|`, groups with or
without a name, and `* + ? {m,n}`, also lazy. A pattern is matched against a line from its first byte on, byte by byte.
There are no look-arounds and no references back, for which no linear time is known. Groups of different alternatives
may have the same name.

A program has four numbers an instruction:

    CHAR byte                    SPAN class, least        a run of a class, as long as it goes
    CLASS class                  SPLIT first, then, number   try the first way, and if it fails the other
    SAVE slot                    JUMP to
    END                          at the end of the line      MATCH
    PEEK class, else             go on before a byte of a class, or else there

A run that what follows cannot begin with is a SPAN, which never goes back. All else takes a SPLIT a step; a kernel
enters each SPLIT once at each byte (kernels/patterns.py), so the time is bounded by their product. A PEEK before it
passes over an alternative that cannot begin with the byte that is there.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from jitdb.errors import InvalidArgument
from jitdb.log.lines.formats.kernels.kinds import CHAR, CLASS, END, JUMP, MATCH, PEEK, SAVE, SPAN, SPLIT

_ALL: Final = (1 << 256) - 1
_ANY: Final = _ALL & ~(1 << 10)
_DIGITS: Final = sum(1 << byte for byte in b"0123456789")
_WORD: Final = _DIGITS | sum(1 << byte for byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_SPACE: Final = sum(1 << byte for byte in b" \t\n\r\f\v")
_ESCAPED: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE, "D": _ALL & ~_DIGITS, "W": _ALL & ~_WORD, "S": _ALL & ~_SPACE}
_CONTROLS: Final = {"t": 9, "n": 10, "r": 13, "f": 12, "v": 11, "0": 0}
_MOST_REPEATS: Final = 1000
_MOST_CODE: Final = 20_000  # instructions
_MANY: Final = -1  # no upper bound of repeats

# ("set", bits), ("cat", nodes), ("alt", nodes), ("repeat", node, least, most, is_lazy), ("group", node, number) or
# ("end",)
_Node: TypeAlias = tuple[Any, ...]


class Program(NamedTuple):
    """
    code:    four numbers an instruction
    classes: of each class the bits of its bytes
    names:   of the groups, in their order
    splits:  how many SPLITs there are
    """

    code: tuple[tuple[int, int, int, int], ...]
    classes: tuple[int, ...]
    names: tuple[str, ...]
    splits: int


@lru_cache(maxsize=64)
def compile_pattern(pattern: str) -> Program:
    """Raises InvalidArgument, which says where the pattern is not understood."""
    return _Compiler(*_Parser(pattern).parse()).program()


class _Parser:
    """From the text of a pattern to its tree."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._names: list[str] = []
        self._taken: frozenset[str] = frozenset()  # names of groups that may take part beside the next one

    def parse(self) -> tuple[_Node, tuple[str, ...]]:
        node = self._alternatives()
        if self._at < len(self._text):
            raise self._error("a ) without its (")
        return node, tuple(self._names)

    def _error(self, reason: str) -> InvalidArgument:
        return InvalidArgument(
            f"the pattern is not understood at character {self._at + 1}: {reason}",
            remedy="what a pattern may hold: literals, classes, (?P<name>...), |, * + ? {m,n}, \\d \\w \\s",
        )

    def _next(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _alternatives(self) -> _Node:
        before, taken = self._taken, frozenset[str]()
        found = [self._sequence()]
        while self._next("|"):
            taken, self._taken = taken | self._taken, before
            found.append(self._sequence())
        self._taken |= taken
        return found[0] if len(found) == 1 else ("alt", found)

    def _sequence(self) -> _Node:
        nodes: list[_Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if self._next("^"):
                if nodes:
                    raise self._error("^ stands at the beginning only")
                continue
            nodes.append(("end",) if self._next("$") else self._repeated())
        return ("cat", nodes)

    def _repeated(self) -> _Node:
        node = self._atom()
        while (bounds := self._bounds()) is not None:
            least, most = bounds
            if most == _MANY and _first(node)[1]:
                raise self._error("what is repeated may be empty")
            is_lazy = self._next("?")
            self._next("+")
            node = ("repeat", node, least, most, is_lazy)
        return node

    def _bounds(self) -> tuple[int, int] | None:
        for sign, bounds in (("*", (0, _MANY)), ("+", (1, _MANY)), ("?", (0, 1))):
            if self._next(sign):
                return bounds
        found = re.compile(r"\{(\d+)(,?)(\d*)\}").match(self._text, self._at)
        if not found:
            return None
        self._at = found.end()
        least = int(found[1])
        most = int(found[3]) if found[3] else _MANY if found[2] else least
        if max(least, most) > _MOST_REPEATS or (most != _MANY and most < least):
            raise self._error(f"{found[0]} is no number of repeats up to {_MOST_REPEATS:,}")
        return least, most

    def _atom(self) -> _Node:
        if self._next("("):
            return self._group()
        if self._next("["):
            return ("set", self._class())
        if self._next("."):
            return ("set", _ANY)
        if self._next("\\"):
            return ("set", self._escape())
        char = self._text[self._at]
        if char in "*+?":
            raise self._error(f"nothing stands before {char}")
        self._at += 1
        return ("cat", [("set", 1 << byte) for byte in char.encode("utf-8", "surrogateescape")])

    def _group(self) -> _Node:
        number = -1
        if self._next("?P<") or (self._text[self._at : self._at + 2] == "?<" and self._next("?<")):
            name, mark, _ = self._text[self._at :].partition(">")
            if not mark or not name or name[0] in "=!":
                raise self._error("a group's name stands between < and >; there are no look-arounds")
            if name in self._taken:
                raise self._error(f"there are two groups {name}")
            self._at += len(name) + 1
            number = len(self._names)
            self._names.append(name)
            self._taken |= {name}
        elif not self._next("?:") and self._text[self._at : self._at + 1] == "?":
            raise self._error("of groups with ? there are only (?:...) and (?P<name>...)")
        node = self._alternatives()
        if not self._next(")"):
            raise self._error("a ( without its )")
        return node if number < 0 else ("group", node, number)

    def _escape(self) -> int:
        if self._at >= len(self._text):
            raise self._error("a \\ at the end")
        char = self._text[self._at]
        self._at += 1
        if char in _ESCAPED:
            return _ESCAPED[char]
        if char in _CONTROLS:
            return 1 << _CONTROLS[char]
        if char == "x" and re.match("[0-9A-Fa-f]{2}", self._text[self._at : self._at + 2]):
            self._at += 2
            return 1 << int(self._text[self._at - 2 : self._at], 16)
        if char.isalnum() or ord(char) > 127:
            self._at -= 1
            raise self._error(f"\\{char} is unknown")
        return 1 << ord(char)

    def _class(self) -> int:
        bits, is_negative, is_first = 0, self._next("^"), True
        while is_first or not self._next("]"):
            is_first = False
            low = self._member()
            if self._text[self._at : self._at + 1] == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._member()
                if low.bit_count() != 1 or high.bit_count() != 1 or high < low:
                    raise self._error("no range")
                bits |= (high << 1) - low
            else:
                bits |= low
        return _ALL & ~bits & ~(1 << 10) if is_negative else bits

    def _member(self) -> int:
        if self._at >= len(self._text):
            raise self._error("a [ without its ]")
        if self._next("\\"):
            return self._escape()
        char = self._text[self._at]
        if ord(char) > 127:
            raise self._error("a class has characters of ASCII; [^...] has all others, too")
        self._at += 1
        return 1 << ord(char)


class _Compiler:
    """From the tree to the program. `follow`: with which bytes that can go on which comes behind a node."""

    def __init__(self, node: _Node, names: tuple[str, ...]) -> None:
        self._node, self._names = node, names
        self._code: list[tuple[int, int, int, int]] = []
        self._classes: dict[int, int] = {}
        self._splits = 0

    def program(self) -> Program:
        self._put(self._node, 0)
        self._emit(MATCH)
        return Program(tuple(self._code), tuple(self._classes), self._names, self._splits)

    def _emit(self, operation: int, first: int = 0, second: int = 0, third: int = 0) -> int:
        if len(self._code) >= _MOST_CODE:
            raise InvalidArgument("the pattern is too large", remedy="repeat less: {m,n} with smaller numbers")
        self._code.append((operation, first, second, third))
        return len(self._code) - 1

    def _class_of(self, bits: int) -> int:
        return self._classes.setdefault(bits, len(self._classes))

    def _put(self, node: _Node, follow: int) -> None:
        kind = node[0]
        if kind == "set":
            bits = node[1]
            if bits.bit_count() == 1:
                self._emit(CHAR, bits.bit_length() - 1)
            else:
                self._emit(CLASS, self._class_of(bits))
        elif kind == "cat":
            for number, part in enumerate(node[1]):
                self._put(part, _first_of(node[1][number + 1 :], follow))
        elif kind == "group":
            self._emit(SAVE, 2 * node[2])
            self._put(node[1], follow)
            self._emit(SAVE, 2 * node[2] + 1)
        elif kind == "alt":
            self._put_alternatives(node[1], follow)
        elif kind == "repeat":
            self._put_repeat(node, follow)
        else:
            self._emit(END)

    def _put_alternatives(self, nodes: list[_Node], follow: int) -> None:
        jumps = []
        for number, node in enumerate(nodes):
            if number == len(nodes) - 1:
                self._put(node, follow)
            else:
                bits, is_empty = _first(node)
                peek = -1 if is_empty else self._emit(PEEK, self._class_of(bits))
                split = self._split()
                self._put(node, follow)
                jumps.append(self._emit(JUMP))
                if peek >= 0:
                    self._code[peek] = (PEEK, self._code[peek][1], len(self._code), 0)
                self._code[split] = (SPLIT, split + 1, len(self._code), self._code[split][3])
        for jump in jumps:
            self._code[jump] = (JUMP, len(self._code), 0, 0)

    def _split(self) -> int:
        self._splits += 1
        return self._emit(SPLIT, 0, 0, self._splits - 1)

    def _put_repeat(self, repeat: _Node, follow: int) -> None:
        _, node, least, most, is_lazy = repeat
        bits = _single(node)
        if bits is not None and most == _MANY and not bits & follow:
            self._emit(SPAN, self._class_of(bits), least)
            return
        again = _first(node)[0] | follow
        for _ in range(least):
            self._put(node, again)
        if most == _MANY:
            split = self._split()
            self._put(node, again)
            self._emit(JUMP, split)
            self._close([split], is_lazy)
            return
        splits = []
        for _ in range(most - least):
            splits.append(self._split())
            self._put(node, again)
        self._close(splits, is_lazy)

    def _close(self, splits: list[int], is_lazy: bool) -> None:
        """Let these lead behind what was written last."""
        behind = len(self._code)
        for split in splits:
            ways = (behind, split + 1) if is_lazy else (split + 1, behind)
            self._code[split] = (SPLIT, *ways, self._code[split][3])


def _single(node: _Node) -> int | None:
    """The bytes of a node that is one of them; None where it is something else."""
    if node[0] == "set":
        return int(node[1])
    return _single(node[1][0]) if node[0] == "cat" and len(node[1]) == 1 else None


def _first(node: _Node) -> tuple[int, bool]:
    """The bytes with which a node can begin, and whether it may be empty."""
    kind = node[0]
    if kind == "set":
        return node[1], False
    if kind == "cat":
        bits = 0
        for part in node[1]:
            here, is_empty = _first(part)
            bits |= here
            if not is_empty:
                return bits, False
        return bits, True
    if kind == "alt":
        found = [_first(part) for part in node[1]]
        bits = 0
        for here, _ in found:
            bits |= here
        return bits, any(is_empty for _, is_empty in found)
    if kind == "repeat":
        bits, is_empty = _first(node[1])
        return bits, is_empty or node[2] == 0
    return _first(node[1]) if kind == "group" else (0, True)


def _first_of(nodes: list[_Node], follow: int) -> int:
    """The bytes with which what these are can begin, with `follow` behind them."""
    bits, is_empty = _first(("cat", nodes))
    return bits | follow if is_empty else bits
