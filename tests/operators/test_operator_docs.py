"""The examples in the docstrings and in the documentation are true."""

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from toy_database import small_database

import jitdb.operators

MODULES = [module.name for module in pkgutil.iter_modules(jitdb.operators.__path__, "jitdb.operators.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    results = doctest.testmod(importlib.import_module(name), extraglobs={"db": small_database()})
    assert results.failed == 0


def test_examples_of_the_documentation():
    page = Path(__file__).parents[2] / "docs" / "operators.md"
    text = page.read_text().replace("```", "")  # doctest takes a fence for output
    db = small_database()
    known = {**vars(jitdb.operators), "db": db, "find": db.find}
    examples = doctest.DocTestParser().get_doctest(text, known, page.name, str(page), 0)
    results = doctest.DocTestRunner().run(examples)
    assert results.attempted > 10
    assert results.failed == 0


def test_asking_needs_no_heavy_modules():
    code = (
        "import sys, jitdb.operators; print(*({'asyncio', 'logging', 'numpy', 'numba', 'pandas'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert (run.returncode, run.stdout.strip()) == (0, ""), run.stderr
