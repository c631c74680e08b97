"""A question whose indexes are fresh must not wait for imports that it has no use for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from cli_helpers import EVENTS, environment
from thoroughness import tries

import jitdb
import jitdb.operators
from jitdb.cli import main
from jitdb.common.kernels import WAY

_HEAVY = (
    "rich",
    "numba",
    "asyncio",
    "pandas",
    "tempfile",
    "importlib.resources",
    "jitdb.engine.building.scan",
    "jitdb.cli.commands.query",
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


def test_a_count_of_one_value_needs_no_numpy(events: Path, tmp_path: Path) -> None:
    """What fresh indexes have in them: Python starts in a tenth of the time that numpy takes."""
    questions = (['level == "error"'], [], ["status > 500"], ['level >= "error"'])
    for question in questions:
        assert main(["count", "events.log", *question]) == 0
        modules = loaded(tmp_path, "count", "events.log", *question)
        unwanted = {
            *_HEAVY,
            "numpy",
            "dataclasses",
            "inspect",
            "difflib",
            "jitdb.engine.database",
            "jitdb.log.writing.writer",
        }
        assert modules.isdisjoint(unwanted), modules.intersection(unwanted)
        assert packages_of(modules) == {"jitdb", "msgpack", "pyroaring", "zlib_ng"}


@pytest.mark.parametrize(
    "question",
    [
        ["values", "level"], ["timeline"], ["timeline", "--every", "1s"], ["stats", "status"],
        ["query", "--limit", "2", "--descending"], ["query", 'level == "error"', "--limit", "2"],
    ],
)  # fmt: skip
def test_plain_questions_need_no_numpy(tmp_path: Path, question: list[str]) -> None:
    """Those that fresh indexes of a file of lines answer."""
    lines = tmp_path / "events.ndjson"
    lines.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    os.utime(lines, (1_700_000_000, 1_700_000_000))
    name, *rest = question
    command = [name, lines.name, *rest]
    assert main(["count", str(lines), 'level == "error"']) == main([name, str(lines), *rest]) == 0
    modules = loaded(tmp_path, *command)
    unwanted = {*_HEAVY, "numpy", "inspect", "ctypes", "jitdb.engine.database"} - {f"jitdb.cli.commands.{name}"}
    assert modules.isdisjoint(unwanted), modules.intersection(unwanted)
    assert packages_of(modules) == {"jitdb", "pyroaring", "zlib_ng"}


def test_a_range_of_times_in_a_map_needs_little_memory(tmp_path: Path) -> None:
    """Their codes are of four bytes or more: no table has a place for each."""
    times = [f"2026-11-{1 + number % 28:02}T10:00:{number % 60:02}.{number % 1000:03}Z" for number in range(3000)]
    lines = tmp_path / "a.ndjson"
    lines.write_text("".join(json.dumps({"meta": {"at": time}}) + "\n" for time in times))
    os.utime(lines, (1_700_000_000, 1_700_000_000))
    code = "import re, sys; from jitdb.cli import main; main(sys.argv[1:])"  # ru_maxrss is that of this process, too
    code += r"; print(re.search(r'VmHWM:\s+(\d+)', open('/proc/self/status').read())[1], 'numpy' in sys.modules)"
    for _ in range(3):
        command = [sys.executable, "-c", code, "count", str(lines), 'meta.at > "2026-11-20"']
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True, timeout=120)
    found, memory, has_numpy = done.stdout.split()
    assert int(found) == sum(time >= "2026-11-21" for time in times)  # a date alone is its whole day
    assert has_numpy == "False"
    assert int(memory) < 200 << 10


def test_count_with_fresh_indexes_imports_nothing_heavy(events: Path, tmp_path: Path) -> None:
    question = 'level == "error" and level starts_with "err"'
    assert main(["count", "events.log", question]) == 0
    modules = loaded(tmp_path, "count", "events.log", question)
    assert "numpy" in modules
    assert modules.isdisjoint(_HEAVY), modules.intersection(_HEAVY)


@pytest.mark.skipif(WAY != "native", reason="needs the library: python3 dev.py build")
def test_a_first_count_loads_no_compiler(events: Path, tmp_path: Path) -> None:
    """Nor anything that shows progress, or pages: it ends in a second."""
    modules = loaded(tmp_path, "count", "events.log", 'level == "error"')
    assert "jitdb.engine.building.scan" in modules
    assert packages_of(modules) == {"jitdb", "msgpack", "numpy", "pyroaring", "zlib_ng"}
    unwanted = {
        *_HEAVY,
        "numpy.ma",
        "jitdb.engine.reading.paging",
        "jitdb.log.writing.writer",
        "jitdb.engine.checking.check_indexes",
    } - {"jitdb.engine.building.scan"}
    assert modules.isdisjoint(unwanted), modules.intersection(unwanted)


def test_modules_show_their_public_names_alone() -> None:
    assert dir(jitdb) == sorted([*jitdb.__all__, "errors"])
    assert dir(jitdb.operators) == sorted(jitdb.operators.__all__)


def packages_of(modules: set[str]) -> set[str]:
    """The packages that are no part of Python, nor what an installation runs before a program."""
    there = {
        name.partition(".")[0] for name in modules if not name.startswith(("_", "sitecustomize", "cython_runtime"))
    }
    return there - sys.stdlib_module_names - {"distutils-precedence"}


def test_ndjson_with_fresh_indexes_imports_nothing_heavy(events: Path, tmp_path: Path) -> None:
    question = 'level == "error"'
    assert main(["prepare", "events.log", question]) == 0
    modules = loaded(tmp_path, "query", "events.log", question, "--format", "ndjson")
    heavy = set(_HEAVY) - {"jitdb.cli.commands.query"}
    assert modules.isdisjoint(heavy), modules.intersection(heavy)


def test_help_needs_no_numpy(tmp_path: Path) -> None:
    assert "numpy" not in loaded(tmp_path, "help")
    assert "numpy" not in loaded(tmp_path, "count", "--help")
    assert "numpy" not in loaded(tmp_path, "cuont")


_AT_AN_IMPORT = """\
import os, runpy, signal, sys

