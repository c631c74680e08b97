"""How much a test tries: a sample each time, more when JITDB_THOROUGH is set, as `python3 dev.py faults` does."""

from __future__ import annotations

import os

THOROUGH = os.environ.get("JITDB_THOROUGH") == "1"


def tries(sample: int, thorough: int) -> int:
    """How many cases; or the step from one to the next."""
    return thorough if THOROUGH else sample
