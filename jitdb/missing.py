"""What to say when there is no log at a path."""

from __future__ import annotations

import difflib
import os

from jitdb.errors import NotALog


def no_such_log(path: str | os.PathLike[str]) -> NotALog:
    """The error, with the nearest name in the folder and how to make a log."""
    folder, name = os.path.split(os.fspath(path))
    try:
        there = [entry for entry in os.listdir(folder or ".") if not entry.endswith(".jitdb")]
    except OSError:
        return NotALog(f"there is no folder {folder!r}", path=path)
    close = difflib.get_close_matches(name, there, n=1)
    hint = f"did you mean {os.path.join(folder, close[0])!r}?" if close else "pass create=True for a new, empty log"
    return NotALog(f"there is no such file; {hint}", path=path)
