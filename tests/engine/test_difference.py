"""What some records have more often than others (difference), against loops over decoded records."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thoroughness import tries

import jitdb
from jitdb import JITDB
from jitdb.common.paths import CASTS
from jitdb.common.values import UNDEFINED, value_at
from jitdb.errors import QueryError, QuestionWarning
from jitdb.operators import field, seqs
from jitdb.operators.summaries.exploring.difference import Difference
from jitdb.operators.summaries.exploring.findings import Finding, Interval

Record = dict[str, Any]


def record(chance: random.Random, number: int) -> Record:
    """One of a service, in which nothing goes together."""
    made = {
        "time": 1_700_000_000_000 + 1000 * number,
        "service": chance.choice(["web", "web", "web", "cart", "mail"]),
        "region": chance.choice(["eu", "us", "ap"]),
        "version": chance.choice(["1.0", "1.1", "1.2", "2.0"]),
        "status": chance.choice([200, 200, 200, 404]),
        "request": {"ms": round(chance.lognormvariate(3, 1), 2), "bytes": chance.randrange(10000)},
        "tags": chance.sample(["a", "b", "c"], 2),
        "user": f"u{chance.randrange(300)}",
    }
    return made if chance.random() < 0.8 else made | {"db": {"rows": chance.randrange(100)}}


def service(count: int, seed: int, plant: Callable[[Record, random.Random], None] | None = None) -> list[Record]:
    chance = random.Random(seed)
    records = [record(chance, number) for number in range(count)]
    for each in records:
        if plant is not None:
            plant(each, chance)
    return records


def write(path: Path, records: list[Record]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


def has(finding: Finding, each: Record) -> bool:
    """Whether the record has it, by looking at it."""
    path, value = finding.path, finding.value
    if path[-1] is None:
        return value in value_at(each, path[:-1])
    found = value_at(each, path)
    if isinstance(value, Interval):
        return isinstance(found, (int, float)) and value.low <= found < value.high
    return found is UNDEFINED if value is UNDEFINED else found == value and type(found) is type(value)


def check(found: Difference, these: list[Record], others: list[Record]) -> None:
    """All that it says is so."""
    assert (found.matching, found.others, found.total) == (len(these), len(others), len(these) + len(others))
    for row in [*found, *(copy for each in found for copy in each.same_as)]:
        assert (row.here, row.there) == tuple(sum(has(row, each) for each in some) for some in (these, others)), row
        assert (row.share, row.other_share) == (row.here / len(these), row.there / len(others))
    for group in found.together:
        counts = [sum(all(has(one, each) for one in group.findings) for each in some) for some in (these, others)]
        assert [group.here, group.there] == counts


def names(found: Difference) -> list[str]:
    return [str(row) for row in found]


def failing(each: Record) -> bool:
    return bool(each["status"] >= 500)


def incident(each: Record, chance: random.Random) -> None:
    """Version 2.0 in eu is slow, and fails."""
    if each["version"] == "2.0" and each["region"] == "eu" and chance.random() < 0.5:
        each["status"] = 503
        each["request"]["ms"] = chance.uniform(4000, 6000)
        each["error"] = {"type": "PoolTimeout", "code": 503}
    elif chance.random() < 0.02:
        each["status"] = 500
        each["error"] = {"type": chance.choice(["KeyError", "ValueError"]), "code": 500}


def test_an_incident_is_explained(tmp_path: Path) -> None:
    records = service(5000, 1, incident)
    these, others = (list(filter(failing, records)), [each for each in records if not failing(each)])
    with jitdb.open(write(tmp_path / "some.ndjson", records)) as db:
        found = db.difference("status >= 500")
        check(found, these, others)
        group = found.together[0]
        assert {str(each) for each in group.findings} >= {'version = "2.0"', "region = eu", "error.type = PoolTimeout"}
        assert group.share > 0.6
        assert group.other_share == 0
        (type_of,) = [row for row in found if str(row) == "error.type = PoolTimeout"]
        (slow,) = [each for each in type_of.same_as if each.path == ("request", "ms")]
        assert 1000 < slow.value.low <= 4100
        assert "error.code = 503" in map(str, type_of.same_as)
        assert found.asked == (("status",),)
        for row in found:
            assert db.count(row.operation & (field("status") >= 500)) == row.here
            assert db.count(row.operation & ~(field("status") >= 500)) == row.there
            assert db.count(row.operation.written()) == row.here + row.there
        assert db.count(group.operation) == group.here + group.there


def plant_value(each: Record, chance: random.Random) -> None:
    each["bad"] = chance.random() < (0.5 if each["service"] == "mail" else 0.05)


def plant_large(each: Record, chance: random.Random) -> None:
    each["bad"] = chance.random() < (0.7 if each["request"]["bytes"] > 9000 else 0.05)


def plant_between(each: Record, chance: random.Random) -> None:
    each["bad"] = chance.random() < (0.7 if 3000 <= each["request"]["bytes"] < 4000 else 0.05)


def plant_lack(each: Record, chance: random.Random) -> None:
    each["bad"] = chance.random() < 0.1
    each["session"] = "s"
    if each["bad"] and chance.random() < 0.8:
        del each["session"]


def plant_user(each: Record, chance: random.Random) -> None:
    each["bad"] = chance.random() < 0.05
    if each["bad"] and chance.random() < 0.3:
        each["user"] = "u17"


def plant_tag(each: Record, chance: random.Random) -> None:
    each["bad"] = chance.random() < (0.3 if "b" in each["tags"] else 0.02)


@pytest.mark.parametrize(
    ("plant", "first"),
    [
        (plant_value, "service = mail"),
        (plant_large, "request.bytes ≥ "),
        (plant_between, "request.bytes "),
        (plant_lack, "session is missing"),
        (plant_user, "user = u17"),
        (plant_tag, "tags[] = b"),
    ],
)
def test_causes_of_several_kinds_are_found(tmp_path: Path, plant: Any, first: str) -> None:
    records = service(4000, 2, plant)
    with jitdb.open(write(tmp_path / "some.ndjson", records)) as db:
        found = db.difference("bad == true")
        check(found, [each for each in records if each["bad"]], [each for each in records if not each["bad"]])
        assert names(found)[0].startswith(first)
        assert len(found) <= 2
        if plant is plant_between:
            low, high = found[0].value
            assert 2800 <= low <= 3100
            assert 3900 <= high <= 4200


def test_random_selections_give_nothing(tmp_path: Path) -> None:
    with jitdb.open(write(tmp_path / "some.ndjson", service(3000, 3))) as db:
        chance = np.random.default_rng(4)
        told, count = 0, tries(200, 1000)
        for _ in range(count):
            some = chance.choice(3000, chance.integers(20, 1500), replace=False)
            told += len(db.difference(seqs(some.tolist()))) > 0
    assert told * 100 <= count


def test_against_another_question(tmp_path: Path) -> None:
    records = service(4000, 5, incident)
    with jitdb.open(write(tmp_path / "some.ndjson", records)) as db:
        found = db.query("status >= 500").difference(against="service == 'web'")
        these = list(filter(failing, records))
        check(found, these, [each for each in records if each["service"] == "web" and not failing(each)])
        assert found.asked == (("service",), ("status",))
        later = db.difference("time >= 1700003000000", against="time < 1700001000000")
        check(later, records[3000:], records[:1000])


def test_many_logs_are_as_one(tmp_path: Path) -> None:
    records = service(4000, 6, incident)
    (tmp_path / "some").mkdir()
    for number in range(4):
        write(tmp_path / f"some/{number}.ndjson", records[1000 * number : 1000 * number + 1000])
    write(tmp_path / "one.ndjson", records)
    names = ["service", "region", "version", "request.ms", "request.bytes", "error.type", "error.code", "tags[]"]
    with jitdb.open_many(tmp_path / "some") as many, jitdb.open(tmp_path / "one.ndjson") as one:
        for asked in ({"where": "status >= 500"}, {"where": "region == 'eu'", "against": "service == 'cart'"}):
            found = many.difference(**asked, fields=names)
            assert found == one.difference(**asked, fields=names)


def test_deleted_records_are_of_neither(tmp_path: Path) -> None:
    records = service(2000, 7, incident)
    with jitdb.open(tmp_path / "own.log", codec="msgpack", create=True) as db:
        db.log.append_many(records)
        db.log.flush()
        for offset in db.all(field("region") == "us", as_offsets=True):
            db.log.delete(offset)
        left = [each for each in records if each["region"] != "us"]
        check(db.difference("status >= 500"), list(filter(failing, left)), [e for e in left if not failing(e)])


def test_values_that_have_bitmaps(tmp_path: Path) -> None:
    """A question for a value leaves bitmaps behind, which serve then."""
    records = service(4000, 8, incident)
    with jitdb.open(write(tmp_path / "some.ndjson", records)) as db:
        before = db.difference("status == 503")
    with jitdb.open(tmp_path / "some.ndjson") as db:
        for question in ("version == '2.0'", "region == 'eu'", "error.type == 'PoolTimeout'", "user == 'u1'"):
            db.count(question)
        assert db.difference("status == 503") == before


def test_messages_are_compared_by_their_patterns(tmp_path: Path) -> None:
    def say(each: Record, chance: random.Random) -> None:
        each["bad"] = chance.random() < 0.1
        what = "pool timeout after {} ms" if each["bad"] and chance.random() < 0.5 else "served it in {} ms"
        each["message"] = what.format(chance.random())

    records = service(2000, 11, say)
    with jitdb.open(write(tmp_path / "some.ndjson", records)) as db:
        assert names(db.difference("bad == true")) == ["pattern(message) = pool timeout after <num> ms"]
        assert db.difference('message contains "pool"').asked == (("message", CASTS["pattern"]),)


def test_fields_that_few_records_have(tmp_path: Path) -> None:
    """A sample of all records may have none of them; those that match have."""
    records = service(20_000, 10)
    few = random.Random(1).sample(range(20_000), 6)
    for number in few:
        records[number] |= {"status": 599, "err": {"kind": "Broken", "took": 7 + number}}
    with jitdb.open(write(tmp_path / "some.ndjson", records)) as db:
        assert not [row for row in db.facets() if row.path[0] == "err"]
        assert db.facets("status == 599").same == {("status",): 599, ("err", "kind"): "Broken"}
        found = db.difference("status == 599")
        assert "err.kind = Broken" in names(found)


def test_misspelt_fields_are_told(tmp_path: Path) -> None:
    with jitdb.open(write(tmp_path / "some.ndjson", service(100, 12))) as db:
        with pytest.warns(QuestionWarning, match="versoin"):
            db.difference("status == 404", fields=["versoin", "region"])
        with pytest.warns(QuestionWarning, match="regin"):
            db.difference("status == 404", against="regin == 'eu'")


def test_text_is_told_from_other_values(tmp_path: Path) -> None:
    def say(each: Record, chance: random.Random) -> None:
        each["bad"] = chance.random() < 0.2
        each["code"] = chance.choice(["200", ""]) if each["bad"] else chance.choice([200, True])

    with jitdb.open(write(tmp_path / "some.ndjson", service(500, 13, say))) as db:
        assert sorted(names(db.difference("bad == true"))) == ['code = ""', 'code = "200"']
        assert sorted(names(db.difference("bad == false"))) == ["code = 200", "code = true"]
        assert '"200" ' in str(db.facets("bad == true"))


def test_nothing_to_tell(tmp_path: Path) -> None:
    with jitdb.open(write(tmp_path / "some.ndjson", service(100, 9))) as db:
        db.warns_of_questions = False
        none = db.difference("status == 999")
        assert "no record matches: there is nothing to compare" in str(none)
        assert "there are no other records" in str(db.difference("status < 999"))
        assert "there is no field to compare" in str(db.difference("status == 404", fields=["status"]))
        assert (none.matching, none.others, list(none), none.together) == (0, 100, [], ())
        all_of_them = db.difference("status < 999")
        assert (all_of_them.matching, all_of_them.others, list(all_of_them)) == (100, 0, [])
        with pytest.raises(QueryError, match="about all"):
            db.difference()
        with pytest.raises(QueryError, match="limit"):
            db.difference("status == 404", limit=0)


def test_it_shows_itself(tmp_path: Path) -> None:
    records = service(5000, 1, incident)
    with jitdb.open(write(tmp_path / "some.ndjson", records)) as db:
        assert isinstance(db, JITDB)
        found = db.difference("status >= 500")
    lines = str(found).splitlines()
    assert lines[0].split() == ["field", "value", "here", "of", "these", "there", "of", "others"]
    assert any("of these, and 0.0 % of the others, have all of: " in line for line in lines)
    assert "not compared, because the question uses them: status" in lines
    assert "<table" in found._repr_html_()
    plain = found.plain_sheet()
    row = dict(zip(plain.names, plain.rows[0], strict=True))
    assert row["expression"] == found[0].operation.written()
    json.dumps([plain.about, *plain.rows])
