"""Reading tables without Spark: what the driver and the workers do, in this process; and what the rows must be."""

from __future__ import annotations

import base64
import json
import math
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from oracle import MISSING, field, is_number

from jitdb.common.values import UNDEFINED
from jitdb.log.codecs import get_codec

BLOCK = 512


def table_rows(path: Path, *, schema: Any = None, columns: Any = None, where: Any = None, **options: Any) -> list[Any]:
    """The rows of a table as dicts, every part pickled on its way to its task."""
    from jitdb.spark_ext.data_source import JitdbDataSource
    from jitdb.spark_ext.options import as_options

    source = JitdbDataSource(options={**as_options(None, columns, where, options), "path": str(path)})
    reader = source.reader(source.schema() if schema is None else schema)
    rows: list[Any] = []
    for partition in reader.partitions():
        task = pickle.loads(pickle.dumps(reader))
        for batch in task.read(pickle.loads(pickle.dumps(partition))):
            batch.validate(full=True)
            rows += batch.to_pylist()
    return rows


def stored(codec: str, records: Sequence[Any]) -> list[Any]:
    """The records as the codec gives them back."""
    coder = get_codec(codec)
    return [coder.decode(coder.encode(record)) for record in records]


class Misfit(Exception):
    """A value does not fit its column."""


def cell(kind: str, value: Any) -> Any:
    """What a column of this type holds for a value: plain, slow, obvious. Raises Misfit."""
    if value is MISSING or value is None or value is UNDEFINED:
        return None
    if kind == "string":
        return text_of(value) if isinstance(value, str) else ("json", plain(value))
    if kind.startswith("array<"):
        if not isinstance(value, (list, tuple)) or hasattr(value, "code"):
            raise Misfit
        # What bipf keeps of JavaScript's undefined is no element.
        return [cell(kind[6:-1], item) for item in value if item is not UNDEFINED]
    if kind == "boolean" and isinstance(value, bool):
        return value
    if kind == "binary" and isinstance(value, bytes):
        return value
    if kind == "double" and is_number(value):
        return float(value)
    if kind in ("int", "long") and is_number(value) and math.isfinite(value) and value == math.floor(value):
        bits = 31 if kind == "int" else 63
        if -(2**bits) <= value < 2**bits:
            return int(value)
    raise Misfit


def text_of(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def plain(value: Any) -> Any:
    """The value as JSON has it, numbers as they compare."""
    if isinstance(value, bool) or value is None:
        return value
    if value is UNDEFINED:
        return None
    if isinstance(value, str):
        return text_of(value)
    if is_number(value):
        if not math.isfinite(value):
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value]


def same_cell(expected: Any, got: Any) -> bool:
    """Whether a row holds what is expected: JSON text by what it says, NaN equal to itself, true not to 1."""
    if isinstance(expected, tuple):
        return isinstance(got, str) and json.loads(got) == expected[1]
    if isinstance(expected, list):
        return (
            isinstance(got, list)
            and len(got) == len(expected)
            and all(same_cell(*pair) for pair in zip(expected, got, strict=True))
        )
    if isinstance(expected, float) and expected != expected:
        return isinstance(got, float) and got != got
    return type(expected) is type(got) and bool(expected == got)


def expected_rows(
    records: Sequence[Any], seqs: Sequence[int], offsets: Sequence[int], columns: dict[str, tuple[Sequence[str], str]]
) -> Iterator[dict[str, Any]]:
    """The rows of these records, with the columns name: (path, type). Raises Misfit."""
    for seq in seqs:
        found = {name: cell(kind, field(records[seq], path)) for name, (path, kind) in columns.items()}
        yield {"seq": seq, "offset": offsets[seq], **found}


def assert_rows(got: Sequence[dict[str, Any]], expected: Sequence[dict[str, Any]]) -> None:
    assert [row["offset"] for row in got] == [row["offset"] for row in expected]
    for left, right in zip(got, expected, strict=True):
        wrong = [name for name in right if not same_cell(right[name], left[name])]
        assert not wrong, f"{wrong[0]}: expected {right[wrong[0]]!r}, got {left[wrong[0]]!r} in {left}"
