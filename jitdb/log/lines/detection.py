"""Is this file one of JSON Lines? And if it is neither that nor a log of jitdb's, what is it, and what is to be done?

The first 64 KiB of its text tell, which may be compressed. They are JSON Lines where one of their lines is a
JSON object; of a longer one, its beginning. A zero byte is in all logs of jitdb's, as every block ends with one, and
in lines only by accident. Where one is, the first line tells: no log of jitdb's begins so, as its first bytes are a
length. A file of which the folder beside it says that it is a log of jitdb's is one; an empty file is what its name
says, and a compressed one without text JSON Lines, as logs of jitdb's are not compressed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from codecs import getincrementaldecoder
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.common.formats import without_ending
from jitdb.errors import LogCorrupt, NotALog, Remedy, import_command
from jitdb.log.io.filenames import META, sidecar_path
from jitdb.log.lines.files.opening import head_of, is_compressed
from jitdb.log.lines.form import JSON, KNOWN, MARK, PLAIN, LineForm, object_in
from jitdb.log.lines.formats.batches import Head, array_inside, batch_form, is_json
from jitdb.log.lines.formats.headers import HEADED, header_in, is_certain, of_comments
from jitdb.log.lines.formats.kernels.kinds import MARKS
from jitdb.log.objects.door import Location, is_file, location_of

HEAD: Final = 1 << 16  # bytes that are looked at
SUFFIXES: Final = (".ndjson", ".jsonl", ".jsonlines")  # of names; they decide only for an empty file

_TRIED: Final = 64  # lines
_FOR_DAYS: Final = 1 << 20  # bytes in which a day from 13 on is looked for
# Formats that the rows of a table may be of, or its header, where a name in it is a level.
_OF_TABLES: Final = ("text", "slashes", "dayfirst", "monthfirst", "levels", "prefixed")
PLAIN_TEXT: Final = "plain"  # the format that all text is of
_MIXED: Final = "mixed"  # the one of text and JSON
_PREFIXED: Final = "prefixed"  # the one of lines of containers
_PLAIN: Final = Remedy("pass format='plain'", "pass --log-format plain")

_UNPACKERS: Final = {b"BZh": ("bzip2", "bunzip2 -k"), b"\xfd7zXZ": ("xz", "unxz -k"), b"PK\3\4": ("zip", "unzip")}
_TABLES: Final = {b"PAR1": "a Parquet file", b"ARROW1": "an Arrow file"}
_OTHERS: Final = {
    b"SQLite format 3": ("a database of SQLite", ""),
    b"LPKSHHRH": ("a journal file of systemd", "journalctl --file FILE -o json"),
    b"ElfFile\0": ("an event log of Windows", ""),
    b"\x89PNG": ("a PNG image", ""),
    b"\xff\xd8\xff": ("a JPEG image", ""),
    b"GIF8": ("a GIF image", ""),
    b"%PDF": ("a PDF document", ""),
    b"\x7fELF": ("a program", ""),
}
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b"))  # which no text has
_LOG_NAME: Final = (  # with the numbers and dates that rotation adds
    r"(?:(?:.*[._-])?(?:logs?|out|err|syslog|messages|dmesg|kern|secure|maillog|mail|cron|daemon|boot)(?:[._-][0-9].*)?"
    r"|[0-9]{4}(?:-[0-9]{2}){5}-[0-9A-F]+)"  # as S3 names its own
)
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")  # byte order marks of UTF-16


def is_lines(path: str | os.PathLike[str], form: LineForm = PLAIN, *, said: bool = False) -> bool:
    """Whether form_at() finds one."""
    return form_at(path, form, said=said) is not None


def form_at(
    path: str | os.PathLike[str], form: LineForm = PLAIN, *, said: bool = False, any_text: bool = False
) -> LineForm | None:
    """How the lines of the file at this path become records; None for what is no file of lines, or cannot be read.

    form: what the caller says of that: a format, or that text may stand before JSON, or which elements are records
    said: the caller says that it is JSON, so lines may hold other values than objects
    any_text: text of no format that is known has lines, too; of files that nobody named, those whose names are of logs
    """
    file = location_of(path)
    if not is_file(file) or _has_sidecar(file):
        return None
    try:
        head = head_of(file, HEAD)
    except (OSError, LogCorrupt):
        return None
    if _has_returns_alone(head):
        return None
    if head:
        found = form_of(head, form, said=said, more=partial(head_of, file), name=file.name)
        if found is not None and form.row is not None and _misfit(head, form, file):
            return None
        return found or (text_form(head, form, file.name) if any_text else None)
    if not is_said_by(form) and (named := table_named(file.name)):
        return LineForm(format=named)
    is_said = bool(form.each or form.format not in ("", KNOWN)) or without_ending(file.name).endswith(SUFFIXES)
    return form if is_said or is_compressed(file) else None


def _has_sidecar(file: Location) -> bool:
    """Whether it is a log of jitdb's. In a store, its bytes tell."""
    return isinstance(file, Path) and os.path.exists(sidecar_path(file) / META)


