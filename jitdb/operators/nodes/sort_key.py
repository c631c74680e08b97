"""A field by which answers are sorted, and which way round."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from jitdb.common.paths import Path, format_path

FALLING: Final = "-"  # in front of a path


class SortKey(NamedTuple):
    """A field, from its least value to its greatest, or the other way round."""

    path: Path
    descending: bool = False

    def __neg__(self) -> SortKey:
        """The other way round."""
        return self._replace(descending=not self.descending)

    def __repr__(self) -> str:
        return repr(FALLING * self.descending + format_path(self.path))


SortKeys: TypeAlias = tuple[SortKey, ...]
