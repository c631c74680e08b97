"""What was meant by an expression that is written as other tools have it: jq, Lucene, KQL, SQL, C.

    .level == "x"      level:x      level=x      a && b      NOT a      status:>300      message LIKE '%x%'

Only what has one meaning is rewritten, word by word; the caller parses what comes of it, and offers it if that is one.
"""

from __future__ import annotations

import re
from typing import Final

from jitdb.operators.nodes.table import TEXT_OPERATORS

_TOKEN: Final = re.compile(
    r"""(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<blank>\s+)
    |(?P<curly>[\u201c-\u201e][^"\\\u201c-\u201e]*[\u201c\u201d]|[\u2018-\u201a][^"\\\u2018-\u201a]*[\u2018\u2019])
    |(?P<sign>&&|\|\||!==|===|<>|<=|>=|==|!=|=~|!~|[<>=!:~])|(?P<word>[^\s"'<>=!:~(),\[\]&|]+)|(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_SIGNS: Final = {
    "&&": "and", "||": "or", "===": "==", "!==": "!=", "=": "==", "<>": "!=", "!": "not", "~": "matches",
    "=~": "matches", "!~": "not matches",
}  # fmt: skip
_WORDS: Final = frozenset({"and", "or", "not", "in", "is", "null", "true", "false", "none", *TEXT_OPERATORS})
_COMPARED: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", *TEXT_OPERATORS})
_PLAIN: Final = re.compile(r"[+-]?[0-9.]+(?:e[+-]?[0-9]+)?|true|false|null|None|True|False", re.IGNORECASE)
_CLASS_OF_STATUS: Final = re.compile(r"(?<![\w\"'.])([\w.]+)\s*(?:==?|:)\s*([1-9])xx\b(?![\"'])", re.IGNORECASE)
_OPERATOR: Final = rf"\s*(?:[=!<>]=?|:|(?:{'|'.join(TEXT_OPERATORS)}|in|is)\b)"
# Names of fields that are no paths, as tables and W3C have them: `Duration (ms)`, `cs(User-Agent)`, `User name`,
# `Failed?`, `sc-status`, `@level`.
_NO_WORD: Final = rf"(?!(?:{'|'.join(sorted(_WORDS))})\b)"
_NO_PATH: Final = re.compile(
    r"""(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`(?P<ticked>[^`"]+)`|(?<![\w"'.\]`@])(?P<odd>@\w[\w.-]*"""
    rf"""|{_NO_WORD}[^\W\d]\w*(?:\ [(\[][^"'()\[\]<>=,]*[)\]]|(?<=\b[csr]s)\([\w-]+\)|[?#%]"""
    rf"""|[ -]{_NO_WORD}\w+)+)(?={_OPERATOR})""",
    re.VERBOSE | re.IGNORECASE,
)
_PATH: Final = re.compile(r"\$?(\.)(?=[^\W\d])")


def mended(text: str) -> str:
    """The same as expressions are written here, as far as that is clear.

    >>> mended('.level == "x" && status:>300'), mended("level=error OR NOT message LIKE '%x%'")
    ('level == "x" and status > 300', 'level == "error" or not message like \\'%x%\\'')
    >>> mended("level:err* and user:*")
    'level like "err%" and user is not absent'
    >>> mended('level == “error” and text like “it is%”')
    'level == "error" and text like "it is%"'
    >>> mended("Duration (ms) > 500 and cs(User-Agent) contains 'x'"), mended('`User name` == "ada" or Failed? == 1')
    ('["Duration (ms)"] > 500 and ["cs(User-Agent)"] contains \\'x\\'', '["User name"] == "ada" or ["Failed?"] == 1')
    >>> mended("status == 5xx")
    'status >= 500 and status <= 599'
    """
    text = _NO_PATH.sub(_as_key, text)
    text = _CLASS_OF_STATUS.sub(r"\g<1> >= \g<2>00 and \g<1> <= \g<2>99", text)
    tokens = [(found.lastgroup or "", found[0]) for found in _TOKEN.finditer(text)]
    made: list[str] = []
    before = ""  # the last word or sign
    for number, (kind, token) in enumerate(tokens):
        following = next((word for what, word in tokens[number + 1 :] if what != "blank"), "")
        if kind == "sign":
            token = _sign(token, following)
            made.append(f" {token} " if token else " ")
        elif kind == "curly":  # quotes as a word processor or a chat makes them
            token = f'"{token[1:-1]}"'
            made.append(token)
        elif kind == "word":
            token = _word(token, before, is_called=following == "(")
            made.append(token)
        else:
            made.append(token)
        before = before if kind == "blank" or not token else token
    return re.sub(r"(?<=\S) +(?=\S)", " ", "".join(made)).replace(" == is not absent", " is not absent").strip()


def _as_key(found: re.Match[str]) -> str:
    if found["quoted"]:
        return found[0]
    name = found["ticked"] or found["odd"]
    return name if re.fullmatch(r"[^\W\d][\w.]*", name) else f'["{name}"]'


def _sign(sign: str, following: str) -> str:
    if sign == ":":
        if following in ("<", "<=", ">", ">="):
            return ""
        return "like" if "*" in following and following not in "*" else "=="
    return _SIGNS.get(sign, sign)


def _word(word: str, before: str, *, is_called: bool) -> str:
    lower = word.lower()
    if word.isupper() and lower in _WORDS:
        return lower
    if before in _COMPARED and not is_called and not _PLAIN.fullmatch(word):
        if word == "*":
            return "is not absent"
        return '"' + (word.replace("*", "%") if before == "like" else word) + '"'
    return word[found.end() :] if (found := _PATH.match(word)) else word
