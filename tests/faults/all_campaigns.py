"""The campaigns, in the order in which docs/reliability.md tells of them."""

from __future__ import annotations

from faults import (
    asked_questions,
    crowds,
    failures,
    flipped,
    histories,
    hostile,
    interrupts,
    kills,
    mended,
    mutated,
    prebuilds,
    rotations,
    stages,
    tables,
    torn,
)

CAMPAIGNS = tuple(
    module.CAMPAIGN
    for module in (
        histories, asked_questions, torn, failures, flipped, hostile, interrupts, mutated, kills, mended, crowds,
        rotations, tables, stages, prebuilds,
    )
)  # fmt: skip
