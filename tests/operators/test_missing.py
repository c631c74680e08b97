"""A log that is not there: what was meant, or what to do."""

import pytest

from jitdb.log.opening.open_log import no_such_log


@pytest.mark.parametrize(
    ("name", "read_only", "said"),
    [
        ("nothing", False, "there is no such file; pass create=True for a new, empty log"),
        ("nothing", True, "there is no such file, so nothing to read; a log is made by the process that writes it"),
    ],
)
def test_a_path_like_no_other(tmp_path, name, read_only, said):
    assert str(no_such_log(tmp_path / name, read_only=read_only)) == f"{tmp_path / name}: {said}"


@pytest.mark.parametrize("read_only", [False, True])
def test_a_misspelt_path(tmp_path, read_only):
    (tmp_path / "events.log").touch()
    (tmp_path / "event.log.jitdb").mkdir()
    said = str(no_such_log(tmp_path / "event.log", read_only=read_only))
    assert said.endswith(f"did you mean {str(tmp_path / 'events.log')!r}?")
    assert "create=True" not in said


def test_a_folder_that_is_not_there(tmp_path):
    assert "there is no folder" in str(no_such_log(tmp_path / "a" / "b"))
