"""A store of objects on this machine, which jitdb asks with a cache of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.objects.bucket import Bucket, serving
from tests.objects.stores import asked_at


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    (tmp_path / "root" / "logs").mkdir(parents=True)
    with serving(tmp_path / "root") as found:
        asked_at(found.url, monkeypatch, tmp_path / "cache")
        yield found
