"""What to say when there is no log at a path."""

from __future__ import annotations

import difflib
import os

from jitdb.errors import NotALog, Remedy


def no_such_log(path: str | os.PathLike[str], *, read_only: bool = False) -> NotALog:
    """The error, with the nearest name in the folder, or how to make a log; a reader has nothing to read.

    >>> no_such_log("no-such-folder/my.log")
    NotALog("no-such-folder/my.log: there is no folder 'no-such-folder'")
    """
    folder, name = os.path.split(os.fspath(path))
    try:
        there = [entry for entry in os.listdir(folder or ".") if not entry.endswith(".jitdb")]
    except OSError:
        return NotALog(f"there is no folder {folder!r}", path=path)
    nothing = "there is no such file" + (", so nothing to read" if read_only else "")
    close = difflib.get_close_matches(name, there, n=1)
    if close:
        return NotALog(nothing, path=path, remedy=f"did you mean {os.path.join(folder, close[0])!r}?")
    if read_only:
        return NotALog(nothing, path=path, remedy="a log is made by the process that writes it")
    remedy = Remedy("pass create=True for a new, empty log", "make a log with `jitdb import`")
    return NotALog(nothing, path=path, remedy=remedy)
