"""What examples/spark_pipeline.py must have made of the lines, by a plain loop over them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jitdb
from jitdb import Log

WEB = re.compile(r'\S+ - (\S+) \[([^]]+)\] "([^"]*)" (\d+) \d+ "[^"]*" "[^"]*" (\S+)')


def events(root: Path) -> Iterator[tuple[Any, ...]]:
    """(day, service, milliseconds, level, user, ms, message)"""
    for path in sorted((root / "raw").glob("*/*")):
        service = path.parent.name.partition("=")[2]
        for line in path.read_text().splitlines():
            if service == "web":
                if (found := WEB.fullmatch(line)) is None:
                    continue
                user, text, request, status, seconds = found.groups()
                at = datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z")
                level, ms, message = ("error" if int(status) >= 500 else "info"), float(seconds) * 1000, request
            else:
                try:
                    form = json.loads(line)
                except ValueError:
                    continue
                if service == "checkout":
                    at, level, user = datetime.fromisoformat(form["time"]), form["level"], form["user"]["id"]
                    ms, message = form["ms"], form["message"]
                else:
                    at, level = (
                        datetime.fromtimestamp(form["time"] / 1000, UTC),
                        ("error" if form["level"] >= 50 else "info"),
                    )
                    user, ms, message = form["userId"], float(form["took"][:-2]), form["msg"]
            yield f"{at:%Y-%m-%d}", service, round(at.timestamp() * 1000), level, user, ms, message


def differences(spark: Any, example: Any, root: Path) -> list[str]:
    """What is not as the loop has it."""
    wanted = Counter(events(root))
    logs: Counter[tuple[Any, ...]] = Counter()
    wrong, order = [], True
    for path in sorted((root / "logs").glob("*/*/*.log")):
        with Log(path, read_only=True) as log:
            rows = [record.value for record in log.stream()]
            order &= [row["time"] for row in rows] == sorted(row["time"] for row in rows)
        names = ("service", "time", "level", "user", "ms", "message")
        logs.update((path.parent.name.partition("=")[2], *(row.get(name) for name in names)) for row in rows)
        with jitdb.open(path, read_only=True) as db:
            asked = 'level == "error" and service == "web" and user == "ada" and ms > 100'
            if db.explain(asked)["scan_bytes"]:
                wrong.append(f"{path}: an index is behind")
    if logs != wanted:
        wrong.append(
            f"logs: {sum(logs.values())} of {sum(wanted.values())}, {list((logs - wanted) + (wanted - logs))[:3]}"
        )
    if not order:
        wrong.append("logs: another order")
    columns = ("cast(day AS string)", "service", "unix_millis(time)", "level", "user", "ms", "message")
    table = Counter(map(tuple, spark.read.parquet(f"{root}/table").selectExpr(*columns).collect()))
    if table != wanted:
        wrong.append(
            f"Parquet: {sum(table.values())} of {sum(wanted.values())}, {list((table - wanted) + (wanted - table))[:3]}"
        )
    groups: dict[tuple[str, str], list[float]] = {}
    for day, service, _, level, _, ms, _ in wanted.elements():
        if level == "error":
            groups.setdefault((day, service), []).append(ms)
    report = [tuple(row) for row in example.report(spark, root).collect()]
    if report != [(*key, len(groups[key]), int(max(groups[key]))) for key in sorted(groups)]:
        wrong.append(f"the report: {report}")
    return wrong
