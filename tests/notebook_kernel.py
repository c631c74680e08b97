"""A kernel as a notebook has one: cells are run in it, and what they show is seen."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from jupyter_client.manager import start_new_kernel


class Shown(NamedTuple):
    kind: str
    text: str
    html: str = ""


class Kernel:
    def __init__(self, folder: Path) -> None:
        self.manager, self.client = start_new_kernel(kernel_name="python3", cwd=str(folder))

    def run(self, code: str, when: Callable[[list[Shown]], object] | None = None) -> list[Shown]:
        """Run a cell: what it shows. `when(shown)`, asked again and again, does what is to happen meanwhile; once it
        gives something true, it is asked no more.
        """
        asked = self.client.execute(code)
        found: list[Shown] = []
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                message = self.client.get_iopub_msg(timeout=0.05)
            except queue.Empty:
                message = None
            if message is not None and message["parent_header"].get("msg_id") == asked:
                kind, content = message["msg_type"], message["content"]
                if kind == "status" and content["execution_state"] == "idle":
                    return found
                data = content.get("data", {})
                text = data.get("text/plain", content.get("text", "\n".join(content.get("traceback", ()))))
                if kind not in ("status", "execute_input"):
                    found.append(Shown(kind, text, data.get("text/html", "")))
            if when is not None and when(found):
                when = None
        raise AssertionError(f"it does not end: {found}")

    def stop(self) -> bool:
        self.manager.interrupt_kernel()
        return True

    def stop_waiting(self, shown: list[Shown]) -> bool:
        """Stop a cell that waits once it has said "begun"."""
        if not begun(shown):
            return False
        time.sleep(0.2)  # so that it waits
        return self.stop()

    def values(self, code: str) -> list[str]:
        return [shown.text for shown in self.run(code)]

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def begun(shown: list[Shown]) -> bool:
    return any(each.text.startswith("begun") for each in shown)
