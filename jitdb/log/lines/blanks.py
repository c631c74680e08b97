"""What of a file of lines is no line: blanks, and a byte order mark."""

from __future__ import annotations

from typing import Final

MARK: Final = b"\xef\xbb\xbf"  # UTF-8's byte order mark


def is_blank(line: bytes) -> bool:
    """Whether a line is no record, however it is read.

    >>> is_blank(b" \\t\\r"), is_blank(b"0")
    (True, False)
    """
    return not line.strip(b" \t\r")
