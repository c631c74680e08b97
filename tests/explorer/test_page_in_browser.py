"""The page in Chromium: what it shows, what its parts do; with a keyboard alone, narrow, dark, of hostile records."""

from __future__ import annotations

import json
import random
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, looked, needs_browser
from served import Served, served, write_lines

pytestmark = needs_browser

BEGIN = datetime(2026, 11, 20, tzinfo=UTC)
MINUTES = 24 * 60


def records() -> list[dict[str, Any]]:
    """A day, a record each half minute; in its fifteenth hour errors of one version are many."""
    draw, found = random.Random(11), []
    for number in range(2 * MINUTES):
        time = BEGIN + timedelta(seconds=30 * number + draw.random())
        is_bad = time.hour == 14 and draw.random() < 0.5
        found.append(
            {
                "time": time.isoformat().replace("+00:00", "Z"),
                "level": "error" if is_bad or draw.random() < 0.05 else draw.choice(["info", "info", "warn"]),
                "service": draw.choice(["web", "api", "cart"]),
                "version": "2.0" if is_bad else draw.choice(["1.8", "1.9", "2.0"]),
                "ms": round(draw.lognormvariate(6 if is_bad else 3, 1), 1),
                "trace": {"id": f"{draw.getrandbits(64):016x}"},
                "message": "pool timeout" if is_bad else f"request {number} took a while",
            }
        )
    return found


