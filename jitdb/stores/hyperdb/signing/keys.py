"""Ed25519 keys of feeds: the public one names a feed, the secret one signs what is appended to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple, Self

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from jitdb.common.words import shown, type_and_size
from jitdb.log.io import osfile
from jitdb.stores.hyperdb.errors import HyperdbError

KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64


class KeyPair(NamedTuple):
    """A public key, and what signs for it."""

    public: bytes
    signing: SigningKey

    @classmethod
    def of(cls, secret: bytes) -> Self:
        """The keys that come of 32 secret bytes. Raises HyperdbError for others."""
        if not isinstance(secret, bytes) or len(secret) != KEY_BYTES:
            raise HyperdbError(f"a secret is {KEY_BYTES} bytes, not {type_and_size(secret)}")
        signing = SigningKey(secret)
        return cls(bytes(signing.verify_key), signing)

    def sign(self, message: bytes) -> bytes:
        """The signature of a message."""
        return self.signing.sign(message).signature


def is_signed(message: bytes, signature: bytes, public: bytes) -> bool:
    """Whether the signature is that of the key's owner."""
    try:
        VerifyKey(public).verify(message, signature)
    except (BadSignatureError, ValueError, TypeError):
        return False
    return True


def checked_key(key: bytes | str) -> bytes:
    """A public key, given as bytes or in hex. Raises HyperdbError for what is none."""
    try:
        raw = bytes.fromhex(key) if isinstance(key, str) else bytes(key)
    except (ValueError, TypeError):
        raw = b""
    if len(raw) != KEY_BYTES:
        raise HyperdbError(f"the key of a feed is {KEY_BYTES} bytes, or as many in hex, not {shown(key)}")
    return raw


def read_secret(path: Path) -> bytes | None:
    """The secret that a file holds; None where there is no file. Raises HyperdbError for what is none."""
    text = osfile.fs.read_if_there(path)
    if text is None:
        return None
    try:
        secret = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise HyperdbError(f"a secret is {2 * KEY_BYTES} hex digits, and this is {len(text)} other bytes", path=path)
    return secret


def write_secret(path: Path, secret: bytes) -> None:
    """Keep a secret in a new file that only its owner can read; it is durable then."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, secret.hex().encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
