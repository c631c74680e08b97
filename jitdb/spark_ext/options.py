"""The options of tables, streams and writes: from Python's arguments to Spark's text, and from text, by their names in
lower case, to what they mean. docs/spark.md tells what each is for.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

from jitdb.common.paths import SEQUENCE, Path, parse_path, split_paths
from jitdb.common.times import AUTO, UNITS
from jitdb.engine.checks import paths_of
from jitdb.engine.declared_time import CoreFields
from jitdb.errors import QueryError
from jitdb.log.objects.door import in_full
from jitdb.log.objects.urls import is_url
from jitdb.operators.nodes.field_ref import PathLike
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.text.expression import parse_expression
from jitdb.operators.text.json import from_json, to_json
from jitdb.spark_ext.columns import CORE, ColumnRequest, asked_columns, to_form

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

FORMAT: Final = "jitdb"  # what Spark calls the source

_NO_URI: Final = "a log is read and written at a path that all machines share, not at a URI"
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|file:/")
_OF_THIS_MACHINE: Final = re.compile(r"^file:(//)?(?=/[^/])")  # a URI without a host
_SIZE: Final = re.compile(r"(\d+)([kmgtp]?)b?")  # as Spark writes sizes
_NO_TABLES: Final = (
    "Spark tells no source in Python the options of a table in its catalog: CREATE TEMPORARY VIEW … USING jitdb "
    "OPTIONS (path …) in the place of CREATE TABLE, or .load(path)"
)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user wants of a table or a stream."""

    path: str
    columns: list[ColumnRequest] | None = None
    core: tuple[str, ...] = CORE
    where: Operation | None = None
    indexes: str = "auto"
    index_folder: str = ""
    timestamp: tuple[Path, ...] | None = None
    time_unit: str = AUTO
    sequence: tuple[Path, ...] = paths_of(SEQUENCE)
    permissive: bool = False  # what does not fit its column is null, and no error
    sample: int = 1000
    partition_bytes: int | None = None
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    skip_corrupt: bool = False  # a damaged block is left out, and no error
    codec: str | None = None
    block_size: int | None = None
    allow_prefix: bool = False
    log_format: str = ""
    starting_offset: str = "earliest"
    max_bytes: int | None = None
    max_records: int | None = None
    may_lose: bool = False  # records of a stream that are in no file any more are left out, and no error
    shared: Mapping[str, Any] = field(default_factory=dict)  # fields that all records of a log have by its path

    @staticmethod
    def of(given: Mapping[str, str]) -> ReadOptions:
        """Raises QueryError for what cannot be understood, and for an option that there is none of."""
        return _read(ReadOptions, given)

    @property
    def fields(self) -> CoreFields:
        """Which fields the core columns are of."""
        return CoreFields(self.timestamp, self.sequence, self.time_unit)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What the user wants of a write."""

    path: str
    codec: str | None = None
    block_size: int | None = None
    keep_nulls: bool = False
    partition_by: tuple[str, ...] = ()

    @staticmethod
    def of(given: Mapping[str, str]) -> WriteOptions:
        """Raises QueryError for what cannot be understood, and for an option that there is none of."""
        path = next((text for name, text in given.items() if name.lower() == "path"), "")
        if is_url(path):
            raise QueryError(_NO_URI, path=path)
        return _read(WriteOptions, given)


# --- from text -------------------------------------------------------------------------------------------------------


def is_uri(path: str | os.PathLike[str]) -> bool:
    """Whether a path is Hadoop's to read.

    >>> [is_uri(path) for path in ("hdfs://host/x.log", "file:///x.log", "file:/x.log", "/x.log", "file:x.log")]
    [True, True, True, False, False]
    """
    return _URI.match(os.fspath(path)) is not None


def log_path(given: str | os.PathLike[str]) -> str:
    """Where the log is, in full. Raises QueryError."""
    if not given:
        raise QueryError("the path of the log is missing", remedy=f'.load("my.log"), or the option path. {_NO_TABLES}')
    path = _OF_THIS_MACHINE.sub("", os.fspath(given))  # Spark makes such a URI of a path
    if is_url(path):
        return in_full(path)
    if is_uri(path):
        raise QueryError(_NO_URI, path=path)
    return os.path.abspath(path)


def bytes_of(given: int | str, what: str) -> int:
    """A size as Spark's own settings take it: bytes, or with a unit of 1,024 of the one before. Raises QueryError.

    >>> bytes_of(64, "x"), bytes_of("64k", "x"), bytes_of("64 MB", "x") >> 20, bytes_of("1_000", "x")
    (64, 65536, 64, 1000)
    """
    found = _SIZE.fullmatch(str(given).lower().replace("_", "").replace(" ", ""))
    if found is None or not int(found[1]):
        raise QueryError(f"{what} is a size, 1 byte or more: 65536, 64k, 64m, 64MB, 1g …, not {given!r}")
    return int(found[1]) << 10 * " kmgtp".index(found[2] or " ")


def _size(option: str, text: str) -> int:
    return bytes_of(text, f"the option {option}")


def _count(option: str, text: str) -> int:
    try:
        value = int(text.replace("_", ""))
    except ValueError:
        value = 0
    if value < 1:
        raise QueryError(f"the option {option} is an integer, 1 or more, not {text!r}")
    return value


def _word(option: str, text: str, allowed: Sequence[str]) -> str:
    """One of a few words, in lower case."""
    if text.lower() not in allowed:
        raise QueryError(f"the option {option} is one of {', '.join(allowed)}, not {text!r}")
    return text.lower()


def _either(usual: str, other: str) -> Callable[[str, str], bool]:
    """Whether it is the other one of two words."""
    return lambda option, text: _word(option, text, (usual, other)) == other


def _core(option: str, text: str) -> tuple[str, ...]:
    return tuple(_word(option, name, CORE) for name in map(str.strip, text.split(",")) if name)


def _where(option: str, text: str) -> Operation | None:
    """An operation as JSON, or an expression as at the command line."""
    if not text.strip():
        return None
    return from_json(_json(option, text)) if text.lstrip().startswith("{") else parse_expression(text)


def _paths(option: str, text: str) -> tuple[Path, ...]:
    """With commas between, or a JSON list of paths, each text or a list of steps."""
    if not text.lstrip().startswith("["):
        return paths_of(split_paths(text))
    return tuple(map(parse_path, _json(option, text)))


def _names(option: str, text: str) -> tuple[str, ...]:
    """With commas between, or a JSON list."""
    if not text.lstrip().startswith("["):
        return tuple(name for name in map(str.strip, text.split(",")) if name)
    found = _json(option, text)
    if not all(isinstance(name, str) for name in found):
        raise QueryError(f"the option {option} is a list of names of columns, not {text!r}")
    return tuple(found)


def _one_path(option: str, text: str) -> tuple[Path, ...]:
    paths = _paths(option, text)
    if len(paths) != 1:
        raise QueryError(
            f"the option {option} is one path, not {len(paths)}: value.sequence, or as JSON a list of one list of keys"
        )
    return paths


def _json(option: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise QueryError(f"the option {option} is no JSON: {error}") from error


#: Of each option, the attribute above, and what its text means. Each raises QueryError.
_OPTIONS: Final[dict[str, tuple[str, Callable[[str, str], Any]]]] = {
    "path": ("path", lambda option, text: log_path(text)),
    "columns": ("columns", lambda option, text: asked_columns(text)),
    "core": ("core", _core),
    "where": ("where", _where),
    "indexes": ("indexes", lambda option, text: _word(option, text, ("auto", "build", "none"))),
    "indexfolder": ("index_folder", lambda option, text: text),
    "timestamp": ("timestamp", _paths),
    "timeunit": ("time_unit", lambda option, text: _word(option, text, UNITS)),
    "sequence": ("sequence", _one_path),
    "mode": ("permissive", _either("failfast", "permissive")),
    "samplerecords": ("sample", _count),
    "partitionbytes": ("partition_bytes", _size),
    "cores": ("cores", _count),
    "corruptblocks": ("skip_corrupt", _either("error", "skip")),
    "codec": ("codec", lambda option, text: text),
    "blocksize": ("block_size", _size),
    "allowprefix": ("allow_prefix", _either("false", "true")),
    "logformat": ("log_format", lambda option, text: text),
    "startingoffset": ("starting_offset", lambda option, text: text),
    "maxbytesperbatch": ("max_bytes", _size),
    "maxrecordsperbatch": ("max_records", _count),
    "failondataloss": ("may_lose", _either("true", "false")),
    "partitionby": ("partition_by", _names),
    "nulls": ("keep_nulls", _either("drop", "keep")),
}


def _read(kind: type[T], given: Mapping[str, str]) -> T:
    texts = {name.lower(): value for name, value in given.items()}
    if "location" in texts:  # which only CREATE TABLE gives, when it makes the table
        raise QueryError(_NO_TABLES)
    attributes = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    known = {name for name, (attribute, _) in _OPTIONS.items() if attribute in attributes}
    unknown = sorted(set(texts) - known)
    if unknown:
        raise QueryError(f"there is no option {unknown[0]!r}; there are {', '.join(sorted(known))}")
    found = {"path": ""} | texts
    return kind(**{_OPTIONS[name][0]: _OPTIONS[name][1](name, text) for name, text in found.items()})


# --- to text ---------------------------------------------------------------------------------------------------------


def as_options(
    spark: SparkSession | None, columns: Any, where: Operation | str | None, options: Mapping[str, Any]
) -> dict[str, str]:
    """The options as Spark takes them."""
    found: dict[str, str] = {}
    if spark is not None and hasattr(spark, "sparkContext"):
        found["cores"] = str(spark.sparkContext.defaultParallelism)
    asked = asked_columns(columns)
    if asked is not None:
        found["columns"] = to_form(asked)
    if where is not None:
        found["where"] = json.dumps(to_json(where)) if isinstance(where, Operation) else where
    for name, value in options.items():
        if value is not None:  # as if it were not given
            plain = name.replace("_", "")
            found[plain] = _as_text(plain.lower(), value)
    for name, text in found.items():
        check_text(f"the option {name}", text)
    return found


def check_text(what: str, text: str) -> None:
    """Raise QueryError for what Spark's Java cannot be told: half a character, as names of files may hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryError(f"{what} is not valid Unicode (a lone surrogate at {error.start:,}): {text[:80]!r}") from None


def _as_text(option: str, value: Any) -> str:
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        return in_full(text) if option == "indexfolder" else text  # in full, as the log's own path
    if option in ("timestamp", "sequence"):
        paths: PathLike | Sequence[PathLike] = [value] if option == "sequence" else value
        return json.dumps(paths_of(paths) if paths else ())
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
