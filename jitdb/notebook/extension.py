"""What IPython is told by `%load_ext jitdb`, and when it is unloaded."""

from __future__ import annotations

from typing import Any, Final

from jitdb.notebook.completing import Completing
from jitdb.notebook.magic import Magic

_NAME: Final = "jitdb"
_loaded: Final[dict[int, tuple[Magic, Any]]] = {}  # by shell


def load(shell: Any) -> None:
    """Add the magics, and their completion."""
    from IPython.core.magic import no_var_expand

    if id(shell) in _loaded:
        return
    magic = Magic(shell)

    # Variables are filled in by ourselves, as values: IPython would put their text into the line.
    @no_var_expand  # type: ignore[untyped-decorator,unused-ignore]
    def ask(line: str, cell: str | None = None) -> Any:
        return magic(line, cell)

    ask.__doc__ = Magic.__call__.__doc__
    shell.register_magic_function(ask, magic_kind="line_cell", magic_name=_NAME)
    matcher = Completing(shell, magic).matcher()
    shell.Completer.custom_matchers.append(matcher)
    _loaded[id(shell)] = magic, matcher


def unload(shell: Any) -> None:
    """Take them away, and close what was opened by them."""
    magic, matcher = _loaded.pop(id(shell), (None, None))
    if magic is None:
        return
    magic.close()
    shell.Completer.custom_matchers.remove(matcher)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(_NAME, None)
