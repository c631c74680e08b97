"""Where are my records, and are they safe? The log and what reading it gives."""

from jitdb.log.log import Log
from jitdb.log.record import Batch, Record, Stats
from jitdb.log.source import LogSource

__all__ = ["Batch", "Log", "LogSource", "Record", "Stats"]
