"""Many numbers in order, each once."""

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
