"""`jitdb import`: make a log from NDJSON, or add to one."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from jitdb.cli.failures import Failure, UsageError, note, say
from jitdb.cli.input.csv_input import check_delimiter
from jitdb.cli.input.input_batches import FORMATS, RowOptions
from jitdb.cli.opening import check_free, exists, nearest_file, wanted_progress
from jitdb.cli.options import changed, number, option
from jitdb.cli.output.output import show
from jitdb.cli.parser import command
from jitdb.common.formats import WITH_FIELDS, either
from jitdb.common.words import counted, size_in_words
from jitdb.errors import import_command

if TYPE_CHECKING:
    from jitdb.cli.input.importing import Importer
    from jitdb.errors import LogWriteFailed
    from jitdb.log import Log

_OTHERS: Final = ", ".join(name for name in WITH_FIELDS if name != "json")


@command(
    "SOURCE... LOG [options]",
    "Make a log from NDJSON (one JSON value a line), a JSON array, CSV, TSV, Parquet or Arrow; gzip and zstd are "
    "recognised, too. `-` is standard input. NaN and Infinity, which Python's json writes, are numbers. "
    "After an error or Ctrl-C, what was imported stays in the log, and the message says how to continue.",
    [
        ("import events.ndjson events.log", "make a log"),
        ("import --append new.ndjson events.log", "add to it"),
        ("import people.csv people.log", "from a table, whose first line names the fields"),
        ("import --follow - events.log < events.ndjson", "what a pipe brings, until it ends"),
    ],
    option("paths SOURCE... LOG", "files, then the log to make or to add to", nargs="*"),
    option("--append", "add to an existing log"),
    *("force", "skip_bad"),
    option(
        "--follow",
        "read a pipe that goes on: add to LOG or make it, skip bad lines, end with the pipe, SIGTERM or Ctrl-C",
    ),
    option("--from-line N", "begin at this line of the first source", type=number(1), default=1),
    changed(
        "allow_prefix",
        "lines may have text before the JSON, as from container runtimes or syslog; skip lines without JSON",
        group="",
    ),
    option("--format", "of the sources (default: detected)", choices=FORMATS, default="auto"),
    option("--delimiter C", "between the fields of CSV (default: detected; \\t: a tab)", default=""),
    option("--columns NAMES", "names of the fields, for CSV without a first line of names", default=""),
    option("--all-text", "in CSV, keep numbers, true and false as text"),
    option("--tagged", 'read {"$bytes": …} and the like back, as export writes them'),
    changed("codec", f"format of a new log: json (default; keeps lines as they are), {_OTHERS} or an installed one"),
    changed("block_size", "of a new log, such as 65536, 64K or 1M (default: 64K, or what the largest record needs)"),
)
def import_(options: Namespace) -> int:
    """Import all sources."""
    if options.codec == "raw":
        raise UsageError("import: --codec raw holds bytes, and a line holds a value", f"choose {either(WITH_FIELDS)}")
    sources, log_path = _operands(options.paths)
    if options.follow:
        return _follow(sources, log_path, options)
    _check_target(sources, log_path, options)
    return _import(sources, log_path, options)


def _follow(sources: list[str], log_path: str, options: Namespace) -> int:
    """Import what a pipe brings, until it ends or is interrupted."""
    files = [path for path in sources if os.path.isfile(path)]
    if files or len(sources) > 1:
        what = f"{files[0]} is a file" if files else "there are several"
        raise UsageError(f"import: --follow takes what one pipe brings, and {what}", "leave --follow out")
    if options.format not in ("auto", "ndjson"):
        raise UsageError(f"import: --follow takes lines of JSON as they come, and --format says {options.format}")
    options.format = "ndjson"
    options.skip_bad = True
    options.append = exists(log_path) and os.path.getsize(log_path) > 0
    _check_target(sources, log_path, options)
    return _import(sources, log_path, options)


def _import(sources: list[str], log_path: str, options: Namespace) -> int:
    """Import them to their end; with --follow until interrupted, too."""
    from jitdb.cli.input.importing import Importer
    from jitdb.cli.signals import Ending

    begin = time.perf_counter()
    numbers = (signal.SIGINT, signal.SIGTERM) if options.follow else (signal.SIGINT,)
    with Ending(numbers, once=True) as ending:
        importer = Importer(
            lambda codec: _open(log_path, sources, codec, options),
            codec=options.codec or "",
            first_line=options.from_line,
            rows=_row_options(options),
            may_grow=options.block_size is None,
            ending=ending,
            tell=partial(note, options),
        )
        try:
            total, shape = _add_all(importer, sources, log_path, options)
        except KeyboardInterrupt:
            if not options.follow:
                raise
            total, shape = 0, importer.shape or "no log was made"
    seconds = time.perf_counter() - begin
    done = importer.done
    if not options.quiet:
        speed = f", {done.records / seconds:,.0f} records/s" if done.records >= 1000 else ""
        read = f" from {size_in_words(total)}" if total else ""
        imported = counted(done.records, "record was", "records were")
        show(f"{imported} imported{read} into {log_path} ({shape}); {seconds:,.2f} s{speed}")
    if done.skipped:
        say(f"jitdb: {counted(done.skipped, f'{done.unit} was', f'{done.unit}s were')} skipped, being no records")
    return 1 if done.skipped else 0


def _row_options(options: Namespace) -> RowOptions:
    given = next((flag for flag in ("delimiter", "columns", "all_text") if getattr(options, flag)), None)
    if given and options.format not in ("auto", "csv", "tsv"):
        raise UsageError(f"import: --{given.replace('_', '-')} is for CSV, and --format says {options.format}")
    return RowOptions(
        "csv" if given and options.format == "auto" else options.format,
        check_delimiter(options.delimiter) if options.delimiter else "",
        _names(options.columns),
        all_text=options.all_text,
        tagged=options.tagged,
        stop_at_bad=not options.skip_bad,
    )


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    if len(set(names)) < len(names):
        raise UsageError(f"import: --columns names a field twice: {text}")
    return names


def _operands(paths: list[str]) -> tuple[list[str], str]:
    if not paths:
        import_.parser.error("SOURCE and LOG are missing")
    if len(paths) == 1:
        typed = "jitdb import - events.log" if paths[0] == "-" else import_command(paths[0])
        raise UsageError(
            "import: LOG is missing: the last operand is the log to make",
            f"for example: {typed}",
        )
    *sources, log = paths
    if log == "-":
        raise UsageError("import: a log cannot be written to standard output: the last operand is the log to make")
    if sources.count("-") > 1:
        raise UsageError("import: standard input can be read once only")
    return sources, log


def _check_target(sources: list[str], log: str, options: Namespace) -> None:
    """Raises Failure, LogError for errors that would otherwise show up only after the log is made."""
    from jitdb.log.io.filenames import followed

    for path in sources:
        if path == "-":
            continue
        if not exists(path):
            raise Failure(f"{path}: there is no such file", nearest_file(path))
        if os.path.isdir(path):
            raise Failure(f"{path}: this is a folder; import reads files")
        if os.path.exists(log) and os.path.samefile(path, log):
            raise Failure(f"{path}: this is the log itself")
    followed(log, is_written=True)
    if os.path.isdir(log):
        raise Failure(f"{log}: this is a folder; the last operand is the log to make")
    there, append = exists(log), options.append
    if there and not os.path.isfile(log):
        raise Failure(f"{log}: this is no file but a device or a pipe; a log needs a file")
    if there and not append and os.path.getsize(log) > 0:
        again = shlex.join(["jitdb", "import", "--append", *sources, log])
        raise Failure(f"{log}: there is a file already", f"--append adds to it, if it is a log: {again}")
    if append and not there:
        raise Failure(f"{log}: there is no log to add to", nearest_file(log) or "leave --append out to make it")
    if append:
        _refuse_table(log)
        check_free(log, "added to", options)


def _refuse_table(path: str) -> None:
    """Raises Failure for a Parquet or Arrow file."""
    from jitdb.log.columnar.table_file import kind_at

    kind = kind_at(path)
    if kind is not None:
        hint = f"make a log of it first: {import_command(path)}"
        raise Failure(f"{path}: it is {kind.title} that somebody else writes: nothing is added to it", hint)


def _open(path: str, sources: list[str], codec: str, options: Namespace) -> Log:
    """Open the log. A new one has this codec, and is readable by those who may read all its sources."""
    from jitdb.log import Log
    from jitdb.log.io.filenames import followed
    from jitdb.log.io.osfile import fs

    place, is_made = followed(path), False
    with suppress(FileExistsError, FileNotFoundError, PermissionError):  # the last two of which Log() has words for
        fs.make_file(place, _files_in(sources))
        is_made = True
    try:
        is_new = is_made or not os.path.getsize(place)
        return Log(place, codec=codec if is_new else options.codec, block_size=options.block_size)
    except BaseException:
        if is_made:
            fs.unlink(place)
        raise


def _files_in(sources: list[str]) -> Iterator[os.stat_result]:
    """The status of those that are files, of a shell's `<` too."""
    for path in sources:
        with suppress(OSError, ValueError, AttributeError):  # what stands for standard input need be no file
            found = os.stat(path) if path != "-" else os.fstat(sys.stdin.fileno())
            if stat.S_ISREG(found.st_mode):
                yield found


