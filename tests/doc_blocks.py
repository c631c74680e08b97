"""The Python blocks of a page of documentation, run one after the other, as a reader would.

`expression  # → shown` is a promise: the expression's repr must be what is shown. A block that begins with `# name.py`
is a file, and no part of the program.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

ROOT = Path(__file__).parents[1]


@dataclass
class Page:
    """A page, its program, and its files."""

    name: str
    program: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Page:
        """The blocks of a page; each is in one of the two places."""
        page = cls(path.name)
        text = path.read_text(encoding="utf-8")
        for _, indented in re.findall(r"^( *)```python\n(.*?)^\1```$", text, flags=re.MULTILINE | re.DOTALL):
            block = dedent(indented)
            named = re.match(r"# (\w+\.py)\n", block)
            if named:
                page.files[named[1]] = block
            else:
                page.program.append(block)
        assert text.count("```python") == len(page.program) + len(page.files)
        return page

    def run(self, known: dict[str, Any] | None = None) -> int:
        """Run the program in this folder; gives the number of promises that were kept. Raises what the page raises.

        known: its names, filled by it
        """
        shown = []

        def check(value: Any, expected: str) -> None:
            shown.append(expected)
            assert repr(value) == expected, f"{self.name}: {value!r} is not {expected}"

        known = {} if known is None else known
        known["check"] = check
        stated = sum(_run(block, self.name, known) for block in self.program)
        assert len(shown) == stated
        return stated


class _Checks(ast.NodeTransformer):
    """Makes `expression  # → shown` a call of `check(expression, shown)`."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.number = 0

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        _, arrow, shown = self.lines[node.end_lineno - 1].partition("# → ")
        if not arrow:
            return node
        self.number += 1
        call = ast.Call(ast.Name("check", ast.Load()), [node.value, ast.Constant(shown)], [])
        return ast.copy_location(ast.Expr(call), node)


def _run(block: str, name: str, known: dict[str, Any]) -> int:
    checks = _Checks(block.splitlines())
    tree = ast.fix_missing_locations(checks.visit(ast.parse(block)))
    code = compile(tree, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, known))
    else:
        exec(code, known)
    return checks.number