def form_of(
    head: bytes, form: LineForm = PLAIN, *, said: bool = False, more: Head | None = None, name: str = ""
) -> LineForm | None:
    """The same of a file whose text begins with these bytes, at least one. `more`: gives more of them.

    name: of the file, which may say that it has rows of CSV or TSV
    """
    head = _without_zeros(head)
    if not head:
        return None
    named = "" if is_said_by(form) or looks_like_lines(head) else table_named(name)
    if form.format in HEADED or named:
        if _is_other(head):
            return None
        return headed(head, form.format if form.format in HEADED else named) or (_of_rows(head) if named else None)
    form = form._replace(format="") if form.format == KNOWN else form
    batches = batch_form(head, form, more, as_it_stands=said or form.format == JSON)
    if batches is not None:
        return batches
    if form.allow_prefix or form.each[:1] == (None,):
        return None if form.allow_prefix and _is_other(head) else form
    if form.format or said:
        return None if _is_other(head) else form
    if looks_like_lines(head):
        text = None if form.each or head.lstrip().startswith((b"{", MARK)) else _of_text(head, more)
        return form if form.each else text or _of_json(head)
    return None if form.each or _is_other(head) else _of_text(head, more)


def _without_zeros(head: bytes) -> bytes:
    """These first bytes of a file without the lines that have zero bytes; empty where it may be a log of jitdb's."""
    if b"\0" not in head:
        return head
    lines = head.split(b"\n")
    first = lines[0].removeprefix(MARK).lstrip(b"\0")  # a file that was cut while it was written to begins with zeros
    if b"\0" in first or not (_is_object(first) or (len(lines) > 1 and _is_of_text(first))):
        return b""
    return b"\n".join(line for line in lines if b"\0" not in line)


def _is_of_text(line: bytes) -> bool:
    from jitdb.log.lines.formats.recognising import recognised

    return recognised([line]) is not None


_EXPORTED: Final = b"__CURSOR="  # a record of journald's export format is several lines
_LOOKED_THROUGH: Final = 16 << 20  # bytes in which a line must be as a pattern says


def _misfit(head: bytes, form: LineForm, path: Location) -> int:
    """How many first lines there are, if none of them is a record of the format that the caller said; else 0.

    A pattern may be meant for few lines, such as failed logins, so more lines are looked at. Batches are looked at as
    they are read (each_paths.py): they may be longer than the first lines.
    """
    from jitdb.log.lines.formats.rendering import Renderer

    assert form.row is not None
    if form.row.path is not None or form.format in HEADED:
        return 0

    renderer = Renderer(form.row, lambda: 0)

    def misfits(head: bytes, size: int) -> int:
        lines = _whole_lines(head, size)
        return 0 if renderer.fitting(lines) else len(lines)

    count = misfits(head, HEAD)
    if not count or not form.pattern or len(head) < HEAD:
        return count
    return misfits(head_of(path, _LOOKED_THROUGH), _LOOKED_THROUGH)


def _whole_lines(head: bytes, size: int) -> list[bytes]:
    """The lines of the first bytes of a file, of which there are `size` at most; without the last one if it is cut."""
    lines = head.removeprefix(MARK).split(b"\n")
    return [line for line in (lines[:-1] if len(head) >= size else lines) if line.strip()]


class FirstLines(NamedTuple):
    """How many first lines of a file there are, are of its format, and have bytes that are no UTF-8."""

    lines: int
    fitting: int
    odd: int


