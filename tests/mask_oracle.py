"""What the pattern of a text is, by regular expressions: the slow, obvious program that masks are compared with."""

from __future__ import annotations

import re

_WORD = r"[0-9A-Za-z\x80-\xff]"
_LETTER = r"[A-Za-z\x80-\xff]"
_END = rf"(?!{_WORD})"
_CLOCK = r"\d\d:\d\d(?::\d\d(?:[.,]\d+(?!\d))?)?(?:Z|[-+]\d\d:?\d\d)?" + _END
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_RULES = {
    "blank": r"[ \t\n\v\f\r]+",
    "placeholder": r"<(?:num|hex|uuid|ip|time|\*|\.\.\.)>",
    "uuid": r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}" + _END,
    "date": rf"\d{{4}}[-/]\d\d[-/]\d\d(?:[T ]{_CLOCK})?{_END}",
    "clock": _CLOCK,
    "slashed": rf"\d\d/{_MONTH}/\d{{4}}(?::{_CLOCK})?{_END}",
    "named": rf"(?:{_DAY},? )?{_MONTH}  ?\d\d?{_END}(?: {_CLOCK})?(?: \d{{4}}{_END})?",
    "ip": rf"\d{{1,3}}(?:\.\d{{1,3}}){{3}}{_END}(?!\.\d)",
    "zero_x": rf"0[xX][0-9A-Fa-f]+{_END}",
    "hex": rf"(?=[0-9A-Fa-f]*\d)(?=[0-9A-Fa-f]*[A-Fa-f])[0-9A-Fa-f]{{8,}}{_END}",
    "number": rf"(?:(?<![)\]}}.])[-+])?\d+(?:\.\d+)*(?:[eE][-+]?\d+)?(?P<unit>{_LETTER}{{0,3}}){_END}",
    "named_number": rf"(?P<name>{_LETTER}{{2,64}}|[vV])\d+{_END}",
    "plain": rf"{_LETTER}{{1,64}}{_END}",
    "other": rf"{_WORD}+",
    "byte": r"(?s:.)",
}
_NAMES = {
    "blank": " ", "placeholder": "<*>", "uuid": "<uuid>", "date": "<time>", "clock": "<time>", "slashed": "<time>",
    "named": "<time>", "ip": "<ip>", "zero_x": "<hex>", "hex": "<hex>", "number": "<num>", "other": "<*>",
}  # fmt: skip
_AT_WORDS = re.compile("|".join(f"(?P<{name}>(?<!{_WORD}){rule})" if name not in ("blank", "placeholder", "byte")
                                else f"(?P<{name}>{rule})" for name, rule in _RULES.items()))  # fmt: skip


def mask(text: str) -> str:
    """The pattern of a text."""
    held = text.encode("utf-8", "surrogateescape").decode("latin-1").strip(" \t\n\v\f\r")
    found, words, at = "", 1, 0
    while at < len(held):
        match = _AT_WORDS.match(held, at)
        assert match is not None
        kind = next(name for name in _RULES if match[name] is not None)
        if kind == "blank":
            words += 1
        if words > 128:
            return _text(f"{found} <...>")
        if kind != "blank" and len(found) >= 1024:
            return _text(f"{found}<...>")
        found += _NAMES.get(kind, "")
        found += {"number": match["unit"], "named_number": f"{match['name']}<num>"}.get(kind) or ""
        if kind in ("plain", "byte"):
            found += match[0]
        at = match.end()
    return _text(found)


def _text(held: str) -> str:
    return held.encode("latin-1").decode("utf-8", "surrogateescape")


def fits(pattern: str, mask_of_text: str) -> bool:
    """Whether a text with this mask is one of the pattern."""
    wanted, there = pattern.split(" "), mask_of_text.split(" ")
    return len(wanted) == len(there) and all(want in ("<*>", word) for want, word in zip(wanted, there, strict=True))