class Interrupt:
    begun, left = False, int(sys.argv[1])

    def find_spec(self, name, path, target=None):
        self.left -= self.begun
        self.begun = self.begun or name == "jitdb.__main__"
        if not self.left:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["jitdb", *sys.argv[2:]]
runpy.run_module("jitdb", run_name="__main__", alter_sys=True)
"""
_ENDS = (-signal.SIGINT, 130)


@pytest.mark.parametrize("number", range(1, 400, tries(30, 1)))
def test_ctrl_c_at_an_import(events: Path, tmp_path: Path, number: int) -> None:
    """Wherever it comes, it is no fault of the program's."""
    command = [sys.executable, "-c", _AT_AN_IMPORT, str(number), "count", events.name, 'level == "error"']
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr
    assert done.returncode in _ENDS or (done.returncode == 0 and number > 100)


@pytest.mark.parametrize("milliseconds", range(0, 300, tries(30, 5)))
def test_ctrl_c_while_the_program_starts(events: Path, tmp_path: Path, milliseconds: int) -> None:
    """Before Python has begun with jitdb, what is said is Python's."""
    command = [sys.executable, "-m", "jitdb", "count", events.name, 'level == "error"']
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=-1, stderr=-1, text=True) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(milliseconds / 1000)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    ours = [line for line in said.splitlines() if "ResourceWarning" not in line]  # of a file that Python was reading
    assert f"{os.sep}jitdb{os.sep}" not in "\n".join(ours)
    assert process.returncode in (*_ENDS, 0) or "Traceback" in said


_WITH_CTRL_C = """\
import runpy, signal, sys

signal.signal(signal.SIGINT, getattr(signal, sys.argv[1]))
sys.argv = ["jitdb", *sys.argv[2:]]
try:
    runpy.run_module("jitdb", run_name="__main__", alter_sys=True)
except SystemExit:
    from jitdb.indexes.segment import blob_cache

    print(blob_cache.is_for_one, signal.getsignal(signal.SIGINT).name)
"""


@pytest.mark.parametrize("handler", ["SIG_IGN", "SIG_DFL"])
def test_in_the_background_it_keeps_as_little(events: Path, tmp_path: Path, handler: str) -> None:
    """A shell has what it runs in the background ignore Ctrl-C, which stays so; that is no reason to keep more."""
    for question in (["timeline", events.name], ["timeline", events.name], ["count", ".", events.name]):
        command = [sys.executable, "-c", _WITH_CTRL_C, handler, *question]  # indexes are fresh from the second on
        done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120)
        assert done.stdout.splitlines()[-1] == f"True {handler}", question
