"""A codec of one's own, in the Python processes that Spark starts: found by its name, or told what to do."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from own_codec import Masked, registered_here
from range_cases import files_of, merged_files

import jitdb
from jitdb import Log
from jitdb.errors import CodecError
from jitdb.operators import equal
from jitdb.spark_ext import jitdb_errors, prebuild, read_log, register

RECORDS = [{"n": n, "k": f"key {n % 7}"} for n in range(500)]
TOLD = r"in a Python process of Spark: {}.*; install the package that has the codec, .* entry points \(jitdb\.codecs\)"
UNKNOWN = TOLD.format("there is no codec 'mine'")


@pytest.fixture
def installed(packages: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Here too the package is installed that all processes of Spark find."""
    monkeypatch.syspath_prepend(packages)
    with registered_here(alone=True):
        yield


def made(path: Path, codec: Any) -> Path:
    with Log(path, codec=codec, block_size=512) as log:
        log.append_many(RECORDS)
    return path


def test_a_package_names_it(spark: Any, tmp_path: Path, installed: None) -> None:
    path = made(tmp_path / "x.log", "masked")
    assert read_log(spark, path, ["n"], 'k == "key 3"').count() == len(range(3, 500, 7))  # answered by the tasks
    assert prebuild(spark, path, fields=["k"], range_bytes=4096).records == 500
    with Log(path, read_only=True) as log:
        assert files_of(log.sidecar / "indexes") == merged_files(log, tmp_path / "local", [equal("k", 1)])
    register(spark)
    table = spark.read.format("jitdb").option("core", "seq").option("where", "n > 300").load(str(path))
    assert [row.asDict() for row in table.collect()] == [{"seq": n, **RECORDS[n]} for n in range(301, 500)]
    for _ in range(2):
        table.write.format("jitdb").mode("append").option("codec", "masked").save(str(tmp_path / "y.log"))
    with jitdb.open(tmp_path / "y.log") as db:
        assert type(db.log.codec) is Masked
        assert list(db.all(sort_by="arrival")) == 2 * [{"seq": n, **RECORDS[n]} for n in range(301, 500)]


def test_a_feed_of_hyperdb(spark: Any, tmp_path: Path, installed: None) -> None:
    """Entries are rows: bytes, numbers beyond those of doubles, arrays, segments of the key."""
    entries = [
        {"key": f"life/{['cat', 'größe'][n % 2]}/{n}", "trie": bytes(n % 3), "clock": [n, 2**53 + 1],
         **({"value": b"%d" % n} if n % 3 else {"deleted": True})}
        for n in range(300)
    ]  # fmt: skip
    path = tmp_path / "feed.log"
    with Log(path, codec="hyperdb", block_size=1024) as log:
        log.append_many([{"protocol": "hyperdb"}, *entries])
    assert read_log(spark, path, ["key"], 'path.1 == "cat" and deleted == true').count() == 50
    names = ["key", "value", "deleted", "trie", "clock", "path.1", "protocol"]
    header, *rows = read_log(spark, path, names).collect()
    assert header["protocol"] == "hyperdb"
    for entry, row in zip(entries, rows, strict=True):
        said = {**entry, "path.1": entry["key"].split("/")[1], "deleted": entry.get("deleted", False)}
        assert {name: row[name] for name in names if row[name] is not None} == said
    assert prebuild(spark, path, fields=["key", "path.0"], range_bytes=4096).records == 301
    table = read_log(spark, path, ["key", "trie", "value", "deleted"], "not deleted == true and present(key)")
    table = table.select("key", "trie", "value", "deleted")
    table.write.format("jitdb").mode("append").option("codec", "hyperdb").save(str(tmp_path / "y.log"))
    with jitdb.open(tmp_path / "y.log") as db:
        written = [entry for entry in entries if "value" in entry]
        assert [entry["key"] for entry in db.all(sort_by="arrival")] == [entry["key"] for entry in written]


def test_only_this_program_knows_it(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("nowhere_else")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    kind = type("Mine", (Masked,), {"name": "mine", "__module__": module.__name__})
    module.Mine = kind  # type: ignore[attr-defined]
    path = made(tmp_path / "x.log", kind())
    with registered_here():
        jitdb.register_codec(kind())
        with pytest.raises(CodecError, match=UNKNOWN):
            read_log(spark, path, ["n"])
        with pytest.raises(
            CodecError, match=TOLD.format("no codec can be made of what was sent: No module named 'nowhere_else'")
        ):
            prebuild(spark, path, fields=["k"])
        with pytest.raises(CodecError, match=UNKNOWN), jitdb_errors():
            spark.range(3).write.format("jitdb").mode("append").option("codec", "mine").save(str(tmp_path / "y.log"))
        assert not (tmp_path / "y.log").exists()


def test_workers_are_sent_what_they_can_import(spark: Any, tmp_path: Path) -> None:
    """A prebuild takes the driver's codec along: no package has to name it."""

    class Sent(Masked):
        name = "sent"

    path = made(tmp_path / "x.log", Sent())
    with registered_here():
        jitdb.register_codec(Sent())
        assert prebuild(spark, path, fields=["k"], range_bytes=4096).records == 500
        with jitdb.open(path) as db:
            assert db.explain(equal("k", "key 3"))["scan_bytes"] == 0
