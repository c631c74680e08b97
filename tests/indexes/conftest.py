"""What the tests of index files share: spans so small that a test can fill some."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from index_cases import spans_of
from index_file_cases import KINDS, SMALL_SPAN, SPEC

from jitdb.indexes.files import index


@pytest.fixture
def small_spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(index.KINDS, SPEC.form, tuple(KINDS))  # one spec for segments of any kind
    with spans_of(SMALL_SPAN):
        yield
