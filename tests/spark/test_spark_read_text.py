"""Tables whose `where` asks for text: answered by the driver's indexes, or by the tasks, of logs and of lines."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from oracle import text_matches

from jitdb import Log
from jitdb.operators import contains, ends_with, equal, like, matches, not_, or_, starts_with
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.nodes.text_match import TextMatch

pytest.importorskip("pyspark")

from jitdb.spark_ext import read_log

TEXTS = ("Straße %d", "STRASSE %d", "Weg_%d", "\u00e9%d\n")

QUESTIONS: list[Operation] = [
    contains("text", "STRASSE", ignore_case=True), contains("text", "traße 1"), starts_with("text", "Weg"),
    starts_with("text", "weg", ignore_case=True), ends_with("text", "7"), like("text", "Weg\\__"),
    like("text", "s%9", ignore_case=True), not_(contains("text", "e")),
    or_(contains("tags[]", "4"), ends_with("text", "\n")),
]  # fmt: skip
if find_spec("re2"):
    QUESTIONS += [matches("text", "^(Weg|[A-Z]+).*[37]$"), matches("text", "^stra.*", ignore_case=True)]


#: Each question has records of its own, so that one table answers all of them.
RECORDS: list[dict[str, Any]] = [
    {"slot": slot, "text": TEXTS[number % 4] % number, "tags": [f"t{number % 5}"]}
    if number % 7
    else {"slot": slot, "text": number}
    for slot in range(len(QUESTIONS))
    for number in range(48)
]
WHERE = or_(*(equal("slot", slot) & question for slot, question in enumerate(QUESTIONS)))


def holds(operation: Operation, record: dict[str, Any]) -> bool:
    if operation.op == "not":
        return not holds(operation.children()[0], record)
    if operation.op == "or":
        return any(holds(child, record) for child in operation.children())
    assert isinstance(operation, TextMatch)
    held = record.get("tags", []) if operation.path[0] == "tags" else [record["text"]]
    return any(text_matches(operation, value) for value in held)


@pytest.mark.parametrize("indexes", ["none", "build"])
@pytest.mark.parametrize("kind", ["log", "lines"])
def test_where_asks_for_text(spark: Any, tmp_path: Path, kind: str, indexes: str) -> None:
    path = tmp_path / ("x.log" if kind == "log" else "x.ndjson")
    if kind == "log":
        with Log(path, codec="msgpack", block_size=2048) as log:
            log.append_many(RECORDS)
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    frame = read_log(spark, str(path), ["slot"], WHERE, indexes=indexes, partition_bytes=8192)
    expected = [number for number, record in enumerate(RECORDS) if holds(QUESTIONS[record["slot"]], record)]
    assert sorted(row.seq for row in frame.collect()) == expected
    assert {RECORDS[number]["slot"] for number in expected} == set(range(len(QUESTIONS)))
