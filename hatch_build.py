"""What a build does beside putting files together: it compiles the kernels into the wheel, where that can be done."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LINKERS = ("cc", "gcc", "clang", "ld")  # as build_kernels.py looks for them


class Kernels(BuildHookInterface):
    """Builds the kernels; says so where that fails, and makes a wheel for every machine, which needs numba.

    For another machine, build_wheels.py compiles them first: JITDB_LIBRARY is the file, JITDB_PLATFORM what pip calls
    that machine.
    """

    def dependencies(self) -> list[str]:
        """What else a build needs: a linker, where the machine has none."""
        return [] if "JITDB_LIBRARY" in os.environ or any(map(shutil.which, LINKERS)) else ["ziglang>=0.13"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if library := os.environ.get("JITDB_LIBRARY"):
            build_data["force_include"][library] = "jitdb/kernels.so"
        elif self._builds():
            build_data["artifacts"].append("jitdb/kernels.so")
        else:
            return
        build_data["pure_python"] = False
        platform = os.environ.get("JITDB_PLATFORM") or sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"

    def _builds(self) -> bool:
        """Compile the kernels for this machine."""
        sys.path.insert(0, self.root)
        try:
            from build_kernels import BuildFailed, build
        except ImportError as error:
            self.app.display_warning(f"jitdb is built without native kernels: {error}")
            return False
        try:
            build()
        except (BuildFailed, ImportError, OSError) as error:
            self.app.display_warning(
                f"jitdb is built without native kernels, and needs the extra jitdb[numba]: {error}"
            )
            return False
        return True
