"""Questions beside the JavaScript jitdb, and logs that JavaScript changes while indexes of ours lie beside them."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import QUESTIONS, check, message, oracle_of

import jitdb
from jitdb import JITDB, Log
from jitdb.operators import and_, equal, gt, gte, includes, lt, lte, not_, or_
from jitdb.operators.nodes.operation import Operation

HERE = Path(__file__).parent
FIXTURE = HERE.parent / "data" / "ssb-5k.bipf"
Run = Callable[..., list[Any]]


# The same answers

POST = ["equal", "value.content.type", "post"]
VOTE = ["equal", "value.content.type", "vote"]
CONTACT = ["equal", "value.content.type", "contact"]

WHERES: list[Any] = [
    None,
    POST,
    ["equal", "value.content.type", "nothing of the kind"],
    ["equal", "value.author", "AUTHOR"],
    ["equal", "value.sequence", 7],
    ["equal", "value.content.following", True],
    ["and", POST, ["equal", "value.author", "AUTHOR"]],
    ["or", VOTE, CONTACT],
    ["or", VOTE, ["and", POST, ["equal", "value.author", "AUTHOR"]], CONTACT],
    ["and", ["or", POST, VOTE], ["or", ["equal", "value.author", "AUTHOR"], ["equal", "value.sequence", 3]]],
    ["and", POST, ["gt", 50, "sequence"]],
    ["or", ["lte", 2, "sequence"], CONTACT],
]


def operation(where: Any) -> Operation | None:
    if where is None:
        return None
    name, *args = where
    if name == "equal":
        return equal(*args)
    if name in ("and", "or"):
        return {"and": and_, "or": or_}[name](*map(operation, args))
    return {"gt": gt, "gte": gte, "lt": lt, "lte": lte}[name](*args)


@pytest.fixture(scope="module")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copy(FIXTURE, tmp_path_factory.mktemp("ssb") / "ssb.bipf"))


@pytest.fixture(scope="module")
def author(log_file: Path) -> str:
    """Who wrote the first post."""
    with jitdb.open(log_file, "memory", read_only=True) as db:
        return str(db.paginate(equal("value.content.type", "post"), limit=1).data[0]["value"]["author"])


ORDERS: list[dict[str, bool]] = [
    {"descending": descending, "arrival": arrival} for descending in (False, True) for arrival in (False, True)
]


def test_answers_are_those_of_javascript(
    log_file: Path, author: str, tmp_path: Path, run_node: Callable[..., bytes]
) -> None:
    """Whole answers are compared, and our pages with parts of them: its heap loses records from pages of its own."""
    wheres = json.loads(json.dumps(WHERES).replace("AUTHOR", author))
    asked = [{"where": where, **order} for where in wheres for order in ORDERS]
    text = "\n".join(map(json.dumps, asked))
    lines = run_node(HERE / "jitdb.js", text, log_file, tmp_path / "js-indexes").decode().splitlines()
    assert len(lines) == len(asked)
    counts = set()
    with jitdb.open(log_file, "memory", read_only=True) as db:
        for question, line in zip(asked, lines, strict=True):
            total, offsets = json.loads(line).values()
            where = operation(question["where"])
            order: dict[str, Any] = {
                "descending": question["descending"],
                "sort_by": "arrival" if question["arrival"] else "declared",
                "as_offsets": True,
            }
            assert db.count(where) == total, question
            assert db.all(where, **order) == offsets, question
            for start, limit in ((0, 1), (0, 10), (20, 10), (total - 3, 10)):
                if start >= 0:
                    page = db.paginate(where, start_from=start, limit=limit, **order)
                    assert (page.data, page.total) == (offsets[start : start + limit], total), question
            counts.add(total)
    assert len(counts) >= 10  # the questions are different ones


def test_records_are_those_of_javascript(log_file: Path, tmp_path: Path, run_node: Callable[..., bytes]) -> None:
    question = {"where": CONTACT, "descending": True, "limit": 10**6, "records": True}
    [line] = run_node(HERE / "jitdb.js", json.dumps(question), log_file, tmp_path / "indexes").decode().splitlines()
    theirs = json.loads(line)
    with jitdb.open(log_file, "memory", read_only=True) as db:
        page = db.paginate(operation(CONTACT), limit=10**6, descending=True)
        assert json.loads(json.dumps(page.data)) == theirs["records"]
        assert page.total == theirs["total"] == len(page.data)


# Another program at work


@pytest.fixture
def javascript(run_node: Callable[..., bytes]) -> Run:
    """`javascript(file, *commands)`: the commands' answers (see log.js)."""

    def run(file: Path, *commands: Sequence[Any], block_size: int = 4096) -> list[Any]:
        text = "\n".join(json.dumps(command) for command in commands)
        answers: list[Any] = json.loads(run_node(HERE / "log.js", text, file, str(block_size)))
        return answers

    return run


