"""What a release says of itself: one number everywhere, an SBOM; and parsers take the bytes they are fuzzed from."""

from __future__ import annotations

import json
import re
import sys
import tomllib
import warnings
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest
from thoroughness import tries

import jitdb
from jitdb.errors import JitdbWarning

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(autouse=True)
def _from_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)


def test_the_version_is_the_same_everywhere() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest is not None
    assert PROJECT["version"] == jitdb.__version__ == newest[1]


def test_each_extra_for_users_is_told_and_tried() -> None:
    told = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "release.md").read_text(), re.M))
    assert told == set(PROJECT["optional-dependencies"]) - {"check", "docs", "test", "wheels", "fuzz"}
    tried = re.findall(r'^    "(\w+)": f?"', (ROOT / ".ci" / "package").read_text(), re.M)
    assert set(tried) == told


def test_the_sbom_of_a_wheel() -> None:
    pytest.importorskip("hatchling")
    from package_build import sbom

    library = b"kernels"
    made = sbom("jitdb", "1.2", "Apache-2.0", PROJECT["dependencies"], library)
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    assert made["metadata"]["component"]["purl"] == "pkg:pypi/jitdb@1.2"
    kernels, *needed = made["components"]
    assert kernels["hashes"] == [{"alg": "SHA-256", "content": sha256(library).hexdigest()}]
    names = [each["name"] for each in needed]
    assert names == ["numpy", "pyroaring", "msgpack", "rich", "zlib-ng", "backports.zstd", "indexed-gzip"]
    assert made["dependencies"][0]["dependsOn"] == [each["bom-ref"] for each in made["components"]]
    assert json.dumps(made) == json.dumps(sbom("jitdb", "1.2", "Apache-2.0", PROJECT["dependencies"], library))
    assert "kernels" not in json.dumps(sbom("jitdb", "1.2", "Apache-2.0", PROJECT["dependencies"], None))


def test_parsers_take_what_they_are_fuzzed_from_and_some_changes_of_it() -> None:
    """`python3 dev.py fuzz` goes on from here."""
    from fuzz.targets import TARGETS

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JitdbWarning)
        for name, target in TARGETS.items():
            seeds = target.seeds()
            assert seeds, name
            chance = Random(name)
            for seed in seeds[:: tries(max(1, len(seeds) // 8), 1)]:
                target.run(seed)
                for _ in range(tries(3, 300)):
                    changed = bytearray(seed or b"x")
                    changed[chance.randrange(len(changed))] = chance.randrange(256)
                    target.run(bytes(changed))
    assert "atheris" not in sys.modules
