"""Links that another user made, and what happens as another user; only root can make these."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

OTHER, THIRD = 12345, 12346  # users that are nobody's
GROUP = 54321

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")


def plant(link: Path, target: Path, owner: int = OTHER) -> Path:
    """A link of another user."""
    link.symlink_to(target)
    os.chown(link, owner, owner, follow_symlinks=False)
    return link


def run_as(user: int, asked: Callable[[], Any], *, group: int | None = None, others: tuple[int, ...] = ()) -> Any:
    """What a function gives, or raises, in a process of this user."""
    inlet, outlet = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups(others)
            os.setgid(user if group is None else group)
            os.setuid(user)
            said = True, asked()
        except BaseException as error:
            said = False, error
        with open(outlet, "wb") as file:
            file.write(pickle.dumps(said))
        os._exit(0)
    os.close(outlet)
    with open(inlet, "rb") as file:
        data = file.read()
    os.waitpid(child, 0)
    went_well, value = pickle.loads(data)
    if not went_well:
        raise value
    return value


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that all users can enter, unlike tmp_path."""
    with TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)
