"""Whole processes: importing, a count with fresh indexes, a count that scans."""

from __future__ import annotations

import os
import subprocess
import sys

from ..data import big_log
from ..measure import Figure, median_ms
from ..questions import INDEXES, forget_indexes

_EXPRESSION = 'value.content.type == "post"'


def _python(*arguments: str, **environment: str) -> None:
    subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env={**os.environ, **environment}
    )


def _count(**environment: str) -> None:
    _python("-m", "jitdb", "count", str(big_log()), _EXPRESSION, "--indexes", str(INDEXES), **environment)


def run() -> list[Figure]:
    bare = median_ms(lambda: _python("-c", "pass"), 9)
    numpy = median_ms(lambda: _python("-c", "import numpy"), 9)
    imported = median_ms(lambda: _python("-c", "import jitdb"), 9)
    unindexed = median_ms(_count, 5, forget_indexes)
    fresh = median_ms(_count, 9)
    return [
        Figure("`import jitdb`, whole process", imported / 1e3, "s", "python alone", bare / 1e3, "0.15 s", "0.1 s"),
        Figure("`jitdb count`, fresh indexes, whole process", fresh / 1e3, "s", "import numpy", numpy / 1e3,
               "0.3 s", "0.2 s"),
        Figure("`jitdb count`, unindexed, whole process", unindexed / 1e3, "s", "", None, "0.8 s", "0.45 s"),
    ]  # fmt: skip
