"""Every block of docs/python.md runs, and gives what its comments say."""

import ast
import asyncio
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
FILES = {found[1]: block for block in BLOCKS if (found := re.match(r"# (\w+\.py)\n", block))}
PROGRAM = [block for block in BLOCKS if block not in FILES.values()]


class Checks(ast.NodeTransformer):
    """Makes `expression  # → shown` a call of `check(expression, shown)`."""

    def __init__(self, lines):
        self.lines = lines
        self.number = 0

    def visit_Expr(self, node):
        _, arrow, shown = self.lines[node.end_lineno - 1].partition("# → ")
        if not arrow:
            return node
        self.number += 1
        call = ast.Call(ast.Name("check", ast.Load()), [node.value, ast.Constant(shown)], [])
        return ast.copy_location(ast.Expr(call), node)


def run(block, known):
    tree = ast.parse(block)
    checks = Checks(block.splitlines())
    code = compile(
        ast.fix_missing_locations(checks.visit(tree)), "python.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, known))
    else:
        exec(code, known)
    return checks.number


def test_the_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = []

    def check(value, expected):
        shown.append((repr(value), expected))
        assert repr(value) == expected

    known = {"check": check}
    stated = sum(run(block, known) for block in PROGRAM)
    assert len(shown) == stated > 20


@pytest.mark.parametrize("order", [("writer.py", "reader.py"), ("reader.py", "writer.py")])
def test_reading_beside_a_writer(tmp_path, order):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = {}
    for name in order:
        (tmp_path / name).write_text(FILES[name])
        running[name] = subprocess.Popen(
            [sys.executable, name], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
        )
    said = {name: process.communicate(timeout=120)[0].strip() for name, process in running.items()}
    assert all(process.returncode == 0 for process in running.values())
    assert said == {"writer.py": "", "reader.py": "20 19"}


def test_every_block_is_run():
    assert PAGE.read_text().count("```python") == len(PROGRAM) + len(FILES)
    assert set(FILES) == {"writer.py", "reader.py"}
