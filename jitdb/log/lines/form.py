"""What the lines of a file are taken for: which of their bytes are records. Who opens the file chooses it.

A form has its own name for the file, its own indexes and cursors (`tag`): answers of one are never those of another.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, Protocol

from jitdb.common.digests import blake2b
from jitdb.log.lines.each import Steps

LONGEST: Final = 1 << 30  # bytes of a line: kernels count positions in 31 bits. A longer one is a record that is none
TOO_LONG: Final = b"\xff"  # is read in the place of such a line, and is no JSON


class LineForm(NamedTuple):
    """
    allow_prefix: text may stand before the JSON of a line (prefix.py); lines without JSON are text, and no records
    each:         the steps to the elements that are records (each.py); empty: a line is one
    """

    allow_prefix: bool = False
    each: Steps = ()

    @property
    def is_plain(self) -> bool:
        """Whether a line is a record."""
        return not self.allow_prefix and not self.each

    @property
    def tag(self) -> str:
        """Names the form among those of one file; empty for plain lines.

        >>> PLAIN.tag, LineForm(allow_prefix=True).tag, LineForm(True, ("logs", None)).tag
        ('', 'prefix', 'prefix-each-ba93d5d6')
        """
        words = ["prefix"] if self.allow_prefix else []
        if self.each:
            form = repr(self.each).encode("utf-8", "surrogatepass")
            words.append(f"each-{blake2b(form, digest_size=4).hexdigest()}")
        return "-".join(words)


PLAIN: Final = LineForm()
TAG: Final = re.compile("prefix|(?:prefix-)?each-[0-9a-f]{8}")  # of forms that are not plain


class LineRules(Protocol):
    """What a walker through lines needs to know of them; LineFraming has it."""

    form: LineForm
    skipped: int

    def first_line(self, head: bytes) -> int:
        """Where the first line of the log begins, which has these bytes at its beginning."""

    def records_in(self, line: bytes) -> list[tuple[int, int]]:
        """Where the records of a line begin and end."""
