"""One Spark session for all tests of this folder; without pyspark they are skipped."""

from __future__ import annotations

import faulthandler
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from own_codec import name_codecs

TESTS = Path(__file__).parent.parent
#: Workers find what the tests import as the tests do.
FOUND = os.pathsep.join([str(TESTS), str(TESTS / "spark"), *filter(None, [os.environ.get("PYTHONPATH")])])
INSTALLED = find_spec("pyspark") is not None

#: For a session that leaves the machine alone.
QUICK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
}

#: A Java that starts fast, also in processes that tests start: it compiles little, and has few threads.
QUICK_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
if (KEPT := Path(sys.prefix, "spark.jsa")).exists():  # Spark's classes, as dev.py has them written down
    QUICK_JAVA += f" -XX:SharedArchiveFile={shlex.quote(str(KEPT))} -Xlog:disable"  # nor a word if it is another Java's
for _name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
    os.environ.setdefault(_name, QUICK_JAVA)


#: Programs with a Spark of their own, by their tests. They wait a lot, so they run beside the tests that share one.
PROGRAMS = {"test_spark_cluster.py": "cluster_script.py", "test_spark_connect.py": "connect_script.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    mine = [number for number, item in enumerate(items) if here in item.path.parents]
    if not INSTALLED:
        for number in mine:
            items[number].add_marker(pytest.mark.skip(reason="pyspark is not installed: pip install 'jitdb[spark]'"))
    last = sorted((items[number] for number in mine), key=lambda item: item.path.name in PROGRAMS)
    for number, item in zip(mine, last, strict=True):  # their tests come when they are done
        items[number] = item


class Program:
    """One of these programs, which runs in a folder of its own until somebody asks what it printed."""

    def __init__(self, script: str, folder: Path, python: Path) -> None:
        self._output, self._errors = folder / "output", folder / "errors"
        with open(self._output, "w") as output, open(self._errors, "w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, TESTS / "spark" / script, folder],
                # SPARK_TESTING: a Connect server listens on any port that is free.
                env={**os.environ, "PYSPARK_PYTHON": str(python), "PYTHONPATH": FOUND, "SPARK_TESTING": "1"},
                cwd=folder, stdout=output, stderr=errors,
            )  # fmt: skip

    def printed(self) -> list[str]:
        """Its lines, once it has ended well."""
        faulthandler.cancel_dump_traceback_later()  # the limit is of one test; this waits for several
        assert self.process.wait(900) == 0, self._errors.read_text()[-4000:]
        return self._output.read_text().splitlines()

    def end(self) -> None:
        """It is not needed any more."""
        self.process.terminate()
        self.process.wait()


#: Runs Python as it is told to, but without the archives that Spark names first, PySpark's own among them: a worker
#: would compile what it imports from these, and read their tables of contents some twenty times, for
#: `importlib.invalidate_caches()`. And the daemon of workers has imported what each would: that is most of what short
#: ones do. Programs that tests start as users do have what users have.
READY = """\
#!/bin/sh
IFS=:
for place in $PYTHONPATH; do [ -f "$place" ] || kept="$kept:$place"; done
export PYTHONPATH="${{kept#:}}"
[ "$2" = pyspark.daemon ] && shift 2 && set -- -m ready_daemon "$@"
exec {python} "$@"
"""


@pytest.fixture(scope="session")
def ready_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ready") / "python"
    made.write_text(READY.format(python=shlex.quote(sys.executable)))
    made.chmod(0o755)
    return made


@pytest.fixture(scope="session")
def programs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, ready_python: Path
) -> Iterator[dict[str, Program]]:
    """Those whose tests are among the ones that are run, by their scripts' names."""
    asked = {item.path.name for item in request.session.items} if INSTALLED else set()
    scripts = [script for test, script in PROGRAMS.items() if test in asked]
    folders = {script: tmp_path_factory.mktemp(script.removesuffix(".py")) for script in scripts}
    started = {script: Program(script, folder, ready_python) for script, folder in folders.items()}
    yield started
    for program in started.values():
        program.end()


@pytest.fixture(scope="session")
def javas_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark's Java is started, so where its relative paths begin."""
    return tmp_path_factory.mktemp("java")


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a package is installed that names a codec of its own, beside those that jitdb names."""
    return name_codecs(tmp_path_factory.mktemp("packages"), masked="own_codec:Masked")


@pytest.fixture(scope="session")
def spark(programs: dict[str, Program], javas_folder: Path, packages: Path, ready_python: Path) -> Iterator[Any]:
    """Two workers on this machine; a task that fails is tried twice."""
    from jitdb.spark_ext import session

    os.environ["PYTHONPATH"] = os.pathsep.join([FOUND, str(packages)])
    with chdir(javas_folder):
        made = session("local[2,2]", app="jitdb tests", **QUICK)
    made.sparkContext.setLogLevel("ERROR")
    made.sparkContext.pythonExec = str(ready_python)
    yield made
    made.stop()
