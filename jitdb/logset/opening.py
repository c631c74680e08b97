"""`jitdb.open_many`: a set of logs at some places."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitdb.common.arguments import file_path, flag, whole_number
from jitdb.common.digests import blake2b
from jitdb.common.memory import limit as limit_memory
from jitdb.common.paths import SEQUENCE
from jitdb.common.times import AUTO, Unit
from jitdb.engine.budget import Budget
from jitdb.engine.database import JITDB
from jitdb.engine.database import open as open_one
from jitdb.errors import InvalidArgument
from jitdb.log.codecs import get_codec
from jitdb.log.io.filenames import INDEXES, STORE
from jitdb.log.lines.bundles.bundle import lstamp
from jitdb.log.lines.bundles.bundled_lines import BundledLines
from jitdb.log.lines.bundles.gathering import Where as BundleWhere
from jitdb.log.lines.bundles.stores import stored_bundles
from jitdb.log.lines.form import KNOWN, line_form
from jitdb.log.lines.keeping.places import place_of, shelf_at, store_of, stores_of
from jitdb.log.lines.windows import LineOpener
from jitdb.log.objects.door import location_of
from jitdb.log.objects.shelf import Shelf
from jitdb.log.objects.urls import folders_above, is_url
from jitdb.logset.bundling import Bundles, Together, time_of
from jitdb.logset.logset import LogSet
from jitdb.logset.member import Member, Where

if TYPE_CHECKING:
    from jitdb.log.codecs import Codec
    from jitdb.log.lines.bundles.bundle import Bundle
    from jitdb.log.source import LogSource


def open_many(
    where: Where | Iterable[Where],
    indexes: Where | Shelf | None = None,
    *,
    codec: str | Codec | None = None,
    allow_prefix: bool = False,
    each: str | Sequence[str] | None = None,
    format: str | None = None,
    labelled: bool = False,
    timestamp: str | Sequence[str | Sequence[str]] | None = None,
    time_unit: Unit = AUTO,
    log_tz: str | None = None,
    sequence: str | Sequence[str] = SEQUENCE,
    threads: int = 0,
    progress: bool | None = None,
    follow: bool = False,
    memory: int | None = None,
    max_bytes: int | None = None,
) -> LogSet:
    """Ask many logs as one: files, patterns such as "logs/*/*.log", folders, or several of these.

    indexes:  a folder for the index files of all logs, a folder in it each; by default each log's own; "memory" keeps
              them in memory
    labelled, follow: see LogSet
    threads:  that scan; 0 is one a core, up to eight
    max_bytes: of all these logs together
    The rest is explained at open(), and holds for each log. All are opened read-only. A pattern or a
    folder may have no file yet: the first question warns of that. Raises LogError.
    """
    limit_memory(memory)
    shelf = shelf_at(indexes)
    folder = None if indexes is None or shelf is not None else file_path(indexes)
    count = whole_number("threads is a number", threads, 0, InvalidArgument)
    is_prefixed = flag("allow_prefix", allow_prefix, InvalidArgument)
    settings: dict[str, Any] = {
        "timestamp": timestamp, "time_unit": time_unit, "log_tz": log_tz, "sequence": sequence, "threads": count,
        "progress": False, "max_bytes": Budget.of(max_bytes),
    }  # fmt: skip

    where = [where] if isinstance(where, (str, os.PathLike)) else list(where)
    named = {os.fspath(place) for place in where}

    def open_log(member: Member) -> JITDB:
        if isinstance(member, Together):
            return JITDB(BundledLines(member.bundle), None if member.bundle.place else "memory", **settings)
        is_alone = is_prefixed or each or format or member.path in named
        return open_one(
            member.path, shelf or folder_of(member, folder), codec=codec, read_only=True, allow_prefix=is_prefixed,
            each=each, format=format if is_alone else KNOWN, **settings,
        )  # fmt: skip

    def over(log: LogSource) -> JITDB:
        return JITDB(log, "memory", **settings)

    form = line_form(is_prefixed, each, format)
    is_json = codec is None or (codec if isinstance(codec, str) else codec.name) == "json"
    lines = LineOpener(get_codec(codec or "json"), form, codec is not None) if is_json else None
    is_plain = codec is None and form.is_plain
    bundles = None
    if is_plain and shelf is None:
        budget: Budget | None = settings["max_bytes"]
        kept = BundleWhere(partial(_stores_at, folder), partial(_store_of, folder), partial(_has_own, folder), time_of)
        kept = kept if budget is None else kept._replace(may_read=budget.check)
        bundles = Bundles(kept, is_plain=bool(format), is_timed=timestamp is not None)
    is_labelled, follows = flag("labelled", labelled, InvalidArgument), flag("follow", follow, InvalidArgument)
    return LogSet(
        where, open_log, lines=lines, over=over, bundles=bundles, labelled=is_labelled, threads=count,
        progress=progress, follow=follows,
    )  # fmt: skip


def bundles_of(members: Iterable[Member], indexes: str | None) -> list[Bundle]:
    """The bundles on disk that have files of these logs. `indexes`: as for open_many."""
    paths = {member.path if is_url(member.path) else os.path.realpath(member.path) for member in members}
    found: list[Bundle] = []
    for folder in sorted({above for path in paths for above in folders_above(path)}):
        for store in _stores_at(indexes, folder):
            found += stored_bundles(folder, store)
    return [bundle for bundle in found if bundle.kind.form is not None and not paths.isdisjoint(bundle.paths())]


def _stores_at(indexes: str | None, folder: str) -> list[Path]:
    """Where bundles of this folder may be."""
    own = folder_of(Member(folder), indexes)
    if own is None:
        return stores_of(folder)
    return [] if own == "memory" else [Path(own, STORE)]


def _store_of(indexes: str | None, folder: str) -> Path | None:
    """Where the bundles of this folder's files are; None: in memory."""
    own = folder_of(Member(folder), indexes)
    if own is None:
        return store_of(folder)
    return None if own == "memory" else Path(own, STORE)


def _has_own(indexes: str | None, path: str) -> bool:
    """Whether the file has indexes of its own."""
    own = folder_of(Member(path), indexes)
    if own is None:
        stamp = lstamp(path)
        return stamp is not None and os.path.isdir(place_of(location_of(path), stamp, "").folder / INDEXES)
    return own != "memory" and os.path.isdir(own)


def folder_of(member: Member, folder: str | None) -> str | None:
    """Where the indexes of one log are, among those of others: by its name, and by its path."""
    if folder is None or folder == "memory":
        return folder
    path = member.path if is_url(member.path) else os.path.realpath(member.path)
    return os.path.join(folder, f"{os.path.basename(path)}-{blake2b(os.fsencode(path), digest_size=8).hexdigest()}")
