"""Kernels of the library (kernel_library.py says how they lie there), called from Python with arrays and numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Final

from jitdb.common.kernel_library import ARRAYS, Signature, library, symbol

_Place: Final = ctypes.c_char * 0  # the address of an array, for as long as a call takes
_UNUSED: Final = (ctypes.c_void_p * 1)()  # where all kernels write that they return nothing


class kernel:  # noqa: N801
    """A kernel of the library, in place of the function that says what it does.

    Raises TypeError for arguments that are not what it takes.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._takes, self._gives = Signature.of(function)
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
                passed.append(argument.ctypes.data)  # it may not be written to
            passed += shape
        if self._native(_UNUSED, None, *passed, room, room):
            raise AssertionError(f"{self._function.__name__} failed")  # which the build rules out
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

        self._arrays = [(dtype(ARRAYS[name][0]), ARRAYS[name][1]) if name in ARRAYS else None for name in self._takes]
        types: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
        for name in self._takes:
            if name == "float":
                types.append(ctypes.c_double)
            elif name == "int":
                types.append(ctypes.c_int64)
            else:
                types += [ctypes.c_void_p, *[ctypes.c_int64] * ARRAYS[name][1]]
        native = library()[symbol(self._function)]  # type: ignore[index] # not its attribute, which all threads would share
        native.argtypes = [*types, ctypes.c_void_p, ctypes.c_void_p]
        native.restype = ctypes.c_int32
        return native

    def _given(self, room: Any) -> tuple[Any, ...]:
        return tuple(
            ctypes.c_double.from_buffer(room, 8 * place).value if name == "float"
            else bool(room[place]) if name == "bool" else room[place]
            for place, name in enumerate(self._gives)
        )  # fmt: skip
