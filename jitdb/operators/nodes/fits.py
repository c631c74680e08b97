"""The operator `fits`: which texts are of a pattern, as summaries of patterns write it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jitdb.common.paths import ANY, CASTS, Path
from jitdb.common.placeholders import MOST, SLACK
from jitdb.common.placeholders import fits as is_of
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.indexes.spec import Requirement, values_spec
from jitdb.operators.nodes.field_ref import PathLike, as_path
from jitdb.operators.nodes.literals import plain_value
from jitdb.operators.nodes.operation import Answering, Core, Operation

if TYPE_CHECKING:
    from pyroaring import BitMap


def fits(path: PathLike, pattern: str) -> Operation:
    """The records whose field is text of this pattern, as `patterns` writes it: what varies is a placeholder, `<num>`
    for a number, and a word `<*>` stands for any word.

    >>> fits("message", "user <*> took <num>ms")
    fits('message', 'user <*> took <num>ms')
    """
    keys, plain = as_path("fits", path), plain_value(pattern)
    if not isinstance(plain, str):
        raise QueryError(f"fits() takes a pattern such as 'user <*> took <num>ms', not {shown(pattern)}")
    return Fits(keys, plain)


class Fits(Operation):
    """The field holds text of the pattern."""

    __slots__ = __match_args__ = ("path", "value")
    op = "fits"
    arguments = ("path", "value")
    signs = ("{} fits {}", "")
    names_value = True
    longest = 1 + MOST + SLACK

    path: Path
    value: str

    def __init__(self, path: Path, value: str) -> None:
        self._keep(path, value)

    @property
    def paths(self) -> tuple[Path, ...]:
        return ((*self.path, CASTS["pattern"]),)

    def holds(self, value: Any) -> bool:
        return isinstance(value, str) and is_of(self.value, value)

    def need(self, core: Core) -> Requirement:
        return Requirement(values_spec(*self.paths))

    def answer(self, asked: Answering) -> BitMap:
        return asked.with_text(self)

    def others(self) -> Iterator[Operation]:
        """The pattern of what was given, where that is a text of the log."""
        own = CASTS["pattern"].read(self.value)
        if own != self.value:
            yield self.changed(value=own)

    def of_elements(self) -> Operation:
        return self.changed(path=(*self.path, ANY))
