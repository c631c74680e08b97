"""The Python processes that Spark's tasks run in, one after the other."""

from __future__ import annotations

import gc

_settled = False


def settle() -> None:
    """Tell the garbage collector that what was imported stays. To be called by a task when all of it is imported.

    Spark's workers collect garbage between any two tasks, and walk through all objects that there are: with numba
    loaded that is 40 ms each time, more than a task of some MiB takes. What is
    garbage by then is collected first, so nothing is kept that would not be kept anyway.
    """
    global _settled
    if not _settled:
        _settled = True
        gc.collect()
        gc.freeze()
