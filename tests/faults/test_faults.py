"""A short run of every fault campaign; `python -m tests.faults` runs them in full."""

from __future__ import annotations

import gc
from random import Random

import pytest
from faults.all_campaigns import CAMPAIGNS
from faults.campaign import Campaign
from faults.simulated import Process
from faults.simulated_disk import SECTOR, Disk

SIMULATED = [
    campaign for campaign in CAMPAIGNS if campaign.name not in ("kills", "crowds", "mutated", "rotations", "prebuilds")
]
PROCESSES = [campaign for campaign in CAMPAIGNS if campaign not in SIMULATED]


@pytest.fixture
def _only_new_garbage() -> None:
    """Histories collect garbage often; going through all that other tests left alive would take most of the time."""
    gc.collect()
    gc.freeze()


@pytest.mark.usefixtures("_only_new_garbage")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("campaign", SIMULATED, ids=lambda campaign: campaign.name)
def test_simulated(campaign: Campaign) -> None:
    """Should one fail, its seed is in the notes of the error; replay it with --only NAME --seed SEED."""
    for seed in range(campaign.short):
        assert campaign.run(seed) >= 0


@pytest.mark.parametrize("campaign", PROCESSES, ids=lambda campaign: campaign.name)
def test_processes(campaign: Campaign) -> None:
    for seed in range(campaign.short):
        assert campaign.run(seed) > 0


# The simulated disk itself


def make(path: str = "/a") -> tuple[Disk, Process, int]:
    disk = Disk()
    process = Process(disk)
    return disk, process, process.open(path, 0o102)  # O_RDWR | O_CREAT


def crashes(disk: Disk) -> list[dict[str, bytes]]:
    rng = Random(1)
    return [{path: bytes(file.data) for path, file in disk.crash(rng).files().items()} for _ in range(300)]


def test_what_was_synced_survives() -> None:
    disk, process, fd = make()
    process.write(fd, b"x" * 2000, 0)
    process.fsync(fd)
    disk.sync(disk.root)
    assert all(found == {"/a": b"x" * 2000} for found in crashes(disk))


def test_sectors_that_were_not_synced_survive_each_for_itself() -> None:
    disk, process, fd = make()
    process.write(fd, b"x" * 3 * SECTOR, 0)
    process.fsync(fd)
    disk.sync(disk.root)
    process.write(fd, b"y" * 3 * SECTOR, 0)
    seen = {found["/a"] for found in crashes(disk)}
    assert len(seen) == 8
    assert all(set(state[at : at + SECTOR]) in ({120}, {121}) for state in seen for at in range(0, len(state), SECTOR))


def test_a_name_needs_its_folder_synced() -> None:
    disk, process, fd = make()
    process.fsync(fd)
    assert {tuple(found) for found in crashes(disk)} == {(), ("/a",)}


def test_a_rename_is_whole_or_not_at_all() -> None:
    disk, process, fd = make("/a")
    process.write(fd, b"new", 0)
    process.fsync(fd)
    process.mkdir("/b")  # type: ignore[arg-type]
    process.open("/b/c", 0o102)
    disk.sync_all()
    process.rename("/a", "/b/c")  # type: ignore[arg-type]
    states = {tuple(sorted(found.items())) for found in crashes(disk)}
    assert states == {(("/a", b"new"), ("/b/c", b"")), (("/b/c", b"new"),)}


def test_what_a_truncation_took_does_not_come_back() -> None:
    disk, process, fd = make()
    process.write(fd, b"x" * 1000, 0)
    disk.sync_all()
    process.truncate(fd, 100)
    process.truncate(fd, 1000)
    states = {found["/a"] for found in crashes(disk)}
    zeroed = b"x" * 100 + bytes(SECTOR - 100) + b"x" * (1000 - SECTOR)  # written before the sizes were
    assert states == {b"x" * 1000, b"x" * 100, b"x" * 100 + bytes(900), zeroed}


def test_a_failed_fsync_forgets() -> None:
    lost = 0
    for seed in range(40):
        disk = Disk(seed)
        process = Process(disk, only=frozenset({"fsync"}), fail_at=1)
        fd = process.open("/a", 0o102)
        process.write(fd, b"x" * SECTOR, 0)
        with pytest.raises(OSError, match="Input/output"):
            process.fsync(fd)
        process.fsync(fd)
        disk.sync(disk.root)
        [found] = {tuple(each.items()) for each in crashes(disk)}
        lost += found == (("/a", bytes(SECTOR)),)
    assert 0 < lost < 40


def test_a_killed_process_leaves_its_locks() -> None:
    disk, process, fd = make()
    other = Process(disk)
    place = other.open("/a", 0o2)
    assert process.lock(fd)
    assert process.lock_byte(fd, 7)
    assert not other.lock(place)
    assert not other.lock_byte(place, 7)
    process.stop()
    assert other.lock(place)
    assert other.lock_byte(place, 7)
