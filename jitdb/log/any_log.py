"""Opening what is at a path, whichever kind of log it is: one of jitdb's, or JSON Lines that somebody else writes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

from jitdb.errors import NotALog
from jitdb.log.lines.detection import is_lines, odd_file
from jitdb.log.lines.form import PLAIN, LineForm

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
    form:   of JSON Lines; of a log of jitdb's it says nothing

    Raises LogError, CodecError.
    """
    is_json = codec is None or (codec if isinstance(codec, str) else codec.name) == "json"
    may_be_lines = is_json and block_size is None
    if not (may_be_lines and is_lines(path, form, said=codec is not None)):
        try:
            from jitdb.log.log import Log  # with all that writes, recovers and repairs one

            return Log(path, codec=codec, block_size=block_size, read_only=read_only)
        except NotALog as error:
            if not (may_be_lines and is_lines(path, form)):  # the file may have come between the two looks
                raise odd_file(path) or error from None
    from jitdb.log.lines.line_log import LineLog

    return LineLog(path, codec=codec or "json", folder=folder, form=form)
