"""What a task reads of a text that rotation may move: found by its digests, wherever it lies when the task begins, and
again when it is moved or truncated meanwhile.

After each read, and before any of its rows is given, the file is held against the text again.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.engine.cursor import TextPlace
from jitdb.engine.following.followed import Key, beside
from jitdb.errors import LogError, LogWarning
from jitdb.log.lines.files.file import LineFile
from jitdb.log.lines.files.rotated_names import family
from jitdb.log.lines.files.stamp import NOTHING_SEEN
from jitdb.log.lines.form import PLAIN
from jitdb.log.lines.framing import LineFraming
from jitdb.log.lines.windows import LineOpener
from jitdb.logset.member import find_members
from jitdb.spark_ext.errors import LogChanged
from jitdb.spark_ext.file_range import FileRange, Run
from jitdb.spark_ext.reading.partitions import Partition

if TYPE_CHECKING:
    import pyarrow as pa

    from jitdb.spark_ext.options import ReadOptions
    from jitdb.spark_ext.reading.partitions import Records
    from jitdb.spark_ext.reading.schema import Layout

_LOOKS: Final = 30  # at the files, until a text counts as lost
_PAUSE: Final = 0.1  # seconds between two


NOWHERE: Final = TextPlace("", (), 0, NOTHING_SEEN, NOTHING_SEEN)


class TextMoved(Exception):
    """The file has another text by now. Never leaves this room."""


class _Sought(NamedTuple):
    place: str
    key: Key


@dataclass(frozen=True, slots=True)
class TextPartition(Partition):
    """A part of a text.

    runs:  one; its ends are bytes of the text, each within the line that it ends with, or behind it
    place: what the text is known by, up to the end of the batch
    root:  what the stream was given to follow
    """

    place: TextPlace = NOWHERE
    opener: LineOpener | None = None
    root: str = ""
    may_lose: bool = False

    def open(self) -> FileRange:
        """Raises LogChanged, TextMoved."""
        assert self.opener is not None
        found = located(self.place, self.opener, self.root)
        run = self.runs[0]
        if found is None:
            raise LogChanged(
                f"{run.stop - run.start:,} bytes from byte {run.start:,} on, which the batch has, are in no file any "
                f"more, as far as {os.uname().nodename} sees",
                path=self.place.path,
                remedy="give the folder into which files are rotated, too; to go on without, failOnDataLoss=false",
            )
        file, path = found
        file.goes_on = LineFraming(self.snapshot.form or PLAIN).goes_on
        stamp = file.stamp()
        file.text_size(stamp)  # which finds the newline that a last line may lack
        begin, end = (file.next_line(at) if at else 0 for at in (run.start, run.stop))
        snapshot = replace(self.snapshot, path=path, end=end, stamp=stamp, compression=file.compression)

        def check() -> None:
            # What is compressed is written once, and its end costs the way to it.
            is_same = file.stamp()[:4] == stamp[:4] if file.compression else _fits(file, self.place)
            if not is_same:
                raise TextMoved

        return FileRange.of_text(snapshot, Run(begin, end), file, check)


def located(place: TextPlace, opener: LineOpener, root: str) -> tuple[LineFile, str] | None:
    """The file that has all of the text up to this place, open, and its path. None where there is none for a while."""
    for look in range(_LOOKS):
        for path in _likely(place, root if look in (0, _LOOKS - 1) and place.seen.is_long else ""):
            with suppress(LogError, OSError):
                file = opener.open(path)
                if _may_be(file, path, place):
                    return file, path
                file.close()
        time.sleep(_PAUSE)
    return None


def _likely(place: TextPlace, root: str) -> Iterator[str]:
    """Where the text may lie; the likeliest first. `root`: all files there, too."""
    yield place.path
    yield from beside(os.path.dirname(place.path), [_Sought(place.path, place.key)])
    if root:
        with suppress(LogError, OSError):
            yield from (member.path for member in find_members(root, is_following=True))


def _may_be(file: LineFile, path: str, place: TextPlace) -> bool:
    """Whether the file has the text; of a short one, names must speak for it, too."""
    is_kin = os.path.dirname(path) == os.path.dirname(place.path) and family(path) == family(place.path)
    return (place.seen.is_long or is_kin or file.stamp()[:2] == place.key) and _fits(file, place)


def _fits(file: LineFile, place: TextPlace) -> bool:
    return file.written_size(file.stamp()) >= place.stop and place.seen.fits(file.read)


def read_text(part: TextPartition, layout: Layout, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The rows of a part of a text, each once. Raises LogChanged, and as read_partition does."""
    from jitdb.spark_ext.reading.batches import read_partition

    run = part.runs[0]
    done = [run]

    def note(records: Records) -> None:
        if len(records.seqs):
            seq, offset = int(records.seqs[-1]), int(records.offsets[-1])
            done[0] = Run(offset + 1, run.stop, seq + 1 if run.first_seq >= 0 else -1, run.stop_seq)

    while True:
        try:
            left = replace(part, runs=(done[0],))
            yield from read_partition(left, layout, permissive=options.permissive, done=note)
            return
        except TextMoved:
            time.sleep(_PAUSE)  # the next look finds it
        except LogChanged as error:
            if not part.may_lose:
                raise
            warnings.warn(LogWarning(f"it is left out: {error.reason}", path=part.place.path), stacklevel=2)
            return
