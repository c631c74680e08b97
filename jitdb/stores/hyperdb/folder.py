"""The folder of a database: which one it is, what may be written to here, and where its feeds lie.

It has, beside each other, `feeds/KEY.log` (a feed, named by its public key in hex) and `feeds/KEY.heads` (what its
owner signed of it), `database.log` (which of them is the source, and which one is written to here) and `secret` (the
seed of the latter's key, in hex).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.common.words import shown
from jitdb.errors import Remedy
from jitdb.log.log import Log
from jitdb.stores.folders import mark
from jitdb.stores.hyperdb.errors import HyperdbError
from jitdb.stores.hyperdb.signing.keys import KEY_BYTES, KeyPair, read_secret, write_secret

_FEEDS: Final = "feeds"
_DATABASE: Final = "database.log"
_DATABASE_BLOCK: Final = 4096
_SECRET: Final = "secret"

_NONE_YET: Final = Remedy("pass create=True to make one", "`jitdb hyperdb put` makes one")


class Named(NamedTuple):
    """The public keys of a database's source, and of the feed that is written to here."""

    source: bytes
    local: bytes


class Folder:
    """Where a database lies."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not os.fspath(path):
            raise HyperdbError("the path of the folder is empty", remedy="pass '.' for the one that you are in")
        self.path = Path(path)

    def feed(self, key: bytes) -> Path:
        """The log of a feed."""
        return self.path / _FEEDS / f"{key.hex()}.log"

    def opened(self, source: bytes | None, secret: bytes | None, *, create: bool, read_only: bool) -> Named:
        """The keys of the database that lies here, which is made where there is none.

        source: the one it is to have; None: any, or, of a new one, its own
        secret: of a new one's own feed; None: chance

        Raises HyperdbError where there is none and none is to be made, or that of another source.
        """
        named = self._stored()
        if named is None:
            if read_only or not (create or source):
                raise HyperdbError("there is no database", path=self.path, remedy=_NONE_YET)
            named = self._make(source, secret)
        if source not in (None, named.source):
            raise HyperdbError(f"the database is {named.source.hex()}, not {shown(source.hex())}", path=self.path)
        if not read_only:
            for folder in (self.path, self.path / _FEEDS):
                mark(folder, "hyperdb")
        return named

    def keys(self, local: bytes) -> KeyPair | None:
        """The keys of our own feed; None where its secret is not here. Raises HyperdbError for those of another one."""
        path = self.path / _SECRET
        secret = read_secret(path)
        if secret is None:
            return None
        keys = KeyPair.of(secret)
        if keys.public != local:
            raise HyperdbError(
                f"it is the secret of {keys.public.hex()}, and the feed written to here is {local.hex()}", path=path
            )
        return keys

    def _stored(self) -> Named | None:
        path = self.path / _DATABASE
        if not path.exists():
            return None
        with Log(path, read_only=True) as log:
            for record in log.stream():
                return Named(record.value["source"], record.value["local"])
        return None

    def _make(self, source: bytes | None, secret: bytes | None) -> Named:
        (self.path / _FEEDS).mkdir(parents=True, exist_ok=True)
        kept = read_secret(self.path / _SECRET)  # of a creation that a crash cut short
        if kept is None:
            kept = os.urandom(KEY_BYTES) if secret is None else secret
            KeyPair.of(kept)
            write_secret(self.path / _SECRET, kept)
        local = KeyPair.of(kept).public
        named = Named(source or local, local)
        with Log(self.path / _DATABASE, block_size=_DATABASE_BLOCK) as log:
            log.append(named._asdict())
        return named
