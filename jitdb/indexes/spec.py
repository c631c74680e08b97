"""The name of an index: a value that says which index a question needs, and names its file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from jitdb.common.digests import blake2b
from jitdb.common.paths import ANY, CASTS, Cast, Path, Step, format_path, plain_step, step_of
from jitdb.common.times import unit_and_zone

Form: TypeAlias = Literal[
    "auto",
    "bitmap",
    "prefix",
    "prefix_map",
    "column",
    "time",
    "dictionary",
    "offsets",
    "predicate",
    "text",
    "grams",
    "deleted",
]

# Those of the values of a field. One of a field in which no record has a value is not kept at once: it may be mistyped.
_OF_VALUES: Final = ("auto", "bitmap", "prefix", "prefix_map", "column", "time", "dictionary")
_SLUG_LENGTH: Final = 48
_TIMES: Final = 7  # of what `time(x)` and `duration(x)` take: raise it with each change of jitdb.common.times


class IndexSpec(NamedTuple):
    """An index, described by what it holds.

    form:          "auto" is a bitmap index until its field has too many values, then a prefix index of hashes
                   (a prefix map of hashes for elements)
                   "dictionary" has all values of the field, and for each record the number of its own
                   "text" has the records whose text a question is true of: `name` says which (text_match.py); without
                   a path, whose values are (anywhere.py)
                   "grams" tells in which part of the log a text may be (grams.py)
    paths:         the field; a column may take the smallest number, or the earliest time, of several
    index_type:    the name that stands for a function which finds the field (then `paths` is empty)
    elements:      of an array, each element counts as a value
    pluck:         the path inside each element, or ()
    prefix_offset: bytes before the four that a prefix holds; -1 for a prefix of the value's hash
    name:          of a predicate, or a question about text; of times how they are read (of deleted records: see
                   deleted_spec)
    version:       of the user's function; an index of a higher version replaces those of lower ones
    largest:       a column takes the largest number, or the latest time, that its path leads to
    """

    form: Form
    paths: tuple[Path, ...] = ()
    index_type: str | None = None
    elements: bool = False
    pluck: Path = ()
    prefix_offset: int = -1
    name: str = ""
    version: int = 0
    largest: bool = False

    @property
    def is_owned(self) -> bool:
        """Whether a record may own any number of values."""
        return self.elements or any(ANY in path for path in self.paths)

    @property
    def is_of_values(self) -> bool:
        """Whether it has the values of a field."""
        return self.form in _OF_VALUES

    def descriptor(self) -> dict[str, Any]:
        """The spec as plain values, written into the head of its file."""
        given = {key: value for key, value in self._asdict().items() if value != getattr(_DEFAULTS, key)}
        if any(isinstance(step, Cast) for path in self.paths for step in path):
            given["paths"] = [list(map(plain_step, path)) for path in self.paths]
            if self._takes_times:
                given["times"] = _TIMES
        return given

    @property
    def _takes_times(self) -> bool:
        """Whether it takes values for times or lengths. (Columns have the version of their kind: segment.py.)"""
        return any(step in (CASTS["time"], CASTS["duration"]) for path in self.paths for step in path)

    @staticmethod
    def from_descriptor(descriptor: dict[str, Any]) -> IndexSpec:
        """The spec whose descriptor this is. Raises TypeError for what no spec has."""
        given = dict(descriptor)
        given["paths"] = tuple(tuple(map(step_of, path)) for path in given.get("paths", ()))
        given["pluck"] = tuple(given.get("pluck", ()))
        times = given.pop("times", 0)
        spec = IndexSpec(**{"form": "auto", **given})
        plain: dict[str, type | tuple[type, ...]] = {"index_type": (str, type(None)), "elements": bool, "name": str}
        steps = chain(spec.pluck, *spec.paths)
        if (
            spec.form not in get_args(Form)
            or times != (_TIMES if spec._takes_times else 0)
            or not all(isinstance(getattr(spec, name), kind) for name, kind in plain.items())
            or not all(type(number) is int for number in (spec.prefix_offset, spec.version))
            or type(spec.largest) is not bool
            or not all(step is ANY or type(step) is int or isinstance(step, str | Cast) for step in steps)
        ):
            raise TypeError(f"no index has this descriptor: {descriptor!r}")
        return spec

    @property
    def title(self) -> str:
        """What the index is about, for people."""
        paths = [(*path, *((ANY, *self.pluck) if self.elements else ())) for path in self.paths]
        name = ", ".join(map(format_path, paths)) or self.index_type or ("*" if self.form == "text" else self.form)
        zone = unit_and_zone(self.name)[1] if self.form == "time" else ""
        more = self.name if self.form in ("predicate", "text") else "the largest" if self.largest else zone
        return f"{name} ({more})" if more else name

    def file_name(self) -> str:
        """A readable stem and a digest; no field name leads out of the folder."""
        return _file_name(self)


@lru_cache(maxsize=4096)  # asked several times for each log of a set, and for each question about text
def _file_name(spec: IndexSpec) -> str:
    text = json.dumps(spec.descriptor(), sort_keys=True)
    digest = blake2b(text.encode(), digest_size=6).hexdigest()
    paths = [".".join(map(_word, path)) for path in spec.paths] or [spec.index_type or spec.form]
    stem = re.sub(r"[^A-Za-z0-9]+", "_", "-".join([*paths, *map(_word, spec.pluck), spec.name])).strip("_-")
    return f"{stem[:_SLUG_LENGTH] or 'field'}.{spec.form}-{digest}.index"


def _word(step: Step) -> str:
    return "any" if step is ANY else str(step)


_DEFAULTS: Final = IndexSpec("auto")

OFFSETS: Final = IndexSpec("offsets")
GRAMS: Final = IndexSpec("grams")


class Requirement(NamedTuple):
    """An index that must be up to date, and the user's functions that build it."""

    spec: IndexSpec
    seek: Callable[[bytes, int], int | None] | None = None
    accepts: Callable[[Any], object] | None = None


def values_spec(path: Path) -> IndexSpec:
    """The index that is built for the values of a field: a dictionary, or bitmaps where a record may have several."""
    spec = IndexSpec("dictionary", (path,))
    return spec._replace(form="bitmap") if spec.is_owned else spec


def first_bytes_spec(path: Path) -> IndexSpec:
    """The index that is built for what values begin with."""
    spec = IndexSpec("prefix", (path,), prefix_offset=0)
    return spec._replace(form="prefix_map") if spec.is_owned else spec


def deleted_spec(change: bytes) -> IndexSpec:
    """The index of deleted records, as scans found them.

    `change` is the log's token for changes by other programs: such a program may have deleted records without a note in
    the journal, so all are looked at again.
    """
    return IndexSpec("deleted", name=change.hex())
