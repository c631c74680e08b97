"""What pytest collects: the tests, and the examples in docstrings."""

from importlib.util import find_spec

# Their examples ask a database: tests/operators/test_operator_docs.py runs them with a small one.
collect_ignore = ["jitdb/operators"]

if find_spec("pyspark") is None or find_spec("pyarrow") is None:  # the extra `spark`
    _TABLES = (
        "arrow_columns",
        "fitting",
        "reading",
        "schema",
        "source",
        "source_parts",
        "stream_source",
        "encoding",
        "write_source",
    )
    collect_ignore += [f"jitdb/spark_ext/{name}.py" for name in _TABLES]
