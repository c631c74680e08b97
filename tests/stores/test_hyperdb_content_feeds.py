"""The content feed that an entry may name."""

from __future__ import annotations

from pathlib import Path

from jitdb.stores.hyperdb import HyperDB
from jitdb.stores.hyperdb.format.entry import decode_entry

CONTENT = bytes(range(32, 64))


def test_content_feeds_of_all_writers_are_known(tmp_path: Path) -> None:
    with (
        HyperDB(tmp_path / "a", create=True, content_feed=CONTENT) as db,
        HyperDB(tmp_path / "b", db.key, content_feed=CONTENT[::-1].hex()) as other,
    ):
        assert db.content_feed(0) is None
        db.put("x", b"1")
        db.put("y", b"1")
        db.authorize(other.local.key)
        db.replicate(other)
        other.put("z", b"2")
        db.replicate(other)
        for each in (db, other):
            assert {feed.key: each.content_feed(number) for number, feed in enumerate(each.feeds)} == {
                db.local.key: CONTENT,
                other.local.key: CONTENT[::-1],
            }
        entries = [decode_entry(record) for record in db.local.records(1, len(db.local))]
        assert [entry.content_feed for entry in entries] == [CONTENT, None, CONTENT]
        assert [entry.feeds is not None for entry in entries] == [True, False, True]


def test_content_feed_is_kept_and_can_be_named_later(tmp_path: Path) -> None:
    with HyperDB(tmp_path, create=True) as db:
        db.put("x", b"1")
    with HyperDB(tmp_path, content_feed=CONTENT) as db:
        assert db.content_feed(0) is None
        db.batch([("y", b"2"), ("z", b"3")])
        assert db.content_feed(0) == CONTENT
        entries = [decode_entry(record) for record in db.local.records(1, 4)]
        assert [(entry.inflate, entry.content_feed) for entry in entries] == [(1, None), (2, CONTENT), (2, None)]
    with HyperDB(tmp_path) as db:
        db.authorize(b"w" * 32)
        assert db.content_feed(0) == CONTENT
        assert [db[key] for key in "xyz"] == [b"1", b"2", b"3"]
