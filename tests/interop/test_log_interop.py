"""Log files shared with async-append-only-log: each side reads, extends and deletes from what the other wrote."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from jitdb.errors import InvalidOffset, LogWarning, RecordDeleted
from jitdb.log import Log
from jitdb.log.codecs import get_codec

SCRIPT = Path(__file__).parent / "log.js"
DATA = Path(__file__).parents[1] / "data"

Run = Callable[..., list[Any]]


@pytest.fixture
def javascript(run_node: Callable[..., bytes]) -> Run:
    """`javascript(file, *commands, block_size=65536)`: the commands' answers (see log.js)."""

    def run(file: Path, *commands: Sequence[Any], block_size: int = 65536) -> list[Any]:
        text = "\n".join(json.dumps(command) for command in commands)
        answers: list[Any] = json.loads(run_node(SCRIPT, text, file, str(block_size)))
        return answers

    return run


def records_of(count: int, tag: str = "record", size: int = 200) -> list[bytes]:
    encode = get_codec("bipf").encode
    return [encode({"type": tag, "number": number, "text": "x" * (number * 37 % size)}) for number in range(count)]


def hexes(records: Sequence[bytes]) -> list[str]:
    return [record.hex() for record in records]


def rows(log: Log) -> list[list[Any]]:
    return [[record.offset, record.value.hex()] for record in log.stream(raw=True)]


@pytest.mark.parametrize("block_size", [512, 65536])
def test_we_read_what_javascript_wrote(tmp_path: Path, javascript: Run, block_size: int) -> None:
    path, records = tmp_path / "js.log", records_of(1500)
    offsets, since = javascript(path, ["append", hexes(records)], ["since"], block_size=block_size)
    with Log(path, block_size=block_size, read_only=True) as log:
        assert log.codec.name == "bipf"
        assert log.since == since == offsets[-1]
        assert rows(log) == [list(row) for row in zip(offsets, hexes(records), strict=True)]
        assert [log.get_raw(offset) for offset in offsets] == records
        assert log.get_many_raw(offsets[::-1]) == records[::-1]


def test_we_find_block_size_and_codec(tmp_path: Path, javascript: Run) -> None:
    for block_size in (4096, 8192, 65536):
        path = tmp_path / f"{block_size}.log"
        javascript(path, ["append", hexes(records_of(400))], block_size=block_size)
        with Log(path) as log:
            assert (log.block_size, log.codec.name) == (block_size, "bipf")
            assert sum(1 for _ in log.stream()) == 400


@pytest.mark.parametrize("read_only", [True, False])
def test_deletions_of_javascript(tmp_path: Path, javascript: Run, read_only: bool) -> None:
    path, records = tmp_path / "js.log", records_of(1000)
    [offsets] = javascript(path, ["append", hexes(records)])
    gone = [offsets[0], offsets[500], offsets[501], offsets[-1]]
    _, since, left = javascript(path, ["delete", gone], ["since"], ["stream", {}])
    with Log(path, read_only=read_only) as log:
        assert log.since == since == offsets[-1]
        assert rows(log) == [row for row in left if row[1] is not None]
        assert [record.seq for record in log.stream()] == [n for n in range(1000) if n not in (0, 500, 501, 999)]
        for offset in gone:
            with pytest.raises(RecordDeleted):
                log.get(offset)
        assert log.get_many_raw(gone) == [None] * 4
        stats = log.stats()
        assert stats.deleted_records == 4
        assert stats.deleted_bytes == sum(2 + len(records[offsets.index(offset)]) for offset in gone)


@pytest.mark.parametrize("block_size", [512, 65536])
def test_javascript_reads_what_we_wrote(tmp_path: Path, javascript: Run, block_size: int) -> None:
    path, records = tmp_path / "py.log", records_of(1500)
    with Log(path, codec="bipf", block_size=block_size) as log:
        offsets = log.append_many([log.codec.decode(record) for record in records[:1400]])
        offsets += [log.append(log.codec.decode(record)) for record in records[1400:]]
        log.flush()
        since = log.since
    theirs, seen, record, outside = javascript(
        path, ["since"], ["stream", {}], ["get", offsets[700]], ["get", since + 10**6], block_size=block_size
    )
    assert theirs == since
    assert seen == [list(row) for row in zip(offsets, hexes(records), strict=True)]
    assert record == records[700].hex()
    assert outside == {"code": "ERR_AAOL_OFFSET_OUT_OF_BOUNDS"}


def test_javascript_respects_our_deletions(tmp_path: Path, javascript: Run) -> None:
    path, records = tmp_path / "py.log", records_of(1000)
    with Log(path, codec="raw") as log:
        offsets = log.append_many(records)
        for offset in (offsets[0], offsets[499], offsets[-1]):
            log.delete(offset)
    since, first, second, seen = javascript(path, ["since"], ["get", offsets[0]], ["get", offsets[1]], ["stream", {}])
    assert since == offsets[-1]
    assert first == {"code": "ERR_AAOL_DELETED_RECORD"}
    assert second == records[1].hex()
    assert [offset for offset, value in seen if value is None] == [offsets[0], offsets[499], offsets[-1]]


