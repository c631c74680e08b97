"""Logs of jitdb's own in a store: read there, with what lies beside them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import jitdb
from jitdb.errors import LogError, LogReadOnly
from jitdb.operators import equal
from tests.objects.bucket import Bucket
from tests.objects.stores import forget_looks

DATA = Path(__file__).parent.parent / "data"


def put(bucket: Bucket, log: Path) -> None:
    target = bucket.root / "logs" / log.name
    shutil.rmtree(f"{target}.jitdb", ignore_errors=True)
    shutil.copy2(log, target)
    if Path(f"{log}.jitdb").exists():
        shutil.copytree(f"{log}.jitdb", f"{target}.jitdb")


@pytest.mark.parametrize("codec", ["json", "msgpack", "bipf"])
def test_a_log_and_its_deletions(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str) -> None:
    with jitdb.open(tmp_path / "a.log", codec=codec, create=True) as db:
        offsets = db.log.append_many([{"n": number, "even": number % 2 == 0} for number in range(5000)])
        db.log.flush()
        for offset in offsets[:100]:
            db.log.delete(offset)
        db.log.flush()
    put(bucket, tmp_path / "a.log")
    for _ in range(2):
        with jitdb.open("s3://logs/a.log") as db:
            assert db.count() == 4900
            assert db.count(equal("even", True)) == 2450
            assert list(db.query(equal("n", 4321)).page(2)) == [{"n": 4321, "even": False}]
            assert str(db.log.path) == "s3://logs/a.log"
        forget_looks(monkeypatch)
    bucket.asked.clear()
    with jitdb.open("s3://logs/a.log", max_bytes=0) as db:
        assert db.count(equal("even", True)) == 2450
    assert len(bucket.asked) < 12
    with jitdb.open("s3://logs/a.log") as db, pytest.raises(LogReadOnly):
        db.log.delete(offsets[200])


def test_a_log_that_javascript_wrote_and_another_in_its_place(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, DATA / "ssb-5k.bipf")
    post = equal("value.content.type", "post")
    for _ in range(2):
        with jitdb.open("s3://logs/ssb-5k.bipf") as db:
            assert (db.count(), db.count(post)) == (5000, 1257)
        forget_looks(monkeypatch)
    with jitdb.open("s3://logs/ssb-5k.bipf", max_bytes=0) as db:
        assert db.count(post) == 1257
    with jitdb.open(tmp_path / "ssb-5k.bipf", codec="msgpack", create=True) as db:
        db.log.append({"n": 1})
        db.log.flush()
    put(bucket, tmp_path / "ssb-5k.bipf")
    forget_looks(monkeypatch)
    with jitdb.open("s3://logs/ssb-5k.bipf") as db:
        assert list(db.query().page(5)) == [{"n": 1}]


def test_what_is_no_log_is_said(bucket: Bucket) -> None:
    (bucket.root / "logs" / "x.bin").write_bytes(bytes(range(256)) * 40)
    with pytest.raises(LogError, match="no log that can be asked"):
        jitdb.open("s3://logs/x.bin")