def encoded(log: Log, first: int, count: int) -> list[str]:
    return [log.codec.encode(message(number)).hex() for number in range(first, first + count)]


@pytest.mark.parametrize("read_only", [True, False], ids=["reader", "writer"])
def test_javascript_deletes_and_appends_to_an_indexed_log(tmp_path: Path, javascript: Run, read_only: bool) -> None:
    path = tmp_path / "log"
    with Log(path, codec="bipf", block_size=4096) as log:
        offsets = log.append_many(message(number) for number in range(500))
        log.flush()
        JITDB(log).prepare(*QUESTIONS)
        later = encoded(log, 500, 60)
    for turn in range(3):
        gone = [offsets[number] for number in range(turn, 500, 50)]
        javascript(path, ["delete", gone], ["append", later[20 * turn : 20 * turn + 20]])
        with Log(path, read_only=read_only) as log, warnings.catch_warnings():
            warnings.simplefilter("error")
            db = JITDB(log)
            oracle = oracle_of(log)
            assert len(oracle.deleted) == 10 * (turn + 1)
            check(db, oracle)
            assert db.count() == 500 - 10 * (turn + 1) + 20 * (turn + 1)
            check(JITDB(log), oracle)


def test_a_database_that_stays_open_follows_javascript(tmp_path: Path, javascript: Run) -> None:
    path = tmp_path / "log"
    with Log(path, codec="bipf", block_size=4096) as log:
        offsets = log.append_many(message(number) for number in range(300))
        later = encoded(log, 300, 30)
    with Log(path, read_only=True) as log:
        db = JITDB(log)
        check(db, oracle_of(log))
        posts = db.count(QUESTIONS[1])
        javascript(path, ["delete", [offsets[0], offsets[4], offsets[7]]])
        assert db.refresh()
        assert db.count(QUESTIONS[1]) == posts - 2
        assert db.count(not_(QUESTIONS[1])) == 180 - 1
        check(db, oracle_of(log))
        javascript(path, ["append", later], ["delete", [offsets[9]]])
        assert db.refresh()
        check(db, oracle_of(log))
        assert not db.refresh()
        assert len(list((log.sidecar / "indexes").glob("*.deleted-*"))) == 1  # not one for each state of the log


def test_javascript_compacts_an_indexed_log(tmp_path: Path, javascript: Run) -> None:
    path = tmp_path / "log"
    with Log(path, codec="bipf", block_size=4096) as log:
        offsets = log.append_many(message(number) for number in range(300))
        log.flush()
        JITDB(log).prepare(*QUESTIONS)
    with Log(path, read_only=True) as log, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        db = JITDB(log)
        check(db, oracle_of(log))
        javascript(path, ["delete", offsets[5:90:3]], ["compact"])
        assert db.refresh()
        check(db, oracle_of(log))
        assert db.count() == 300 - 29
        assert db.count(includes("value.content.tags", "all")) == sum(
            1 for number in range(300) if number % 4 == 0 and number not in range(5, 90, 3)
        )
    with Log(path) as log, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(JITDB(log), oracle_of(log))
