"""Compressed JSON Lines hold to what is expected of a log that grows (jitdb.testing.sources)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from compressed_cases import members, one_frame, one_member, small, unsized_frame

from jitdb.log import LogSource
from jitdb.log.lines import line_log
from jitdb.log.lines.line_log import LineLog
from jitdb.testing.sources import GrowingSourceTests, Records

LINES: Records = [
    b'{"n": 0}',
    b"",
    b'{"n": 1}',
    b"no json",
    b'{"n": 3, "text": "' + b"x" * 150 + b'"}',
    b'{"n": 4}',
] * 3


@pytest.mark.filterwarnings("ignore:.*left out:jitdb.errors.MalformedWarning")
class TestCompressedLineLog(GrowingSourceTests):
    @pytest.fixture
    def records(self) -> Records:
        return [None if number % 6 in (1, 3) else line for number, line in enumerate(LINES)]

    @pytest.fixture(params=[members, one_member, one_frame, unsized_frame], ids=lambda kind: kind.__name__)
    def source(
        self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[LineLog]:
        monkeypatch.setattr(line_log, "BLOCK", 64)
        small(monkeypatch)
        self.kind: Callable[[bytes], bytes] = request.param
        path = tmp_path / "a.packed"
        path.write_bytes(self.kind(b"".join((line or b"") + b"\n" for line in LINES)))
        with LineLog(path) as log:
            yield log

    def append(self, source: LogSource, record: bytes) -> None:
        with source.path.open("ab") as file:
            file.write(self.kind(record[:3]))
            file.flush()
            source.refresh()  # which sees no line yet
            more = self.kind(record[3:] + b"\n")
            file.write(more)
