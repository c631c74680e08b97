"""Which lines of a file of text are other than its format has them? Some are records without the fields that the format
alone has (OTHERS in formats/table.py); some begin no record, and look like no part of one; some are a record each,
though an entry has several.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.log.lines.detection import HEAD, PLAIN_TEXT
from jitdb.log.lines.files.opening import head_of, tail_of
from jitdb.log.lines.form import MARK
from jitdb.log.lines.formats.kernels.kinds import CRI, DOCKER, LOGFMT, LTSV, PATTERN, STAMPED
from jitdb.log.lines.formats.table import OTHERS
from jitdb.log.lines.framing import LineFraming
from jitdb.log.reading.sampling import sample_raw

if TYPE_CHECKING:
    from jitdb.common.paths import Step
    from jitdb.log.lines.form import LineForm
    from jitdb.log.lines.formats.row import Format
    from jitdb.log.objects.door import Location
    from jitdb.log.source import LogSource


def has_own(row: Format, key: Step) -> bool:
    """Whether records of a format have this field, and those of other lines not. A pattern of the user's may be meant
    for few lines.

    >>> from jitdb.log.lines.formats.table import BY_NAME
    >>> [has_own(BY_NAME["combined"], key) for key in ("status", "time_local", "text", "cost")]
    [True, False, False, False]
    """
    if row.name == "pattern" or row.spans or key in OTHERS.names or key == row.time:
        return False
    return row.how in (LOGFMT, LTSV) or (row.how == PATTERN and key in row.names)


def unlike_in(log: LogSource, framing: LineFraming, count: int) -> tuple[int, list[bytes]]:
    """Of at most so many lines from all over a log of text how many begin a record; and the records of those that are
    none of its format.
    """
    lines, renderer = list(sample_raw(log, count, LineFraming())), framing.renderer
    begun = [line for line, is_new in zip(lines, renderer.begun(lines), strict=True) if is_new] if lines else []
    others = [line for line in begun if not renderer.fitting([line])]
    return len(begun), [record for record in renderer.rendered(others) if record] if others else []


class Loose(NamedTuple):
    """Of the first lines of a file, or the last ones: how many there are, how many of them are taken for the end of a
    record and look like no part of one, and the first of these.
    """

    which: str
    lines: int
    loose: int
    example: str


#: What follows the first line of a record in traces, statements and documents: it is indented, closes a bracket, or
#: names an exception.
_PART_OF_RECORD: Final = re.compile(
    rb"[\s)\]}>]|#\d|\[stacktrace\]|Caused by|Suppressed|Traceback|During |The above |goroutine |"
    rb"\*\* \(|(?:[\w.$]+(?:Exception|Error)|Error)\b"
)


def loose_lines(path: Location, form: LineForm) -> Iterator[Loose]:
    """What the first and the last lines of a file of text show of lines that begin no record, one behind the other,
    though the line before them does, or is such a line; nothing where each line is a record, of formats whose records
    span lines, and of a pattern of the user's, who says which lines begin one.
    """
    row = form.row
    if row is None or not row.joins or row.spans or row.folds or row.how in (CRI, DOCKER, STAMPED) or form.pattern:
        return
    yield _loose("first", row, head_of(path, HEAD).removeprefix(MARK).split(b"\n")[:-1])
    yield _loose("last", row, tail_of(path, HEAD, HEAD).split(b"\n")[1:-1])


def _loose(which: str, row: Format, lines: list[bytes]) -> Loose:
    from jitdb.log.lines.formats.rendering import Renderer  # with numpy

    found, is_within = list[bytes](), True
    for line, is_new in zip(lines, Renderer(row, lambda: 0).begun(lines), strict=True):
        if is_new:
            is_within = line.startswith(row.banner)
        elif is_within or not line.strip() or _PART_OF_RECORD.match(line):
            is_within = True
        else:
            found.append(line)
    return Loose(which, len(lines), len(found), found[0].decode(errors="replace").strip() if found else "")


_LEAST_ENTRIES: Final = 3
_DAY_BEGUN: Final = re.compile(rb"[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}|[0-9]{2}[-/.][0-9]{2}(?![0-9])")


def entries_of_lines(path: Location, form: LineForm) -> str:
    """A pattern of the lines that begin an entry, in plain text of entries of several lines with blank ones between
    them: they alone begin with the same mark, or with a day. Empty of other text.
    """
    if form.format != PLAIN_TEXT:
        return ""
    head = head_of(path, HEAD).removeprefix(MARK).replace(b"\r\n", b"\n")
    entries = [entry.strip(b"\n").split(b"\n") for entry in re.split(rb"\n[ \t]*\n", head) if entry.strip()]
    if len(entries) < _LEAST_ENTRIES or 2 * sum(len(entry) > 1 for entry in entries) <= len(entries):
        return ""
    begins, others = [entry[0] for entry in entries], [line for entry in entries for line in entry[1:]]
    mark = begins[0][:1].decode("latin-1")
    if _DAY_BEGUN.match(begins[0]):
        day = _DAY_BEGUN.match(begins[0])
        assert day is not None
        pattern = re.sub("[0-9]+", lambda digits: f"[0-9]{{{len(digits[0])}}}", re.escape(day[0].decode()))
    elif mark.isascii() and mark.isprintable() and not mark.isalnum() and mark not in " '":
        pattern = re.escape(mark)
    else:
        return ""
    begun = re.compile(pattern.encode()).match
    return f"(?P<text>{pattern}.*)" if all(map(begun, begins)) and not any(map(begun, others)) else ""
