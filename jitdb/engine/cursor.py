"""A place in a log, as a short text: `IDENTITY.GENERATION.SEQ.OFFSET`, the records before it being done with.

Identity in hex, the others decimal. In the generation that it was made in, the offset counts: it is right whatever is
found damaged. After a compaction the seq does, and the log tells how many of the records before it are still there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.common.words import shown
from jitdb.errors import QueryError

if TYPE_CHECKING:
    from jitdb.log.source import LogSource

_FORM: Final = r"([0-9a-f]{32})\.(\d{1,10})\.(\d{1,20})\.(\d{1,20})"
UNKNOWN: Final = -1  # the seq of a place whose records nobody counted yet


class Cursor(NamedTuple):
    """All records that begin before `offset` are done with; `seq` of them, deleted ones counted."""

    identity: bytes
    generation: int
    seq: int
    offset: int

    def __str__(self) -> str:
        return f"{self.identity.hex()}.{self.generation}.{self.seq}.{self.offset}"

    def lost(self, log: LogSource) -> str:
        """Why the log as it is now does not know this place, in words; empty where it does."""
        if self.offset == 0:
            return ""  # an empty log gets its identity with its first record
        if self.identity != log.identity:
            return "it is of another log, or of this one before it was truncated, replaced or repaired"
        if self.generation == log.generation:
            if self.offset <= log.durable_end:
                return ""
            return (
                f"it is behind the end of the log, which has {log.durable_end:,} bytes as it is seen here: refresh() "
                f"shows more, unless this is an older copy"
            )
        if self.seq == UNKNOWN or log.removals(self.generation) is None:
            return (
                f"the log was compacted since, and it is not known any more which records went (generation "
                f"{self.generation} then, {log.generation} now)"
            )
        return ""

    def rank(self, log: LogSource, rank: Callable[[int], int]) -> int:
        """How many of the records, as they are now, come before the place; `rank` tells it of a byte of the log.

        Raises QueryError when that is not known.
        """
        reason = self.lost(log)
        if reason:
            raise QueryError(
                f"the cursor {self} is no place in this log: {reason}",
                path=log.path,
                remedy="begin anew, with live(old=True) or without `after`",
            )
        if self.offset == 0:
            return 0
        return rank(self.offset) if self.generation == log.generation else self.moved_seq(log)

    def moved_seq(self, log: LogSource) -> int:
        """Its seq after the compactions since then. It must not be lost."""
        from jitdb.log.sidecar.removals import new_seq

        return new_seq(log.removals(self.generation) or [], self.seq)


def parse_cursor(text: str) -> Cursor:
    """The place that a cursor's text names. Raises QueryError.

    >>> str(parse_cursor("000102030405060708090a0b0c0d0e0f.1.5.320"))
    '000102030405060708090a0b0c0d0e0f.1.5.320'
    """
    found = re.fullmatch(_FORM, text) if isinstance(text, str) else None
    if found is None:
        raise QueryError(
            f"this is no cursor: {shown(text)}", remedy="it is what `.cursor` of a live query gives, kept as it is"
        )
    identity, generation, seq, offset = found.groups()
    return Cursor(bytes.fromhex(identity), int(generation), int(seq), int(offset))
