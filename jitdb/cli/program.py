"""The name of this program, as it was started."""

from __future__ import annotations

import os


def program() -> str:
    """What to type to run this program again, from this folder."""
    import shlex
    import shutil
    import sys

    if shutil.which("jitdb"):
        return "jitdb"
    started = sys.argv[0] if sys.argv else ""
    if os.path.basename(started) == "jitdb" and os.access(started, os.X_OK):
        here = os.path.relpath(started)
        return shlex.quote(
            started if here.startswith("..") else os.path.join(".", here) if os.sep not in here else here
        )
    return f"{shlex.quote(sys.executable)} -m jitdb"
