"""A log that a job of Spark wrote as bipf is one of JavaScript's: read, and appended to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jitdb import Log
from jitdb.log.codecs import get_codec
from jitdb.spark_ext.writing.encoding import write_partition
from jitdb.spark_ext.writing.job import begin, commit

SCRIPT = Path(__file__).parent / "log.js"


@pytest.mark.parametrize("overwrite", [False, True])
def test_javascript_reads_what_a_job_wrote(tmp_path: Path, run_node: Callable[..., bytes], overwrite: bool) -> None:
    path = tmp_path / "x.log"
    records = [[{"n": number, "part": part, "text": "é" * number} for number in range(200)] for part in range(3)]
    for _ in range(2):
        target = begin(str(path), "job", "bipf", 4096, overwrite)
        commit(target, [write_partition(target, number, "0", part) for number, part in enumerate(records)])
    encode = get_codec("bipf").encode
    expected = [encode(record).hex() for part in records for record in part] * (1 if overwrite else 2)
    more = encode({"n": 1}).hex()
    commands = "\n".join(map(json.dumps, (["stream", {"gt": -1}], ["append", [more]])))
    seen, _ = json.loads(run_node(SCRIPT, commands, path, "4096"))
    assert [value for _, value in seen] == expected
    with Log(path, read_only=True) as log:
        assert [record.value.hex() for record in log.stream(raw=True)] == [*expected, more]
