"""The campaigns, in the order in which docs/reliability.md tells of them."""

from __future__ import annotations

from faults import crowds, failures, flipped, histories, kills, questions, torn

CAMPAIGNS = tuple(module.CAMPAIGN for module in (histories, questions, torn, failures, flipped, kills, crowds))
