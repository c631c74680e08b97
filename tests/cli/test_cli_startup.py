"""A question whose indexes are fresh must not wait for imports that it has no use for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cli_helpers import environment

from jitdb.cli import main

_HEAVY = (
    "rich",
    "numba",
    "asyncio",
    "pandas",
    "tempfile",
    "gzip",
    "importlib.resources",
    "jitdb.scan",
    "jitdb.cli.query",
)


def loaded(folder: Path, *arguments: str) -> set[str]:
    code = f"import sys; from jitdb.cli import main; main({list(arguments)!r}); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return set(done.stdout.splitlines()[-1].split())


def test_count_with_fresh_indexes_imports_nothing_heavy(events: Path, tmp_path: Path) -> None:
    question = 'level == "error"'
    assert main(["count", "events.log", question]) == 0
    modules = loaded(tmp_path, "count", "events.log", question)
    assert "numpy" in modules
    assert modules.isdisjoint(_HEAVY), modules.intersection(_HEAVY)


def test_ndjson_with_fresh_indexes_imports_nothing_heavy(events: Path, tmp_path: Path) -> None:
    question = 'level == "error"'
    assert main(["count", "events.log", question]) == 0
    modules = loaded(tmp_path, "query", "events.log", question, "--format", "ndjson")
    heavy = set(_HEAVY) - {"jitdb.cli.query"}
    assert modules.isdisjoint(heavy), modules.intersection(heavy)


def test_help_needs_no_numpy(tmp_path: Path) -> None:
    assert "numpy" not in loaded(tmp_path, "help")
    assert "numpy" not in loaded(tmp_path, "count", "--help")
    assert "numpy" not in loaded(tmp_path, "cuont")


def test_ctrl_c_while_the_program_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'jitdb.cli.overview':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "import jitdb.cli\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (130, "jitdb: interrupted\n")
