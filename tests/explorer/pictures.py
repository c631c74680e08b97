"""The pictures of docs/: `python tests/explorer/pictures.py docs/shots LOG [WHERE [FROM TO [BY]]]`, with Chromium.

Those there are of a day of a web service in which one version fails in one region for eighty minutes:
LOG 'level == "error"' 2026-11-20T14:00:00Z 2026-11-20T15:20:00Z error.type
"""

from __future__ import annotations

import sys
from pathlib import Path

from browser import Looked, chromium
from served import served


def take(folder: Path, log: Path, where: str, low: str = "", high: str = "", by: str = "") -> None:
    """The page with what is different in a stretch of time, wide and light; narrow and dark with a record open."""
    stretch = {"from": low, "to": high, "tab": "why"} if low else {}
    asked = {"where": where, **({"by": by} if by else {})}
    with served(log) as site, chromium() as browser:
        wide = Looked(browser, site.server.address, height=1120, **asked, **stretch)
        for _ in range(2):  # the second time with indexes, as all later ones
            wide.page.reload()
            if stretch:
                wide.page.wait_for_selector(".patterns .row")
            wide.settled()
        wide.page.screenshot(path=folder / "explore-light.png")
        wide.close()
        narrow = Looked(browser, site.server.address, width=390, height=1120, dark=True, **asked)
        narrow.page.locator("#records .row").nth(1).click()
        narrow.page.wait_for_selector(".tree .field")
        narrow.page.screenshot(path=folder / "explore-narrow-dark.png")
        narrow.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
