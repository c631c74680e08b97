"""A place in a log, as a short text: `IDENTITY.GENERATION.SEQ.OFFSET`, the records before it being done with.

Identity in hex, the others decimal. In the generation that it was made in, the offset counts: it is right whatever is
found damaged. After a compaction the seq does, and the log tells how many of the records before it are still there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.errors import QueryError

if TYPE_CHECKING:
    from jitdb.log.moved import Moved
    from jitdb.log.source import LogSource
    from jitdb.records import Records

_FORM: Final = re.compile(r"([0-9a-f]{32})\.(\d{1,10})\.(\d{1,20})\.(\d{1,20})")
UNKNOWN: Final = -1  # the seq of a place whose records nobody counted yet


class Cursor(NamedTuple):
    """All records that begin before `offset` are done with; `seq` of them, deleted ones counted."""

    identity: bytes
    generation: int
    seq: int
    offset: int

    def __str__(self) -> str:
        return f"{self.identity.hex()}.{self.generation}.{self.seq}.{self.offset}"

    def rank(self, log: LogSource, records: Records) -> int:
        """How many of the records, as they are now, come before the place. Raises QueryError when that is not known."""
        if self.offset == 0:
            return 0  # an empty log gets its identity with its first record
        if self.identity != log.identity:
            raise QueryError(
                f"{log.path}: the cursor is of another log, or of this one before it was truncated or replaced: "
                f"begin anew, with live(old=True) or without `after`"
            )
        if self.generation == log.generation:
            if self.offset > log.durable_end:
                raise QueryError(
                    f"{log.path}: the cursor's place, byte {self.offset:,}, is behind the end of the log as it is seen "
                    f"here, {log.durable_end:,}: refresh() shows more, unless this is an older copy of the log"
                )
            return records.rank(self.offset)
        return moved_rank(log.moved(self.generation), self)


def parse_cursor(text: str) -> Cursor:
    """The place that a cursor's text names. Raises QueryError.

    >>> str(parse_cursor("000102030405060708090a0b0c0d0e0f.1.5.320"))
    '000102030405060708090a0b0c0d0e0f.1.5.320'
    """
    found = _FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise QueryError(f"this is no cursor: {text!r}; it is what `.cursor` of a live query gives, kept as it is")
    identity, generation, seq, offset = found.groups()
    return Cursor(bytes.fromhex(identity), int(generation), int(seq), int(offset))


def moved_rank(moved: Sequence[Moved] | None, cursor: Cursor) -> int:
    """Its seq after these compactions. Raises QueryError when they are not known."""
    from jitdb.log.moved import new_seq

    if moved is None or cursor.seq == UNKNOWN:
        raise QueryError(
            f"the log was compacted since the cursor was made (generation {cursor.generation}), and it is not known "
            f"any more what went before its place: begin anew, with live(old=True) or without `after`"
        )
    return new_seq(moved, cursor.seq)
