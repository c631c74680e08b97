"""What the lines of a file are taken for: which of their bytes are records. The caller who opens the file chooses.

A form has its own name for the file, its own indexes and cursors (`tag`): answers of one are never those of another.

Text before the JSON of a line, as container runtimes, kubectl logs --prefix, docker compose and syslog have it: the
record goes from the first brace that may begin an object which ends with the line, to the end of the line. That is a
brace with a quotation mark behind it, or with a closing brace and the line's end; blanks may stand between. So text may
hold other braces (`{main}`, `${HOME}`, `ctx={}`), and no line is looked at more than twice. What is before is the
line's prefix. A line without such a brace is text: no record, and nothing that is wrong.

Batches in one line, `resourceLogs[].scopeLogs[].logRecords[]`: each element of the path is a record. Of keys that are
there twice the last one counts, as json.loads has it. What is no map where a key is asked for, or no array where
elements are, has none; neither has a line without them. A format may say that values around the elements, in the maps
on their path, belong to each of them (batch_path.py).

A document is one line however many it has: a batch or an array over many lines, or JSON values one behind the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from jitdb.common.digests import blake2b
from jitdb.common.paths import ANY, parse_path
from jitdb.common.spelling import did_you_mean
from jitdb.errors import InvalidArgument, QueryError, Remedy
from jitdb.log.lines.batch_path import BatchPath, Element

if TYPE_CHECKING:
    from jitdb.log.lines.formats.row import Format

Steps: TypeAlias = tuple[str | None, ...]  # a path (common/paths.py) of keys and ANY, which stands last

LONGEST: Final = 1 << 30  # bytes of a line: kernels count positions in 31 bits. A longer one is a record that is none
TOO_LONG: Final = b"\xff\xff"  # is read in the place of such a line, and is no JSON
MARK: Final = b"\xef\xbb\xbf"  # UTF-8's byte order mark
KNOWN: Final = "known"  # what the first lines say, if that is a format: text of none is no log
JSON: Final = "json"  # the format of lines that are records as they stand
_NO_STEPS: Final = BatchPath(())
MOST_STEPS: Final = 32  # of a path to the elements of lines

_OBJECT: Final = re.compile(rb'\{[ \t\r]*(?:"|\}[ \t\r]*\Z)')
_PART: Final = re.compile(rb"^[0-9][0-9T:.Z+-]{18,40} std(?:out|err) P[ :]", re.MULTILINE)


class LineForm(NamedTuple):
    """
    allow_prefix: text may stand before the JSON of a line; lines without JSON are text, and no records
    each:         the steps to the elements that are records; empty: a line is one
    format:       a name of the table of formats (formats/table.py), or "json"; empty: what the first lines say
    pattern:      the user's own, of the format "pattern"; of a table its header
    is_document:  the whole text is one line: its newlines are blanks, and JSON values may stand one behind the other
    """

    allow_prefix: bool = False
    each: Steps = ()
    format: str = ""
    pattern: str = ""
    is_document: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether a line is a record, as it stands."""
        return not self.allow_prefix and not self.has_batches and self.row is None

    @property
    def has_batches(self) -> bool:
        """Whether a line may hold several records."""
        return self.is_document or bool(self.path.steps)

    @property
    def path(self) -> BatchPath:
        """Where the records of a line are; without steps where it is one itself."""
        row = self.row
        if row is not None and row.path is not None:
            return row.path
        return _NO_STEPS if not self.each else BatchPath(tuple(None if step is None else (step,) for step in self.each))

    @property
    def row(self) -> Format | None:
        """How lines become records; None where they are records as they stand."""
        if self.format in ("", KNOWN, JSON):
            return None
        from jitdb.log.lines.formats.table import row_of

        return row_of(self.format, self.pattern)

    @property
    def tag(self) -> str:
        """Names the form among those of one file; empty for plain lines.

        >>> PLAIN.tag, LineForm(allow_prefix=True).tag, LineForm(True, ("logs", None)).tag
        ('', 'prefix', 'prefix-each-ba93d5d6')
        """
        words = ["prefix"] if self.allow_prefix else []
        if (row := self.row) is not None:
            words.append(row.tag)
        if self.is_document:
            words.append("document")
        if self.each:
            form = repr(self.each).encode("utf-8", "surrogatepass")
            words.append(f"each-{blake2b(form, digest_size=4).hexdigest()}")
        return "-".join(words)


PLAIN: Final = LineForm()
_VARIABLE: Final = re.compile(r"\$(\w+)")


#: What programs write whose names no format has.
_PROGRAMS: Final = {
    "nginx": "combined", "apache": "combined", "apache2": "combined", "httpd": "combined", "caddy": JSON, "pino": JSON,
    "flask": "runserver", "werkzeug": "runserver", "django": "runserver", "kubernetes": "cri", "rsyslog": "syslog",
    "etcd": "capnslog", "tomcat": "common", "java": "jul", "ndjson": JSON, "jsonl": JSON, "postgresql": "postgres",
}  # fmt: skip


