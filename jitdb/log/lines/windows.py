"""Part of an open file of lines as a log of its own, to follow files: it knows the file, and not its name."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from jitdb.log.codecs import Codec
from jitdb.log.io.filenames import META, sidecar_path
from jitdb.log.lines.detection import HEAD, form_of, text_form
from jitdb.log.lines.fetching import line_start
from jitdb.log.lines.files.file import FileRest, LineFile
from jitdb.log.lines.files.opening import as_document, open_lines
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.lines.form import KNOWN, PLAIN, LineForm
from jitdb.log.lines.framing import LineFraming
from jitdb.log.lines.keeping.keeper import Keeper
from jitdb.log.lines.keeping.places import Place
from jitdb.log.lines.line_log import LineLog

_BEGINNING: Final = 1 << 20  # bytes whose records tell which field is the time


class LineOpener(NamedTuple):
    """How files of lines are opened, and which lines are records.

    is_said: whether the user named the codec, so that lines which hold no objects are records, too
    """

    codec: Codec
    form: LineForm = PLAIN
    is_said: bool = False

    def open(self, path: str) -> LineFile:
        """Raises NotALog, OSError."""
        file = open_lines(Path(path), self._is_whole)
        form = self._form_of(file, path)
        return as_document(file) if form is not None and form.is_document else file

    def _form_of(self, file: LineFile, path: str) -> LineForm | None:
        """What the lines of a file are that nobody named."""
        head = file.head(HEAD)
        found = form_of(head, self.form, said=self.is_said, more=file.head, name=path) if head else None
        unnamed = LineForm(format=KNOWN) if self.form == PLAIN else self.form
        return found or (text_form(head, unnamed, Path(path).name) if head else None)

    def _is_whole(self, line: bytes, is_still: bool) -> bool:
        """A reader that follows a file waits for the end of a line of text."""
        return LineFraming(self.form).is_whole(line, False, self.codec)

    def are_lines(self, file: LineFile, path: str) -> bool:
        """Whether the file that was opened there has lines of this kind. Raises LogError, OSError."""
        if (sidecar_path(Path(path)) / META).exists():
            return False
        return self._form_of(file, path) is not None

    def window(self, file: LineFile, path: str, offset: int, most: int) -> LineWindow:
        """The records behind this byte of the file, as far as they begin in `most` bytes."""
        form = self._form_of(file, path) or self.form
        file.goes_on = LineFraming(form).goes_on
        base = file.next_line(offset)
        if form.has_batches and offset:  # of a line that was read in part, all is in it, and what was read is deleted
            base = line_start(file.read, file.text_size(file.stamp()), offset - 1, LineFraming(form))
        return LineWindow(file, path, self._replace(form=form), base, offset, most)


class LineWindow(LineLog):
    """The lines of an open file from the byte `base` on; offsets count from there. It grows up to `most` bytes.

    offset: where reading went on; of an element before it nothing is given
    """

    def __init__(self, file: LineFile, path: str, opener: LineOpener, base: int, offset: int, most: int) -> None:
        self.base, self._whole, self._opener, self._offset = base, file, opener, offset
        self._path, self._codec = Path(path), opener.codec
        self._framing = LineFraming(opener.form, base, max(0, offset - base))
        self._rest, self._is_begun = FileRest(file, base, most), False
        self._begin(self._rest)

    def _keeper_of(self, stamp: Stamp) -> Keeper:
        """One that keeps nothing."""
        return Keeper(Place(sidecar_path(Path(self._path))), self._path, keeps=False)

    @property
    def is_full(self) -> bool:
        """Whether the file has more lines behind the window."""
        return self._rest.is_full

    @property
    def holds_back(self) -> bool:
        """Whether its last record is left out, which may have more lines, though it is not full."""
        return self._rest.holds_back and not self.is_full

    def begins_record(self) -> bool:
        """Whether a record begins it: else its first lines, which came later, belong to the record before it."""
        if not self._is_begun and self._rest.goes_on is not None:
            if self._whole.next_line(self._offset) != self.base:
                return False
            self._is_begun = self.durable_end > 0
        return True

    def beginning(self) -> LineWindow:
        """The first lines of the file, which tell what is the time in all of them."""
        return LineWindow(self._whole, str(self._path), self._opener, 0, 0, _BEGINNING) if self.base else self

    @property
    def is_rotated(self) -> bool:
        """No: it stays with its file."""
        return False

    def _there(self) -> Stamp | None:
        """None: another file that has the name by now is another log."""
        return None

    def _tell_cut(self) -> None:
        """Say nothing: the line may be written just now."""
