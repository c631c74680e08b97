"""Field paths: `value.content.type`, `["log.level"]`, `items[0].sku`, `items[].sku`; one spelling everywhere.

A path is a tuple of steps: text is a key of a map, a number the position of an element in an array, counted from 0,
None (ANY) stands for each element of an array, and a Cast takes what stands there for something else.

As text, keys are separated by dots, positions stand in brackets, `[]` is any element, and a key may stand in brackets
and quotes, as in JSON. A key needs quotes if it has a dot or a bracket in it; in expressions, if it is no name.
`format_path` writes paths for both. A cast stands around the path up to it: `number(status)`, `json(log).level`.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from jitdb.common.words import shown
from jitdb.errors import QueryError, Remedy


class Cast:
    """A step that takes a value for something else. There is one object for each name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, value: Any) -> Any:
        """What the value is then; UNDEFINED where it is nothing."""
        from importlib import import_module

        return import_module("jitdb.log.codecs.casts").READ[self.name](value)  # which needs codecs

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"CASTS[{self.name!r}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return _cast_named, (self.name,)


def _cast_named(name: str) -> Cast:
    return CASTS[name]


CASTS: Final = {name: Cast(name) for name in ("number", "time", "duration", "text", "json", "pattern")}

Step: TypeAlias = str | int | Cast | None
Path: TypeAlias = tuple[Step, ...]
Keys: TypeAlias = tuple[str, ...]  # a path without arrays, as locators of codecs take it

ANY: Final = None  # the step to each element of an array

LOG_PATH: Final = "_path"  # the field of a set of logs that holds the path of a record's log

TIMESTAMPS: Final = ("timestamp", "value.timestamp")  # fields of the time, unless others are named
SEQUENCE: Final = "value.sequence"  # the field behind gt(…, "sequence"), likewise
MAX_DEPTH: Final = 64  # steps of one path; kernels keep their stacks this deep
MAX_POSITION: Final = 2**31 - 1

