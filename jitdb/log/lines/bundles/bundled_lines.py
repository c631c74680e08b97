"""The text of a bundle's files, one file after the other, as one log.

Where a file is not what it was, a scan raises `Unbundled`, and the files are asked otherwise; records of it are none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jitdb.errors import InvalidOffset, LogError
from jitdb.log.blocks.framing import Blocks, LastRecord
from jitdb.log.codecs.json.codec import CODEC
from jitdb.log.lines.bundles.bundle import Bundle, BundledFile
from jitdb.log.lines.bundles.stores import remove
from jitdb.log.lines.bundles.texts import TEXTS, opened, text_at
from jitdb.log.lines.fetching import FEW, records_of, texts_of
from jitdb.log.lines.files.file import NEWLINE, newline_before
from jitdb.log.lines.files.stamp import Read, Stamp
from jitdb.log.lines.form import PLAIN
from jitdb.log.lines.framing import LineFraming
from jitdb.log.lines.line_log import BLOCK
from jitdb.log.objects.door import Location, location_of, requests_for
from jitdb.log.objects.urls import AT_ONCE, is_url
from jitdb.log.source import LogSource, Transfer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.common.paths import Path as FieldPath
    from jitdb.log.codecs import Codec
    from jitdb.log.codecs.fields.located import RecordBatch, Scratch

_OF_SCAN: Final = 1 << 20  # bytes: a shorter read is none of a scan
_AHEAD: Final = 16 << 20  # bytes of text whose objects a scan asks for before it reads them


def last_line(read: Read, stop: int) -> bytes:
    """The line of a text that ends before this byte."""
    begin = newline_before(read, stop) + 1
    return read(stop - begin, begin)


class Unbundled(LogError):
    """The files are to be asked otherwise: one was changed.

    bundle: set where another one is to be made of its files
    alone:  the paths of those of them that are to be asked one by one, as they are
    """

    bundle: Bundle | None = None
    alone: frozenset[str] = frozenset()


class BundleFraming(LineFraming):
    """See Framing. A document is one line, and there are many of them."""

    def __init__(self, bundle: Bundle) -> None:
        form = bundle.kind.form or PLAIN
        self.has_documents = form.is_document
        super().__init__(form._replace(is_document=False), changed=next((file.stamp.mtime for file in bundle.files), 0))
        self.names_malformed = False  # seqs count the lines of all files

    def last_record(self, log: Blocks, end: int) -> LastRecord:
        """No file is read for it: the table, which has the identity of the indexes, says which files these are."""
        return LastRecord(None, is_lost=True)


class BundledLines(LogSource):
    """See the head of this file. Safe for threads; no file stays open."""

    def __init__(self, bundle: Bundle) -> None:
        self._framing = BundleFraming(bundle)
        self._now = bundle, bundle.begins()
        self._asked_for = -1  # the end of the text whose objects were asked for last

    @property
    def bundle(self) -> Bundle:
        return self._now[0]

    def take(self, bundle: Bundle) -> None:
        """Go on with it: with more files, or with others that are not what they were."""
        self._now = bundle, bundle.begins()

    @property
    def path(self) -> Location:
        """The folder of the files."""
        return location_of(self.bundle.folder)

    @property
    def codec(self) -> Codec:
        return CODEC

    @property
    def framing(self) -> BundleFraming:
        return self._framing

    @property
    def block_size(self) -> int:
        return BLOCK

    @property
    def durable_end(self) -> int:
        return self._now[1][-1]

    @property
    def identity(self) -> bytes:
        return self.bundle.identity

    @property
    def generation(self) -> int:
        return 0

    @property
    def identity_is_stored(self) -> bool:
        return self.bundle.place is not None

    @property
    def sidecar(self) -> Path:
        """The bundle's own folder."""
        assert self.bundle.place is not None
        return self.bundle.place

    def transfer(self, start: int, stop: int) -> Transfer:
        """See LogSource. Objects are read as a whole."""
        if not is_url(self.bundle.folder):
            return super().transfer(start, stop)
        sizes = [file.stamp.size for _, _, file, _ in self._parts(start, stop) if file.name]
        return Transfer(sum(sizes), sum(map(requests_for, sizes)))

    @property
    def known_time(self) -> tuple[FieldPath, ...] | None:  # type: ignore[override]
        """That of all its files."""
        return self.bundle.kind.time

    @property
    def sparse_time(self) -> tuple[FieldPath, str] | None:  # type: ignore[override]
        return None if (row := self._framing.form.row) is None else row.sparse_time

    @property
    def time_doubt(self) -> str:  # type: ignore[override]
        return "" if (row := self._framing.form.row) is None else row.doubt

    def last_line(self) -> bytes:
        """The last line of the last file. Raises Unbundled."""
        file = self.bundle.files[-1]
        return last_line(self._reader(file), file.size - 1)

    def each(self) -> Iterator[BundledLines]:
        """The lines of each file, of those that are what they were."""
        return (self._only(file) for file in self.bundle.files if file.name)

    def _only(self, file: BundledFile) -> BundledLines:
        return BundledLines(self.bundle._replace(files=(file,)))

    def beginning(self) -> BundledLines:
        return next(self.each(), self)

    # Bytes

    def read_blocks(self, start: int, stop: int, buffer: memoryview | npt.NDArray[np.uint8]) -> int:
        """See ScanSource; from any byte on. Raises Unbundled."""
        view = (buffer if isinstance(buffer, memoryview) else buffer.data).cast("B")
        if is_url(self.bundle.folder):
            self._ask_ahead(start, stop)
        for begin, end, file, first in self._parts(start, stop):
            if not file.name:
                raise self._unbundled("files of it are not what they were", self.bundle)
            self._read_into(file, begin - first, view[begin - start : end - start])
        return max(0, min(stop, self.durable_end) - start)

    def _ask_ahead(self, start: int, stop: int) -> None:
        """Have the objects of this part of the text, and of what comes next, come side by side, as far as their texts
        are not there.
        """
        from jitdb.log.objects.files import FILES

        begin, end = start, 2 * stop - start
        if stop - start >= _OF_SCAN:
            if start <= self._asked_for <= stop + _AHEAD:
                begin, end = self._asked_for, stop + _AHEAD
            self._asked_for = end
        for low, high, file, first in self._parts(begin, end):
            if file.name and not TEXTS.holds(file.stamp):
                size = file.stamp.size
                ends = (0, size) if self._is_whole(file) or size <= AT_ONCE else (low - first, high - first)
                FILES.ahead(self.bundle.path_of(file), *ends)

    def second_look(self, block: int) -> tuple[bytes, None]:
        """The bytes of a block. Nobody knows what they should be; of a file that is not what it was, blanks."""
        start, stop = block * BLOCK, min((block + 1) * BLOCK, self.durable_end)
        data = bytearray(b" " * max(0, stop - start))
        with memoryview(data) as view:
            for begin, end, file, first in self._parts(start, stop):
                if file.name:
                    self._read_into(file, begin - first, view[begin - start : end - start])
                elif end == first + file.size:
                    view[end - start - 1 : end - start] = b"\n"
        return bytes(data), None

    def _parts(self, start: int, stop: int) -> Iterator[tuple[int, int, BundledFile, int]]:
        """From where on and up to where bytes are of one file, and where that begins."""
        bundle, begins = self._now
        stop, number = min(stop, begins[-1]), bisect_right(begins, start) - 1
        while start < stop:
            end = min(stop, begins[number + 1])
            if end > start:
                yield start, end, bundle.files[number], begins[number]
            start, number = end, number + 1

    def _read_into(self, file: BundledFile, offset: int, view: memoryview) -> None:
        """Fill the view from a file, and see that this still is what it was."""
        if self._is_whole(file):
            view[:] = self._slice(file, self._text(file), offset, len(view))
            return
        size = max(0, min(len(view), file.stamp.size - offset))
        try:
            with opened(self.bundle.path_of(file)) as there:
                is_same = there.read_into(view[:size], offset) == size and Stamp.of(there.status()) == file.stamp
        except OSError:
            is_same = False
        if not is_same:
            raise self._changed(file)
        view[size:] = self._newline(file, offset + size, len(view) - size)

    def _is_whole(self, file: BundledFile) -> bool:
        """Whether its text is made as a whole."""
        return bool(file.compression) or self._framing.has_documents

    def _text(self, file: BundledFile) -> bytes:
        """All of it, as it was written."""
        path = self.bundle.path_of(file)
        try:
            text = TEXTS.of(file.stamp, lambda: text_at(path, file.stamp))
        except OSError:
            text = None
        if text is None or len(text) + file.lacking != file.size:
            raise self._changed(file)
        return text

    def _slice(self, file: BundledFile, text: bytes, offset: int, size: int) -> bytes:
        """So many bytes of a text from there on, as a scan reads it: a document's newlines are blanks."""
        part = text[offset : offset + size]
        if self._framing.has_documents:
            part = part.replace(b"\n", b" ")
            if offset + len(part) == file.size:
                return part[:-1] + b"\n"
        return part + self._newline(file, offset + len(part), size - len(part))

    def _newline(self, file: BundledFile, offset: int, size: int) -> bytes:
        """What of the newline that the file lacks stands from this byte on."""
        left = file.size - offset
        return NEWLINE[len(NEWLINE) - left :][:size] if size and 0 < left <= file.lacking else b""

    def _reader(self, file: BundledFile) -> Read:
        """Reads the text of a file."""

        def read(size: int, offset: int) -> bytes:
            data = bytearray(max(0, min(size, file.size - offset)))
            with memoryview(data) as view:
                self._read_into(file, offset, view)
            return bytes(data)

        return read

    # Records

    def get_many_raw(self, offsets: Sequence[int] | npt.NDArray[np.int64]) -> list[bytes | None]:
        """The records at these offsets; None for one that is none, or of a file that is not what it was.

        Raises InvalidOffset where no line begins, Unbundled.
        """
        found: list[bytes | None] = [None] * len(offsets)
        for file, first, places, wanted in self._by_file(offsets):
            read = self._reader(file)
            with self._reading(first, file):
                records = records_of(read, file.size, wanted, self._framing, CODEC)
            for place, record in zip(places, records, strict=True):
                found[place] = record
        return found

    def read_batch(self, offsets: npt.NDArray[np.int64], scratch: Scratch) -> RecordBatch:
        """See LogSource.read_batch. Of many it is not looked at whether they are valid. Raises Unbundled."""
        bundle, begins = self._now
        if len(offsets) <= FEW or not self._framing.form.is_plain or not all(file.name for file in bundle.files):
            return super().read_batch(offsets, scratch)
        from jitdb.log.lines.streaming import lines_at

        try:
            found = lines_at(self._text_into, begins[-1], offsets, self._framing, scratch)
        except LookupError as error:
            raise self._no_record(int(error.args[0])) from None
        return super().read_batch(offsets, scratch) if found is None else found

    def _text_into(self, view: memoryview, start: int) -> int:
        return self.read_blocks(start, start + len(view), view)

    def get_many_text(self, offsets: Sequence[int] | npt.NDArray[np.int64]) -> list[bytes | None]:
        """See LogSource.get_many_text. Raises as get_many_raw does."""
        found: list[bytes | None] = [None] * len(offsets)
        for file, first, places, wanted in self._by_file(offsets):
            with self._reading(first, file):
                texts = texts_of(self._reader(file), file.size, wanted, self._framing)
            if self._framing.has_documents:
                text = self._text(file)
                texts = [text[at : at + len(each or b"")] for at, each in zip(wanted, texts, strict=True)]
            for place, each in zip(places, texts, strict=True):
                found[place] = each
        return found

    def _by_file(
        self, offsets: Sequence[int] | npt.NDArray[np.int64]
    ) -> Iterator[tuple[BundledFile, int, list[int], list[int]]]:
        """The files in which these are, where each begins, the places of its offsets in the list, and these in it."""
        bundle, begins = self._now
        by_number = dict[int, tuple[list[int], list[int]]]()
        for place, offset in enumerate(map(int, offsets)):
            if not 0 <= offset < begins[-1]:
                raise self._no_record(offset)
            number = bisect_right(begins, offset) - 1
            places, wanted = by_number.setdefault(number, ([], []))
            places.append(place)
            wanted.append(offset - begins[number])
        for number, (places, wanted) in by_number.items():
            if bundle.files[number].name:
                yield bundle.files[number], begins[number], places, wanted

    @contextmanager
    def _reading(self, first: int, file: BundledFile) -> Iterator[None]:
        """Raise what goes wrong with records of a file that begins there as an error of the bundle."""
        try:
            yield
        except LookupError as error:
            raise self._no_record(first + int(error.args[0])) from None
        except EOFError:
            raise self._changed(file) from None

    def _no_record(self, offset: int) -> InvalidOffset:
        return InvalidOffset(f"no record begins at offset {offset:,}", path=self.path, offset=offset)

    def texts_at(self, offsets: Sequence[int]) -> list[int]:
        """See LogSource.texts_at. Raises Unbundled."""
        found = list[int]()
        for file, _, places, wanted in self._by_file(offsets) if self._framing.form.allow_prefix else ():
            lines = [self._framing.line_around(self._reader(file), file.size, offset)[1] for offset in wanted]
            found += [place for place, line in zip(places, lines, strict=True) if self._framing.is_only_text(line)]
        return sorted(found)

    # Whether it is still what it was

    def _changed(self, file: BundledFile) -> Unbundled:
        TEXTS.drop(file.stamp)
        return Unbundled("it was changed since it was looked at", path=self.bundle.path_of(file))

    def _unbundled(self, reason: str, bundle: Bundle, alone: frozenset[str] = frozenset()) -> Unbundled:
        error = Unbundled(reason, path=self.path)
        error.bundle, error.alone = bundle, alone
        return error

    def refuses_malformed(self) -> Unbundled:
        return self._unbundled("it has lines that are no records", self.bundle, frozenset(self._malformed()))

    def _malformed(self) -> set[str]:
        """The paths of the files that have such lines; of all where none is found. Reads all of them."""
        import numpy as np

        from jitdb.log.lines.streaming import lines_of

        (bundle, begins), found = self._now, set[int]()
        for part in lines_of(self, begins[-1]):
            assert part.batch.offsets is not None
            found.update((np.searchsorted(begins, part.batch.offsets[part.malformed], "right") - 1).tolist())
        return {bundle.path_of(bundle.files[number]) for number in found} or bundle.paths()

    def doubt(self) -> None:
        """The next question makes another bundle, whose indexes it builds."""
        remove(self.bundle)

    def settled_stamp(self) -> bytes:
        """The bundle's identity: what is read here are its files as they were. Whether they still are, it tells."""
        return self.bundle.identity


class BeginningLines(BundledLines):
    """The lines of one file, whose text is at hand, or begins with these bytes."""

    def __init__(self, bundle: Bundle, text: bytes) -> None:
        super().__init__(bundle)
        self._head = text

    def beginning(self) -> BundledLines:
        return self

    def _read_into(self, file: BundledFile, offset: int, view: memoryview) -> None:
        if len(self._head) < min(offset + len(view), file.size - file.lacking):
            return super()._read_into(file, offset, view)
        view[:] = self._slice(file, self._head, offset, len(view))
        return None
