"""Waiting for a group's state vector to advance: whoever is slow gets the newest one, not all in between."""

from __future__ import annotations

from jitdb.stores.following import Following

StateVector = dict[bytes, int]


class Subscription(Following[StateVector]):
    """The state vectors of a group as they advance from now on: what is taken is the vector as it is then."""