def first_lines(path: Location, form: LineForm) -> FirstLines | None:
    """What the first lines of a file of text show; None of JSON, and of rows under a header."""
    from jitdb.log.lines.formats.rendering import Renderer

    if form.row is None or form.row.path is not None or form.format in HEADED:
        return None
    lines = _whole_lines(head_of(path, HEAD), HEAD)
    return FirstLines(
        len(lines), Renderer(form.row, lambda: 0).fitting(lines), sum(not _is_utf8(line) for line in lines)
    )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def misfit(path: str | os.PathLike[str], form: LineForm) -> NotALog | None:
    """The error for a file of which no first line is of the format that the caller said; None where one is."""
    try:
        head = head_of(location_of(path), HEAD)
    except (OSError, LogCorrupt):
        return None
    if form.row is None or not form_of(head, form) or not (count := _misfit(head, form, location_of(path))):
        return None
    found = form_at(path, any_text=True)
    seems = "" if found is None else f", but {found.row.title if found.row else 'JSON Lines'}"
    said = "as the pattern says" if form.pattern else form.row.title
    what = f"none of its first {count:,} lines is {said}" if count > 1 else f"its line is not {said}"
    leave = Remedy("leave format out", "leave --log-format out")
    is_plain = found is not None and found.format == PLAIN_TEXT
    return NotALog(what + seems, path=path, remedy=_PLAIN if is_plain else leave)


def is_said_by(form: LineForm) -> bool:
    """Whether a caller said how lines become records."""
    return form not in (PLAIN, LineForm(format=KNOWN))


def is_log_name(name: str) -> bool:
    """Whether a file of this name is a log, whatever its text is.

    >>> [name for name in ("app.log.1.gz", "catalina.out", "syslog.2", "README.md", "catalog") if is_log_name(name)]
    ['app.log.1.gz', 'catalina.out', 'syslog.2']
    """
    return bool(re.fullmatch(_LOG_NAME, without_ending(name), re.IGNORECASE))


def table_named(name: str) -> str:
    """The format of a table that a file of this name has; empty where the name says nothing of that.

    >>> table_named("a.CSV.gz"), table_named("a.log")
    ('csv', '')
    """
    ending = without_ending(name).lower().rpartition(".")[2]
    return ending if ending in ("csv", "tsv") else ""


def headed(head: bytes, format: str) -> LineForm | None:
    """The form of a table that begins so; None where it has no header."""
    header = header_in(head.removeprefix(MARK), format)
    return None if header is None else LineForm(format=format, pattern=header)


def text_form(head: bytes, form: LineForm, name: str) -> LineForm | None:
    """The form of text of no format that is known; None for what is another thing."""
    text = head.removeprefix(MARK)
    if (
        not (form == PLAIN or (form == LineForm(format=KNOWN) and is_log_name(name)))
        or _begins_json(text)
        or b"\0" in head
        or _is_other(head)
        or text.startswith(_EXPORTED)
        or table_named(name)
        or len(text.translate(None, _CONTROLS)) < len(text)
    ):
        return None
    try:
        _begun_text(text)
    except UnicodeDecodeError:
        return None
    if is_certain(text) and (table := headed(head, "csv")):
        return table
    lines = [line for line in text.split(b"\n") if line.strip()]
    return LineForm(format=_MIXED if 2 * sum(map(_is_object, lines)) > len(lines) else PLAIN_TEXT)


def _of_json(head: bytes) -> LineForm:
    """The form of lines of JSON."""
    lines = _first_lines(head)
    beginning = b"\n".join(lines)
    if not any(mark in beginning for mark in MARKS):
        return LineForm(format=JSON)
    from jitdb.log.lines.formats.recognising import recognised
    from jitdb.log.lines.formats.table import FORMATS_OF_JSON

    row = recognised(lines[: max(1, len(lines) - 1)], FORMATS_OF_JSON)
    return LineForm(format=row.name if row else JSON)


def _of_text(head: bytes, more: Head | None) -> LineForm | None:
    """The form of lines of text; None where they are none."""
    if _begins_json(head.removeprefix(MARK)):
        return None
    if format := of_comments(head.removeprefix(MARK)):
        return headed(head, format)
    from jitdb.log.lines.formats.recognising import recognised
    from jitdb.log.lines.formats.slashed import with_days

    lines = _first_lines(head)
    row = recognised(lines[:-1] if len(lines) > 1 and len(head) >= HEAD else lines)
    if row is not None:
        if row.doubt:
            row = with_days(row, head if more is None or len(head) < HEAD else more(_FOR_DAYS))
        if row.name == _PREFIXED and not any(map(_is_prefixed_text, lines)):
            return LineForm(allow_prefix=True)
        is_table = row.name in _OF_TABLES and is_certain(head.removeprefix(MARK))
        return (headed(head, "csv") if is_table else None) or LineForm(format=row.name)
    lines = [line for line in lines if line.strip()]
    return LineForm(allow_prefix=True) if 2 * sum(map(_is_prefixed, lines)) >= len(lines) > 0 else None


