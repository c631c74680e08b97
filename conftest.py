"""What pytest collects: the tests, and the examples in docstrings; and signals as a terminal would have them."""

import signal
from importlib.util import find_spec

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background by a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)  # or the programs under test would ignore Ctrl-C too

# Their examples ask a database: tests/operators/test_operator_docs.py runs them with a small one.
collect_ignore = ["jitdb/operators"]

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
