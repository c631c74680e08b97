"""JSON Lines of somebody else's hold to what is expected of a log that grows (jitdb.testing.sources)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jitdb.errors import JitdbWarning
from jitdb.log import LogSource
from jitdb.log.lines import line_log
from jitdb.log.lines.line_log import LineLog
from jitdb.testing.sources import GrowingSourceTests, Records

LINES: Records = [
    b'{"n": 0}', b"", b'{"n": 1}', b"no json", b'  {"n": 2}\r', b"\t", b'{"n": 3, "text": "' + b"x" * 150 + b'"}',
    b"[1, 2]", b"null", b"0", b'{"n": "\xff"}', b'{"n": 4}', b"", b'{"n": 5}',
]  # fmt: skip
WRONG = (1, 3, 5, 10, 12)


@pytest.mark.filterwarnings("ignore:.*left out:jitdb.errors.MalformedWarning")
class TestLineLog(GrowingSourceTests):
    @pytest.fixture
    def records(self) -> Records:
        return [None if number in WRONG else line for number, line in enumerate(LINES)]

    @pytest.fixture(params=["", "\ufeff"], ids=["plain", "marked"])
    def source(
        self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[LineLog]:
        monkeypatch.setattr(line_log, "BLOCK", 64)
        path = tmp_path / "a.ndjson"
        path.write_bytes(request.param.encode() + b"\n".join(line or b"" for line in LINES) + b"\n")
        with LineLog(path) as log:
            yield log

    def append(self, source: LogSource, record: bytes) -> None:
        with source.path.open("ab") as file:
            file.write(record[:3])
            file.flush()
            source.refresh()  # which sees no line yet
            file.write(record[3:] + b"\n")


def test_lines_that_cannot_be_read_are_told_once(tmp_path: Path) -> None:
    import jitdb

    path = tmp_path / "a.ndjson"
    path.write_bytes(b"\n".join(line or b"" for line in LINES) + b"\n")
    with jitdb.open(path, progress=False) as db:
        with pytest.warns(JitdbWarning) as told:
            assert db.count() == len(LINES) - len(WRONG)
        (warning,) = (each.message for each in told)
        assert isinstance(warning, JitdbWarning)
        assert (warning.numbers, warning.count) == ((4, 11), 2)  # type: ignore[attr-defined]
        assert list(db.log.malformed()) == [4, 11]  # type: ignore[attr-defined]
        assert db.count() == len(LINES) - len(WRONG)
