"""Logs in a store of objects: asked as files are, over moto's server, and over one that fails as it is told."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb import errors
from jitdb.log.lines.keeping import cached
from jitdb.log.objects import files
from jitdb.log.objects import stores as object_stores
from jitdb.log.objects.files import PART
from jitdb.operators import equal
from tests.objects.bucket import Asked, Bucket, Fault, serving
from tests.objects.stores import asked_at, forget_looks, moto

ROWS = [{"n": number, "level": ("info", "warn", "error")[number % 3], "pad": "x" * 40} for number in range(3000)]
ERRORS = sum(row["level"] == "error" for row in ROWS)


def lines_of(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


LINES = lines_of(ROWS)


def count(place: str, **given: Any) -> int:
    with jitdb.open_many(place, **given) as logs:
        return logs.count(equal("level", "error"))


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    (tmp_path / "root" / "logs").mkdir(parents=True)
    monkeypatch.setattr(object_stores, "_RETRY", {**object_stores._RETRY, "max_retries": 3, "backoff": _soon()})
    with serving(tmp_path / "root") as found:
        asked_at(found.url, monkeypatch, tmp_path / "cache")
        yield found


def _soon() -> dict[str, Any]:
    from datetime import timedelta

    return {"init_backoff": timedelta(milliseconds=5), "max_backoff": timedelta(milliseconds=20), "base": 2}


def put(bucket: Bucket, key: str, data: bytes) -> Path:
    path = bucket.root / "logs" / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.fixture(scope="module")
def motos() -> Iterator[tuple[str, Any]]:
    with moto() as found:
        yield found


def test_moto_is_asked_as_files_are(motos: tuple[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, client = motos
    asked_at(url, monkeypatch, tmp_path / "cache")
    client.create_bucket(Bucket="logs")
    names = [
        "a b.ndjson",
        "100%.ndjson",
        "a%20b.ndjson",
        "ü/ñ.ndjson",
        "q?x#y.ndjson",
        "star*.ndjson",
        "dt=2026-11-27/h=1/x.ndjson",
    ]
    for number, name in enumerate(names):
        client.put_object(Bucket="logs", Key=name, Body=lines_of(ROWS[: 100 * (number + 1)]))
    client.put_object(Bucket="logs", Key="dt=2026-11-27/h=1/y.ndjson.gz", Body=gzip.compress(LINES))
    client.put_object(Bucket="logs", Key="empty/", Body=b"")
    for number, name in enumerate(names):
        if "*" not in name:
            with jitdb.open(f"s3://logs/{name}") as db:
                assert db.count() == 100 * (number + 1)
                assert list(db.query().page(2)) == ROWS[:2]
    with jitdb.open_many("s3://logs/dt=*/**") as logs:
        assert len(logs.members) == 2
        assert logs.count() == len(ROWS) + 700
        assert logs.count(equal("dt", "2026-11-27") & equal("h", 1) & equal("level", "error")) == ERRORS + 233
    assert count("s3://logs") == sum(100 * number // 3 for number in range(1, 8)) + ERRORS


@pytest.mark.parametrize("rows", [ROWS, ROWS * 30], ids=["one part", "many parts"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_broken_connections_and_busy_stores_change_no_answer(bucket: Bucket, rows: list[Any], pack: Any) -> None:
    put(bucket, "a.ndjson", pack(lines_of(rows)))
    bucket.fault = lambda number, asked: (Fault(status=503), Fault(cut=1000), None, Fault(pause=0.01))[number % 4]
    assert count("s3://logs/a.ndjson") == ERRORS * len(rows) // len(ROWS)


def test_a_store_that_stays_busy_is_an_error(bucket: Bucket) -> None:
    put(bucket, "a.ndjson", LINES)
    bucket.fault = lambda number, asked: Fault(status=503)
    with pytest.raises(errors.LogError, match="SlowDown"):
        count("s3://logs/a.ndjson")


def test_again_costs_two_requests(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    put(bucket, "a.ndjson", lines_of(ROWS * 30))
    assert count("s3://logs/a.ndjson") == ERRORS * 30
    forget_looks(monkeypatch)
    bucket.asked.clear()
    with jitdb.open("s3://logs/a.ndjson") as db:
        assert db.count(equal("level", "error")) == ERRORS * 30
    first, last = bucket.asked  # how it begins, and the last record
    assert (first.begin, first.stop) == (0, 1 << 16)
    assert last.stop - last.begin <= PART


def test_a_replaced_object_is_asked_anew(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    put(bucket, "a.ndjson", lines_of(ROWS * 30))
    assert count("s3://logs/a.ndjson") == ERRORS * 30
    put(bucket, "a.ndjson", LINES)
    forget_looks(monkeypatch)
    assert count("s3://logs/a.ndjson") == ERRORS


@pytest.mark.parametrize("at", range(2, 6))
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_an_object_that_is_replaced_while_it_is_read_is_never_mixed(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, scheme: str, at: int
) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", bucket.url)
    put(bucket, "a.ndjson", lines_of(ROWS * 100))
    others = [{**row, "level": "error"} for row in ROWS] * 80

    def replace(number: int, asked: Asked) -> Fault | None:
        return Fault(before=lambda: put(bucket, "a.ndjson", lines_of(others))) if number == at else None

    bucket.fault = replace
    with jitdb.open(f"{scheme}://logs/a.ndjson", "memory") as db:
        assert db.count(equal("level", "error")) in (ERRORS * 100, len(others))
        assert len(bucket.asked) >= at
        assert db.count(equal("level", "error")) == len(others)


def test_an_object_that_vanishes_while_it_is_read_is_an_error(bucket: Bucket) -> None:
    path = put(bucket, "a.ndjson", lines_of(ROWS * 100))
    bucket.fault = lambda number, asked: Fault(before=path.unlink) if number == 3 else None
    with pytest.raises(errors.LogError, match=r"s3://logs/a\.ndjson"):
        count("s3://logs/a.ndjson")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("s3://logs/none.ndjson", "there is no such object"),
        ("s3://logs/none/*", ""),
        ("s3://nobucket/a.ndjson", "there is no such bucket"),
        ("s3://nobucket", "there is no such bucket"),
        ("s3://", "names no bucket"),
        ("https://user:secret@host/a.ndjson", "credentials come from the environment"),
        ("https://127.0.0.1:1/a.ndjson?X-Amz-Signature=secret", "names no file that stays the same"),
    ],
)
def test_what_is_not_there_is_said(bucket: Bucket, place: str, said: str) -> None:
    if not said:
        assert count(place) == 0
        return
    with pytest.raises(errors.LogError, match=said) as caught:
        count(place)
    assert "secret" not in str(caught.value)


def test_a_store_that_refuses_is_said_without_keys(bucket: Bucket) -> None:
    put(bucket, "a.ndjson", LINES)
    bucket.fault = lambda number, asked: Fault(status=403)
    for place in ("s3://logs/a.ndjson", "s3://logs/", "s3://logs/*.ndjson"):
        with pytest.raises(errors.LogError, match="the store refuses") as caught:
            count(place)
        assert "of-a-test" not in str(caught.value)


def test_odd_objects(bucket: Bucket) -> None:
    put(bucket, "odd/empty.ndjson", b"")
    put(bucket, "odd/no.ndjson.gz", LINES)
    put(bucket, "odd/cut.ndjson.gz", gzip.compress(LINES)[:-20])
    with pytest.warns(errors.LogWarning, match="end of the compressed file is missing"):
        assert count("s3://logs/odd/") >= ERRORS
    with jitdb.open("s3://logs/odd/empty.ndjson") as db:
        assert db.count() == 0


def test_google_is_asked_as_files_are(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", bucket.url.removeprefix("http://"))
    for number in range(10):
        put(bucket, f"day=1/{number}.ndjson.gz", gzip.compress(LINES))
    assert count("gs://logs/day=1/") == count("gcs://logs/**") == 10 * ERRORS
    forget_looks(monkeypatch)
    bucket.asked.clear()
    assert count("gs://logs/day=1/*.gz") == 10 * ERRORS
    assert [each.method for each in bucket.asked] == ["LIST"]
    put(bucket, "day=1/3.ndjson.gz", gzip.compress(LINES * 2))
    put(bucket, "day=1/new.ndjson", LINES)
    forget_looks(monkeypatch)
    assert count("gs://logs/day=1/") == 12 * ERRORS
    with pytest.raises(errors.LogError, match="there is no such bucket"):
        count("gs://nobucket/a.ndjson")


@pytest.mark.parametrize("number", range(4))
def test_a_name_that_cannot_be_asked_for_is_told(
    motos: tuple[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    name = ("odd//a.ndjson", "odd/../a.ndjson", "odd/a\x01b.ndjson", "odd/./a.ndjson")[number]
    endpoint, client = motos
    asked_at(endpoint, monkeypatch, tmp_path / "cache")
    client.create_bucket(Bucket=f"names-{number}")
    for key in (name, "odd/plain.ndjson", "odd/[x].ndjson"):
        client.put_object(Bucket=f"names-{number}", Key=key, Body=LINES)
    for place in ("odd/", name, "**"):
        with pytest.raises(errors.LogError, match=f"cannot be asked for \\({re.escape(repr(name))}:"):
            count(f"s3://names-{number}/{place}")
    assert count(f"s3://names-{number}/odd/pl*") == ERRORS


def test_a_name_that_is_a_pattern_names_itself_where_nothing_fits(bucket: Bucket) -> None:
    put(bucket, "odd/[x].ndjson", LINES)
    assert count("s3://logs/odd/[x].ndjson") == ERRORS
    put(bucket, "odd/x.ndjson", LINES * 2)
    assert count("s3://logs/odd/[x].ndjson") == 2 * ERRORS


def test_a_shell_asks_objects(bucket: Bucket) -> None:
    put(bucket, "day/a.ndjson.gz", gzip.compress(LINES))
    put(bucket, "day/b.ndjson", LINES)

    def said(*arguments: str) -> str:
        run = subprocess.run([sys.executable, "-m", "jitdb", *arguments], capture_output=True, text=True, timeout=60)
        assert run.returncode == 0, run.stderr
        return run.stdout.strip()

    assert said("count", "s3://logs/day/a.ndjson.gz", 'level == "error"') == str(ERRORS)
    assert said("count", "s3://logs/day", 'level == "error"') == str(2 * ERRORS)
    assert said("count", "s3://logs/*/*.gz", "s3://logs/day/b.ndjson", 'level == "error"') == str(2 * ERRORS)
    assert json.loads(said("query", "s3://logs/day/b.ndjson", "n == 7")) == ROWS[7]


def test_what_is_kept_is_bounded_and_shown(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        put(bucket, f"{name}.ndjson", LINES)
        assert count(f"s3://logs/{name}.ndjson") == ERRORS
    found = jitdb.kept("s3://logs/")
    assert sorted(each.path for each in found) == [f"s3://logs/{name}.ndjson" for name in "abc"]
    assert all(each.bytes > 1000 for each in found)
    assert [each.path for each in jitdb.forget("s3://logs/b")] == ["s3://logs/b.ndjson"]
    assert len(jitdb.kept("s3://")) == len(jitdb.kept("s3://logs")) == 2
    assert jitdb.kept("s3://log") == []
    monkeypatch.setenv("JITDB_CACHE_BYTES", "4K")
    monkeypatch.setattr(cached, "_looked", 0.0)
    for each in jitdb.kept("s3://"):
        os.utime(each.folder, (1, 1))
    put(bucket, "d.ndjson", LINES)
    assert count("s3://logs/d.ndjson") == ERRORS
    assert [each.path for each in jitdb.kept("s3://")] == ["s3://logs/d.ndjson"]


def test_a_question_that_would_read_too_much_is_refused(bucket: Bucket) -> None:
    for name in ("a", "b"):
        put(bucket, f"{name}.ndjson.gz", gzip.compress(LINES))
    size = len(gzip.compress(LINES))
    assert count("s3://logs/", max_bytes=2 * size + 100, indexes="memory") == 2 * ERRORS
    with pytest.raises(errors.ScanTooLarge, match="max_bytes"):
        count("s3://logs/", max_bytes=size + 100, indexes="memory")
    with jitdb.open("s3://logs/a.ndjson.gz", max_bytes=100) as db:
        told = db.explain(equal("level", "error"))
        assert told.requests > 0
        assert 0 < told.request_bytes <= size
        with pytest.raises(errors.ScanTooLarge):
            db.count(equal("level", "error"))
    with jitdb.open("s3://logs/a.ndjson.gz") as db:
        assert db.count(equal("level", "error")) == ERRORS
    with jitdb.open("s3://logs/a.ndjson.gz", max_bytes=0) as db:
        assert db.count(equal("level", "error")) == ERRORS  # its index is there


def test_http_is_asked_by_name(bucket: Bucket) -> None:
    put(bucket, "a.ndjson", LINES)
    assert count(f"{bucket.url}/logs/a.ndjson") == ERRORS
    with pytest.raises(errors.LogError, match="cannot be listed"):
        count(f"{bucket.url}/logs/*.ndjson")
    with pytest.raises(errors.LogError, match="no such object"):
        jitdb.open(f"{bucket.url}/logs/none.ndjson")


def test_threads_and_a_forked_child_read_alike(bucket: Bucket) -> None:
    put(bucket, "a.ndjson", lines_of(ROWS * 30))
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(count("s3://logs/a.ndjson"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [ERRORS * 30] * 4


def test_what_is_asked_ahead_for_many_is_read_once(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_KEPT", 24 * PART)
    datas = [bytes([number]) * (40 * PART) for number in range(5)]
    begun = [_s3(put(bucket, f"{number}.bin", data)) for number, data in enumerate(datas)]
    left = files.FILES.open(begun[0], os.O_RDONLY, 0)  # nobody reads on in it
    files.FILES.pread(left, PART, 0)
    files.FILES.pread(left, PART, PART)
    opened = [files.FILES.open(url, os.O_RDONLY, 0) for url in begun[1:]]
    for at in range(0, 40 * PART, PART):
        for fd, data in zip(opened, datas[1:], strict=True):
            assert files.FILES.pread(fd, PART, at) == data[at : at + PART]
    for fd in (left, *opened):
        files.FILES.close(fd)
    asked = [each for each in bucket.asked if each.key > "1"]
    assert sum(each.stop - each.begin for each in asked) <= 4 * (40 * PART + files._FIRST)


def _s3(path: Path) -> str:
    return f"s3://logs/{path.name}"


def as_another_machine(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    forget_looks(monkeypatch)


def test_machines_share_indexes(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (bucket.root / "shared").mkdir()
    for name in ("a.ndjson", "b.ndjson.gz"):
        put(bucket, name, (gzip.compress if name.endswith("gz") else bytes)(lines_of(ROWS * 30)))
    for name in ("a.ndjson", "b.ndjson.gz"):
        with jitdb.open(f"s3://logs/{name}", "s3://shared/indexes") as db:
            assert db.count(equal("level", "error")) == ERRORS * 30
            assert list(db.query().page(2)) == ROWS[:2]
    as_another_machine(monkeypatch, tmp_path / "second")
    bucket.asked.clear()
    for name in ("a.ndjson", "b.ndjson.gz"):
        with jitdb.open(f"s3://logs/{name}", "s3://shared/indexes", max_bytes=0) as db:
            assert db.count(equal("level", "error")) == ERRORS * 30
            assert list(db.query().page(2)) == ROWS[:2]
    of_logs = sum(asked.stop - asked.begin for asked in bucket.asked if asked.key in ("a.ndjson", "b.ndjson.gz"))
    assert of_logs < 3 << 20
    with jitdb.open("s3://logs/a.ndjson", "s3://shared/indexes") as db:  # another field, on this machine
        assert db.count(equal("n", 7)) == 30
    as_another_machine(monkeypatch, tmp_path / "third")
    with jitdb.open("s3://logs/a.ndjson", "s3://shared/indexes", max_bytes=0) as db:
        assert (db.count(equal("n", 7)), db.count(equal("level", "error"))) == (30, ERRORS * 30)
    assert count("s3://logs/", indexes="s3://shared/indexes", max_bytes=0) == 2 * ERRORS * 30


def test_two_machines_that_build_at_once_keep_both(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (bucket.root / "shared").mkdir()
    put(bucket, "a.ndjson", LINES)
    one = jitdb.open("s3://logs/a.ndjson", "s3://shared/indexes")
    as_another_machine(monkeypatch, tmp_path / "second")
    with jitdb.open("s3://logs/a.ndjson", "s3://shared/indexes") as other:
        assert other.count(equal("n", 7)) == 1
    with one:
        assert one.count(equal("level", "error")) == ERRORS  # whose manifest is older
    as_another_machine(monkeypatch, tmp_path / "third")
    with jitdb.open("s3://logs/a.ndjson", "s3://shared/indexes", max_bytes=0) as db:
        assert (db.count(equal("n", 7)), db.count(equal("level", "error"))) == (1, ERRORS)


def test_a_place_that_cannot_be_written_costs_no_answer(bucket: Bucket) -> None:
    put(bucket, "a.ndjson", LINES)
    (bucket.root / "shared").mkdir()
    bucket.fault = lambda number, asked: Fault(status=403) if asked.method == "PUT" else None
    with jitdb.open("s3://logs/a.ndjson", "s3://shared/indexes") as db:
        with pytest.warns(errors.LogWarning, match="indexes are not shared"):
            assert db.count(equal("level", "error")) == ERRORS
        assert db.count(equal("n", 7)) == 1


def test_hostile_manifests_and_parts(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put(bucket, "a.ndjson", LINES)
    place = bucket.root / "shared" / "indexes"
    (bucket.root / "shared").mkdir()
    with jitdb.open("s3://logs/a.ndjson", "s3://shared/indexes") as db:
        assert db.count(equal("level", "error")) == ERRORS
    told = json.loads((place / "manifest").read_text())
    (log,) = told["logs"]
    for number, hostile in enumerate(
        [b"{", b"[]", b'{"version": 2, "logs": {}}', json.dumps({**told, "logs": {"../../x": ["00", {}]}}).encode(),
         json.dumps({**told, "logs": {log: ["00", {"../../../x": [["aa", 1]]}]}}).encode()]
    ):  # fmt: skip
        (place / "manifest").write_bytes(hostile)
        as_another_machine(monkeypatch, tmp_path / str(number))
        with pytest.raises(errors.LogError, match="no manifest"):
            jitdb.open("s3://logs/a.ndjson", "s3://shared/indexes")
    (place / "manifest").write_text(json.dumps(told))
    for part in (place / "parts").iterdir():
        part.write_bytes(part.read_bytes()[:-1] + b"x")
    as_another_machine(monkeypatch, tmp_path / "again")
    with pytest.raises(errors.LogError, match="not what was put there"):
        jitdb.open("s3://logs/a.ndjson", "s3://shared/indexes")


def test_files_have_no_shared_indexes(bucket: Bucket, tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(LINES)
    with pytest.raises(errors.InvalidArgument, match="this is a file"):
        jitdb.open(path, "s3://shared/indexes")