def _of_rows(head: bytes) -> LineForm | None:
    """The form of rows whose fields no header names, but the documentation of who writes them; None of others."""
    from jitdb.log.lines.formats.recognising import recognised
    from jitdb.log.lines.formats.table import BY_NAME

    row = recognised(_first_lines(head), [BY_NAME["csvlog"]])
    return None if row is None else LineForm(format=row.name)


def _begins_json(text: bytes) -> bool:
    """Whether text may be JSON over several lines, and not lines that begin with a bracket."""
    begin = text.lstrip()
    if not begin.startswith((b"{", b"[")):
        return False
    decoded = begin.decode("utf-8", "replace")
    try:
        _, end = json.JSONDecoder().raw_decode(decoded)
    except json.JSONDecodeError as error:
        return error.pos > decoded.find("\n") >= 0 or "\n" not in decoded
    except RecursionError:
        return True
    return decoded[end:].partition("\n")[0].strip() in ("", ",")


def _first_lines(head: bytes) -> list[bytes]:
    return head.removeprefix(MARK).split(b"\n", _TRIED)[:_TRIED]


def _is_other(head: bytes) -> bool:
    """Whether it is compressed, or UTF-16."""
    return head.startswith((*_UNPACKERS, *_WIDE))


def looks_like_lines(head: bytes) -> bool:
    """Whether these are the first bytes of such a file.

    >>> looks_like_lines(b'{"a": 1}\\n'), looks_like_lines(b'[{"a": 1}]\\n'), looks_like_lines(b"a,b\\n1,2\\n")
    (True, False, False)
    """
    if b"\0" in head:
        return False
    lines = head.removeprefix(MARK).split(b"\n", _TRIED + 1)  # more are not looked at
    first = next((line.strip() for line in lines if line.strip()), b"")
    if first == b"[" or (first.startswith(b"[{") and not is_json(first)):
        return False  # an array over several lines
    if any(map(_is_object, lines[:-1][:_TRIED])):
        return True
    last = lines[-1].lstrip()
    return len(lines) <= _TRIED and (_is_object(last) or _begins_object(last))


def _is_object(line: bytes) -> bool:
    return line.lstrip().startswith(b"{") and is_json(line)


def _is_prefixed(line: bytes) -> bool:
    begin = object_in(line)
    return begin > 0 and bool(line[:begin].strip()) and is_json(line[begin:])


def _is_prefixed_text(line: bytes) -> bool:
    """Whether it is one of a container, and no JSON."""
    from jitdb.log.lines.formats.recognising import line_test

    return not _is_prefixed(line) and bool(line_test(_PREFIXED)(line.removesuffix(b"\r")))


def _begins_object(line: bytes) -> bool:
    """Whether a line that goes on may be an object: a brace, and a key, in UTF-8."""
    begin = line[1:].lstrip() if line.startswith(b"{") else b""
    if not begin.startswith((b'"', b"}")):
        return line == b"{"
    try:
        _begun_text(line)
    except UnicodeDecodeError:
        return False
    return True


def _begun_text(data: bytes) -> str:
    """The text that begins so, without a character that is cut off. Raises UnicodeDecodeError."""
    return getincrementaldecoder("utf-8")().decode(data)


def converted(path: str | os.PathLike[str], encoding: str = "LATIN1") -> str:
    """The command that makes UTF-8 of a file.

    >>> converted("app.log")
    'iconv -f LATIN1 -t UTF-8 app.log > app.utf8.log'
    """
    stem, ending = os.path.splitext(os.fspath(path))
    return f"iconv -f {encoding} -t UTF-8 {shlex.quote(os.fspath(path))} > {shlex.quote(f'{stem}.utf8{ending}')}"


