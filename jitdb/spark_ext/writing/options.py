"""The options of a write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jitdb.spark_ext.options import checked, one_of, path_in, size

_KNOWN: Final = {"path", "codec", "blocksize", "nulls"}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What the user wants of a write."""

    path: str
    codec: str | None = None
    block_size: int | None = None
    keep_nulls: bool = False

    @staticmethod
    def of(given: Mapping[str, str]) -> WriteOptions:
        """Raises QueryError for what cannot be understood, and for an option that there is none of."""
        options = checked(given, _KNOWN)
        return WriteOptions(
            path=path_in(options),
            codec=options.get("codec"),
            block_size=size(options, "blocksize"),
            keep_nulls=one_of("nulls", options.get("nulls", "drop"), ("drop", "keep")) == "keep",
        )
