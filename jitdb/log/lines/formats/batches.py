"""Batches: which files hold many records in one JSON value, and whether that is a line or all of the file.

A line of the file holds a batch where the first line is a JSON value. Where it is none, the whole text is one line: a
document (form.py). So a batch that is printed over many lines, or has no newline at its end, is a document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, Final, TypeAlias

from jitdb.common.paths import ANY, Path, format_path
from jitdb.common.values import values_at
from jitdb.log.lines.form import JSON, MARK, PLAIN, LineForm

Head: TypeAlias = Callable[[int], bytes]  # the first bytes of a file, so many

_LONGER: Final = (1 << 20, 1 << 24)  # bytes that are looked at, where the first line is longer than what was read
_SHORT: Final = 1 << 16  # bytes of a line that is parsed to find out whether it is JSON

# Patterns are compiled where a first key asks for them: plain JSON Lines need none.
_ARRAY: Final = rb"\[\s*(?:\{|\]\s*\Z)"
_KEY: Final = rb'\{\s*"(Records|records)"\s*:\s*\[\s*[{\]]'  # CloudTrail, S3; Azure
# OpenTelemetry: logs, traces, metrics.
_TELEMETRY: Final = rb'\{\s*"resource(?:Logs|Spans|Metrics)"\s*:\s*\[\s*[{\]]'
# CloudWatch, by a subscription or Firehose, which names where the events are from in any order.
_EVENTS: Final = rb'\{\s*(?:"logEvents"\s*:\s*\[\s*[{\]]|"messageType"\s*:\s*"DATA_MESSAGE"\s*,)'
_FIRST_KEYS: Final = frozenset(
    {b"Records", b"records", b"logEvents", b"messageType", b"resourceLogs", b"resourceSpans", b"resourceMetrics"}
)
# What command lines of clouds print, which is no batch where it is one line of many.
_PRINTED: Final = rb'\{\s*"(Events|events|value)"\s*:\s*\[\s*\{'
_TEXT: Final = rb'"(?:kind|apiVersion)"\s*:\s*"[^"]*"\s*,\s*'
_LIST: Final = (  # of Kubernetes
    rb"\{\s*(?:" + _TEXT + rb'){1,2}(?:"metadata"\s*:\s*\{[^{}]*\}\s*,\s*)?"items"\s*:\s*\[\s*\{'
)
_KEY_SIZE: Final = 1 << 12  # bytes in which a first key is, behind blanks
_DEEPEST: Final = 8  # keys of a path to an array
_TOKEN: Final = 8  # characters of a word, or of an escape, that may be cut off
_read: Final = json.JSONDecoder(strict=False)


def batch_in(begin: bytes, form: LineForm = PLAIN, *, is_printed: bool = False) -> LineForm | None:
    """The form with what says which elements are records, in what begins so; None where no batch is known.

    >>> [batch_in(begin) and batch_in(begin).tag for begin in (b'{"Records": [{', b'{"value": [{', b'{"a": 1}')]
    ['each-2b28432a', None, None]
    >>> batch_in(b'{"resourceLogs": [{').format, batch_in(b'{"messageType":"DATA_MESSAGE","logEvents":[{').format
    ('otlp', 'cloudwatch')
    """
    if begin.startswith(b"["):
        return form._replace(each=(None,)) if re.match(_ARRAY, begin) else None
    if not is_printed and _FIRST_KEYS.isdisjoint(begin[:_KEY_SIZE].split(b'"', 2)[1:2]):
        return None
    if found := re.match(_KEY, begin) or (re.match(_PRINTED, begin) if is_printed else None):
        return form._replace(each=(found[1].decode(), None))
    if re.match(_TELEMETRY, begin):
        return form._replace(format="otlp")
    if re.match(_EVENTS, begin):
        return form._replace(format="cloudwatch")
    return form._replace(each=("items", None)) if is_printed and re.match(_LIST, begin) else None


def batch_form(head: bytes, form: LineForm, more: Head | None, *, as_it_stands: bool = False) -> LineForm | None:
    """The form of a file that begins so, if it holds batches; None where it does not, or the caller's says it all.

    more:         gives more of its beginning
    as_it_stands: the caller says that lines of JSON are records
    """
    begin = head.removeprefix(MARK).lstrip()
    if form.allow_prefix or begin[:1] not in (b"[", b"{"):
        return None
    said = form if form.each or form.format not in ("", JSON) else None  # by the caller
    if (said is None and as_it_stands) or (said is not None and not said.path.steps):
        return None
    found = said or batch_in(begin, form)
    for size in _LONGER if found else ():
        if more is not None and b"\n" not in begin and size > len(head) >= _SHORT:
            head = more(size)
            begin = head.removeprefix(MARK).lstrip()
    if _is_first_line_whole(begin):
        return None if said else found
    found = found or batch_in(begin, form, is_printed=True)
    if (found and _goes_on(begin)) or _are_several(begin):
        return (found or form)._replace(is_document=True)
    return None


def _is_first_line_whole(begin: bytes) -> bool:
    """Whether the first line is a JSON value, and no part of one; of one that is long, as its ends tell.

    One of another encoding is none, but it is a line and no part of a document.
    """
    line, newline, behind = begin.partition(b"\n")
    if len(line) <= _SHORT:
        return is_json(line.decode("latin-1")) and (newline != b"" or batch_in(begin) is None)
    line, behind = line.rstrip(), behind.lstrip()
    return newline != b"" and line[-1:] in (b"}", b"]") and behind[:1] in (b"{", b"[", b"")


def _goes_on(begin: bytes) -> bool:
    """Whether the value at the beginning goes on behind the first line: is the second one JSON of it, too?"""
    text = begin.decode("latin-1")
    second = text.find("\n") + 1
    if not second or second > _SHORT:
        return True
    try:
        end = _read.raw_decode(text)[1]
    except json.JSONDecodeError as error:
        behind = text.find("\n", second + len(text[second:]) - len(text[second:].lstrip()))
        is_cut = error.pos >= len(text) - _TOKEN or error.msg.startswith("Unterminated")
        return is_cut or 0 <= behind < error.pos
    except RecursionError:
        return False
    return end >= second or text[end:second].lstrip()[:1] in ("{", "[")


def is_json(line: bytes | str) -> bool:
    """Whether a line is a JSON value."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _are_several(begin: bytes) -> bool:
    """Whether objects stand one behind the other."""
    text = begin.decode("latin-1")
    try:
        _, end = _read.raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return text[end:].lstrip()[:1] == "{"


def array_inside(head: Head, *, on_one_line: bool, most: int = _LONGER[-1]) -> str:
    """The array of maps with the most keys in a file that is one JSON object; empty of other files, and of long ones.

    on_one_line: an object over several lines is another file
    most:        bytes that are looked at
    """
    begin = head(_SHORT)
    if len(begin) == _SHORT and not (on_one_line and b"\n" in begin):
        begin = head(most)
    text = begin.removeprefix(MARK).strip()
    if not text.startswith(b"{") or (on_one_line and b"\n" in text):
        return ""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    arrays = [(keys, array) for array, keys in arrays_in(document, ()) if len(list(values_at(document, array))) > 1]
    return format_path(max(arrays, key=itemgetter(0))[1]) if arrays else ""


def arrays_in(value: Any, path: Path) -> Iterator[tuple[Path, int]]:
    """The paths to the arrays of maps in a value, and how many keys their first maps have."""
    if len(path) > _DEEPEST:
        return
    if isinstance(value, dict):
        for key, each in value.items():
            yield from arrays_in(each, (*path, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from arrays_in(value[0], (*path, ANY))
        yield (*path, ANY), len(value[0])
