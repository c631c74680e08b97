"""Answers for other programs: NDJSON, a JSON array, CSV and TSV; Arrow and Parquet by pyarrow.

If no columns are named, all fields that records of the answer have are columns, for which all its records are looked
at. Maps within records become columns, arrays do not.
"""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.failures import Failure, UsageError, note
from jitdb.cli.opening import paths_of
from jitdb.cli.output.output import output
from jitdb.common.values import UNDEFINED, value_at

if TYPE_CHECKING:
    from jitdb.cli.output.output import Output
    from jitdb.common.paths import Path
    from jitdb.engine.database import JITDB
    from jitdb.engine.declared_time import Times
    from jitdb.engine.reading.paging import Page
    from jitdb.engine.reading.selecting import FieldBatch
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators import Operation
    from jitdb.operators.nodes.selection import Selection
    from jitdb.operators.question import Settings

FORMATS: Final = ("auto", "pretty", "table", "ndjson", "json", "csv", "tsv", "arrow", "parquet")
BINARY: Final = ("arrow", "parquet")

_ENDINGS: Final = {".csv": "csv", ".tsv": "tsv", ".arrow": "arrow", ".feather": "arrow", ".parquet": "parquet"}
BEFORE: Final = "_prefix"  # keys that --text adds to a record: the text before it in its line
BEHIND: Final = "_text"  # the lines after it, up to the next record

_CUT: Final = "\n…"

_PAGE: Final = 1000  # records read at a time


def format_of(options: Namespace, terminal: str) -> str:
    """The format of --format, or of the file's ending; else `terminal` on a terminal, and ndjson elsewhere.

    Raises UsageError for a format that no terminal shows, or that must not be compressed.
    """
    form: str = options.format
    name = "" if options.output in (None, "-") else options.output
    is_terminal = not name and bool(sys.stdout and sys.stdout.isatty())
    if form == "auto":
        stem = name.removesuffix(".gz")
        told = next((form for ending, form in _ENDINGS.items() if stem.endswith(ending)), "ndjson")
        form = terminal if is_terminal else told
    if form in BINARY and is_terminal:
        raise UsageError(f"{form} is not for a terminal", f"write a file: --output FILE.{form}")
    if form in BINARY and name.endswith(".gz"):
        raise UsageError(f"{form} is compressed by itself", f"--output {name.removesuffix('.gz')}")
    return form


def wants_pretty(options: Namespace) -> bool:
    """Whether an option says that records are shown as lines for people (pretty.py)."""
    is_styled = bool(options.full or options.traces or options.utc)
    return is_styled if options.format == "auto" else bool(options.format == "pretty")


# --- text ------------------------------------------------------------------------------------------------------------


