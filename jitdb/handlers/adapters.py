"""What is in a record: of `logging` (LogHandler), and of structlog (LogProcessor)."""

from __future__ import annotations

import logging
import os
import sys
import time
import traceback
from collections.abc import MutableMapping
from contextlib import suppress
from datetime import datetime
from math import isfinite
from typing import Any, Final

from jitdb.errors import JitdbError
from jitdb.handlers.plain import attempt
from jitdb.handlers.sink import RecordSink

_TIMEOUT: Final = 10.0  # seconds that the end of a program waits for the disk
_KNOWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogHandler(logging.Handler):
    """A handler for `logging` that writes to a jitdb log.

    log:     the path of the log (see RecordSink), or a RecordSink that others may share
    level:   the least level that is written
    options: of RecordSink

    A record has timestamp (milliseconds since 1970, as a float), level, logger, message, template (the message before
    its arguments were filled in, if it has any), source (file, line, function), process, thread, task; exception (type,
    message, traceback) and stack if there are any; and the fields of `extra`, within `extra` where names clash.

    Raises as RecordSink does.
    """

    def __init__(
        self, log: str | os.PathLike[str] | RecordSink, level: int | str = logging.NOTSET, **options: Any
    ) -> None:
        super().__init__(level)
        self.sink = sink_of(log, options)

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record."""
        try:
            self.sink.put(values_of(record))
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Return when all is durable, or cannot be written now: the sink warns of that, and its flush() raises it."""
        with suppress(JitdbError, TimeoutError):
            self.sink.flush(_TIMEOUT)

    def close(self) -> None:
        """Write waiting records and close the log."""
        self.sink.close(_TIMEOUT)
        super().close()


def sink_of(log: str | os.PathLike[str] | RecordSink, options: dict[str, Any]) -> RecordSink:
    """A given sink, or a new one."""
    return log if isinstance(log, RecordSink) else RecordSink(log, **options)


def values_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a record of logging."""
    found: dict[str, Any] = {
        "timestamp": record.created * 1000,
        "level": record.levelname,
        "logger": record.name,
        "message": record.getMessage(),
    }
    if record.args:
        found["template"] = record.msg
    found["source"] = {"file": record.pathname, "line": record.lineno, "function": record.funcName}
    found["process"], found["thread"] = record.process, record.threadName
    if task := getattr(record, "taskName", None):
        found["task"] = task
    if record.exc_info and record.exc_info[1] is not None:
        found["exception"] = exception_of(record.exc_info[1])
    elif record.exc_text:
        found["exception"] = {"traceback": record.exc_text}
    if record.stack_info:
        found["stack"] = record.stack_info
    given = {name: value for name, value in vars(record).items() if name not in _KNOWN}
    clashing = {name: given.pop(name) for name in list(given) if name in found}
    return with_extra({**found, **given}, clashing)


def with_extra(fields: dict[str, Any], clashing: dict[str, Any]) -> dict[str, Any]:
    """The fields, with those whose names clash within `extra`."""
    if clashing and "extra" in fields:
        clashing = {**clashing, "extra": fields["extra"]}
    return {**fields, "extra": clashing} if clashing else fields


def exception_of(error: BaseException) -> dict[str, Any]:
    """An exception as fields."""
    kind = type(error)
    return {
        "type": f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
        "message": attempt(lambda: str(error), kind),
        "traceback": attempt(lambda: "".join(traceback.format_exception(error)), kind),
    }


class LogProcessor:
    """A processor for structlog that writes each event to a jitdb log and passes it on.

    log:     the path of the log (see RecordSink), or a RecordSink that others may share
    is_last: it is the last processor, and drops the event
    options: of RecordSink

    A record has the event's keys as fields, and the method's name as level if no processor set one. timestamp is
    milliseconds since 1970, as a float: the event's own, from seconds or ISO 8601 text as of structlog's TimeStamper,
    or else now. exc_info becomes exception (type, message, traceback). Fields whose names clash are within `extra`.

    Raises as RecordSink does.
    """

    def __init__(self, log: str | os.PathLike[str] | RecordSink, *, is_last: bool = False, **options: Any) -> None:
        self.sink = sink_of(log, options)
        self._is_last = is_last

    def __call__(self, logger: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Write one event. Raises DropEvent if it is the last processor."""
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
    """What TimeStamper makes, as milliseconds since 1970; None for anything else."""
    with suppress(ValueError, OverflowError, OSError):  # not a time that the system knows
        if isinstance(when, str):
            return datetime.fromisoformat(when).timestamp() * 1000
        if isinstance(when, int | float) and not isinstance(when, bool) and isfinite(when):
            return float(when) * 1000
    return None


def _exception(given: Any) -> BaseException | None:
    """The exception in exc_info: itself, in a triple, or the one that is being handled."""
    if isinstance(given, BaseException):
        return given
    if isinstance(given, tuple):
        return given[1] if len(given) > 1 and isinstance(given[1], BaseException) else None
    with suppress(Exception):  # its truth value may raise anything
        return sys.exception() if given else None
    return None
