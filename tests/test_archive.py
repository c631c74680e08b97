"""The archive of sources, which `pip install` and packagers start from."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_archive_has_what_its_pages_name(tmp_path: Path) -> None:
    """Who unpacks it can do what README.md and CONTRIBUTING.md say."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    pages = [(ROOT / page).read_text() for page in ("README.md", "CONTRIBUTING.md")]
    linked = {link.partition("#")[0] for page in pages for link in re.findall(r"\]\(([^):]+)\)", page)}
    typed = {"dev.py", ".ci/run", "conftest.py", "build_kernels.py", "hatch_build.py", "tests/oracle.py"}
    assert {"CONTRIBUTING.md", "docs/python.md"} < linked | {"CONTRIBUTING.md"}
    wanted = linked | typed | {"README.md", "CONTRIBUTING.md", "LICENSE"}
    assert {name for name in wanted if not any(f"{each}/".startswith(f"{name}/") for each in names)} == set()
