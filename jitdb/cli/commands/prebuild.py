"""`jitdb prebuild`: let a Spark cluster build indexes."""

from __future__ import annotations

import argparse
import re
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from jitdb.cli.expressions import read_expression, without_logs
from jitdb.cli.failures import Failure, UsageError
from jitdb.cli.opening import log_only
from jitdb.cli.options import FORMAT, changed, number, option
from jitdb.cli.output.notes import note_unseen_fields
from jitdb.cli.output.output import show_lines
from jitdb.cli.parser import command
from jitdb.common.paths import parse_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WHAT: Final = "what is built"
_WHERE: Final = "where"
_MASTERS: Final = "local[N], spark://HOST:PORT, yarn, k8s://…"
_MASTER: Final = re.compile(r"local(\[(\*|[1-9]\d*)(,\d+)?\])?|local-cluster\[.+\]|yarn|(spark|k8s)://.+")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError("spark.NAME=VALUE is expected")
    return name, value


def _master(text: str) -> str:
    if not _MASTER.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{_MASTERS} is expected, not {text!r}")
    return text


@command(
    "LOG [EXPR...] [--field PATH] [options]",
    "Let a Spark cluster bring indexes up to date: the same files that `prepare` builds, by one parallel scan. All "
    "machines must see the log under the same path, or under a URI (hdfs://…). Needs pip install 'jitdb[spark]'.",
    [
        ("prebuild events.log --field level --field user.name --master 'local[2]'", "on two cores of this machine"),
        ("prebuild events.log 'status > 0' --master 'local[2]' --conf spark.driver.memory=1g", "what a question needs"),
    ],
    changed("log", "file of the log, or its URI"),
    changed("expressions", "a question whose indexes are built, in quotes"),
    option("--field PATH", "field whose values are asked for", action="append", default=[], group=_WHAT),
    option("--column PATH", "field whose numbers are compared", action="append", default=[], group=_WHAT),
    option(
        "--master URL",
        f"{_MASTERS} (default: what spark-submit says, or all cores of this machine)",
        type=_master,
        group=_WHERE,
    ),
    option("--conf NAME=VALUE", "a setting of Spark", action="append", type=_setting, default=[], group=_WHERE),
    option(
        "--range-mib N", "MiB of the log per task (default: 16 to 256, four tasks a core)", type=number(1), group=_WHERE
    ),
    *(*FORMAT, "allow_prefix", "log_format", "timestamp", "time_unit", "sequence"),
    changed("indexes", "folder of the index files (default: .jitdb beside the log)", default=None),
)
def prebuild(options: Namespace) -> int:
    """Build, and say what was built."""
    if not (options.field or options.column or options.expressions):
        raise UsageError(
            "prebuild: nothing is asked for", "name fields with --field, or write a question: `jitdb help prebuild`"
        )
    if options.indexes == "none":
        raise UsageError("prebuild: --indexes none would keep nothing of what is built", "name a folder for its files")
    operations = [read_expression(text) for text in without_logs(options)]
    if options.more_logs:
        raise UsageError("prebuild: this is done for one log at a time", f"jitdb prebuild {options.log} …")
    _look_at_log(options)
    from jitdb import spark_ext

    given = {name: getattr(options, name) for name in ("timestamp", "time_unit", "sequence") if getattr(options, name)}
    shown = not (options.no_progress or options.quiet)
    conf = {"spark.ui.showConsoleProgress": str(shown).lower(), "spark.log.level": "ERROR", **dict(options.conf)}
    started = []

    def start() -> SparkSession:
        with _told("Spark did not start", f"--master is {options.master or 'not given'}; Spark's own words are above"):
            started.append(spark_ext.session(options.master, app="jitdb prebuild", **conf))
        return started[0]

    try:
        with _told("Spark gave up", "--debug shows all that it said"):
            summary = spark_ext.prebuild(
                start,
                options.log,
                fields=options.field,
                operations=operations,
                indexes=options.column,
                folder=options.indexes,
                codec=options.codec,
                block_size=options.block_size,
                allow_prefix=options.allow_prefix,
                log_format=options.log_format,
                range_bytes=options.range_mib and options.range_mib << 20,
                **given,
            )
    finally:
        for made in started:
            made.stop()
    if not options.quiet:
        show_lines(str(summary))
    return 0


def _look_at_log(options: Namespace) -> None:
    """What can be known before Spark starts: whether there is a log, and whether its records have such fields."""
    from jitdb.spark_ext.options import is_uri

    paths = [parse_path(name) for name in (*options.field, *options.column)]
    if not is_uri(options.log):
        with log_only(options) as log:
            if not options.quiet and log.codec.name != "raw":  # raw bytes have no fields
                note_unseen_fields(log, paths, options)


@contextmanager
def _told(what: str, hint: str) -> Iterator[None]:
    """An error of Spark is a line, instead of its trace."""
    from jitdb.spark_ext.errors import sparks_words

    try:
        yield
    except Exception as error:
        words = sparks_words(error)
        if words is None:
            raise
        raise Failure(f"{what}: {words}", hint) from error