def _add_all(importer: Importer, sources: list[str], log_path: str, options: Namespace) -> tuple[int, str]:
    """Import the sources one after the other; return the bytes of those that are files, and the log's shape."""
    from jitdb.cli.input.sources import Source

    if options.append:
        _ = importer.target.log  # raises if it cannot be opened, before anything is read
    total = 0
    try:
        for place, path in enumerate(sources):
            if path == "-" and sys.stdin is not None and sys.stdin.isatty():
                note(options, "reading standard input; Ctrl-D ends it")
            with Source(path, allow_prefix=options.allow_prefix) as source:
                total += source.size or 0
                importer.add(place, source, options.from_line if place == 0 else 1, wanted_progress(options))
            if source.texts:
                note(options, f"{source.name}: {counted(source.texts, 'line', 'lines')} without JSON skipped")
        _ = importer.target.log  # made also of nothing
        importer.close()
    except BaseException as error:
        told = importer.end(error)
        _tell_how_to_go_on(told, importer, sources[importer.done.source :], log_path, options)
        if told is error:
            raise
        raise told from error
    return total, importer.shape


def _tell_how_to_go_on(
    error: BaseException, importer: Importer, rest: list[str], log_path: str, options: Namespace
) -> None:
    """Add to the error what is in the log, and the command that imports the rest."""
    from jitdb.cli.input.importing import LineFailure
    from jitdb.cli.input.sources import SourceDamaged
    from jitdb.errors import LogWriteFailed

    done = importer.done
    if isinstance(error, UsageError):
        return
    if not done.records and not options.append:
        error.add_note("nothing was imported")
        if isinstance(error, SourceDamaged):
            error.add_note("get the file whole first")
        if isinstance(error, LineFailure) and error.skippable:
            error.add_note("--skip-bad skips such lines")
        if isinstance(error, LogWriteFailed) and os.path.exists(log_path):
            error.add_note(f"{_remedy(error)}, and remove what was begun: {_removal(log_path)}")
        return
    name = "standard input" if rest[0] == "-" else rest[0]
    imported = counted(done.records, "record was", "records were")
    error.add_note(f"{imported} imported, {name} up to {done.unit} {done.line:,}; they stay in {log_path}")
    words = ["jitdb", "import", "--append", "--from-line", str(done.line + 1)]
    for name in ("skip_bad", "tagged", "allow_prefix", "format", "delimiter", "columns", "all_text"):
        given = getattr(options, name)
        if given and given != "auto":
            words += [f"--{name.replace('_', '-')}", *([] if given is True else [given])]
    command = shlex.join([*words, *rest, log_path])
    if isinstance(error, SourceDamaged):
        error.add_note(f"get the file whole first; then go on with: {command}")
    elif isinstance(error, LogWriteFailed):
        error.add_note(f"{_remedy(error)}, then go on with: {command}")
        if not options.append:
            error.add_note(f"to begin anew instead: {_removal(log_path)}")
    elif not isinstance(error, LineFailure):
        error.add_note(f"to go on from there: {command}")
    elif error.mendable:
        error.add_note(f"when the line is mended, go on with: {command}")
    if isinstance(error, LineFailure):
        error.add_note("--skip-bad skips such lines")


def _remedy(error: LogWriteFailed) -> str:
    from jitdb.log.io.osfile import NO_ROOM

    full = isinstance(error.__cause__, OSError) and error.__cause__.errno in NO_ROOM
    return "make room on the disk" if full else "see to the disk"


def _removal(log_path: str) -> str:
    return shlex.join(["rm", "-r", log_path, f"{log_path}.jitdb"])
