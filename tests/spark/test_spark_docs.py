"""Every block of docs/spark.md runs, in one session, and gives what its comments say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from doc_blocks import ROOT, Page

# Relative paths begin where Spark's Java was started, so the page has a process of its own.
SCRIPT = """
import sys
from doc_blocks import ROOT, Page
from jitdb.spark_ext import session

quick = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
session("local[2]", **quick).sparkContext.setLogLevel("ERROR")
page = Page.read(ROOT / "docs" / "spark.md")
print(page.run(), "promises kept")
for name, text in page.files.items():
    sys.argv = [name, "ssb.log", "--field", "value.content.channel", "--no-progress"]
    exec(compile(text, name, "exec"), {})  # ends with sys.exit(0)
"""


def test_the_page(tmp_path: Path) -> None:
    assert set(Page.read(ROOT / "docs" / "spark.md").files) == {"prebuild.py"}
    shutil.copy(ROOT / "tests" / "data" / "ssb-5k.bipf", tmp_path / "ssb.log")
    found = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": found},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "6 promises kept" in done.stdout
    assert "value_content_channel" in done.stdout
