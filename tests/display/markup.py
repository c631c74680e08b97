"""HTML read back: which elements it has, what text is in them, and whether each is closed where it should be."""

from __future__ import annotations

from html.parser import HTMLParser

ELEMENTS = {
    "div", "style", "b", "bdi", "span", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre",
    "code", "br", "svg", "rect", "g", "title", "path", "text",
}  # fmt: skip
ATTRIBUTES = {
    "class", "width", "height", "rx", "x", "y", "d", "role", "aria-label", "aria-hidden", "viewbox", "text-anchor",
}  # fmt: skip


class Markup(HTMLParser):
    """Raises AssertionError for elements and attributes that no display has, and for what is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.heads: list[str] = []
        self.elements: list[str] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        assert {name for name, _ in attrs} <= ATTRIBUTES, attrs
        self.elements.append(tag)
        if tag in ("br", "rect", "path"):
            return
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        self.elements.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.words += data
        if "td" in self._open or "th" in self._open:
            self.rows[-1][-1] += data
