"""`jitdb demo`: see it work, with real timings and the Python that one would write."""

from __future__ import annotations

import gzip
import os
import shlex
import shutil
import sys
import tempfile
import time
from argparse import Namespace
from importlib.resources import files
from typing import Any, Final

import jitdb
from jitdb.cli.failures import Failure
from jitdb.cli.options import option
from jitdb.cli.output.output import show_painted
from jitdb.cli.output.tables import show_records
from jitdb.cli.parser import command
from jitdb.common.paths import parse_path
from jitdb.common.words import duration
from jitdb.display.parts import Records
from jitdb.display.terminal import visible
from jitdb.operators import field

NAME: Final = "ssb.log"
_HEAD: Final = "1;36"  # colors
_ANSWER: Final = "1;32"
_CODE: Final = "33"
_AUTHOR: Final = "@G67QQFBERjRTyeiUVLobqED58vz62t1U2CmWV5OiQV4=.ed25519"  # who wrote most of it
_BEGIN: Final = f"""\
import jitdb
from jitdb.operators import field

db = jitdb.open("{NAME}")"""

# What is asked: the words before, and the Python that is shown and run.
_STEPS: Final = (
    (
        "1. The first question: how many posts are there? jitdb reads the log once and indexes that field.",
        'posts = field("value.content.type") == "post"\nanswer = db.query(posts).count()',
    ),
    (
        "2. Another value of that field. Its index holds all its values, so nothing is read.",
        'votes = field("value.content.type") == "vote"\nanswer = db.query(votes).count()',
    ),
    (
        "3. The five newest posts, as a page: found in the indexes, read and decoded.",
        "answer = db.query(posts).descending().page(5)",
    ),
    (
        "4. Posts of one author. That is a new field: the log is read once more for it, and never again.",
        f'author = "{_AUTHOR}"\nanswer = db.query((field("value.author") == author) & posts).count()',
    ),
)


@command(
    "[options]",
    "Ask four questions of a log that comes with jitdb: 5,000 records in the shape of Secure Scuttlebutt's, written "
    "by the JavaScript module async-append-only-log. All times shown are measured as it runs.",
    [
        ("demo", "in a temporary folder, which is removed again"),
        ("demo --keep playground", f"keep the log as playground/{NAME}, for your own questions"),
    ],
    option("--keep DIR", f"put the log into this folder, as {NAME}, and leave it there"),
)
def demo(options: Namespace) -> int:
    """Unpack, ask, and say what to do next."""
    if options.keep is None:
        with tempfile.TemporaryDirectory(prefix="jitdb-demo-") as folder:
            _show(os.path.join(folder, NAME), options)
        return 0
    path = os.path.join(options.keep, NAME)
    if os.path.exists(path):
        raise Failure(f"{path}: there is a file already", f"choose another folder, or ask that log: jitdb info {path}")
    os.makedirs(options.keep, exist_ok=True)
    _show(path, options)
    return 0


def _show(path: str, options: Namespace) -> None:
    packed = files("jitdb") / "data" / "ssb-5k.bipf.gz"
    with open(path, "xb") as file:
        file.write(gzip.decompress(packed.read_bytes()))
    with jitdb.open(path, progress=False) as db:
        _say(f"A log of 5,000 records, {os.path.getsize(path) / 1e6:.1f} MB: {path}")
        _say("JavaScript's async-append-only-log wrote it. There are no indexes yet.")
        _code(_BEGIN)
        names: dict[str, Any] = {"db": db, "field": field}
        for words, code in _STEPS:
            _say(f"\n{words}", _HEAD)
            _code(code)
            asked = compile(code, NAME, "exec")
            begin = time.perf_counter()
            exec(asked, names)
            shown = duration(1e3 * (time.perf_counter() - begin))
            answer = names["answer"]
            if isinstance(answer, int):
                _say(f"  {answer:,}   in {shown}", _ANSWER)
            else:
                paths = {name: parse_path(name) for name in ("timestamp", "value.author", "value.content.text")}
                show_records(Records(answer.data, paths))
                _say(f"  {len(answer.data)} of {answer.total:,}   in {shown}", _ANSWER)
    _say("\nWhat next?", _HEAD)
    typed, kept = program(), shlex.quote(path)
    if options.keep is None:
        steps = [
            f"{typed} demo --keep playground    (keeps this log and its indexes)",
            f"{typed} import events.ndjson events.log    (records of your own, one JSON value a line)",
        ]
    else:
        question = "'value.content.type == \"post\"'"
        steps = [f"{typed} info {kept}", f"{typed} query {kept} {question} --descending"]
    for line in (*steps, f"{typed} help expressions"):
        _say(f"    {line}")


def program() -> str:
    """What to type to run this program again, from this folder."""
    if shutil.which("jitdb"):
        return "jitdb"
    started = sys.argv[0] if sys.argv else ""
    if os.path.basename(started) == "jitdb" and os.access(started, os.X_OK):
        here = os.path.relpath(started)
        return shlex.quote(started if here.startswith("..") else here if os.sep in here else os.path.join(".", here))
    return f"{shlex.quote(sys.executable)} -m jitdb"


def _say(text: str, style: str = "") -> None:
    for line in text.split("\n"):
        show_painted(visible(line), style)


def _code(code: str) -> None:
    for line in code.split("\n"):
        show_painted(f"    {line}", _CODE)
