"""`jitdb completion`: what a shell needs so that the Tab key completes commands, options, files and fields."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import Final

from jitdb.cli.failures import Failure
from jitdb.cli.options import GENERAL
from jitdb.cli.parser import Parser

_SHELLS: Final = ("bash", "zsh", "fish")

PARSER = Parser(
    "completion",
    "[bash|zsh|fish]",
    "Print what a shell needs so that the Tab key completes jitdb's commands, options and their values, files, and the "
    "fields of the log in expressions and options. It takes argcomplete: pip install 'jitdb[completion]'.",
    [
        ("completion bash", "in ~/.bashrc: source <(jitdb completion bash)"),
        ("completion zsh", "in ~/.zshrc, behind compinit: source <(jitdb completion zsh)"),
        ("completion fish", "in config.fish: jitdb completion fish | source"),
    ],
)
PARSER.add_argument("shell", nargs="?", choices=_SHELLS, metavar="SHELL", help="by default that of $SHELL")
PARSER.take(*GENERAL)


def run(options: Namespace) -> int:
    """Print it."""
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError:
        raise Failure(
            "completion takes argcomplete, which is not installed", "pip install 'jitdb[completion]'"
        ) from None
    shell = options.shell or os.path.basename(os.environ.get("SHELL", ""))
    if shell not in _SHELLS:
        raise Failure("completion: $SHELL does not say which shell this is", f"say one of {', '.join(_SHELLS)}")
    print(shellcode(["jitdb"], shell=shell))
    return 0
