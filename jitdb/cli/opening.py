"""Open the logs of a command, read-only beside their writers; and say what is wrong with paths."""

from __future__ import annotations

import os
import re
import signal
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from jitdb.cli.failures import Failure, UsageError, note
from jitdb.common.words import counted, size_in_words
from jitdb.errors import LogError, NotALog
from jitdb.log.io.filenames import INDEXES, SIDECAR_SUFFIX
from jitdb.log.objects.door import exists as location_exists
from jitdb.log.objects.door import location_of
from jitdb.log.objects.urls import is_url

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.engine.progress import Bar
    from jitdb.log.any_log import AnyLog
    from jitdb.log.columnar.kept_rows import NewBar
    from jitdb.log.source import LogSource
    from jitdb.logset import LogSet
    from jitdb.logset.logset import AnyDatabase
    from jitdb.logset.member import Member

Seen = TypeVar("Seen")

_ONE: Final = (
    "this command takes files; count, query, tail, values and the other commands that ask, and info, indexes, verify "
    "and export, take folders and patterns, too"
)
_OPEN_FILES: Final = 8192  # wanted for many logs, as far as the system allows


@contextmanager
def database(options: Namespace, log: LogSource | None = None) -> Iterator[JITDB]:
    """The database of `options.log`, or of an open log. Raises Failure if there is no log, else what Log raises."""
    if "bundle" in options:
        from jitdb.log.lines.bundles.bundled_lines import BundledLines

        log = BundledLines(options.bundle)
    if log is None:
        with log_only(options) as log, database(options, log) as db:
            yield db
        return
    from jitdb.engine.database import JITDB

    _keep_little(options)
    with JITDB(log, index_folder(options), progress=wanted_progress(options), **_settings(options)) as db:
        _note_format(log, options)
        _note_rows(log, options)
        db.warns_of_questions = False  # commands print these notes after the answer: notes.note_missing
        try:
            check_time(db, options)
            _check_as_of(db, options)
            yield db
        except KeyboardInterrupt as interrupt:
            if 0 < db.status.done < db.status.total and options.indexes != "none":
                interrupt.add_note("what the scan had indexed is kept: the next question goes on from there")
            raise


def _keep_little(options: Namespace) -> None:
    """Of indexes, where this process ends with the answer."""
    from jitdb.indexes.segment import blob_cache

    blob_cache.is_for_one |= getattr(options, "is_alone", False)


@contextmanager
def asked(options: Namespace, *, may_come: bool = False) -> Iterator[AnyDatabase]:
    """The database of the log, or the set of logs, in `options.log`; or `options.db`, which a notebook has open.

    may_come: a folder may be empty yet

    Raises Failure, LogError.
    """
    if getattr(options, "db", None) is not None:
        _check_as_of(options.db, options)
        yield options.db
        return
    with _as_file(options) as given, log_set(given, may_come=may_come) if is_many(given) else database(given) as db:
        yield db
        if not may_come:
            _note_empty(db, options)


@contextmanager
def seen_or_asked(
    options: Namespace, look: Callable[[AnyLog, Path, Namespace], Seen | None] | None
) -> Iterator[tuple[Seen | None, AnyDatabase | None]]:
    """What `look` finds in a log and its fresh indexes, without loading the engine (Command.look). If it finds nothing:
    None, and the database.
    """
    _keep_little(options)
    if is_many(options):
        load_numpy(options)
        with log_set(options) as logs:
            yield None, logs
            _note_empty(logs, options)
        return
    with _as_file(options) as options, log_only(options) as log:
        others = getattr(options, "as_of", None) is not None or options.indexes == "none"
        others = others or getattr(options, "log_tz", None) is not None  # glances are at what UTC says
        found = None if look is None or others else look(log, index_place(options, log), options)
        if found is not None:
            yield found, None
            return
        load_numpy(options)
        with database(options, log) as db:
            yield None, db
            _note_empty(db, options)


def _note_empty(db: AnyDatabase, options: Namespace) -> None:
    """Note that there is nothing in the files that were asked."""
    paths = paths_of(db)
    if paths and not any(is_url(path) or (os.path.exists(path) and os.path.getsize(path)) for path in paths):
        one = options.log if os.path.isfile(options.log) else paths[0]
        note(options, f"{one} is empty" if len(paths) == 1 else f"all {len(paths):,} files are empty")


def _as_file(options: Namespace) -> AbstractContextManager[Namespace]:
    """The options to open the log with, which may be standard input."""
    if options.log != "-":
        return nullcontext(options)
    from jitdb.cli.input.standard_input import stdin_as_file

    return stdin_as_file(options)


