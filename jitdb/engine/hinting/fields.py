"""Fields that no record has, each with the one that was probably meant."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from jitdb.common.paths import ANY, CASTS, LOG_PATH, Path, Step, before_cast, format_path
from jitdb.common.spelling import nearest
from jitdb.common.values import number_of_text
from jitdb.common.words import shown
from jitdb.engine.hinting.dialects import ends_in_words, ends_so
from jitdb.engine.hinting.knowledge import SAMPLE, Evidence, Lack
from jitdb.engine.roles import in_its_place, is_of_requests
from jitdb.operators.summaries.fields import fields_in

_FILE: Final = ("file", "filename", "path", "filepath")  # names of what LOG_PATH is here
_OF_LOGINS: Final = ("user", "username", "ip", "client_ip", "src_ip", "remote_addr", "port")
#: What sshd says, by whom and from where.
_SSHD: Final = (
    r"(?P<time>[A-Z]\S+ +\S+ \S+|\S+) \S+ sshd[^ ]*: (?P<text>.*?(?:for|user) (?:invalid user )?(?P<user>\S+) from "
    r"(?P<ip>\S+).*)"
)
TEXTS: Final = (("text",), ("message",), ("log",))  # of lines of text, of Kubernetes, of Docker
OF_TEXT: Final = {("time",), ("level",), ("trace",), ("stream",), *TEXTS}  # all fields of lines of text
#: The kinds of values of OTLP, which are the values themselves here.
_OF_OTLP: Final = ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue", "arrayValue", "kvlistValue")
_OF_SYSLOG: Final = (("TAG",), ("CONTENT",))
_NAMED: Final = 8  # fields of which a line says that they are there
_LONGEST: Final = 1 << 16  # characters of a text that is looked into


def missing_fields(evidence: Evidence, paths: Iterable[Path]) -> dict[Path, str]:
    """The fields among these that no record has, with a line for each.

    That matters to answers that are not empty, too: `not`, `!=` and `is absent` are then true of all records, and `or`
    loses a part.
    """
    lacks = lacks_of(evidence, paths)
    return lines_on(lacks, evidence.sample(SAMPLE)) if lacks else {}


def lacks_of(evidence: Evidence, paths: Iterable[Path]) -> dict[Path, Lack]:
    """What all records lack of the fields among these of which they lack anything."""
    return {path: lack for path in dict.fromkeys(paths) if (lack := evidence.lack(path))}


def lines_on(lacks: Mapping[Path, Lack], records: Sequence[Any]) -> dict[Path, str]:
    """A line for each missing field; none where the records have no fields at all."""
    known = fields_in(records)
    missing = {path: lack for path, lack in lacks.items() if known and not is_known(path, known)}
    told = {path: unknown_field(f"no record has {lack}", path, known) for path, lack in missing.items()}
    return {path: _or_each(line, path, known) if len(records) == 1 else line for path, line in told.items()}


def _or_each(told: str, path: Path, known: Iterable[Path]) -> str:
    """The line about an unknown field of one document, with the array whose elements have it."""
    meant = nearest_field(path, known)
    if meant is None or ANY not in meant or meant[-len(path) :] != path:
        return told
    return f"{told.partition(';')[0]}; the elements of an array do: {as_records(meant)}"


def as_records(path: Path) -> str:
    """How the elements of the array in this path become records, in words."""
    array = format_path(path[: max(place for place, step in enumerate(path) if step is ANY) + 1])
    return f"--each '{array}' (each=\"{array}\" in Python) makes records of them"


def unknown_field(who: str, path: Path, known: Mapping[Path, Any]) -> str:
    """The line about an unknown field, with the known one that was probably meant."""
    first = before_cast(path)
    if first != path and is_known(first, known):
        held, there = known[tuple(ANY if isinstance(step, int) else step for step in first)], f"`{format_path(first)}`"
        if CASTS["duration"] in path and isinstance(held, int | float) and not isinstance(held, bool):
            numbers = f"{there} holds plain numbers such as {held}: compare with a number of the same unit"
            return f"{who} `{format_path(path)}`: {numbers}, as in `{format_path(first)} > {held}`"
        if CASTS["duration"] in path and isinstance(held, str) and number_of_text(held) is not None:
            numbers = f"{there} holds numbers written as text, such as {shown(held)}, without a unit"
            return f"{who} `{format_path(path)}`: {numbers}: compare with a number, as in `{format_path(first)} > 1`"
        return f"{who} `{format_path(path)}`: {there} is there, but holds nothing that is one"
    same = ends_so(first, known)
    meant = in_its_place(first, known) or _inside_text(first, known) or (same if is_of_requests(first) else None)
    if set(_OF_SYSLOG) <= known.keys() and str(first[0]) in _of_haproxy():
        return f"{who} `{format_path(path)}`: of what HAProxy says, --log-format haproxy gives it"
    if first[-1] in _OF_OTLP and is_known(first[:-1], known):
        meant = first[:-1]
    meant = meant or nearest_field(first, known) or same or ends_in_words(first, known)
    if meant and isinstance(known.get(meant), dict):
        meant = next((each for each in known if each[:-1] == meant and each[-1] == "name"), meant)  # of loguru's level
    guess = f"; did you mean `{format_path(meant)}`?" if meant else ""
    if path == ("*",):
        guess = "; without --fields all fields are shown"
    elif not meant and any("," in str(step) for step in path):
        guess = "; here stands one field"
    elif not meant and len(path) == 1 and str(path[0]).strip("_").lower() in _FILE and not known.keys() <= OF_TEXT:
        guess = f"; of several logs, `{LOG_PATH}` is the path of each record's log"
    elif not meant and set(_OF_SYSLOG) <= known.keys() and not {str(each[0]) for each in known} & _of_haproxy():
        guess = ": what a program says is text, in `CONTENT`"
        guess += f"; of sshd, this gives `user` and `ip`: --log-format '{_SSHD}'" if path[0] in _OF_LOGINS else ""
    elif not meant and known.keys() <= OF_TEXT and (text := next((each for each in TEXTS if each in known), None)):
        names = ", ".join(f"`{format_path(other)}`" for other in known)
        guess = f": these are lines of text, with the fields {names}; look into `{format_path(text)}`"
        guess += ", or say which fields a line has: --log-format '(?P<name>...)'" if text == ("text",) else ""
    elif not meant:
        guess = _instead(known)
        guess += _behind(known) if ("more",) in known else ""
    return f"{who} `{format_path(path)}`{guess}"


def _behind(known: Mapping[Path, Any]) -> str:
    """How what stands behind the fields of an access has names, in words."""
    pattern = "--log-format '$remote_addr - $remote_user [$time_local] \"$request\" ...'"
    rest = f"`more` is the rest of the line, such as {shown(known[('more',)])}"
    return f"; {rest}: nginx's log_format names its parts: {pattern}"


def _of_haproxy() -> set[str]:
    """The fields of HAProxy's lines that syslog has not."""
    from jitdb.log.lines.formats.table import BY_NAME

    return set(BY_NAME["haproxy"].names) - set(BY_NAME["syslog"].names)