RECORDS = records()
ERRORS = [record for record in RECORDS if record["level"] == "error"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(write_lines(tmp_path_factory.mktemp("it's a log") / "day one.ndjson", RECORDS)) as found:
        yield found


def test_it_begins_with_all_records(browser: Any, site: Served) -> None:
    with looked(browser, site.server.address) as page:
        assert page.count == f"{len(RECORDS):,}"
        assert "exact, no sampling" in page.page.inner_text(".answer")
        assert page.page.inner_text("#title") == "day one.ndjson"
        assert "UTC" in page.page.inner_text("#period")
        assert page.page.text_content("#time svg .zone") == "UTC"
        newest = [record["message"] for record in reversed(RECORDS)][:50]
        assert page.texts("#records .row .last") == newest
        assert "token" not in page.page.url
        assert page.page.evaluate("document.cookie") == ""


def test_typing_completing_and_what_is_wrong(browser: Any, site: Served) -> None:
    with looked(browser, site.server.address) as page:
        tab = page.page
        tab.click("#where")
        tab.keyboard.type("lev")
        tab.wait_for_selector("#offers li:text-is('level')")
        tab.keyboard.press("Tab")
        assert page.where == "level"
        tab.keyboard.type(" == ")
        tab.wait_for_selector("#offers li:text-is('\"error\"')")
        tab.keyboard.type('"er')
        tab.wait_for_selector("#offers li:only-child")
        tab.keyboard.press("ArrowDown")
        tab.keyboard.press("Enter")
        assert page.where == 'level == "error"'
        assert page.texts("#painted .p-string") == ['"error"']
        tab.keyboard.press("Enter")
        page.settled()
        assert page.count == f"{len(ERRORS):,}"
        page.ask("level = 'error'")
        assert "equality is written `==`" in tab.inner_text("#wrong")
        assert tab.inner_text("#exact") == "the answer of the question before"
        assert "^" in tab.inner_text("#wrong pre")
        assert tab.get_attribute("#where", "aria-invalid") == "true"
        tab.click("#wrong button")
        page.settled()
        assert page.count == f"{len(ERRORS):,}"
        assert tab.is_hidden("#wrong")
        assert tab.inner_text("#exact") == "exact, no sampling"


def test_facets_narrow_and_widen_and_back_goes_back(browser: Any, site: Served) -> None:
    with looked(browser, site.server.address) as page:
        page.value("level", "error").locator(".what").click()
        page.settled()
        assert page.where == 'level == "error"'
        shown = Counter(record["level"] for record in RECORDS)
        told = page.page.locator('.facet:has(.name:text-is("level")) .value').all_inner_texts()
        assert [re.split(r"\s+", text.strip())[:2] for text in told] == [
            ["error", f"{shown['error']:,}"],
            *([level, f"{count:,}"] for level, count in shown.most_common() if level != "error"),
        ]
        page.value("level", "warn").get_by_title("these, too").click()
        page.settled()
        assert page.where == 'level in ["error", "warn"]'
        page.value("service", "web").get_by_title("not these").click()
        page.settled()
        assert page.where == 'level in ["error", "warn"] and service != "web"'
        wanted = [each for each in RECORDS if each["level"] in ("error", "warn") and each["service"] != "web"]
        assert page.count == f"{len(wanted):,}"
        for before in ('level in ["error", "warn"]', 'level == "error"', ""):
            page.page.go_back()
            page.settled()
            assert page.where == before
        assert page.count == f"{len(RECORDS):,}"
        page.page.go_forward()
        page.settled()
        page.page.reload()  # the state is in the address, the token in the tab
        page.settled()
        assert (page.where, page.count) == ('level == "error"', f"{len(ERRORS):,}")


def test_a_drag_zooms_and_zooms_out_again(browser: Any, site: Served) -> None:
    with looked(browser, site.server.address, where='level == "error"') as page:
        box = page.page.locator("#time svg").bounding_box()
        left, wide = box["x"] + 38, box["width"] - 38
        at = lambda hour: left + wide * hour / 24  # noqa: E731
        page.page.mouse.move(at(14.1), box["y"] + 60)
        page.page.mouse.down()
        page.page.mouse.move(at(14.9), box["y"] + 60)
        page.page.mouse.up()
        page.settled()
        said = dict(re.findall(r"(since|until)=([^&]*)", page.page.url.replace("%3A", ":")))
        assert said == {"since": "2026-11-20T14:00:00Z", "until": "2026-11-20T15:00:00Z"}
        within = [each for each in ERRORS if said["since"] <= each["time"] < said["until"]]
        assert page.count == f"{len(within):,}"
        assert "Nov 20, 14:00 \N{EN DASH} 15:00 UTC" in page.page.inner_text("#period")
        page.page.go_back()
        page.settled()
        assert page.count == f"{len(ERRORS):,}"


def test_a_stretch_of_time_is_asked_why(browser: Any, site: Served) -> None:
    with looked(browser, site.server.address, where='level == "error"') as page:
        box = page.page.locator("#time svg").bounding_box()
        at = lambda hour: box["x"] + 38 + (box["width"] - 38) * hour / 24  # noqa: E731
        page.page.keyboard.down("Shift")
        page.page.mouse.move(at(14.1), box["y"] + 60)
        page.page.mouse.down()
        page.page.mouse.move(at(14.9), box["y"] + 60)
        page.page.mouse.up()
        page.page.keyboard.up("Shift")
        page.page.wait_for_selector(".why .row")
        page.settled()
        inside = [each for each in ERRORS if "T14:" in each["time"]]
        assert f"{len(inside)} records Nov 20, 14:00 \N{EN DASH} 15:00 UTC" in page.page.inner_text(".why .head")
        assert f"{len(ERRORS) - len(inside)} of other times" in page.page.inner_text(".why .head")
        found = dict(zip(page.texts(".why .row .name"), page.texts(".why .row .v"), strict=True))
        assert found["version"] == '"2.0"'
        page.page.wait_for_selector(".patterns .row")
        assert page.page.locator(".patterns .row:first-of-type .v").inner_text() == "pool timeoutonly in this time"
        newest = [each["message"] for each in sorted(inside, key=lambda each: each["time"], reverse=True)[:50]]
        assert page.texts("#records .row .last") == newest
        page.page.click("text=patterns of message")
        page.page.wait_for_selector(".patterns .row .hole")
        page.page.keyboard.press("2")
        page.page.locator(".why .row", has=page.page.locator(".name:text-is('version')")).click()
        page.settled()
        assert page.where == 'level == "error" and version == "2.0"'
        page.page.click("text=Compare with")
        page.page.fill('dialog input[name="against"]', 'level == "info"')
        page.page.press('dialog input[name="against"]', "Enter")
        page.page.wait_for_selector(".why .head:has-text('of level ==')")
        infos = sum(each["level"] == "info" for each in RECORDS)
        assert f"{infos:,} of level" in page.page.inner_text(".why .head")


def test_times_are_of_the_zone_that_is_said(browser: Any, site: Served) -> None:
    with looked(browser, site.server.address, zone="Asia/Kolkata") as page:  # five and a half hours before UTC
        assert page.page.text_content("#time svg .zone") == "Asia/Kolkata"
        newest = datetime.fromisoformat(RECORDS[-1]["time"]) + timedelta(hours=5, minutes=30)
        assert page.texts("#records .row .t")[0].startswith(f"{newest:%H:%M:%S}.")
        page.page.evaluate("document.activeElement.blur()")
        page.page.keyboard.press("z")
        page.settled()
        assert page.page.text_content("#time svg .zone") == "UTC"
        assert page.texts("#records .row .t")[0] == RECORDS[-1]["time"][11:23]


def test_a_keyboard_is_enough(browser: Any, site: Served) -> None:
    with looked(browser, site.server.address) as page:
        keys = page.page.keyboard
        keys.press("Escape")
        page.page.evaluate("document.activeElement.blur()")
        keys.press("/")
        keys.type('service == "web"')
        keys.press("Enter")
        page.settled()
        page.page.evaluate("document.activeElement.blur()")
        keys.press("t")
        for key in ("Home", "ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight"):
            keys.press(key)
        keys.press("Enter")
        page.settled()
        assert "since=2026-11-20T00" in page.page.url
        keys.press("j")
        keys.press("j")
        keys.press("Enter")
        page.page.wait_for_selector(".tree .field")
        assert page.page.locator(".row.open").count() == 1
        keys.press("4")
        page.page.wait_for_selector("#findings table")
        keys.press("?")
        page.page.wait_for_selector("dialog[open]")
        keys.press("Escape")
        page.page.wait_for_selector("dialog:not([open])", state="attached")
        for key, title in (("c", "The same elsewhere"), ("p", "Which time"), ("b", "Bars by"), ("e", "Export")):
            keys.press(key)
            page.page.wait_for_selector(f"dialog[open] h2:text-is('{title}')")
            keys.press("Escape")
            page.page.wait_for_selector("dialog:not([open])", state="attached")
        for _ in range(8):  # and everything that can be clicked is reached
            keys.press("Tab")
            assert page.page.evaluate("document.activeElement.matches('button, input, textarea, a, svg')")


def test_a_record_opens_with_what_came_before_it(browser: Any, site: Served) -> None:
    with looked(browser, site.server.address, where='level == "error"') as page:
        page.page.locator("#records .row").nth(1).click()
        page.page.wait_for_selector(".tree .field")
        record = sorted(ERRORS, key=lambda each: each["time"])[-2]
        fields = dict(zip(page.texts(".tree .key"), page.texts(".tree .v"), strict=True))
        assert fields["trace.id"] == record["trace"]["id"]
        assert fields["ms"] == repr(record["ms"])
        page.page.click("text=What came before it")
        page.page.wait_for_selector(".around .row")
        at = RECORDS.index(record)
        assert page.texts(".around .row.match .last") == [record["message"]]
        assert page.texts(".around .row .last") == [each["message"] for each in reversed(RECORDS[at - 15 : at + 4])]
        page.page.locator(".around .row").nth(5).click()  # one of those opens, too
        page.page.wait_for_selector(".around .record .field")
        page.page.locator(".around .row").nth(5).click()
        page.page.wait_for_selector(".around .record", state="detached")
        page.page.click("text=All of this trace.id")
        page.settled()
        assert (page.where, page.count) == (f'trace.id == "{record["trace"]["id"]}"', "1")


def test_columns_are_chosen(browser: Any, site: Served) -> None:
    with looked(browser, site.server.address) as page:
        page.page.click("text=columns")
        page.page.fill('dialog input[name="columns"]', "ms, trace.id")
        page.page.click("dialog .go")
        page.settled()
        newest = RECORDS[-1]
        assert page.texts("#records .row.heads span") == ["time", "ms", "trace.id"]
        assert page.texts("#records .row:not(.heads) .v")[:2] == [repr(newest["ms"]), newest["trace"]["id"]]


def test_the_command_and_the_program_find_the_same(browser: Any, site: Served, tmp_path: Path) -> None:
    where = """message contains "it's" or version == "2.0" and service != "web" """.strip()
    with looked(browser, site.server.address, where=where, since="2026-11-20T12:00:00Z") as page:
        page.page.click("#copy")
        command, python = page.texts("dialog pre")
        page.page.locator("dialog .go").first.click()
        assert page.page.evaluate("navigator.clipboard.readText()") == command
        count = page.count
    asked = [sys.executable, "-m", *shlex.split(command)]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    assert f"{len(found):,}" == count
    told = subprocess.run([sys.executable, "-c", f"{python}\nprint(found.count())"], capture_output=True, text=True)
    assert f"{int(told.stdout):,}" == count


def test_export_saves_the_records(browser: Any, site: Served, tmp_path: Path) -> None:
    with looked(browser, site.server.address, where='level == "error"') as page:
        page.page.click("#export")
        with page.page.expect_download() as download:
            page.page.click("dialog .go")
        download.value.save_as(tmp_path / "saved")
    saved = [json.loads(line) for line in (tmp_path / "saved").read_text().splitlines()]
    assert saved == sorted(ERRORS, key=lambda each: each["time"], reverse=True)


def test_following_shows_what_comes(browser: Any, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "live.ndjson", RECORDS[:100])
    with served(path) as site, looked(browser, site.server.address, where='service == "web"') as page:
        page.page.click("#follow")
        page.page.wait_for_selector("#follow[aria-pressed=true]")
        page.page.locator("#records .row").nth(0).click()
        page.page.wait_for_selector("#records .record .field")
        with path.open("a") as file:
            file.writelines(json.dumps(record) + "\n" for record in RECORDS[100:200])
        wanted = [record for record in RECORDS[:200] if record["service"] == "web"]
        page.page.wait_for_selector(f'#count b:text-is("{len(wanted)}")')
        page.page.wait_for_selector(f'#records .row .last:text-is("{wanted[-1]["message"]}")')  # behind the count
        assert page.texts("#records .row .last")[0] == wanted[-1]["message"]
        assert page.page.locator("#records .record .field").count() > 5  # what is open stays so
        page.page.click("#follow")
        page.page.wait_for_selector("#follow[aria-pressed=false]")


@pytest.mark.parametrize(("width", "dark"), [(390, True), (390, False), (1440, True), (320, False)])
def test_it_fits_and_can_be_read(browser: Any, site: Served, width: int, dark: bool) -> None:
    with looked(browser, site.server.address, width=width, dark=dark, where='level == "error"') as page:
        page.page.locator("#records .row").nth(0).click()
        page.page.wait_for_selector(".tree .field")
        assert page.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.page.evaluate(_CONTRAST) > 4.5  # what WCAG asks for text
        back = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", back)[:3])) < 200) == dark
        if width < 760:
            page.page.click("#fields button")
            page.page.wait_for_selector("#facets.open")
            assert page.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


_CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const solid = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(at).backgroundColor);
      if (a > 0.5) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const light = (color) => color.map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const seen = [...document.querySelectorAll("body *")].filter((node) => node.checkVisibility({ checkOpacity: true })
    && [...node.childNodes].some((each) => each.nodeType === 3 && each.textContent.trim())
    && !node.matches("textarea, script"));
  return Math.min(...seen.map((node) => {
    const style = getComputedStyle(node), color = node instanceof SVGElement ? style.fill : style.color;
    const [low, high] = [light(solid(node)), light(parse(color).slice(0, 3))].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  }));
}"""

MARKUP = '<img src=x onerror="window.hit=1"><script>window.hit=1</script><b>bold</b>'
HOSTILE: list[dict[str, Any]] = [
    {"time": 1700000000, "level": MARKUP, "message": MARKUP, MARKUP: MARKUP, "service": MARKUP},
    {"time": 1700000001, "level": "error", "message": "abc \u202edcba\u202c \x1b[2J\x00", "service": "\u202eb"},
    {"time": 1700000002, "level": "error", "message": "x" * 1_000_000, "service": "long" * 100_000},
    {"time": 1700000003, "message": "many", "service": "web", **{f"field{at}": at for at in range(10_000)}},
    {"time": 1700000004, "level": ["a", {"b": None}], "message": {"deep": [[[[[]]]]]}, "service": 2**60, "": {"": ""}},
    {"time": 1700000005, "__proto__": {"hit": 1}, "constructor": "x", "toString": 5, "message": "javascript:hit=1"},
    {"time": 1e300, "message": "no time", "level": None, "service": -0.0},
]  # fmt: skip


def test_hostile_records_are_text(browser: Any, tmp_path: Path) -> None:
    path = write_lines(tmp_path / f"{MARKUP[:20].replace('/', '')}.ndjson", HOSTILE * 3)
    with served(path) as site, looked(browser, site.server.address) as page:
        assert page.count == f"{3 * len(HOSTILE)}"
        for number in range(len(HOSTILE)):
            lines = page.page.locator("#records > .row[data-place]")
            lines.nth(3 * number).click()
            page.page.wait_for_selector(f"#records > .row.open >> nth={number}")
            page.page.wait_for_selector(f"#records > .record >> nth={number} >> .field >> nth=0")
        assert page.page.evaluate("window.hit") is None
        assert page.page.evaluate("({}).hit") is None
        assert page.page.locator("#records img, #records script, #records b, .facet img, .facet script").count() == 0
        assert any(MARKUP in text for text in page.texts("#records .tree .v"))
        assert not any("\u202e" in text for text in page.texts("#records .v"))
        assert max(map(len, page.texts("#records .row"))) < 2000
        assert page.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        page.ask(f"message == {json.dumps(MARKUP)}")
        assert page.count == "3"


def test_pages_of_other_origins_get_nothing(browser: Any, site: Served, tmp_path: Path) -> None:
    """A page of another port of this machine, in the same browser, that even knows port and token."""
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
    from threading import Thread

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    (tmp_path / "index.html").write_text("<!doctype html><title>other</title>")
    other = ThreadingHTTPServer(("127.0.0.1", 0), lambda *given: Quiet(*given, directory=str(tmp_path)))
    Thread(target=other.serve_forever, daemon=True).start()
    ours, context = f"http://{site.host}", browser.new_context()
    try:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{other.server_port}/")
        asked = """async ([address, headers, mode]) => {
          try {
            const response = await fetch(address, { method: "POST", headers, mode, body: '{"parts": ["count"]}' });
            return response.type === "opaque" ? "opaque" : await response.text();
          } catch (error) { return "refused"; }
        }"""
        token = {"X-Jitdb-Token": site.token, "Content-Type": "application/json"}
        assert page.evaluate(asked, [f"{ours}/api/v1/look", token, "cors"]) == "refused"
        assert page.evaluate(asked, [f"{ours}/api/v1/look", {}, "no-cors"]) in ("opaque", "refused")
        framed = """(address) => new Promise((done) => {
          const frame = document.createElement("iframe");
          frame.onload = () => { try { done(String(frame.contentDocument?.title)); } catch { done("shut"); } };
          frame.src = address;
          document.body.append(frame);
        })"""
        assert page.evaluate(framed, ours + "/") in ("shut", "null", "undefined")
        assert not any("index.html" in frame.url or frame.title() == "jitdb" for frame in page.frames[1:])
        scripted = """(address) => new Promise((done) => {
          const script = document.createElement("script");
          script.onload = () => done("ran"); script.onerror = () => done("refused");
          script.src = address; script.type = "module"; document.body.append(script);
        })"""
        assert page.evaluate(scripted, f"{ours}/main.js") == "refused"
        # A link of it cannot bring a question along, not even into a tab that has the token.
        page.goto(site.server.address)
        page.wait_for_selector("body:not(.asking) #records .head")
        page.goto(f"http://127.0.0.1:{other.server_port}/")
        page.evaluate("(address) => { location.href = address; }", f"{ours}/#where=level+%3D%3D+%22error%22")
        page.wait_for_selector("body:not(.asking) #records .head")
        assert page.input_value("#where") == ""
        # Who knows the token may, as a notebook's link does.
        page.goto(f"http://127.0.0.1:{other.server_port}/")
        page.evaluate(
            "(address) => { location.href = address; }", f"{site.server.address}&where=level+%3D%3D+%22error%22"
        )
        page.wait_for_selector("body:not(.asking) #records .head")
        assert page.input_value("#where") == 'level == "error"'
    finally:
        context.close()
        other.shutdown()
        other.server_close()


def test_without_a_token_it_says_what_to_do(browser: Any, site: Served) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"http://{site.host}/")
    page.wait_for_selector("#wrong:not([hidden])")
    assert "no token" in page.inner_text("#wrong")
    context.close()
