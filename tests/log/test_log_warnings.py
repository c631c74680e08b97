"""Where warnings are shown: at the line of whoever opened the log, not at one of jitdb's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb import Log
from jitdb.errors import LogWarning
from jitdb.log.io import filenames


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("opens", [Log, jitdb.open])
def test_a_damaged_meta_is_told_at_the_line_that_opens(
    tmp_path: Path, opens: Callable[..., Any], read_only: bool
) -> None:
    path = tmp_path / "x.log"
    with Log(path, codec="msgpack") as log:
        log.append({"a": 1})
    (filenames.sidecar_path(path) / filenames.META).write_bytes(b"no meta")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        opens(path, read_only=read_only).close()
    told = [each for each in found if issubclass(each.category, LogWarning)]
    assert told
    assert {each.filename for each in told} == {__file__}


@pytest.mark.parametrize("opens", [Log, jitdb.open])
def test_what_is_cut_off_is_told_at_the_line_that_opens(tmp_path: Path, opens: Callable[..., Any]) -> None:
    path = tmp_path / "x.log"
    with Log(path, codec="msgpack") as log:
        log.append({"a": 1})
    with path.open("ab") as file:
        file.write(b"\xff\x00torn")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        opens(path).close()
    told = [each for each in found if "cut off and kept" in str(each.message)]
    assert told
    assert {each.filename for each in told} == {__file__}
