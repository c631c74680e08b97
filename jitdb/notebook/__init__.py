"""How is it asked from a notebook? `%load_ext jitdb` brings `%jitdb` and `%%jitdb`.

Commands, options, expressions and messages are those of the shell (cli/), read by the same parser.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jitdb.notebook.magic import Magic
    from jitdb.notebook.watching import watch as watch

__all__ = ["watch"]

_NAME = "jitdb"
_loaded: dict[int, tuple[Magic, Any]] = {}  # by shell


def __getattr__(name: str) -> Any:
    if name == "watch":
        from jitdb.notebook.watching import watch

        return watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load(shell: Any) -> None:
    """Add the magics to an IPython shell, and their completion: `%load_ext jitdb`."""
    from IPython.core.magic import no_var_expand

    from jitdb.notebook.completing import Completing
    from jitdb.notebook.magic import Magic

    if id(shell) in _loaded:
        return
    magic = Magic(shell)

    # We fill in variables ourselves, as values: IPython would put their text into the line.
    @no_var_expand  # type: ignore[untyped-decorator,unused-ignore]
    def ask(line: str, cell: str | None = None) -> Any:
        return magic(line, cell)

    ask.__doc__ = Magic.__call__.__doc__
    shell.register_magic_function(ask, magic_kind="line_cell", magic_name=_NAME)
    matcher = Completing(shell, magic).matcher()
    shell.Completer.custom_matchers.append(matcher)
    _loaded[id(shell)] = magic, matcher


def unload(shell: Any) -> None:
    """Remove the magics, and close the logs that they opened."""
    magic, matcher = _loaded.pop(id(shell), (None, None))
    if magic is None:
        return
    magic.close()
    shell.Completer.custom_matchers.remove(matcher)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(_NAME, None)
