"""A Python program's own log as a log that can be asked: a handler for `logging`, and a processor for structlog.

    import logging
    from jitdb.handlers import LogHandler

    logging.basicConfig(level=logging.INFO, handlers=[LogHandler("service.log")])

sink takes records from the program, and batches makes them durable; handler and processor say what is in one; plain
makes values of any kind into such that a record can hold.
"""

from __future__ import annotations

from jitdb.handlers.handler import LogHandler
from jitdb.handlers.processor import LogProcessor
from jitdb.handlers.sink import RecordSink

__all__ = ["LogHandler", "LogProcessor", "RecordSink"]
