"""Write a file of JSON Lines to try jitdb on: a day of a small shop's services, one of which fails for an hour.

    python3 examples/make_events.py events.ndjson

The same file each time. Needs nothing but Python.
"""

import json
import math
import sys
from datetime import UTC, datetime, timedelta
from random import Random

EVENTS = 100_000
BEGIN = datetime(2026, 11, 20, tzinfo=UTC)
SERVICES = {"web": 50, "search": 20, "checkout": 15, "mail": 10, "login": 5}
PLACES = ("NZ", "AU", "SE", "BR", "US", "DE")
FAILURES = ("timeout after 5000 ms", "connection refused", "out of memory")


def main(path: str) -> None:
    chance = Random(7)
    seconds = sorted(_second_of_a_day(chance) for _ in range(EVENTS))
    with open(path, "w") as file:
        for number, second in enumerate(seconds):
            file.write(json.dumps(_event(chance, number, second)) + "\n")
    print(f"{path}: {EVENTS:,} events of a day")


def _second_of_a_day(chance: Random) -> float:
    """More of them at noon than at night."""
    while True:
        second = chance.random() * 86_400
        if chance.random() < 0.55 - 0.45 * math.cos(second / 86_400 * 2 * math.pi):
            return second


def _event(chance: Random, number: int, second: float) -> dict[str, object]:
    service = chance.choices([*SERVICES], [*SERVICES.values()])[0]
    broken = service == "checkout" and 14 <= second / 3600 < 15
    failed = chance.random() < (0.6 if broken else 0.01)
    time = (BEGIN + timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    took = chance.lognormvariate(3, 1) * (50 if broken else 1)
    return {
        "time": time,
        "level": "error" if failed else "warn" if took > 300 else "info",
        "service": service,
        "request": {"id": f"{number:06x}{chance.randrange(1 << 24):06x}", "country": chance.choice(PLACES)},
        "ms": round(took, 1),
        "message": chance.choices(FAILURES, [8, 1, 1] if broken else [1, 1, 1])[0] if failed else "done",
    }


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "events.ndjson")
