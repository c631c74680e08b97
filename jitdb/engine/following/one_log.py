"""A live question to the file of lines that has one name: what comes to it, and to the files that have it later."""

from __future__ import annotations

import os
from contextlib import nullcontext, suppress
from typing import Final

from jitdb.engine.cursor import ONE, LogPlace, cursor_of, is_cursor_of_files, parse_cursor
from jitdb.engine.following.followed import Askable, Files
from jitdb.engine.following.follower import Follower
from jitdb.errors import LogError
from jitdb.log.lines.windows import LineOpener
from jitdb.operators.question import Question
from jitdb.operators.tasks.live_seqs import sources_of

_MOST: Final = 64  # files that had the name, and are open


def is_of_places(question: Question) -> bool:
    """Whether it names places in one file, so that it says nothing of the files that have the name later."""
    leaves = question.operation.leaves()
    return bool(sources_of(question.operation)) or any(leaf.names_places for leaf in leaves)


def follow_name(db: Askable, question: Question) -> Follower:
    """See JITDB.feed. Raises QueryError for a cursor of another log."""
    path = str(db.log.path)
    live = question.live
    if live is not None and live.after is not None and not is_cursor_of_files(live.after):
        place = parse_cursor(live.after)
        place.rank(db.log, int)
        live = live._replace(after=cursor_of(ONE, [LogPlace(path, place).entry()]))
    lines = LineOpener(db.log.codec, db.log.framing.form, is_said=True)  # type: ignore[attr-defined]  # of lines

    def paths() -> list[str]:
        with suppress(LogError, OSError):  # counts beside a live question show what that gave
            db.refresh()
        return [path] if os.path.exists(path) else []

    files = Files(
        paths, frozenset([path]), lines, db.over,
        lambda _: nullcontext(db), lambda _: question.operation, lambda record, _: record, _MOST, ONE,
    )  # fmt: skip
    return Follower(question.changed(live=live), files)
