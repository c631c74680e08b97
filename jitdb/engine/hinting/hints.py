"""Fields and values that a question asks for and no record has, each with the one that was probably meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, starmap
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.paths import ANY, CASTS, Path, before_cast, format_path
from jitdb.common.times import length_of_text, time_of
from jitdb.common.values import UNDEFINED, number_of, value_at, values_at
from jitdb.common.words import shown
from jitdb.engine.hinting.dialects import (
    Elsewhere,
    as_time,
    asked_of,
    have_one_unit,
    held_otherwise,
    in_place_of,
    where_others,
    within,
)
from jitdb.engine.hinting.fields import lacks_of, lines_on
from jitdb.engine.hinting.knowledge import SAMPLE, Evidence, Lack
from jitdb.engine.hinting.levels import on_named_levels, on_unleveled, without_marks
from jitdb.engine.hinting.texts import in_trace, on_texts
from jitdb.engine.roles import roles_of, time_meant
from jitdb.indexes.kinds.kernels import seen
from jitdb.operators.nodes.compare import Between, PlainBound, Range, gte, lt
from jitdb.operators.nodes.equal import Absent, Equal, Includes, IsIn, absent
from jitdb.operators.nodes.fits import Fits
from jitdb.operators.nodes.instants import Instant
from jitdb.operators.nodes.operation import And, Operation, Or, combine
from jitdb.operators.nodes.text_match import TextMatch
from jitdb.operators.summaries.fields import fields_in
from jitdb.operators.text.expression import typed

if TYPE_CHECKING:
    from jitdb.operators.question import Question

_FEW: Final = 10  # records
_SHOWN: Final = 4  # values that may have been meant
_UNLIKE: Final = 50  # a note is due where one of so many lines is of another format
_MOST_VALUES: Final = 100  # of a question that are looked for in other forms: nobody reads a note on more
_CLASS: Final = re.compile(r"([1-9])xx", re.IGNORECASE)  # of a status
#: Of a request, a trace, a session; no date, nor one with a time.
_ID: Final = r"(?=[^0-9]*[0-9])(?!\d{4}-\d\d-\d\d(?:T|$))[0-9A-Za-z][0-9A-Za-z-]{11,63}"
_STREAMS: Final = ("stdout", "stderr")  # of containers


def hints_of(evidence: Evidence, operation: Operation, paths: Iterable[Path] = ()) -> list[str]:
    """For an empty answer: a line for each field that no record has, and for each value that is there in another form.

    paths: further fields that were asked about
    """
    leaves = [leaf for leaf in operation.leaves() if leaf.paths]
    asked = (*operation.all_paths(), *paths)
    lacks = lacks_of(evidence, asked)
    wrong = [leaf for leaf in leaves if leaf.names_value and not lacks.keys() & set(leaf.paths)]
    wrong = [leaf for leaf in wrong if not evidence.has(leaf)]
    found = _on_fields(evidence, operation, asked, lacks)
    records = evidence.sample(_FEW) if wrong else []  # an answer that is not empty may not read much for a note
    for leaf in wrong if fields_in(records) else ():
        is_empty = isinstance(leaf, Equal) and leaf.value in (None, "")
        if is_empty and evidence.has(lacking := absent(leaf.paths[0])):
            held, name = "null" if getattr(leaf, "value", None) is None else '""', f"`{format_path(leaf.paths[0])}`"
            found.append(f"no record has {held} in {name}, and some lack the field; did you mean `{typed(lacking)}`?")
        elif (meant := _meant(evidence, leaf, records)) is not None:
            found.append("; ".join(meant))
        elif (lowest := leaf.lowest()) is not None and not evidence.has(lowest[0]):
            found.append(lowest[1] + without_marks(leaf, evidence.sample(SAMPLE)))
    return [*found, *on_named_levels(evidence, operation, asked, True), *_on_ranges(operation)]


def _on_ranges(operation: Operation) -> Iterator[str]:
    """A line for each range whose lower bound is above its upper one. (Of an array, other elements may be in each.)"""
    parts = operation.children() if isinstance(operation, And) else (operation,)
    ranges = [part for part in parts if isinstance(part, Range) and not any(ANY in path for path in part.paths)]
    for index, of_times in dict.fromkeys((part.index, part.is_of_times) for part in ranges):
        asked = [part for part in ranges if (part.index, part.is_of_times) == (index, of_times)]
        bounds = [bound for part in asked for bound in part.bounds]
        low = max((bound for op, bound in bounds if op in ("gt", "gte")), key=_size, default=None)
        high = min((bound for op, bound in bounds if op in ("lt", "lte")), key=_size, default=None)
        if low is not None and high is not None and _size(low) > _size(high):
            name = "no time" if isinstance(index, str) else f"no value of `{format_path(index)}`"
            meant = isinstance(asked[0], Between) and len(asked) == 1
            swapped = f"; did you mean `{typed(asked[0].changed(low=high, high=low))}`?" if meant else ""
            yield f"{name} is above {low!r} and below {high!r} at once{swapped}"
    for part in operation.children():
        if part not in ranges:
            yield from _on_ranges(part)


def _size(bound: PlainBound) -> float:
    return bound.time if isinstance(bound, Instant) else bound


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _meant(evidence: Evidence, leaf: Operation, records: Collection[Any]) -> tuple[str, str] | None:
    """Why no record matches the leaf, and what was probably meant; None where nothing is known of that."""
    there = list(islice((other for other in dict.fromkeys(leaf.others()) if evidence.has(other)), _SHOWN))
    spelled = [] if there else evidence.spellings(leaf)
    there += [each for each in spelled if each.paths == leaf.paths][:_SHOWN]
    other = combine(Or, tuple(there)) if len(there) > 1 else next(iter(there), None)
    path, known = leaf.paths[0], fields_in(records)
    name, held = f"`{format_path(path)}`", known.get(path)
    if isinstance(other, IsIn):
        kind = "text, in quotes" if isinstance(other.value[0], str) else "numbers, without quotes"
        return f"none of the {len(other.value):,} values is in {name}", f"did you mean {kind}?"
    if other is not None:
        return f"no record has {typed(leaf)}", f"did you mean `{typed(other)}`?"
    places = {each.paths[0][len(path) :] for each in spelled}
    if (*path, ANY) in known and (of_elements := leaf.of_elements()) is not None and (not places or (ANY,) in places):
        return f"{name} holds arrays", f"did you mean `{typed(of_elements)}`?"
    if isinstance(held, dict):
        inside = _inside(path, known)
        found = next((each for each in map(leaf.of_field, inside) if _holds(each, records)), next(iter(spelled), None))
        told = f"did you mean `{typed(found)}`?" if found is not None else "ask a field in them" + _such_as(inside)
        return f"{name} holds maps", told
    if isinstance(leaf, TextMatch) and isinstance(held, bool | int | float):
        of_text = leaf.of_field((*path, CASTS["text"]))
        return f"{name} holds no text, which `{leaf.op}` looks at", f"did you mean `{typed(of_text)}`?"
    if isinstance(leaf, Equal) and is_plain_number(held) and (status := _CLASS.fullmatch(_text(leaf.value))):
        low = 100 * int(status[1])
        meant = combine(And, (gte(low, path), lt(low + 100, path)))
        told = f"{name} holds numbers such as {held}, and {shown(leaf.value)} is text"
        return told, f"did you mean `{typed(meant)}`?"
    if (span := within(leaf)) is not leaf and any(_is_time(path, value_at(record, path)) for record in records):
        return f"no time in {name} is written {shown(getattr(leaf, 'value', None))}", f"did you mean `{typed(span)}`?"
    if path == ("stream",) and ("time",) in known and getattr(leaf, "value", None) in _STREAMS:
        more = evidence.sample(SAMPLE)  # few records have one
        texts = [text for text in (("message",), ("log",)) if any(_goes_on(record, text) for record in more)]
        finds = "present(trace)" if ("trace",) in fields_in(more) else ""
        finds = finds or next((f'{format_path(text)} contains "\\n"' for text in texts), "")
        told = f"records have the {name} of their first line, and stack traces on the other one belong to them"
        return (told, f"`{finds}` finds these") if finds else None
    if spelled:
        return f"no record has {typed(leaf)}", f"did you mean `{typed(spelled[0])}`?"
    if isinstance(leaf, Fits):
        told = f"no text of {name} is of the pattern {shown(leaf.value)}"
        return told, "a pattern is of a whole text, as `jitdb patterns` writes it: <num> for digits, <*> for one word"
    return in_trace(evidence, leaf)


def is_plain_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_time(path: Path, value: Any) -> bool:
    return time_of(value) is not None and (number_of(value) is None or time_meant(path, number_of(value)) is not None)


def _has_lines_below(record: Any) -> bool:
    """Whether it is of several lines of a container."""
    return value_at(record, ("trace",)) is not UNDEFINED or _goes_on(record, ("message",)) or _goes_on(record, ("log",))


def _goes_on(record: Any, path: Path) -> bool:
    """Whether a text of the record has several lines."""
    value = value_at(record, path)
    return isinstance(value, str) and "\n" in value


def _holds(leaf: Operation, records: Iterable[Any]) -> bool:
    """Whether it is true of one of these records."""
    return any(leaf.of_value(value_at(record, leaf.paths[0])) for record in records)


def _inside(path: Path, known: Iterable[Path]) -> list[Path]:
    """Those of these fields that are in the maps of this one."""
    return [other for other in known if other[: len(path)] == path != other and ANY not in other]


def _such_as(paths: Sequence[Path]) -> str:
    return f", such as `{format_path(paths[0])}`" if paths else ""


def hints_about(evidence: Evidence, question: Question, is_empty: bool) -> list[str]:
    """For any answer: a line for each field or value that no record has, or field whose text is taken as numbers."""
    operation = question.operation
    found = hints_of(evidence, operation) if is_empty else hints_on_fields(evidence, operation, operation.all_paths())
    compared = values_compared(evidence, operation, is_empty)
    odd = [*on_unleveled(evidence, operation), *_on_unlike(evidence, operation)]
    odd += on_texts(evidence, operation, is_empty)
    return [*found, *compared, *odd, *number_hints(evidence, numbers_of(question))]


def _on_unlike(evidence: Evidence, operation: Operation) -> Iterator[str]:
    """A line where some lines are of another kind than the file's format, and so lack a field that is asked for.
    Where they have it by another name, another line says so.
    """
    denied = {path for leaf in operation.leaves() if isinstance(leaf, Absent) for path in leaf.paths}
    for path in dict.fromkeys(path for path in operation.all_paths() if path not in denied):
        for found in evidence.unlike(operation, path):
            lacking = [record for record in found.records if value_at(record, path) is UNDEFINED]
            if lacking and len(lacking) * _UNLIKE >= found.lines and in_place_of(path, lacking) is None:
                which = f"{len(lacking):,} of {found.lines:,} lines looked at are of another format than {found.format}"
                yield f"{which}, and have no `{format_path(path)}`: `{typed(absent(path))}` finds these"
                return


def hints_on_fields(evidence: Evidence, operation: Operation, paths: Sequence[Path]) -> list[str]:
    """For an answer that is not empty: a line for each of these fields that no record has, one for those that are
    called otherwise in some of the logs, and one for their values that are there in another form, too.

    The first matter here, too: `not`, `!=` and `is absent` are then true of all records, and `or` loses a part.
    """
    found = _on_fields(evidence, operation, paths, lacks_of(evidence, paths))
    return [*found, *_on_values(evidence, operation, paths), *on_named_levels(evidence, operation, paths, False)]


def _on_values(evidence: Evidence, operation: Operation, paths: Collection[Path]) -> list[str]:
    named_values = dict.fromkeys(leaf for leaf in operation.leaves() if leaf.names_value)  # others have no hash
    asked = [leaf for leaf in named_values if leaf.paths and leaf.paths[0] in paths][:_MOST_VALUES]
    denied = set(operation.denied_leaves())
    asked = [leaf for leaf in asked if leaf not in denied or evidence.has(leaf)]  # else denied_values() says it
    named, others = set(named_values), dict[Operation, list[Operation]]()
    for leaf in asked:
        others[leaf] = [other for other in dict.fromkeys(evidence.spellings(leaf)) if other not in named]
        named.update(others[leaf])
    told = ", ".join(f"`{typed(other)}`" for found in others.values() for other in found)
    if not told or any(leaf.function is not None for leaf in operation.leaves()):
        return []
    every = operation.replaced(lambda leaf: combine(Or, (leaf, *others.get(leaf, ()))))
    return [f"other records have {told}: `{typed(every)}` asks those, too"]


def _on_fields(
    evidence: Evidence, operation: Operation, paths: Sequence[Path], lacks: Mapping[Path, Lack]
) -> list[str]:
    records = evidence.sample(SAMPLE) if lacks else []
    told = lines_on(lacks, records) if lacks else {}
    named = operation.all_paths()
    others = _called_otherwise(evidence, operation, paths)
    if (time := roles_of(records).time) is not None:
        timed = {leaf.paths[0] for leaf in operation.leaves() if leaf.paths and leaf.compared == (leaf.paths[0], True)}
        others |= {path: {time: []} for path in told if path in timed and path not in others}
    if not others:
        return list(told.values())
    instead = asked_of(operation, others, others.keys() & told.keys())
    for path in told.keys() & others.keys():
        meant = typed(instead) if instead is not None and path in named else " or ".join(map(format_path, others[path]))
        told[path] = f"no record has {lacks[path]} `{format_path(path)}`; did you mean `{meant}`?"
    partly = [where_others(path, found) for path, found in others.items() if path not in told]
    if not partly:
        return list(told.values())
    renamed = [(path, other) for path in others for other in others[path]]
    asks = "" if instead is None else f": `{typed(instead)}` asks those, too"
    if asks and not all(starmap(have_one_unit, renamed)):
        asks += ", if their units are the same"
    return [*told.values(), "; ".join(partly) + asks + _anywhere(operation)]


def _anywhere(operation: Operation) -> str:
    """The question for a value in any field, in words, where one is asked for that is long and no word, as that of a
    request is, which other logs have, too; else empty.
    """
    values = (leaf.value for leaf in operation.leaves() if isinstance(leaf, Equal) and isinstance(leaf.value, str))
    found = next((value for value in values if re.fullmatch(_ID, value)), "")
    return f'; `* contains "{found}"` looks in all fields' if found else ""


def _called_otherwise(evidence: Evidence, operation: Operation, paths: Sequence[Path]) -> Elsewhere:
    """The other names of these fields that the question does not name itself; a function knows what it asks for."""
    of_functions = {path for leaf in operation.leaves() if leaf.function is not None for path in leaf.paths}
    asked = [path for path in dict.fromkeys(paths) if path not in of_functions]
    named = set(operation.all_paths())
    others: Elsewhere = {}
    for path, found in (evidence.elsewhere(operation, asked) if asked else {}).items():
        new = {other: logs for other, logs in found.items() if other not in named}
        if new:
            others[path] = new
            named |= new.keys()
    return others


def values_compared(evidence: Evidence, operation: Operation, is_empty: bool) -> list[str]:
    """For any answer: a line for each value that is denied or compared in a form in which no record has it."""
    denied = () if is_empty else _denied_values(evidence, operation)
    return [*_on_times(evidence, operation), *_on_lengths(evidence, operation), *denied]


def _on_lengths(evidence: Evidence, operation: Operation) -> Iterator[str]:
    """A line for each field of which lengths of time are compared, and that some records have as a plain number."""
    ranges = [leaf for leaf in operation.leaves() if isinstance(leaf, Range) and leaf.paths]
    asked = [leaf for leaf in ranges if leaf.paths[0][-1] == CASTS["duration"]]
    records = evidence.sample(SAMPLE) if asked else []
    for leaf in dict.fromkeys(asked):
        path = before_cast(leaf.paths[0])
        values = [value for record in records for value in values_at(record, path)]
        number = next((value for value in values if is_plain_number(value)), None)
        texts = [value for value in values if isinstance(value, str) and value.strip()]
        other = next((text for text in texts if length_of_text(text) is None and number_of(text) is None), None)
        if other is not None:
            which = f"values of `{format_path(path)}` such as {shown(other)}"
            yield f"{which} are no lengths of time: `{typed(leaf)}` leaves them out"
        if number is not None and any(length_of_text(value) is not None for value in values if isinstance(value, str)):
            meant = operation.replaced(partial(_asked_both, leaf, path))
            yield (
                f"`{format_path(path)}` holds plain numbers, too, such as {number}, which `{typed(leaf)}` leaves out: "
                f"if they are seconds, `{typed(meant)}` asks those, too"
            )


def _on_times(evidence: Evidence, operation: Operation) -> Iterator[str]:
    """A line for each number that a time is compared with and that is none of its unit: 1700000000 of milliseconds is
    above nothing, and 1700000000000 of seconds below all.
    """
    asked = {leaf: other for leaf in operation.leaves() if (other := as_time(leaf)) is not leaf}
    records = evidence.asked(operation, _FEW) if asked else []
    for leaf, other in asked.items():
        if why := held_otherwise(leaf, records):
            yield f"{why}; did you mean `{typed(other)}`?"


def _asked_both(leaf: Operation, path: Path, each: Operation) -> Operation:
    """A leaf of a question; the one named here asked of another field, too."""
    return combine(Or, (leaf, leaf.of_field(path))) if each == leaf else each


def _denied_values(evidence: Evidence, operation: Operation) -> list[str]:
    """A line for each value that is denied, that no record has, and that is there in another form.

    `status != 200` is true of all records where the status is text, and `level != "error"` where errors are 50.
    Whether a record has other values may take reads.
    """
    leaves = list(operation.denied_leaves())
    of_elements = {leaf.paths for leaf in leaves if isinstance(leaf, Includes)}  # `not in` denies `contains`, too
    denied = dict.fromkeys(leaf for leaf in leaves if leaf.names_value and leaf.paths and leaf.paths not in of_elements)
    nulls = [leaf for leaf in denied if isinstance(leaf, Equal) and leaf.value is None]
    wrong = [leaf for leaf in islice(denied, _MOST_VALUES) if leaf not in nulls and not evidence.has(leaf)]
    records = evidence.sample(_FEW) if wrong else []  # an answer that is not empty may not read much for a note
    lacking = [leaf for leaf in (absent(each.paths[0]) for each in nulls) if leaf not in leaves and evidence.has(leaf)]
    found = (_meant(evidence, leaf, records) for leaf in wrong if records)
    told = [f"{why}, so `not` is true of all; {what}" for why, what in filter(None, found)]
    names = (format_path(leaf.paths[0]) for leaf in lacking)
    without = "is true of records without the field, too"
    return [*told, *(f"`{name} != null` {without}; did you mean `{name} is not null`?" for name in names)]


def numbers_of(question: Question) -> list[Path]:
    """The fields whose values the question takes as numbers."""
    compared = (leaf.compared for leaf in question.operation.leaves())
    found: list[Any] = [each[0] for each in compared if each is not None and not each[1]]
    if question.summary is not None:
        found += question.summary.columns
    if not isinstance(question.order, bool):
        found += [key.path for key in question.order]
    return [path for path in dict.fromkeys(found) if isinstance(path, tuple)]


def number_hints(evidence: Evidence, paths: Iterable[Path]) -> list[str]:
    """For fields that were taken for numbers, a line for each with text that spells a number, or a length of time."""
    found = []
    for path in paths:
        bits = evidence.seen_in(path)
        if bits & seen.TEXTS:
            found.append(taken_as_numbers(path))
        elif bits & seen.OTHERS and (text := length_in(evidence, path)):
            name = format_path(path)
            found.append(
                f'`{name}` is text such as "{text}": `duration({name})` is the length of time in seconds, and '
                f"`{name} > 5ms` compares it"
            )
    return found


def map_hints(evidence: Evidence, paths: Iterable[Path]) -> list[str]:
    """For fields whose values are counted, a line for each that some of a few records hold a map in, and one for the
    stream of records of several lines.
    """
    records, told = evidence.sample(_FEW), []
    if ("stream",) in paths and any(_has_lines_below(record) for record in evidence.sample(SAMPLE)):
        told.append("records have the `stream` of their first line: stack traces on the other one belong to them")
    for path in paths:
        held = [isinstance(value, dict) for record in records for value in values_at(record, path)]
        if any(held):
            maps = "maps" if all(held) else "maps in some records"
            meant = f"ask a field in them{_such_as(_inside(path, fields_in(records)))}"
            told.append(f"`{format_path(path)}` holds {maps}, and each different map counts as a value; {meant}")
    return told


def taken_as_numbers(path: Path) -> str:
    """The line about a field in which text is taken as the number that it spells."""
    return f"`{format_path(path)}` holds numbers written as text: taken as numbers here, and by == as text"


def length_in(evidence: Evidence, path: Path) -> str:
    """A length of time in the field, if most of its texts are some."""
    values = [value for record in evidence.sample(SAMPLE) for value in values_at(record, path)]
    texts = [value for value in values if isinstance(value, str)]
    lengths = [text for text in texts if length_of_text(text) is not None]
    return lengths[0] if 2 * len(lengths) > len(values) else ""
