#!/usr/bin/env python3
"""Everything a fresh machine with Python needs, one command each. Uses the standard library only.

python3 dev.py demo      install jitdb into .venv and ask a bundled real log some questions
python3 dev.py test      install what the tests need and run them, side by side on all processors
python3 dev.py test fast those that take a moment each: no Spark, no node, no other processes, less than a minute
python3 dev.py build     compile the kernels anew, after a change of one of them
python3 dev.py check     linter, formatter and types
python3 dev.py faults    the thorough tests and the fault campaigns in full, hours (docs/reliability.md)
python3 dev.py bench     the benchmarks, against DuckDB and the JavaScript jitdb (needs node)
python3 dev.py clean     remove .venv
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
FAST = ("tests/log", "tests/indexes", "tests/operators", "tests/engine")
ENVIRONMENT = Path(os.environ.get("JITDB_VENV", HERE / ".venv"))


def python() -> str:
    """The interpreter of the project's own environment, which is made when it is not there."""
    executable = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not executable.exists():
        print(f"making {ENVIRONMENT} …", flush=True)
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
    return str(executable)


def install(extras: str = "") -> str:
    """Install this checkout (editable) and its needs; quick when nothing changed."""
    executable = python()
    print("installing jitdb and what it needs …", flush=True)
    run(
        [
            executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-compile",
            "-e",
            f"{HERE}{extras}",
        ]
    )
    return executable


def run(command: list[str], **environment: str) -> None:
    """Run a command in the checkout; leave with its exit code when it fails."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # Many tests start processes, which would compile every module anew.
    finished = subprocess.run(command, cwd=HERE, env=inherited | environment, check=False)
    if finished.returncode:
        sys.exit(finished.returncode)


def demo(*arguments: str) -> None:
    builds = any(map(shutil.which, ("cc", "gcc", "clang", "ld")))  # as build_kernels.py looks for one
    run([install("" if builds else "[numba]"), "-m", "jitdb", "demo", *arguments])


def test(*arguments: str) -> None:
    if arguments[:1] == ("fast",):
        arguments = ("-m", "not slow", *(arguments[1:] or FAST))
    executable = install("[test]")
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    processes = str(processors + 1)  # a third of the time tests wait, for disks and other processes
    side_by_side = ["-n", processes, "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0"]
    run([executable, "-m", "pytest", *side_by_side, *arguments])


def build() -> None:
    run([install("[test]"), "build_kernels.py"])


def check() -> None:
    executable = install("[test]")
    run([executable, "-m", "ruff", "check", "."])
    run([executable, "-m", "ruff", "format", "--check", "."])
    run([executable, "-m", "mypy"])


def bench(*arguments: str) -> None:
    run([install("[test]"), "-m", "benchmarks", *arguments])


def faults(*arguments: str) -> None:
    executable = install("[test]")
    if not arguments:
        folders = ["tests/log", "tests/indexes", "tests/engine", "tests/cli", "tests/stores"]
        run([executable, "-m", "pytest", "-o", "faulthandler_timeout=3600", *folders], JITDB_THOROUGH="1")
        kernels = ["tests/log/codecs", "tests/indexes", "tests/stores", "-k", "shapes or kernels and not uncompiled"]
        run([executable, "-m", "pytest", *kernels], JITDB_KERNELS="numba", NUMBA_BOUNDSCHECK="1")
    run([executable, "-m", "tests.faults", *arguments])


def clean() -> None:
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)


COMMANDS = {
    "demo": demo,
    "test": test,
    "build": build,
    "check": check,
    "faults": faults,
    "bench": bench,
    "clean": clean,
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
