"""What a look shows is what a plain loop over the records finds: of one log, many, compressed ones, one that grows."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from served import Served, served, write_lines

BEGIN = datetime(2026, 11, 20, 10, tzinfo=UTC)
LEVELS = ("debug", "info", "warn", "error")


def records_of(count: int, seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    found = []
    for number in range(count):
        time = BEGIN + timedelta(seconds=7 * number + draw.random())
        record: dict[str, Any] = {
            "time": time.isoformat().replace("+00:00", "Z"), "level": draw.choices(LEVELS, (1, 5, 2, 1))[0],
            "service": draw.choice(["web", "api", "cart", "auth", "mail", "pay"]), "env": "prod",
            "account": f"u{draw.randrange(400)}",
            "request": {"ms": round(draw.lognormvariate(3, 1), 2), "status": draw.choice([200, 200, 404, 500])},
            "id": f"{draw.getrandbits(64):016x}", "message": f"request {number} took a while",
        }  # fmt: skip
        if draw.random() < 0.3:
            record["tags"] = draw.sample(["a", "b", "c"], 2)
        found.append(record)
    return found


RECORDS = records_of(3000, 5)
Holds = Callable[[dict[str, Any]], bool]
QUESTIONS: list[tuple[str, Holds]] = [
    ("", lambda record: True),
    ('level == "error"', lambda record: record["level"] == "error"),
    ('service in ["web", "api"] and request.ms > 20',
     lambda record: record["service"] in ("web", "api") and record["request"]["ms"] > 20),
    ('level == "warn" or "a" in tags', lambda record: record["level"] == "warn" or "a" in record.get("tags", [])),
    ('message contains "nothing like it"', lambda record: False),
]  # fmt: skip


def kinds(folder: Path) -> dict[str, Any]:
    """The same records in one file, in several, and compressed."""
    text = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()
    (folder / "z.ndjson.gz").write_bytes(gzip.compress(text))
    third = len(RECORDS) // 3
    parts = [write_lines(folder / f"{name}.ndjson", RECORDS[at * third : (at + 1) * third])
             for at, name in enumerate(("m0", "m1", "m2"))]  # fmt: skip
    return {"one": write_lines(folder / "one.ndjson", RECORDS), "gz": folder / "z.ndjson.gz", "many": parts}


@pytest.fixture(scope="module", params=["one", "gz", "many"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(kinds(tmp_path_factory.mktemp("logs"))[request.param]) as found:
        yield found


@pytest.mark.parametrize("where", range(len(QUESTIONS)))
def test_a_look_is_what_a_loop_finds(site: Served, where: int) -> None:
    text, holds = QUESTIONS[where]
    chosen = list(filter(holds, RECORDS))
    found = site.exact(where=text, by="service", bars=50)

    assert (found["count"]["count"], found["count"]["total"]) == (len(chosen), len(RECORDS))
    newest = sorted(chosen, key=lambda record: record["time"], reverse=True)[:50]
    columns = found["records"]["columns"]
    assert columns == ["level", "service", "message"]
    assert [[cell[1] for cell in row["cells"]] for row in found["records"]["rows"]] == [
        [record[name] for name in columns] for record in newest
    ]
    line, length = found["timeline"], found["timeline"].get("length", 1) / 1000
    steps = Counter(datetime.fromisoformat(record["time"]).timestamp() // length for record in chosen)
    drawn = {start / 1000 // length: sum(counts[at] for counts in [*line["counts"], line["others"]])
             for at, start in enumerate(line["starts"])}  # fmt: skip
    assert {step: count for step, count in drawn.items() if count} == steps
    services = Counter(record["service"] for record in chosen)
    for (_, name, _), counts in zip(line["names"], line["counts"], strict=True):
        assert sum(counts) == services[name]
    for field in ("level", "service"):
        check_facet(found["facet"], field, text, holds)
    assert ["env", ["text", "prod"]] in found["facets"]["same"] or not chosen
    assert ["pattern(message)", ["text", "request <num> took a while"]] in found["facets"]["same"] or not chosen
    assert found["facets"]["unique"] == ["id"]
    assert found["facets"]["many"] == ["account"]  # counted when it is asked for
    assert "account" not in found["facet"]


def check_facet(facets: dict[str, Any], field: str, text: str, holds: Holds) -> None:
    """The values of a field are counted in what the question is without conditions on this field alone."""
    if text == 'level == "error"' and field == "level":
        holds = QUESTIONS[0][1]
    elif text.startswith("service in") and field == "service":
        holds = lambda record: record["request"]["ms"] > 20  # noqa: E731
    counts = Counter(record[field] for record in RECORDS if holds(record))
    if not counts:
        assert field not in facets
        return
    shown = facets[field]
    assert [value[-1] for value in shown["values"][:5]] == [count for _, count in counts.most_common(5)]
    assert all(counts[value[1]] == value[-1] for value in shown["values"])
    assert shown["distinct"] == len(counts)


def test_values_that_a_question_names_are_shown_however_rare(site: Served) -> None:
    counts = Counter(record["account"] for record in RECORDS)
    (rare, number), absent = counts.most_common()[-1], "nobody"
    found = site.exact(where=f'account in ["{rare}", "{absent}"]')["facet"]["account"]
    assert (found["on"], found["distinct"]) == ([f'"{rare}"', f'"{absent}"'], len(counts))
    assert found["values"][-2:] == [["text", rare, number], ["text", absent, 0]]


def test_numbers_have_their_spread(site: Served) -> None:
    found = site.exact(where='level == "error"')["facet"]["request.ms"]
    numbers = sorted(record["request"]["ms"] for record in RECORDS if record["level"] == "error")
    assert (found["kind"], found["low"], found["high"]) == ("numbers", numbers[0], numbers[-1])
    assert sum(count for _, _, count in found["bars"]) == len(numbers)
    assert dict(map(tuple, found["quantiles"]))["p50"] in numbers


def test_time_is_part_of_the_question(site: Served) -> None:
    since, until = "2026-11-20T11:00:00Z", "2026-11-20T12:30:00Z"
    chosen = [record for record in RECORDS if since <= record["time"] < until]
    found = site.exact(since=since, until=until, bars=30)
    assert found["count"]["count"] == len(chosen)
    line = found["timeline"]
    assert (line["low"], line["high"]) == tuple(
        datetime.fromisoformat(each).timestamp() * 1000 for each in (since, until)
    )
    assert sum(map(sum, [*line["counts"], line["others"]])) == len(chosen)
    assert len(line["starts"]) <= 31


def test_pages_go_on_where_the_one_before_ended(site: Served) -> None:
    first = site.exact(parts=["records"], limit=30, columns=["id"])
    state = first["question"]["as_of"]
    second = site.exact(parts=["records"], limit=30, skip=30, columns=["id"], as_of=state or None)
    shown = [row["cells"][0][1] for found in (first, second) for row in found["records"]["rows"]]
    assert shown == [record["id"] for record in sorted(RECORDS, key=lambda each: each["time"], reverse=True)[:60]]


def test_a_record_opens_and_has_its_context(site: Served) -> None:
    rows = site.exact(parts=["records"], limit=40, columns=["id"])["records"]["rows"]
    ordered = sorted(RECORDS, key=lambda record: record["time"])
    (opened,) = site.parts("record", place=rows[20]["place"])
    record = ordered[-21]
    assert json.loads(opened["json"]) == record
    fields = {field: text for field, _, text in opened["fields"]}
    assert fields["id"] == record["id"]
    assert fields["request.ms"] == repr(record["request"]["ms"])
    (passage,) = site.parts("context", place=rows[20]["place"], before=4, after=1, columns=["id"])
    around = [row["cells"][0][1] for row in passage["rows"]]
    assert around == [each["id"] for each in reversed(ordered[-25:-19])]
    assert [row["match"] for row in passage["rows"]] == [False, True, False, False, False, False]
    (same,) = site.parts("context", place=rows[20]["place"], before=3, same="service", columns=["service"])
    assert {row["cells"][0][1] for row in same["rows"]} == {record["service"]}


def test_why_is_the_difference(site: Served) -> None:
    since, until = "2026-11-20T11:00:00Z", "2026-11-20T12:30:00Z"
    inside = sum(since <= record["time"] < until and record["level"] == "error" for record in RECORDS)
    errors = sum(record["level"] == "error" for record in RECORDS)
    (part,) = site.parts("why", where='level == "error"', **{"from": since, "to": until})
    assert (part["here"], part["there"], part["left"]) == (inside, errors - inside, ["level"])
    (part,) = site.parts("why", where='level == "error"', since=since, until=until)
    others = sum(since <= record["time"] < until and record["level"] != "error" for record in RECORDS)
    assert (part["here"], part["there"]) == (inside, others)
    (part,) = site.parts("why", where="request.ms > 100", against='service == "web"')
    slow = [record for record in RECORDS if record["request"]["ms"] > 100]
    web = [record for record in RECORDS if record["service"] == "web" and record["request"]["ms"] <= 100]
    assert (part["here"], part["there"]) == (len(slow), len(web))
    for row in part["findings"]:  # each is a question, and finds what it says
        (count,) = [each for each in site.parts("look", where=f"request.ms > 100 and {row['where']}", parts=["count"])
                    if each["part"] == "count"]  # fmt: skip
        assert count["count"] == row["here"]
    (told,) = site.parts("why", where="")
    assert "nothing is different" in told["reason"]


def test_steps_of_a_place_begin_when_they_begin(site: Served) -> None:
    begun = {}
    for zone in ("", "Asia/Kolkata", "Australia/Sydney"):  # whose clocks have summer in November, and had none in 1970
        line = site.exact(bars=200, parts=["timeline"], zone=zone)["timeline"]
        begun[zone] = [line["every"], line["starts"], line["others"]]
    assert begun["Australia/Sydney"] == begun["Asia/Kolkata"] == begun[""]


def test_patterns_are_counted_in_the_steps_of_the_timeline(site: Served) -> None:
    found = site.exact(where='level == "error"', bars=40, parts=["timeline"])["timeline"]
    (part,) = site.parts("patterns", where='level == "error"', bars=40)
    errors = sum(record["level"] == "error" for record in RECORDS)
    (row,) = part["rows"]
    assert (row["text"], row["count"], part["distinct"]) == ("request <num> took a while", errors, 1)
    totals = {start: sum(counts[at] for counts in [*found["counts"], found["others"]])
              for at, start in enumerate(found["starts"])}  # fmt: skip
    counted = dict(zip(part["starts"], row["counts"], strict=True))
    assert {at: count for at, count in counted.items() if count} == {at: count for at, count in totals.items() if count}
    assert site.exact(where=row["where"], parts=["count"])["count"]["count"] == len(RECORDS)


def test_export_gives_all_records(site: Served) -> None:
    parts = site.parts("export", where='level == "error"')
    lines = "".join(part["lines"] for part in parts if part["part"] == "lines").splitlines()
    wanted = [record for record in sorted(RECORDS, key=lambda each: each["time"], reverse=True)
              if record["level"] == "error"]  # fmt: skip
    assert list(map(json.loads, lines)) == wanted
    assert parts[-1] == {"part": "done", "sent": len(wanted)}


def test_more_values_of_a_field(site: Served) -> None:
    for field in ("service", "account"):
        (found,) = site.parts("facet", field=field, where='level == "info"', limit=500)
        counts = Counter(record[field] for record in RECORDS if record["level"] == "info")
        assert {value[1]: value[-1] for value in found["values"]} == counts
        assert found["distinct"] == len(counts)


def test_completion_knows_fields_and_values(site: Served) -> None:
    (offer,) = site.parts("complete", text="ser", at=3)
    assert (offer["from"], offer["texts"]) == (0, ["service"])
    (offer,) = site.parts("complete", text='level == "e" and x', at=11)
    assert offer["texts"] == ['"error"']


def test_a_wrong_question_is_an_answer_with_its_place(site: Served) -> None:
    (told,) = site.parts("look", where="level = 5")
    assert told["kind"] == "QueryError"
    assert told["reason"].splitlines()[0] == "equality is written `==`, not `=`"
    assert "did you mean: level == 5" in told["notes"]


def test_what_was_misspelt_is_said(site: Served) -> None:
    found = site.exact(where='levl == "error"', parts=["count"])
    assert "level" in found["count"]["notes"][0]


@pytest.mark.filterwarnings("ignore::jitdb.errors.MalformedWarning")
def test_lines_that_are_no_records_are_told_of(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.ndjson", RECORDS[:50])
    with path.open("a") as file:
        file.write("{ no json\nnor this\n")
    with served(path) as site:
        notes = site.exact(parts=["count", "records", "facets"])["count"]["notes"]
    assert [note.partition(",")[0] for note in notes] == ["2 lines are no records"]


def test_a_sample_comes_first_and_says_so(tmp_path: Path) -> None:
    records = records_of(40_000, 7)
    for record in records:
        record["padding"] = "x" * 700
    with served(write_lines(tmp_path / "big.ndjson", records)) as site:
        parts = site.parts("look", where='level == "error"')
        names = [(part["part"], part.get("sampled")) for part in parts if part["part"] in ("count", "timeline")]
        some = parts[1]["sampled"]
        assert 900 < some <= 1000
        assert names == [("count", some), ("timeline", some), ("count", 0), ("timeline", 0)]
        at = next(number for number, part in enumerate(parts) if part["part"] == "scanning")
        assert all(part["sampled"] for part in parts[1:at])
        exact = [part for part in parts if part["part"] == "count"][-1]
        assert exact["count"] == sum(record["level"] == "error" for record in records)
        assert all(part.get("sampled") == 0 for part in site.parts("look", where='level == "error"')[1:-1])


def test_a_look_is_of_one_state_and_the_next_of_what_came(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "live.ndjson", RECORDS[:1000])
    with served(path) as site:
        before = site.exact(where="")
        with path.open("a") as file:
            file.writelines(json.dumps(record) + "\n" for record in RECORDS[1000:1500])
        same = site.exact(where="", as_of=before["question"]["as_of"])
        assert same["count"]["count"] == 1000
        assert same["timeline"]["others"] == before["timeline"]["others"]
        assert site.exact(where="")["count"]["count"] == 1500


def test_a_log_without_time_or_message_or_records(tmp_path: Path) -> None:
    with served(write_lines(tmp_path / "plain.ndjson", [{"a": number % 3, "b": "x"} for number in range(50)])) as site:
        found = site.exact(where="a == 1")
        assert found["timeline"]["starts"] == []
        assert found["count"]["count"] == 17
        assert len(found["records"]["rows"]) == 17
        assert found["records"]["rows"][0]["time"] is None
    (tmp_path / "empty.ndjson").write_text("")
    with served(tmp_path / "empty.ndjson") as site:
        found = site.exact(where="")
        assert (found["count"]["count"], found["records"]["rows"]) == (0, [])


def test_a_log_that_begins_empty_gets_its_fields_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "live.ndjson"
    path.write_text("")
    with served(path) as site:
        assert site.exact(where="")["facet"] == {}
        write_lines(path, RECORDS[:400])
        found = site.exact(where='level == "info"')
        assert {"level", "service", "request.ms"} <= found["facet"].keys()
        assert found["records"]["columns"] == ["level", "service", "message"]
        assert found["timeline"]["by"] == "level"
