"""The campaigns, in the order in which docs/reliability.md tells of them."""

from __future__ import annotations

from faults import failures, flipped, histories, questions, torn

CAMPAIGNS = (histories.CAMPAIGN, questions.CAMPAIGN, torn.CAMPAIGN, flipped.CAMPAIGN, failures.CAMPAIGN)
