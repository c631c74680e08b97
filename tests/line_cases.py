"""What the lines of a file are, said plainly: the records that a file of JSON Lines has at any moment."""

from __future__ import annotations

import json
from typing import Any

MARK = b"\xef\xbb\xbf"


def is_whole(line: bytes) -> bool:
    """Whether a last line without a newline is a record: JSON that nothing can follow."""
    try:
        json.loads(line.removeprefix(MARK).rstrip(b" \t\r"))
    except ValueError:
        return False
    return not line.rstrip(b" \t\r")[-1:].isdigit()


def lines_in(data: bytes) -> list[bytes]:
    """Those that count, without their newlines."""
    *lines, last = data.split(b"\n")
    return [*lines, last] if is_whole(last) else lines


def records_in(data: bytes) -> list[Any]:
    found = []
    for number, line in enumerate(lines_in(data)):
        try:
            found.append(json.loads(line.removeprefix(b"" if number else MARK)))
        except ValueError:
            continue
    return found
