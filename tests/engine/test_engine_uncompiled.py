"""The same engine without compiled kernels, where numpy checks all bounds: a few questions, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from engine_helpers import FIXTURE

pytestmark = pytest.mark.slow

BLOCKS = 10  # of 64 KiB: some 700 records, which Python walks in seconds

PROGRAM = """
import sys
sys.path[:0] = sys.argv[2:]
from jitdb.common.kernels import WAY
assert WAY == "python"
from engine_helpers import check, oracle_of
from jitdb import JITDB, Log
from jitdb.operators import absent, and_, equal, gt, includes, lt, not_, or_, predicate, starts_with

def is_text(value):
    return isinstance(value, str)

with Log(sys.argv[1], codec="bipf", block_size=65536) as log:
    oracle = oracle_of(log)
    records = [record for record in oracle.records if record]
    author, key = records[3]["value"]["author"], records[5]["key"]
    sequence = sorted(record["value"]["sequence"] for record in records)[len(records) // 2]
    post = equal("value.content.type", "post")
    questions = [
        post,
        not_(post),
        equal("value.author", author),
        equal("value.author", author, prefix=32, prefix_offset=1),
        equal("key", key),
        equal("value.content.root", None),
        absent("value.content.root"),
        equal("value.content.root", "%x", use_map=True),
        includes("value.content.mentions", author, pluck="link"),
        predicate("value.content.text", is_text),
        starts_with("key", key[:3]),
        gt(sequence, "sequence"),
        lt(records[9]["timestamp"], "timestamp"),
        and_(post, gt(sequence, "sequence")),
        or_(equal("value.author", author), not_(includes("value.content.type", "vote"))),
    ]
    db = JITDB(log, threads=1)
    db.prepare(*questions)
    check(db, oracle, questions)
    print(len(records), sum(bool(db.count(question)) for question in questions))
"""


def test_questions_without_compiled_kernels(tmp_path: Path) -> None:
    path = tmp_path / "log.bipf"
    path.write_bytes(FIXTURE.read_bytes()[: BLOCKS * 65536])
    here = Path(__file__).parent
    python = [sys.executable, "-W", "error::RuntimeWarning"]  # numpy's, of words that overflow: users are shown none
    command = [*python, "-c", PROGRAM, str(path), str(here), str(here.parent), str(here.parent.parent)]
    environment = {**os.environ, "JITDB_KERNELS": "python"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    records, answered = map(int, done.stdout.split())
    assert records > 500
    assert answered >= 12
