"""Which lines of a file of text are of another kind than its format's? They are records, too (OTHERS in
formats/table.py), without the fields that the format alone has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitdb.log.lines.formats.kernels.kinds import LOGFMT, LTSV, PATTERN
from jitdb.log.lines.formats.table import OTHERS
from jitdb.log.lines.framing import LineFraming
from jitdb.log.reading.sampling import sample_raw

if TYPE_CHECKING:
    from jitdb.common.paths import Step
    from jitdb.log.lines.formats.row import Format
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
