"""What a build does beside putting files together: it compiles the kernels into the wheel, where that can be done."""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Kernels(BuildHookInterface):
    """Builds jitdb/kernels.so; says so where that fails, and makes a wheel for every machine, which needs numba."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        try:
            from build_kernels import BuildFailed, build
        except ImportError as error:
            self.app.display_warning(f"jitdb is built without native kernels: {error}")
            return
        try:
            build()
        except (BuildFailed, ImportError, OSError) as error:
            self.app.display_warning(
                f"jitdb is built without native kernels, and needs the extra jitdb[numba]: {error}"
            )
            return
        build_data["artifacts"].append("jitdb/kernels.so")
        build_data["pure_python"] = False
        platform = os.environ.get("JITDB_PLATFORM") or sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
