"""The tests that take most of the time: a function a line in long.txt, with the seconds that all its cases took and the
number of cases. Of a function with many short cases the first one is no long test.

python3 dev.py test --junitxml times.xml && python3 tests/long_tests.py times.xml    writes long.txt anew
"""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

LIST = Path(__file__).with_name("long.txt")
_LEAST = 1.0  # seconds of a function that is listed
_MANY = 4  # cases


class Took(NamedTuple):
    """What all cases of a function took, in seconds, and how many these are."""

    seconds: float
    cases: int

    @property
    def is_first_short(self) -> bool:
        return self.cases >= _MANY and self.seconds < self.cases


def function_of(nodeid: str) -> str:
    """A test without the parameters of its case."""
    return nodeid.partition("[")[0]


@cache
def names() -> dict[str, Took]:
    lines = map(str.split, LIST.read_text().splitlines())
    return {name: Took(float(seconds), int(cases)) for seconds, cases, name in lines}


def listed(report: Path) -> str:
    """The lines of the list, by what a run took."""
    took: defaultdict[str, list[float]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        module, _, name = case.attrib["classname"].rpartition(".")
        steps = [*module.split("."), name] if not name.startswith("Test") else module.split(".")
        path = f"{'/'.join(steps)}.py" + (f"::{name}" if name.startswith("Test") else "")
        took[function_of(f"{path}::{case.attrib['name']}")].append(float(case.attrib["time"]))
    found = sorted(((sum(each), len(each), name) for name, each in took.items()), reverse=True)
    return "".join(f"{seconds:5.0f} {cases:4} {name}\n" for seconds, cases, name in found if seconds >= _LEAST)


if __name__ == "__main__":
    LIST.write_text(listed(Path(sys.argv[1])))
