"""Records whose fields hold what libraries and jitdb may see differently."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

BIG = 2**53
FIELDS = ("a", "b", "c", "n.x")

WHOLE = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([BIG - 1, BIG, BIG + 1, BIG + 3, -BIG - 1, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64 - 1]),
)
NEAR = st.integers(-3, 3)
DOUBLES = st.sampled_from([0.5, -0.0, 0.0, 1.0, 1.5, float(BIG), BIG + 2.0, 1e300, -1e300, 0.1])
TEXTS = st.sampled_from(
    ["", "a", "ab", "abc", "ABC", "1", "1.5", "true", "null", "ä", "a.c", "[1]", "\ufffd", "2026-11-20"]
)
TIMES = st.sampled_from(
    [
        "2026-11-20T08:00:00Z",
        "2026-11-20T08:00:00.000000001Z",
        "2026-11-20T09:00:00+01:00",
        "2026-11-20",
        "1970-01-01T00:00:00.5Z",
    ]
)
TIMESTAMPS = st.sampled_from([1763625600, 1763625600123, 1763625600.25, 0, 1])
ODD_DOUBLES = st.sampled_from([float("nan"), float("inf"), float("-inf")])
BYTES = st.sampled_from([b"", b"a", b"\xff"])

_JSON = [
    NEAR, WHOLE, DOUBLES, st.one_of(NEAR, DOUBLES), st.one_of(WHOLE, DOUBLES), TEXTS, st.one_of(TEXTS, NEAR), TIMES,
    st.one_of(TIMES, TIMESTAMPS), TIMESTAMPS, st.booleans(), st.lists(NEAR, max_size=3), st.lists(TEXTS, max_size=3),
    st.lists(st.one_of(TEXTS, NEAR), max_size=3), st.lists(st.booleans(), max_size=2), st.none(),
    st.one_of(TEXTS, st.booleans(), st.lists(NEAR, max_size=1), st.just({"k": 1})),
]  # fmt: skip
_BINARY = [*_JSON, st.one_of(DOUBLES, ODD_DOUBLES), st.one_of(WHOLE, ODD_DOUBLES), BYTES, st.one_of(BYTES, TEXTS)]


@st.composite
def records(draw: st.DrawFn, binary: bool = False) -> list[dict[str, Any]]:
    """A few records; each field has values of one of the above, null, or is missing."""
    values = {name: draw(st.sampled_from(_BINARY if binary else _JSON)) for name in FIELDS}
    made = []
    for _ in range(draw(st.integers(1, 8))):
        record: dict[str, Any] = {"id": len(made)}
        for name, held in values.items():
            if draw(st.integers(0, 4)):
                value = draw(held) if draw(st.integers(0, 5)) else None
                if name == "n.x":
                    record["n"] = {"x": value}
                else:
                    record[name] = value
        made.append(record)
    return made


START = datetime(2026, 11, 20, 8, tzinfo=UTC)
INSTANTS = st.sampled_from([START, START + timedelta(microseconds=1), datetime(1970, 1, 1, tzinfo=UTC)])
