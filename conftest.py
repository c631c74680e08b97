"""What pytest collects: the tests, and the examples in docstrings."""

# Their examples ask a database: tests/operators/test_operator_docs.py runs them with a small one.
collect_ignore = ["jitdb/operators"]
