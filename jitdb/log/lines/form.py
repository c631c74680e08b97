"""What the lines of a file are taken for: which of their bytes are records. Who opens the file chooses it.

A form has its own name for the file, its own indexes and cursors (`tag`): answers of one are never those of another.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class LineForm(NamedTuple):
    """
    allow_prefix: text may stand before the JSON of a line (prefix.py); lines without JSON are text, and no records
    """

    allow_prefix: bool = False

    @property
    def tag(self) -> str:
        """Names the form among those of one file; empty for plain lines.

        >>> PLAIN.tag, LineForm(allow_prefix=True).tag
        ('', 'prefix')
        """
        return "prefix" if self.allow_prefix else ""


PLAIN: Final = LineForm()