def _note_rows(log: LogSource, options: Namespace) -> None:
    """Say once where the rows of a Parquet or Arrow file are kept."""
    kept = getattr(log, "kept", None)
    if kept is None or kept.read is None or not sys.stderr.isatty():
        return
    rows, size = counted(kept.read, "row", "rows"), size_in_words(kept.bytes)
    if options.indexes == "none":
        note(options, f"{options.log}: its {rows} were read for this question alone ({size})")
    else:
        note(options, f"{options.log}: its {rows} were read once, and are kept in {log.sidecar} ({size})")


def _note_format(log: LogSource, options: Namespace) -> None:
    """Say once, before a file's first scan, what its lines are taken for."""
    row = getattr(log.framing, "row", None)
    if row is None or getattr(options, "log_format", None) or not sys.stderr.isatty():
        return
    if not index_place(options, log).exists():
        note(options, f"the lines of {log.path} are read as {row.title} (--log-format says otherwise)")


def is_many(options: Namespace) -> bool:
    """Whether several logs are named: by a folder that is no sidecar, a pattern, or several files."""
    log = options.log
    if log == "-":
        return False
    if is_url(log):
        return bool(options.more_logs) or is_folder_of_objects(log)
    if options.more_logs or (os.path.isdir(log) and not log.rstrip("/").endswith(".jitdb")):
        return True
    return is_pattern(log) and not os.path.exists(log)


def is_folder_of_objects(url: str) -> bool:
    """Whether a URL names several objects."""
    from jitdb.log.objects.listing import names_several
    from jitdb.log.objects.urls import ObjectUrl

    return names_several(ObjectUrl.of(url))


def is_pattern(path: str) -> bool:
    """Whether it has a wildcard."""
    return any(sign in path for sign in "*?[")


@contextmanager
def log_set(options: Namespace, *, may_come: bool = False) -> Iterator[LogSet]:
    """The set of logs; records have the fields of their logs' paths if columns are chosen. Raises Failure, LogError."""
    from jitdb.log.lines.keeping.places import shelf_at
    from jitdb.logset.member import no_file_at
    from jitdb.logset.opening import open_many

    refuse_of_several(options, "--as-of", "--block-size")
    allow_open_files()
    _keep_little(options)
    given = {
        **_settings(options),
        "allow_prefix": options.allow_prefix,
        "each": options.each,
        "format": options.log_format,
    }
    labelled = bool(getattr(options, "fields", None))
    places = [options.log, *options.more_logs]
    with open_many(
        places,
        shelf_at(options.indexes) or index_folder(options),
        codec=options.codec,
        labelled=labelled,
        progress=wanted_progress(options),
        **given,
    ) as logs:
        if not logs.members:
            if not may_come or not os.path.isdir(options.log):
                raise no_file_at(options.log)
            note(options, f"no log is in {options.log} yet: those that come are followed")
        logs.warns_of_questions = False
        try:
            check_time(logs, options)
            yield logs
        except KeyboardInterrupt as interrupt:
            if any(logs.scanning) and options.indexes != "none":
                done, total = logs.scanning
                interrupt.add_note(f"{done:,} of {total:,} logs are indexed: the next question goes on from there")
            raise


def refuse_of_several(options: Namespace, *flags: str) -> None:
    """Raises UsageError for options that need one log."""
    for flag in flags:
        if getattr(options, flag.strip("-").replace("-", "_"), None) is not None:
            raise UsageError(f"{flag} is about one log, and these are several", "name one log, or leave it out")


def _check_as_of(db: AnyDatabase, options: Namespace) -> None:
    """Raises Failure if --as-of is no state of the log, UsageError if there are several logs."""
    if getattr(options, "as_of", None) is None:
        return
    from jitdb.cli.places import check_as_of
    from jitdb.logset import LogSet

    if isinstance(db, LogSet):
        refuse_of_several(options, "--as-of")
    else:
        check_as_of(db.log, options.as_of)


