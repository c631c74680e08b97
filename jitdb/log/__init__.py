"""Where are my records, and are they safe? The log and what reading it gives.

Each name is imported when it is first used: files of JSON Lines need nothing of what makes a log of our own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jitdb.log.log import Log
    from jitdb.log.source import Batch, LogSource, MaintainedSource, Record, ScanSource, Stats

__all__ = ["Batch", "Log", "LogSource", "MaintainedSource", "Record", "ScanSource", "Stats"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'jitdb.log' has no attribute {name!r}")
    module = import_module("jitdb.log.log" if name == "Log" else "jitdb.log.source")
    found = globals()[name] = getattr(module, name)
    return found
