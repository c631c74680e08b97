"""Running the JavaScript modules beside ours.

Needs `node` and `npm`; the modules pinned in package.json are installed once, into node_modules in this folder.
Without node these tests are skipped.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

HERE = Path(__file__).parent

RunNode: TypeAlias = Callable[..., bytes]


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The folder with the pinned modules, installed when they are not there in these versions."""
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not found: install Node.js 18 or later to compare with its modules")
    with open(HERE / "package.json", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes that run side by side install once
        if not _installed():
            command = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
            done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=240, check=False)
            if done.returncode or not _installed():
                pytest.fail(f"npm install failed in {HERE.name}/:\n{done.stdout}{done.stderr}")
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


def _installed() -> bool:
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]
    for name, version in wanted.items():
        package = HERE / "node_modules" / name / "package.json"
        if not package.exists() or json.loads(package.read_text())["version"] != version:
            return False
    return True