def check_time(db: AnyDatabase, options: Namespace) -> None:
    """Raises Failure if --since, --until or --older-than is given and no record has a time in the fields for it."""
    if not any(map(vars(options).get, ("since", "until", "older_than"))):
        return
    from jitdb.cli.output.notes import no_time_found, no_time_in, time_fields
    from jitdb.common.paths import ANY, parse_path
    from jitdb.common.times import time_of
    from jitdb.engine.hinting.fields import as_records, is_known, unknown_field
    from jitdb.engine.hinting.knowledge import SAMPLE
    from jitdb.engine.roles import has_time
    from jitdb.operators import gte
    from jitdb.operators.summaries.fields import fields_in

    paths = list(map(parse_path, options.timestamp)) if options.timestamp else list(db.declared_time)
    records = db.sample(SAMPLE)
    known = fields_in(records)
    if not known or has_time(records, paths) or db.count(gte(float("-inf"), "timestamp")):
        return
    odd = next((path for path in paths if is_known(path, known)), None)
    if odd is not None:
        raise Failure(*no_time_in(odd, known[odd], records))
    if options.timestamp:
        raise Failure("; ".join(unknown_field("no record has a time under", path, known) for path in paths))
    shown, meant = time_fields(db, known, options)
    within = next((path for path, value in known.items() if ANY in path and time_of(value) is not None), None)
    if not meant and within is not None and len(records) == 1:
        raise Failure(f"no record has a time under {shown}", f"the elements of an array do: {as_records(within)}")
    if meant:
        raise Failure(f"no record has a time under {shown}", f"say where it is: --timestamp {meant}")
    raise Failure(*no_time_found(records, known))


def paths_of(db: AnyDatabase) -> list[str]:
    """The files of the logs."""
    from jitdb.engine.database import JITDB

    return [str(db.log.path)] if isinstance(db, JITDB) else [member.path for member in db.members]


def each_log(options: Namespace) -> Iterator[Namespace]:
    """The options for each log, by path; for one log the same options. Raises Failure, LogError."""
    if not is_many(options):
        yield options
        return
    from jitdb.logset.member import find_members, no_file_at
    from jitdb.logset.opening import folder_of

    members = find_members([options.log, *options.more_logs])
    if not members:
        raise no_file_at(options.log)
    for member in _readable(members, options):
        given = getattr(options, "indexes", "")
        folder = given if given in ("", "none") else folder_of(member, given)
        yield Namespace(**{**vars(options), "log": member.path, "more_logs": [], "indexes": folder})


def _readable(members: list[Member], options: Namespace) -> list[Member]:
    """These without the files that nobody named and that are no logs, which a warning names. Raises LogError."""
    from jitdb.errors import CodecError
    from jitdb.log.lines.form import KNOWN
    from jitdb.logset.passing import PassedOver

    passed = PassedOver([options.log, *options.more_logs])
    for member in [member for member in members if not passed.is_named(member)]:
        one = Namespace(**{**vars(options), "log": member.path, "indexes": "none"})
        one.log_format = options.log_format or KNOWN
        with warnings.catch_warnings(), suppress(LogError, CodecError):  # else what the command is about
            warnings.simplefilter("ignore")
            try:
                check_readable(one)
            except NotALog as error:
                if not passed.take(member, error):
                    raise
    passed.tell(members)
    return [member for member in members if member not in passed.errors]


def check_readable(options: Namespace) -> None:
    """Raises LogError where the file is no log. The rows of a Parquet or Arrow file are not read for that."""
    from jitdb.log.columnar.table_file import TableFile, kind_at

    check_exists(options.log)
    kind = kind_at(options.log)
    if kind is None:
        _opened(options, writing=False).close()
    else:
        TableFile(location_of(options.log), kind).check()


def each_file(options: Namespace) -> Iterator[Namespace]:
    """The same for commands that take files only, no folders or patterns. Raises Failure, UsageError."""
    unknown = [path for path in options.more_logs if not exists(path)]
    if unknown:
        raise UsageError(f"{options.command}: too many operands: {unknown[0]} is no file")
    for path in (options.log, *options.more_logs):
        check_exists(path)
    yield from each_log(options)


def each_bundle(options: Namespace, *, is_whole: bool = False) -> Iterator[Namespace]:
    """The options for each bundle of files of these logs. `is_whole`: only where all files are what they were."""
    from jitdb.logset.member import find_members
    from jitdb.logset.opening import bundles_of

    for bundle in bundles_of(find_members([options.log, *options.more_logs]), index_folder(options)):
        if is_whole and bundle.is_changed():
            continue
        each = {"log": str(bundle.place), "more_logs": [], "indexes": "", "bundle": bundle}
        yield Namespace(**{**vars(options), **each})


def allow_open_files() -> None:
    """Raise the limit of open files, so that many logs can stay open."""
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY:
            most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    except (ImportError, OSError, ValueError):
        pass  # then fewer logs stay open


def index_folder(options: Namespace) -> str | None:
    """The folder of index files; None: beside the log; "memory": none."""
    given: str = getattr(options, "indexes", "")
    return "memory" if given == "none" else None if is_url(given) else given or None


def index_place(options: Namespace, log: LogSource) -> Path:
    """The folder of a log's index files on disk."""
    is_usual = options.indexes in ("", "none") or is_url(options.indexes)
    return log.sidecar / INDEXES if is_usual else Path(options.indexes)


