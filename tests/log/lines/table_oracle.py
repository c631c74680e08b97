"""What rows under a header mean, as slow and plain as can be: a line after the other."""

from __future__ import annotations

import csv
import json
import re
from typing import Any, NamedTuple

from log.lines.format_oracle import scalar, text_of


class Line(NamedTuple):
    begin: int
    text: bytes  # without its end


def lines_of(data: bytes) -> list[Line]:
    found, at = list[Line](), 3 if data.startswith(b"\xef\xbb\xbf") else 0
    rest = data[at:]
    for line in rest.split(b"\n")[: None if rest and not rest.endswith(b"\n") else -1]:
        found.append(Line(at, line.removesuffix(b"\r")))
        at += len(line) + 1
    return found


OPEN = "open"  # in place of a record: a value goes on in the next line


def record(row: bytes, names: list[str], delimiter: bytes, skips: bool) -> dict[str, Any] | str | None:
    """None where it is no row, OPEN where a value goes on in the next line."""
    found, number, at = dict[str, Any](), 0, 0
    texts = dict[str, bytes]()
    while True:
        while skips and row[at : at + 1] == b" ":
            at += 1
        if row[at : at + 1] == b'"':
            text, at = b"", at + 1
            while True:
                end = row.find(b'"', at)
                if end < 0:
                    return OPEN
                text += row[at:end]
                at = end + 1
                if row[at : at + 1] != b'"':
                    break
                text, at = text + b'"', at + 1
            while skips and row[at : at + 1] == b" ":
                at += 1
            if row[at : at + 1] == b"\r" and row[at + 1 : at + 2] in (b"", b"\n"):
                at += 1
            if row[at : at + 1] not in (b"", delimiter, b"\n") or number >= len(names):
                return None
            found[names[number]] = {b"true": True, b"false": False}.get(text, scalar(text_of(text)) if text else "")
            texts[names[number].lower()] = text
        else:
            ends = [end for end in (row.find(delimiter, at), row.find(b"\n", at)) if end >= 0]
            end = min(ends, default=len(row))
            value = row[at:end]
            if end == len(row) or row[end : end + 1] == b"\n":
                value = value.removesuffix(b"\r")
            if value:
                if number >= len(names):
                    return None
                found[names[number]] = {b"true": True, b"false": False}.get(value, scalar(text_of(value)))
                texts[names[number].lower()] = value
            at = end
        number += 1
        if row[at : at + 1] != delimiter:
            break
        at += 1
    if row[at:].strip(b" \t\r\n") or (number == 1 and len(names) > 1):
        return None
    lower, own = [name.lower() for name in names], [texts.get(name, b"") for name in ("date", "time")]
    if "timestamp" not in lower and all(re.fullmatch(rb"[0-9:./-][0-9:./ apmAPM-]{4,17}", text) for text in own):
        found["timestamp"] = b" ".join(own).decode()
    return found


def table(data: bytes, names: list[str], delimiter: str = ",", skips: bool = False) -> list[tuple[int, Any]] | str:
    """The records of a file whose first line that is not blank names these fields, and where they begin; or OPEN."""
    sign, header = delimiter.encode(), b""
    names = _widened(data, names, delimiter)
    found = list[tuple[int, Any]]()
    for begin, row in lines_of(data):
        if not row.strip(b" \t\r"):
            continue
        header = header or row
        if row == header:
            continue
        value = record(row, names, sign, skips)
        if value == OPEN:
            return OPEN
        if value is None and row.lstrip(b" \t\r").startswith(b"{"):
            value = _object(row)
        if value is not None:
            found.append((begin, value))
    return found


def _widened(data: bytes, names: list[str], delimiter: str) -> list[str]:
    """The names, and one more if each row has as many values, of which not all are empty."""
    lines = [row.decode().removesuffix("\r") for _, row in lines_of(data) if row.strip(b" \t\r")]
    try:
        rows = [
            next(csv.reader([line], delimiter=delimiter, strict=True, skipinitialspace=delimiter != "\t"))
            for line in lines[1:]
            if line != lines[0]
        ]
    except csv.Error:
        return names
    lasts = {row[-1] if len(row) == len(names) + 1 else None for row in rows}
    return [*names, f"column_{len(names) + 1}"] if lasts and None not in lasts and lasts != {""} else names


def _object(row: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(row)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def by_csv(data: bytes, delimiter: str = ",") -> list[dict[str, str]]:
    """The rows of ordinary CSV as the standard library reads them, without what is empty."""
    text = data.decode("utf-8-sig")
    reader = csv.DictReader(text.splitlines(keepends=True), delimiter=delimiter)
    return [{name: value for name, value in row.items() if value} for row in reader]
