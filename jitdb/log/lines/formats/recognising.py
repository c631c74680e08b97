"""Of which format are the first lines of a file?"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from jitdb.log.lines.formats.kernels.kinds import PATTERN
from jitdb.log.lines.formats.row import Format
from jitdb.log.lines.formats.slashed import with_days
from jitdb.log.lines.formats.table import BY_NAME, FORMATS

_FEW: Final = 8  # lines: as many as a record with a stack trace may have
_TRIED: Final = 64  # lines that are looked at


@lru_cache
def line_test(name: str) -> Callable[[bytes], Any]:
    """Whether a line is a record of a format; or may stand in one (_in_records), where records have several lines."""
    row = BY_NAME[name]
    is_line = row.is_line
    if is_line is not None and (row.spans or row.how != PATTERN):
        return is_line
    unnamed = re.sub(r"\(\?P<\w+>", "(?:", row.pattern)  # for re, two groups cannot have the same name
    fits = re.compile(unnamed.encode("latin-1")).match
    return fits if is_line is None else lambda line: is_line(line) and fits(line)


def _in_records(row: Format, lines: Sequence[bytes], fits: list[bool]) -> list[bool]:
    """The same of lines that may stand in records: which do. `LEVEL: text` is java.util.logging behind its others."""
    from jitdb.log.lines.formats.rendering import Renderer  # with numpy

    reached = Renderer(row, lambda: 0).reached(list(lines))
    return [each and is_reached for each, is_reached in zip(fits, reached, strict=True)]


def recognised(lines: Sequence[bytes], among: Sequence[Format] = FORMATS[:-1]) -> Format | None:
    """The format of a file whose first lines are these; None where no row fits.

    One fits where all lines are the format's, or more than half of them; or the first one and a quarter of all, where
    stack traces may stand between. Of few lines, the first one is enough for that: more come. Lines that are in no
    record are none of the format's. Where lines may go on with a record, those that begin with a blank, as in stack
    traces, are passed over: a long trace near the top would be most of what is looked at. A banner is enough.
    """
    every = [line.removesuffix(b"\r") for line in lines if line.strip()]
    first = every[:_TRIED]
    begun = [line for line in every if not _goes_on(line)][:_TRIED] or first
    for row in among if first else ():
        if first[0].startswith(row.banner):
            return row
        lines = begun if row.joins and not row.spans else first
        if row.mark and not any(row.mark in line for line in lines):
            continue
        fits = list(map(bool, map(line_test(row.name), lines)))
        if _is_of(row, fits) and (not row.spans or _is_of(row, _in_records(row, lines, fits))):
            return with_days(row, b"\n".join(first))
    return None


_INDENTED: Final = re.compile(rb" +[0-9]{4}-[0-9]{2}-[0-9]{2}T[^ ]+ \[")  # of Consul, Nomad and Vault


def _goes_on(line: bytes) -> bool:
    """Whether it goes on with a record, in all formats whose records do."""
    is_indented = line[:1] in (b" ", b"\t") and not _INDENTED.match(line)
    return is_indented or line.startswith((b"Caused by: ", b"Suppressed: "))


def _is_of(row: Format, fits: Sequence[bool]) -> bool:
    """Whether a file is of a format, of whose first lines these are."""
    is_much = 4 * sum(fits) >= len(fits) or len(fits) < _FEW
    return 2 * sum(fits) > len(fits) or (row.joins and is_much and fits[0])
