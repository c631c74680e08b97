"""Lines of JSON, a JSON array, and JSON over several lines, read strictly; errors say what is wrong.

A log of the codec json keeps lines as they are: a kernel frames them, and the codec's locator says which are not
records. For other codecs, with --tagged, and without compiled kernels, json reads each line. JSON that is not in lines
takes as much memory as its longest record.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from jitdb.cli.failures import Failure
from jitdb.cli.input.import_target import Target
from jitdb.cli.input.input_batches import BadRow, Batch, RowOptions, shortened
from jitdb.cli.input.sources import LONGEST, TOO_LONG, Portion, Source, no_utf8
from jitdb.errors import DecodeError, EncodeError
from jitdb.log.codecs.json.codec import CODEC, json_text, text_of

_ARRAY_HINT: Final = "--format json makes its elements the records"
_BLANKS: Final = " \t\r"
_BYTES: Final = _BLANKS.encode()


# --- lines -----------------------------------------------------------------------------------------------------------


def line_batches(source: Source, options: RowOptions, first_line: int, target: Target) -> Iterator[Batch]:
    """The lines from `first_line` on. Raises Failure when the only one is an array of all records; Unreadable."""
    reader = LineReader(options, target)
    number = 1
    for portion in _portions(source, reader):
        if number < first_line:
            portion, passed = portion.behind(first_line - number)
            number += passed
            source.taken = number - 1
        while portion.begin < portion.end:
            is_framed = not options.tagged and target.is_framed(portion.end - portion.begin)
            batch, position = (reader.framed if is_framed else reader.portion)(portion, number)
            yield batch
            portion, number = portion._replace(begin=position), batch.last + 1


def _portions(source: Source, reader: LineReader) -> Iterator[Portion]:
    portions = source.portions()
    first = next(portions, None)
    if first is None:
        return
    following = None
    if first.is_one and first.data[first.begin : first.end].lstrip()[:1] == b"[":
        count = reader.records_in(first)
        following = next(portions, None) if count else None
        if count and following is None:
            raise Failure(f"{source.name}: this is one JSON array of {count:,} records", _ARRAY_HINT)
    yield first
    if following is not None:
        yield following
    yield from portions


class LineReader:
    """Makes records of lines of JSON."""

    def __init__(self, options: RowOptions, target: Target) -> None:
        self._stop_at_bad = options.stop_at_bad
        self._decoder = _decoder(options.tagged)
        # What `decode` calls, without its two searches for blanks; no part of the type's published face.
        self._scan: Callable[[str, int], tuple[Any, int]] = getattr(self._decoder, "scan_once")  # noqa: B009
        self._keeps = not options.tagged and target.codec.is_json
        self._undisturbed = target.undisturbed
        self._framing: tuple[Any, Any] | None = None

    def portion(self, portion: Portion, first: int) -> tuple[Batch, int]:
        """The records of all its lines, of which the first has this number, and where the next one begins."""
        lines = bytes(memoryview(portion.data)[portion.begin : portion.end - 1]).split(b"\n")
        return self.read(lines, first), portion.end

    def read(self, lines: list[bytes], first: int) -> Batch:
        """The records in `lines`, the first of which has the number `first`; blank lines are passed over."""
        numbers: list[int] = []
        found = Batch(first - 1 + len(lines), numbers=numbers)
        keep, note = found.values.append, numbers.append
        scan, keeps = self._scan, self._keeps
        for number, line in enumerate(lines, first):
            try:
                text = str(line, "utf-8")
                value, end = scan(text, 0)
                clean = end == len(text) or not text[end:].strip(_BLANKS)
            except (StopIteration, ValueError, RecursionError):
                clean = False
            if not clean:
                if not line.strip():
                    continue
                value = self._carefully(line, number)
            if keeps and not isinstance(value, BadRow):
                try:
                    value = json_text(line.strip(_BYTES), value)
                except DecodeError as error:
                    value = _refused(number, value, error)
            if isinstance(value, BadRow):
                found.bad.append(value)
                if self._stop_at_bad:
                    break
                continue
            keep(value)
            note(number)
        return found

    def framed(self, portion: Portion, first: int) -> tuple[Batch, int]:
        """The same by kernels, for a log of the codec json; of very many lines only the first ones."""
        with self._undisturbed():
            import numpy as np

            from jitdb.log.codecs.fields.located import RecordBatch, starts_of
            from jitdb.log.codecs.json.row_kernels import LineFramer

            if self._framing is None:
                self._framing = LineFramer(), CODEC.locator([])
        framer, locator = self._framing
        framed = framer.frame(*portion)
        data, lengths = framed.data, framed.lengths
        starts, _ = starts_of(lengths)
        records = RecordBatch(data, starts.astype(np.int64), lengths, np.zeros(len(lengths), np.uint8))
        found = Batch.framed(framed, first)
        wrong = locator.invalid(records)
        if len(wrong):
            good = np.ones(len(lengths), np.bool_)
            good[wrong] = False
            lines = bytes(memoryview(portion.data)[portion.begin : framed.position]).split(b"\n")
            for each in wrong.tolist():
                at = int(framed.lines[each])
                found.bad += self.read([lines[at]], at + first).bad
                if found.bad and self._stop_at_bad:
                    good[each:] = False
                    break
            found.numbers = (framed.lines + first)[good]
            found.encoded = data[: int(lengths.sum())][np.repeat(good, lengths)], lengths[good]
        return found, framed.position

    def records_in(self, portion: Portion) -> int:
        """How many maps are in the array that the portion consists of; 0 where it is something else."""
        try:
            value = self._decoder.decode(portion.data[portion.begin : portion.end].decode())
        except (ValueError, RecursionError, EncodeError):
            return 0
        is_of_maps = isinstance(value, list) and all(isinstance(item, dict) for item in value)
        return len(value) if is_of_maps else 0

    def _carefully(self, line: bytes, number: int) -> Any:
        """The value of a line that the fast way refused, or what is wrong with it."""
        try:
            text = line.decode().strip(_BLANKS)
        except UnicodeDecodeError as error:
            return BadRow(number, no_utf8(line, error), mendable=line != TOO_LONG)
        try:
            return self._decoder.decode(text)
        except json.JSONDecodeError as error:
            place = f"column {error.pos + 1}" if error.msg.endswith(" at") else f"(column {error.pos + 1})"
            reason = f"not JSON: {error.msg.rstrip(': ')} {place}"
            return BadRow(number, reason, _prefix_hint(line) or (_hint(text) if number == 1 else ""))
        except RecursionError:
            return BadRow(number, "nested too deeply")
        except EncodeError as error:
            return BadRow(number, error.reason)
        except ValueError:
            return BadRow(number, f"an integer of more than {sys.get_int_max_str_digits():,} digits")


def _prefix_hint(line: bytes) -> str:
    """What reads a line with text before its JSON."""
    from jitdb.log.lines.form import object_in

    begin = object_in(line)
    try:
        json.loads(line[begin:] if begin > 0 else b"")
    except (ValueError, RecursionError):
        return ""
    return "it has text before its JSON: --allow-prefix reads it"


def _hint(text: str) -> str:
    """Why the first line of a file is often no JSON."""
    if text.startswith("["):
        return f"this looks like one JSON array; {_ARRAY_HINT}"
    if text == "{":
        return "this looks like JSON over several lines: --format json reads it"
    if "," in text and text[0] not in '{"':
        return "this looks like CSV: --format csv reads it"
    return ""


def _refused(number: int, value: Any, error: DecodeError) -> BadRow:
    """The error for a value that no codec can hold, with the path that the codec names."""
    try:
        CODEC.encode(value)
    except EncodeError as told:
        return BadRow(number, shortened(told.reason))
    return BadRow(number, error.reason)


def _decoder(tagged: bool) -> json.JSONDecoder:
    """`tagged`: with what `jitdb export` writes for values that JSON lacks."""
    if not tagged:
        return json.JSONDecoder()
    from jitdb.common.json_text import read_tagged

    return json.JSONDecoder(object_hook=read_tagged)


# --- other JSON ------------------------------------------------------------------------------------------------------

_BATCH: Final = 1_000  # records
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_ENOUGH: Final = 128  # characters behind a value: with fewer, it may be the beginning of a longer number or word


class _Text:
    """The text of a source. What was read of it is dropped."""

    def __init__(self, source: Source, tagged: bool) -> None:
        self.text = ""
        self.at = 0
        self.records = 0  # that were taken
        self._source = source
        self._lines = 0  # newlines in what was dropped
        self._is_all = False
        self._blocks = source.blocks()
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._json = _decoder(tagged)

    def fault(self, what: str, hint: str = "") -> Failure:
        """What is wrong at this place."""
        line = self._lines + self.text.count("\n", 0, self.at) + 1
        where = f"{self._source.name}, line {line:,}, behind record {self.records:,}"
        return Failure(f"{where}: not JSON: {what}", hint)

    def past_blanks(self) -> str:
        """The character behind the blanks; empty at the end."""
        while True:
            blanks = _SPACE.match(self.text, self.at)
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
        """Read as much again as is left from `at` on, and drop what is before; False at the end."""
        if self._is_all:
            return False
        if len(self.text) - self.at > LONGEST:
            raise self.fault(f"a value of more than {LONGEST >> 20} MiB")
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


def array_batches(source: Source, tagged: bool, target: Target) -> Iterator[Batch]:
    """The elements of an array; of other text, the values that stand one behind the other. Raises Failure."""
    text = _Text(source, tagged)
    keeps = target.codec.is_json and not tagged
    is_open = text.past_blanks() == "["
    text.at += is_open
    is_array = is_open
    numbers: list[int] = []
    found = Batch(0, numbers=numbers)
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
            value = text.value()
            found.last = text.records
            try:
                found.values.append(text_of(value) if keeps else value)
                numbers.append(text.records)
            except DecodeError as error:
                found.bad.append(_refused(text.records, value, error))
            if found.bad or len(numbers) == _BATCH:
                yield found
                numbers = []
                found = Batch(text.records, numbers=numbers)
        if is_open:
            raise text.fault("the array has no end: is the file cut off?")
    except Failure:
        yield found  # what came before is imported
        raise
    yield found
