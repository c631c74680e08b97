"""The records of a JSON array, however long, and of other JSON over several lines: one value after the other.

Only so much of the text is in memory as the longest record needs.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from jitdb.cli.failures import Failure
from jitdb.cli.input.batches import Batch
from jitdb.cli.input.lines import LONGEST, Records, Source, Unreadable, decoder, excerpt

_BATCH: Final = 1_000  # records
_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_ENOUGH: Final = 128  # characters behind a value: with fewer, it may be the beginning of a longer number or word


class _Text:
    """The text of a source, of which what was taken is dropped."""

    def __init__(self, source: Source, tagged: bool) -> None:
        self.text = ""
        self.at = 0
        self.records = 0  # that were taken
        self._source = source
        self._lines = 0  # newlines in what was dropped
        self._is_all = False
        self._blocks = source.blocks()
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._json = decoder(tagged)

    def fault(self, what: str, hint: str = "") -> Failure:
        """What is wrong at this place."""
        line = self._lines + self.text.count("\n", 0, self.at) + 1
        where = f"{self._source.name}, line {line:,}, behind record {self.records:,}"
        return Failure(f"{where}: not JSON: {what}{excerpt(self.text, self.at)}", hint)

    def past_blanks(self) -> str:
        """The character behind the blanks; empty at the end."""
        while True:
            blanks = _BLANKS.match(self.text, self.at)
            assert blanks is not None
            self.at = blanks.end()
            if self.at < len(self.text) or not self._more():
                return self.text[self.at : self.at + 1]

    def value(self) -> Any:
        """The value that begins here; `at` is behind it. Raises Failure."""
        while True:
            try:
                value, end = self._json.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                is_cut = error.pos + _ENOUGH > len(self.text) or error.msg.startswith("Unterminated string")
                if is_cut and self._more():
                    continue
                self.at = error.pos
                raise self.fault(error.msg.removesuffix(" at")) from None
            except RecursionError:
                raise self.fault("nested too deeply") from None
            except ValueError:
                raise self.fault("an integer of too many digits") from None
            if end + _ENOUGH <= len(self.text) or not self._more():
                self.at = end
                self.records += 1
                return value

    def _more(self) -> bool:
        """Read on, if there is more: as much as there is from `at` on. What stands before is dropped."""
        if self._is_all:
            return False
        if len(self.text) - self.at > LONGEST:
            raise Unreadable
        self._lines += self.text.count("\n", 0, self.at)
        parts, room = [self.text[self.at :]], max(1, len(self.text) - self.at)
        while room > 0 and not self._is_all:
            data = next(self._blocks, b"")
            self._is_all = not data
            try:
                parts.append(self._utf8.decode(data, self._is_all))
            except UnicodeDecodeError as error:
                self.text, self.at = "".join(parts), 0
                raise self.fault(f"byte 0x{error.object[error.start]:02x} is no UTF-8") from None
            room -= len(parts[-1])
        self.text, self.at = "".join(parts), 0
        return True


def array_batches(source: Source, tagged: bool) -> Iterator[Batch]:
    """The elements of an array; of other text, the values that stand one behind the other. Raises Failure."""
    text = _Text(source, tagged)
    is_open = text.past_blanks() == "["
    text.at += is_open
    is_array = is_open
    found = Records()
    try:
        while char := text.past_blanks():
            if is_array and not is_open:
                raise text.fault("something stands behind the array", "of an array a line: --format ndjson")
            if is_array and char == "]":
                text.at += 1
                is_open = False
                continue
            if is_array and text.records:
                if char != ",":
                    raise text.fault("a comma or the array's end was expected")
                text.at += 1
                text.past_blanks()
            found.values.append(text.value())
            found.numbers.append(text.records)
            if len(found.numbers) == _BATCH:
                yield Batch(found, text.records)
                found = Records()
        if is_open:
            raise text.fault("the array has no end: is the file cut off?")
    except Failure:
        yield Batch(found, text.records)  # what came before is imported
        raise
    yield Batch(found, text.records)
