"""A log of a service in which something goes wrong; its records say what, where, when and since which version."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

DAY = datetime(2026, 11, 20, tzinfo=UTC)
BEGIN, END = DAY + timedelta(hours=14), DAY + timedelta(hours=15, minutes=20)
VERSION, REGION = "2.14.3", "eu-west-1"
SERVICES = ("web", "checkout", "search", "auth", "catalog", "cart")
REGIONS = ("us-east-1", REGION, "us-west-2", "ap-south-1")
VERSIONS = ("2.14.1", "2.14.2", VERSION, "2.13.9")
MESSAGES = (
    "GET /api/v1/items/{n} 200 in {ms}ms", "user {n} logged in from 10.0.{host}.7", "cache miss for key item:{n}",
    "worker {host} picked job {n} from queue emails", "connection to db-{host}.internal:5432 established",
)  # fmt: skip


def write_planted(path: Path, records: int) -> None:
    """So many records of a day, in order of time, with an incident from BEGIN to END."""
    random = Random(5)
    with path.open("w") as out:
        for number in range(records):
            out.write(json.dumps(_record(random, DAY + timedelta(days=1) * number / records)) + "\n")


def _record(random: Random, time: datetime) -> dict[str, object]:
    version, region = random.choices(VERSIONS, (4, 3, 3, 1))[0], random.choice(REGIONS)
    is_hit = BEGIN <= time < END and version == VERSION and region == REGION and random.random() < 0.8
    is_bad = is_hit or random.random() < 0.02
    ms, host, number = round(random.lognormvariate(3, 1), 1), random.randrange(40), random.randrange(100_000)
    if is_hit:
        ms = round(random.normalvariate(5000, 200), 1)
    text = "pool timeout after {ms}ms waiting for connection {host}/64" if is_hit else random.choice(MESSAGES)
    return {
        "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": "error" if is_bad else random.choice(("info", "info", "info", "warn", "debug")),
        "service": random.choice(SERVICES), "version": version, "region": region, "host": f"ip-10-0-{host}",
        "message": text.format(n=number, ms=ms, host=host),
        "trace": {"id": f"{random.getrandbits(64):016x}", "sampled": random.random() < 0.5},
        "request": {"status": 504 if is_hit else 500 if is_bad else 200, "ms": ms, "route": f"/api/v1/{number % 12}"},
        "user": {"id": random.randrange(3000), "country": random.choice(("DE", "US", "NZ"))},
        "retry": 3 if is_hit else 0,
    }  # fmt: skip
