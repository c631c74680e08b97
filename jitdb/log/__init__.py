"""Where are my records, and are they safe? The log and what reading it gives.

Each name is imported when it is first used: files of JSON Lines need nothing of what makes a log of our own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jitdb.log.log import Log
    from jitdb.log.maintained import MaintainedSource
    from jitdb.log.record import Batch, Record, Stats
    from jitdb.log.source import LogSource, ScanSource

__all__ = ["Batch", "Log", "LogSource", "MaintainedSource", "Record", "ScanSource", "Stats"]

_LAZY = {
    "Batch": "record", "Log": "log", "LogSource": "source", "MaintainedSource": "maintained", "Record": "record",
    "ScanSource": "source", "Stats": "record",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'jitdb.log' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"jitdb.log.{_LAZY[name]}"), name)
    return found
