"""Wheels for other machines: what they are called, what is in them, and that LLVM makes code of each kind.

Whether all kernels compile for all of them, `python3 dev.py wheels` shows in some minutes; what was run where is in
docs/platforms.md.
"""

from __future__ import annotations

import runpy
import struct
import sys
import zipfile
from collections.abc import Callable
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))
WHEELS = runpy.run_path(str(ROOT / "build_wheels.py"), run_name="build_wheels")
pack: Callable[[Path, str, Path], None] = WHEELS["pack"]
PLATFORMS: dict[str, Any] = WHEELS["PLATFORMS"]


def test_there_is_a_wheel_for_each_system() -> None:
    tags = {tag for platform in PLATFORMS for tag in platform.split(".")}
    assert {tag for tag in tags if tag.startswith("manylinux2014_")} == {
        "manylinux2014_x86_64",
        "manylinux2014_aarch64",
    }
    for system, architectures in {
        "manylinux_2_17": ("x86_64", "aarch64"),
        "musllinux_1_1": ("x86_64", "aarch64"),
        "macosx_11_0": ("arm64", "x86_64"),
    }.items():
        assert {f"{system}_{each}" for each in architectures} <= tags


@pytest.mark.parametrize("platform", ["manylinux_2_17_aarch64.manylinux2014_aarch64", "macosx_11_0_arm64"])
def test_a_wheel_is_of_its_platform_and_of_all_pythons(tmp_path: Path, platform: str) -> None:
    library = tmp_path / "made.so"
    library.write_bytes(b"kernels of another machine")
    pack(library, platform, tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith(f"-py3-none-{platform}.whl")
    with zipfile.ZipFile(wheel) as packed:
        assert packed.read("jitdb/kernels.so") == library.read_bytes()
        names = packed.namelist()
        told = message_from_string(packed.read(next(name for name in names if name.endswith("/WHEEL"))).decode())
    assert sorted(told.get_all("Tag") or ()) == sorted(f"py3-none-{tag}" for tag in platform.split("."))
    assert told["Root-Is-Purelib"] == "false"
    assert [name for name in names if name.endswith((".so", ".o"))] == ["jitdb/kernels.so"]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_code_is_of_the_machine(platform: str) -> None:
    pytest.importorskip("numba", reason="kernels are compiled by numba")
    import build_kernels

    made = build_kernels._told(PLATFORMS[platform], 1, 2)
    if platform.startswith("macosx"):
        magic, kind = struct.unpack_from("<II", made)
        assert (magic, kind) == (0xFEEDFACF, 0x0100000C if platform.endswith("arm64") else 0x01000007)
    else:
        assert made[:6] == b"\x7fELF\x02\x01"  # of 64 bits, little-endian
        assert struct.unpack_from("<H", made, 18) == (183 if platform.endswith("aarch64") else 62,)
    assert b"jitdb_sources" in made
