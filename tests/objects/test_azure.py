"""`az://`, asked of Azurite, the emulator that Azure's makers wrote; it is installed by npm."""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from email.utils import formatdate
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from node_modules import installed, missing_tools
from waiting import until

import jitdb
from jitdb.errors import LogError
from jitdb.log.objects import stores
from jitdb.operators import field
from tests.objects.stores import forget_looks

obstore = pytest.importorskip("obstore")
pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
ACCOUNT = "devstoreaccount1"  # the emulator's, which its documentation names, and everybody knows
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def make_container(url: str, name: str) -> None:
    """Which the library that talks to stores cannot."""
    said = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    lines = ["PUT", *[""] * 11, *(f"{header}:{value}" for header, value in said.items())]
    signed = "\n".join([*lines, f"/{ACCOUNT}/{ACCOUNT}/{name}", "restype:container"])
    digest = hmac.digest(base64.b64decode(KEY), signed.encode(), hashlib.sha256)
    said["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    urlopen(Request(f"{url}/{ACCOUNT}/{name}?restype=container", method="PUT", headers=said)).close()


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its URL."""
    if said := " and ".join(missing_tools()) or installed(HERE):
        pytest.skip(f"Azurite is not here, and npm does not bring it: {said[:200]}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("azurite")
    command = [HERE / "node_modules" / ".bin" / "azurite-blob", "--inMemoryPersistence", "--skipApiVersionCheck"]
    command += ["--disableTelemetry", "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with open(folder / "said", "w") as said_to:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said_to, stderr=said_to)
    url = f"http://127.0.0.1:{port}"

    def is_up() -> bool:
        assert process.poll() is None, (folder / "said").read_text()
        with suppress(URLError, ConnectionError):
            make_container(url, "logs")
            return True
        return False

    try:
        until(is_up)
        yield url
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(autouse=True)
def asked(azurite: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("AZURE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", azurite)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(stores, "_STORES", stores._Stores())
    forget_looks(monkeypatch)


def put(key: str, count: int) -> None:
    data = b"".join(b'{"n":%d,"key":%s}\n' % (n, json.dumps(key).encode()) for n in range(count))
    store = obstore.store.from_url("az://logs", client_options={"allow_http": True})
    obstore.put(store, key, gzip.compress(data) if key.endswith(".gz") else data)


def test_one_object_and_the_one_that_takes_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (5000, 70):
        put("one.ndjson", count)
        forget_looks(monkeypatch)
        with jitdb.open("az://logs/one.ndjson") as db:
            assert db.count(field("n") >= 10) == count - 10
            assert db.query(field("n") == 17).page(5).data == [{"n": 17, "key": "one.ndjson"}]


def test_one_that_is_replaced_while_it_is_read_is_never_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    put("changing.ndjson", 60_000)
    with jitdb.open("az://logs/changing.ndjson", "memory") as db:
        assert db.count() == 60_000
        put("changing.ndjson", 50_000)
        assert db.count(field("n") >= 0) in (60_000, 50_000)
        assert db.count(field("n") >= 1) in (59_999, 49_999)
    forget_looks(monkeypatch)
    with jitdb.open("az://logs/changing.ndjson", "memory") as db:
        assert db.count(field("n") >= 1) == 49_999


def test_all_below_a_folder_and_those_of_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        put(f"day/dt=2026-11-{1 + number % 3:02d}/{number} ä%.ndjson.gz", number + 1)
    for place, wanted in (
        ("az://logs/day/", range(30)),
        ("az://logs/day/dt=2026-11-02/*", range(1, 30, 3)),
        ("az://logs/day/**/2*.gz", [2, *range(20, 30)]),
    ):
        for _ in range(2):  # without indexes, and with them
            forget_looks(monkeypatch)
            with jitdb.open_many(place) as logs:
                assert logs.count(field("n") == 0) == len(wanted)
                assert logs.count() == sum(number + 1 for number in wanted)


def test_what_is_not_there_and_who_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for place, said in (("az://logs/none.ndjson", "no such object"), ("az://none/a.ndjson", "no such")):
        with pytest.raises(LogError, match=said):
            jitdb.open(place).count()
    put("mine.ndjson", 3)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", base64.b64encode(b"another key").decode())
    monkeypatch.setattr(stores, "_STORES", stores._Stores())
    forget_looks(monkeypatch)
    with pytest.raises(PermissionError, match="refuses") as found:
        jitdb.open("az://logs/mine.ndjson").count()
    assert KEY not in str(found.value)
