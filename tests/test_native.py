"""The library of compiled kernels: that it is used, refuses what it does not take, and only beside its sources."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from jitdb.common import kernel_library, kernels
from jitdb.log.blocks.walk_kernels import walk

ROOT = Path(__file__).parents[1]

built = pytest.mark.skipif(kernels.WAY != "native", reason="needs the library: python3 dev.py build")


def test_the_build_made_it() -> None:
    """Where there is a linker, as here: `python3 dev.py test` installs the project, which builds it."""
    if os.environ.get("JITDB_KERNELS") or shutil.which("cc") is None:
        pytest.skip("another way was asked for, or there is no compiler")
    assert kernel_library.PATH.exists()
    assert kernels.WAY == "native"


@built
def test_arrays_of_another_type_are_refused() -> None:
    data, ints = np.zeros(64, np.uint8), np.zeros(64, np.int64)
    with pytest.raises(TypeError, match="walk takes I64, not int32"):
        walk(data, 64, 64, 2, np.zeros(64, np.int32), ints, data, ints)
    with pytest.raises(TypeError, match="walk takes U8"):
        walk(data[::2], 32, 32, 2, ints, ints, data, ints)
    with pytest.raises(ValueError, match="argument"):
        walk(data, 64, 64)


@built
def test_arrays_that_may_not_be_written_to_or_are_empty() -> None:
    find = kernels.NativeKernel(_uncompiled("find_newline"))
    data = np.frombuffer(bytes(range(100)), np.uint8)
    assert not data.flags.writeable
    assert find(data, 0, 100) == 10
    assert find(np.empty(0, np.uint8), 0, 0) == -1
    with pytest.raises(TypeError, match="find_newline takes U8, not uint8"):
        find(data[::2], 0, 50)


@pytest.fixture
def _switching_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@built
@pytest.mark.usefixtures("_switching_often")
def test_threads_that_call_it_first_at_once() -> None:
    data, function = np.arange(64, dtype=np.uint8), _uncompiled("find_newline")
    with ThreadPoolExecutor(4) as pool:
        for _ in range(200):
            find, together = kernels.NativeKernel(function), threading.Barrier(4)
            calls = [pool.submit(lambda find=find, all_=together: (all_.wait(), find(data, 0, 64))) for _ in range(4)]
            assert {call.result()[1] for call in calls} == {10}


def _uncompiled(name: str):  # type: ignore[no-untyped-def]
    from jitdb.log.lines import line_kernels

    return getattr(line_kernels, name).__wrapped__


def in_a_copy(tmp_path: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it beside a copy of the package, the library too."""
    if not (tmp_path / "jitdb").exists():
        shutil.copytree(ROOT / "jitdb", tmp_path / "jitdb", ignore=shutil.ignore_patterns("__pycache__"))
    kept = {name: value for name, value in os.environ.items() if name != "JITDB_KERNELS"}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**kept, "PYTHONPATH": str(tmp_path), **environment},
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip


WAY = "from jitdb.common.kernels import WAY; print(WAY)"


@built
def test_it_is_not_used_beside_other_sources(tmp_path: Path) -> None:
    assert in_a_copy(tmp_path, WAY).stdout == "native\n"
    with open(tmp_path / "jitdb" / "log" / "blocks" / "walk_kernels.py", "a") as file:
        file.write("# changed\n")
    done = in_a_copy(tmp_path, WAY)
    assert done.stdout == "numba\n"
    assert "kernels.so was made of other sources: python3 dev.py build" in done.stderr


def test_a_library_that_is_none_of_this_machine(tmp_path: Path) -> None:
    in_a_copy(tmp_path, "")
    (tmp_path / "jitdb" / "kernels.so").write_bytes(b"\x7fELF, but of another machine")
    done = in_a_copy(tmp_path, WAY)
    assert done.stdout == "numba\n"
    assert "is no library of this machine" in done.stderr


def test_without_any_compiler_it_is_said(tmp_path: Path) -> None:
    in_a_copy(tmp_path, "")
    (tmp_path / "jitdb" / "kernels.so").unlink(missing_ok=True)
    without = "import sys; sys.modules['numba'] = None\n"
    done = in_a_copy(tmp_path, f"{without}{WAY}")
    assert done.stdout == "python\n"
    assert "pip install 'jitdb[numba]'" in done.stderr
    assert "JITDB_KERNELS=native: there is no" in in_a_copy(tmp_path, WAY, JITDB_KERNELS="native").stderr


@built
def test_no_part_needs_numba() -> None:
    pytest.importorskip("pyspark")
    program = (  # all but the program, the library, and what is compiled alone
        "import importlib, pkgutil, sys, jitdb\n"
        "left = ('jitdb.__main__', 'jitdb.kernels', 'jitdb.log.codecs.fields.vectors')\n"
        "for module in pkgutil.walk_packages(jitdb.__path__, 'jitdb.'):\n"
        "    if module.name not in left: importlib.import_module(module.name)\n"
        "print('numba' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_ways_that_there_are_not(tmp_path: Path) -> None:
    done = in_a_copy(tmp_path, WAY, JITDB_KERNELS="fast")
    assert "JITDB_KERNELS='fast' is none of native, numba, python" in done.stderr


@built
def test_a_build_by_other_rules_is_another_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is compiled with is part of what it is: not its sources alone."""
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.setenv("JITDB_KERNELS", "numba")
    build = runpy.run_path(str(ROOT / "build_kernels.py"), run_name="build_kernels")
    objects = build["_objects"](build["HERE"])
    assert build["_is_of"](objects)
    changed = objects[0]._replace(path=objects[0].path.with_suffix(".other"))
    assert not build["_is_of"]([changed, *objects[1:]])
    assert not build["_is_of"](objects[1:])
