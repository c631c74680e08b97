"""The tests that take most of the time: a function a line in long.txt, with the seconds that all its cases took.

python3 dev.py test --junitxml times.xml && python3 tests/long_tests.py times.xml    writes long.txt anew
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

LIST = Path(__file__).with_name("long.txt")
_LEAST = 2.0  # seconds of a function that is listed


def function_of(nodeid: str) -> str:
    """A test without the parameters of its case."""
    return nodeid.partition("[")[0]


@cache
def names() -> frozenset[str]:
    return frozenset(line.split()[1] for line in LIST.read_text().splitlines())


def listed(report: Path) -> str:
    """The lines of the list, by what a run took."""
    seconds: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        module, _, name = case.attrib["classname"].rpartition(".")
        steps = [*module.split("."), name] if not name.startswith("Test") else module.split(".")
        path = f"{'/'.join(steps)}.py" + (f"::{name}" if name.startswith("Test") else "")
        seconds[function_of(f"{path}::{case.attrib['name']}")] += float(case.attrib["time"])
    return "".join(f"{took:5.0f} {name}\n" for name, took in seconds.most_common() if took >= _LEAST)


if __name__ == "__main__":
    LIST.write_text(listed(Path(sys.argv[1])))