_KEY: Final = r"[^.\[]*"  # compiled when it is needed
_QUOTED: Final = r"""(?s:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_BRACKETS: Final = rf"\[(?:(\d+)|({_QUOTED}))?\]"
_VALUES: Final = frozenset({"true", "false", "null"})  # names that stand for values in expressions


def parse_path(path: str | Sequence[Step]) -> Path:
    """The steps of a path. Empty keys are allowed; an empty path is not.

    >>> parse_path("value.content.type"), parse_path('["log.level"]')
    (('value', 'content', 'type'), ('log.level',))
    >>> parse_path("items[0].sku"), parse_path("items[].sku"), parse_path(("a.b", "c", 0))
    (('items', 0, 'sku'), ('items', None, 'sku'), ('a.b', 'c', 0))
    >>> parse_path("number(json(log).status)")
    ('log', CASTS['json'], 'status', CASTS['number'])
    """
    if not isinstance(path, (str, list, tuple)):
        raise QueryError(f"a field path is a string or a tuple of keys and positions, not {shown(path)}")
    if isinstance(path, str):
        steps: Path = _cast(path) or (_read(path) if "[" in path else tuple(path.split(".")))
    else:
        steps = tuple(map(step_of, path))
    if not steps or path == "":
        raise QueryError("a field path needs at least one key, such as 'value.content.type'")
    for step in steps:
        _check_step(step, path)
    if len(steps) > MAX_DEPTH:
        raise QueryError(f"a field path has at most {MAX_DEPTH} keys, this one {len(steps)}")
    return steps


def split_paths(text: str) -> list[str]:
    """The parts of a text with paths and commas between them.

    >>> split_paths('time, ["a,b"].c')
    ['time', '["a,b"].c']
    """
    parts = [""]
    for token in re.findall(rf"{_QUOTED}|(?s:.)", text):
        if token == ",":
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts]


def format_path(path: Iterable[Step]) -> str:
    """How a path is written; parse_path and expressions read it.

    >>> format_path(("a", "b")), format_path(("a.b", "c")), format_path(("items", None, "sku", 0))
    ('a.b', '["a.b"].c', 'items[].sku[0]')
    """
    text = ""
    for step in path:
        if isinstance(step, Cast):
            text = f"{step}({text})"
        elif not isinstance(step, str):
            text += "[]" if step is None else f"[{step}]"
        elif is_name(step) and (text or step not in _VALUES):
            text += f".{step}" if text else step
        else:
            text += f"[{quoted(step)}]"
    return text


def plain_path(path: Iterable[Step]) -> str:
    """A path as the name of a column: keys without quotes, so that two paths may have the same name.

    >>> plain_path(("a", "b")), plain_path(("a.b", "created at")), plain_path(("items", None, "sku", 0))
    ('a.b', 'a.b.created at', 'items[].sku[0]')
    """
    text = ""
    for step in path:
        if isinstance(step, Cast):
            text = f"{step}({text})"
        elif not isinstance(step, str):
            text += "[]" if step is None else f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def is_name(key: str) -> bool:
    """Whether Python reads a key as a name."""
    if not key.isidentifier() or keyword.iskeyword(key):
        return False
    # Python folds look-alike letters in names (NFKC): such keys go in quotes.
    import unicodedata  # seldom needed

    return key.isascii() or unicodedata.normalize("NFKC", key) == key


def quoted(key: str) -> str:
    """A key in quotes, as JSON and Python read it.

    >>> quoted('say "hi"')
    '"say \\\\"hi\\\\""'
    """
    text = key.replace("\\", "\\\\").replace('"', '\\"')
    if not text.isprintable():
        text = "".join(char if char.isprintable() or char > "\uffff" else f"\\u{ord(char):04x}" for char in text)
    return f'"{text}"'


def keys_before(path: Path) -> Keys:
    """The keys that a path begins with: up to the first step into an array.

    >>> keys_before(("a", "b", 0, "c")), keys_before(("a",))
    (('a', 'b'), ('a',))
    """
    keys: list[str] = []
    for step in path:
        if not isinstance(step, str):
            break
        keys.append(step)
    return tuple(keys)


def before_any(path: Path) -> Path:
    """The part of a path that leads to one value: up to the first step to each element.

    >>> before_any(("a", 0, None, "c")), before_any(("a",))
    (('a', 0), ('a',))
    """
    return path[: path.index(ANY)] if ANY in path else path


def before_cast(path: Path) -> Path:
    """The part of a path before its first cast.

    >>> before_cast(("a", CASTS["json"], "b")), before_cast(("a", 0))
    (('a',), ('a', 0))
    """
    return next((path[:at] for at, step in enumerate(path) if isinstance(step, Cast)), path)


def single(path: Path, what: str) -> Path:
    """The path, if it leads to one value of a record at most. Raises QueryError about `what`.

    >>> single(("items", 0), "a column")
    ('items', 0)
    """
    if ANY not in path:
        return path
    one, array = format_path(0 if step is ANY else step for step in path), format_path(path[: path.index(ANY) + 1])
    how = f"name one by its position, as in {one}; or, of lines of JSON, make each element a record"
    raise QueryError(
        f"{what} has one value a record, and {format_path(path)} may lead to many",
        remedy=Remedy(f"{how}: jitdb.open(path, each={array!r})", f"{how}: --each '{array}'"),
    )


def step_of(step: Any) -> Any:
    """A step, from what plain_step made of it."""
    if isinstance(step, dict) and len(step) == 1 and "cast" in step:
        return CASTS.get(step["cast"], step)
    return step


def plain_step(step: Step) -> Any:
    """A step as JSON has it."""
    return {"cast": step.name} if isinstance(step, Cast) else step


def _cast(text: str) -> Path:
    """The steps of a path that begins with a cast; none of another one."""
    name, bracket, _ = text.partition("(")
    if not bracket or name not in CASTS:
        return ()
    depth = 0
    for found in re.finditer(rf"{_QUOTED}|[()]", text):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if found[0] == ")" and not depth:
            inside, rest = text[len(name) + 1 : found.start()], text[found.end() :]
            if not rest or rest[0] in ".[":
                further = _read(f"x{rest}")[1:] if rest else ()
                return (*parse_path(inside), CASTS[name], *further)
            break
    raise QueryError(f"a path that begins with {name}( goes on as in {name}(a.b) or json(a).b, not {shown(text)}")


def _read(text: str) -> Path:
    steps: list[Step] = []
    at = 0
    while at < len(text) or not steps:
        brackets = re.compile(_BRACKETS).match(text, at)
        if brackets:
            position, key = brackets.groups()
            steps.append(int(position[:20]) if position else ANY if key is None else _unquoted(key, text))
            at = brackets.end()
        elif text[at : at + 1] == "[":
            raise QueryError(
                f"in the brackets of a path stands a key in quotes, a position or nothing, not {shown(text[at:])}",
                remedy='write ["my.key"], [0] for the first element, or [] for any element of an array',
            )
        elif at and text[at - 1] != ".":
            raise QueryError(f"a dot or a bracket was expected in the path {shown(text)} before {shown(text[at:])}")
        else:
            found = re.compile(_KEY).match(text, at)
            assert found is not None
            steps.append(found.group())
            at = found.end()
        if text[at : at + 1] == ".":
            at += 1
            if at == len(text):
                steps.append("")
    return tuple(steps)


def _unquoted(key: str, path: str) -> str:
    if key[0] == "'":
        key = '"' + re.sub(r"""\\'|(\\.)|(")""", _requoted, key[1:-1], flags=re.DOTALL) + '"'
    try:
        found: str = json.loads(key, strict=False)
    except ValueError:
        raise QueryError(f"a key in brackets is written as in JSON, with \\\\ for a backslash: {shown(path)}") from None
    return found


def _requoted(found: re.Match[str]) -> str:
    return '\\"' if found[2] else found[1] or "'"


def _check_step(step: object, path: object) -> None:
    if isinstance(step, str):
        if any(0xD800 <= ord(char) <= 0xDFFF for char in step):
            raise QueryError(f"the key {shown(step)} of a field path is not valid Unicode text")
    elif isinstance(step, int) and not isinstance(step, bool):
        if not 0 <= step <= MAX_POSITION:
            raise QueryError(f"positions in arrays count from 0 and end at {MAX_POSITION:,}: there is no {shown(step)}")
    elif step is not ANY and not isinstance(step, Cast):
        raise QueryError(f"a field path is a string or a tuple of keys and positions, not {shown(path)}")
