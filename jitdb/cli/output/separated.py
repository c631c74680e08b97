"""Rows of Python's values as lines of CSV and TSV."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any, Final

DELIMITERS: Final = {"csv": ",", "tsv": "\t"}
_HALVES: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_END: Final = "\r\n"  # csv quotes cells that contain a character of it
_FORMULA: Final = tuple("=+-@\uff1d\uff0b\uff0d\uff20\t\r\n")  # a spreadsheet runs text that begins with one of these


def separated_lines(rows: Iterable[Iterable[Any]], form: str, escaping: bool) -> bytes:
    """Rows of text, numbers and None as lines of CSV or TSV; `escaping` keeps spreadsheets from running formulas.

    >>> separated_lines([[-1, "x\\ry"]], "csv", escaping=False), separated_lines([[-1, "=a1"]], "tsv", escaping=True)
    (b'-1,"x\\ry"\\n', b"-1\\t'=a1\\n")
    """
    import csv

    lines = _Lines()
    if escaping:
        rows = (map(_escaped, row) for row in rows)
    csv.writer(lines, delimiter=DELIMITERS[form], lineterminator=_END).writerows(rows)
    text = "".join(lines)
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a pair, which JSON can write and UTF-8 cannot
        return _HALVES.sub("\ufffd", text).encode("utf-8", "surrogateescape")


def _escaped(cell: Any) -> Any:
    """As OWASP recommends ("CSV injection")."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


class _Lines(list[str]):
    """Collects lines of csv, which end with a newline alone."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix(_END) + "\n")


def cell_text(value: Any) -> str:
    """A value that is neither text nor a number as a cell.

    >>> cell_text(True), cell_text([1, {"b": 2}]), cell_text(b"xy")
    ('true', '[1,{"b":2}]', 'eHk=')
    """
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    from jitdb.common.json_text import line_of

    return line_of(value).decode().rstrip("\n")
