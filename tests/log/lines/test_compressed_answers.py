"""A compressed file of lines is what its text is: the same records at the same offsets, the same answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compressed_cases import KINDS, SPACING, lines, one_frame, one_member, small
from homes import entry_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from line_cases import records_in
from thoroughness import tries

import jitdb
from jitdb.engine.building import scan
from jitdb.errors import JitdbWarning
from jitdb.log.lines import line_log
from jitdb.log.lines.files.decompressing import PIECES
from jitdb.operators import absent, field, gt

pytestmark = pytest.mark.filterwarnings("ignore::jitdb.errors.JitdbWarning")

TEXT = lines(4000)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    monkeypatch.setattr(line_log, "BLOCK", 1 << 10)
    monkeypatch.setattr(scan, "CHUNK_BYTES", 1 << 12)


def answers(path: Path, text: bytes, folder: Path | str | None = None) -> list[Any]:
    """All that can be asked, by an open log and by one opened anew, which finds what the first one left."""
    found: list[Any] = []
    for _ in range(2):
        with jitdb.open(path, folder, progress=False) as db:
            some = (field("even") == True) & gt(10, "n")  # noqa: E712
            page = db.query(some).descending().page(7)
            offsets = list(db.all(sort_by="arrival", as_offsets=True))
            found += [db.count(), db.count(some), page.total, page.data, db.count(absent("n")), offsets]
            found += [list(db.all(sort_by="arrival")), db.log.get_many_raw(offsets[::-3]), db.log.durable_end]
            found += [list(db.log.malformed()), db.log.since, db.log.stats()]
    assert found[6] == records_in(text)
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("end", [b"", b'{"n": 7, "unfin'], ids=["", "unfinished line"])
def test_the_same_as_of_the_text(tmp_path: Path, kind: Callable[[bytes], bytes], end: bytes) -> None:
    plain, packed = tmp_path / "a.ndjson", tmp_path / "b.any"
    plain.write_bytes(TEXT + end)
    packed.write_bytes(kind(TEXT + end))
    assert answers(packed, TEXT + end) == answers(plain, TEXT + end)


LINE = st.one_of(
    st.builds(
        lambda n, even, pad: json.dumps({"n": n, "even": even, "pad": "x" * pad}).encode(),
        st.integers(0, 30), st.booleans(), st.sampled_from([0, 3, 500, 5000]),
    ),
    st.sampled_from([b"", b" \r", b"no json", b"[1]", b"null", b'{"n": "\xff"}']),
)  # fmt: skip


@settings(max_examples=tries(8, 200), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(LINE, min_size=1, max_size=40), st.booleans(), st.booleans())
def test_random_lines(tmp_path_factory: pytest.TempPathFactory, some: list[bytes], mark: bool, whole: bool) -> None:
    tmp_path = tmp_path_factory.mktemp("lines")
    text = b"\xef\xbb\xbf" * mark + b'{"n": 1}\n' + b"\n".join(some) + b"\n" * whole
    (tmp_path / "a.ndjson").write_bytes(text)
    expected = answers(tmp_path / "a.ndjson", text, "memory")
    for kind in KINDS:
        (tmp_path / kind.__name__).write_bytes(kind(text))
        assert answers(tmp_path / kind.__name__, text, "memory") == expected


def test_single_records_come_from_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes next finds them; without the folder they are made anew."""
    from jitdb.log.lines.files import checkpoints

    found: list[int] = []
    export = checkpoints._exported
    monkeypatch.setattr(checkpoints, "_exported", lambda *given: found.append(1) or export(*given))
    path = tmp_path / "a.gz"
    path.write_bytes(one_member(TEXT))
    last = TEXT.splitlines()[2900]
    for _ in range(3):
        with jitdb.open(path, progress=False) as db:
            assert db.count(field("n") == 3) == 1
            assert db.log.get_many_raw([TEXT.rindex(last)]) == [last]
    assert len(found) == 1
    kept = entry_of(path) / "checkpoints"
    assert 0 < kept.stat().st_size < len(TEXT)
    kept.unlink()
    with jitdb.open(path, progress=False) as db:
        assert db.log.get_many_raw([TEXT.rindex(last)]) == [last]
    assert len(found) == 2
    assert kept.exists()


def test_a_scan_decompresses_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file that says how long its text is."""
    from jitdb.log.lines.files import gzip_file, zstd_file

    monkeypatch.setattr(PIECES, "most", 1 << 20)
    streams: list[object] = []
    for module, name in ((gzip_file, "GzipRun"), (zstd_file, "FrameRun")):
        kind = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, kind=kind: streams.append(given) or kind(*given))
    for make in (one_member, one_frame):
        path = tmp_path / make.__name__
        path.write_bytes(make(TEXT))
        streams.clear()
        with jitdb.open(path, progress=False, threads=1) as db:
            assert db.count(field("n") == 3) == 1
        assert len(streams) == 2  # one of them for the first bytes, which tell what it is


def test_one_long_frame_is_said_to_be_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jitdb.log.lines.files import zstd_file

    monkeypatch.setattr(zstd_file, "PATIENCE", 10 * SPACING)
    path = tmp_path / "a.zst"
    path.write_bytes(one_frame(TEXT))
    with jitdb.open(path, progress=False) as db:
        offsets = list(db.all(sort_by="arrival", as_offsets=True))
        wanted = [[offsets[number]] for number in (3500, 9, 2000, 9, 3500)]
        with pytest.warns(JitdbWarning, match="jitdb pack") as told:
            assert all(map(db.log.get_many_raw, wanted))
        assert len(told) == 1