def test_both_append_to_one_log_in_turn(tmp_path: Path, javascript: Run) -> None:
    path = tmp_path / "shared.log"
    expected: list[list[Any]] = []
    for turn in range(3):
        ours, theirs = records_of(300, f"python {turn}"), records_of(300, f"javascript {turn}")
        with Log(path, codec="bipf") as log:
            offsets = log.append_many([log.codec.decode(record) for record in ours])
            identity = log.identity
        expected += [list(row) for row in zip(offsets, hexes(ours), strict=True)]
        offsets, since, seen = javascript(path, ["append", hexes(theirs)], ["since"], ["stream", {}])
        expected += [list(row) for row in zip(offsets, hexes(theirs), strict=True)]
        assert seen == expected
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with Log(path) as log:
                assert log.since == since
                assert rows(log) == expected
                assert log.identity == identity


def test_transactions_either_way(tmp_path: Path, javascript: Run) -> None:
    path = tmp_path / "shared.log"
    together = [b"a" * 200, b"b" * 200]
    with Log(path, codec="raw", block_size=512) as log:
        first = log.append(b"x" * 200)
        offsets = log.append_transaction(together)
    assert (first, offsets) == (0, [512, 714])
    seen, theirs = javascript(path, ["stream", {}], ["transaction", hexes(together)], block_size=512)
    assert seen == [[0, (b"x" * 200).hex()], [512, together[0].hex()], [714, together[1].hex()]]
    assert theirs == [1024, 1226]
    with Log(path) as log:
        assert [record.offset for record in log.stream()] == [0, 512, 714, 1024, 1226]


def test_exactly_full_block(tmp_path: Path, javascript: Run) -> None:
    """The largest record leaves room for its header and the zero header behind it, on both sides."""
    largest = [b"p" * 508, b"q" * 508]
    ours, theirs = tmp_path / "py.log", tmp_path / "js.log"
    with Log(ours, codec="raw", block_size=512) as log:
        assert log.append_many(largest) == [0, 512]
    assert javascript(theirs, ["append", hexes(largest)], block_size=512) == [[0, 512]]
    assert ours.read_bytes() == theirs.read_bytes()
    assert javascript(ours, ["since"], ["append", [(b"r" * 508).hex()]], block_size=512) == [512, [1024]]
    with Log(ours) as log:
        assert [record.value[:1] for record in log.stream()] == [b"p", b"q", b"r"]


@pytest.mark.parametrize("block_size", [64, 512, 65536])
def test_the_files_are_equal_byte_for_byte(tmp_path: Path, javascript: Run, block_size: int) -> None:
    records = records_of(400, size=20)
    ours, theirs = tmp_path / "py.log", tmp_path / "js.log"
    with Log(ours, codec="raw", block_size=block_size) as log:
        offsets = [log.append(record) for record in records]
        log.flush()
        log.delete(offsets[3])
    javascript(theirs, ["append", hexes(records)], ["delete", [offsets[3]]], block_size=block_size)
    assert ours.read_bytes() == theirs.read_bytes()


def test_compaction_by_javascript_makes_it_another_log(tmp_path: Path, javascript: Run) -> None:
    path = tmp_path / "py.log"
    with Log(path, codec="bipf", block_size=4096) as log:
        offsets = log.append_many([{"number": number, "text": "t" * 50} for number in range(500)])
        for offset in offsets[10:60]:
            log.delete(offset)
        identity = log.identity
    javascript(path, ["compact"], block_size=4096)
    with pytest.warns(LogWarning, match="truncated, replaced or compacted"):
        reader = Log(path, read_only=True)
    with reader as log:
        assert log.identity != identity
        assert log.generation == 2
        assert [value["number"] for _, _, value in log.stream()] == [*range(10), *range(60, 500)]
        assert log.deletions()[0] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Log(path) as log:
            assert log.generation == 2


def test_a_reader_follows_javascript(tmp_path: Path, javascript: Run) -> None:
    path, records = tmp_path / "js.log", records_of(900)
    javascript(path, ["append", hexes(records[:300])])
    with Log(path, read_only=True) as log:
        seen: list[int] = []
        log.on_since(seen.append)
        identity, token = log.identity, log.foreign_change_token()
        [offsets] = javascript(path, ["append", hexes(records[300:])])
        with pytest.raises(InvalidOffset):
            log.get(offsets[-1])
        assert log.refresh()
        assert seen == [offsets[-1]]
        assert log.get_raw(offsets[-1]) == records[-1]
        assert log.identity == identity
        assert log.foreign_change_token() != token
        assert not log.refresh()
    with Log(path, read_only=True) as log:
        assert log.identity == identity
        assert sum(1 for _ in log.stream()) == 900


def test_the_fixtures_of_javascript(tmp_path: Path) -> None:
    for name, live in (("ssb-5k.bipf", 5000), ("ssb-5k-deleted.bipf", 4948)):
        with Log(shutil.copy(DATA / name, tmp_path), read_only=True) as log:
            assert log.codec.name == "bipf"
            assert sum(1 for _ in log.stream()) == live == log.stats().records
