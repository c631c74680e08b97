"""Does `each` name something in the lines of a file? And if not, what do the lines have instead?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.paths import format_path
from jitdb.errors import NotALog, Remedy
from jitdb.log.lines.batch_path import KeySteps
from jitdb.log.lines.form import MARK, object_in
from jitdb.log.lines.formats.batches import arrays_in

if TYPE_CHECKING:
    from jitdb.log.lines.line_log import LineLog

_HEAD: Final = 1 << 16  # bytes that are looked at
_LONG: Final = 1 << 24  # the same of a first line that is longer
_TRIED: Final = 64  # lines
_SHOWN: Final = 5  # paths that are named


def refuse_missing(log: LineLog) -> None:
    """Raise NotALog where no line of the log has the path that its form names, and there are lines."""
    form, values = log.framing.form, list(_first_values(log))
    if not values or any(_has(value, form.path.steps) for value in values):
        return
    if next(log.stream(raw=True), None) is not None:
        return
    found = {path: keys for value in reversed(values) for path, keys in arrays_in(value, ())}
    arrays = sorted(found, key=lambda path: -found[path])[:_SHOWN]  # records have more keys than what is around them
    has = f"they have {', '.join(map(format_path, arrays))}" if arrays else "no array is in the first of them"
    wanted, python, shell = format_path(form.each), "leave each out", "leave --each out"
    if form.row is not None:
        wanted = f"{format_path(form.path.first)}, as lines of {form.row.title} have it"
        python, shell = "leave format out", "leave --log-format out"
    elif arrays:
        meant = format_path(arrays[0])
        python, shell = f"each={meant!r}, or {python}", f"--each '{meant}', or {shell}"
    log.close()
    raise NotALog(f"no line has {wanted}: {has}", path=log.path, remedy=Remedy(python, f"{shell}: a line is a record"))


def _first_values(log: LineLog) -> Iterator[Any]:
    head = _head(log, _HEAD)
    head = (head if b"\n" in head else _head(log, _LONG)).removeprefix(MARK)
    for line in head.split(b"\n")[:_TRIED]:
        begin = object_in(line) if log.framing.form.allow_prefix else 0
        try:
            yield json.loads(line[max(begin, 0) :])
        except (ValueError, RecursionError):
            continue


def _head(log: LineLog, size: int) -> bytes:
    buffer = memoryview(bytearray(min(size, log.durable_end)))
    return bytes(buffer[: log.read_blocks(0, len(buffer), buffer)])


def _has(value: Any, steps: KeySteps) -> bool:
    if not steps:
        return True
    keys = steps[0]
    if keys is not None:
        return isinstance(value, dict) and any(_has(value[key], steps[1:]) for key in keys if key in value)
    return isinstance(value, list) and (not value or any(_has(each, steps[1:]) for each in value))
