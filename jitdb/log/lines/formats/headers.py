"""Rows under a header: CSV and TSV, W3C extended logs, logs of Zeek, flow logs of AWS. What does it say of the rows?

A form (form.py) has the header as its `pattern`: of CSV and TSV the first line, perhaps behind one such as `sep=;`,
which names the delimiter, and before one that has the delimiter alone, if rows have one value more than it has names;
of the others the lines of it that say how rows are written. All that follows from it is a Table. Which lines begin a
row: kernels/tables.py.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from jitdb.common.times import time_of_text
from jitdb.log.lines.formats.kernels.kinds import (
    ARRAY,
    COMMENTS,
    IS_ANY,
    IS_BOOL,
    IS_NUMBER,
    IS_TEXT,
    LINED,
    QUOTED,
    SKIPS,
    STRICT,
)

HEADED: Final = ("csv", "tsv", "w3c", "zeek", "vpcflow")  # the formats
DELIMITERS: Final = ",\t;|"
_NUMBERS: Final = frozenset({"time", "interval", "double", "count", "int", "port"})
_YEAR: Final = re.compile(r"[12][0-9]{3}")
_ZEEK: Final = ("#separator", "#set_separator", "#empty_field", "#unset_field", "#fields", "#types")
_NUMBER: Final = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_CLOCK_OR_ADDRESS: Final = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?|[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
SEP: Final = re.compile(r"sep=([\t!#-/:-@\[-`{|}~])")  # Excel names the delimiter so
_OF_EVENT_VIEWER: Final = {"Level", "Source", "Event ID"}  # whose message has no name
_NAME: Final = re.compile(r"[^\W\d][\w.:%/()\[\]#$&@+-]{0,63}")  # that is one for certain
_FLOW: Final = r"(?=.*\b(?:srcaddr|interface-id|account-id)\b)[a-z0-9-]+(?: [a-z0-9-]+){3,}"
_LEVEL: Final = re.compile(
    "trace|debug|info|notice|warn|warning|error|err|crit|critical|fatal|panic|severe|alert|emerg", re.IGNORECASE
)
_ROWS: Final = 64  # that are looked at
_CUT: Final = 1 << 16  # bytes of a file's beginning that is cut


class Table(NamedTuple):
    """
    delimiters: two, which may be the same
    flags:      what may be in rows; kinds: what values are (both: kernels/kinds.py)
    names:      of the fields
    header:     the line with which the fields are named, and which is no row
    unset:      the text of a value that is not there; empty: of one that is empty
    between:    the delimiter of an array's elements
    """

    delimiters: tuple[int, int]
    flags: int
    names: tuple[str, ...]
    kinds: tuple[int, ...]
    header: bytes
    unset: bytes = b""
    empty: bytes = b""
    between: int = 0

    @property
    def program(self) -> tuple[int, ...]:
        """The program of a table (kernels/kinds.py)."""
        names = [name.lower() for name in self.names]
        has_time = "timestamp" not in names and self.flags & (COMMENTS | LINED)
        days = [names.index(name) if has_time and name in names else -1 for name in ("date", "time")]
        sizes = len(self.header), len(self.unset), len(self.empty)
        return (*self.delimiters, self.flags, len(self.names), *days, *sizes, self.between)

    @property
    def keys(self) -> list[bytes]:
        return [f"{json.dumps(name, ensure_ascii=False)}:".encode() for name in self.names]


@lru_cache(maxsize=256)
def table_of(format: str, header: str) -> Table:
    """What this header says.

    >>> table_of("csv", 'id;"a;b";;id').names
    ('id', 'a;b', 'column_3', 'id_2')
    >>> table_of("csv", "sep=;\\na,b;c\\n;").names
    ('a,b', 'c', 'column_3')
    >>> table_of("w3c", "#Fields: date time cs(User-Agent)").names
    ('date', 'time', 'cs(User-Agent)')
    >>> table_of("w3c", "#Fields: date-time,client-ip").names
    ('date-time', 'client-ip')
    """
    if format == "w3c":
        said = header.partition(":")[2].strip()
        has_commas = "," in said  # of Exchange
        names = said.split(",") if has_commas else said.split()
        between, unset = ((44, 44), b"") if has_commas else ((32, 9), b"-")
        kinds = (IS_ANY,) * len(names)
        return Table(between, QUOTED | COMMENTS | STRICT, _different(names), kinds, _bytes(header), unset)
    if format == "zeek":
        return _zeek(header)
    if format == "vpcflow":
        names = header.split()
        return Table((32, 32), STRICT, _different(names), (IS_ANY,) * len(names), _bytes(header), b"-")
    delimiter, header, more = _parts(header, format)
    skips = SKIPS * (delimiter != "\t" and f"{delimiter} " in header)
    names = [name.strip() for name in _cells(header, delimiter)]
    if more:
        names.append(name_of_more(names))
    code = ord(delimiter), ord(delimiter)
    return Table(code, QUOTED | LINED | skips, _different(names), (IS_ANY,) * len(names), _bytes(header))


def _parts(header: str, format: str) -> tuple[str, str, bool]:
    """The delimiter of a header, the line of its names, and whether rows have one value more."""
    first, *others = header.split("\n")
    said = SEP.fullmatch(first) if format == "csv" and others else None
    line, more = (others[0], others[1:]) if said else (first, others)
    return said[1] if said else delimiter_of(line) if format == "csv" else "\t", line, bool(more)


def name_of_more(names: Sequence[str]) -> str:
    """The name of the value that rows have behind those of these names; empty where nothing says it."""
    return "message" if set(names) >= _OF_EVENT_VIEWER and "message" not in names else ""


def _zeek(header: str) -> Table:
    said = {line.partition(" ")[0].partition("\t")[0]: line for line in header.split("\n")}
    separator = _unescaped(said.get("#separator", "").partition(" ")[2]) or "\t"

    def values(name: str) -> list[str]:
        return said.get(name, "").split(separator)[1:]

    names, types = values("#fields"), values("#types")
    kinds = tuple(map(_kind, types)) if len(types) == len(names) else (IS_ANY,) * len(names)
    marks = ("unset_field", "empty_field", "set_separator")
    unset, empty, between = (_bytes("".join(values(f"#{name}")[:1])) for name in marks)
    code = _bytes(separator)[0]
    return Table(
        (code, code), COMMENTS | STRICT, _different(names), kinds, _bytes(said.get("#fields", "")), unset or b"-",
        empty or b"(empty)", (between or b",")[0],
    )  # fmt: skip


def _kind(type: str) -> int:
    container, _, inner = type.partition("[")
    if inner:
        return ARRAY | _kind(inner.removesuffix("]"))
    return IS_NUMBER if container in _NUMBERS else IS_BOOL if container == "bool" else IS_TEXT


def _unescaped(text: str) -> str:
    return re.sub(r"\\x([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), text)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _different(names: list[str]) -> tuple[str, ...]:
    """The same, none of them empty or there twice."""
    found = dict[str, None]()
    for number, given in enumerate(names, 1):
        given = _bytes(given).decode("utf-8", "replace") or f"column_{number}"
        name, count = given, 1
        while name in found:
            count += 1
            name = f"{given}_{count}"
        found[name] = None
    return tuple(found)


def _cells(line: str, delimiter: str, strict: bool = False) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter, skipinitialspace=delimiter != "\t", strict=strict), [])


def delimiter_of(line: str) -> str:
    """The delimiter of a line: the most frequent of the usual signs outside of quotes.

    >>> delimiter_of('"a,b";c;d'), delimiter_of("a")
    (';', ',')
    """
    bare = re.sub(r'"(?:[^"]|"")*"', "", line)
    return max(DELIMITERS, key=bare.count)


def header_in(head: bytes, format: str) -> str | None:
    """The header of a file of this format that begins so, which may be cut; None where it has none."""
    lines = head.split(b"\n", 1 + 2 * _ROWS)
    if len(lines) == 1 and len(head) >= _CUT:
        return None
    texts = [line.removesuffix(b"\r").decode("utf-8", "surrogateescape") for line in lines]
    if format in ("csv", "tsv"):
        begun = [text for text in texts if text.strip()]
        said = begun[:1] if format == "csv" and len(begun) > 1 and SEP.fullmatch(begun[0]) else []
        rest = begun[len(said) :] if len(head) < _CUT else begun[len(said) : -1]
        return _widened("\n".join((*said, *begun[len(said) : len(said) + 1])), rest[1 : 1 + _ROWS], format)
    if format == "vpcflow":
        return texts[0] if re.fullmatch(_FLOW, texts[0]) else None
    begun = [text for text in texts if text.startswith("#")]
    if format == "w3c":
        return next((text for text in begun if text.startswith("#Fields:") and text.partition(":")[2].split()), None)
    said = [text for text in begun if text.startswith(_ZEEK)]
    first = {re.split(r"\s", text, maxsplit=1)[0]: text for text in reversed(said)}
    return "\n".join(first[name] for name in _ZEEK if name in first) if "#fields" in first else None


def _widened(header: str, rows: Sequence[str], format: str) -> str | None:
    """The header, if it names fields; with a line that has the delimiter, if each of these rows has one value more than
    it has names, and not all of these values are empty.
    """
    delimiter, line, _ = _parts(header, format)
    if _named(line, delimiter) is None:
        return None
    count = len(_cells(line, delimiter))
    try:
        found = [_cells(row, delimiter, strict=True) for row in rows if row != line]
    except csv.Error:  # a value goes on in the next line
        return header
    is_wider = bool(found) and all(len(row) == count + 1 for row in found) and any(row[-1] for row in found)
    return f"{header}\n{delimiter}" if is_wider and count > 1 else header


def _named(line: str, delimiter: str) -> str | None:
    """The line, if it names fields: none goes on in another line, none is a time or a number, but for a year."""
    if re.sub(r'"(?:[^"]|"")*"', "", line).count('"') % 2 or "\0" in line:
        return None
    try:
        names = [name.strip() for name in _cells(line, delimiter)]
    except csv.Error:  # a carriage return within, or more than Python reads as one value
        return None
    return None if all(not name or _YEAR.fullmatch(name) for name in names) or any(map(_is_value, names)) else line


def _is_value(name: str) -> bool:
    """Whether it is what a row has, not a name. Tables may have a column for each year."""
    return not _YEAR.fullmatch(name) and bool(
        _NUMBER.fullmatch(name) or _CLOCK_OR_ADDRESS.fullmatch(name) or time_of_text(name) is not None
    )


def of_comments(head: bytes) -> str:
    """The format of a file that begins with such lines as those of Zeek, W3C's and flow logs do; empty where it does
    not.

    >>> of_comments(b"#Software: x\\n#Fields: date time\\n"), of_comments(b"# a comment\\n")
    ('w3c', '')
    """
    for format, marks in (("zeek", (b"#separator ",)), ("w3c", (b"#Software:", b"#Version:", b"#Fields:", b"#Date:"))):
        if head.startswith(marks) and header_in(head, format):
            return format
    return "vpcflow" if header_in(head, "vpcflow") else ""


def is_certain(head: bytes) -> bool:
    """Whether lines are rows of CSV for certain, whatever their file is called: the first one has names, and all of the
    first ones have as many fields, three or more, or two with a tab between. A cell that is there again in its column
    is no name, nor is a level in a column of levels.

    >>> is_certain(b"a\\tb\\n1\\t2\\n3\\t4\\n"), is_certain(b"Dear a, b, c\\nso, it, is\\n")
    (True, False)
    """
    header = header_in(head, "csv")
    if not header:
        return False
    delimiter, line, _ = _parts(header, "csv")
    names = [name.strip() for name in _cells(line, delimiter)]
    is_tab = delimiter == "\t"
    if len(names) < (2 if is_tab else 3) or len(set(names)) < len(names):
        return False
    if not all(_NAME.fullmatch(name.replace(" ", "_") if is_tab else name) for name in names):
        return False
    rows = _first_rows(head, delimiter)[int(line != header.partition("\n")[0]) :]
    if len(rows) < 3 or any(len(row) != len(names) for row in rows):
        return False
    others = [row for row in rows[1:] if row != rows[0]]  # a header may be there again
    return not any(map(_is_of_column, rows[0], zip(*others, strict=True)))


def _is_of_column(name: str, values: Sequence[str]) -> bool:
    """Whether the first cell of a column is one of its values, and no name of them."""
    return name in values or all(_LEVEL.fullmatch(cell.strip()) for cell in (name, *values))


def _first_rows(head: bytes, delimiter: str) -> list[list[str]]:
    """The first rows that are no empty lines; none where they cannot be told."""
    text = head[: head.rfind(b"\n") + 1] if len(head) >= _CUT else head
    lines = text.decode("utf-8", "replace").splitlines(keepends=True)
    skips = delimiter != "\t"
    try:
        rows = list(islice(csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=skips), _ROWS))
    except csv.Error:
        return []
    return [row for row in rows if row]
