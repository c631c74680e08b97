"""A processor for structlog, which writes each event to a log on its way through the others."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import MutableMapping
from contextlib import suppress
from datetime import datetime
from math import isfinite
from typing import Any

from jitdb.handlers.handler import exception_of, sink_of, with_extra
from jitdb.handlers.sink import RecordSink


class LogProcessor:
    """One of structlog's processors: writes the event as it is when it comes by, and hands it on.

    log:     the path of the log (see RecordSink), or a RecordSink that others write to as well
    is_last: none come behind it: the event ends here
    options: of RecordSink

    A record has the event's keys as fields, and level, the name of the method, where no processor set one. Its
    timestamp is milliseconds since 1970, as a float: that of the event, made of seconds or of ISO 8601 text as
    structlog's TimeStamper gives them, or else the moment. exc_info becomes exception (type, message, traceback). What
    else had these names is within `extra`.

    Raises as RecordSink does.
    """

    def __init__(self, log: str | os.PathLike[str] | RecordSink, *, is_last: bool = False, **options: Any) -> None:
        self.sink = sink_of(log, options)
        self._is_last = is_last

    def __call__(self, logger: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """As structlog calls it. Raises DropEvent if it is the last."""
        found = {"timestamp": 0.0, "level": name, **event}
        clashing = {}
        when = _milliseconds(event.get("timestamp"))
        if when is None and "timestamp" in event:
            clashing["timestamp"] = event["timestamp"]
        found["timestamp"] = time.time() * 1000 if when is None else when
        given = found.pop("exc_info", None)
        error = _exception(given)
        if error is not None:
            if "exception" in found:
                clashing["exception"] = found["exception"]
            found["exception"] = exception_of(error)
        elif given is not None and not isinstance(given, bool | tuple):
            clashing["exc_info"] = given
        self.sink.put(with_extra(found, clashing))
        if self._is_last:
            from structlog import DropEvent

            raise DropEvent
        return event


def _milliseconds(when: Any) -> float | None:
    """Since 1970, of what TimeStamper makes; None of anything else."""
    with suppress(ValueError, OverflowError, OSError):  # no time, or one of which the system knows nothing
        if isinstance(when, str):
            return datetime.fromisoformat(when).timestamp() * 1000
        if isinstance(when, int | float) and not isinstance(when, bool) and isfinite(when):
            return float(when) * 1000
    return None


def _exception(given: Any) -> BaseException | None:
    """The exception that exc_info says: itself, in a triple, or the one that is being handled."""
    if isinstance(given, BaseException):
        return given
    if isinstance(given, tuple):
        return given[1] if len(given) > 1 and isinstance(given[1], BaseException) else None
    with suppress(Exception):  # whatever is not to be asked whether it is true
        return sys.exception() if given else None
    return None
