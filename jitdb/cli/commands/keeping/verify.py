"""`jitdb verify`: whether a log and its indexes are what was written."""

from __future__ import annotations

import argparse
from argparse import Namespace
from typing import Any

from jitdb.cli.failures import Diagnostic, complain
from jitdb.cli.opening import database, each_bundle, each_log, is_many
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.output.output import flush, show, show_json, show_lines
from jitdb.cli.parser import Parser
from jitdb.common.words import counted
from jitdb.errors import LogError

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
        ("verify logs", "all files of a folder"),
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


PARSER.take("log", "more_logs")
PARSER.add_argument(
    "--sample", metavar="PART", type=sample,
    help="hold the indexes against a part of the records only: 1%%, 0.01, or a number of records (default: all)",
)  # fmt: skip
PARSER.take("json", *READING, *GENERAL)


def run(options: Namespace) -> int:
    """Print what was found; of many logs, what is wrong with any."""
    if is_many(options):
        return _verify_all(options)
    with database(options) as db:
        report = db.verify(options.sample)
        show_report(report, options.json)
        return 0 if report.ok else 1


def _verify_all(options: Namespace) -> int:
    reports, wrong = {}, 0
    opened, together = list(each_log(options)), list(each_bundle(options))
    for each in (*opened, *together):
        try:
            with database(each) as db:
                report = db.verify(options.sample)
        except LogError as error:
            wrong += 1
            if options.json:
                reports[each.log] = {"ok": False, "error": error.reason}
            else:
                complain(Diagnostic.of(error))
            continue
        wrong += not report.ok
        if options.json:
            reports[each.log] = report.to_json()
        elif not report.ok:
            show(f"{each.log}:")
            show_report(report, as_json=False)
    if options.json:
        show_json({"ok": not wrong, "logs": reports})
    else:
        sound = "all are sound" if not wrong else f"{counted(wrong, 'is', 'are')} not"
        told = counted(len(opened), "log", "logs")
        if together:
            told += f" and {counted(len(together), 'bundle of small files', 'bundles of small files')}"
        show(f"{told} verified: {sound}")
    flush()
    return 1 if wrong else 0


def show_report(report: Any, as_json: bool) -> None:
    """A report, as text or for programs."""
    if as_json:
        show_json(report.to_json())
    else:
        show_lines(str(report))
    flush()