def _instead(known: Iterable[Path]) -> str:
    """Which fields there are, in words."""
    names = [f"`{format_path(path)}`" for path in known if len(path) == 1]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED + 1 else ""
    return f"; there are {', '.join(names[: _NAMED if more else None])}{more}" if len(names) > 1 else ""


def _inside_text(path: Path, known: Mapping[Path, Any]) -> Path | None:
    """The field, or the one that stands in its place, inside the JSON that a field holds as text, with which the path
    may begin.
    """
    for other, value in known.items():
        if isinstance(value, str) and value.lstrip()[:1] == "{" and len(value) <= _LONGEST:
            rest = path[len(other) :] if path[: len(other)] == other else path
            with suppress(ValueError):
                inside = fields_in([json.loads(value)])
                if (found := rest if rest in inside else in_its_place(rest, inside)) is not None:
                    return (*other, CASTS["json"], *found)
    return None


def is_known(path: Path, known: Container[Path]) -> bool:
    """Whether it is one of these fields, in which ANY stands for each element of an array."""
    return tuple(ANY if isinstance(step, int) else step for step in path) in known


def nearest_field(path: Path, known: Iterable[Path]) -> Path | None:
    """The field that was probably meant: one of a similar name, or one deeper whose last key is similar.

    Where only dots and brackets differ, it is certain: a key with a dot in it, elements of an array. So it is where the
    whole of a path with a dot is the end of another.

    >>> nearest_field(("tpye",), [("type",), ("user", "name")])
    ('type',)
    >>> nearest_field(("name",), [("type",), ("user", "name")])
    ('user', 'name')
    >>> nearest_field(("log", "level"), [("log.level",)])
    ('log.level',)
    >>> nearest_field(("service", "name"), [("scope", "name"), ("resource", "attributes", "service.name")])
    ('resource', 'attributes', 'service.name')
    >>> nearest_field(("items", "0", "sku"), [("items", None, "sku")])
    ('items', 0, 'sku')
    """
    others = [other for other in reversed(list(known)) if other != path]
    if "." in (words := _words(path)):
        ends = [other for other in others if _words(other).endswith(f".{words}")]
        if ends:
            return _with_positions(min(ends, key=len), path)
    for keys in (slice(None), slice(-1, None)):
        names = {_words(other[keys]): other for other in others}
        if near := nearest(_words(path[keys]), names, 0.7):
            return _with_positions(names[near], path)
    return None


def _words(path: Path) -> str:
    """A path without the marks of keys and elements."""
    return ".".join(str(step) for step in path if not _is_position(step)).lower()


def _is_position(step: Step) -> bool:
    return step is ANY or isinstance(step, int) or (isinstance(step, str) and step.isdecimal())


def _with_positions(meant: Path, path: Path) -> Path:
    """The field that was meant, with the positions that were written in the place of any."""
    positions = [int(str(step)) for step in path if step is not ANY and _is_position(step)]
    if len(positions) != meant.count(ANY):
        return meant
    return tuple(positions.pop(0) if step is ANY else step for step in meant)
