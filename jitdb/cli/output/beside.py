"""Records with the text that stands beside them in a file of lines: `jitdb query --text`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from jitdb.log.lines.line_log import LineLog
from jitdb.logset import LogSet
from jitdb.logset.members.finding import fields_of

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.logset.logset import AnyDatabase

BEFORE: Final = "_prefix"  # keys of what is put into a record: what stands before it in its line
BEHIND: Final = "_text"  # and the lines behind it, up to the next record

_CUT: Final = "\n…"


def with_text(db: AnyDatabase, places: Sequence[Any], *, labelled: bool) -> list[Any]:
    """The records at these places, which a question gave as_offsets; those that are gone by now are left out.

    labelled: those of sets have the fields of their logs' paths

    Raises LogError.
    """
    if not isinstance(db, LogSet):
        return list(_of_log(db, places, {}))
    found: list[Any] = []
    for path, group in groupby(places, key=lambda place: place.path):
        with db.using(path) as one:
            found += _of_log(one, [place.offset for place in group], fields_of(path) if labelled else {})
    return found


def _of_log(db: JITDB, offsets: Sequence[int], more: Any) -> Iterator[Any]:
    log = db.log
    for offset, data in zip(offsets, log.get_many_raw(offsets), strict=True):
        if data is None:
            continue
        record = log.codec.decode(data)
        if isinstance(record, dict):
            record = {**record, **more}
            if isinstance(log, LineLog):
                around = log.text_around(offset)
                behind = around.behind + _CUT if around.is_cut else around.behind
                record |= {name: text for name, text in ((BEFORE, around.before), (BEHIND, behind)) if text}
        yield record
