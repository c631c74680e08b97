"""What another user put into a folder where all may make files is neither followed nor written to, as Linux has it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cli_helpers import make_log
from planted import OTHER, THIRD, as_root, folder, plant, run_as

from jitdb.cli import main
from jitdb.errors import LogError
from jitdb.handlers import RecordSink
from jitdb.log import Log
from jitdb.log.io.filenames import followed

__all__ = ["folder"]

RECORDS = [{"n": number} for number in range(20)]
KINDS = ["link", "link to nothing", "file", "pipe"]


@pytest.fixture
def shared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As /tmp is, and a log and lines beside it."""
    monkeypatch.chdir(folder)
    make_log(folder / "x.log", RECORDS)
    Path("x.ndjson").write_text('{"n": 1}\n' * 20)
    shared = folder / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    return shared


def put(shared: Path, kind: str, owner: int = OTHER) -> tuple[Path, Path]:
    """What was put there, and what it leads to."""
    place, victim = shared / "out", shared.parent / "victim"
    victim.write_text("precious")
    if kind.startswith("link"):
        return plant(place, victim if kind == "link" else shared.parent / "nothing", owner), victim
    if kind == "file":
        place.touch()
    else:
        os.mkfifo(place)
    os.chown(place, owner, owner)
    return place, victim


COMMANDS = [
    "import x.ndjson {}", "import --append x.ndjson {}", "export x.log -o {}", "export x.log n>3 -o {}",
    "query x.log -o {}", "tail x.log --old --limit 3 --cursor {}",
]  # fmt: skip


def _state(place: Path) -> tuple[float, ...]:
    """All that is known of a file but when it was read last: that its link was followed shows there."""
    mode, number, device, links, user, group, size, _, *changed = place.lstat()
    return (mode, number, device, links, user, group, size, *changed)


@as_root
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_refused(shared: Path, command: str, kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    place, victim = put(shared, kind)
    before = _state(place), {*shared.iterdir(), *shared.parent.iterdir()}
    assert main(command.format(place).split()) == 1
    said = capfd.readouterr().err
    assert f"{place}: this is a {'link' if kind.startswith('link') else 'file'} that user {OTHER} put where all" in said
    assert "name a file in a folder of your own" in said
    assert (_state(place), {*shared.iterdir(), *shared.parent.iterdir()}) == before
    assert victim.read_text() == "precious"


@as_root
@pytest.mark.parametrize("kind", ["link", "link to nothing", "file"])
def test_no_log_is_made_there(shared: Path, kind: str) -> None:
    place, victim = put(shared, kind)
    with pytest.raises(LogError, match=f"that user {OTHER} put where all may make files"):
        Log(place)
    with pytest.raises(LogError, match=f"that user {OTHER} put where all may make files"):
        RecordSink(place)
    assert victim.read_text() == "precious"
    assert not (shared.parent / "nothing").exists()


@as_root
def test_a_log_of_another_user_may_be_asked_and_compacted_but_is_not_added_to(shared: Path) -> None:
    make_log(shared / "out", RECORDS)
    os.chown(shared / "out", OTHER, OTHER)
    assert main(["count", str(shared / "out"), "n > 3"]) == 0
    assert main(["compact", str(shared / "out")]) == 0
    assert main(["import", "--append", "x.ndjson", str(shared / "out")]) == 1
    with pytest.raises(LogError, match="put where all may make files"):
        RecordSink(shared / "out")


@as_root
def test_links_over_links(shared: Path) -> None:
    place, _ = put(shared, "link to nothing")
    Path("mine").symlink_to(place)
    assert main(["export", "x.log", "-o", "mine"]) == 1
    assert not Path("nothing").exists()


@as_root
@pytest.mark.parametrize(("mode", "owner"), [(0o777, 0), (0o1775, 0), (0o1777, OTHER)], ids=oct)
def test_other_folders(shared: Path, mode: int, owner: int) -> None:
    """Where not all may make files, or each take another's; or the link is of the folder's owner."""
    place, victim = put(shared, "link")
    victim.unlink()
    shared.chmod(mode)
    os.chown(shared, owner, owner)
    for command in COMMANDS[0], COMMANDS[2]:
        assert main(command.format(place).split()) == 0
        assert victim.stat().st_size > 0
        assert place.is_symlink()
        victim.unlink()


@pytest.mark.parametrize("command", [COMMANDS[0], *COMMANDS[2:]])
@pytest.mark.parametrize("kind", ["link", "link to nothing"])
def test_links_of_ones_own(shared: Path, command: str, kind: str) -> None:
    victim = shared.parent / ("victim" if kind == "link" else "nothing")
    place = shared / "out"
    place.symlink_to(victim)
    assert main(command.format(place).split()) == 0
    assert victim.stat().st_size > 0
    assert place.is_symlink()


@as_root
def test_links_of_root_in_a_folder_of_root(shared: Path) -> None:
    """For whoever asks: they are the folder's owner's."""
    theirs, own = plant(shared / "theirs", shared / "a", THIRD), plant(shared / "own", shared / "b", OTHER)
    roots = plant(shared / "roots", shared / "c", 0)
    assert [run_as(OTHER, lambda each=each: followed(str(each)).name) for each in (own, roots)] == ["b", "c"]  # type: ignore[misc]
    with pytest.raises(LogError, match=f"that user {THIRD} put"):
        run_as(OTHER, lambda: followed(str(theirs)))
