"""structlog's events come back as fields, wherever the processor stands among others."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog

import jitdb
from jitdb.handlers import LogProcessor
from jitdb.operators import field


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.log"


def events(path: Path, processor: LogProcessor) -> list[dict[str, Any]]:
    processor.sink.close()
    with jitdb.open(path, read_only=True, indexes="memory") as db:
        return list(db.query())


def test_events_are_records_and_go_on(path: Path) -> None:
    processor, shown = LogProcessor(path), structlog.testing.LogCapture()
    log = structlog.wrap_logger(None, processors=[structlog.processors.add_log_level, processor, shown])
    before = time.time() * 1000
    log.bind(user="ada").info("login", tries=3)
    (found,) = events(path, processor)
    assert before <= found.pop("timestamp") <= time.time() * 1000
    assert found == {"level": "info", "event": "login", "user": "ada", "tries": 3}
    assert shown.entries == [{"log_level": "info", "level": "info", "event": "login", "user": "ada", "tries": 3}]


@pytest.mark.parametrize(("how", "utc"), [(None, True), ("iso", True), ("iso", False)])
def test_the_time_that_a_processor_gave(path: Path, how: str | None, utc: bool) -> None:
    processor = LogProcessor(path, is_last=True)
    seen: list[Any] = []

    def look(logger: object, name: str, event: Any) -> Any:
        seen.append(event["timestamp"])
        return event

    stamp = structlog.processors.TimeStamper(fmt=how, utc=utc)
    structlog.wrap_logger(None, processors=[stamp, look, processor]).warning("it")
    (found,) = events(path, processor)
    (given,) = seen
    expected = given if how is None else datetime.fromisoformat(given).timestamp()
    assert found["timestamp"] == expected * 1000
    assert abs(found["timestamp"] / 1000 - datetime.now(UTC).timestamp()) < 60


def test_an_exception_is_fields(path: Path) -> None:
    processor = LogProcessor(path, is_last=True)
    log = structlog.wrap_logger(None, processors=[processor])
    try:
        int("x")
    except ValueError as error:
        log.exception("by the moment")
        log.error("by itself", exc_info=error)
        log.error("as a triple", exc_info=(type(error), error, error.__traceback__))
    log.error("none", exc_info=False)
    *three, none = events(path, processor)
    for found in three:
        assert found["exception"]["type"] == "ValueError"
        assert "int(" in found["exception"]["traceback"]
        assert "exc_info" not in found
    assert "exception" not in none


def test_questions_find_events(path: Path) -> None:
    processor = LogProcessor(path, is_last=True, codec="bipf")
    log = structlog.wrap_logger(None, processors=[processor])
    for n in range(10):
        log.info("tick", n=n)
    processor.sink.flush()
    with jitdb.open(path, read_only=True) as db:
        assert db.log.codec.name == "bipf"
        assert db.query((field("event") == "tick") & (field("n") > 6)).count() == 3
    processor.sink.close()
