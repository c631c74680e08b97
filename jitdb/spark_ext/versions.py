"""Python processes of Spark that have another jitdb than the driver, or none: they are told before they work.

What is sent to them is sealed: pickled, and handed to a function that knows the sender's version, and unpickles it only
where the same one is installed. This function is itself pickled by value, and needs nothing but Python's own modules,
so it works in a process of any version, and in one without jitdb. Its error carries the note by which the driver knows
VersionDiffers (errors.py).
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from jitdb.spark_ext.errors import NOTE, VersionDiffers

T = TypeVar("T")

VERSION: Final[str] = sys.modules["jitdb"].__version__


def sealed(what: T) -> T:
    """A function or a class, as it is here. Who unpickles it elsewhere gets it, or VersionDiffers."""
    return cast("T", _Sealed(what))


class Sealed:
    """A base of classes whose objects are sent to workers: there they are unpickled, or VersionDiffers is raised."""

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _of_this_version(_Call(_remade, type(self), self.__getstate__()))


class _Sealed:
    """Stands where what is sent stood."""

    def __init__(self, what: Any) -> None:
        self._what = what

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._what(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._what, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_this_version(self._what)


class _Call:
    """Is pickled as what a call gives."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._call


def _remade(kind: type[Any], state: dict[str, Any]) -> Any:
    made = object.__new__(kind)
    vars(made).update(state)
    return made


def _of_this_version(what: object) -> tuple[Any, ...]:
    """What pickle makes of it, for any process to unpickle."""
    from pyspark import cloudpickle

    form = VersionDiffers("", remedy="").to_json()
    opened = _Call(_opener(VERSION, form, VersionDiffers.__module__, NOTE), cloudpickle.dumps(what))
    return pickle.loads, (cloudpickle.dumps(opened),)


def _opener(version: str, form: dict[str, Any], module: str, note: str) -> Callable[[bytes], Any]:
    """The function that stands before it. What it names of this module would be looked for in the worker's jitdb."""

    def opened(data: bytes) -> Any:
        import base64
        import json
        import os
        import pickle
        import sys
        from importlib import import_module

        found = "no jitdb"
        try:
            there = import_module("jitdb")
        except ImportError as error:
            if error.name != "jitdb":
                raise
        else:
            has = getattr(there, "__version__", None)
            if has == version:
                return pickle.loads(data)
            found = f"jitdb {has} in {there.__file__}"
        where = f"{os.uname().nodename}, in a Python process of Spark ({sys.executable})"
        reason = f"{where}: expected jitdb {version}, which the driver has, got {found}"
        advice = "install the same version for the driver's Python and the workers', or send them a packed environment"
        said = {**form, "reason": reason, "remedy": {"python": advice, "shell": advice}}
        told: Exception = type(form["kind"], (Exception,), {"__module__": module})(f"{reason}; {advice}")
        told.add_note(note.format(base64.b64encode(json.dumps(said).encode()).decode()))
        raise told

    return opened
