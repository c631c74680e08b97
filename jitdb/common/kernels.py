"""How kernels run: functions of plain Python over numpy arrays, in one of three ways.

    native    machine code that a build made of them (build_kernels.py), there in a fraction of a millisecond
    numba     compiled when they are first called: where there is no such build, and numba is installed
    python    as they stand, under numpy's bounds checks: hundreds of times slower

JITDB_KERNELS names one of them; else it is the first that can be had. What a kernel takes and gives follows from its
annotations: int, float, and arrays of one type, contiguous. It neither allocates nor raises: callers bring all memory.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from jitdb.errors import InvalidArgument, JitdbWarning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    # What kernels say of their arrays (for readers and checkers; kernel_library.ARRAYS is what it means).
    U8: TypeAlias = NDArray[np.uint8]
    U32: TypeAlias = NDArray[np.uint32]
    U64: TypeAlias = NDArray[np.uint64]
    I16: TypeAlias = NDArray[np.int16]
    I32: TypeAlias = NDArray[np.int32]
    I64: TypeAlias = NDArray[np.int64]
    F64: TypeAlias = NDArray[np.float64]
    Bools: TypeAlias = NDArray[np.bool_]
    # Of two dimensions:
    U8Rows: TypeAlias = NDArray[np.uint8]
    I32Rows: TypeAlias = NDArray[np.int32]
    I64Rows: TypeAlias = NDArray[np.int64]
    U64Rows: TypeAlias = NDArray[np.uint64]
    F64Rows: TypeAlias = NDArray[np.float64]

Function = TypeVar("Function", bound=Callable[..., Any])

WAYS: Final = ("native", "numba", "python")


def _way() -> str:
    wanted = os.environ.get("JITDB_KERNELS", "")
    if wanted:
        if wanted not in WAYS:
            raise InvalidArgument(f"JITDB_KERNELS={wanted!r} is none of {', '.join(WAYS)}")
        if wanted != "native":
            return wanted
    from jitdb.common import kernel_library

    if kernel_library.library() is not None:
        return "native"
    if wanted:
        raise InvalidArgument(f"JITDB_KERNELS=native: there is no {kernel_library.PATH}, or none of these sources")
    if _has_numba():
        return "numba"
    warnings.warn(
        "there are no compiled kernels here, and scans take hundreds of times longer: install jitdb where there is a C "
        "compiler, or pip install 'jitdb[numba]'",
        JitdbWarning,
        stacklevel=2,
    )
    return "python"


def _has_numba() -> bool:
    try:
        return find_spec("numba") is not None
    except ValueError:  # somebody put None in its place, to do without
        return False


WAY: Final = _way()  # that of this process
KERNELS: Final[list[Callable[..., Any]]] = []  # those imported, uncompiled: what a build compiles
NUMBA: Final[dict[str, Any]] = {"nogil": True, "cache": True}  # what numba is told of each; a build tells it more


def kernel(function: Function) -> Function:
    """A kernel that is called from Python."""
    if WAY == "native":
        from jitdb.common import kernel_calls

        found: Any = kernel_calls.kernel(function)
        return found  # type: ignore[no-any-return]
    KERNELS.append(function)
    return _quiet(function) if WAY == "python" else part(function)


def part(function: Function) -> Function:
    """A function that kernels call."""
    return _jit(function) if WAY == "numba" else function


def inlined(function: Function) -> Function:
    """A part that takes less time than calling it would: it is put where it is called."""
    return _jit(function, inline="always") if WAY == "numba" else function


def _quiet(function: Function) -> Function:
    """Compute with numpy's words as machine code does with its own, which says nothing where they overflow."""
    import numpy as np

    @wraps(function)
    def quiet(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    found: Any = quiet
    return found  # type: ignore[no-any-return]


def _jit(function: Function, inline: Literal["never", "always"] = "never") -> Function:
    """Compile at the first call, or load what an earlier process compiled.

    numba keeps machine code beside the source, else in the user's cache folder; where neither can be written (as in a
    read-only container), every process compiles anew. NUMBA_CACHE_DIR names another place.
    """
    from numba import njit

    try:
        compiled: Any = njit(inline=inline, **NUMBA)(function)
    except RuntimeError as error:
        if "no locator" not in str(error):
            raise
        compiled = njit(inline=inline, **{**NUMBA, "cache": False})(function)
    found: Function = compiled
    return found
