"""How kernels run: functions of plain Python over numpy arrays, in one of three ways.

    native    machine code that a build made of them (build_kernels.py), there in a fraction of a millisecond
    numba     compiled when they are first called: where there is no such build, and numba is installed
    python    as they stand, with numpy's bounds checks: hundreds of times slower

JITDB_KERNELS names one of them; the default is the first that is available. A kernel's annotations are its signature:
int, float, and contiguous arrays of one type. It neither allocates nor raises: callers provide all memory.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from array import array
from collections.abc import Callable
from functools import update_wrapper, wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from jitdb.common import kernel_library
from jitdb.errors import InvalidArgument, JitdbWarning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    # Types of kernels' arrays, for readers and type checkers (kernel_library.ARRAYS has what they mean).
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
    except ValueError:  # sys.modules has None for it
        return False


WAY: Final = _way()  # of this process
KERNELS: Final[list[Callable[..., Any]]] = []  # the imported ones, uncompiled, for a build
NUMBA: Final[dict[str, Any]] = {"nogil": True, "cache": True}  # numba's options; a build has more


def kernel(function: Function) -> Function:
    """A kernel that is called from Python."""
    if WAY == "native":
        found: Any = NativeKernel(function)
        return found  # type: ignore[no-any-return]
    KERNELS.append(function)
    return _quiet(function) if WAY == "python" else part(function)


def part(function: Function) -> Function:
    """A decorator for functions that kernels call."""
    return _jit(function) if WAY == "numba" else function


def inlined(function: Function) -> Function:
    """A part that is inlined where it is called, because a call would take longer."""
    return _jit(function, inline="always") if WAY == "numba" else function


def _quiet(function: Function) -> Function:
    """Silence numpy's warnings of overflows, which machine code does not give."""
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


_Place: Final = ctypes.c_char * 0  # the address of an array, for as long as a call takes
_UNUSED: Final = (ctypes.c_void_p * 1)()  # where numba's calling convention puts a result; kernels have none


def called_plainly(symbol: str, *arguments: int | array[Any]) -> bool:
    """Call a kernel that gives nothing by its name in the library, without its module, which imports numpy; False where
    kernels run in another way. Nobody checks that these are the numbers and the types of arrays that it takes.
    """
    found = kernel_library.library() if WAY == "native" else None
    if found is None:
        return False
    passed: list[Any] = []
    for argument in arguments:
        if isinstance(argument, int):
            passed.append(ctypes.c_int64(argument))
        else:
            passed += [ctypes.c_void_p(argument.buffer_info()[0]), ctypes.c_int64(len(argument))]
    room = ctypes.c_int64()
    if found[symbol](_UNUSED, None, *passed, ctypes.byref(room), ctypes.byref(room)):
        raise AssertionError(f"{symbol} failed")  # the build rules this out
    return True


class NativeKernel:
    """A kernel of the library, which replaces the Python function.

    Raises TypeError for arguments that are not what it takes.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._takes, self._gives = kernel_library.Signature.of(function)
        self._room = ctypes.c_int64 * max(1, len(self._gives))
        self._is_whole = {*self._gives} == {"int"}
        self._native: Any = None
        self._arrays: list[tuple[Any, int] | None] = []  # the type and dimensions of each that it takes; None: a number

    def __call__(self, *arguments: Any) -> Any:
        if self._native is None:
            self._native = self._found()
        room = self._room()
        passed: list[Any] = []
        for wanted, argument in zip(self._arrays, arguments, strict=True):
            if wanted is None:
                passed.append(argument)
                continue
            shape = argument.shape
            if argument.dtype != wanted[0] or len(shape) != wanted[1]:
                raise self._refused(arguments)
            try:
                passed.append(_Place.from_buffer(argument))  # a fifth of the time that its attribute `ctypes` takes
            except TypeError:
                if not argument.flags.c_contiguous:
                    raise self._refused(arguments) from None
                passed.append(argument.ctypes.data)  # a read-only array
            passed += shape
        if self._native(_UNUSED, None, *passed, room, room):
            raise AssertionError(f"{self._function.__name__} failed")  # the build rules this out
        if self._is_whole:
            return room[0] if len(self._gives) == 1 else tuple(room)
        return self._given(room)[0] if len(self._gives) == 1 else self._given(room) or None

    def _refused(self, arguments: tuple[Any, ...]) -> TypeError:
        pairs = zip(self._takes, self._arrays, arguments, strict=True)
        name, argument = next(
            (name, argument) for name, wanted, argument in pairs
            if wanted and ((argument.dtype, argument.ndim) != wanted or not argument.flags.c_contiguous)
        )  # fmt: skip
        return TypeError(f"{self._function.__name__} takes {name}, not {argument.dtype} [{argument.ndim}]")

    def _found(self) -> Any:
        from numpy import dtype  # compares in a tenth of the time that its name takes

        self._arrays = [
            (dtype(kernel_library.ARRAYS[name][0]), kernel_library.ARRAYS[name][1])
            if name in kernel_library.ARRAYS
            else None
            for name in self._takes
        ]
        types: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
        for name in self._takes:
            if name == "float":
                types.append(ctypes.c_double)
            elif name == "int":
                types.append(ctypes.c_int64)
            else:
                types += [ctypes.c_void_p, *[ctypes.c_int64] * kernel_library.ARRAYS[name][1]]
        native = kernel_library.library()[kernel_library.symbol(self._function)]  # type: ignore[index] # not its attribute, which all threads would share
        native.argtypes = [*types, ctypes.c_void_p, ctypes.c_void_p]
        native.restype = ctypes.c_int32
        return native

    def _given(self, room: Any) -> tuple[Any, ...]:
        return tuple(
            ctypes.c_double.from_buffer(room, 8 * place).value if name == "float"
            else bool(room[place]) if name == "bool" else room[place]
            for place, name in enumerate(self._gives)
        )  # fmt: skip
