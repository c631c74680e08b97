"""Many logs that answer as one.

import jitdb
from jitdb.operators import field

logs = jitdb.open_many("logs/*/*.log")
logs.query(field("level") == "error").descending().page(10)
"""

from __future__ import annotations

from jitdb.logset.logset import LogSet
from jitdb.logset.member import Member

__all__ = ["LogSet", "Member"]
