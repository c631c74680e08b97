"""Stores of objects on this machine: moto's server, and one of our own that can fail (bucket.py)."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from jitdb.log.lines.bundles import texts
from jitdb.log.objects import files, stores

KEYS: Final = {
    "AWS_ACCESS_KEY_ID": "key-of-a-test",
    "AWS_SECRET_ACCESS_KEY": "secret-of-a-test",
    "AWS_REGION": "us-east-1",
}


def asked_at(endpoint: str, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Let jitdb, in this process and those that it starts, ask this store, and keep what it keeps in that folder."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": endpoint, "XDG_CACHE_HOME": str(cache)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(stores, "_STORES", stores._Stores())
    forget_looks(monkeypatch)


def forget_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a new process begins."""
    monkeypatch.setattr(files, "PARTS", files.Parts())
    files.FILES._looks.clear()
    files.FILES._told.clear()
    monkeypatch.setattr(texts.TEXTS, "_held", OrderedDict())
    monkeypatch.setattr(texts.TEXTS, "_size", 0)


@contextmanager
def moto() -> Iterator[tuple[str, Any]]:
    """The URL of moto's server, and a client of it."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        yield (
            url,
            boto3.client(
                "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
            ),
        )
    finally:
        server.stop()
