"""Libraries that are no dependency: imported where they are asked for, and named where they are missing."""

from __future__ import annotations

from typing import Any, Final

from jitdb.errors import MissingLibrary

_INSTALLED: Final = {"pyarrow": "'jitdb[arrow]'", "matplotlib": "'jitdb[plot]'"}  # by; others by their names


def library(name: str) -> Any:
    """A library that is imported only where it is asked for. Raises MissingLibrary."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        if getattr(error, "name", None) not in (None, name):
            raise
        raise MissingLibrary(
            f"this takes {name}, which is not installed",
            library=name,
            remedy=f"pip install {_INSTALLED.get(name, name)}",
        ) from None
