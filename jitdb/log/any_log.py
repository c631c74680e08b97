"""Opening what is at a path, whichever kind of log it is: one of jitdb's, or JSON Lines that somebody else writes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

from jitdb.errors import InvalidArgument, NotALog, Remedy
from jitdb.log.lines.detection import form_at, misfit, odd_file
from jitdb.log.lines.form import KNOWN, PLAIN, LineForm

if TYPE_CHECKING:
    from jitdb.log.codecs import Codec
    from jitdb.log.lines.line_log import LineLog
    from jitdb.log.log import Log

AnyLog: TypeAlias = "Log | LineLog"


def open_any(
    path: str | os.PathLike[str],
    *,
    codec: str | Codec | None = None,
    block_size: int | None = None,
    read_only: bool = False,
    folder: str | os.PathLike[str] | None = None,
    form: LineForm = PLAIN,
) -> AnyLog:
    """The log at this path.

    folder: of the indexes of JSON Lines, if not the usual one; "memory": they have none
    form:   of JSON Lines; text before JSON means nothing to a log of jitdb's, whose records have none

    Raises LogError, CodecError, InvalidArgument where elements are to be the records of a log of jitdb's.
    """
    is_json = codec is None or (codec if isinstance(codec, str) else codec.name) == "json"
    may_be_lines = is_json and block_size is None
    found = form_at(path, form, said=codec is not None) if may_be_lines else None
    if found is None:
        try:
            from jitdb.log.log import Log  # with all that writes, recovers and repairs one

            ours = Log(path, codec=codec, block_size=block_size, read_only=read_only or not form.is_plain)
        except NotALog as error:
            found = form_at(path, form, any_text=True) if may_be_lines else None
            if found is None:  # the file may have come between the two looks
                raise _of_text(path, form) or misfit(path, form) or odd_file(path) or error from None
        else:
            return _whole(ours, form)
    from jitdb.log.lines.line_log import LineLog

    log = LineLog(path, codec=codec or "json", folder=folder, form=found)
    if form.each:
        from jitdb.log.lines.each_paths import refuse_missing

        refuse_missing(log, form.each)
    return log


def _of_text(path: str | os.PathLike[str], form: LineForm) -> NotALog | None:
    """The error for a file of which elements of JSON are asked, and whose lines are no JSON."""
    row = None if not form.each or (found := form_at(path)) is None else found.row
    if row is None:
        return None
    said = f"each names elements of JSON, and its lines are {row.title}"
    return NotALog(said, path=path, remedy=Remedy("leave each out", "leave --each out"))


def _whole(log: Log, form: LineForm) -> Log:
    """A log of jitdb's, unless elements of its records are asked for. Raises InvalidArgument."""
    said = "each" if form.each else "format" if form.format not in ("", KNOWN) else ""
    if not said:
        return log
    log.close()
    raise InvalidArgument(
        f"{said} says how lines become records, and this is a log of jitdb's",
        path=log.path,
        remedy=Remedy(f"leave {said} out", f"leave --{'log-' * (said == 'format')}{said} out"),
    )