def _settings(options: Namespace) -> dict[str, Any]:
    """The options of a database."""
    names = ("timestamp", "time_unit", "log_tz", "sequence", "threads", "memory")
    given = {name: value for name in names if (value := getattr(options, name, None))}
    most = getattr(options, "max_bytes", None)
    return given if most is None else {**given, "max_bytes": most}


def log_only(options: Namespace, *, writing: bool = False) -> AnyLog:
    """The log of `options.log`, without indexes."""
    check_exists(options.log)
    return _opened(options, writing)


def _opened(options: Namespace, writing: bool) -> AnyLog:
    from jitdb.log.any_log import open_any
    from jitdb.log.lines.form import line_form
    from jitdb.log.lines.keeping.places import shelf_at

    given_each, given_format = getattr(options, "each", None), getattr(options, "log_format", None)
    form = line_form(getattr(options, "allow_prefix", False), given_each, given_format)
    given = {"codec": options.codec, "block_size": options.block_size, "folder": index_folder(options)}
    given["shelf"] = shelf_at(getattr(options, "indexes", None))
    return open_any(options.log, read_only=not writing, form=form, bar=_bar(options), **given)


def _bar(options: Namespace) -> NewBar:
    """What makes a progress bar: the engine is imported only where one is needed."""

    def bar(title: str, total: int) -> Bar:
        from jitdb.engine.progress import Bar

        return Bar(title, total, wanted_progress(options))

    return bar


def load_numpy(options: Namespace) -> None:
    """Import numpy. It would turn Ctrl-C during its import into ImportError, so Ctrl-C ends the process meanwhile."""
    is_heard = getattr(options, "is_alone", False) and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    import_module("numpy")
    if is_heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def wanted_progress(options: Namespace) -> bool | None:
    """False for no progress bar; None: one on a terminal."""
    return False if options.no_progress or options.quiet else None


def check_exists(path: str) -> None:
    """Raises Failure if it is no file, with what was probably meant."""
    if is_url(path):
        if not exists(path):
            raise Failure(f"{path}: there is no such object, and none below it")
        return
    if os.path.isdir(path):
        stem = path.rstrip("/").removesuffix(SIDECAR_SUFFIX)
        if stem != path.rstrip("/"):
            there = f"the log is {stem}" if os.path.isfile(stem) else "name the log, or a folder of logs"
            raise Failure(f"{path}: this is a folder of indexes, not a log", there)
        raise Failure(f"{path}: this is a folder, not a log", _ONE)
    if not exists(path):
        if path == "-":
            raise Failure(
                "-: this command takes no standard input", "count, query, tail, values and others that ask do"
            )
        if is_pattern(path):
            raise Failure(f"{path}: this is a pattern, not a log", _ONE)
        near = nearest_file(path)
        if re.search(r"\{[^{}]*,[^{}]*\}", path):
            near = "the shell makes several names of {a,b} where no quotes are around it"
        raise Failure(f"{path}: there is no such file", *([near] if near else []))
    if not os.path.isfile(path):
        raise Failure(f"{path}: this is no file but a device or a pipe; a log is a file")


def exists(path: str) -> bool:
    """Whether the path exists. Raises Failure if its folder must not be entered."""
    if is_url(path):
        try:
            return location_exists(path)
        except OSError as error:
            raise Failure(f"{path}: {error.strerror or error}") from error
    try:
        os.stat(path)
    except PermissionError as error:
        from jitdb.log.io.filenames import followed

        followed(path)  # also raised for a protected link
        raise Failure(f"{path}: the folder {os.path.dirname(path) or '.'} may not be entered") from error
    except (OSError, ValueError):
        return False
    return True


def check_free(path: str, done: str, options: Namespace) -> None:
    """Raises Failure for a log of a store, which relies on its records, unless --force is given."""
    from jitdb.stores.folders import store_of

    store = None if options.force else store_of(path)
    if store is not None:
        failure = Failure(f"{path}: this log is part of {store.name}, which breaks if it is {done}", store.remedy)
        failure.add_note("--force does it nevertheless")
        raise failure


def nearest_file(path: str) -> str:
    """A hint: the file with the most similar name in the same folder; \"\" if there is none."""
    from jitdb.common.spelling import nearest

    folder, name = os.path.split(path)
    try:
        there = [entry for entry in os.listdir(folder or ".") if not entry.endswith(".jitdb") and entry != name]
    except FileNotFoundError:
        return f"there is no folder {folder}"
    except NotADirectoryError:
        return f"{folder} is no folder"
    except OSError:
        return ""  # it may be entered but not listed
    near = nearest(name, there, 0.75)
    return f"did you mean {os.path.join(folder, near)}?" if near else ""
