"""How is it asked from a notebook? `%load_ext jitdb` brings `%jitdb` and `%%jitdb`.

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
