"""The log of a Python program as a log that can be queried: a handler for `logging`, and a processor for structlog.

    import logging
    from jitdb.handlers import LogHandler

    logging.basicConfig(level=logging.INFO, handlers=[LogHandler("service.log")])

adapters says what is in a record; sink makes records durable; plain makes values of any kind fit for a record.
"""

from __future__ import annotations

from jitdb.handlers.adapters import LogHandler, LogProcessor
from jitdb.handlers.sink import RecordSink

__all__ = ["LogHandler", "LogProcessor", "RecordSink"]
