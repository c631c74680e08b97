"""What must not happen between two steps of one call happens just there: another thread comes in between."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from jitdb import Log
from jitdb.errors import InvalidOffset, RecordDeleted

LONG = 0.3  # seconds: whoever is not kept waiting is done by then


def test_two_appends_at_once_get_two_offsets(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", flush_interval=3600) as log:
        writer: Any = log._writer
        push = writer._push
        offsets: list[int] = []
        other = threading.Thread(target=lambda: offsets.append(log.append({"n": 2})))

        def between(record: bytes) -> None:  # the offset is chosen, the record is not yet there
            writer._push = push
            other.start()
            other.join(LONG)
            push(record)

        writer._push = between
        offsets.append(log.append({"n": 1}))
        other.join()
        log.flush()
        assert len(set(offsets)) == 2
        assert [log.get(offset)["n"] for offset in sorted(offsets)] == [1, 2]
        assert [record.value["n"] for record in log.stream()] == [1, 2]


def test_a_record_is_not_deleted_by_its_offset_in_the_log_before_a_compaction(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", flush_interval=3600) as log:
        offsets = log.append_many([{"n": number} for number in range(10)])
        log.delete(offsets[0])
        log.flush()
        reader: Any = log._reader
        get = reader.get

        def between(offset: int) -> bytes:  # the record is found, and not yet deleted
            found: bytes = get(offset)
            reader.get = get
            log.compact()
            return found

        reader.get = between
        with pytest.raises(InvalidOffset, match="compacted meanwhile"):
            log.delete(offsets[5])
        log.flush()
        assert [record.value["n"] for record in log.stream()] == list(range(1, 10))


def test_of_two_deletions_at_once_one_is_told_that_it_was_too_late(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", flush_interval=3600) as log:
        offsets = log.append_many([{"n": number} for number in range(10)])
        log.flush()
        reader: Any = log._reader
        get, hide = reader.get, reader.hide
        told: list[str] = []
        other = threading.Thread(target=lambda: delete("other"))

        def delete(who: str) -> None:
            try:
                log.delete(offsets[5])
            except RecordDeleted:
                told.append(who)

        def between(offset: int) -> None:  # it is not yet hidden
            reader.hide = hide
            reader.get = lambda offset: length
            other.start()
            other.join(LONG)
            reader.get = get
            hide(offset)

        length = get(offsets[5])
        reader.hide = between
        delete("this")
        other.join()
        assert told == ["other"]
        log.flush()
        assert log.deletions()[1].tolist() == [offsets[5]]
