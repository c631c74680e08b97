"""How much a test tries: a sample each time, more when JITDB_THOROUGH is set, as `python3 dev.py faults` does."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import product
from typing import Any

THOROUGH = os.environ.get("JITDB_THOROUGH") == "1"


def tries(sample: int, thorough: int) -> int:
    """How many cases; or the step from one to the next."""
    return thorough if THOROUGH else sample


def combined(share: int, *lists: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Each with each; as a sample one in `share` of these, in which every value is, at the same places each time.

    Of three lists that are as long as `share` or longer, any two values of two lists still meet.
    """
    numbered = product(*(list(enumerate(values)) for values in lists))
    step = tries(share, 1)
    return [tuple(value for _, value in case) for case in numbered if sum(place for place, _ in case) % step == 0]
