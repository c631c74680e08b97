"""Running the JavaScript modules beside ours.

Needs `node` and `npm`; the modules pinned in package.json are installed once, into node_modules in this folder.
Without node these tests are skipped.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from node_modules import installed, missing_tools

HERE = Path(__file__).parent

RunNode: TypeAlias = Callable[..., bytes]


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The folder with the pinned modules, installed when they are not there in these versions."""
    if missing := missing_tools():
        pytest.skip(f"{' and '.join(missing)} not found: install Node.js 18 or later to compare with its modules")
    if said := installed(HERE):
        pytest.fail(f"npm install failed in {HERE.name}/:\n{said}")
    return HERE / "node_modules"


@pytest.fixture(scope="session")
def run_node(node_modules: Path) -> RunNode:
    """`run_node(script, input=b"", *args)`: what the script (JavaScript source, or a Path) writes to its stdout.

    `input` is its stdin, `args` are process.argv[2] and on. The test fails if the script does.
    """

    def run(script: str | Path, input: bytes | str = b"", *args: str | Path, timeout: float = 120) -> bytes:
        program = [str(script)] if isinstance(script, Path) else ["-e", script, "--", "script"]
        done = subprocess.run(
            ["node", *program, *map(str, args)],
            cwd=HERE,
            env={**os.environ, "NODE_PATH": str(node_modules)},
            input=input.encode() if isinstance(input, str) else input,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode:
            pytest.fail(f"node ended with {done.returncode}:\n{done.stderr.decode(errors='replace')}")
        return done.stdout

    return run
