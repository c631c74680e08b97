"""What `logging` is given comes back as fields, by questions."""

from __future__ import annotations

import logging
import logging.config
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb.errors import LogWarning
from jitdb.handlers import LogHandler, RecordSink
from jitdb.operators import field


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "service.log"


@pytest.fixture
def logger(path: Path) -> Iterator[logging.Logger]:
    logger = logging.Logger("service.requests")
    handler = LogHandler(path, level=logging.INFO)
    logger.addHandler(handler)
    yield logger
    handler.close()


def last(logger: logging.Logger) -> dict[str, Any]:
    handler = logger.handlers[0]
    assert isinstance(handler, LogHandler)
    handler.sink.flush()
    with jitdb.open(handler.sink.path, read_only=True, indexes="memory") as db:
        (found,) = db.query().descending().page(1).data
        return found


def test_fields_of_a_record(logger: logging.Logger) -> None:
    logger.info("%s took %d ms", "GET /", 7, extra={"status": 200, "user": {"name": "ada"}})
    found = last(logger)
    when, process = found.pop("timestamp"), found.pop("process")
    source = found.pop("source")
    assert found == {
        "level": "INFO", "logger": "service.requests", "message": "GET / took 7 ms", "template": "%s took %d ms",
        "thread": "MainThread", "status": 200, "user": {"name": "ada"},
    }  # fmt: skip
    assert when > 1.7e12
    assert process > 0
    assert (source["file"], source["function"]) == (__file__, "test_fields_of_a_record")


def test_questions_find_records_by_any_field(logger: logging.Logger, path: Path) -> None:
    for n in range(100):
        logger.warning("n is %d", n, extra={"n": n, "even": n % 2 == 0})
    logger.debug("below the handler's level")
    logger.handlers[0].flush()
    with jitdb.open(path, read_only=True) as db:
        assert db.count() == 100
        assert db.query((field("even") == True) & (field("n") >= 50)).count() == 25  # noqa: E712
        assert db.query(field("template") == "n is %d").count() == 100


def test_an_exception_is_fields(logger: logging.Logger) -> None:
    try:
        {}["missing"]
    except KeyError:
        logger.exception("it failed")
    found = last(logger)["exception"]
    assert (found["type"], found["message"]) == ("KeyError", "'missing'")
    assert found["traceback"].startswith("Traceback")
    assert "test_an_exception_is_fields" in found["traceback"]


def test_the_stack_is_a_field(logger: logging.Logger) -> None:
    logger.info("where", stack_info=True)
    assert "test_the_stack_is_a_field" in last(logger)["stack"]


def test_extras_that_clash_stand_apart(logger: logging.Logger) -> None:
    logger.info("hello", extra={"level": 3, "source": "door"})
    found = last(logger)
    assert found["level"] == "INFO"
    assert found["extra"] == {"level": 3, "source": "door"}


def test_arguments_that_do_not_fit_are_told_as_logging_tells_them(
    logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    logger.info("%d", "x")
    assert "--- Logging error ---" in capsys.readouterr().err
    logger.info("good")
    assert last(logger)["message"] == "good"


def test_a_handler_may_share_a_sink(path: Path) -> None:
    with RecordSink(path) as sink:
        for name in "ab":
            logger = logging.Logger(name)
            logger.addHandler(LogHandler(sink))
            logger.info("from %s", name)
        sink.flush()
        with jitdb.open(path, read_only=True) as db:
            assert [record["logger"] for record in db.query().page(5).data] == ["a", "b"]


def test_flush_of_a_handler_raises_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jitdb.errors import LogWriteFailed
    from jitdb.handlers.sink import BatchWriter

    handler = LogHandler(path)

    def fail(writer: BatchWriter, values: object) -> None:
        raise LogWriteFailed("no room", path=path)

    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "write", fail)
        handler.handle(logging.makeLogRecord({"msg": "hello"}))
        with pytest.warns(LogWarning, match="no room"):
            handler.flush()
    handler.close()
    with jitdb.open(path, read_only=True, indexes="memory") as db:
        assert db.count() == 1


PROGRAM = """
import logging, logging.config, sys
logging.config.dictConfig({
    "version": 1,
    "handlers": {"jitdb": {"class": "jitdb.handlers.LogHandler", "log": sys.argv[1], "level": "INFO"}},
    "root": {"handlers": ["jitdb"], "level": "DEBUG"},
})
for n in range(50):
    logging.getLogger("a.b").info("n is %d", n)
    logging.debug("not written")
"""


def test_a_program_that_configures_it_by_a_dict(path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM, path], capture_output=True, text=True, timeout=120, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    with jitdb.open(path, read_only=True) as db:
        assert db.query(field("logger") == "a.b").count() == 50
        assert db.count() == 50
