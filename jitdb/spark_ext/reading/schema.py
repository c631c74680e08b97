"""Schemas: from columns to Spark's types, from Spark's to Arrow's, and what of a record each array is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import types as spark

from jitdb.common.paths import Path
from jitdb.common.times import AUTO
from jitdb.errors import QueryError
from jitdb.log.codecs.arrow_columns import is_decoded, is_supported, is_variant
from jitdb.spark_ext.columns import WHOLE, ColumnRequest, ColumnSource, source_of

_NAMES: Final = {
    "boolean": spark.BooleanType, "bool": spark.BooleanType,
    "byte": spark.ByteType, "tinyint": spark.ByteType,
    "short": spark.ShortType, "smallint": spark.ShortType,
    "int": spark.IntegerType, "integer": spark.IntegerType,
    "long": spark.LongType, "bigint": spark.LongType,
    "float": spark.FloatType, "real": spark.FloatType,
    "double": spark.DoubleType,
    "string": spark.StringType,
    "binary": spark.BinaryType,
    "timestamp": spark.TimestampType,
    "timestamp_ntz": spark.TimestampNTZType,
    "variant": spark.VariantType,
}  # fmt: skip


def spark_type(name: str) -> Any:
    """Spark's type of this name: one of the above, or array<…>, or map<string, …>. Raises QueryError.

    >>> spark_type("array<long>")
    ArrayType(LongType(), True)
    """
    text = name.strip().lower()
    if text in _NAMES:
        return _NAMES[text]()
    found = re.fullmatch(r"array\s*<(.*)>", text)
    if found:
        return spark.ArrayType(spark_type(found[1]))
    found = re.fullmatch(r"map\s*<\s*string\s*,(.*)>", text)
    if found:
        return spark.MapType(spark.StringType(), spark_type(found[1]))
    raise QueryError(
        f"no column can be of the type {name!r}: expected one of {', '.join(_NAMES)}, array<…> or map<string, …>",
        remedy="structs are asked for with .schema(…)",
    )


def table_schema(asked: Sequence[ColumnRequest]) -> Any:
    """The schema of a table with these columns, all of which have a type."""
    names = [each.name.lower() for each in asked]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise QueryError(
            f"two columns are called {twice[0]!r} (Spark does not tell upper from lower case)", remedy="rename one"
        )
    fields = [spark.StructField(each.name, spark_type(each.type), True, each.source.metadata()) for each in asked]
    return spark.StructType(fields)


def arrow_schema(schema: Any) -> pa.Schema:
    """Arrow's schema of Spark's, as Spark wants it of a data source."""
    from inspect import signature

    from pyspark.sql.pandas.types import to_arrow_schema

    options = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    made: pa.Schema = to_arrow_schema(schema, **options)
    return made


class Node(NamedTuple):
    """An array to be made. `rows` are the numbers of its fields among those that are located."""

    name: str
    type: pa.DataType
    nullable: bool
    source: ColumnSource
    rows: tuple[int, ...]
    children: tuple[Node, ...] = ()  # of a struct: its fields

    @property
    def is_slow(self) -> bool:
        """Whether it is decoded value by value."""
        return any(child.is_slow for child in self.children) if self.children else is_decoded(self.type)


@dataclass(slots=True)
class Layout:
    """The arrays of a table, and the fields to locate for them. Can be pickled."""

    schema: pa.Schema
    nodes: tuple[Node, ...] = ()
    paths: list[Path] = field(default_factory=list)
    timestamp: tuple[Path, ...] = ()
    unit: str = AUTO  # of numbers that are the declared time, in a column of timestamps

    def row(self, path: Path) -> int:
        """The number of this field among those that are located."""
        if path not in self.paths:
            self.paths.append(path)
        return self.paths.index(path)

    @property
    def is_slow(self) -> bool:
        """Whether records are decoded one by one."""
        return self.asks(WHOLE) or any(node.is_slow for node in self.nodes)

    def asks(self, core: str) -> bool:
        """Whether a column holds this."""
        return any(node.source.core == core for node in self.nodes)


def layout_of(
    schema: Any, asked: Sequence[ColumnRequest] | None, timestamp: Sequence[Path], unit: str = AUTO
) -> Layout:
    """The layout of a table with this schema; `timestamp` are the fields that say when a record was made, in that unit.

    Raises QueryError for a type that no column can have.
    """
    if not schema.fields:  # Spark would take such a batch for one without rows
        raise QueryError("a table has one column at least: the options columns and core leave none")
    layout = Layout(arrow_schema(schema), timestamp=tuple(timestamp), unit=unit)
    sources = [source_of(each.name, each.metadata, asked) for each in schema.fields]
    layout.nodes = tuple(_node(layout, each, source) for each, source in zip(layout.schema, sources, strict=True))
    return layout


def _node(layout: Layout, arrow: pa.Field, source: ColumnSource) -> Node:
    if not is_supported(arrow.type):
        raise QueryError(
            f"the column {arrow.name!r} cannot be of the type {arrow.type}: expected one of {', '.join(_NAMES)}, an "
            f"array, a map with text as keys, or a struct"
        )
    promised = _promised(arrow.type, within=bool(source.core))
    if promised:
        raise QueryError(
            f"the column {arrow.name!r} is of the type {arrow.type}, where {promised} cannot be null: "
            "records promise nothing of what is within arrays and maps",
            remedy="leave NOT NULL (containsNull, valueContainsNull) out there",
        )
    paths = layout.timestamp if source.core == "timestamp" else () if source.core else (source.path,)
    rows = tuple(map(layout.row, paths))
    return Node(arrow.name, arrow.type, arrow.nullable, source, rows, tuple(_children(layout, arrow.type, source)))


def _promised(kind: pa.DataType, within: bool) -> str:
    """What is NOT NULL within an array or a map of this type, in words: nothing would check it. Else empty."""
    if is_variant(kind):
        return ""
    if pa.types.is_list(kind):
        parts = [(kind.value_field, "an element")]
    elif pa.types.is_map(kind):
        parts = [(kind.item_field, "a map's value")]
    elif within and pa.types.is_struct(kind):
        parts = [(each, f"the field {each.name!r}") for each in map(kind.field, range(kind.num_fields))]
    else:
        parts = []  # a struct of the record itself has nodes for its fields, which are checked
    for each, words in parts:
        found = _promised(each.type, within=True) if each.nullable else words
        if found:
            return found
    return ""


def _children(layout: Layout, kind: pa.DataType, source: ColumnSource) -> Iterator[Node]:
    if source.core or not pa.types.is_struct(kind) or is_variant(kind):
        return
    for number in range(kind.num_fields):
        inner = kind.field(number)
        yield _node(layout, inner, ColumnSource(path=(*source.path, inner.name)))
