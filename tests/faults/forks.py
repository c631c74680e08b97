"""Processes that are forked from one that has imported everything: they start within milliseconds."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

TESTS: Final = Path(__file__).resolve().parent.parent


def fork(work: Callable[[], object]) -> int:
    """Run `work` in a child; its pid. The child ends with exit code 0, or 1 where `work` raised."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def succeeded(pid: int) -> bool:
    """Wait for the child; whether it ended as it should."""
    return os.waitpid(pid, 0)[1] == 0


def in_fresh_process(module: str, *arguments: Any) -> int:
    """Run `module.main(*arguments)` in a Python of its own, which has no threads and may fork; what it returns."""
    program = f"import sys; sys.path[:0] = {[str(TESTS), str(TESTS.parent)]!r}\nimport {module} as module\n"
    program += f"print('RESULT', module.main(*{arguments!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    result = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if done.returncode or not result:
        raise AssertionError(f"{module}{arguments}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return int(result[0].split()[1])
