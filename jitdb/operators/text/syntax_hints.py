"""What people write out of habit from other languages, and what it is here."""

from __future__ import annotations

from typing import Final

_PREDICATE: Final = 'any other test is a function in Python: field("type").matches(function)'
_PATTERN: Final = f'text that begins with something: starts_with(field, "text"); {_PREDICATE}'
_MEMBER: Final = 'that an array has an element is written `"a" in tags`'
_PRESENT: Final = "that a field is there is written present(field), or `field is not absent`"
_RANGE: Final = "a range is written `1 <= field <= 2`"

#: Signs and words where Python could not go on, the longer ones first: regular expressions, which only mistakes need.
SIGNS: Final[tuple[tuple[str, str], ...]] = (
    (r"\s*&&", "`and` is written `and`, not `&&`"),
    (r"\s*\|\|", "`or` is written `or`, not `||`"),
    (r"\s*(=~|!~|~)", _PATTERN),
    (r"\s*===", "equality is written `==`, not `===`"),
    (r"\s*=(?!=)", "equality is written `==`, not `=`"),
    (r"\s*<>", "inequality is written `!=`, not `<>`"),
    (r"\s*!(?!=)", "negation is written `not`, not `!`"),
    (r"\s*(AND|OR|NOT|IN|IS)\b", "`and`, `or`, `not`, `in` and `is` are written in small letters"),
    (r"(?i)\s*(i?like|startswith|starts_with)\b", _PATTERN),
    (r"(?i)\s*(match|matches|regexp?|rlike|glob|endswith|ends_with)\b", _PATTERN),
    (r"(?i)\s*(contains|includes|has|have)\b", _MEMBER),
    (r"(?i)\s*(exists|present)\b", _PRESENT),
    (r"\s*absent\b", "that a field is not there is written absent(field), or `field is absent`"),
    (r"(?i)\s*between\b", _RANGE),
)

#: Functions of other languages.
FUNCTIONS: Final = {
    "contains": _MEMBER, "has": _MEMBER, "exists": _PRESENT, "between": _RANGE,
    "missing": "records without a field are found by absent(field), or `field is absent`",
    **dict.fromkeys(("like", "match", "matches", "regex", "regexp", "endswith", "ends_with", "predicate"), _PATTERN),
}  # fmt: skip

#: A path with a key that is no name, such as `@timestamp`, `a.$type`.
ODD_PATH: Final = r"[^\W\d][\w.]*\.[@$#%][\w.@$-]*\w|[@$#%][\w.@$-]*\w"


def odd_key(path: str) -> str:
    """The hint for a dotted path with a key that is no name."""
    return f"a key that is no name stands in quotes: {shown_path(path.split('.'))}"


def shown_path(keys: list[str]) -> str:
    """A field as an expression has it, its quotes double: expressions at a shell stand between single ones.

    >>> shown_path(["user", "first-name"]), shown_path(["@timestamp"]), shown_path(["a.b", "c"])
    ('user["first-name"]', 'field("@timestamp")', 'field("a.b", "c")')
    """
    first, *rest = keys
    if "." in first and rest:
        return f"field({', '.join(map(_quoted, keys))})"
    text = first if first.isidentifier() else f"field({_quoted(first)})"
    return text + "".join(f".{key}" if key.isidentifier() else f"[{_quoted(key)}]" for key in rest)


def _quoted(key: str) -> str:
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
