"""All benchmarks, or those named: python -m benchmarks [NAME ...]"""

from __future__ import annotations

import os
import platform
import sys
from importlib import import_module

from .data import big_log
from .measure import HEAD

# By the room that each lies in; a name of two words has a - between them.
ROOMS = {
    "asking": (
        "first-question", "warm", "starting", "counting", "text", "columns", "shapes", "display", "exploring", "page",
        "jsonbench",
    ),
    "log": ("writing", "reading", "living", "compacting", "checksums"),
    "files": ("flat", "json-lines", "tools", "formats", "finding", "growth", "objects", "importing"),
    "stores": ("hyperdb", "cable", "spool"),
}  # fmt: skip
MODULES = {name: f".{room}.{name.replace('-', '_')}" for room, names in ROOMS.items() for name in names}


def processor() -> str:
    """The processor's name, as far as the system tells."""
    try:
        with open("/proc/cpuinfo") as file:
            return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        return platform.processor()


def main(names: list[str]) -> None:
    path = big_log()
    print(f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}")
    print(f"{path.name}: {path.stat().st_size / 1e6:,.0f} MB\n\n{HEAD}", flush=True)
    for name in names or MODULES:
        for figure in import_module(MODULES[name], __package__).run():
            print(figure.row(), flush=True)


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(MODULES)
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(MODULES)}")
    main(sys.argv[1:])