def json_array(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines of JSON, or several with commas between them, as one array.

    >>> b"".join(json_array([b"1\\n", b"2\\n"]))
    b'[\\n1,\\n2\\n]\\n'
    """
    before = b"[\n"
    for line in lines:
        yield before + line.rstrip(b"\n")
        before = b",\n"
    yield b"\n]\n" if before == b",\n" else b"[]\n"


# --- Arrow and Parquet -----------------------------------------------------------------------------------------------


def check_pyarrow() -> None:
    """Raises Failure if it is not installed."""
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise Failure("Arrow and Parquet are written by pyarrow, which is not installed", "pip install 'jitdb[arrow]'")


class _Sink(io.RawIOBase):
    """The output, for pyarrow, which may close this one."""

    def __init__(self, out: Output) -> None:
        self._out = out

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._out.put(bytes(data))
        return len(data)


def write_arrow(
    out: Output,
    form: str,
    select: Selection,
    batches: Callable[[], Iterator[FieldBatch]],
    times: Times,
    is_stream: bool,
) -> dict[str, tuple[str, ...]]:
    """Write the columns of Query.to_arrow; return those that became text because their values are of several kinds,
    with these kinds. `batches` may be called twice: the types of columns depend on all values.

    is_stream: in Arrow's format of streams, which can be read from a pipe, not that of files
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    from jitdb.engine.reading.arrow_tables import ArrowAnswer

    answer = ArrowAnswer(select, batches, times)
    reader = answer.reader()
    schema = reader.schema
    sink = pa.PythonFile(_Sink(out), mode="w")
    if form == "parquet":
        writer = parquet.ParquetWriter(sink, schema, compression="zstd")
    else:
        writer = pa.ipc.new_stream(sink, schema) if is_stream else pa.ipc.new_file(sink, schema)
    with writer:
        for batch in reader:
            writer.write_batch(batch)
    return answer.several()


# --- what the options say of records ---------------------------------------------------------------------------------


def settings_of(options: Namespace) -> Settings:
    """Which records, in which order."""
    return {
        "start_from": options.skip,
        "descending": options.descending,
        "sort_by": options.sort or ("arrival" if options.arrival else "declared"),
        "as_of": options.as_of,
    }


def paths_by_name(names: list[str] | None) -> dict[str, Path]:
    """The paths of --fields, by the names of their columns. Raises QueryError."""
    from jitdb.operators.nodes.selection import selection

    return dict(selection("--fields", names)) if names else {}


def chosen(record: Any, paths: dict[str, Path]) -> dict[str, Any]:
    """These fields of a record, by the names of their columns, without absent ones."""
    held = ((name, value_at(record, path)) for name, path in paths.items())
    return {name: value for name, value in held if value is not UNDEFINED}


def note_unseen(db: AnyDatabase, rows: Iterable[Any], paths: dict[str, Path], options: Namespace) -> None:
    """Note which columns are empty in all of these rows, if there are rows."""
    held = [row.keys() for row in rows] if paths else []
    if held:
        from jitdb.cli.output.notes import note_called_otherwise, note_unknown_columns

        known = set().union(*held)
        note_unknown_columns(db, [path for name, path in paths.items() if name not in known], options)
        partly = [path for name, path in paths.items() if name in known and any(name not in keys for keys in held)]
        note_called_otherwise(db, options.operation, partly, options, taken="shown")


def with_text(db: AnyDatabase, places: Sequence[Any], *, labelled: bool) -> list[Any]:
    """The records at these places, which a question gave `as_offsets`, with the text around them in a file of lines
    (`jitdb query --text`). Records that are gone by now are left out. Raises LogError.

    labelled: records of a set of logs get the fields of their paths
    """
    from jitdb.logset import LogSet
    from jitdb.logset.member import fields_of

    if not isinstance(db, LogSet):
        return list(_of_log(db, places, {}))
    found: list[Any] = []
    for path, group in groupby(places, key=lambda place: place.path):
        with db.using(path) as one:
            found += _of_log(one, [place.offset for place in group], fields_of(path) if labelled else {})
    return found


def _of_log(db: JITDB, offsets: Sequence[int], more: Any) -> Iterator[Any]:
    from jitdb.log.lines.line_log import LineLog

    log = db.log
    for offset, data in zip(offsets, log.get_many_raw(offsets), strict=True):
        if data is None:
            continue
        record = log.codec.decode(data)
        if isinstance(record, dict):
            record = {**record, **more}
            if isinstance(log, LineLog):
                around = log.text_around(offset)
                behind = around.behind + _CUT if around.is_cut else around.behind
                record |= {name: text for name, text in ((BEFORE, around.before), (BEHIND, behind)) if text}
        yield record


# --- an answer -------------------------------------------------------------------------------------------------------


def write_answer(
    db: AnyDatabase, operation: Operation | None, settings: Settings, options: Namespace, form: str
) -> None:
    """Write the records that match, or their --fields, in any format but a table. Raises Failure, LogError."""
    if form == "raw":
        texts = records_of(db, operation, {**settings, "as_raw": True}, options, options.limit)
        with output(options.output, paths_of(db)) as out:
            out.write(text + b"\n" for text in texts)
        return
    from jitdb.engine.database import JITDB

    is_of_columns = options.fields and isinstance(db, JITDB) and not (options.offsets or options.text)
    if form not in ("ndjson", "json") or is_of_columns:
        _write_columns(db, operation, settings, options, form)
        return
    from jitdb.common.json_text import line_of

    unseen = paths_by_name(options.fields)
    is_empty = True

    def seen(records: Iterable[Any]) -> Iterator[Any]:
        nonlocal is_empty
        for record in records:
            for name in [name for name in unseen if name in record]:
                del unseen[name]
            is_empty = False
            yield record

    records = records_of(db, operation, settings, options, options.limit)
    with output(options.output, paths_of(db)) as out:
        lines = map(line_of, seen(records) if unseen else records)
        out.write(json_array(lines) if form == "json" else lines)
    if not is_empty and unseen:
        from jitdb.cli.output.notes import note_unknown_columns

        note_unknown_columns(db, unseen.values(), options)


def records_of(
    db: AnyDatabase, operation: Operation | None, settings: Settings, options: Namespace, limit: int | None
) -> Iterator[Any]:
    """The first `limit` records that match, or their --fields; with --offsets their offsets."""
    settings = {**settings, "as_offsets": options.offsets or options.text}
    if options.fields and not options.text:
        settings["select"] = options.fields
    pages: Iterator[Page] = db.pages(operation, limit=_PAGE if limit is None else min(_PAGE, limit), **settings)
    if not options.text:
        return islice(chain.from_iterable(page.data for page in pages), limit)
    labelled = bool(options.fields)
    records = islice(chain.from_iterable(with_text(db, page.data, labelled=labelled) for page in pages), limit)
    paths = paths_by_name(options.fields)
    return (chosen(record, paths) for record in records) if paths else records


def _write_columns(
    db: AnyDatabase, operation: Operation | None, settings: Settings, options: Namespace, form: str
) -> None:
    """Write the columns of the records that match: in all formats. Raises Failure, LogError."""
    from jitdb.cli.output.column_lines import objects, separated
    from jitdb.engine.checks import question_of
    from jitdb.engine.database import JITDB
    from jitdb.engine.reading.field_batches import first_of, portion_of

    if form in BINARY:
        check_pyarrow()
    if isinstance(db, JITDB) and settings.get("as_of") is None:  # so that both passes see the same records
        settings = {**settings, "as_of": db.log.durable_end - 1}
    limit: int | None = options.limit
    if options.fields:
        settings = {**settings, "select": options.fields}
    question = question_of(db, operation, settings, limit)
    select = db.selected_fields(question)
    question = question.changed(select=select, limit=portion_of(question), batch=None)
    unseen = dict(enumerate(path for _, path in select)) if options.fields else {}

    def batches() -> Iterator[FieldBatch]:
        for batch in first_of(db.field_batches(question), limit):
            for number in [number for number in unseen if batch.values(number).kind.any()]:
                del unseen[number]
            yield batch

    several: dict[str, tuple[str, ...]] = {}
    with output(options.output, paths_of(db)) as out:
        if select and form in BINARY:
            several = write_arrow(out, form, select, batches, db.times, is_stream=options.output in (None, "-"))
        elif select and form in ("ndjson", "json"):
            chunks = objects([name for name, _ in select], batches())
            out.write(chunks if form == "ndjson" else json_array(chunk[:-1].replace(b"\n", b",\n") for chunk in chunks))
        elif select:
            out.write(separated([name for name, _ in select], batches(), form, options.escape_formulas))
    for name, kinds in several.items():
        note(options, f"the column `{name}` is text, for it holds {', '.join(kinds[:-1])} and {kinds[-1]}")
    if unseen and db.count(operation, as_of=settings.get("as_of")):
        from jitdb.cli.output.notes import note_unknown_columns

        note_unknown_columns(db, unseen.values(), options)
