"""From lines to records: JSON read strictly, and a word on what is wrong with a line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from jitdb.errors import EncodeError

ARRAY_HINT: Final = "import wants one record a line: jq -c '.[]' FILE | jitdb import - LOG"

_BLANKS: Final = " \t\r"
_SHOWN: Final = 40  # characters shown on each side of the fault


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no record. `number` counts from 1; `mendable` means that another line there would do."""

    number: int
    reason: str
    hint: str = ""
    mendable: bool = True


@dataclass(slots=True)
class Records:
    """What some lines hold: values, the line of each, and what could not be read."""

    values: list[Any] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    bad: list[BadLine] = field(default_factory=list)


class LineReader:
    """Reads lines of JSON. `tagged`: with what `jitdb export` writes for values that JSON lacks."""

    def __init__(self, tagged: bool) -> None:
        hook: Callable[[dict[str, Any]], Any] | None = None
        if tagged:
            from jitdb.cli.output.jsonl import read_tagged

            hook = read_tagged
        self._decoder = json.JSONDecoder(object_hook=hook)
        # What `decode` calls, without its two searches for blanks; no part of the type's published face.
        self._scan: Callable[[str, int], tuple[Any, int]] = getattr(self._decoder, "scan_once")  # noqa: B009

    def read(self, lines: list[bytes], first: int, stop_at_bad: bool) -> Records:
        """The records in `lines`, the first of which has the number `first`; blank lines are passed over."""
        found = Records()
        keep, note = found.values.append, found.numbers.append
        scan = self._scan
        number = first - 1
        for line in lines:
            number += 1
            try:
                text = str(line, "utf-8")
                value, end = scan(text, 0)
                clean = end == len(text) or not text[end:].strip(_BLANKS)
            except (StopIteration, ValueError, RecursionError):
                clean = False
            if not clean:
                if not line.strip():
                    continue
                value = self._carefully(line, number)
                if isinstance(value, BadLine):
                    found.bad.append(value)
                    if stop_at_bad:
                        break
                    continue
            keep(value)
            note(number)
        return found

    def _carefully(self, line: bytes, number: int) -> Any:
        """The value of a line with blanks around it, or what is wrong with it."""
        try:
            text = line.decode().strip(_BLANKS)
        except UnicodeDecodeError as error:
            return BadLine(number, f"not UTF-8: byte 0x{line[error.start]:02x} in column {error.start + 1}")
        try:
            return self._decoder.decode(text)
        except json.JSONDecodeError as error:
            place = f"column {error.pos + 1}" if error.msg.endswith(" at") else f"(column {error.pos + 1})"
            reason = f"not JSON: {error.msg.rstrip(': ')} {place}{_excerpt(text, error.pos)}"
            return BadLine(number, reason, _hint(text) if number == 1 else "")
        except RecursionError:
            return BadLine(number, "nested too deeply")
        except EncodeError as error:
            return BadLine(number, error.reason)
        except ValueError:
            return BadLine(number, f"an integer of more than {sys.get_int_max_str_digits():,} digits")


def _excerpt(text: str, position: int) -> str:
    """The place, with a caret under it."""
    first, last = max(0, position - _SHOWN), position + _SHOWN
    before, after = "…" if first else "", "…" if last < len(text) else ""
    shown = "".join(char if char.isprintable() else " " for char in text[first:last])
    return f"\n    {before}{shown}{after}\n    {' ' * (len(before) + position - first)}^"


def _hint(text: str) -> str:
    """Why the first line of a file is often no JSON."""
    if text.startswith("["):
        return f"this looks like one JSON array; {ARRAY_HINT}"
    if text == "{":
        return "this looks like JSON over several lines; import wants one a line: jq -c . FILE | jitdb import - LOG"
    if "," in text and text[0] not in '{"':
        return "this looks like CSV; import wants a JSON value on each line"
    return ""


def is_array_of_records(value: Any) -> bool:
    """Whether the only line of a file is probably a whole file of records in one array."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
