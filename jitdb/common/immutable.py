"""Immutable values. They do without dataclasses, whose import slows one-shot commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import Any, ClassVar, Final, Self, dataclass_transform

_set: Final = object.__setattr__


@dataclass_transform(frozen_default=True)
class Immutable:
    """A value with parts, which are its slots. A subclass lists them in `__match_args__`, in the order of its
    arguments; an `__init__` of its own passes them to `_keep`.

    >>> class Pair(Immutable):
    ...     __slots__ = __match_args__ = ("one", "other")
    >>> pair = Pair(1, 2).changed(other=3)
    >>> pair.one, pair.other
    (1, 3)
    >>> pair.one = 2
    Traceback (most recent call last):
        ...
    AttributeError: a Pair cannot be changed: one
    """

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *parts: Any) -> None:
        list(map(_set, repeat(self), self.__match_args__, parts))  # a loop takes twice the time

    _keep = __init__

    def _parts(self) -> tuple[Any, ...]:
        """Its parts, in order."""
        return tuple(getattr(self, name) for name in self.__match_args__)

    def changed(self, **parts: Any) -> Self:
        """A copy with other values of some parts."""
        return type(self)(*(parts[name] if name in parts else getattr(self, name) for name in self.__match_args__))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        shown = (f"{name}={part!r}" for name, part in zip(self.__match_args__, self._parts(), strict=True))
        return f"{type(self).__name__}({', '.join(shown)})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed: {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts()


class Told(Immutable, Mapping[str, Any]):
    """A report for programs: its parts are attributes, and items of a mapping.

    >>> class Size(Told):
    ...     __slots__ = __match_args__ = ("name", "bytes")
    >>> size = Size("a.log", 90)
    >>> size.bytes, size["bytes"], dict(size)
    (90, 90, {'name': 'a.log', 'bytes': 90})
    """

    __slots__ = ()

    def __getitem__(self, name: str) -> Any:
        if name not in self.__match_args__:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__match_args__)

    def __len__(self) -> int:
        return len(self.__match_args__)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for json.dumps."""
        return {name: _plain(part) for name, part in self.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Told):
        return value.as_dict()
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return value
