"""Questions to Parquet and Arrow files are answered as pyarrow and pandas answer them."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import closing, suppress
from pathlib import Path

import pytest

import jitdb
from jitdb.errors import JitdbError, LogCorrupt, LogError, LogReadOnly, MissingLibrary, NotALog, QueryError
from jitdb.log.columnar.table_log import TableLog
from jitdb.operators import field

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
from column_cases import KINDS, flights, records, rich_table, write  # noqa: E402
from pyarrow import parquet  # noqa: E402


def asked(path: Path) -> list[object]:
    with jitdb.open(path) as db:
        return list(db.query().all())


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_each_kind_of_column(tmp_path: Path, kind: str) -> None:
    table = rich_table()
    path = write(table, tmp_path / f"x.{kind}")
    assert asked(path) == records(table)
    assert asked(path) == records(table)


def test_bytes(tmp_path: Path) -> None:
    sixteen = [uuid.UUID(int=1).bytes, None]
    table = pa.table({
        "b": pa.array([b"\x00\xff", None], pa.binary()),
        "fixed": pa.array(sixteen, pa.binary(16)),
        "in": pa.array([[b"a"], None], pa.list_(pa.binary())),
        "n": [1, 2],
    })  # fmt: skip
    path = write(table, tmp_path / "x.parquet")
    assert asked(path) == records(table)
    with jitdb.open(path) as db:
        assert db.log.codec.name == "msgpack"
        assert db.count(field("b") == b"\x00\xff") == 1


def test_uuids_are_text(tmp_path: Path) -> None:
    if not hasattr(pa, "uuid"):
        pytest.skip("this pyarrow has no uuid")
    table = pa.table({"id": pa.array([uuid.UUID(int=7).bytes, None], pa.uuid())})
    assert asked(write(table, tmp_path / "x.parquet")) == [{"id": str(uuid.UUID(int=7))}, {}]


@pytest.mark.parametrize("kind", KINDS)
def test_questions(tmp_path: Path, kind: str) -> None:
    table = flights()
    frame = table.to_pandas()
    with jitdb.open(write(table, tmp_path / f"x.{kind}")) as db:
        assert db.count() == len(frame)
        assert db.count(field("status") >= 500) == int((frame.status >= 500).sum())
        assert db.count(field("delay") > 100) == int((frame.delay > 100).sum())
        assert db.count((field("origin") == "JFK") & (field("carrier") == "UA")) == int(
            ((frame.origin == "JFK") & (frame.carrier == "UA")).sum()
        )
        assert db.count(field("carrier").absent()) == int(frame.carrier.isna().sum())
        seats = frame.plane.map(lambda plane: plane["seats"])
        assert db.count(field("plane.seats") < 100) == int((seats < 100).sum())
        values = {row.value: row.count for row in db.value_counts("status", limit=10)}
        assert values == frame.status.value_counts().to_dict()
        stats = db.stats("delay")
        assert (stats.count, stats.min, stats.max) == (frame.delay.count(), frame.delay.min(), frame.delay.max())
        assert stats.sum == pytest.approx(frame.delay.sum())
        page = db.query(field("status") == 503).sort_by("delay", "id").page(20)
        wanted = frame[frame.status == 503].sort_values(["delay", "id"]).id.head(20)
        assert [record["id"] for record in page] == wanted.tolist()
        since = db.query().since("2026-11-20T01:00:00Z").count()
        assert since == int((frame.time >= "2026-11-20T01:00:00Z").sum())


def test_an_answer_as_a_table_is_the_table(tmp_path: Path) -> None:
    table = flights(500)
    with jitdb.open(write(table, tmp_path / "x.parquet")) as db:
        found = db.query(field("status") == 404).select("id", "status").to_arrow()
    wanted = table.filter(pa.compute.equal(table["status"], 404)).select(["id", "status"])
    assert found.to_pylist() == wanted.to_pylist()


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_file(tmp_path: Path, kind: str) -> None:
    path = write(flights(10).slice(0, 0), tmp_path / f"x.{kind}")
    with jitdb.open(path) as db:
        assert (db.count(), list(db.query().all()), db.count(field("status") == 500)) == (0, [], 0)
    with jitdb.open(path) as db:
        assert db.log.kept.read is None
        assert db.count() == 0


def test_no_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    parquet.ParquetWriter(path, pa.schema({"a": pa.int64()})).close()
    assert parquet.ParquetFile(path).num_row_groups == 0
    assert asked(path) == []


def test_rows_without_values(tmp_path: Path) -> None:
    for name, table in {
        "nulls": pa.table({"a": pa.array([None, None, None], pa.int64())}),
        "one null": pa.table({"a": pa.array([1, None, 3])}),
        "no columns": pa.table({"a": [1, 2, 3]}).select([]),
    }.items():
        path = write(table, tmp_path / f"{name}.arrow")
        with jitdb.open(path) as db:
            assert db.count() == 3, name
            assert [record.get("a") for record in db.query().all()] in ([None] * 3, [1, None, 3])


def test_a_row_that_is_large(tmp_path: Path) -> None:
    table = pa.table({"n": [1, 2, 3], "text": ["a", "b" * 3_000_000, "c" * 100_000]})
    assert asked(write(table, tmp_path / "x.parquet")) == records(table)
    table = pa.table({"n": [1], "text": ["b" * 17_000_000]})
    with pytest.raises(LogError, match=r"large.parquet: a row takes .* and no log holds more"):
        jitdb.open(write(table, tmp_path / "large.parquet"))


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(LogError, match="two columns of the name 'a'"):
        jitdb.open(write(table, tmp_path / "x.parquet"))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_file_that_is_cut_off(tmp_path: Path, kind: str) -> None:
    path = write(flights(5_000), tmp_path / f"x.{kind}")
    whole = path.read_bytes()
    for size in (6, 8, 12, 100, len(whole) // 2, len(whole) - 9, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(LogCorrupt, match=f"x.{kind}: ") as caught:
            jitdb.open(path)
        assert caught.value.path == str(path)
        assert not list(tmp_path.glob(".jitdb/*/rows/*"))
    path.write_bytes(whole)
    assert len(asked(path)) == 5_000


def test_a_footer_that_was_changed(tmp_path: Path) -> None:
    path = write(flights(3_000), tmp_path / "x.parquet", row_group_size=1_000)
    whole = path.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little")
    for at in (len(whole) - 5, len(whole) - 6, len(whole) - 7, len(whole) - 8 - footer):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :])
        with pytest.raises(LogCorrupt, match="cannot be read as a Parquet file") as caught:
            jitdb.open(path)
        assert caught.value.path == str(path)
    for at in range(len(whole) - 8 - footer, len(whole) - 8, 37):  # what is said of it may be another thing now
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :])
        with suppress(JitdbError):
            jitdb.open(path).close()


def test_a_page_that_was_changed(tmp_path: Path) -> None:
    """Noticed by the checksums of pages, where the file has them."""
    path = write(flights(3_000), tmp_path / "x.parquet", write_page_checksum=True, compression="none")
    whole = path.read_bytes()
    at = len(whole) // 3
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(LogCorrupt, match=r"CRC|checksum"):
        jitdb.open(path)


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(flights(10), tmp_path / "x.parquet")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingLibrary) as caught:
        jitdb.open(path)
    assert str(caught.value) == (
        f"{path}: it is a Parquet file, which is read by pyarrow, and that is not installed; pip install 'jitdb[arrow]'"
    )


def test_it_is_somebody_elses(tmp_path: Path) -> None:
    path = write(flights(10), tmp_path / "x.parquet")
    before = path.read_bytes()
    with jitdb.open(path) as db:
        for work in (lambda: db.delete(field("id") == 1), db.compact, db.repair):
            with pytest.raises(LogReadOnly, match="a Parquet file that somebody else writes"):
                work()
        assert db.verify().ok
        assert isinstance(db.log, TableLog)
        assert db.log.path == path
        assert "somebody else writes" in str(db)
    with pytest.raises(NotALog):
        jitdb.Log(path)
    assert path.read_bytes() == before


def test_what_only_other_logs_have(tmp_path: Path) -> None:
    path = write(flights(10), tmp_path / "x.parquet")
    for given in ({"codec": "json"}, {"block_size": 4096}, {"each": "items[]"}, {"format": "logfmt"}):
        with pytest.raises(LogError, match=f"{next(iter(given))} says how .* this is a Parquet file; leave"):
            jitdb.open(path, **given)
    with jitdb.open(path, allow_prefix=True) as db:
        assert db.count() == 10


@pytest.mark.parametrize("old", [False, True])
def test_a_live_question_says_that_nothing_comes(tmp_path: Path, old: bool) -> None:
    """It would wait for ever."""
    path, lines = write(flights(100), tmp_path / "x.parquet"), tmp_path / "a.ndjson"
    lines.write_text('{"id": 7}\n')
    said = "x.parquet: it is a Parquet file, which does not grow: no record will come; ask it without live"
    with jitdb.open(path) as db:
        after = f"{db.log.identity.hex()}.{db.log.generation}.0.0"
        for ask in (
            lambda: next(iter(db.query().live(old=old))),
            lambda: next(db.live(old=old)),
            lambda: next(iter(db.query().live(after=after))),
            lambda: asyncio.run(anext(aiter(db.query().live(old=old)))),
            lambda: db.feed(old=old),
        ):
            with pytest.raises(QueryError, match=said):
                ask()
    for places in ([path], [lines, path]):
        with jitdb.open_many(places) as logs, pytest.raises(QueryError, match=said):
            next(iter(logs.query().live(old=old)))
    with jitdb.open_many(tmp_path) as logs, closing(iter(logs.query(field("id") == 7).live(old=True))) as found:
        assert sorted(len(record) > 1 for record in (next(found), next(found))) == [False, True], "others may come"
