"""Where in the stack the user stands, whose line a warning is shown at."""

from __future__ import annotations

import sys
from typing import Final

_PACKAGE: Final = __name__.partition(".")[0]


def outside() -> int:
    """The `stacklevel`, for warnings.warn of its caller, of the first frame that is none of jitdb's."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    return level
