"""What pytest collects: the tests, and the examples in docstrings; and signals as a terminal would have them."""

import signal
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings
from thoroughness import tries

settings.register_profile("jitdb", max_examples=tries(40, 1000), deadline=None)
settings.load_profile("jitdb")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background by a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)  # or the programs under test would ignore Ctrl-C too

# Their examples ask a database: tests/operators/test_operator_docs.py runs them with a small one.
collect_ignore = ["jitdb/operators"]
# Their docstrings have no examples, and several modules of one name cannot be collected in one run.
collect_ignore_glob = ["tests/*/conftest.py"]

if find_spec("pyspark") is None or find_spec("pyarrow") is None:  # the extra `spark`
    _TABLES = (
        "data_source",
        "reading/arrow_columns",
        "reading/batches",
        "reading/fitting",
        "reading/partitions",
        "reading/schema",
        "streaming/reader",
        "writing/encoding",
        "writing/writer",
    )
    collect_ignore += [f"jitdb/spark_ext/{name}.py" for name in _TABLES]


@pytest.hookimpl(tryfirst=True)  # before the names of tests get that of their group
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests run side by side, those of a file stay together; so do all of Spark's, which share a Java."""
    spark = Path(__file__).parent / "tests" / "spark"
    for item in items:
        item.add_marker(pytest.mark.xdist_group("spark" if spark in item.path.parents else str(item.path)))
