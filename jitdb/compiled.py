"""The decorator of all kernels: compiled by numba, run without the GIL, kept compiled on disk where possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile at the first call, or load what an earlier process compiled.

    numba keeps machine code beside the source, else in the user's cache folder; where neither can be written (as in a
    read-only container), every process compiles anew. NUMBA_CACHE_DIR names another place.
    """
    try:
        compiled: Callable[..., Any] = njit(nogil=True, cache=True)(function)
    except RuntimeError as error:
        if "no locator" not in str(error):
            raise
        compiled = njit(nogil=True)(function)
    return compiled
