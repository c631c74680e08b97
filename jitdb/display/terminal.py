"""A guard before the terminal: nothing in a record, a field or a file's name acts on the screen. Pipes and files get
what is written, byte for byte.

Control characters are shown as JSON escapes them, so that JSON stays JSON. `paint` and rich write past the guard; their
texts are made printable first.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO, cast

# Control characters but newline and tab; marks of direction; separators of lines, paragraphs; bytes that are no UTF-8.
_ACTING: Final = re.compile("[\0-\b\v-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with escapes for what would act on a terminal.

    >>> visible("a\\x1b[2J\\tb\\u202e")
    'a\\\\u001b[2J\\tb\\\\u202e'
    """
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def visible_bytes(data: bytes) -> bytes:
    """The same of UTF-8."""
    return visible(data.decode("utf-8", "surrogateescape")).encode()


def columns(otherwise: int) -> int:
    """The width of the terminal, or this number without one. shutil would take as long to import as a question."""
    try:
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns) or otherwise
    except (ValueError, OSError, AttributeError):
        return otherwise


class Terminal:
    """A guarded stream. All but writing is passed on to the stream itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.rich_proxied_file = getattr(stream, "rich_proxied_file", stream)  # to which rich writes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def buffer(self) -> Terminal:
        """The stream for bytes: this one."""
        return self

    def write(self, data: str | bytes) -> int:
        """Write text, or UTF-8 that ends with a whole character. What the stream's encoding lacks is escaped, too."""
        text = visible(data.decode("utf-8", "surrogateescape") if isinstance(data, bytes) else data)
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            self.paint(text)
        return len(data)

    def writelines(self, lines: Iterable[str | bytes]) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def paint(self, text: str) -> None:
        """Write text that may act."""
        encoding = self._stream.encoding
        self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def guarded(stream: TextIO) -> TextIO:
    """The stream, guarded if it is a terminal."""
    return cast(TextIO, Terminal(stream)) if stream.isatty() else stream


def as_lines(lines: list[str]) -> str:
    """A report, a line for each of these: a newline in one, from a file's name, is shown."""
    return "\n".join(line.replace("\n", "\\n") for line in lines)


def one_line(text: str, stream: TextIO | Terminal) -> str:
    """A line for this stream. On a terminal, newlines in it, which are not ours, are shown."""
    return text.replace("\n", "\\n") if isinstance(stream, Terminal) else text


@contextmanager
def terminals_guarded() -> Iterator[None]:
    """Within this, standard output and standard error are guarded."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (stream and guarded(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
