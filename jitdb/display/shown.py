"""The base of values that show themselves: as HTML in a notebook, as text when printed."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jitdb.display.parts import Display


class Shown:
    """A class defines `_display`, which must be quick and never raise errors of a log or its indexes."""

    __slots__ = ()

    def _display(self) -> Display:
        raise NotImplementedError

    def __str__(self) -> str:
        from jitdb.display.text import text_of

        return text_of(self._display())

    def _repr_html_(self) -> str:
        from jitdb.display.html import html_of

        return html_of(self._display())

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Both at once, for notebooks, from one display."""
        from jitdb.display.html import html_of
        from jitdb.display.text import text_of

        shown = self._display()
        text = text_of(shown) if type(self).__str__ is Shown.__str__ else str(self)
        return {"text/plain": text, "text/html": html_of(shown)}
