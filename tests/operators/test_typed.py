"""What a type checker sees of a program that asks."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_mypy_sees_the_type_of_every_result(tmp_path: Path) -> None:
    program = Path(__file__).with_name("typed_program.py")
    options = ["--strict", "--warn-unused-ignores", "--cache-dir", str(tmp_path), "--follow-imports", "silent"]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(program)], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert run.returncode == 0, run.stdout + run.stderr
