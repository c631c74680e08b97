"""Many numbers in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

N = TypeVar("N", bound=np.integer[Any])


def each_once(numbers: NDArray[N]) -> NDArray[N]:
    """These, ascending, each once. Sorts what is given.

    np.unique puts whole numbers into a table of hashes, which takes ten times as long with some hundred thousand.

    >>> each_once(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    numbers.sort()
    differ = np.append(numbers[:1] == numbers[:1], numbers[1:] != numbers[:-1])
    return numbers if differ.all() else numbers[differ]


def are_among(numbers: NDArray[N], ordered: NDArray[N]) -> NDArray[np.bool_]:
    """Which of these are among others, which ascend.

    np.isin goes through the others each time, which takes long where some numbers are asked about after the other.

    >>> are_among(np.array([7, 1, 9]), np.array([1, 3, 7])).tolist()
    [True, True, False]
    """
    if not len(ordered):
        return np.zeros(len(numbers), np.bool_)
    found: NDArray[np.bool_] = ordered[np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)] == numbers
    return found
