"""Writing without Spark: attempts, parts that are not what was written, and crashes while one log replaces another."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from jitdb import Log
from jitdb.errors import LogError
from jitdb.log import osfile
from jitdb.spark_ext.errors import SparkError
from jitdb.spark_ext.writing import Target, Written, begin, clean_up, commit, write_part


def rows(first: int, count: int) -> list[dict[str, int]]:
    return [{"n": number} for number in range(first, first + count)]


def numbers(path: Path) -> list[int]:
    with Log(path) as log:
        assert log.verify().ok
        return [record.value["n"] for record in log.stream()]


def job(
    path: Path, *, overwrite: bool = False, parts: int = 3, codec: str | None = None
) -> tuple[Target, list[Written]]:
    target = begin(str(path), f"{parts}", codec, 256, overwrite)
    return target, [write_part(target, number, "0", rows(100 * number, 20)) for number in range(parts)]


def in_order(parts: int) -> list[int]:
    return [n for number in range(parts) for n in range(100 * number, 100 * number + 20)]


@pytest.mark.parametrize("codec", ["msgpack", "bipf"])
def test_parts_in_order_and_one_attempt_of_each(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "x.log"
    target, parts = job(path, codec=codec)
    write_part(target, 1, "1", rows(5000, 7))  # came second
    empty = write_part(target, 3, "0", [])
    assert commit(target, [empty, *reversed(parts)]) == 60
    assert numbers(path) == in_order(3)
    target = begin(str(path), "more", None, None, False)
    commit(target, [write_part(target, 0, "0", rows(7, 3))])
    assert numbers(path) == [*in_order(3), 7, 8, 9]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.log", "x.log.jitdb"]


def test_a_part_that_fails_leaves_no_file(tmp_path: Path) -> None:
    target = begin(str(tmp_path / "x.log"), "job", None, 256, False)

    def some() -> Any:
        yield {"n": 1}
        raise RuntimeError("the plug was pulled")

    with pytest.raises(RuntimeError, match="plug"):
        write_part(target, 0, "0", some())
    with pytest.raises(SparkError, match="row 1 of its partition"):
        write_part(target, 0, "1", [{"n": 1}, {"n": {1, 2}}])
    with pytest.raises(SparkError, match="hold 252 at most"):
        write_part(target, 0, "2", [{"n": "x" * 300}])
    assert list(Path(target.folder).iterdir()) == []
    clean_up(target)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["flipped", "short", "gone"])
def test_a_part_that_is_not_what_was_written(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "x.log"
    commit(*job(path))
    target, parts = job(path, parts=2)
    file = Path(target.folder) / parts[1].name
    data = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(data[:-1] if damage == "short" else data[:50] + bytes([data[50] ^ 1]) + data[51:])
    with pytest.raises(SparkError, match="does not see" if damage == "gone" else "expected"):
        commit(target, parts)
    assert numbers(path) == in_order(3)
    assert not Path(target.folder).exists()


class Failing(osfile.FileSystem):
    """The disk fails at one of the calls that change something, and at all after it."""

    CHANGES = ("write", "write_file", "replace_file", "rename", "unlink", "truncate", "fsync", "sync_folder")

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at
        for name in self.CHANGES:
            setattr(self, name, self._guarded(getattr(osfile.FileSystem, name)))

    def _guarded(self, change: Any) -> Any:
        def call(*args: Any, **given: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.EIO, "the disk is gone")
            return change(self, *args, **given)

        return call


@pytest.mark.filterwarnings("ignore::jitdb.errors.LogWarning")
@pytest.mark.parametrize("overwrite", [True, False])
def test_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool) -> None:
    """Whatever call fails, the log is the old one or the new one, whole."""
    real = osfile.fs
    new = in_order(8) if overwrite else in_order(3) + in_order(8)
    found = set()
    for at in range(1000):
        path = tmp_path / f"{at}.log"
        commit(*job(path))
        target, parts = job(path, overwrite=overwrite, parts=8)
        monkeypatch.setattr(osfile, "fs", Failing(at))
        try:
            commit(target, parts)
            done = True
        except (LogError, OSError):
            done = False
        finally:
            monkeypatch.setattr(osfile, "fs", real)
        seen = numbers(path)
        assert seen in (in_order(3), new), at
        found.add(len(seen))
        if done:
            assert seen == new
            break
    assert found == {60, len(new)}
    assert at > 10
