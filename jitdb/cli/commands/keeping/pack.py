"""`jitdb pack`: make a file of JSON Lines small, so that it can still be asked where it lies."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from jitdb.cli.failures import UsageError
from jitdb.cli.opening import each_file, wanted_progress
from jitdb.cli.options import GENERAL, number
from jitdb.cli.output.output import show
from jitdb.cli.parser import Parser
from jitdb.common.words import counted

PARSER = Parser(
    "pack",
    "FILE [-o OUT] [options]",
    "Compress a file of JSON Lines, also one that is compressed with gzip or zstd, into short zstd frames: each "
    "record can then be read without what is before it. No line is cut by two frames, and a seek table at the end lets "
    "other tools read from the middle, too; `zstd -d` gives the lines back. What was written is read back and compared "
    "before it takes its place. The file itself stays, unless --remove says otherwise.",
    [
        ("pack events.ndjson", "into events.ndjson.zst"),
        ("pack 2023.ndjson.gz -o packed.zst", "from one that is compressed"),
        ("pack 2024.ndjson.gz --remove", "into 2024.ndjson.zst, in its place"),
    ],
)
PARSER.take("log", metavar="FILE", help="file of JSON Lines; nobody should be writing to it")
PARSER.take("more_logs")
PARSER.add_argument("-o", "--output", metavar="OUT", help="write there (default: FILE.zst, in the place of .gz)")
PARSER.add_argument("-f", "--force", action="store_true", help="replace OUT, if it is there")
PARSER.add_argument("--keep", dest="remove", action="store_false", help="keep FILE (as is the default)")
PARSER.add_argument("--remove", action="store_true", help="remove FILE when OUT is durable; if both are one, replace")
PARSER.add_argument("--level", metavar="N", type=number(1), default=3, help="of zstd's compression, to 22 (default: 3)")
PARSER.set_defaults(remove=False)
PARSER.take(*GENERAL)


def run(options: Namespace) -> int:
    """Pack it, or each of several, and say what was done."""
    if options.output and options.more_logs:
        raise UsageError("pack: -o names one file, and these are several", "leave it out, or pack them one by one")
    for each in each_file(options):
        _pack(Path(each.log), options)
    return 0


def _pack(source: Path, options: Namespace) -> None:
    from jitdb.engine.progress import Bar
    from jitdb.log.lines.packer import pack, packed_name

    target = Path(options.output) if options.output else packed_name(source)
    size = source.stat().st_size
    with Bar(f"packing {source.name}", size, wanted_progress(options)) as bar:
        done = pack(
            source,
            target,
            level=min(options.level, 22),
            replace=options.force,
            remove=options.remove,
            told=lambda done, total: bar(size * done // max(done, total, 1)),
        )
    if not options.quiet:
        show(
            f"{target}: {counted(done.frames, 'frame', 'frames')} of {done.text:,} bytes of lines in {done.after:,} "
            f"bytes; {source.name} had {done.before:,}"
        )
