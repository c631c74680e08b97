"""python -m fuzz [SECONDS] [TARGET ...]: each parser for so many seconds (60), with bytes that go where none went yet.

Kernels run as Python, where numpy checks each index. What is found is a file of bytes in `fuzz/found`, and the command
ends with 1: add the bytes to the seeds in targets.py, and mend the parser. Needs atheris (`jitdb[fuzz]`), which is
there for Linux and some Pythons.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
FOUND: Final = HERE / "found"
_LONGEST: Final = 4096  # bytes


def main(arguments: list[str]) -> int:
    from fuzz.targets import TARGETS

    seconds = int(arguments.pop(0)) if arguments and arguments[0].isdigit() else 60
    unknown = set(arguments) - set(TARGETS)
    if unknown:
        sys.exit(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    FOUND.mkdir(exist_ok=True)
    failed = []
    for name in arguments or TARGETS:
        print(f"{name}: {seconds} s …", flush=True)
        command = [sys.executable, "-m", "fuzz", "--one", name, str(seconds)]
        done = subprocess.run(command, env={"JITDB_KERNELS": "python", **os.environ}, capture_output=True, text=True)
        runs = [line for line in done.stderr.splitlines() if line.startswith(("Done", "stat::number_of_executed"))]
        print("  " + (runs[0] if runs else "no end"), flush=True)
        if done.returncode:
            failed.append(name)
            print(done.stdout[-3000:] + done.stderr[-3000:], flush=True)
    print(
        f"{len(failed)} of {len(arguments or TARGETS)} found something: {', '.join(failed)}"
        if failed
        else "nothing found"
    )
    return bool(failed)


def one(name: str, seconds: str) -> None:
    import atheris

    with atheris.instrument_imports(include=["jitdb"]):
        from fuzz.targets import TARGETS

        target = TARGETS[name]
        seeds = target.seeds()
        for seed in seeds:  # imports what it needs, to be instrumented
            target.run(seed)
    corpus = Path(tempfile.mkdtemp(prefix="jitdb-corpus-"))
    for number, seed in enumerate(seeds):
        (corpus / str(number)).write_bytes(seed)
    options = [f"-max_total_time={seconds}", f"-max_len={_LONGEST}", "-timeout=20", "-rss_limit_mb=4096"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={FOUND}/{name}-", str(corpus)], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:]))
