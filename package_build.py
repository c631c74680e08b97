"""The hook of a wheel: the kernels (hatch_build.py), and an SBOM, in CycloneDX, of what was put in and by what.

It lies in `jitdb-VERSION.dist-info/sboms/` (PEP 770). A wheel holds jitdb alone, and machine code that numba made of
its kernels; what it needs beside that comes with the installation, of versions that are known there.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))

from hatch_build import Kernels

_TOOLS: Final = ("hatchling", "numba", "llvmlite")
_SPACE: Final = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # of addresses, in RFC 9562


class Package(Kernels):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        super().initialize(version, build_data)
        core = self.metadata.core
        compiled = None if build_data["pure_python"] else self._library(build_data)
        made = sbom(core.name, self.metadata.version, core.license_expression, core.dependencies, compiled)
        self._sbom = Path(tempfile.mkdtemp(prefix="jitdb-sbom-"), f"{core.name}.cdx.json")
        self._sbom.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
        build_data["sbom_files"].append(os.fspath(self._sbom))

    def _library(self, build_data: Mapping[str, Any]) -> bytes:
        """The kernels that go into the wheel."""
        forced = [source for source, target in build_data["force_include"].items() if target == "jitdb/kernels.so"]
        return Path(self.root, forced[0] if forced else "jitdb/kernels.so").read_bytes()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._sbom.unlink()
        self._sbom.parent.rmdir()


def get_build_hook() -> type[Package]:
    return Package


def sbom(name: str, version: str, licence: str, needs: Sequence[str], library: bytes | None) -> dict[str, Any]:
    """CycloneDX 1.6 of a wheel. needs: requirements as pyproject.toml has them; library: the compiled kernels"""
    own = f"pkg:pypi/{name}@{version}"
    components: list[dict[str, Any]] = []
    if library is not None:
        hashed = {"alg": "SHA-256", "content": sha256(library).hexdigest()}
        licences = [{"expression": licence}]
        components.append(
            {"type": "file", "bom-ref": "kernels", "name": "jitdb/kernels.so", "hashes": [hashed], "licenses": licences}
        )
    needed = {need: re.sub(r"[-_]+", "-", re.split(r"[^\w.-]", need, maxsplit=1)[0]).lower() for need in needs}
    components += [
        {
            "type": "library", "bom-ref": f"pkg:pypi/{other}", "name": other, "purl": f"pkg:pypi/{other}",
            "scope": "required", "description": f"not in this package; installed beside it: {need}",
        }
        for need, other in needed.items()
    ]  # fmt: skip
    serial = uuid.uuid5(_SPACE, f"{own}:{json.dumps(components)}")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "tools": {"components": [*map(_tool, filter(_is_there, _TOOLS))]},
            "component": {
                "type": "library", "bom-ref": own, "name": name, "version": version, "purl": own,
                "licenses": [{"expression": licence}],
            },
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [each["bom-ref"] for each in components]}],
    }  # fmt: skip


def _tool(name: str) -> dict[str, str]:
    version = metadata.version(name)
    return {"type": "application", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}


def _is_there(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
