"""The options of a table or a stream."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jitdb.common.paths import SEQUENCE, TIMESTAMPS, Path, parse_path
from jitdb.engine.checks import PathLike, paths_of
from jitdb.engine.plan import CoreFields
from jitdb.errors import QueryError
from jitdb.operators.nodes.operations import Operation
from jitdb.operators.text.expression import parse_expression
from jitdb.operators.text.json import from_json
from jitdb.spark_ext.options import checked, number, one_of, path_in, size
from jitdb.spark_ext.reading.columns import CORE, Asked, asked_columns

INDEXES: Final = ("auto", "build", "none")
_KNOWN: Final = {
    "path", "columns", "core", "where", "indexes", "indexfolder", "timestamp", "sequence", "mode", "samplerecords",
    "partitionbytes", "cores", "corruptblocks", "codec", "blocksize",
    "startingoffset", "maxbytesperbatch", "maxrecordsperbatch",
}  # fmt: skip
_FIELDS: Final = CoreFields(paths_of(TIMESTAMPS), paths_of(SEQUENCE))


@dataclass(frozen=True, slots=True)
class Options:
    """What the user wants of a read. docs/spark.md tells what each option means."""

    path: str
    columns: list[Asked] | None = None
    core: tuple[str, ...] = CORE
    where: Operation | None = None
    indexes: str = "auto"
    index_folder: str = ""
    fields: CoreFields = _FIELDS
    permissive: bool = False
    sample: int = 1000
    partition_bytes: int | None = None
    cores: int = 1
    skip_corrupt: bool = False
    codec: str | None = None
    block_size: int | None = None
    starting_offset: str = "earliest"
    max_bytes: int | None = None
    max_records: int | None = None

    @staticmethod
    def of(given: Mapping[str, str]) -> Options:
        """Raises QueryError for what cannot be understood, and for an option that there is none of."""
        options = checked(given, _KNOWN)
        default = Options("")
        return Options(
            path=path_in(options),
            columns=asked_columns(options.get("columns")),
            core=_core(options.get("core")),
            where=read_where(options.get("where")),
            indexes=one_of("indexes", options.get("indexes", "auto"), INDEXES),
            index_folder=options.get("indexfolder", ""),
            fields=CoreFields(
                _paths("timestamp", options, default.fields.timestamp),
                _sequence(_paths("sequence", options, default.fields.sequence)),
            ),
            permissive=one_of("mode", options.get("mode", "failfast"), ("failfast", "permissive")) == "permissive",
            sample=number(options, "samplerecords", 1) or default.sample,
            partition_bytes=size(options, "partitionbytes"),
            cores=number(options, "cores", 1) or os.cpu_count() or 1,
            skip_corrupt=one_of("corruptBlocks", options.get("corruptblocks", "error"), ("error", "skip")) == "skip",
            codec=options.get("codec"),
            block_size=size(options, "blocksize"),
            starting_offset=options.get("startingoffset", "earliest"),
            max_bytes=size(options, "maxbytesperbatch"),
            max_records=number(options, "maxrecordsperbatch", 1),
        )


def read_where(text: str | None) -> Operation | None:
    """The question in an option: an operation as JSON, or an expression as at the command line. Raises QueryError."""
    if text is None or not text.strip():
        return None
    if not text.lstrip().startswith("{"):
        return parse_expression(text)
    try:
        form = json.loads(text)
    except ValueError as error:
        raise QueryError(f"the option where is no JSON: {error}") from error
    return from_json(form)


def text_of_paths(paths: PathLike | Sequence[PathLike]) -> str:
    """Paths as _paths reads them, whatever is in their keys."""
    return json.dumps(paths_of(paths) if paths else ())


def _paths(option: str, options: Mapping[str, str], default: tuple[Path, ...]) -> tuple[Path, ...]:
    """The paths in an option: with commas between, or a JSON list of paths, each with dots or a list of keys."""
    text = options.get(option)
    if text is None:
        return default
    if not text.lstrip().startswith("["):
        return paths_of([part.strip() for part in text.split(",")])
    try:
        found: list[Any] = json.loads(text)
    except ValueError as error:
        raise QueryError(f"the option {option} is no JSON: {error}") from error
    return tuple(parse_path(each if isinstance(each, (str, list)) else (each,)) for each in found)


def _sequence(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    if len(paths) != 1:
        raise QueryError(
            f"the option sequence is one path, not {len(paths)}: value.sequence, or as JSON a list of one list of keys"
        )
    return paths


def _core(text: str | None) -> tuple[str, ...]:
    if text is None:
        return CORE
    names = tuple(part.strip().lower() for part in text.split(",") if part.strip())
    for name in names:
        one_of("core", name, CORE)
    return names
