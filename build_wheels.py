"""A wheel for each system that jitdb is released for, made on one machine, whatever that is (docs/platforms.md).

python3 build_wheels.py [FOLDER [PLATFORM ...]]    into dist/; `python3 dev.py wheels` installs what it needs, too

Kernels know nothing of Python, so a wheel is for all versions of it. Of the C library they call what every one has
(KNOWN in build_kernels.py), so one library is for old and new ones, GNU's and musl.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from build_kernels import OBJECTS, ROOT, BuildFailed, Target, build

# What pip calls a system and its oldest version: what LLVM and zig call it. numpy has wheels for all of these.
PLATFORMS = {
    "manylinux_2_17_x86_64.manylinux2014_x86_64": Target("x86_64-unknown-linux-gnu", "x86_64-linux-gnu.2.17"),
    "manylinux_2_17_aarch64.manylinux2014_aarch64": Target("aarch64-unknown-linux-gnu", "aarch64-linux-gnu.2.17"),
    "musllinux_1_1_x86_64": Target("x86_64-unknown-linux-gnu", "x86_64-linux-musl"),
    "musllinux_1_1_aarch64": Target("aarch64-unknown-linux-gnu", "aarch64-linux-musl"),
    "macosx_11_0_arm64": Target("arm64-apple-macosx11.0.0", "aarch64-macos.11.0"),
    "macosx_11_0_x86_64": Target("x86_64-apple-macosx11.0.0", "x86_64-macos.11.0"),
}


def main(folder: str = "dist", *platforms: str) -> None:
    for platform in platforms or PLATFORMS:
        if platform not in PLATFORMS:
            sys.exit(f"there is no platform {platform!r}: {', '.join(PLATFORMS)}")
        print(f"compiling for {platform} …", flush=True)
        try:
            library = build(PLATFORMS[platform], OBJECTS / f"{platform}.so")
        except BuildFailed as error:
            sys.exit(f"the kernels cannot be built: {error}")
        pack(library, platform, Path(folder).resolve())


def pack(library: Path, platform: str, folder: Path) -> None:
    """Make the wheel of this library of kernels."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    made_of = {"JITDB_LIBRARY": str(library), "JITDB_PLATFORM": platform}
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **made_of}, check=False)
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    main(*sys.argv[1:])
