"""A spool: what becomes of its records, old ones and strange ones too, and wrong arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jitdb import Log
from jitdb.errors import InvalidArgument, LogClosed, RecordDeleted, RecordTooLarge
from jitdb.operators import and_, everything, field, gt, lte, or_
from jitdb.stores import spool as names
from jitdb.stores.spool import (
    InvalidMessage,
    Message,
    MessageDamaged,
    MessageId,
    Shard,
    Spool,
    SpoolError,
)

G = b"group"
ADA, BOB, EVE = b"ada-----", b"bob-----", b"eve-----"


@pytest.fixture
def spool(tmp_path: Path):
    with Spool(tmp_path, create=True) as found:
        yield found


def texts(spool: Spool, vector: dict[bytes, int] | None = None) -> list[bytes | None]:
    return [each.message for each in spool.messages_after(G, vector or {}).messages]


# What is in the log


def test_records_of_the_old_format_are_of_level_0(tmp_path: Path) -> None:
    with Log(tmp_path / f"{G.hex()}.log", codec="msgpack") as log:  # by whoever wrote them
        log.append_many({"sender": ADA, "seq": seq, "message": b"%d" % seq} for seq in range(5))
    with Spool(tmp_path) as spool:
        spool.store(G, ADA, 5, None, b"5")
        spool.store(G, ADA, 2, 1, b"new")
        assert [(each.level, each.message) for each in spool.messages_after(G, {ADA: 0}).messages] == [
            (0, b"1"), (1, b"new"), (0, b"3"), (0, b"4"), (0, b"5")
        ]  # fmt: skip
        assert spool.delete_before(G, {ADA: 9}, 0) == 0
        assert spool.delete_before(G, {ADA: 4}, 1) == 4
        assert texts(spool) == [b"new", b"5"]
        spool.flush()
        assert spool.group(G).index.count(field("level").absent()) == 1


def test_records_that_are_no_messages_are_passed_over(tmp_path: Path) -> None:
    strange: list[dict[str, Any]] = [
        {"note": "mine"},
        {"sender": b"short", "seq": 1, "level": 0, "message": b"x"},
        {"sender": "ada-----", "seq": 1, "level": 0, "message": b"x"},
        {"sender": ADA, "seq": -1, "level": 0, "message": b"x"},
        {"sender": ADA, "seq": 1.5, "level": 0, "message": b"x"},
        {"sender": ADA, "seq": "1", "level": 0, "message": b"x"},
        {"sender": ADA, "seq": 1, "level": 256, "message": b"x"},
        {"sender": ADA, "seq": 1, "level": None, "message": b"x"},
        {"sender": ADA, "seq": 1, "level": True, "message": b"x"},
        {"sender": ADA, "seq": 1, "level": 0, "shard_index": 2, "data_shards": 1, "total_shards": 2, "data": b"x"},
        {"sender": ADA, "seq": 1, "level": 0, "shard_index": 0, "data_shards": 3, "total_shards": 2, "data": b"x"},
        {"sender": ADA, "seq": 1, "level": 0, "shard_index": 0, "data": b"x"},
    ]
    with Log(tmp_path / f"{G.hex()}.log", codec="msgpack") as log:
        log.append_many(strange)
    (tmp_path / "notes.log").write_bytes(b"somebody's")
    (tmp_path / "friends.txt").write_bytes(b"x")
    with Spool(tmp_path) as spool:
        assert spool.groups() == [G]
        assert spool.messages_after(G, {}) == ([], [], None)
        assert spool.delete_before(G, {ADA: 2**64 - 1, b"ada\0\0\0\0\0": 1}, 255) == 0
        spool.store(G, ADA, 1, 0, b"hello")
        spool.compact()
        assert texts(spool) == [b"hello"]
        assert len(list(spool.group(G).log.stream())) == len(strange) + 1


def test_a_record_that_only_looks_like_a_message(tmp_path: Path) -> None:
    for wrong in ({"message": "text"}, {}, {"message": None}):
        path = tmp_path / f"{G.hex()}.log"
        with Log(path, codec="msgpack") as log:
            log.append({"sender": ADA, "seq": 1, "level": 0, **wrong})
        with Spool(tmp_path) as spool:
            with pytest.raises(MessageDamaged, match="message 1 of 6164612d"):
                spool.messages_after(G, {})
            spool.store(G, ADA, 1, 0, b"again")
            assert texts(spool) == [b"again"]


def test_all_of_a_seq_is_exact(spool: Spool) -> None:
    ends = [0, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]
    for sender in (b"\0" * 8, b"\xff" * 8):
        for seq in ends:
            spool.store(G, sender, seq, 0, b"%d" % seq)
    for again in range(2):
        for seq in ends:
            vector = {b"\0" * 8: seq, b"\xff" * 8: 2**64 - 1}
            assert texts(spool, vector) == [b"%d" % other for other in ends if other > seq]
            spool.flush()
            index = spool.group(G).index
            asked = and_(field("sender") == b"\0" * 8, gt(seq, "seq"))
            assert index.count(asked) == len([other for other in ends if other > seq])
        if not again:
            spool.compact(G)  # nothing to do, and it is read again
    assert spool.delete_before(G, {b"\xff" * 8: 2**53}, 1) == 3
    assert spool.state_vector(G) == {b"\0" * 8: 2**64 - 1, b"\xff" * 8: 2**64 - 1}


def test_the_engine_says_the_same(spool: Spool) -> None:
    for number in range(3000):
        spool.store(G, bytes([number % 7]) * 8, number // 7, number % 4, b"%d" % number)
    watermark = {bytes([sender]) * 8: 50 * sender for sender in (1, 3, 5, 9)}
    spool.flush()
    index = spool.group(G).index
    reached = or_(*(and_(field("sender") == sender, lte(seq, "seq")) for sender, seq in watermark.items()))
    expected = index.count(and_(reached, field("level") < 2))
    assert spool.delete_before(G, watermark, 2) == expected > 0
    assert index.count(and_(reached, field("level") < 2)) == 0
    assert len(texts(spool)) == index.count(everything()) == 3000 - expected


def test_shards_give_way_to_messages_and_messages_to_shards(spool: Spool) -> None:
    def shard(index: int, level: int = 1, needed: int = 2, total: int = 3) -> None:
        spool.store_shard(G, ADA, 7, level, index, needed, total, bytes([index, level, needed, total]))

    def held() -> list[Message]:
        return spool.messages_after(G, {}).messages

    shard(0)
    shard(0)  # the same one again is still one
    assert spool.messages_after(G, {}).incomplete == [MessageId(ADA, 7)]
    shard(2)
    assert held() == [Message(ADA, 7, 1, None, (Shard(0, 2, 3, b"\0\1\2\3"), Shard(2, 2, 3, b"\2\1\2\3")))]
    spool.store(G, ADA, 7, 1, b"whole")
    assert held() == [Message(ADA, 7, 1, b"whole")]
    for other in ({"level": 2}, {"needed": 3}, {"total": 4}):
        shard(0)
        shard(1, **other)  # of another code: it begins anew
        assert (held(), spool.messages_after(G, {}).incomplete) == ([], [MessageId(ADA, 7)])
    spool.flush()
    assert len(list(spool.group(G).log.stream())) == 1
    shard(0, needed=1)
    assert [len(each.shards) for each in held()] == [1]


def test_what_rebuild_raises_comes_through(spool: Spool) -> None:
    spool.store_shard(G, ADA, 1, 1, 0, 1, 2, b"x")
    with pytest.raises(ZeroDivisionError):
        spool.messages_after(G, {}, rebuild=lambda shards: 1 // 0)  # type: ignore[arg-type, return-value]
    with pytest.raises(InvalidMessage):
        spool.messages_after(G, {}, rebuild=lambda shards: "text")  # type: ignore[arg-type, return-value]
    assert spool.messages_after(G, {}, rebuild=lambda shards: shards[0].data).messages[0].message == b"x"


def test_deleting_takes_what_was_overwritten_before(tmp_path: Path) -> None:
    """What a deleted message had taken the place of never comes back, whatever is durable by then."""
    with Spool(tmp_path, create=True) as spool:
        for value in (b"1", b"2", b"3"):
            spool.store(G, ADA, 1, 0, value)
        assert spool.delete_before(G, {ADA: 1}, 1) == 1
        spool.flush()
        assert list(spool.group(G).log.stream()) == []
        spool.store(G, ADA, 1, 0, b"4")
        assert spool.compact(G) > 0
        assert texts(spool) == [b"4"]
    with Spool(tmp_path) as spool:
        assert texts(spool) == [b"4"]


def test_what_is_overwritten_stays_until_its_heir_is_durable(spool: Spool) -> None:
    """Else a crash between the two could leave none."""
    spool.store(G, ADA, 1, 0, b"old")
    spool.flush()
    log = spool.group(G).log
    old = log.since
    spool.store(G, ADA, 1, 0, b"new")
    assert log.deleting() == []
    assert log.get(old)["message"] == b"old"
    assert texts(spool) == [b"new"]
    spool.flush()
    with pytest.raises(RecordDeleted):
        log.get(old)


def test_groups_are_apart(spool: Spool, tmp_path: Path) -> None:
    for group in (b"\0", b"a", b"a/../b", b"x" * 100):
        spool.store(group, ADA, 1, 0, group)
    assert spool.groups() == [b"\0", b"a", b"a/../b", b"x" * 100]
    assert [each.message for each in spool.messages_after(b"a/../b", {}).messages] == [b"a/../b"]
    assert sorted(path.name for path in tmp_path.glob("*.log")) == sorted(f"{g.hex()}.log" for g in spool.groups())
    assert spool.messages_after(b"nobody's", {}) == ([], [], None)
    assert spool.delete_before(b"nobody's", {ADA: 1}, 1) == spool.compact(b"nobody's") == 0
    assert spool.state_vector(b"nobody's") == {}
    assert b"nobody's" not in spool.groups()


# Wrong arguments


def test_what_is_refused_changes_nothing(spool: Spool) -> None:
    spool.store(G, ADA, 1, 0, b"x")
    for wrong in (b"", b"x" * 101, "group", None, 5):
        with pytest.raises(InvalidMessage):
            spool.store(wrong, ADA, 1, 0, b"new")  # type: ignore[arg-type]
        with pytest.raises(InvalidMessage):
            spool.messages_after(wrong, {})  # type: ignore[arg-type]
    for sender in (b"", b"seven--", b"nine-----", "eight---", None, 8):
        with pytest.raises(InvalidMessage):
            spool.store(G, sender, 1, 0, b"new")  # type: ignore[arg-type]
        for ask in (spool.messages_after, lambda group, vector: spool.delete_before(group, vector, 1)):
            with pytest.raises(InvalidMessage):
                ask(G, {ADA: 1, sender: 1})
    for seq in (-1, 2**64, 1.0, True, "1", None):
        with pytest.raises(InvalidMessage):
            spool.store(G, ADA, seq, 0, b"new")  # type: ignore[arg-type]
        with pytest.raises(InvalidMessage):
            spool.messages_after(G, {ADA: seq})  # type: ignore[dict-item]
    for level in (-1, 256, 0.0, False, "0"):
        with pytest.raises(InvalidMessage):
            spool.store(G, ADA, 1, level, b"new")  # type: ignore[arg-type]
        with pytest.raises(InvalidMessage):
            spool.delete_before(G, {ADA: 1}, level)  # type: ignore[arg-type]
    for shard in ((0, 0, 1), (1, 1, 1), (0, 3, 2), (0, 1, 256), (-1, 1, 1), (0.0, 1, 1), (0, True, 1)):
        with pytest.raises(InvalidMessage):
            spool.store_shard(G, ADA, 1, 0, *shard, b"new")  # type: ignore[arg-type]
    for message in ("text", None, 5, [b"x"]):
        with pytest.raises(InvalidMessage):
            spool.store(G, ADA, 1, 0, message)  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage, match="level"):
        spool.store_shard(G, ADA, 1, None, 0, 1, 1, b"new")  # type: ignore[arg-type]
    for vector in (None, [], b"", 5, [(ADA, 1)]):
        with pytest.raises(InvalidMessage):
            spool.messages_after(G, vector)  # type: ignore[arg-type]
    limits = [{"limit": 0}, {"limit": True}, {"limit": 1.0}]
    for options in (*limits, {"after": b"x"}, {"after": "x" * 16}, {"rebuild": 5}):
        with pytest.raises(InvalidMessage):
            spool.messages_after(G, {}, **options)  # type: ignore[arg-type]
    for timeout in (-1, "1", float("nan")):
        with pytest.raises(InvalidMessage):
            spool.subscribe(G, timeout=timeout)  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage):
        spool.subscribe(G, 5)  # type: ignore[arg-type]
    assert spool.messages_after(G, {}) == ([Message(ADA, 1, 0, b"x")], [], None)


def test_any_bytes_will_do(spool: Spool) -> None:
    spool.store(bytearray(G), memoryview(ADA), 1, 0, bytearray(b"x"))  # type: ignore[arg-type]
    spool.store(G, ADA, 2, 0, b"")
    assert texts(spool, {memoryview(bytearray(ADA)).tobytes(): 0}) == [b"x", b""]


def test_a_message_that_is_too_large(tmp_path: Path) -> None:
    with Spool(tmp_path, create=True, block_size=4096) as spool:
        spool.store(G, ADA, 1, 0, b"x" * 4000)
        with pytest.raises(RecordTooLarge):
            spool.store(G, ADA, 1, 0, b"x" * 4096)
        assert texts(spool) == [b"x" * 4000]
        assert spool.state_vector(G) == {ADA: 1}


def test_opening_and_closing(tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="create=True"):
        Spool(tmp_path / "none")
    with pytest.raises(SpoolError):
        Spool(tmp_path / "none", create=True, read_only=True)
    with pytest.raises((InvalidArgument, InvalidMessage)):
        Spool(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage):
        Spool(tmp_path, create="no")  # type: ignore[arg-type]
    spool = Spool(tmp_path / "one" / "two", create=True)
    waiting = spool.subscribe(G)
    spool.store(G, ADA, 1, 0, b"x")
    spool.close()
    spool.close()
    assert list(waiting) == [{ADA: 1}]  # and no more: its group is closed
    for ask in (lambda: spool.store(G, ADA, 1, 0, b"x"), lambda: spool.messages_after(G, {}), lambda: spool.group(G)):
        with pytest.raises(LogClosed):
            ask()
    assert repr(spool) == f"<Spool {str(tmp_path / 'one' / 'two')!r}>"


def test_names() -> None:
    assert all(getattr(names, name) for name in names.__all__)
    with pytest.raises(AttributeError):
        names.nothing  # type: ignore[attr-defined]  # noqa: B018
