"""What the pattern of a text is, by regular expressions: the slow, obvious program that masks are compared with."""

from __future__ import annotations

import re
from collections.abc import Collection

_WORD = r"[0-9A-Za-z\x80-\xff]"
_LETTER = r"[A-Za-z\x80-\xff]"
_END = rf"(?!{_WORD})"
_CLOCK = r"\d\d:\d\d(?::\d\d(?:[.,]\d+(?!\d))?)?(?:Z|[-+]\d\d:?\d\d)?" + _END
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_RULES = {
    "blank": r"[ \t\n\v\f\r]+",
    "placeholder": r"<(?:num|hex|uuid|ip|time|id|\*|\.\.\.)>",
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
    "blank": " ", "placeholder": "<id>", "uuid": "<uuid>", "date": "<time>", "clock": "<time>", "slashed": "<time>",
    "named": "<time>", "ip": "<ip>", "zero_x": "<hex>", "hex": "<hex>", "number": "<num>", "other": "<id>",
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


def patterns_of(masks: Collection[str]) -> dict[str, str]:
    """The pattern that each of these masks becomes a part of."""
    clusters: list[list[list[str]]] = []
    for own in sorted(set(masks), key=lambda own: own.encode("utf-8", "surrogateescape")):
        words = own.split(" ")
        best, most = None, 0.0
        for cluster in clusters:
            shown = _shown(cluster)
            same = sum(a == b != "<*>" for a, b in zip(shown, words, strict=False))
            if len(shown) == len(words) >= 3 and same / len(words) >= 0.6 and same > most:
                best, most = cluster, same
        if best is None:
            clusters.append([words])
        else:
            best.append(words)
    clusters = [part for cluster in clusters for part in _taken_apart(cluster)]
    while True:
        pairs = [
            (one, other) for one in clusters for other in clusters
            if one is not other and any(fits(" ".join(_shown(one)), " ".join(words)) for words in other)
        ]  # fmt: skip
        if not pairs:
            return {" ".join(words): " ".join(_shown(cluster)) for cluster in clusters for words in cluster}
        one, other = pairs[0]
        clusters = [each for each in clusters if each is not one and each is not other] + [one + other]


def _shown(cluster: list[list[str]]) -> list[str]:
    return [words[0] if len(set(words)) == 1 else "<*>" for words in zip(*cluster, strict=True)]


def _taken_apart(cluster: list[list[str]]) -> list[list[list[str]]]:
    places = [set(words) for words in zip(*cluster, strict=True)]
    few = [at for at, words in enumerate(places) if 1 < len(words) <= 4 and not any("<" in word for word in words)]
    if not few:
        return [cluster]
    at = min(few, key=lambda at: len(places[at]))
    parts = [[words for words in cluster if words[at] == word] for word in sorted(places[at])]
    return [found for part in parts for found in _taken_apart(part)]
