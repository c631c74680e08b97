"""All of jitdb's Spark over Spark Connect, on loopback: connect_script.py asks and compares."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("grpc")


def test_a_client_of_spark_connect(programs: dict[str, Any]) -> None:
    assert programs["connect_script.py"].printed()[-1] == "all is well"
