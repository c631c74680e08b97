"""The tests of all kernels once more with the kernels as plain Python, where numpy checks every index."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jitdb.common.kernels import WAY

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
FILES = [
    "tests/log/codecs/test_locate_kernels.py",
    "tests/log/codecs/test_container_kernels.py",
    "tests/log/codecs/test_json_codec.py",
    "tests/log/codecs/test_shapes.py",
    "tests/log/codecs/test_masks.py",
    "tests/log/codecs/test_packed_rows.py",
    "tests/indexes/test_hash_kernels.py",
    "tests/indexes/test_value_kernels.py",
    "tests/indexes/test_set_kernels.py",
    "tests/indexes/test_spelled_numbers.py",
    "tests/indexes/test_time_kernels.py",
    "tests/indexes/test_roaring_kernels.py",
    "tests/indexes/test_vocabulary.py",
    "tests/stores/test_entry_kernels.py",
    "tests/stores/test_growing_kernels.py",
    "tests/stores/test_post_kernels.py",
]


@pytest.mark.skipif(WAY == "python", reason="nothing is compiled as it is")
def test_kernels_uncompiled() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-W",
        "error::RuntimeWarning",  # hashes are meant to overflow, without a word
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*command, *FILES],
        cwd=ROOT,
        env={**os.environ, "JITDB_KERNELS": "python"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
