"""How an expression may go on: fields, and the values of a field that is compared, both from a sample of records."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, Protocol

from jitdb.operators.text.expression import format_value

MOST_OFFERED: Final = 500  # fields
_LOOKED_AT: Final = 1000  # characters before the cursor: what is begun is shorter, and a search takes their square
_FRAGMENT: Final = re.compile(r"""(?:[\w.@]|\[(?:\d+|"[^"]*"?)?\]?)*$""")  # a field that is begun
_VALUE: Final = re.compile(  # a value that is begun, and the field that it is compared with
    r"""((?:[\w.@]|\[[^\]]*\])+)\s*(?:==|!=|in\s*\[(?:[^\]]*,)?)\s*("[^"]*|'[^']*|\w*)$"""
)


class Known(Protocol):
    """What is known of the fields of a log: operators/summaries/fields.py."""

    def names(self) -> list[str]:
        """Their paths."""

    def values(self, path: str, /) -> list[Any]:
        """Some values of one, the most frequent first."""


class Offer(NamedTuple):
    """Texts that may replace the last `begun` characters; `is_all`: nothing else may."""

    begun: str
    texts: list[str]
    is_all: bool = True


def offered(text: str, known: Known | None) -> Offer:
    """How an expression that ends at the cursor may go on."""
    text = text[-_LOOKED_AT:]
    if known is not None and (value := _VALUE.search(text)) and value[1] in known.names():
        return begun_by(value[2], (quoted(each, value[2][:1]) for each in known.values(value[1])))
    fragment = _FRAGMENT.search(text)
    assert fragment is not None  # it matches nothing, too
    return begun_by(fragment[0], known.names()[:MOST_OFFERED] if known is not None else ())


def begun_by(begun: str, texts: Iterable[str]) -> Offer:
    """Those of the texts that begin so, each once."""
    return Offer(begun, [text for text in dict.fromkeys(texts) if text.startswith(begun)])


def quoted(value: Any, begun: str = "") -> str:
    """The value as in an expression; text in the quotes that are begun, or in double quotes, where possible."""
    quote = "'" if begun == "'" else '"'
    if isinstance(value, str) and value.isprintable() and quote not in value and "\\" not in value:
        return f"{quote}{value}{quote}"
    return format_value(value)
