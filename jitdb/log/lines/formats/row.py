"""What a format of lines is (table.py has them all), and what patterns of several formats have in common.

pattern   of a record's first line (pattern.py); also what a file of the format is recognised by
kinds     of the pattern's groups: a NUMBER is one where it spells one, and left out where it is "-" or empty; a
          BODY is JSON, or text that goes on with the lines that follow; LEVELED is one in which a level may
          stand (kernels/levels.py); NIL is text that is left out where it is "-"; PAIRS are keys and values
          of logfmt, SHOWN is an event of structlog's console; EXTENSION and ATTRIBUTES are those of CEF and LEEF,
          ESCAPED is text as they have it; DOUBLED is text in which quotes are doubled; BSD_TIME, KLOG_TIME,
          DAY_MONTH and MONTH_DAY are times without a year, or in a form of one program's own, which become
          ISO 8601; ZONED_TIME is such a time that takes the name of a zone behind it; GRADED is a priority of
          Snort, which is a level, too
joins     lines that begin no record belong to the one before them (kernels/rendering.py says which these are); else
          they are lines that are not understood
path      of the elements of lines that are the records, and of what around them belongs to each
spans     the pattern is of all lines of a record, and has newlines; it alone says which lines begin one
folds     lines whose text goes on with the one of the line before, as stack traces do (kernels/traces.py), belong to
          its record, where the bytes before the text are the same. The text is the pattern's last group
skips     what matches without a group is a header, and no record
leads     a group of the first line of a record: where it takes part, the next line begins none
doubt     what is not certain of its times, for a note (slashed.py)
sparse    what becomes of records without a time, for a note, where a program leaves out that of the record before
mark      bytes that each line has: a file without them needs no look by the pattern
banner    how files begin that no other program writes
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from jitdb.common.digests import blake2b
from jitdb.common.paths import Path
from jitdb.log.lines.batch_path import BatchPath
from jitdb.log.lines.formats.headers import table_of
from jitdb.log.lines.formats.kernels.kinds import (
    BATCH,
    BSD_TIME,
    DAY_MONTH,
    DOCKER,
    JOURNAL,
    KLOG_TIME,
    MONTH_DAY,
    NIL,
    NUMBER,
    OTLP,
    TABLE,
    ZONED_TIME,
)
from jitdb.log.lines.formats.pattern import compile_pattern

VERSION: Final = 26  # of what kernels make of lines: raise it with each change of that
_TIMES: Final = (BSD_TIME, KLOG_TIME, DAY_MONTH, MONTH_DAY, ZONED_TIME)
_TIME_NAMES: Final = ("time", "time_local", "timestamp", "start_time", "accept_date", "requestdatetime")


class Format(NamedTuple):
    """See the head of this file."""

    name: str
    title: str
    how: int
    pattern: str = ""
    kinds: Mapping[str, int] = MappingProxyType({})
    joins: bool = False
    is_line: Callable[[bytes], bool] | None = None  # None: the pattern says
    path: BatchPath | None = None  # None: lines are records
    mark: bytes = b""
    spans: bool = False
    folds: bool = False
    skips: bool = False
    leads: str = ""
    doubt: str = ""
    sparse: str = ""
    banner: tuple[bytes, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that its pattern, or a table's header, gives."""
        if self.how == TABLE:
            return table_of(self.name, self.pattern).names
        return compile_pattern(self.pattern).names

    @property
    def time(self) -> str:
        """The field of its times; "time" where no pattern names it."""
        names = () if self.how == TABLE else self.names
        return next((name for name in names if self.kinds.get(name) in _TIMES or name in _TIME_NAMES), "time")

    @property
    def sparse_time(self) -> tuple[Path, str] | None:
        """See LogSource."""
        return ((self.time,), self.sparse) if self.sparse else None

    @property
    def is_json(self) -> bool:
        """Whether its lines are JSON."""
        return self.how in (DOCKER, JOURNAL, BATCH, OTLP)

    @property
    def tag(self) -> str:
        """Names the format among the indexes of a file: another one where lines become other records."""
        of_batches = () if self.path is None else (tuple(self.path),)
        said = repr(
            (
                VERSION,
                self.how,
                self.pattern,
                sorted(self.kinds.items()),
                self.joins,
                self.spans,
                self.folds,
                self.skips,
                self.leads,
                *of_batches,
            )
        )
        return f"{self.name}-v{blake2b(said.encode(), digest_size=4).hexdigest()}"


QUOTED: Final = r'[^"\\]*(?:\\.[^"\\]*)*'  # what may stand between quotes
CLOCK: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}"
ISO: Final = (
    rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{CLOCK}(?:[.,][0-9]+)?"
    r"(?: ?(?:Z|UTC|[+-][0-9]{2}:?[0-9]{2}|[+-][01][0-9]))?"
)
BSD: Final = rf"[A-Z][a-z]{{2}} [ 0-9][0-9] {CLOCK}(?:\.[0-9]+)?"
DASHED: Final = rf"[0-9]{{2}}-[A-Z][A-Za-z]{{2}}-[0-9]{{4}} {CLOCK}(?:\.[0-9]+)?"  # Tomcat, PHP, BIND; Oracle
COLOUR: Final = r"\x1b\[[0-9;]*m"  # of a terminal
NL: Final = r"\r?\n"
REST: Final = r"[^\r\n]*"  # of a line
LEVELS: Final = "(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|CRITICAL|FATAL|PANIC|SEVERE)"
ACCESSED: Final = r"[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:]{8}"  # Apache, HAProxy, S3: without a zone


def begins(pattern: str) -> Callable[[bytes], bool]:
    """Whether a line begins so. Compiled when a line is first looked at: most files are of another format."""
    as_bytes = pattern.encode("latin-1")
    return lambda line: re.match(as_bytes, line) is not None


def numbers(names: str) -> dict[str, int]:
    """The kinds of groups that are numbers."""
    return dict.fromkeys(names.split(), NUMBER)


def absent(names: str) -> dict[str, int]:
    """And of texts that are "-" where there is none."""
    return dict.fromkeys(names.split(), NIL)
