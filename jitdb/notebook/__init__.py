"""How is it asked from a notebook? `%load_ext jitdb` brings `%jitdb` and `%%jitdb`.

| file         | what is in it                                                                        |
| ------------ | ------------------------------------------------------------------------------------ |
| extension    | what IPython is told when it loads jitdb                                              |
| magic        | a line, or a cell, from its words to its answer                                       |
| words        | the words of a line: what is kept, which command, which log, which options            |
| variables    | Python's variables in expressions and words, and the databases among them             |
| answers      | what each command gives: the values that Python's methods give                        |
| failures     | errors in some words, without a traceback                                             |
| completing   | how a line, or an expression, may go on                                                |
| watching     | an answer that is kept as the log is, in one display                                  |

The commands, their options and expressions are those of the shell (cli/), read by the same parser, complained of in
the same words.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jitdb.notebook.watching import watch as watch

__all__ = ["watch"]


def __getattr__(name: str) -> Any:
    if name == "watch":
        from jitdb.notebook.watching import watch

        return watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
