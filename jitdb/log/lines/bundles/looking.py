"""A look at a file: what has it in common with others, so that it goes into a bundle with them?

It is read once, as a whole where its text is compressed, or is one document. Such a text is held for a while, for the
scan that follows.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from jitdb.common.formats import ENDINGS, compression_of
from jitdb.common.paths import Path as FieldPath
from jitdb.log.codecs.json.codec import CODEC
from jitdb.log.io import osfile
from jitdb.log.io.filenames import META, SIDECAR_SUFFIX
from jitdb.log.lines.bundles.bundle import ENDS, Bundle, BundledFile, Kind, ends_crc
from jitdb.log.lines.bundles.bundled_lines import BundleFraming, last_line
from jitdb.log.lines.bundles.texts import LONGEST, TEXTS, decompressed, opened
from jitdb.log.lines.detection import HEAD, form_of
from jitdb.log.lines.files.file import FRESH, NEWLINE, newline_before
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.lines.form import KNOWN, MARK, LineForm
from jitdb.log.lines.formats.kernels.kinds import BSD_TIME, KLOG_TIME
from jitdb.log.objects.urls import AT_ONCE, is_url

_SMALL: Final = 32 << 20  # bytes of a file: a larger one takes longer to scan than all that is done for it beside that
_OF_OBJECT: Final = 256 << 20  # of one whose text is stored as it is: each that is asked alone takes requests each time

_UNASKED: Final = LineForm(format=KNOWN)
_SOON_AGAIN: Final = 1 << 20  # bytes before a last line without a newline: of so few it need not be known if more come

#: The fields of the time of a bundle of one file, whose text begins so; None: it does not tell.
TimeOf: TypeAlias = "Callable[[Bundle, bytes], tuple[FieldPath, ...] | None]"


def may_join(path: str, size: int) -> bool:
    """Whether a file of so many bytes may go into a bundle."""
    return 0 < size <= (_OF_OBJECT if is_url(path) and not path.endswith(ENDINGS) else _SMALL)


def head_of(path: str, size: int) -> int:
    """How many of its bytes a look reads first."""
    # A request for all of an object takes as long as one for its beginning.
    return size if is_url(path) and size <= AT_ONCE else HEAD


class Candidate(NamedTuple):
    """A file, and what it has in common with others.

    first, last: its first line, and its last one, of a format whose records may have several
    held:        bytes of its text, where that was made
    """

    kind: Kind
    file: BundledFile
    first: bytes = b""
    last: bytes = b""
    held: int = 0


def look_at(folder: str, name: str, time_of: TimeOf) -> Candidate | None:
    """The file of this name in a folder, as it is; None where it changed just now, or cannot be read."""
    with suppress(OSError), opened(os.path.join(folder, name)) as file:
        found = file.status()
        stamp = Stamp.of(found)
        if may_join(os.path.join(folder, name), stamp.size) and stamp.is_settled():
            access = found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)
            candidate = _Look(folder, name, stamp, file).candidate(access, time_of)
            if Stamp.of(file.status()) == stamp:
                return candidate or Candidate(Kind(access), BundledFile(name, stamp))
    return None


class _Look:
    """A look at an open file."""

    def __init__(self, folder: str, name: str, stamp: Stamp, file: osfile.Descriptor) -> None:
        self._folder, self._name, self._stamp, self._opened = folder, name, stamp, file
        self._head = self._stored(head_of(os.path.join(folder, name), stamp.size), 0)
        self._compression = compression_of(self._head)
        self._text: bytes | None = None  # all of it, once that is needed

    def _stored(self, size: int, offset: int) -> bytes:
        return self._opened.read(min(size, self._stamp.size - offset), offset)

    def _whole(self) -> bytes | None:
        """The text; None where it is damaged, or has no end. It is held for the scan."""

        def made() -> bytes | None:
            size = self._stamp.size
            data = self._head if len(self._head) == size else self._stored(size, 0)
            return decompressed(data) if len(data) == size else None

        self._text = TEXTS.of(self._stamp, made)
        return self._text

    def candidate(self, access: tuple[int, int, int], time_of: TimeOf) -> Candidate | None:
        """None where it is to be asked on its own."""
        if self._compression and (self._stamp.size > _SMALL or not self._whole()):
            return None
        head = (self._head if self._text is None else self._text)[:HEAD]
        form = self._form(head)
        if form is None:
            return None
        kind = Kind(access, form)
        bundle = Bundle(self._folder, None, b"", kind)
        framing = BundleFraming(bundle)
        size = self._stamp.size if self._text is None else len(self._text)
        lacking = self._lacking(framing, size)
        if lacking is None:
            return None
        file = self._file(size, lacking)
        bundle = bundle._replace(files=(file,))
        time = time_of(bundle, head if self._text is None else self._text)
        kind = kind._replace(time=time, month=self._month(form))
        held = 0 if self._text is None else len(self._text)
        if not framing.joins:
            return Candidate(kind, file, held=held)
        return Candidate(kind, file, head.split(b"\n", 1)[0], self._last_line(size), held)

    def _form(self, head: bytes) -> LineForm | None:
        """How its lines become records; None where it is asked on its own."""
        sidecar = os.path.join(self._folder, f"{self._name}{SIDECAR_SUFFIX}", META)
        if head.startswith(MARK) or (not self._opened.is_object and os.path.exists(sidecar)):
            return None
        form = form_of(head, _UNASKED, more=lambda size: self._read(size, 0), name=os.path.basename(self._name))
        if form is None or not form.is_document:
            return form
        # A bundle's documents are lines, and so JSON of one value each.
        is_one = form.path.steps and self._stamp.size <= LONGEST and (text := self._whole()) and CODEC.is_valid(text)
        return form if is_one else None

    def _read(self, size: int, offset: int) -> bytes:
        """Bytes of its text."""
        return self._stored(size, offset) if self._text is None else self._text[offset : offset + size]

    def _lacking(self, framing: BundleFraming, size: int) -> int | None:
        """Bytes of the newline that its text lacks; None where its last line is cut off."""
        if self._read(1, size - 1) == b"\n":
            return 0
        if framing.has_documents:
            return 1
        begin = newline_before(self._read, size) + 1
        is_still = bool(self._compression) or begin < _SOON_AGAIN or time.time_ns() - self._stamp.mtime > FRESH
        line = self._read(size - begin, begin)
        if not framing.is_whole(line, is_still, CODEC):
            return None
        is_wide = not line.endswith(b"\r") and begin > 1 and self._read(1, begin - 2) == b"\r"
        return len(NEWLINE) if is_wide else 1

    def _file(self, size: int, lacking: int) -> BundledFile:
        if self._compression:
            return BundledFile(self._name, self._stamp, size + lacking, 0, self._compression, lacking)
        is_whole = len(self._head) == self._stamp.size
        ends = self._head if is_whole else self._head[:ENDS] + self._stored(ENDS, self._stamp.size - ENDS)
        return BundledFile(self._name, self._stamp, size + lacking, ends_crc(ends), "", lacking)

    def _month(self, form: LineForm) -> int:
        """See Kind."""
        row = form.row
        if row is None or not {BSD_TIME, KLOG_TIME} & set(row.kinds.values()):
            return 0
        return int(time.strftime("%Y%m", time.gmtime(self._stamp.mtime // 10**9)))

    def _last_line(self, size: int) -> bytes:
        stop = size - (self._read(1, size - 1) == b"\n")
        return last_line(self._read, stop)
