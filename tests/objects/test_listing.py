"""Names come in several requests at the same time, as soon as a listing before told where to begin: the same names."""

from __future__ import annotations

import os
import random
import zlib
from pathlib import Path

import pytest

from jitdb.log.objects import listing
from jitdb.log.objects.listing import objects_at
from jitdb.log.objects.urls import ObjectUrl
from tests.objects.bucket import Bucket

LETTERS = "ab~zé\u4e2d\U0001f600-=.0 "


def keys_below(bucket: Bucket, begin: str) -> list[str]:
    """What a listing is to give, without one."""
    root = bucket.root / "logs"
    below = (os.path.relpath(Path(top, name), root) for top, _, names in os.walk(root) for name in names)
    return sorted(key for key in below if key.startswith(begin) and not Path(key).name.startswith("."))


def marks_in(cache: Path) -> list[Path]:
    return list(cache.rglob("marks"))


@pytest.fixture
def small_pages(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    bucket.page = 10
    monkeypatch.setattr(listing, "_PAGE", 10)
    monkeypatch.setattr(listing, "_RUN", 8)
    return bucket


def put(bucket: Bucket, key: str) -> None:
    path = bucket.root / "logs" / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")


def test_the_next_listing_asks_side_by_side(small_pages: Bucket, tmp_path: Path) -> None:
    for number in range(95):
        put(small_pages, f"n/{number:03d}.ndjson")
    url = ObjectUrl.of("s3://logs/n/*")
    first = objects_at(url)
    assert len(small_pages.asked) == 10
    small_pages.asked.clear()
    assert objects_at(url) == first
    assert len(small_pages.asked) == 12  # one for each eight names
    marks = next(iter(marks_in(tmp_path / "cache"))).read_text()
    assert objects_at(url) == first
    assert next(iter(marks_in(tmp_path / "cache"))).read_text() == marks


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_kept_the_names_are_those_of_now(small_pages: Bucket, tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)

    def key() -> str:
        words = ("".join(source.choices(LETTERS, k=source.randrange(1, 4))) for _ in range(source.randrange(1, 3)))
        return f"{source.choice(['n', 'n0', 'm'])}/{'/'.join(word.strip('. ') or 'x' for word in words)}"

    for step in range(6):
        for _ in range(source.randrange(60)):
            put(small_pages, f"{key()}.ndjson")
        there = [path for path in (small_pages.root / "logs").rglob("*") if path.is_file()]
        for path in source.sample(there, min(len(there), source.randrange(20))):
            path.unlink()
        for file in marks_in(tmp_path / "cache"):
            if source.random() < 0.4:
                text = "\n".join(sorted({key() for _ in range(source.randrange(1, 9))})).encode()
                file.write_bytes(source.choice([b"", os.urandom(40), text, b"%08x\n%b" % (zlib.crc32(text), text)]))
        for begin, pattern in (("n/", "n/**"), ("n", "n*/**"), ("", "")):
            if expected := keys_below(small_pages, begin):
                found = objects_at(ObjectUrl.of(f"s3://logs/{pattern}"))
                assert [each.url.key for each in found] == expected, (step, begin)
