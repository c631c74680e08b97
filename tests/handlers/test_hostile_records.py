"""What programs log may be anything: handlers go on, nobody gets an exception, and nothing is lost silently."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitdb import Log
from jitdb.handlers import LogHandler, LogProcessor, RecordSink
from jitdb.handlers.plain import plain


class Broken:
    """Whatever is asked of it is an error."""

    def _fail(self, *_: object) -> Any:
        raise RuntimeError("no")

    __str__ = __repr__ = __bool__ = __len__ = __iter__ = __getitem__ = __hash__ = __eq__ = __index__ = _fail


class BrokenDict(dict[Any, Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("no")

    def keys(self) -> Any:
        raise RuntimeError("no")


def nested(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


def shared(levels: int) -> list[Any]:
    """Small in memory, and 10 ** levels values if each was written down."""
    found: list[Any] = ["x"]
    for _ in range(levels):
        found = [found] * 10
    return found


_ODD: list[Any] = [
        Broken(), BrokenDict(a=1), nested(100_000), shared(12), shared(40), float("nan"), -float("inf"), 2**63, 2**64,
        -(2**63) - 1, 10**5000, "\ud800", "x\udfffy", b"\xff" * 5, "e" * 200_000, "é" * 100_000, object(), type, 1j,
        {1: "a", "1": "b", 1.5: "c", "1.5": "d", None: "e", "None": "f"}, {"\ud800": 1, "\\ud800": 2},
        {f"k{n}": n for n in range(20_000)}, list(range(50_000)), {"": {"": ""}}, {"a" * 70_000: 1}, ..., range(3),
]  # fmt: skip
ODD = st.integers(0, len(_ODD) - 1).map(lambda at: _ODD[at])  # hypothesis would look at what it samples from
SIMPLE = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5)
VALUES = st.recursive(
    SIMPLE | ODD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SIMPLE, inner, max_size=3),
    max_leaves=6,
)
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(params=["msgpack", "bipf", "json"])
def codec(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def records(path: Path) -> list[Any]:
    with Log(path, read_only=True) as log:
        return [record.value for record in log.stream()]


def test_a_sink_takes_any_value_and_goes_on(tmp_path: Path, codec: str) -> None:
    count = 0

    @QUICK
    @given(st.lists(VALUES, max_size=4))
    def put(values: list[Any]) -> None:
        nonlocal count
        for value in values:
            assert sink.put(value)
        sink.put({"after": True})
        count += len(values) + 1
        sink.flush(20)

    with RecordSink(tmp_path / "log", codec=codec, interval=0.01) as sink:
        put()
    found = records(tmp_path / "log")
    assert len(found) == count
    assert all(isinstance(each, dict) for each in found)


def test_a_handler_takes_any_extra(tmp_path: Path) -> None:
    logger = logging.Logger("hostile")
    count = 0

    @QUICK
    @given(st.dictionaries(st.text(max_size=5) | st.sampled_from(["level", "extra", "timestamp"]), VALUES, max_size=3))
    def log(extra: dict[str, Any]) -> None:
        nonlocal count
        record = logging.makeLogRecord({"msg": "seen", "name": "hostile", **extra})
        handler.emit(record)
        count += 1
        handler.sink.flush(20)

    handler = LogHandler(tmp_path / "log", interval=0.01)
    logger.addHandler(handler)
    log()
    handler.close()
    assert len(records(tmp_path / "log")) == count


def test_a_processor_takes_any_event(tmp_path: Path) -> None:
    count = 0

    @QUICK
    @given(
        st.dictionaries(
            st.text(max_size=5) | st.sampled_from(["event", "level", "timestamp", "exc_info", "exception"]),
            VALUES
            | st.sampled_from(["0001-01-01T00:00:00", "9999-12-31", "yesterday"])
            | st.builds(lambda: ValueError(Broken())),
            max_size=4,
        )
    )
    def log(event: dict[str, Any]) -> None:
        nonlocal count
        assert processor(None, "info", event) is event
        count += 1
        processor.sink.flush(20)

    processor = LogProcessor(tmp_path / "log", interval=0.01)
    log()
    processor.sink.close()
    assert len(records(tmp_path / "log")) == count


def test_what_shares_its_parts_is_cut_off_soon() -> None:
    assert len(str(plain(shared(40)))) < 1 << 22
    assert plain(shared(2)) == shared(2)


def test_keys_that_read_alike_are_all_kept() -> None:
    assert plain({1: "a", "1": "b", 1.5: "c"}) == {"1 (int)": "a", "1": "b", "1.5": "c"}
    assert sorted(plain({None: 1, "None": 2, "None (NoneType)": 3}).values()) == [1, 2, 3]


def test_what_a_field_of_the_handler_stands_for_is_kept_apart(tmp_path: Path) -> None:
    with_extra = logging.makeLogRecord({"msg": "m", "level": 3, "extra": 5})
    handler = LogHandler(tmp_path / "a")
    handler.emit(with_extra)
    handler.close()
    assert records(tmp_path / "a")[0]["extra"] == {"level": 3, "extra": 5}
    processor = LogProcessor(tmp_path / "b")
    event = {"event": "e", "timestamp": "16:20", "exception": "told", "exc_info": ValueError("x"), "extra": 1}
    processor(None, "info", event)
    processor.sink.close()
    (found,) = records(tmp_path / "b")
    assert found["extra"] == {"timestamp": "16:20", "exception": "told", "extra": 1}
    assert found["exception"]["message"] == "x"


def test_one_that_no_codec_takes_does_not_hold_up_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RecordSink(tmp_path / "log") as sink:
        codec = type(sink._writer.open().codec)
        encode = codec.encode

        def refusing(self: Any, value: Any) -> bytes:
            if "bad" in value:
                raise RecursionError("too deep")
            return encode(self, value)

        monkeypatch.setattr(codec, "encode", refusing)
        for value in ({"a": 1}, {"bad": "x" * 200_000}, {"b": 2}):
            sink.put(value)
        sink.flush(20)
    first, told, last = records(tmp_path / "log")
    assert (first, last) == ({"a": 1}, {"b": 2})
    assert told["refused"] == "too deep"


@pytest.fixture(autouse=True)
def no_warning_is_needed(recwarn: pytest.WarningsRecorder) -> Iterator[None]:
    yield
    assert [str(each.message) for each in recwarn if issubclass(each.category, UserWarning)] == []
