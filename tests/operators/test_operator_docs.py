"""The examples in the docstrings and in the documentation are true."""

import doctest
import importlib
import pkgutil

import pytest
from toy import small_database

import jitdb.operators

MODULES = [module.name for module in pkgutil.iter_modules(jitdb.operators.__path__, "jitdb.operators.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    results = doctest.testmod(importlib.import_module(name), extraglobs={"db": small_database()})
    assert results.failed == 0
