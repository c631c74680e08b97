"""The examples in the docstrings and in the documentation are true."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from toy_database import small_database

import jitdb.operators
from jitdb.operators.text.expression import EXPRESSION_HELP

MODULES = [module.name for module in pkgutil.walk_packages(jitdb.operators.__path__, "jitdb.operators.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    results = doctest.testmod(importlib.import_module(name), extraglobs={"db": small_database()})
    assert results.failed == 0


def test_examples_of_the_documentation():
    page = Path(__file__).parents[2] / "docs" / "operators.md"
    text = page.read_text().replace("```", "")  # doctest takes a fence for output
    db = small_database()
    names = {name: getattr(jitdb.operators, name) for name in jitdb.operators.__all__}
    known = {**names, "db": db, "find": db.find}
    examples = doctest.DocTestParser().get_doctest(text, known, page.name, str(page), 0)
    results = doctest.DocTestRunner().run(examples)
    assert results.attempted > 10
    assert results.failed == 0


def test_each_expression_of_the_grammar_is_one():
    text = (Path(__file__).parents[2] / "docs" / "operators.md").read_text()
    grammar = text[text.index("### Comparisons") : text.index("### Fields")]
    rows = [line.split(" | ")[0] for line in grammar.splitlines() if line.startswith("| `")]
    forms = [form.replace("\\|", "|") for row in rows for form in re.findall("`([^`]+)`", row)]
    whole = [form for form in forms if form not in (">=", "<", "<=")]
    assert len(whole) > 30
    for form in whole:
        jitdb.operators.parse_expression(form)
    fields = text[text.index("### Fields") : text.index("### Values")]
    for row in [line.split(" | ")[0] for line in fields.splitlines() if line.startswith("| `")]:
        for form in re.findall("`([^`]+)`", row):
            jitdb.operators.parse_expression(f"{form} == 1")
    values = text[text.index("### Values") : text.index("Times stand in quotes")]
    for row in [line.split(" | ")[0] for line in values.splitlines() if line.startswith("| `")]:
        for form in re.findall("`([^`]+)`", row):
            jitdb.operators.parse_expression(f"a == {form}")


def test_the_help_tells_no_lies(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "jitdb").mkdir()
    (tmp_path / "jitdb" / "questions").write_text("slow = ms > 1000\n")
    lines = EXPRESSION_HELP.split("\n\n")[0].splitlines()
    forms = [form for line in lines for form in re.findall(r"  (\S.*?)(?=   |  [a-z]+\(|$)", line)[:1]]
    for form in [*forms, "18 < age <= 65", '"a" not in tags', "offsets(0, 341)", "everything()", "present(root)"]:
        jitdb.operators.parse_expression(form)


def test_asking_needs_no_heavy_modules():
    code = (
        "import sys, jitdb.operators; print(*({'asyncio', 'logging', 'numpy', 'numba', 'pandas'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert (run.returncode, run.stdout.strip()) == (0, ""), run.stderr
