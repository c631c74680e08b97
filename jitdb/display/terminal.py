"""The door to a terminal: whatever a command writes there goes through it, and nothing that a record, a field or the
name of a file holds acts on the screen. Pipes and files get what is written, byte for byte.

A character that would act is shown as JSON escapes it, so that JSON stays JSON. Who paints (rich) writes behind the
door, and makes each text `printable` before.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO, cast

# Controls but newline and tab; what turns text around, or ends its line or paragraph; bytes that are no UTF-8.
_ACTING: Final = re.compile("[\0-\b\v-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with what would act on a terminal as an escape.

    >>> visible("a\\x1b[2J\\tb\\u202e")
    'a\\\\u001b[2J\\tb\\\\u202e'
    """
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def visible_bytes(data: bytes) -> bytes:
    """The same of UTF-8."""
    return visible(data.decode("utf-8", "surrogateescape")).encode()


class Terminal:
    """A stream that is a terminal. All but what is written is asked of the stream itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.rich_proxied_file = getattr(stream, "rich_proxied_file", stream)  # what rich writes to

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def buffer(self) -> Terminal:
        """What takes bytes: this does."""
        return self

    def write(self, data: str | bytes) -> int:
        """Write text, or UTF-8 whose last character is whole; what the encoding of the stream lacks is escaped, too."""
        text = visible(data.decode("utf-8", "surrogateescape") if isinstance(data, bytes) else data)
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            encoding = self._stream.encoding
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        return len(data)


def guarded(stream: TextIO) -> TextIO:
    """The stream, with the door before it if it is a terminal."""
    return cast(TextIO, Terminal(stream)) if stream.isatty() else stream


def one_line(text: str, stream: TextIO | Terminal) -> str:
    """A line for this stream. A newline in it is not ours: a terminal shows it."""
    return text.replace("\n", "\\n") if isinstance(stream, Terminal) else text


@contextmanager
def terminals_guarded() -> Iterator[None]:
    """Within this, standard output and standard error have the door before them."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (stream and guarded(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
