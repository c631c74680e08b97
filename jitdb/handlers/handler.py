"""A handler for `logging`, whose records can be asked for by any of their fields."""

from __future__ import annotations

import logging
import os
import traceback
from contextlib import suppress
from typing import Any, Final

from jitdb.errors import JitdbError
from jitdb.handlers.plain import attempt
from jitdb.handlers.sink import RecordSink

_TIMEOUT: Final = 10.0  # seconds that the end of a program waits for the disk
_KNOWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogHandler(logging.Handler):
    """Writes what is logged to a jitdb log, as records of fields.

    log:     the path of the log (see RecordSink), or a RecordSink that others write to as well
    level:   what is below is not written
    options: of RecordSink

    A record has timestamp (milliseconds since 1970, as a float), level, logger, message, template (the message before
    its arguments were put in, if it has any), source (file, line, function), process, thread, task; exception (type,
    message, traceback) and stack where there are such; and all of `extra` as fields of their own, or, where one of
    these has the name, within `extra`.

    Raises as RecordSink does.
    """

    def __init__(
        self, log: str | os.PathLike[str] | RecordSink, level: int | str = logging.NOTSET, **options: Any
    ) -> None:
        super().__init__(level)
        self.sink = sink_of(log, options)

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a record over to the sink."""
        try:
            self.sink.put(values_of(record))
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Return when all is durable, or cannot be made so now, of which the sink tells; its own flush() raises it."""
        with suppress(JitdbError, TimeoutError):
            self.sink.flush(_TIMEOUT)

    def close(self) -> None:
        """Write what waits, and close the log."""
        self.sink.close(_TIMEOUT)
        super().close()


def sink_of(log: str | os.PathLike[str] | RecordSink, options: dict[str, Any]) -> RecordSink:
    """The sink of a handler: a given one, or one of its own."""
    return log if isinstance(log, RecordSink) else RecordSink(log, **options)


def values_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of what was logged."""
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
    """The fields, and within `extra` what has the name of another one."""
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