def line_form(
    allow_prefix: bool = False, each: str | Sequence[str | None] | None = None, given: str | None = None
) -> LineForm:
    """What a caller says of the lines of a file. Raises InvalidArgument.

    given: a name of the table of formats, or "json"; a pattern with named groups; or a log_format of nginx

    >>> line_form(given="logfmt").format, line_form(given=r"(?P<level>\\w+) (?P<text>.*)").format
    ('logfmt', 'pattern')
    >>> line_form(given='$remote_addr [$time_local] "$request"').pattern
    '(?P<remote_addr>[^ ]*) \\\\[(?P<time_local>[^\\\\]]*)\\\\] "(?P<request>[^"]*)"'
    """
    steps = parse_each(each)
    if not given:
        return LineForm(allow_prefix, steps)
    if allow_prefix or (steps and given != JSON):
        other = "allow_prefix" if allow_prefix else "each"
        raise InvalidArgument(
            f"a format says how lines become records, and so does {other}", remedy=Remedy.without(other)
        )
    from jitdb.log.lines.formats.table import BY_NAME, own

    given = _PROGRAMS.get(given, given)
    if given in BY_NAME or given in (JSON, KNOWN):
        return LineForm(each=steps, format=given)
    if "(?" not in given and not _VARIABLE.search(given):
        known = f"the formats: {JSON}, {', '.join(BY_NAME)}; or a pattern with groups (?P<name>...)"
        raise InvalidArgument(f"no format is called {given!r}", remedy=did_you_mean(given, BY_NAME, known))
    pattern = given if "(?" in given else _of_variables(given)
    if not own(pattern).names:
        raise InvalidArgument("the pattern has no group (?P<name>...), so its records would have no fields")
    return LineForm(format="pattern", pattern=pattern)


def _of_variables(text: str) -> str:
    """The pattern of a log_format of nginx: a variable goes on up to the character that stands behind it."""
    parts, at = list[str](), 0
    for found in _VARIABLE.finditer(text):
        behind = text[found.end() : found.end() + 1]
        mark = f"[^{re.escape(behind)}]*".replace("\\ ", " ") if behind and behind != "$" else ".*"
        parts += [re.escape(text[at : found.start()]).replace("\\ ", " "), f"(?P<{found[1]}>{mark})"]
        at = found.end()
    return "".join(parts) + re.escape(text[at:]).replace("\\ ", " ")


TAG: Final = re.compile(
    "prefix|(?:prefix-|document-)?each-[0-9a-f]{8}|[a-z0-9]+-v[0-9a-f]{8}(?:-document)?|document"
)  # of forms that are not plain


class LineRules(Protocol):
    """What a walker through lines needs to know of them; LineFraming has it."""

    form: LineForm
    skipped: int

    def first_line(self, head: bytes) -> int:
        """Where the first line of the log begins, which has these bytes at its beginning."""

    def records_in(self, line: bytes) -> list[Element]:
        """Where the records of a line are."""

    def place_without(self, line: bytes) -> int:
        """Where a line without records counts as one that is deleted."""


def is_blank(line: bytes) -> bool:
    """Whether a line is no record, however it is read.

    >>> is_blank(b" \\t\\r"), is_blank(b"0")
    (True, False)
    """
    return not line.strip(b" \t\r")


def object_in(line: bytes) -> int:
    """Where the record of a line begins; -1 where it has none.

    >>> [object_in(line) for line in (b'{"a": 1}', b'ctx={} stdout F {"a": 1}', b"x {}", b"at {main}", b"[1]")]
    [0, 16, 2, -1, -1]
    """
    found = _OBJECT.search(line)
    return found.start() if found else -1


def parts_in(data: bytes) -> int:
    """How many of these lines say that they are the first or a middle part of a longer one.

    Container runtimes cut what is longer than 16 KiB: `TIME stdout P …`, and `TIME stdout F …` the last part.

    >>> parts_in(b'2026-11-21T10:00:00.123456789Z stdout P {"a"\\n2026-11-21T10:00:00.123456790Z stdout F : 1}\\n')
    1
    """
    return len(_PART.findall(data))


def parse_each(given: str | Sequence[str | None] | None) -> Steps:
    """The steps of a path as text, or as a list of keys and "[]". Raises InvalidArgument.

    >>> parse_each("resource.logs[].records[]"), parse_each('["dotted.key"][]')
    (('resource', 'logs', None, 'records', None), ('dotted.key', None))
    >>> parse_each(["dotted.key", "[]"]), parse_each("[]"), parse_each(None)
    (('dotted.key', None), (None,), ())
    """
    if given is None or given == "":
        return ()
    try:
        path = parse_path(given if isinstance(given, str) else [ANY if step == "[]" else step for step in given])
    except QueryError:
        path = ()
    steps = tuple(step for step in path if step is ANY or isinstance(step, str))
    is_odd = isinstance(given, str) and "" in path and '""' not in given  # `.a[]`, as in jq, leads nowhere
    if not path or is_odd or steps != path or steps[-1] is not ANY or len(steps) > MOST_STEPS:
        raise InvalidArgument(
            f"each is a path to the elements of arrays, of at most {MOST_STEPS} steps, such as "
            f"'resourceLogs[].scopeLogs[].logRecords[]', not {given!r}"
        )
    return steps
