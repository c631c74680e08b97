"""A file system on which something happens before calls: it is counted, refused, or another thread comes between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from jitdb.log.io.osfile import FileSystem


class Stepping(FileSystem):
    """Before each call of the primitives that are `STEPS` of the class, step() is called."""

    STEPS: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        for name in cls.__dict__.get("STEPS", ()):
            setattr(cls, name, _stepping(name))

    def sync_both(self, here: Callable[[], None], beside: Callable[[], None]) -> None:
        """One after the other, so that steps come in the same order each time."""
        here()
        beside()

    def step(self) -> None:
        """What happens before a call; what it raises happens in its place."""
        raise NotImplementedError


def _stepping(name: str) -> Callable[..., Any]:
    def call(self: Stepping, *arguments: Any, **named: Any) -> Any:
        self.step()
        return getattr(super(Stepping, self), name)(*arguments, **named)

    return call
