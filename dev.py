#!/usr/bin/env python3
"""Everything a fresh machine with Python needs, one command each. Uses the standard library only.

python3 dev.py demo      install jitdb into .venv and ask the log of a web service why it is slow
python3 dev.py test      install what the tests need and run them, side by side on all processors
python3 dev.py test fast those that take a moment each: no Spark, no node, no other processes, less than a minute
python3 dev.py test long the few that take most of the time (tests/long.txt); `test brief`, as .ci/run, the others
python3 dev.py install   what the tests need, without running them
python3 dev.py build     compile the kernels anew, after a change of one of them
python3 dev.py check     linter, formatter and types
python3 dev.py docs      the pages of docs/ as a site, in site/; a dead link is an error
python3 dev.py wheels    a wheel for each system, in dist/, a quarter of an hour (docs/platforms.md)
python3 dev.py faults    the thorough tests and the fault campaigns in full, hours (docs/reliability.md)
python3 dev.py fuzz      each parser with hostile bytes, a minute each (fuzz/; `fuzz 600 lines`: ten minutes of one)
python3 dev.py package   what a user gets: builds, installs into empty environments, runs README's commands; extras too
python3 dev.py bench     the benchmarks, against DuckDB and the JavaScript jitdb (needs node)
python3 dev.py clean     remove .venv, .venv-check and what builds leave (.kernels, site)
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
FAST = ("tests/log", "tests/indexes", "tests/operators", "tests/engine")
ENVIRONMENT = Path(os.environ.get("JITDB_VENV", HERE / ".venv"))
CHECKING = ENVIRONMENT.with_name(f"{ENVIRONMENT.name}-check")  # what reads the code and runs none of it


def python(environment: Path) -> str:
    """The interpreter of an environment of the project's own, which is made when it is not there."""
    executable = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not executable.exists():
        print(f"making {environment} …", flush=True)
        venv.create(environment, with_pip=True, clear=True)
    return str(executable)


def install(extras: str = "[test]") -> str:
    """Install this checkout (editable) and its needs; where that is done, the kernels alone, if they changed."""
    executable = python(ENVIRONMENT)
    needs = (HERE / "pyproject.toml").read_text()
    done, stamp = ENVIRONMENT / f"installed{extras}", f"{HERE}\n{needs}"
    if done.exists() and done.read_text() == stamp:
        subprocess.run([executable, "build_kernels.py"], cwd=HERE, stdout=subprocess.DEVNULL, check=False)
        return executable  # without a compiler they go on without them, as the installation does
    print("installing jitdb and what it needs …", flush=True)
    pip(executable, "setuptools>=70.1", *tomllib.loads(needs)["build-system"]["requires"])  # PySpark comes as sources
    pip(executable, "--no-build-isolation", "-e", f"{HERE}{extras}")  # which would bring numba for itself, each time
    if "test" in extras:
        keep_java(executable)
    done.write_text(stamp)
    return executable


def keep_java(executable: str) -> None:
    """A Java of Spark's writes down the classes that it loaded: those that tests start have them in half the time.

    Where that cannot be done, they load them as ever (tests/spark/conftest.py).
    """
    options = f"-XX:ArchiveClassesAtExit={shlex.quote(str(ENVIRONMENT / 'spark.jsa'))} -Xlog:disable"
    subprocess.run(
        [executable, "examples/spark_tour.py"], cwd=HERE, env={**os.environ, "SPARK_SUBMIT_OPTS": options}, check=False,
        capture_output=True,  # to its end, which is Java's, too
    )  # fmt: skip


def pip(executable: str, *what: str) -> None:
    run([executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", *what])


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
    if arguments[:1] in (("long",), ("brief",)):
        arguments = ("-m", "long" if arguments[0] == "long" else "not long", *arguments[1:])
    executable = install()
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    processes = str(processors + 1)  # a third of the time tests wait, for disks and other processes
    side_by_side = ["-n", processes, "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0"]
    run([executable, "-m", "pytest", *side_by_side, *arguments])


def build() -> None:
    run([install(), "build_kernels.py"])


def reading(extra: str) -> str:
    """The environment of what reads the code, with what an extra needs."""
    executable = python(CHECKING)
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    pip(executable, *project["dependencies"], *project["optional-dependencies"][extra])
    return executable


def check() -> None:
    executable = reading("check")
    run([executable, "-m", "ruff", "check", "."])
    run([executable, "-m", "ruff", "format", "--check", "."])
    run([executable, "-m", "mypy"])


def docs() -> None:
    how = ["-W", "--keep-going", "-q", "-E", "-d", str(CHECKING / "doctrees")]
    run([reading("docs"), "-m", "sphinx", *how, "docs", "site"])


def wheels(*arguments: str) -> None:
    run([install("[wheels]"), "build_wheels.py", *arguments])


def bench(*arguments: str) -> None:
    run([install(), "-m", "benchmarks", *arguments])


def faults(*arguments: str) -> None:
    executable = install()
    if not arguments:
        rooms = ("log", "indexes", "engine", "logset", "cli", "stores", "handlers")
        lines = ("tests/faults/test_line_steps.py", "tests/faults/test_line_processes.py")
        folders = [*(f"tests/{room}" for room in rooms), *lines]
        run([executable, "-m", "pytest", "-o", "faulthandler_timeout=3600", *folders], JITDB_THOROUGH="1")
        kernels = ["tests/log/codecs", "tests/indexes", "tests/stores", "-k", "shapes or kernels and not uncompiled"]
        run([executable, "-m", "pytest", *kernels], JITDB_KERNELS="numba", NUMBA_BOUNDSCHECK="1")
    run([executable, "-m", "tests.faults", *arguments])


def fuzz(*arguments: str) -> None:
    run([install("[test,fuzz]"), "-m", "fuzz", *arguments])


def package(*arguments: str) -> None:
    run([sys.executable, str(HERE / ".ci" / "package"), *arguments])


def clean() -> None:
    for made in (ENVIRONMENT, CHECKING, HERE / ".kernels", HERE / "site"):
        shutil.rmtree(made, ignore_errors=True)


COMMANDS = {
    "demo": demo,
    "install": install,
    "test": test,
    "build": build,
    "check": check,
    "docs": docs,
    "wheels": wheels,
    "faults": faults,
    "fuzz": fuzz,
    "package": package,
    "bench": bench,
    "clean": clean,
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
