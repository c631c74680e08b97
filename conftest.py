"""What pytest collects: the tests, and the examples in docstrings; and signals as a terminal would have them."""

import gc
import os
import re
import signal
from collections.abc import Generator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from long_tests import function_of, names
from thoroughness import THOROUGH, tries

from jitdb.log.io.osfile import FileSystem

settings.register_profile("jitdb", max_examples=tries(25, 1000), deadline=None)
settings.load_profile("jitdb")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background by a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)  # or the programs under test would ignore Ctrl-C too

if not THOROUGH:
    # Nobody takes the power from these processes, and waiting for disks took most of the time. What must be synced, and
    # when, is asked of the simulated disks of tests/faults; the programs that tests start sync as they do everywhere.
    FileSystem.fsync = staticmethod(lambda fd: os.fstat(fd) and None)  # which knows a descriptor that is none, too

gc.disable()  # till all is collected, which is all kept


def pytest_collection_finish() -> None:
    """What was collected lives as long as the tests do, and is no garbage of theirs."""
    gc.freeze()
    gc.enable()


# Their examples ask a database: tests/operators/test_operator_docs.py runs them with a small one.
collect_ignore = ["jitdb/operators"]
# Their docstrings have no examples, and several modules of one name cannot be collected in one run.
collect_ignore_glob = ["tests/*/conftest.py"]

if find_spec("pyspark") is None or find_spec("pyarrow") is None:  # the extra `spark`
    _TABLES = (
        "data_source",
        "reading/batches",
        "reading/schema",
        "streaming/reader",
        "writing/encoding",
    )
    collect_ignore += [f"jitdb/spark_ext/{name}.py" for name in _TABLES]
if find_spec("pyarrow") is None:
    collect_ignore += ["jitdb/log/codecs/arrow_columns.py"]
    collect_ignore.append("jitdb/log/codecs/table_rows.py")


if find_spec("re2") is None:  # the extra `regex`, which has no wheels for some systems and new Pythons

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call() -> Generator[None, object, object]:
        """A test that asks by a regular expression is left out, and says why."""
        try:
            return (yield)
        except BaseException as error:
            found: BaseException | None = error
            while found is not None and not getattr(found, "reason", "").endswith("RE2 is not installed"):
                found = found.__cause__ or found.__context__
            if found is None:
                raise
        pytest.skip("RE2 is not installed: pip install 'jitdb[regex]'")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Only files with examples are searched for them: there are many others, and each process searches all."""
    found = yield
    examples = ">>>" in file_path.read_text() if file_path.suffix == ".py" else True
    return [each for each in found if examples or type(each).__name__ != "DoctestModule"]


# The longest first, as one file is run by one process; what is not listed is quick.
_ROOMS = ("spark", "faults", "interop", "examples", "cli", "engine", "stores", "log")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        rooms = enumerate(_ROOMS)
        return next((place for place, name in rooms if item.nodeid.startswith(f"tests/{name}/")), len(_ROOMS))

    items.sort(key=place)
    firsts = {function_of(item.nodeid): item for item in reversed(items)}
    for item in items:
        if place(item) < _ROOMS.index("engine"):  # other processes, other languages
            item.add_marker("slow")
        took = names().get(name := function_of(item.nodeid))
        if took is not None and not (took.is_first_short and item is firsts[name]):
            item.add_marker("long")


@cache
def _shares_java(file: str) -> bool:
    """Whether tests of the file take the fixtures of tests/spark that start one, and programs beside it."""
    return file.startswith("tests/spark/") and re.search(r"\b(spark|programs): ", Path(file).read_text()) is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Side by side, one process runs all tests of a file, and one all that share a Java."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            scope: str = super()._split_scope(nodeid)
            return "spark" if _shares_java(scope) else scope

    return Together(config, log)
