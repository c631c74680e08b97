"""The lines of several files as one log hold to what is expected of a log (jitdb.testing.sources)."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitdb.log.lines.bundles import bundled_lines
from jitdb.log.lines.bundles.bundle import Bundle, BundledFile, Kind
from jitdb.log.lines.bundles.bundled_lines import BundledLines
from jitdb.log.lines.bundles.gathering import LEAST
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.lines.form import PLAIN
from jitdb.log.source import LogSource
from jitdb.testing.sources import LogSourceTests, Records

LINES: Records = [b'{"n": 0}', b"", b'{"n": 1, "text": "' + b"x" * 150 + b'"}', b'{"n": 2}\r', b"[1, 2]", b"  "]
BLANK = (1, 5)


@pytest.mark.parametrize("split", [1, len(LINES)])
class TestBundledLines(LogSourceTests):
    """A block has parts of several files, and a file of several blocks. `split`: lines of a file."""

    @pytest.fixture
    def records(self, split: int) -> Records:
        kept: Records = [None if number in BLANK else line for number, line in enumerate(LINES)]
        return kept * LEAST if split > 1 else [line for line in kept for _ in range(LEAST)]

    @pytest.fixture
    def source(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split: int) -> BundledLines:
        monkeypatch.setattr(bundled_lines, "BLOCK", 64)
        texts = [b"\n".join(line or b"" for line in LINES)] * LEAST
        if split == 1:
            texts = [line or b"" for line in LINES for _ in range(LEAST)]
        for number, text in enumerate(texts):
            (tmp_path / f"{number:02}.ndjson").write_bytes(text + b"\n")
        stamps = {path.name: Stamp.of(path.stat()) for path in sorted(tmp_path.glob("*.ndjson"))}
        files = tuple(BundledFile(name, stamp, stamp.size) for name, stamp in stamps.items())
        kind = Kind((0, 0, 0o644), PLAIN)
        bundle = Bundle(str(tmp_path), tmp_path / ".jitdb" / "name", b"0123456789abcdef", kind, files)
        return BundledLines(bundle)

    def test_it_ends_where_its_last_record_does(self, source: LogSource, records: Records) -> None:
        """No file is read to know that: the table says which files there are."""
        assert len(bytes(source.durable_end)) == sum(map(len, files_of(source)))
        assert source.framing.last_record(source, source.durable_end).is_lost


def files_of(source: LogSource) -> list[bytes]:
    return [path.read_bytes() for path in source.path.glob("*.ndjson")]
