"""How Sphinx makes a site of these pages, which needs no network, its search neither: `python3 dev.py docs`.

The pages are plain Markdown, to be read in the repository as well: the contents of the site are the links of index.md
under their headings, and reference.md gets its functions and classes when it is built, from their docstrings.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

sys.path.insert(0, str(Path(__file__).parents[1]))

import jitdb
import jitdb.errors
import jitdb.notebook
import jitdb.operators
import jitdb.tables

project, release = "jitdb", jitdb.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme, html_title = "furo", f"jitdb {release}"
html_static_path, html_css_files = ["site.css"], ["site.css"]
smartquotes = False  # what is quoted is code
html_copy_source = html_show_sphinx = html_show_copyright = False
pygments_style, pygments_dark_style = "default", "github-dark"  # both reach a contrast of 4.5:1
myst_heading_anchors = 4  # as repositories link them
default_role = "code"  # docstrings have `names` as Markdown has them
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True

_MEMBERS: Final = "   :members:\n   :inherited-members: object, tuple\n"
_ROOMS: Final = (jitdb, jitdb.operators, jitdb.notebook, jitdb.tables, jitdb.errors)
_FOREIGN: Final = re.compile(r"""(?:src=|<link[^>]*href=|@import\s|url\()["']?(?:https?:)?//[^"')\s]*""")


def _contents(page: str) -> str:
    """The tree of pages: a part for each heading, of the links below it."""
    parts = re.findall(r"^## (.+)\n((?:(?!#).*\n)+)", page, flags=re.MULTILINE)
    trees = [(caption, re.findall(r"\((\S+\.md)\)", links)) for caption, links in parts]
    form = "```{{toctree}}\n:hidden:\n:caption: {}\n{}\n```\n"
    return "".join(form.format(caption, "\n".join(links)) for caption, links in trees)


def _reference() -> str:
    """What each public name says of itself."""
    return "\n".join(f"\n## {room.__name__}\n\n```{{eval-rst}}\n{_members(room)}\n```" for room in _ROOMS)


def _members(room: ModuleType) -> str:
    return "\n\n".join(
        f".. auto{'class' if isinstance(value, type) else 'function'}:: {room.__name__}.{name}\n"
        + (_MEMBERS if isinstance(value, type) and room is not jitdb.errors else "")
        for name, value in _public(room)
    )


def _public(room: ModuleType) -> Iterator[tuple[str, object]]:
    for name in getattr(room, "__all__", None) or vars(room):
        value = getattr(room, name)
        elsewhere = vars(jitdb.errors) if room is jitdb else () if room is jitdb.errors else jitdb.__all__
        if not name.startswith("_") and name not in elsewhere and (inspect.isfunction(value) or inspect.isclass(value)):
            yield name, value


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    if page == "index":
        source[0] += _contents(source[0])
    elif page == "reference":
        source[0] += _reference()
    source[0] = source[0].replace("](../", "](path:../")  # a file, which the site has a copy of


def _listed(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Our `name: what it is`, with what goes on below it indented, as a list."""
    fitted: list[str] = []
    in_list = in_example = False
    for line in lines:
        in_example = line.startswith(">>>") or (in_example and bool(line))
        found = None if in_example else re.match(r"([\w*]+(?:, [\w*]+)*):(?: +(.*))?$", line)
        if (in_list and line[:1].strip() and not found) or (found and not in_list):
            fitted.append("")
        if not in_example:
            line = re.sub(r"(\w)_(?![\w`(])", r"\1\_", line)  # `and_` is no link
        if found:
            fitted.append(f"- ``{found[1]}``: {found[2] or ''}")
        else:
            fitted.append(f"  {line.strip()}" if in_list and line[:1] == " " else line)
        in_list = bool(found) or (in_list and line[:1] == " ")
    lines[:] = fitted


def _own_alone(app: Sphinx, error: Exception | None) -> None:
    """Refuse a site that would load what lies elsewhere."""
    for file in Path(app.outdir).rglob("*"):
        foreign = _FOREIGN.search(file.read_text()) if error is None and file.suffix in (".html", ".css") else None
        if foreign:
            raise ExtensionError(f"{file} loads something from elsewhere: {foreign[0]}")


def _without_self(
    app: Sphinx, what: str, name: str, value: object, options: object, signature: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """The words of a chain are methods of a query without the query."""
    if what != "function" or signature is None or not signature.startswith("(self"):
        return None
    return "(" + signature.removeprefix("(self").removeprefix(", "), returns


def setup(app: Sphinx) -> None:
    app.connect("build-finished", _own_alone)
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _listed)
    app.connect("autodoc-process-signature", _without_self)
