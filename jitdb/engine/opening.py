"""`jitdb.open`: the engine over the log at a path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jitdb.common import js_aliases
from jitdb.common.arguments import file_path, flag
from jitdb.common.paths import SEQUENCE
from jitdb.common.times import AUTO, Unit
from jitdb.errors import InvalidArgument

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.log.codecs import Codec


@js_aliases.keywords("jitdb.open()", js_aliases.LOG)
def open(
    path: str | os.PathLike[str],
    indexes: str | os.PathLike[str] | None = None,
    *,
    codec: str | Codec | None = None,
    block_size: int | None = None,
    read_only: bool = False,
    create: bool = False,
    allow_prefix: bool = False,
    each: str | Sequence[str] | None = None,
    timestamp: str | Sequence[str | Sequence[str]] | None = None,
    time_unit: Unit = AUTO,
    sequence: str | Sequence[str] = SEQUENCE,
    threads: int = 0,
    progress: bool | None = None,
    max_indexes: int | None = None,
    max_index_bytes: int | None = None,
) -> JITDB:
    """Open the log at `path`, or the JSON Lines that somebody else writes there, and ask it questions.

    codec, block_size: found by looking, unless given; of a new log "msgpack" and 65,536 bytes
    indexes:   the folder of the index files; by default inside the log's sidecar folder; "memory" keeps them in memory
               (and nothing else of JSON Lines on disk)
    read_only: open beside a process that writes; `refresh()` shows what it wrote
    create:    make a new log where there is none (otherwise that is an error: a misspelt path finds nothing)
    allow_prefix: of JSON Lines: text may stand before the JSON of a line, and lines without JSON are text (see
               docs/json-lines.md)
    each:      of JSON Lines: the path to the elements that are records, of batches in one line, such as
               "resourceLogs[].scopeLogs[].logRecords[]", or a list of keys and "[]"
    The rest is explained at JITDB. Raises LogError.
    """
    from jitdb.engine.database import JITDB
    from jitdb.log.any_log import open_any
    from jitdb.log.lines.form import LineForm, parse_each

    form = LineForm(flag("allow_prefix", allow_prefix, InvalidArgument), parse_each(each))
    create, read_only = flag("create", create, InvalidArgument), flag("read_only", read_only, InvalidArgument)
    if not (create and not read_only) and not os.path.exists(file_path(path)):
        from jitdb.log.opening.open_log import no_such_log

        raise no_such_log(path, read_only=read_only)
    log = open_any(path, codec=codec, block_size=block_size, read_only=read_only, folder=indexes, form=form)
    try:
        return JITDB(
            log, indexes, timestamp=timestamp, time_unit=time_unit, sequence=sequence, threads=threads,
            progress=progress, max_indexes=max_indexes, max_index_bytes=max_index_bytes,
        )  # fmt: skip
    except BaseException:
        log.close()
        raise
