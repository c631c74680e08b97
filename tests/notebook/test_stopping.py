"""The stop button, live cells and progress, in a real kernel."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from notebook_kernel import Kernel, Shown, begun

BEGIN = """
import asyncio, threading, time
import jitdb
from jitdb.notebook import watch
from jitdb.operators import descending, equal, field, paginate, predicate, timeline
db = jitdb.open("events.ndjson", read_only=True)
errors = db.query(field("level") == "error")
%load_ext jitdb
"""
COUNT = "print(db.count(equal('level', 'error')), errors.count())"
#: Nothing of a cell goes on: no thread but those that the event loop keeps, no task, no scan.
QUIET = """
for _ in range(200):
    left = [each for each in threading.enumerate() if each not in before and not each.name.startswith("asyncio")]
    if not left and db.status.state == "idle":
        break
    await asyncio.sleep(0.02)
left, len(asyncio.all_tasks()) - tasks, db.status.state
"""


class Notebook(Kernel):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.log = folder / "events.ndjson"
        self.log.write_text("")
        self.append(300)

    def append(self, count: int) -> None:
        lines = (
            {"level": "error" if number % 3 == 0 else "info", "time": 1.7e9 + number, "id": f"{number:04}"}
            for number in range(count)
        )
        with self.log.open("a") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    made = Notebook(tmp_path_factory.mktemp("notebook"))
    assert not made.run(BEGIN)
    made.run(f"{COUNT}\nbefore, tasks = threading.enumerate(), len(asyncio.all_tasks())\nawait asyncio.sleep(0)")
    yield made
    made.close()


@pytest.mark.parametrize(
    "waiting",
    [
        "async for record in errors.live():\n    print(record)",
        "for record in errors.live():\n    print(record)",
        "await watch(errors, every=60)",
    ],
    ids=["async for", "for", "watch"],
)
def test_a_wait_is_stopped_in_a_word(kernel: Notebook, waiting: str) -> None:
    shown = kernel.run(f"print('begun')\n{waiting}", kernel.stop_waiting)
    assert shown[-1] == Shown("error", "stopped")
    (count,) = kernel.values(COUNT)
    assert len(set(count.split())) == 1
    assert kernel.values(QUIET) == ["([], 0, 'idle')"]


SLOW = "def slow(value):\n    if value == '0001':\n        print('begun')\n    time.sleep(0.02)\n    return True\n"


@pytest.mark.parametrize(
    "asking",
    ["db.count({})", "await db.query({})", "await watch(db.query({}))"],
    ids=["count", "await", "watch"],
)
def test_a_scan_is_stopped(kernel: Notebook, asking: str) -> None:
    operation = "predicate('id', slow, name='slow')"
    code = SLOW + asking.format(operation)
    began = time.monotonic()
    shown = kernel.run(code, lambda shown: begun(shown) and kernel.stop())
    assert shown[-1].kind == "error"
    assert time.monotonic() - began < 5
    (count,) = kernel.values(COUNT)
    assert len(set(count.split())) == 1
    assert kernel.values(QUIET) == ["([], 0, 'idle')"]


def test_records_come_into_a_live_cell(kernel: Notebook) -> None:
    code = """
print("begun")
seen = 0
async for record in errors.live():
    seen += 1
    print(record["id"])
    if seen == 3:
        break
seen
"""
    shown = kernel.run(code, lambda shown: begun(shown) and (kernel.append(9), True)[1])
    assert "".join(each.text for each in shown if each.kind == "stream") == "begun\n0000\n0003\n0006\n"
    assert shown[-1] == Shown("execute_result", "3")


def test_one_display_follows_the_log(kernel: Notebook) -> None:
    appended = []

    def grow(shown: list[Shown]) -> bool:
        if shown and not appended:
            appended.append(kernel.append(30))
        return bool(appended)

    before = int(kernel.values("(errors.question.database.refresh(), errors.count())[1]")[0])
    shown = kernel.run("last = await watch(errors, every=0.05, seconds=1.5)", grow)
    assert [each.kind for each in shown] == ["display_data", "update_display_data"]
    assert [each.text for each in shown] == [f"{before} records", f"{before + 10} records"]
    assert kernel.values("last, errors.count()") == [f"({before + 10}, {before + 10})"]
    shown = kernel.run("last = await watch(errors, timeline(every='1m'), every=0.05, seconds=0.3)")
    assert [each.kind for each in shown] == ["display_data"]
    assert kernel.values("last == errors.timeline(every='1m')") == ["True"]
    kernel.run("page = await watch(errors, descending(), paginate(2), every=0.05, seconds=0.1)")
    assert kernel.values("page.data == errors.descending().page(2).data, page.total") == [f"(True, {before + 10})"]


def test_a_watch_of_its_own_lets_other_cells_run(kernel: Notebook) -> None:
    assert not kernel.run("task = asyncio.create_task(watch(errors, every=0.05))\nawait asyncio.sleep(0.3)")[1:]
    assert kernel.values("1 + 1") == ["2"]
    assert kernel.values("task.cancel()\nawait asyncio.wait([task])\ntask.cancelled()") == ["True"]


@pytest.mark.parametrize(
    "code", ["await watch(db)", "await watch(errors, every=0)", "await watch(errors, seconds=True)"]
)
def test_what_cannot_be_watched(kernel: Notebook, code: str) -> None:
    shown = kernel.run(code)
    assert (len(shown), shown[-1].kind) == (1, "error")
    assert "QueryError" in shown[-1].text


def test_the_bar_of_an_awaited_scan(kernel: Notebook) -> None:
    code = """
from jitdb.engine import progress
progress.PATIENCE = progress._REDRAW = 0
bars = jitdb.open("events.ndjson", "memory", read_only=True)
await bars.query(field("id") == "0001")
"""
    shown = [each for each in kernel.run(code) if each.kind != "execute_result"]
    assert shown[0].html.startswith('<div role="status">indexing events.ndjson <progress value="0" max="100"')
    assert "indexing events.ndjson ░" in shown[0].text
    assert shown[-1] == Shown("update_display_data", "", "")


def test_the_bar_says_how_far_the_work_is(kernel: Notebook) -> None:
    code = """
from jitdb.engine import progress
progress.PATIENCE = progress._REDRAW = 0
progress.Bar("indexing <b>.log", 10_000_000)(5_000_000)
"""
    *_, shown = kernel.run(code)
    assert shown.text == f"indexing <b>.log {'█' * 12}{'░' * 13} 50 % of 10 MB"
    assert shown.html.startswith('<div role="status">indexing &lt;b&gt;.log <progress value="50" max="100"')


def test_the_tab_key_of_a_notebook(kernel: Notebook) -> None:
    kernel.run("names = None\n%jitdb open events.ndjson as names")
    for cell, typed, expected in (
        ("%%jitdb names\nlev", "lev", ["level"]),
        ('%%jitdb names\nlevel == "e', '"e', ['"error"']),
        ("%jitdb count names --unt", "--unt", ["--until"]),
    ):
        reply = kernel.client.complete(cell, reply=True, timeout=20)["content"]
        assert reply["matches"] == expected
        assert cell[reply["cursor_start"] : reply["cursor_end"]] == typed
