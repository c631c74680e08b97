"""A codec that no kernel can read: msgpack, with every byte masked."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

from jitdb.log import codecs
from jitdb.log.codecs import get_codec
from jitdb.log.codecs.base import Buffer, Codec

ROOT = Path(__file__).parents[1]
_MSGPACK = get_codec("msgpack")
_MASK = bytes(byte ^ 0x5A for byte in range(256))


@contextmanager
def registered_here(*, alone: bool = False) -> Iterator[None]:
    """Codecs that are registered meanwhile are forgotten afterwards; `alone`: those of before are not known here."""
    with mock.patch.dict(codecs._registered, clear=alone):
        yield


def name_codecs(folder: Path, **points: str) -> Path:
    """Let a package seem installed in a folder that names these codecs, and those that jitdb's own names."""
    own = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["jitdb.codecs"]
    package = folder / "named-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Name: named\nVersion: 1.0\n")
    lines = [f"{name} = {made}\n" for name, made in (own | points).items()]
    (package / "entry_points.txt").write_text("".join(["[jitdb.codecs]\n", *lines]))
    return folder


def masked(data: Buffer) -> bytes:
    return bytes(data).translate(_MASK)


class Masked(Codec):
    name: ClassVar[str] = "masked"

    def encode(self, value: Any) -> bytes:
        return masked(_MSGPACK.encode(value))

    def decode(self, record: Buffer) -> Any:
        return _MSGPACK.decode(masked(record))

    def decode_at(self, record: Buffer, position: int) -> Any:
        return _MSGPACK.decode_at(masked(record), position)
