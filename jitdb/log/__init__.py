"""Where are my records, and are they safe? The log and what reading it gives."""

from jitdb.log.log import Log
from jitdb.log.maintained import MaintainedSource
from jitdb.log.record import Batch, Record, Stats
from jitdb.log.source import LogSource, ScanSource

__all__ = ["Batch", "Log", "LogSource", "MaintainedSource", "Record", "ScanSource", "Stats"]