def odd_file(path: str | os.PathLike[str]) -> NotALog | None:
    """What a file that is no log seems to be, with what to do about it; None where nothing is known of it."""
    try:
        head = head_of(location_of(path), HEAD)
    except OSError:
        return None
    except LogCorrupt as error:
        return NotALog(error.reason, path=path, offset=error.offset, remedy=error.remedy)
    for magic, (name, command) in _UNPACKERS.items():
        if head.startswith(magic):
            return _error(
                path, f"it is compressed ({name})", f"unpack it first: {command} {shlex.quote(os.fspath(path))}"
            )
    for magic, name in _TABLES.items():
        if head.startswith(magic):
            return _error(path, f"it is {name}, not a log", Remedy.importing(path))
    for magic, (name, command) in _OTHERS.items():
        if head.startswith(magic):
            advice = f"write it as text first: {command}" if command else None
            return NotALog(f"it is {name}, not a log", path=path, remedy=advice)
    if head[257:262] == b"ustar":
        command = f"tar -xf {shlex.quote(os.fspath(path))}"
        return _error(path, "it is a tar archive, not a log", f"unpack it first: {command}")
    if wide := _wide(head):
        return _error(path, "it is UTF-16, and logs are UTF-8", f"convert it first: {converted(path, wide)}")
    if b"\0" in head:
        return None
    if _has_returns_alone(head):
        stem, ending = os.path.splitext(os.fspath(path))
        command = f"tr '\\r' '\\n' < {shlex.quote(os.fspath(path))} > {shlex.quote(f'{stem}.lines{ending}')}"
        return _error(path, "carriage returns alone end its lines", f"put newlines in their place: {command}")
    try:
        text = _begun_text(head)
    except UnicodeDecodeError as error:
        said = f"it is no UTF-8 (byte 0x{head[error.start]:02x} at offset {error.start:,}), as logs are"
        return _error(path, said, f"convert it first, say from Latin-1: {converted(path)}")
    if head.startswith(_EXPORTED):
        advice = "write it as JSON: journalctl -o json > FILE"
        return NotALog("it is journald's export format, a field a line", path=path, remedy=advice)
    begin = text.removeprefix("\ufeff").lstrip()
    lines = head.split(b"\n")[:_TRIED]
    if not begin.startswith(("{", "[{", "[\n")) and any(map(_is_prefixed, lines)):
        remedy = Remedy("pass allow_prefix=True", "pass --allow-prefix")
        return NotALog("its lines have text before their JSON", path=path, remedy=remedy)
    if begin.startswith("[") and _begins_json(text.removeprefix("\ufeff").encode()):
        return _error(
            path, "it is one JSON array, and its elements are no objects", Remedy("pass each='[]'", "pass --each '[]'")
        )
    if (first := lines[0].strip()).endswith(b"},") and is_json(first[:-1]):
        command = f"sed 's/,[[:space:]]*$//' {shlex.quote(os.fspath(path))}"
        return _error(path, "its lines are JSON objects with a comma behind each", f"take the commas away: {command}")
    if re.match(r'\{\s+"[^"]+" => ', begin):
        advice = "write it as JSON Lines: codec => json_lines in the output of Logstash"
        return NotALog("it is what Logstash prints (rubydebug), a field a line", path=path, remedy=advice)
    if begin.startswith("{") and not looks_like_lines(head):
        return _one_object(path)
    if table_named(os.fspath(path)):
        given = f"{import_command(os.fspath(path))} --columns NAMES"
        return _error(path, "its first line names no fields, as that of a table does", f"name them: {given}")
    if begin and not looks_like_lines(head):
        return _error(path, "it is text, but none of its first lines is a JSON object", _PLAIN)
    return None


def _one_object(path: str | os.PathLike[str]) -> NotALog:
    """The error for an object over several lines; it names the array that has the records."""
    array = array_inside(partial(head_of, location_of(path)), on_one_line=False)
    or_line = "or make a line of it: jq -c ."
    python, shell = (f"each={array!r}", f"--each '{array}'") if array else ("each=", "--each")
    which = "" if array else ", the path to its records, such as 'logs[]'"
    remedy = Remedy(f"pass {python}{which}; {or_line}", f"pass {shell}{which}; {or_line}")
    return _error(path, "it is one JSON object, and no batch of records that is known", remedy)


def _has_returns_alone(head: bytes) -> bool:
    """Whether carriage returns end the first lines, and no newlines do."""
    return b"\n" not in head and head.rstrip(b"\r").count(b"\r") > 0 and b"\0" not in head


def _wide(head: bytes) -> str:
    """The encoding of text in UTF-16, with a mark or, where it is mostly of ASCII, without; empty for other bytes."""
    if head.startswith(_WIDE):
        return "UTF-16"
    least = 0.9 * (len(head) // 2)
    pairs = (("UTF-16LE", head[1::2], head[::2]), ("UTF-16BE", head[::2], head[1::2]))
    return next((name for name, high, low in pairs if 0 < least <= high.count(0) and b"\0" not in low), "")


def _error(path: str | os.PathLike[str], reason: str, remedy: Remedy | str) -> NotALog:
    return NotALog(reason, path=path, remedy=remedy)
