"""The log that `jitdb demo` asks: a day of a web shop, in which a release made one service slow in one region.

JSON Lines, the same each time. A request is one record of the service that answered it. An order passes through web,
checkout and payments, and its request_id is in the records of all three.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

_REQUESTS: Final = 14_500
_DAY: Final = datetime(2026, 11, 20, tzinfo=UTC)
_REGIONS: Final = {"eu-west": 45, "us-east": 40, "ap-south": 15}
_PATHS: Final = {  # who answers them, how often they are asked for, milliseconds that they take as a rule
    "/": ("web", 30, 12),
    "/products": ("web", 25, 30),
    "/search": ("search", 25, 45),
    "/login": ("login", 8, 60),
    "/orders": ("checkout", 20, 80),
}
_VERSION, _RELEASE = "2.14.2", "2.15.0"
_BEGIN, _END = 14.2, 15.9  # hours: the release is in one region
_REGION: Final = "eu-west"
_TIMEOUT: Final = 5_000  # milliseconds
_TRACE: Final = """\
Traceback (most recent call last):
  File "/app/checkout/orders.py", line 88, in place
    with pool.connection(timeout=5.0) as connection:
  File "/app/checkout/pool.py", line 41, in connection
    raise PoolTimeout(f"no connection within {timeout} s, {used} of {size} in use")
checkout.pool.PoolTimeout: no connection within 5.0 s, 8 of 8 in use"""


def demo_lines() -> Iterator[str]:
    """The records in the order of their times, a line each."""
    chance = Random(20)
    for second in sorted(_second_of_a_day(chance) for _ in range(_REQUESTS)):
        for record in _request(chance, second):
            yield json.dumps(record) + "\n"


def _second_of_a_day(chance: Random) -> float:
    """More of them at noon than at night."""
    while True:
        second = chance.random() * 86_400
        if chance.random() < 0.55 - 0.45 * math.cos(second / 86_400 * math.tau):
            return second


def _request(chance: Random, second: float) -> Iterator[dict[str, Any]]:
    """What the services wrote of one request."""
    path = chance.choices([*_PATHS], [often for _, often, _ in _PATHS.values()])[0]
    region = chance.choices([*_REGIONS], [*_REGIONS.values()])[0]
    service, _, usual = _PATHS[path]
    number = f"{chance.getrandbits(48):012x}"
    is_new = service == "checkout" and region == _REGION and _BEGIN <= second / 3600 < _END
    took = usual * chance.lognormvariate(0, 0.5) * (50 if is_new else 1)
    status = 504 if took > _TIMEOUT else 500 if chance.random() < 0.004 else 200

    def record(service: str, ms: float, level: str, message: str, **more: Any) -> dict[str, Any]:
        time = (_DAY + timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        version = _RELEASE if is_new and service == "checkout" else _VERSION
        said = {"time": time, "level": level, "service": service, "version": version, "region": region}
        return {**said, "request_id": number, "path": path, "ms": round(ms, 1), "message": message, **more}

    took = min(took, _TIMEOUT)
    if service == "checkout" and status != 504:
        yield record("payments", took * 0.3, "info", "card charged", status=200)
    if status == 504:
        yield record(service, took, "error", "no connection to the database", status=status, trace=_TRACE)
    elif status == 500:
        yield record(service, took, "error", "unexpected end of data", status=status)
    else:
        yield record(service, took, "warn" if took > 1_000 else "info", f"{path} done", status=status)
    if service == "checkout":
        level, message = (
            ("error", f"no answer from checkout to {number}") if status >= 500 else ("info", f"{path} done")
        )
        yield record("web", took + 3, level, message, status=status)
