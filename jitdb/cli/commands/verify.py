"""`jitdb verify`: whether a log and its indexes are what was written."""

from __future__ import annotations

import argparse
from argparse import Namespace
from typing import Any

from jitdb.cli.opening import database
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.output.output import flush
from jitdb.cli.parser import Parser

PARSER = Parser(
    "verify",
    "LOG [options]",
    "Read the whole log, the files beside it and its indexes, and tell what is not as it was written: damaged blocks, "
    "and what they cost; records that do not decode; indexes that say something else than the records do. Nothing is "
    "changed. The exit code is 0 for a sound log, 1 for a damaged one.",
    [
        ("verify events.log", "the log, and all its indexes"),
        ("verify events.log --sample 1%", "the indexes against a part of the records, chosen by chance"),
        ("verify events.log --json", "for programs"),
    ],
)


def sample(text: str) -> float | int:
    """A part or a number of records.

    >>> sample("1%"), sample("0.5"), sample("1,000")
    (0.01, 0.5, 1000)
    """
    plain = text.strip().replace(",", "").replace("_", "")
    try:
        value = float(plain[:-1]) / 100 if plain.endswith("%") else float(plain) if "." in plain else int(plain)
    except ValueError:
        value = -1
    if value <= 0 or (isinstance(value, float) and value > 1):
        raise argparse.ArgumentTypeError(
            f"a part of the records, as 1% or 0.01, or a number of them is expected, not {text!r}"
        )
    return value


PARSER.take("log")
PARSER.add_argument(
    "--sample", metavar="PART", type=sample,
    help="hold the indexes against a part of the records only: 1%%, 0.01, or a number of records (default: all)",
)  # fmt: skip
PARSER.take("json", *READING, *GENERAL)


def run(options: Namespace) -> int:
    """Print what was found."""
    with database(options) as db:
        report = db.verify(options.sample)
        show(report, options.json)
        return 0 if report.ok else 1


def show(report: Any, as_json: bool) -> None:
    """A report, as text or for programs."""
    if as_json:
        import json

        print(json.dumps(report.to_json(), indent=2))
    else:
        print(report)
    flush()
