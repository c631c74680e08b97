"""Opening what is at a path, whichever kind of log it is: one of jitdb's, or what somebody else writes: JSON Lines, a
Parquet or an Arrow file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from jitdb.errors import InvalidArgument, NotALog, Remedy
from jitdb.log.columnar.table_file import kind_at
from jitdb.log.lines.detection import form_at, is_lines, misfit, odd_file
from jitdb.log.lines.form import KNOWN, PLAIN, LineForm
from jitdb.log.objects.door import Location, exists, location_of
from jitdb.log.objects.urls import ObjectUrl, is_url

if TYPE_CHECKING:
    from jitdb.log.codecs import Codec
    from jitdb.log.columnar.kept_rows import NewBar
    from jitdb.log.columnar.table_file import TableKind
    from jitdb.log.columnar.table_log import TableLog
    from jitdb.log.lines.line_log import LineLog
    from jitdb.log.log import Log
    from jitdb.log.objects.shelf import Shelf

AnyLog: TypeAlias = "Log | LineLog | TableLog"


def open_any(
    path: str | os.PathLike[str],
    *,
    codec: str | Codec | None = None,
    block_size: int | None = None,
    read_only: bool = False,
    folder: str | os.PathLike[str] | None = None,
    form: LineForm = PLAIN,
    bar: NewBar | None = None,
    shelf: Shelf | None = None,
    may_read: Callable[[int, str], object] = lambda size, path: None,
) -> AnyLog:
    """The log at this path.

    folder: of what is kept of a file that somebody else writes, if not the usual one; "memory": nothing is
    form:   of JSON Lines; text before JSON means nothing to a log of jitdb's, whose records have none
    shelf:  what the indexes of objects in a store are shared by
    bar:    makes one for who waits until the rows of a Parquet or Arrow file are read
    may_read: raises where so many bytes of one in a store may not be read

    Raises LogError, CodecError, InvalidArgument where elements are to be the records of a log of jitdb's.
    """
    is_json = codec is None or (codec if isinstance(codec, str) else codec.name) == "json"
    may_be_lines = is_json and block_size is None
    found = form_at(path, form, said=codec is not None) if may_be_lines else None
    kind = kind_at(location_of(path)) if found is None else None
    if kind is not None:
        return _of_table(location_of(path), kind, codec, block_size, folder, form, bar, may_read)
    if found is None and is_url(path):
        found = form_at(path, form, any_text=True) if may_be_lines else None
        if found is None:
            return _own_object(path, codec, block_size, form)
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

    log = LineLog(path, codec=codec or "json", folder=folder, form=found, shelf=shelf)
    if form.path.steps:
        from jitdb.log.lines.each_paths import refuse_missing

        refuse_missing(log)
    return log


def _own_object(path: str | os.PathLike[str], codec: str | Codec | None, block_size: int | None, form: LineForm) -> Log:
    """A log of jitdb's own in a store. Raises NotALog where there is none, LogError."""
    error = _no_object(path, form)
    if error.remedy is None and exists(path):
        from jitdb.log.object_log import ObjectLog

        with suppress(NotALog):
            return _whole(ObjectLog(ObjectUrl.of(os.fspath(path)), codec=codec, block_size=block_size), form)
    raise error


def _no_object(path: str | os.PathLike[str], form: LineForm) -> NotALog:
    """The error for a URL where there is no log that can be asked."""
    try:
        if not exists(path):
            return NotALog("there is no such object", path=path)
    except OSError as error:
        return NotALog(error.strerror or str(error), path=path)
    said = "it is no log that can be asked in a store"
    return _of_text(path, form) or misfit(path, form) or odd_file(path) or NotALog(said, path=path)


def is_of_others(path: str | os.PathLike[str]) -> bool:
    """Whether the file at this path is a log that somebody else writes."""
    return is_lines(path) or kind_at(location_of(path)) is not None


def _of_table(
    path: Location,
    kind: TableKind,
    codec: str | Codec | None,
    block_size: int | None,
    folder: str | os.PathLike[str] | None,
    form: LineForm,
    bar: NewBar | None,
    may_read: Callable[[int, str], object],
) -> TableLog:
    """A Parquet or Arrow file. Raises InvalidArgument where it is said what only other kinds of log have."""
    from jitdb.log.columnar.kept_rows import no_bar
    from jitdb.log.columnar.table_log import TableLog

    given = {"codec": codec is not None, "block_size": block_size is not None, **_said_of(form)}
    said = next((name for name, is_given in given.items() if is_given), None)
    if said is not None:
        shell = f"log-{said}" if said == "format" else said.replace("_", "-")
        raise InvalidArgument(
            f"{said} says how the records of other files are read, and this is {kind.title}",
            path=path,
            remedy=Remedy(f"leave {said} out", f"leave --{shell} out"),
        )
    return TableLog(path, folder=folder, bar=bar or no_bar, may_read=may_read)


def _said_of(form: LineForm) -> dict[str, bool]:
    """What a caller says of lines that changes what their records are."""
    return {"each": bool(form.each), "format": form.format not in ("", KNOWN)}


def _of_text(path: str | os.PathLike[str], form: LineForm) -> NotALog | None:
    """The error for a file of which elements of JSON are asked, and whose lines are no JSON."""
    row = None if not form.each or (found := form_at(path)) is None else found.row
    if row is None:
        return None
    said = f"each names elements of JSON, and its lines are {row.title}"
    return NotALog(said, path=path, remedy=Remedy("leave each out", "leave --each out"))


def _whole(log: Log, form: LineForm) -> Log:
    """A log of jitdb's, unless elements of its records are asked for. Raises InvalidArgument."""
    said = next((name for name, is_given in _said_of(form).items() if is_given), None)
    if said is None:
        return log
    log.close()
    raise InvalidArgument(
        f"{said} says how lines become records, and this is a log of jitdb's",
        path=log.path,
        remedy=Remedy(f"leave {said} out", f"leave --{'log-' * (said == 'format')}{said} out"),
    )
