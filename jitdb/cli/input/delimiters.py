"""What stands between the fields of CSV: as an option says it, or as the first lines show it."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from jitdb.cli.failures import UsageError

_DELIMITERS: Final = ",\t;|"


def delimiter_of(line: str) -> str:
    """What stands between the fields of a line: of the usual signs the one that it has most of, outside of quotes.

    >>> delimiter_of('"a,b";c;d'), delimiter_of("a")
    (';', ',')
    """
    bare = re.sub(r'"(?:[^"]|"")*"', "", line)
    return max(_DELIMITERS, key=bare.count)


def check_delimiter(text: str) -> str:
    r"""One character; `\t` is a tab. Raises UsageError."""
    delimiter = "\t" if text == "\\t" else text
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise UsageError(f"import: --delimiter is one character, not {text!r}")
    return delimiter


def looks_like_csv(head: bytes) -> bool:
    """Whether the first two lines are no JSON, and have as many fields, which are two or more."""
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = head[: error.start].decode("utf-8-sig")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or any("{" in line or line.lstrip()[0] == "[" for line in lines[:2]):  # text before JSON is none
        return False
    import csv

    sign = delimiter_of(lines[0])
    try:
        counts = {len(row) for row in islice(csv.reader(lines, delimiter=sign, strict=True), 2)}
    except csv.Error:
        return False
    return len(counts) == 1 and min(counts) > 1
