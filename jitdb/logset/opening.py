"""`jitdb.open_many`: a set of logs at some places."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from jitdb.common.arguments import file_path, flag, whole_number
from jitdb.common.paths import SEQUENCE
from jitdb.common.times import AUTO, Unit
from jitdb.engine.database import JITDB
from jitdb.engine.opening import open as open_one
from jitdb.errors import InvalidArgument
from jitdb.logset.logset import LogSet
from jitdb.logset.members import Member, Where

if TYPE_CHECKING:
    from jitdb.log.codecs import Codec


def open_many(
    where: Where | Iterable[Where],
    indexes: Where | None = None,
    *,
    codec: str | Codec | None = None,
    allow_prefix: bool = False,
    each: str | Sequence[str] | None = None,
    labelled: bool = False,
    timestamp: str | Sequence[str | Sequence[str]] | None = None,
    time_unit: Unit = AUTO,
    sequence: str | Sequence[str] = SEQUENCE,
    threads: int = 0,
    progress: bool | None = None,
) -> LogSet:
    """Ask many logs as one: files, patterns such as "logs/*/*.log", folders, or several of these.

    indexes:  a folder for the index files of all logs, a folder in it each; by default each log's own; "memory" keeps
              them in memory
    labelled: see LogSet
    threads:  that scan; 0 is one a core, up to eight
    The rest is explained at open(), and holds for each log. All are opened read-only. Raises LogError.
    """
    folder = None if indexes is None else file_path(indexes)
    count = whole_number("threads is a number", threads, 0, InvalidArgument)

    is_prefixed = flag("allow_prefix", allow_prefix, InvalidArgument)

    def open_log(member: Member) -> JITDB:
        return open_one(
            member.path, folder_of(member, folder), codec=codec, read_only=True, allow_prefix=is_prefixed, each=each,
            timestamp=timestamp, time_unit=time_unit, sequence=sequence, threads=count, progress=False,
        )  # fmt: skip

    is_labelled = flag("labelled", labelled, InvalidArgument)
    return LogSet(where, open_log, labelled=is_labelled, threads=count, progress=progress)


def folder_of(member: Member, folder: str | None) -> str | None:
    """Where the indexes of one log are, among those of others: by its name, and by its path."""
    if folder is None or folder == "memory":
        return folder
    path = os.path.realpath(member.path)
    return os.path.join(folder, f"{os.path.basename(path)}-{blake2b(os.fsencode(path), digest_size=8).hexdigest()}")
