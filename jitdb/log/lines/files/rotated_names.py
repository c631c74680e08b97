"""What rotation makes of a file's name: a number, a date, the ending of a compression.

`app.log` becomes `app.log.1`, `app.1.log`, `app-20261124.log`, `app.log.2026-11-24_07-00`, and any of these `.gz`.
"""

from __future__ import annotations

import os
import re
from enum import IntEnum
from functools import lru_cache
from typing import Final

from jitdb.common.formats import ENDINGS, without_ending

_DATE: Final = r"[-._]+\d{4}-?\d\d-?\d\d(?:[-T_.:]?\d+)*Z?"
_NUMBER: Final = r"[-._]\d+(?=$|\.)"
_ADDED: Final = re.compile(f"(?:{_DATE})|(?:{_NUMBER})")


class Kinship(IntEnum):
    """Whether one file may be the copy of another that is still there, by their names."""

    NONE = 0
    LIKELY = 1  # the same log, rotated and compressed
    CERTAIN = 2  # this very name with what a copy adds to it


def is_packed(path: str) -> bool:
    """Whether its name says that it is compressed."""
    return path.endswith(ENDINGS)


@lru_cache(maxsize=1 << 16)
def family(path: str) -> str:
    """The name that a rotated file had at first.

    >>> [family(name) for name in ("logs/app.log.3.gz", "app-2026-11-21.log", "app.log-20261121-07", "app.1.log")]
    ['app.log', 'app.log', 'app.log', 'app.log']
    """
    return _ADDED.sub("", without_ending(os.path.basename(path)))


def kinship(path: str, copy: str) -> Kinship:
    """How likely the file at `copy` is a copy of the one at `path`, both being there.

    >>> kinship("app.log", "app.log.1"), kinship("app.log.1", "app.log.1.gz"), kinship("app.log.1", "app.log.2.gz")
    (<Kinship.CERTAIN: 2>, <Kinship.CERTAIN: 2>, <Kinship.LIKELY: 1>)
    >>> kinship("app.log.1", "app.log.2"), kinship("a.log", "b.log")
    (<Kinship.NONE: 0>, <Kinship.NONE: 0>)
    """
    name, other = os.path.basename(path), os.path.basename(copy)
    if name == other or family(name) != family(other):
        return Kinship.NONE
    if without_ending(name) == without_ending(other) or name == family(name):
        return Kinship.CERTAIN
    return Kinship.LIKELY if is_packed(other) and not is_packed(name) else Kinship.NONE


def stem(name: str) -> str:
    """The beginning that all names of a rotated file have.

    >>> stem("app-2026-11-21.log.gz")
    'app'
    """
    return re.sub(_DATE, "", name).partition(".")[0]
